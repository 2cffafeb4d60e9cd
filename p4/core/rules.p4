// Flow rules (contract, step 2). A frame meets one of two tables: `rules_v6` if its header is IPv6, else `rules_v4`,
// which frames without an IP header meet with `ip_version` 0.

#ifndef SLUICE_RULES
#define SLUICE_RULES

control Rules(inout headers_t hdr, inout meta_t meta) {
    ARCH_DIRECT_COUNTER(rules_v4_counter, ".rules_v4_counter", 0x13000001, "Frames that an entry matched.")
    ARCH_DIRECT_COUNTER(rules_v6_counter, ".rules_v6_counter", 0x13000002, "Frames that an entry matched.")

#define RULE_KEY_OF_TAGS \
    meta.passed.link[7:0]: ternary @id(1) @name("link"); \
    meta.vlan_depth: ternary @id(2) @name("vlan_depth"); \
    meta.vlan0: ternary @id(3) @name("vlan0"); \
    meta.vlan1: ternary @id(4) @name("vlan1"); \
    meta.vlan2: ternary @id(5) @name("vlan2"); \
    meta.mpls_depth: ternary @id(6) @name("mpls_depth"); \
    meta.packet_type: ternary @id(7) @name("packet_type");

#define RULE_KEY_OF_MACS \
    hdr.eth.src: ternary @id(10) @name("src_mac"); \
    hdr.eth.dst: ternary @id(11) @name("dst_mac");

#define RULE_KEY_OF_PORTS \
    meta.protocol: ternary @id(15) @name("ip_proto"); \
    meta.has_ports: ternary @id(16) @name("has_ports"); \
    hdr.ports.src: range @id(17) @name("src_port"); \
    hdr.ports.dst: range @id(18) @name("dst_port");

    @id(0x01000006) @name(".rule_bypass") @brief("To the peer port.")
    action rule_bypass() {
        meta.passed.reason = REASON_FLOW_BYPASS;
        ARCH_DIRECT_COUNT(rules_v4_counter)
    }

    @id(0x01000007) @name(".rule_drop") @brief("Drop.")
    action rule_drop() {
        meta.ended = REASON_FLOW_DROP;
        meta.drop = 1;
        ARCH_DIRECT_COUNT(rules_v4_counter)
    }

    @id(0x01000008) @name(".rule_to_unit") @brief("Balance over the unit's pairs.")
    action rule_to_unit(@id(1) bit<8> unit) {
        meta.balance = 1;
        meta.unit = unit;
        ARCH_DIRECT_COUNT(rules_v4_counter)
    }

    @id(0x01000009) @name(".rule_copy_to_unit") @brief("To the peer port, and a copy to the unit.")
    action rule_copy_to_unit(@id(1) bit<8> unit) {
        meta.balance = 1;
        meta.copy = 1;
        meta.unit = unit;
        ARCH_DIRECT_COUNT(rules_v4_counter)
    }

    // Where an action counts by itself, the second table has actions of its own.
    ARCH_RULE_ACTIONS_V6

    @id(0x01000018) @name(".no_rule") @brief("To the peer port: no rule matches.")
    action no_rule() {
        meta.passed.reason = REASON_NO_FLOW;
    }

    // Fields in the order of their ids: BMv2's P4Runtime server takes the P4Info's order for that of its key.
    // A frame with a length in place of an EtherType is no IPv6: `rules_v6` has no LLC fields. On Tofino a range of
    // ports takes up to seven rows; there is room for as many entries with the worst of ranges as is said here.
    ARCH_ENTRIES_WITH_RANGES(RULES_V4_RANGES)
    @id(0x02000003) @name(".rules_v4") @brief("Flow rules for IPv4 and for frames without an IP header.")
    @entry_restriction(RULES_V4_RESTRICTION)
    table rules_v4 {
        key = {
            RULE_KEY_OF_TAGS
            meta.llc_dsap: ternary @id(8) @name("llc_dsap");
            meta.llc_ssap: ternary @id(9) @name("llc_ssap");
            RULE_KEY_OF_MACS
            meta.ip_version: ternary @id(12) @name("ip_version");
            meta.src_v4: ternary @id(13) @name("src_ip");
            meta.dst_v4: ternary @id(14) @name("dst_ip");
            RULE_KEY_OF_PORTS
        }
        actions = { rule_bypass; rule_drop; rule_to_unit; rule_copy_to_unit; @defaultonly no_rule; }
        const default_action = no_rule();
        size = RULES_V4_SIZE;
        ARCH_COUNTERS_OF(rules_v4_counter)
    }

    ARCH_ENTRIES_WITH_RANGES(RULES_V6_RANGES)
    @id(0x02000004) @name(".rules_v6") @brief("Flow rules for IPv6.")
    @entry_restriction(RULES_V6_RESTRICTION)
    table rules_v6 {
        key = {
            RULE_KEY_OF_TAGS
            RULE_KEY_OF_MACS
            meta.src_v6: ternary @id(13) @name("src_ip");
            meta.dst_v6: ternary @id(14) @name("dst_ip");
            RULE_KEY_OF_PORTS
        }
        actions = {
            ARCH_RULE_ACTION_V6(rule_bypass);
            ARCH_RULE_ACTION_V6(rule_drop);
            ARCH_RULE_ACTION_V6(rule_to_unit);
            ARCH_RULE_ACTION_V6(rule_copy_to_unit);
            @defaultonly no_rule;
        }
        const default_action = no_rule();
        size = RULES_V6_SIZE;
        ARCH_COUNTERS_OF(rules_v6_counter)
    }

    apply {
        if (meta.ip_version == 6) {
            rules_v6.apply();
        } else {
            rules_v4.apply();
        }
    }
}

#endif
