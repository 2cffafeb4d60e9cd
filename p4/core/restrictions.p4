// What the types of entries do not say (the language of p4-constraints). `dataplane/src/tables` has the same strings,
// and the Rust side refuses the same entries.

#ifndef SLUICE_RESTRICTIONS
#define SLUICE_RESTRICTIONS

#define SET_STEERING_RESTRICTION "mode < 2; base_vid <= 4095; tpid >= 0x0600 && tpid != 0x0800 && tpid != 0x86dd && tpid != 0x8847 && tpid != 0x8848 && tpid != 0x8864 && tpid != 0x88b5"

#define UNIT_RESTRICTION "method < 4; bucket_mask == 0 || bucket_mask == 1 || bucket_mask == 3 || bucket_mask == 7 || bucket_mask == 15 || bucket_mask == 31 || bucket_mask == 63 || bucket_mask == 127 || bucket_mask == 255 || bucket_mask == 511 || bucket_mask == 1023 || bucket_mask == 2047 || bucket_mask == 4095 || bucket_mask == 8191 || bucket_mask == 16383 || bucket_mask == 32767 || bucket_mask == 65535"

// Addresses and protocol are zero in frames without an IP header, ports in those without ports: conditions on them
// must say that there is one (contract, step 2).
#define RULES_V4_RESTRICTION "(src_ip::mask != 0 || dst_ip::mask != 0 || ip_proto::mask != 0 || has_ports::mask != 0) -> (ip_version::value == 4 && ip_version::mask == 15); (src_port::low != 0 || src_port::high != 65535 || dst_port::low != 0 || dst_port::high != 65535) -> (has_ports::value == 1 && has_ports::mask == 1)"

#define RULES_V6_RESTRICTION "(src_port::low != 0 || src_port::high != 65535 || dst_port::low != 0 || dst_port::high != 65535) -> (has_ports::value == 1 && has_ports::mask == 1)"

#endif
