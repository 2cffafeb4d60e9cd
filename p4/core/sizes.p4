// Sizes, ids and numbers of the data plane, once. `dataplane/src/schema.rs` and `dataplane/src/tables` hold the
// same ids for the Rust side; `cargo test -p testbed --test p4info` compares them. Ids are never reused.
//
// Sizes are what surely fits. On Tofino 1 they are spent like this, of 12 stages with 80 SRAM blocks (1,024 x 128
// bits) and 24 TCAM blocks (512 x 44 bits) each, as p4c 9.13.4 places them; docs/p4.md has the stages.
//
//   table        entries   memory on Tofino 1                                      stages
//   ports            512   4 SRAM                                                  0
//   rules_v4       2,048   64 TCAM: 8 blocks wide, 4,096 rows, since a range of    2, 3, 5, 6
//                          ports takes up to seven rows; room for 341 of the worst
//   rules_v6         512   24 TCAM: 12 blocks wide, 1,024 rows; 85 of the worst    4
//   units            256   1 SRAM                                                  7
//   buckets      131,072   47 SRAM: 30 of matches, 17 of action data               9
//   pair_state       512   4 SRAM                                                  10
//   pair_ports     1,024   4 SRAM                                                  10
//   links            512   4 SRAM                                                  5
//   port_mtu         512   4 SRAM                                                  egress 1
//   constant tables        8 TCAM, some SRAM                                       0, 8, 11
//   all, counters included: 153 of 960 SRAM, 94 of 288 TCAM, 65 % of PHV (4,096 bits)
//
// BMv2 has room for whatever the controller's memory has; its sizes are those of the software pipeline.

#ifndef SLUICE_SIZES
#define SLUICE_SIZES

#ifdef TARGET_TOFINO1
const int RULES_V4_SIZE = 2048;
const int RULES_V6_SIZE = 512;
const int BUCKETS_SIZE = 131072;
#define RULES_V4_RANGES 341
#define RULES_V6_RANGES 85
#else
const int RULES_V4_SIZE = 131072;
const int RULES_V6_SIZE = 131072;
const int BUCKETS_SIZE = 1048576;
#endif
const int PORTS_SIZE = 512;
const int UNITS_SIZE = 256;
const int PAIRS_SIZE = 512;
const int PAIR_PORTS_SIZE = 1024;
const int LINKS_SIZE = 512;

// Cells of counter arrays.
const bit<32> VERDICT_CELLS = 32;
const bit<32> LINK_VERDICT_CELLS = 8192;
const bit<32> PAIR_VERDICT_CELLS = 16384;
const bit<32> PAIR_CELLS = 1024;
const bit<32> LINK_CELLS = 512;
const bit<32> PORT_CELLS = 512;

// EtherTypes and PPP protocols.
const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_VLAN = 0x8100;
const bit<16> TYPE_QINQ = 0x9100;
const bit<16> TYPE_VLAN_SERVICE = 0x88a8;
const bit<16> TYPE_IPV6 = 0x86dd;
const bit<16> TYPE_MPLS = 0x8847;
const bit<16> TYPE_MPLS_MULTICAST = 0x8848;
const bit<16> TYPE_PPPOE_SESSION = 0x8864;
const bit<16> TYPE_KEEP_ALIVE = 0x88b5;
const bit<16> TYPE_STEERING = 0x88b6;
const bit<16> PPP_IPV4 = 0x0021;
const bit<16> PPP_IPV6 = 0x0057;

// How keep-alives begin behind the EtherType: "SLKA".
const bit<32> KEEP_ALIVE_MAGIC = 0x534c4b41;

// IP protocol numbers that the parse knows.
const bit<8> PROTO_HOP_BY_HOP = 0;
const bit<8> PROTO_IPV4 = 4;
const bit<8> PROTO_TCP = 6;
const bit<8> PROTO_UDP = 17;
const bit<8> PROTO_DCCP = 33;
const bit<8> PROTO_IPV6 = 41;
const bit<8> PROTO_ROUTING = 43;
const bit<8> PROTO_FRAGMENT = 44;
const bit<8> PROTO_GRE = 47;
const bit<8> PROTO_OPTIONS = 60;
const bit<8> PROTO_SCTP = 132;
const bit<8> PROTO_UDP_LITE = 136;

// The one counter that a frame ends in (`dataplane::Reason`).
const bit<8> REASON_FORWARDED = 0;
const bit<8> REASON_RETURNED = 1;
const bit<8> REASON_KEEP_ALIVE = 2;
const bit<8> REASON_FLOW_BYPASS = 3;
const bit<8> REASON_NO_FLOW = 4;
const bit<8> REASON_NOT_IP = 5;
const bit<8> REASON_VLAN_TOO_DEEP = 6;
const bit<8> REASON_MPLS_TOO_DEEP = 7;
const bit<8> REASON_UNIT_BYPASS = 8;
const bit<8> REASON_PAIR_DOWN_BYPASS = 9;
const bit<8> REASON_COPY = 10;
const bit<8> REASON_NO_BUCKET = 11;
const bit<8> REASON_CORE_DOWN_BYPASS = 12;
@noWarn("unused") const bit<8> REASON_SHED = 13;   // of an entry
const bit<8> REASON_FLOW_DROP = 16;
const bit<8> REASON_MTU_EXCEEDED = 17;
const bit<8> REASON_PAIR_DOWN_DROP = 18;
const bit<8> REASON_NO_STEERING_HEADER = 19;
const bit<8> REASON_UNKNOWN_LINK = 20;
const bit<8> REASON_COPY_RETURN = 21;
const bit<8> REASON_UNKNOWN_PORT = 22;
const bit<8> REASON_CORE_DOWN_DROP = 24;

// Parameters of table entries.
const bit<8> STEERING_NATIVE = 0;
const bit<8> STEERING_DOT1Q = 1;
@noWarn("unused") const bit<8> METHOD_LAYER_3 = 0;
const bit<8> METHOD_LAYER_4 = 1;
const bit<8> METHOD_DST_IP = 2;
const bit<8> METHOD_SRC_IP = 3;
const bit<1> SIDE_LAN = 0;
const bit<1> SIDE_WAN = 1;

// What a port is for.
const bit<8> ROLE_NONE = 0;
const bit<8> ROLE_LINK = 1;
const bit<8> ROLE_PAIR = 2;
const bit<8> ROLE_COPY_PAIR = 3;

// What a pair does with its share.
const bit<2> PAIR_UP = 0;
const bit<2> PAIR_BYPASS = 1;
const bit<2> PAIR_DROP = 2;
const bit<2> CORE_DROP = 3;     // not of the pair, of the bucket's core

// Replicas of a frame that egress tells apart.
const bit<8> REPLICA_FRAME = 0;
const bit<8> REPLICA_COPY = 1;
const bit<8> REPLICA_PACKET_OUT = 2;
const bit<8> REPLICA_PROBE = 3;

// What is done to the steering header on the way out.
@noWarn("unused") const bit<8> EDIT_NONE = 0;
const bit<8> EDIT_PUSH = 1;

const bit<16> ETHERNET_BYTES = 14;
const bit<16> STEERING_BYTES = 4;
const bit<16> NO_MTU = 0xffff;

#endif
