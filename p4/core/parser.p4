// Parse (contract, "Parse"), once for both architectures: it begins at the Ethernet header.
//
// Whatever is extracted is sent out again as it came; what is not is payload. A frame that ends within a header
// stops here: the headers before are valid, and `meta.parsed` says which IP headers are whole.

#ifndef SLUICE_PARSER
#define SLUICE_PARSER

// Cases that several states share.
#define VLAN_CASES(state) \
    TYPE_VLAN: state; \
    TYPE_VLAN_SERVICE: state; \
    TYPE_QINQ: state;

#define TYPE_CASES \
    TYPE_IPV4: outer_v4; \
    TYPE_IPV6: outer_v6; \
    TYPE_MPLS: mpls0; \
    TYPE_MPLS_MULTICAST: mpls0; \
    TYPE_PPPOE_SESSION: pppoe; \
    0x0000 &&& 0xfc00: llc; \
    0x0400 &&& 0xfe00: llc;

// What an IP header carries, unless it is a fragment: a tunnel, or four bytes that are layer-4 ports if the protocol has
// any. They are taken whatever the protocol is: that is looked at later (`core/classify.p4`), which saves a third of the
// parser's rows on Tofino.
#define OUTER_TUNNEL_CASES \
    PROTO_IPV4: inner_v4; \
    PROTO_IPV6: inner_v6; \
    PROTO_GRE: gre;

// Of (offset, more fragments, protocol).
#define OUTER_WHOLE_TUNNEL_CASES \
    (0, 0, PROTO_IPV4): inner_v4; \
    (0, 0, PROTO_IPV6): inner_v6; \
    (0, 0, PROTO_GRE): gre;

// One level is all.
#define INNER_TUNNEL_CASES
#define INNER_WHOLE_TUNNEL_CASES

#define EXTENSION_CASES(extension, fragment) \
    PROTO_HOP_BY_HOP: extension; \
    PROTO_ROUTING: extension; \
    PROTO_OPTIONS: extension; \
    PROTO_FRAGMENT: fragment;

#define WHOLE_EXTENSION_CASES(extension, fragment) \
    (0, 0, PROTO_HOP_BY_HOP): extension; \
    (0, 0, PROTO_ROUTING): extension; \
    (0, 0, PROTO_OPTIONS): extension; \
    (0, 0, PROTO_FRAGMENT): fragment;

// After the fourth extension header: its number stands as the protocol.
#define NO_EXTENSION_CASES(extension, fragment)

// IPv4 options as far as the target takes them, of (version, IHL).
#define OPTION_CASES(where) \
    (4, 6): where##_options1; \
    (4, 7): where##_options2; \
    (4, 8): where##_options3; \
    (4, 9): where##_options4; \
    (4, 10): where##_options5; \
    (4, 11): where##_options6; \
    (4, 12): where##_options7; \
    (4, 13): where##_options8; \
    (4, 14): where##_options9; \
    (4, 15): where##_options10;

// IPv4 options, a word at a time: state `name` extracts `word` and goes on to `next`.
#define OPTION_STATE(name, word, next) \
    state name { \
        pkt.extract(word); \
        transition next; \
    }

// The same where the target adds up the checksum on the way.
#define ADDED_OPTION_STATE(name, word, next) \
    state name { \
        pkt.extract(word); \
        ARCH_CHECKSUM_ADD(word); \
        transition next; \
    }

#define OPTION_STATES(where, option_state) \
    option_state(where##_options10, hdr.where##_options.w0, where##_options9) \
    option_state(where##_options9, hdr.where##_options.w1, where##_options8) \
    option_state(where##_options8, hdr.where##_options.w2, where##_options7) \
    option_state(where##_options7, hdr.where##_options.w3, where##_options6) \
    option_state(where##_options6, hdr.where##_options.w4, where##_options5) \
    option_state(where##_options5, hdr.where##_options.w5, where##_options4) \
    option_state(where##_options4, hdr.where##_options.w6, where##_options3) \
    option_state(where##_options3, hdr.where##_options.w7, where##_options2) \
    option_state(where##_options2, hdr.where##_options.w8, where##_options1) \
    option_state(where##_options1, hdr.where##_options.w9, where##_v4_whole)

// An IPv4 header that is whole with its options.
#define IPV4_STATES(where, option_cases, whole_tunnels, add, verify) \
    state where##_v4 { \
        pkt.extract(hdr.where##_v4); \
        add \
        transition select(hdr.where##_v4.version, hdr.where##_v4.ihl) { \
            (4, 5): where##_v4_whole; \
            option_cases \
            default: accept; \
        } \
    } \
    state where##_v4_whole { \
        meta.parsed.where##_v4 = 1; \
        verify \
        transition select(hdr.where##_v4.offset, hdr.where##_v4.more_fragments, hdr.where##_v4.protocol) { \
            whole_tunnels \
            (0, 0, _): ports; \
            (0, 1, _): first_fragment; \
            default: later_fragment; \
        } \
    }

// The walk over extension headers (RFC 8200, 4), step `n`: one with options, or a fragment header. An atomic
// fragment (RFC 6946) is none.
#define EXTENSION_STATES(where, n, extension_cases, whole_extension_cases, after, tunnels, whole_tunnels) \
    state where##_extension##n { \
        ARCH_WALK_EXTENSION(where##_extension##n##_whole) \
    } \
    state where##_extension##n##_whole { \
        ARCH_EXTRACT_EXTENSION(hdr.where##_ext.e##n); \
        transition select(hdr.where##_ext.e##n.next) { \
            extension_cases(where##_extension##after, where##_fragment##after) \
            tunnels \
            default: ports; \
        } \
    } \
    state where##_fragment##n { \
        ARCH_EXTRACT_FRAGMENT(hdr.where##_ext.e##n); \
        transition select(hdr.where##_ext.e##n.offset, hdr.where##_ext.e##n.more_fragments, \
                          hdr.where##_ext.e##n.next) { \
            whole_extension_cases(where##_extension##after, where##_fragment##after) \
            whole_tunnels \
            (0, 0, _): ports; \
            (0, 1, _): first_fragment; \
            default: later_fragment; \
        } \
    }

#define WALK_STATES(where, tunnels, whole_tunnels) \
    EXTENSION_STATES(where, 0, EXTENSION_CASES, WHOLE_EXTENSION_CASES, 1, tunnels, whole_tunnels) \
    EXTENSION_STATES(where, 1, EXTENSION_CASES, WHOLE_EXTENSION_CASES, 2, tunnels, whole_tunnels) \
    EXTENSION_STATES(where, 2, EXTENSION_CASES, WHOLE_EXTENSION_CASES, 3, tunnels, whole_tunnels) \
    EXTENSION_STATES(where, 3, NO_EXTENSION_CASES, NO_EXTENSION_CASES, , tunnels, whole_tunnels)

#define IPV6_STATES(where, extension_cases, tunnels) \
    state where##_v6 { \
        transition select(pkt.lookahead<bit<4>>()) { \
            6: where##_v6_whole; \
            default: accept; \
        } \
    } \
    state where##_v6_whole { \
        pkt.extract(hdr.where##_v6); \
        meta.parsed.where##_v6 = 1; \
        transition select(hdr.where##_v6.next) { \
            extension_cases(where##_extension0, where##_fragment0) \
            tunnels \
            default: ports; \
        } \
    }

parser FrameParser(packet_in pkt, inout headers_t hdr, inout meta_t meta) {
    ARCH_CHECKSUM

    state start {
        pkt.extract(hdr.eth);
        transition select(hdr.eth.type) {
            VLAN_CASES(vlan0)
            TYPE_CASES
            TYPE_KEEP_ALIVE: keep_alive;
            default: unknown;
        }
    }

    state keep_alive {
        pkt.extract(hdr.keep_alive);
        transition accept;
    }

    // The TPID of steering headers is the configuration's: any unknown EtherType may be one.
    state unknown {
        pkt.extract(hdr.unknown);
        transition accept;
    }

    state vlan0 {
        pkt.extract(hdr.vlan0);
        transition select(hdr.vlan0.type) {
            VLAN_CASES(vlan1)
            TYPE_CASES
            default: accept;
        }
    }

    state vlan1 {
        pkt.extract(hdr.vlan1);
        transition select(hdr.vlan1.type) {
            VLAN_CASES(vlan2)
            TYPE_CASES
            default: accept;
        }
    }

    state vlan2 {
        pkt.extract(hdr.vlan2);
        transition select(hdr.vlan2.type) {
            VLAN_CASES(vlan_too_deep)
            TYPE_CASES
            default: accept;
        }
    }

    state vlan_too_deep {
        meta.parsed.vlan_too_deep = 1;
        transition accept;
    }

    state llc {
        meta.parsed.llc = 1;
        pkt.extract(hdr.llc);
        transition accept;
    }

#define LABEL_STATE(label, deeper) \
    state label { \
        pkt.extract(hdr.label); \
        transition select(hdr.label.bottom) { \
            0: deeper; \
            default: below_labels; \
        } \
    }

    LABEL_STATE(mpls0, mpls1)
    LABEL_STATE(mpls1, mpls2)
    LABEL_STATE(mpls2, mpls3)
    LABEL_STATE(mpls3, mpls4)
    LABEL_STATE(mpls4, mpls5)
    LABEL_STATE(mpls5, mpls_too_deep)

    state mpls_too_deep {
        meta.parsed.mpls_too_deep = 1;
        transition accept;
    }

    state below_labels {
        transition select(pkt.lookahead<bit<4>>()) {
            4: mpls_v4;
            6: outer_v6;
            default: accept;
        }
    }

    state mpls_v4 {
        meta.parsed.mpls_v4 = 1;
        transition outer_v4;
    }

    state pppoe {
        pkt.extract(hdr.pppoe);
        transition select(hdr.pppoe.version_type, hdr.pppoe.code, hdr.pppoe.protocol) {
            (0x11, 0, PPP_IPV4): outer_v4;
            (0x11, 0, PPP_IPV6): outer_v6;
            default: accept;
        }
    }

    IPV4_STATES(outer, OPTION_CASES(outer), OUTER_WHOLE_TUNNEL_CASES,
                ARCH_CHECKSUM_ADD(hdr.outer_v4);, ARCH_CHECKSUM_VERIFY)
    OPTION_STATES(outer, ADDED_OPTION_STATE)
    IPV6_STATES(outer, EXTENSION_CASES, OUTER_TUNNEL_CASES)
    WALK_STATES(outer, OUTER_TUNNEL_CASES, OUTER_WHOLE_TUNNEL_CASES)

    state gre {
        pkt.extract(hdr.gre);
        transition select(hdr.gre.has_routing, hdr.gre.version,
                          hdr.gre.has_checksum, hdr.gre.has_key, hdr.gre.has_sequence) {
            (0, 0, 0, 0, 0): gre_payload;
            (0, 0, 1, 0, 0): gre_word2;
            (0, 0, 0, 1, 0): gre_word2;
            (0, 0, 0, 0, 1): gre_word2;
            (0, 0, 1, 1, 0): gre_word1;
            (0, 0, 1, 0, 1): gre_word1;
            (0, 0, 0, 1, 1): gre_word1;
            (0, 0, 1, 1, 1): gre_word0;
            default: accept;
        }
    }

    OPTION_STATE(gre_word0, hdr.gre_word0, gre_word1)
    OPTION_STATE(gre_word1, hdr.gre_word1, gre_word2)
    OPTION_STATE(gre_word2, hdr.gre_word2, gre_payload)

    state gre_payload {
        transition select(hdr.gre.protocol) {
            TYPE_IPV4: inner_v4;
            TYPE_IPV6: inner_v6;
            default: accept;
        }
    }

    IPV4_STATES(inner, ARCH_INNER_OPTION_CASES, INNER_WHOLE_TUNNEL_CASES, , )
    ARCH_INNER_OPTION_STATES
    IPV6_STATES(inner, ARCH_INNER_EXTENSION_CASES, INNER_TUNNEL_CASES)
    ARCH_INNER_WALK_STATES

    state first_fragment {
        meta.parsed.fragment = 1;
        transition ports;
    }

    state later_fragment {
        meta.parsed.fragment = 1;
        transition accept;
    }

    state ports {
        pkt.extract(hdr.ports);
        transition accept;
    }
}

#endif
