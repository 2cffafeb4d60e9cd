// What the reference interpreter has to know of v1model, in one program for its tests.
// Compiled by: p4c-bm2-ss --std p4-16 everything.p4 -o everything.json --p4runtime-files everything.p4info.txtpb

#define V1MODEL_VERSION 20200408
#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_TAGS = 0x88f0;
const bit<16> TYPE_CALC = 0x88f1;
const bit<16> TYPE_LOOK = 0x88f2;
const bit<9> CPU_PORT = 510;

error { BadVersion, BadLook }

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> length;
    bit<16> id;
    bit<3> flags;
    bit<13> offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
    varbit<320> options;
}

header tag_t {
    bit<12> label;
    bit<3> kind;
    bit<1> last;
}

header calc_t {
    bit<16> a;
    bit<16> b;
    bit<8> small;
    bit<128> wide;
}

header result_t {
    bit<16> sum;
    bit<16> difference;
    bit<16> product;
    bit<16> left;
    bit<16> right;
    bit<16> both;
    bit<16> either;
    bit<16> one;
    bit<16> inverted;
    bit<16> saturated_sum;
    bit<16> saturated_difference;
    bit<16> larger;
    bit<32> joined;
    bit<8> slice;
    bit<16> widened;
    bit<16> signed_right;
    int<8> negated;
    int<8> signed_sum;
    int<8> signed_saturated;
    bit<8> comparisons;
    bit<128> wide_sum;
    bit<128> wide_shifted;
    bit<160> wider;
    bit<32> crc;
    bit<16> crc16;
    bit<16> sum16;
    bit<16> folded;
    bit<32> crc_in_range;
    bit<64> same;
}

header trace_t {
    bit<32> parser_error;
    bit<8> checksum_error;
    bit<8> instance;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<32> packet_length;
    bit<16> action_taken;
    bit<16> kept;
    bit<16> lost;
    bit<16> rid;
    bit<8> tags;
    bit<16> sum;
}

@controller_header("packet_in")
header packet_in_t {
    bit<16> ingress_port;
    bit<7> reason;
    bit<9> more;
}

@controller_header("packet_out")
header packet_out_t {
    bit<16> egress_port;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    trace_t trace;
    ethernet_t ethernet;
    tag_t[3] tags;
    calc_t calc;
    result_t result;
    ipv4_t ipv4;
    ethernet_t copy;
}

struct meta_t {
    @field_list(1)
    bit<16> kept;
    bit<16> lost;
    bit<16> action_taken;
    bit<16> look;
    bit<8> tags;
    bit<1> do_clone;
    bit<32> session;
    bit<16> key16;
    bit<32> addr;
}

parser EverythingParser(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        pkt.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        pkt.extract(hdr.ethernet);
        meta.look = 7;
        transition select(hdr.ethernet.type, hdr.ethernet.dst[0:0]) {
            (TYPE_IPV4, _): ipv4;
            (TYPE_TAGS, _): tags;
            (TYPE_CALC, 0): calc;
            (TYPE_LOOK &&& 0xfffe, _): look;
            default: accept;
        }
    }
    state ipv4 {
        bit<8> first = pkt.lookahead<bit<8>>();
        verify(first[7:4] == 4, error.BadVersion);
        verify(first[3:0] >= 5, error.HeaderTooShort);
        pkt.extract(hdr.ipv4, ((bit<32>)first[3:0] - 5) << 5);
        meta.addr = hdr.ipv4.dst;
        transition accept;
    }
    state tags {
        pkt.extract(hdr.tags.next);
        meta.tags = meta.tags + 1;
        transition select(hdr.tags.last.last) {
            1: accept;
            default: tags;
        }
    }
    state calc {
        pkt.extract(hdr.calc);
        transition accept;
    }
    state look {
        meta.look = pkt.lookahead<bit<16>>();
        verify(meta.look != 0xdead, error.BadLook);
        pkt.advance((bit<32>)meta.look[3:0] << 3);
        hdr.copy.setValid();
        hdr.copy = hdr.ethernet;
        transition accept;
    }
}

control EverythingVerify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.options },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control EverythingIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    counter<bit<32>>(16, CounterType.packets_and_bytes) by_port;
    counter<bit<32>>(4, CounterType.packets_and_bytes) few;
    direct_counter(CounterType.packets_and_bytes) of_ternary;

    action forward(bit<9> port) {
        standard.egress_spec = port;
        meta.action_taken = meta.action_taken | 1;
    }
    action drop() {
        mark_to_drop(standard);
    }
    action note(bit<16> value) {
        meta.action_taken = meta.action_taken + value;
    }
    action clone_to(bit<32> session) {
        meta.do_clone = 1;
        meta.session = session;
        meta.kept = meta.kept + 0x1234;
        meta.lost = 0x5678;
    }
    action stop(bit<9> port) {
        standard.egress_spec = port;
        exit;
    }
    action to_controller(bit<7> reason) {
        standard.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>)standard.ingress_port;
        hdr.packet_in.reason = reason;
        hdr.packet_in.more = 0x1aa;
    }

    @entry_restriction("port < 300; port != 77")
    table exact_t {
        key = {
            standard.ingress_port: exact @name("port");
            hdr.ipv4.isValid(): exact @name("is_ip");
        }
        actions = { forward; drop; stop; @defaultonly NoAction; }
        default_action = NoAction();
        size = 8;
    }

    @entry_restriction("ttl::mask != 0 -> protocol == 17; ::priority < 1000")
    table ternary_t {
        key = {
            hdr.ipv4.protocol: ternary @name("protocol");
            hdr.ipv4.ttl: ternary @name("ttl");
            meta.look: range @name("look");
            hdr.ipv4.tos: optional @name("tos");
        }
        actions = { note; drop; clone_to; to_controller; @tableonly forward; NoAction; }
        default_action = note(0x4000);
        counters = of_ternary;
        size = 64;
    }

    table lpm_t {
        key = {
            meta.addr: lpm @name("addr");
        }
        actions = { note; }
        const default_action = note(0x2000);
        size = 16;
    }

    table const_t {
        key = {
            hdr.tags[0].label: ternary @name("label");
            hdr.tags[0].kind: exact @name("kind");
        }
        actions = { note; NoAction; }
        const entries = {
            (0x100 &&& 0xf00, 1): note(0x100);
            (_, 1): note(0x200);
            (0x123, 2): note(0x300);
        }
        const default_action = NoAction();
    }

    apply {
        by_port.count((bit<32>)standard.ingress_port & 15);
        few.count((bit<32>)standard.ingress_port & 3);
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = (bit<9>)hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            if (!exact_t.apply().hit) {
                meta.action_taken = meta.action_taken | 0x8000;
            }
            switch (ternary_t.apply().action_run) {
                note: { meta.kept = 1; }
                clone_to: { meta.lost = meta.lost + 1; }
                default: { meta.kept = 2; }
            }
            lpm_t.apply();
            if (hdr.tags[0].isValid()) {
                const_t.apply();
            }
        }
        if (meta.do_clone == 1) {
            clone_preserving_field_list(CloneType.I2E, meta.session, 1);
        }
    }
}

control EverythingEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action trace() {
        hdr.trace.setValid();
        hdr.trace.checksum_error = (bit<8>)standard.checksum_error;
        hdr.trace.instance = (bit<8>)standard.instance_type;
        hdr.trace.ingress_port = (bit<16>)standard.ingress_port;
        hdr.trace.egress_port = (bit<16>)standard.egress_port;
        hdr.trace.packet_length = standard.packet_length;
        hdr.trace.action_taken = meta.action_taken;
        hdr.trace.kept = meta.kept;
        hdr.trace.lost = meta.lost;
        hdr.trace.rid = standard.egress_rid;
        hdr.trace.tags = meta.tags;
        if (standard.parser_error == error.NoError) {
            hdr.trace.parser_error = 0;
        } else if (standard.parser_error == error.PacketTooShort) {
            hdr.trace.parser_error = 1;
        } else if (standard.parser_error == error.StackOutOfBounds) {
            hdr.trace.parser_error = 3;
        } else if (standard.parser_error == error.HeaderTooShort) {
            hdr.trace.parser_error = 4;
        } else if (standard.parser_error == error.BadVersion) {
            hdr.trace.parser_error = 100;
        } else if (standard.parser_error == error.BadLook) {
            hdr.trace.parser_error = 101;
        } else {
            hdr.trace.parser_error = 99;
        }
    }
    action calculate() {
        bit<16> a = hdr.calc.a;
        bit<16> b = hdr.calc.b;
        int<8> s = (int<8>)(bit<8>)a;
        int<8> t = (int<8>)(bit<8>)b;
        hdr.result.setValid();
        hdr.result.sum = a + b;
        hdr.result.difference = a - b;
        hdr.result.product = a * b;
        hdr.result.left = a << hdr.calc.small;
        hdr.result.right = a >> hdr.calc.small;
        hdr.result.both = a & b;
        hdr.result.either = a | b;
        hdr.result.one = a ^ b;
        hdr.result.inverted = ~a;
        hdr.result.saturated_sum = a |+| b;
        hdr.result.saturated_difference = a |-| b;
        hdr.result.larger = a > b ? a : b;
        hdr.result.joined = a ++ b;
        hdr.result.slice = a[11:4];
        hdr.result.widened = (bit<16>)hdr.calc.small;
        hdr.result.signed_right = (bit<16>)((int<16>)a >> 3);
        hdr.result.negated = -s;
        hdr.result.signed_sum = s + t;
        hdr.result.signed_saturated = s |+| t;
        hdr.result.comparisons = (bit<8>)(
            (bit<1>)(a == b) ++ (bit<1>)(a != b) ++ (bit<1>)(a < b) ++ (bit<1>)(a <= b) ++
            (bit<1>)(a > b && a != 5) ++ (bit<1>)(a >= b || !(b == 1)) ++ (bit<1>)(s < t) ++ (bit<1>)(s >= t));
        hdr.result.wide_sum = hdr.calc.wide + (bit<128>)a;
        hdr.result.wide_shifted = hdr.calc.wide << 17;
        hdr.result.wider = hdr.calc.wide ++ a ++ b;
        hash(hdr.result.crc, HashAlgorithm.crc32, 32w0, { a, b, hdr.calc.wide, 3w5, 5w1 }, 64w0x100000000);
        hash(hdr.result.crc16, HashAlgorithm.crc16, 16w0, { a, b }, 32w0x10000);
        hash(hdr.result.sum16, HashAlgorithm.csum16, 16w0, { a, b, hdr.calc.small }, 32w0x10000);
        hash(hdr.result.folded, HashAlgorithm.xor16, 16w0, { a, hdr.calc.small, b }, 32w0x10000);
        hash(hdr.result.crc_in_range, HashAlgorithm.crc32, 32w100, { a, b }, 32w37);
        hash(hdr.result.same, HashAlgorithm.identity, 64w0, { a, hdr.calc.small, b }, 64w0xffffffffffffffff);
    }

    apply {
        if (hdr.calc.isValid()) {
            calculate();
        }
        if (hdr.tags[0].isValid() && hdr.tags[0].kind == 5) {
            hdr.tags.push_front(1);
            hdr.tags[0].setValid();
            hdr.tags[0].label = 0xabc;
        } else if (hdr.tags[0].isValid() && hdr.tags[0].kind == 6) {
            hdr.tags.pop_front(1);
        } else if (hdr.tags[0].isValid() && hdr.tags[0].kind == 7) {
            bit<2> which = (bit<2>)hdr.tags[0].label;
            if (which < 3) {
                hdr.tags[which].label = hdr.tags[which].label + 1;
            }
        }
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (hdr.ipv4.ttl == 0) {
                mark_to_drop(standard);
            }
        }
        trace();
    }
}

control EverythingCompute(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.tos != 0xff,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.length, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.options },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        // Fields of tags that are not there are left out.
        update_checksum(true,
            { hdr.tags[0].label, hdr.tags[0].kind, hdr.tags[0].last, hdr.ethernet.type, hdr.tags[1].label,
              hdr.tags[1].kind, hdr.tags[1].last, 16w0x1234 },
            hdr.trace.sum, HashAlgorithm.crc16);
    }
}

control EverythingDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr);
    }
}

V1Switch(EverythingParser(), EverythingVerify(), EverythingIngress(), EverythingEgress(), EverythingCompute(),
         EverythingDeparser()) main;
