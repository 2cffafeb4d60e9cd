// From the headers that were found to what rules and hash look at: the tags, and the session of the header that the
// parse settled on. Everything is chosen by which headers are there, so that each table is one small lookup.

#ifndef SLUICE_CLASSIFY
#define SLUICE_CLASSIFY

const bit<1> PRESENT = 1;

control Classify(inout headers_t hdr, inout meta_t meta) {
    // VLAN tags and the EtherType behind them; a frame with a length instead (LLC) has none.
    @hidden action untagged() {
        meta.packet_type = hdr.eth.type;
    }
    @hidden action untagged_llc() { }
    @hidden action one_tag() {
        meta.vlan_depth = 1;
        meta.vlan0 = PRESENT ++ hdr.vlan0.value[11:0];
        meta.packet_type = hdr.vlan0.type;
    }
    @hidden action one_tag_llc() {
        meta.vlan_depth = 1;
        meta.vlan0 = PRESENT ++ hdr.vlan0.value[11:0];
    }
    @hidden action two_tags() {
        meta.vlan_depth = 2;
        meta.vlan0 = PRESENT ++ hdr.vlan0.value[11:0];
        meta.vlan1 = PRESENT ++ hdr.vlan1.value[11:0];
        meta.packet_type = hdr.vlan1.type;
    }
    @hidden action two_tags_llc() {
        meta.vlan_depth = 2;
        meta.vlan0 = PRESENT ++ hdr.vlan0.value[11:0];
        meta.vlan1 = PRESENT ++ hdr.vlan1.value[11:0];
    }
    @hidden action three_tags() {
        meta.vlan_depth = 3;
        meta.vlan0 = PRESENT ++ hdr.vlan0.value[11:0];
        meta.vlan1 = PRESENT ++ hdr.vlan1.value[11:0];
        meta.vlan2 = PRESENT ++ hdr.vlan2.value[11:0];
        meta.packet_type = hdr.vlan2.type;
    }
    @hidden action three_tags_llc() {
        meta.vlan_depth = 3;
        meta.vlan0 = PRESENT ++ hdr.vlan0.value[11:0];
        meta.vlan1 = PRESENT ++ hdr.vlan1.value[11:0];
        meta.vlan2 = PRESENT ++ hdr.vlan2.value[11:0];
    }

    @hidden
    table tags {
        key = {
            hdr.eth.isValid(): exact;
            hdr.vlan0.isValid(): exact;
            hdr.vlan1.isValid(): exact;
            hdr.vlan2.isValid(): exact;
            meta.parsed.llc: exact;
        }
        actions = {
            untagged; untagged_llc; one_tag; one_tag_llc; two_tags; two_tags_llc; three_tags; three_tags_llc;
        }
        const default_action = untagged_llc();
        const entries = {
            (true, false, false, false, 0): untagged();
            (true, true, false, false, 0): one_tag();
            (true, true, false, false, 1): one_tag_llc();
            (true, true, true, false, 0): two_tags();
            (true, true, true, false, 1): two_tags_llc();
            (true, true, true, true, 0): three_tags();
            (true, true, true, true, 1): three_tags_llc();
        }
    }

    @hidden action set_llc() {
        meta.llc_dsap = PRESENT ++ hdr.llc.dsap;
        meta.llc_ssap = PRESENT ++ hdr.llc.ssap;
    }

    @hidden action set_labels(bit<3> depth) {
        meta.mpls_depth = depth;
    }

    @hidden
    table labels {
        key = {
            hdr.mpls0.isValid(): exact;
            hdr.mpls1.isValid(): exact;
            hdr.mpls2.isValid(): exact;
            hdr.mpls3.isValid(): exact;
            hdr.mpls4.isValid(): exact;
            hdr.mpls5.isValid(): exact;
        }
        actions = { set_labels; }
        const default_action = set_labels(0);
        const entries = {
            (true, false, false, false, false, false): set_labels(1);
            (true, true, false, false, false, false): set_labels(2);
            (true, true, true, false, false, false): set_labels(3);
            (true, true, true, true, false, false): set_labels(4);
            (true, true, true, true, true, false): set_labels(5);
            (true, true, true, true, true, true): set_labels(6);
        }
    }

    // Addresses for rules, and word-wise minimum and maximum for the hash: the inner header if it is whole, else the
    // outer one. An IPv4 header behind labels with a wrong checksum is an Ethernet pseudowire's payload.
    @hidden action none() { }

#define SESSION_V4(where) \
    @hidden action where##_v4_session() { \
        meta.ip_version = 4; \
        meta.src_v4 = hdr.where##_v4.src; \
        meta.dst_v4 = hdr.where##_v4.dst; \
        ARCH_MIN(meta.low0, hdr.where##_v4.src, hdr.where##_v4.dst); \
        ARCH_MAX(meta.high0, hdr.where##_v4.src, hdr.where##_v4.dst); \
    }
#define SESSION_V6(where) \
    @hidden action where##_v6_session() { \
        meta.ip_version = 6; \
        meta.src_v6 = hdr.where##_v6.src0 ++ hdr.where##_v6.src1 ++ hdr.where##_v6.src2 ++ hdr.where##_v6.src3; \
        meta.dst_v6 = hdr.where##_v6.dst0 ++ hdr.where##_v6.dst1 ++ hdr.where##_v6.dst2 ++ hdr.where##_v6.dst3; \
        ARCH_MIN(meta.low0, hdr.where##_v6.src0, hdr.where##_v6.dst0); \
        ARCH_MIN(meta.low1, hdr.where##_v6.src1, hdr.where##_v6.dst1); \
        ARCH_MIN(meta.low2, hdr.where##_v6.src2, hdr.where##_v6.dst2); \
        ARCH_MIN(meta.low3, hdr.where##_v6.src3, hdr.where##_v6.dst3); \
        ARCH_MAX(meta.high0, hdr.where##_v6.src0, hdr.where##_v6.dst0); \
        ARCH_MAX(meta.high1, hdr.where##_v6.src1, hdr.where##_v6.dst1); \
        ARCH_MAX(meta.high2, hdr.where##_v6.src2, hdr.where##_v6.dst2); \
        ARCH_MAX(meta.high3, hdr.where##_v6.src3, hdr.where##_v6.dst3); \
    }

    SESSION_V4(outer)
    SESSION_V6(outer)
    SESSION_V4(inner)
    SESSION_V6(inner)

    @hidden
    table session {
        key = {
            meta.parsed.outer_v4: exact;
            meta.parsed.outer_v6: exact;
            meta.parsed.inner_v4: exact;
            meta.parsed.inner_v6: exact;
            meta.parsed.mpls_v4: ternary;
            meta.wrong_checksum: ternary;
        }
        actions = { none; outer_v4_session; outer_v6_session; inner_v4_session; inner_v6_session; }
        const default_action = none();
        const entries = {
            (1, 0, 0, 0, 1, true): none();
            (1, 0, 1, 0, 1, true): none();
            (1, 0, 0, 1, 1, true): none();
            (1, 0, 0, 0, _, _): outer_v4_session();
            (0, 1, 0, 0, _, _): outer_v6_session();
            (1, 0, 1, 0, _, _): inner_v4_session();
            (0, 1, 1, 0, _, _): inner_v4_session();
            (1, 0, 0, 1, _, _): inner_v6_session();
            (0, 1, 0, 1, _, _): inner_v6_session();
        }
    }

    // The protocol: of the last extension header that was walked, else of the IP header itself; and whether it has ports.
#define PROTOCOL(name, field) \
    @hidden action name(bit<1> has_ports) { \
        meta.protocol = field; \
        meta.has_ports = has_ports; \
    }

    PROTOCOL(inner_v4_protocol, hdr.inner_v4.protocol)
    PROTOCOL(inner_e3_protocol, hdr.inner_ext.e3.next)
    PROTOCOL(inner_e2_protocol, hdr.inner_ext.e2.next)
    PROTOCOL(inner_e1_protocol, hdr.inner_ext.e1.next)
    PROTOCOL(inner_e0_protocol, hdr.inner_ext.e0.next)
    PROTOCOL(inner_next_protocol, hdr.inner_v6.next)
    PROTOCOL(outer_v4_protocol, hdr.outer_v4.protocol)
    PROTOCOL(outer_e3_protocol, hdr.outer_ext.e3.next)
    PROTOCOL(outer_e2_protocol, hdr.outer_ext.e2.next)
    PROTOCOL(outer_e1_protocol, hdr.outer_ext.e1.next)
    PROTOCOL(outer_e0_protocol, hdr.outer_ext.e0.next)
    PROTOCOL(outer_next_protocol, hdr.outer_v6.next)

    // The protocols that have ports, and any other. `header` says which header is the one, `before` and `after` that the
    // others do not matter.
#define PROTOCOL_ENTRIES(header, before, after, action) \
    (header, true, before PROTO_TCP after): action(1); \
    (header, true, before PROTO_UDP after): action(1); \
    (header, true, before PROTO_DCCP after): action(1); \
    (header, true, before PROTO_SCTP after): action(1); \
    (header, true, before PROTO_UDP_LITE after): action(1); \
    (header, _, before _ after): action(0);
#define INNER_V4 1, 0, _, _, _, _, _, _, _, _, _, _
#define INNER_E3 0, 1, true, _, _, _, _, _, _, _, _, _
#define INNER_E2 0, 1, false, true, _, _, _, _, _, _, _, _
#define INNER_E1 0, 1, false, false, true, _, _, _, _, _, _, _
#define INNER_E0 0, 1, false, false, false, true, _, _, _, _, _, _
#define INNER_V6 0, 1, false, false, false, false, _, _, _, _, _, _
#define OUTER_V4 0, 0, _, _, _, _, 1, 0, _, _, _, _
#define OUTER_E3 0, 0, _, _, _, _, 0, 1, true, _, _, _
#define OUTER_E2 0, 0, _, _, _, _, 0, 1, false, true, _, _
#define OUTER_E1 0, 0, _, _, _, _, 0, 1, false, false, true, _
#define OUTER_E0 0, 0, _, _, _, _, 0, 1, false, false, false, true
#define OUTER_V6 0, 0, _, _, _, _, 0, 1, false, false, false, false
#define BEFORE1 _,
#define BEFORE2 _, _,
#define BEFORE3 _, _, _,
#define BEFORE4 _, _, _, _,
#define BEFORE5 _, _, _, _, _,
#define BEFORE6 _, _, _, _, _, _,
#define BEFORE7 _, _, _, _, _, _, _,
#define BEFORE8 _, _, _, _, _, _, _, _,
#define BEFORE9 _, _, _, _, _, _, _, _, _,
#define BEFORE10 _, _, _, _, _, _, _, _, _, _,
#define BEFORE11 _, _, _, _, _, _, _, _, _, _, _,
#define AFTER1 , _
#define AFTER2 , _, _
#define AFTER3 , _, _, _
#define AFTER4 , _, _, _, _
#define AFTER5 , _, _, _, _, _
#define AFTER6 , _, _, _, _, _, _
#define AFTER7 , _, _, _, _, _, _, _
#define AFTER8 , _, _, _, _, _, _, _, _
#define AFTER9 , _, _, _, _, _, _, _, _, _
#define AFTER10 , _, _, _, _, _, _, _, _, _, _
#define AFTER11 , _, _, _, _, _, _, _, _, _, _, _

    @hidden
    table protocol {
        key = {
            meta.parsed.inner_v4: ternary;
            meta.parsed.inner_v6: ternary;
            hdr.inner_ext.e3.isValid(): ternary;
            hdr.inner_ext.e2.isValid(): ternary;
            hdr.inner_ext.e1.isValid(): ternary;
            hdr.inner_ext.e0.isValid(): ternary;
            meta.parsed.outer_v4: ternary;
            meta.parsed.outer_v6: ternary;
            hdr.outer_ext.e3.isValid(): ternary;
            hdr.outer_ext.e2.isValid(): ternary;
            hdr.outer_ext.e1.isValid(): ternary;
            hdr.outer_ext.e0.isValid(): ternary;
            hdr.ports.isValid(): ternary;
            hdr.inner_v4.protocol: ternary;
            hdr.inner_ext.e3.next: ternary;
            hdr.inner_ext.e2.next: ternary;
            hdr.inner_ext.e1.next: ternary;
            hdr.inner_ext.e0.next: ternary;
            hdr.inner_v6.next: ternary;
            hdr.outer_v4.protocol: ternary;
            hdr.outer_ext.e3.next: ternary;
            hdr.outer_ext.e2.next: ternary;
            hdr.outer_ext.e1.next: ternary;
            hdr.outer_ext.e0.next: ternary;
            hdr.outer_v6.next: ternary;
        }
        actions = {
            none;
            inner_v4_protocol;
            inner_e3_protocol;
            inner_e2_protocol;
            inner_e1_protocol;
            inner_e0_protocol;
            inner_next_protocol;
            outer_v4_protocol;
            outer_e3_protocol;
            outer_e2_protocol;
            outer_e1_protocol;
            outer_e0_protocol;
            outer_next_protocol;
        }
        const default_action = none();
        const entries = {
            PROTOCOL_ENTRIES(INNER_V4, , AFTER11, inner_v4_protocol)
            PROTOCOL_ENTRIES(INNER_E3, BEFORE1, AFTER10, inner_e3_protocol)
            PROTOCOL_ENTRIES(INNER_E2, BEFORE2, AFTER9, inner_e2_protocol)
            PROTOCOL_ENTRIES(INNER_E1, BEFORE3, AFTER8, inner_e1_protocol)
            PROTOCOL_ENTRIES(INNER_E0, BEFORE4, AFTER7, inner_e0_protocol)
            PROTOCOL_ENTRIES(INNER_V6, BEFORE5, AFTER6, inner_next_protocol)
            PROTOCOL_ENTRIES(OUTER_V4, BEFORE6, AFTER5, outer_v4_protocol)
            PROTOCOL_ENTRIES(OUTER_E3, BEFORE7, AFTER4, outer_e3_protocol)
            PROTOCOL_ENTRIES(OUTER_E2, BEFORE8, AFTER3, outer_e2_protocol)
            PROTOCOL_ENTRIES(OUTER_E1, BEFORE9, AFTER2, outer_e1_protocol)
            PROTOCOL_ENTRIES(OUTER_E0, BEFORE10, AFTER1, outer_e0_protocol)
            PROTOCOL_ENTRIES(OUTER_V6, BEFORE11, , outer_next_protocol)
        }
    }

    @hidden action set_ports() {
        ARCH_MIN(meta.low_port, hdr.ports.src, hdr.ports.dst);
        ARCH_MAX(meta.high_port, hdr.ports.src, hdr.ports.dst);
    }

    // Why there is no session, where there is none.
    @hidden action why(bit<8> reason) {
        meta.no_session = reason;
    }

    @hidden
    table without_session {
        key = {
            meta.parsed.vlan_too_deep: exact;
            meta.parsed.mpls_too_deep: exact;
        }
        actions = { why; }
        const default_action = why(REASON_NOT_IP);
        const entries = {
            (1, 0): why(REASON_VLAN_TOO_DEEP);
            (0, 1): why(REASON_MPLS_TOO_DEEP);
        }
    }

    apply {
        without_session.apply();
        tags.apply();
        labels.apply();
        session.apply();
        protocol.apply();
        if (hdr.llc.isValid()) {
            set_llc();
        }
        if (hdr.ports.isValid()) {
            set_ports();
        }
    }
}

#endif
