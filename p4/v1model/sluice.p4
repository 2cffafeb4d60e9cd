// Sluice on v1model, for BMv2's simple_switch_grpc.

#define V1MODEL_VERSION 20200408
#include <core.p4>
#include <v1model.p4>

#include "arch.p4"
#include "../core/sizes.p4"
#include "../core/restrictions.p4"
#include "../core/headers.p4"
#include "../core/parser.p4"
#include "../core/classify.p4"
#include "../core/ports.p4"
#include "../core/rules.p4"
#include "../core/hash.p4"
#include "../core/balance.p4"
#include "../core/back.p4"
#include "../core/packet_out.p4"
#include "../core/leave.p4"

parser SluiceParser(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    FrameParser() frame;
    PacketOutParser() of_controller;

    state start {
        transition select(standard.ingress_port) {
            CPU_PORT: from_controller;
            default: from_wire;
        }
    }

    state from_controller {
        pkt.extract(hdr.packet_out);
        of_controller.apply(pkt, hdr);
        transition accept;
    }

    state from_wire {
        frame.apply(pkt, hdr, meta);
        transition accept;
    }
}

#define OPTION_WORDS(options) \
    options.w0.data, options.w1.data, options.w2.data, options.w3.data, options.w4.data, \
    options.w5.data, options.w6.data, options.w7.data, options.w8.data, options.w9.data

// The checksum of an IPv4 header behind labels (RFC 1071): the sum over all of it, its own checksum included, is
// 0xffff. BMv2 leaves words out that are not there.
control SluiceVerifyChecksum(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(
            meta.parsed.mpls_v4 == 1 && meta.parsed.outer_v4 == 1,
            {
                hdr.outer_v4.version, hdr.outer_v4.ihl, hdr.outer_v4.tos, hdr.outer_v4.length, hdr.outer_v4.id,
                hdr.outer_v4.flags, hdr.outer_v4.more_fragments, hdr.outer_v4.offset, hdr.outer_v4.ttl,
                hdr.outer_v4.protocol, hdr.outer_v4.checksum, hdr.outer_v4.src, hdr.outer_v4.dst,
                OPTION_WORDS(hdr.outer_options)
            },
            meta.zero, HashAlgorithm.csum16);
    }
}

control SluiceIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Ports() ports;
    Classify() classify;
    SessionHash() session_hash;
    Rules() rules;
    Balance() balance;
    Back() back;
    PacketOut() from_controller;

    apply {
        meta.ingress_port = standard.ingress_port;
        meta.now = (bit<64>)standard.ingress_global_timestamp * NANOSECONDS;
        if (hdr.packet_out.isValid()) {
            from_controller.apply(hdr, meta, standard.egress_spec);
        } else {
            ports.apply(meta, standard.egress_spec);
            meta.wrong_checksum = standard.checksum_error == 1;
            classify.apply(hdr, meta);
            if (meta.passed.role == ROLE_LINK) {
                session_hash.apply(meta);
                rules.apply(hdr, meta);
                balance.apply(meta, standard.egress_spec);
            } else if (meta.passed.role != ROLE_NONE) {
                back.apply(hdr, meta, standard.egress_spec);
            }
        }
        if (meta.drop_share == 1) {
            meta.drop = 1;
        }
        if (meta.drop == 1) {
            meta.passed.reason = meta.ended;
            standard.egress_spec = SINK_PORT;
        }
        if (meta.clone == 1) {
            clone_preserving_field_list(CloneType.I2E, (bit<32>)meta.pair_port + 1, 1);
        }
    }
}

control SluiceEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Leave() leave;

    apply {
        if (standard.instance_type == INGRESS_CLONE) {
            meta.passed.replica = REPLICA_COPY;
            meta.passed.edit = EDIT_PUSH;
        }
        meta.now = (bit<64>)standard.egress_global_timestamp * NANOSECONDS;
        meta.length = (bit<16>)standard.packet_length |-| ETHERNET_BYTES;
        leave.apply(hdr, meta, standard.egress_port);
        if (meta.lost == 1) {
            mark_to_drop(standard);
        }
    }
}

control SluiceComputeChecksum(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control SluiceDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr);
    }
}

@pkginfo(name="sluice", version="0.1.0")
@brief("Balances links over inline appliances.")
V1Switch(
    SluiceParser(),
    SluiceVerifyChecksum(),
    SluiceIngress(),
    SluiceEgress(),
    SluiceComputeChecksum(),
    SluiceDeparser()) main;
