// TNA (Tofino 1): what differs from v1model.

#ifndef SLUICE_ARCH
#define SLUICE_ARCH

#define TARGET_TOFINO1

// The PCIe port of pipe 0 (bf_drivers' default for CPU packets on Tofino 1).
const bit<9> CPU_PORT = 192;

// A length on the chip counts the FCS, and in egress also what ingress put in front of the frame.
const bit<16> FCS_BYTES = 4;
const bit<16> PASSED_BYTES = 13;

const MirrorType_t MIRROR_COPY = 1;

#define ARCH_HEADERS
#define ARCH_METADATA \
    MirrorId_t session; \
    bit<8> copy_replica; \
    bit<8> copy_edit; \
    bit<1> cut;

// Ingress hands this to egress in front of the frame.
#define ARCH_PASSED header
#define ARCH_PADDING @padding bit<7> padding;
#define ARCH_KEEP

#define ARCH_CHECKSUM Checksum() checksum;
#define ARCH_CHECKSUM_ADD(header) checksum.add(header)
#define ARCH_CHECKSUM_VERIFY meta.wrong_checksum = checksum.verify();

// Extension headers of eight bytes.
#define ARCH_EXTENSION_REST
#define ARCH_EXTRACT_EXTENSION(extension) pkt.extract(extension)
#define ARCH_EXTRACT_FRAGMENT(extension) pkt.extract(extension)
#include "../core/limits.p4"

#define ARCH_MIN(to, a, b) to = min(a, b)
#define ARCH_MAX(to, a, b) to = max(a, b)

// The lower half of the CRC (`msb` is false): more than 65,536 buckets there are not.
typedef bit<16> hash_t;
#define ARCH_CRC32(name) \
    CRCPolynomial<bit<32>>(32w0x04C11DB7, true, false, false, 32w0xFFFFFFFF, 32w0xFFFFFFFF) name##_crc; \
    Hash<hash_t>(HashAlgorithm_t.CUSTOM, name##_crc) name;
#define ARCH_HASH(name, to, ...) to = name.get({ __VA_ARGS__ })

#define ARCH_COUNTER(instance, full_name, index, cells, number, text) \
    @id(number) @name(full_name) @brief(text) Counter<bit<64>, index>(cells, CounterType_t.PACKETS_AND_BYTES) instance;

// Bytes as the frame was on the link: without the FCS, without what ingress put in front.
#define ARCH_COUNT_IN(counter, index) counter.count(index, 4)
#define ARCH_COUNT_OUT(counter, index) counter.count(index, 17)

// An action counts by itself, into the counter of one table.
#define ARCH_DIRECT_COUNTER(instance, full_name, number, text) \
    @id(number) @name(full_name) @brief(text) DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) instance;
#define ARCH_DIRECT_COUNT(counter) counter.count(4);
#define ARCH_ENTRIES_WITH_RANGES(number) @entries_with_ranges(number)
#define ARCH_COUNTERS_OF(name) counters = name;

#define ARCH_RULE_ACTION_V6(action) action##_v6
#define ARCH_RULE_ACTIONS_V6 \
    @id(0x01010006) @name(".rule_bypass_v6") \
    action rule_bypass_v6() { \
        meta.passed.reason = REASON_FLOW_BYPASS; \
        ARCH_DIRECT_COUNT(rules_v6_counter) \
    } \
    @id(0x01010007) @name(".rule_drop_v6") \
    action rule_drop_v6() { \
        meta.ended = REASON_FLOW_DROP; \
        meta.drop = 1; \
        ARCH_DIRECT_COUNT(rules_v6_counter) \
    } \
    @id(0x01010008) @name(".rule_to_unit_v6") \
    action rule_to_unit_v6(@id(1) bit<8> unit) { \
        meta.balance = 1; \
        meta.unit = unit; \
        ARCH_DIRECT_COUNT(rules_v6_counter) \
    } \
    @id(0x01010009) @name(".rule_copy_to_unit_v6") \
    action rule_copy_to_unit_v6(@id(1) bit<8> unit) { \
        meta.balance = 1; \
        meta.copy = 1; \
        meta.unit = unit; \
        ARCH_DIRECT_COUNT(rules_v6_counter) \
    }

#endif
