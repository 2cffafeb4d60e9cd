// v1model (BMv2): what differs from TNA.

#ifndef SLUICE_ARCH
#define SLUICE_ARCH

const bit<9> CPU_PORT = 510;

// A frame to be dropped leaves ingress by this port, so that egress alone counts; nothing is ever sent by it.
const bit<9> SINK_PORT = 509;

// BMv2's `instance_type` of a clone that was made in ingress.
const bit<32> INGRESS_CLONE = 1;

// BMv2's clock counts microseconds.
const bit<64> NANOSECONDS = 1000;

#define ARCH_HEADERS
#define ARCH_METADATA bit<16> zero;

// Egress has all metadata of a frame; those of `passed_t` are kept for copies.
#define ARCH_PASSED struct
#define ARCH_PADDING
#define ARCH_KEEP @field_list(1)

// The checksum is verified between parser and ingress.
#define ARCH_CHECKSUM
#define ARCH_CHECKSUM_ADD(header)
#define ARCH_CHECKSUM_VERIFY

// Extension headers of any length: the first eight bytes, then what `length` says in units of eight bytes.
#define ARCH_EXTENSION_REST varbit<16320> rest;
#define ARCH_EXTRACT_EXTENSION(extension) pkt.extract(extension, (bit<32>)(pkt.lookahead<bit<16>>()[7:0]) << 6)
#define ARCH_EXTRACT_FRAGMENT(extension) pkt.extract(extension, 0)

#ifdef TOFINO1_LIMITS
#include "../core/limits.p4"
#else
#define ARCH_WALK_EXTENSION(whole) transition whole;
// An inner header is parsed as far as an outer one.
#define ARCH_INNER_OPTION_CASES OPTION_CASES(inner)
#define ARCH_INNER_OPTION_STATES OPTION_STATES(inner, OPTION_STATE)
#define ARCH_INNER_EXTENSION_CASES EXTENSION_CASES
#define ARCH_INNER_WALK_STATES WALK_STATES(inner, INNER_TUNNEL_CASES, INNER_WHOLE_TUNNEL_CASES)
#endif

#define ARCH_MIN(to, a, b) to = (a < b) ? a : b
#define ARCH_MAX(to, a, b) to = (a < b) ? b : a

// `hash` computes base + H % max: with a max of 2^32 that is the 32-bit value itself.
#define ARCH_CRC32(name)
typedef bit<32> hash_t;
#define ARCH_HASH(name, to, ...) hash(to, HashAlgorithm.crc32, 64w0, { __VA_ARGS__ }, 64w0x100000000)

#define ARCH_COUNTER(instance, full_name, index, cells, number, text) \
    @id(number) @name(full_name) @brief(text) counter<index>(cells, CounterType.packets_and_bytes) instance;

// v1model counts by itself whenever an entry matches.
#define ARCH_DIRECT_COUNTER(instance, full_name, number, text) \
    @id(number) @name(full_name) @brief(text) direct_counter(CounterType.packets_and_bytes) instance;
#define ARCH_DIRECT_COUNT(counter)
#define ARCH_ENTRIES_WITH_RANGES(number)
#define ARCH_COUNTERS_OF(name) counters = name;

// Bytes as they came in.
#define ARCH_COUNT_IN(counter, index) counter.count(index)
#define ARCH_COUNT_OUT(counter, index) counter.count(index)

// Both rule tables have the same actions.
#define ARCH_RULE_ACTIONS_V6
#define ARCH_RULE_ACTION_V6(action) action

#endif
