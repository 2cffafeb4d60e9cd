// Headers as they stand on the wire, and what is known about a frame while it is on its way.

#ifndef SLUICE_HEADERS
#define SLUICE_HEADERS

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

// Four bytes behind an EtherType: a VLAN tag (tag control information) or a steering header (core and link index
// in native mode, a VID in dot1q mode), then the EtherType of what follows.
header tag_t {
    bit<16> value;
    bit<16> type;
}

header llc_t {
    bit<8> dsap;
    bit<8> ssap;
}

// RFC 3032, 2.1.
header mpls_t {
    bit<20> label;
    bit<3>  traffic_class;
    bit<1>  bottom;
    bit<8>  ttl;
}

// RFC 2516, 4, and the PPP protocol.
header pppoe_t {
    bit<8>  version_type;
    bit<8>  code;
    bit<16> session;
    bit<16> length;
    bit<16> protocol;
}

// RFC 791, 3.1, without options.
header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> length;
    bit<16> id;
    bit<2>  flags;
    bit<1>  more_fragments;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

// Four bytes that are carried along: IPv4 options, optional words of GRE.
header word_t {
    bit<32> data;
}

// RFC 8200, 3; addresses word by word, as the hash takes them.
header ipv6_t {
    bit<4>  version;
    bit<8>  traffic_class;
    bit<20> flow_label;
    bit<16> length;
    bit<8>  next;
    bit<8>  hop_limit;
    bit<32> src0;
    bit<32> src1;
    bit<32> src2;
    bit<32> src3;
    bit<32> dst0;
    bit<32> dst1;
    bit<32> dst2;
    bit<32> dst3;
}

// RFC 8200, 4: an extension header; a fragment header has an offset where others have options. What is longer than
// eight bytes is the target's affair.
header extension_t {
    bit<8>  next;
    bit<8>  length;
    bit<13> offset;
    bit<2>  reserved;
    bit<1>  more_fragments;
    bit<32> id;
    ARCH_EXTENSION_REST
}

// RFC 2784, 2.1 and RFC 2890, 2.
header gre_t {
    bit<1>  has_checksum;
    bit<1>  has_routing;
    bit<1>  has_key;
    bit<1>  has_sequence;
    bit<9>  reserved;
    bit<3>  version;
    bit<16> protocol;
}

header ports_t {
    bit<16> src;
    bit<16> dst;
}

// Contract, "Keep-alive", as far as the transmit time; `dataplane/src/keepalive.rs` has the layout.
header keep_alive_t {
    bit<64> magic_version_direction_pair;
    bit<64> instance;
    bit<64> sequence;
    bit<64> transmit_time;
}

// A steered probe likewise (`dataplane/src/probe.rs`). Time and complement add up to what a checksum does not see.
header probe_t {
    bit<64> magic_version_direction_pair;
    bit<64> instance;
    bit<64> sequence;
    bit<64> transmit_time;
    bit<64> complement;
}

// RFC 768; of steered probes alone.
header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

@controller_header("packet_in")
@id(0x04000001)
header packet_in_t {
    @id(1) bit<16> ingress_port;
    @id(2) bit<64> receive_time;
}

@controller_header("packet_out")
@id(0x04000002)
header packet_out_t {
    @id(1) bit<16> egress_port;
}

struct option_words_t {
    word_t w0;
    word_t w1;
    word_t w2;
    word_t w3;
    word_t w4;
    word_t w5;
    word_t w6;
    word_t w7;
    word_t w8;
    word_t w9;
}

struct extensions_t {
    extension_t e0;
    extension_t e1;
    extension_t e2;
    extension_t e3;
}

struct headers_t {
    ARCH_HEADERS
    packet_in_t    packet_in;
    packet_out_t   packet_out;
    ethernet_t     eth;
    tag_t          steering;     // pushed on the way out
    keep_alive_t   keep_alive;
    tag_t          unknown;      // behind an EtherType that is none of the others: a steering header, perhaps
    tag_t          vlan0;
    tag_t          vlan1;
    tag_t          vlan2;
    llc_t          llc;
    pppoe_t        pppoe;
    mpls_t         mpls0;
    mpls_t         mpls1;
    mpls_t         mpls2;
    mpls_t         mpls3;
    mpls_t         mpls4;
    mpls_t         mpls5;
    ipv4_t         outer_v4;
    option_words_t outer_options;
    ipv6_t         outer_v6;
    extensions_t   outer_ext;
    gre_t          gre;
    word_t         gre_word0;
    word_t         gre_word1;
    word_t         gre_word2;
    ipv4_t         inner_v4;
    option_words_t inner_options;
    ipv6_t         inner_v6;
    extensions_t   inner_ext;
    ports_t        ports;
    udp_t          udp;
    probe_t        probe;
}

// What the parser found out by the way that it took. A header that is cut may be valid without the header that it
// belongs to being whole: these bits say which ones are. They are only ever set, never cleared.
struct parsed_t {
    bit<1> outer_v4;
    bit<1> outer_v6;
    bit<1> inner_v4;
    bit<1> inner_v6;
    bit<1> llc;             // a length stands where the EtherType would
    bit<1> vlan_too_deep;
    bit<1> mpls_too_deep;
    bit<1> mpls_v4;         // the outer IPv4 header stands behind labels: its checksum must be right
    bit<1> fragment;        // of the header that the parse settled on
}

// What egress must know of a frame; on TNA a header of its own carries it there.
ARCH_PASSED passed_t {
    ARCH_KEEP bit<8>  replica;
    ARCH_KEEP bit<8>  reason;
    ARCH_KEEP bit<8>  role;       // of the port that it came in by
    ARCH_PADDING
    ARCH_KEEP bit<1>  side;       // likewise
    ARCH_KEEP bit<16> link;       // that it came from, or returns to; below 256
    ARCH_KEEP bit<16> pair;       // that it goes to, or came from
    ARCH_KEEP bit<8>  edit;
    ARCH_KEEP bit<16> tpid;       // of the steering header to push
    ARCH_KEEP bit<16> tag;        // its second half
}

struct meta_t {
    parsed_t parsed;
    passed_t passed;
    ARCH_METADATA

    // Ports.
    bit<9>   ingress_port;
    bit<9>   peer;          // the other port of the link
    bit<1>   drop;
    bit<1>   drop_share;    // likewise, by the state of the pair
    bit<8>   ended;         // the reason of frames that ingress drops, or hands to the controller
    bit<1>   clone;         // a copy goes to `pair_port`
    bit<9>   pair_port;
    bit<1>   has_pair_port;

    // Tags.
    bit<2>   vlan_depth;
    bit<13>  vlan0;         // present, VID
    bit<13>  vlan1;
    bit<13>  vlan2;
    bit<3>   mpls_depth;
    bit<16>  packet_type;
    bit<9>   llc_dsap;      // present, address
    bit<9>   llc_ssap;

    // Session: the header that the parse settled on.
    bool     wrong_checksum;
    bit<4>   ip_version;
    bit<8>   protocol;
    bit<1>   has_ports;
    bit<8>   no_session;    // the reason, where there is none
    bit<32>  src_v4;
    bit<32>  dst_v4;
    bit<128> src_v6;
    bit<128> dst_v6;
    bit<32>  low0;          // word-wise minimum and maximum of the addresses
    bit<32>  low1;
    bit<32>  low2;
    bit<32>  low3;
    bit<32>  high0;
    bit<32>  high1;
    bit<32>  high2;
    bit<32>  high3;
    bit<16>  low_port;
    bit<16>  high_port;

    // Balance.
    bit<1>   balance;
    bit<1>   copy;
    bit<8>   unit;
    bit<1>   primary;
    bit<8>   method;
    bit<16>  bucket_mask;
    hash_t   hash_layer_3;
    hash_t   hash_layer_4;
    hash_t   hash_src;
    hash_t   hash_dst;
    bit<16>  bucket;
    bit<16>  core;          // times 256: the first half of a native tag
    bit<2>   pair_state;

    // Steering.
    bit<8>   steering_mode;
    bit<16>  steering_tpid;
    bit<16>  steering_base;
    bit<16>  index;         // link index that a returning frame names
    bit<1>   has_header;

    // Leaving.
    bit<16>  length;        // bytes behind the Ethernet header
    bit<16>  mtu;
    bit<16>  excess;
    bit<1>   lost;          // dropped, or too long for the port
    bit<64>  now;           // ns on the clock of keep-alives
}

#endif
