// From the unit to the pair's port (contract, steps 3 to 7): a frame that a rule sends to a unit.

#ifndef SLUICE_BALANCE
#define SLUICE_BALANCE

control Balance(inout meta_t meta, inout bit<9> exit_port) {
    @id(0x0100000a) @name(".unit_balance")
    @brief("Balance; method 0 layer-3, 1 layer-4, 2 dst-ip, 3 src-ip.")
    @action_restriction(UNIT_RESTRICTION)
    action unit_balance(@id(1) bit<8> method, @id(2) bit<16> bucket_mask) {
        meta.method = method;
        meta.bucket_mask = bucket_mask;
    }

    @id(0x0100000b) @name(".unit_primary") @brief("Balance and ignore the state of pairs.")
    @action_restriction(UNIT_RESTRICTION)
    action unit_primary(@id(1) bit<8> method, @id(2) bit<16> bucket_mask) {
        meta.method = method;
        meta.bucket_mask = bucket_mask;
        meta.primary = 1;
    }

    @id(0x01000019) @name(".unit_backup")
    @brief("Balance with the buckets of another unit; the state of its pairs counts.")
    @action_restriction(UNIT_RESTRICTION)
    action unit_backup(@id(1) bit<8> method, @id(2) bit<16> bucket_mask, @id(3) bit<8> unit) {
        meta.method = method;
        meta.bucket_mask = bucket_mask;
        meta.unit = unit;
    }

    @id(0x0100000c) @name(".unit_bypass") @brief("Everything to the peer port; also where the unit is unknown.")
    action unit_bypass() {
        meta.passed.reason = REASON_UNIT_BYPASS;
        meta.balance = 0;
    }

    @id(0x02000005) @name(".units") @brief("Method, bucket mask and state of a unit.")
    table units {
        key = { meta.unit: exact @id(1) @name("unit"); }
        actions = { unit_balance; unit_primary; unit_backup; unit_bypass; }
        const default_action = unit_bypass();
        size = UNITS_SIZE;
    }

    // The hash that the method asks for, masked. `layer-4` falls back to `layer-3` for fragments and without ports.
    // The internet's address is the destination of a frame that came in by LAN, the subscriber's its source.
#define BUCKET(name, hash) \
    @hidden action name() { meta.bucket = hash[15:0] & meta.bucket_mask; }

    BUCKET(by_layer_3, meta.hash_layer_3)
    BUCKET(by_layer_4, meta.hash_layer_4)
    BUCKET(by_src, meta.hash_src)
    BUCKET(by_dst, meta.hash_dst)

    @hidden
    table bucket_of {
        key = {
            meta.method: exact;
            meta.passed.side: ternary;
            meta.has_ports: ternary;
            meta.parsed.fragment: ternary;
        }
        actions = { by_layer_3; by_layer_4; by_src; by_dst; }
        const default_action = by_layer_3();
        const entries = {
            (METHOD_LAYER_4, _, 1, 0): by_layer_4();
            (METHOD_DST_IP, SIDE_LAN, _, _): by_dst();
            (METHOD_DST_IP, SIDE_WAN, _, _): by_src();
            (METHOD_SRC_IP, SIDE_LAN, _, _): by_src();
            (METHOD_SRC_IP, SIDE_WAN, _, _): by_dst();
        }
    }

    @id(0x0100000d) @name(".to_pair") @brief("The pair and worker core that serve the bucket.")
    @action_restriction("pair < 512")
    action to_pair(@id(1) bit<16> pair, @id(2) bit<8> core) {
        meta.passed.pair = pair;
        meta.core = core ++ 8w0;
    }

    @id(0x0100001a) @name(".bypass_bucket") @brief("To the peer port; reason 12 core-down, 13 shed.")
    @action_restriction("reason == 12 || reason == 13")
    action bypass_bucket(@id(1) bit<8> reason) {
        meta.passed.reason = reason;
        meta.balance = 0;
    }

    @id(0x0100001b) @name(".drop_bucket") @brief("Dropped: the core is down (fail-action drop).")
    action drop_bucket() {
        meta.pair_state = CORE_DROP;
        meta.ended = REASON_CORE_DOWN_DROP;
    }

    @id(0x0100000e) @name(".no_bucket") @brief("To the peer port: fail open.")
    action no_bucket() {
        meta.passed.reason = REASON_NO_BUCKET;
        meta.balance = 0;
    }

    @id(0x02000006) @name(".buckets") @brief("Pair and core of every bucket.")
    table buckets {
        key = {
            meta.unit: exact @id(1) @name("unit");
            meta.bucket: exact @id(2) @name("bucket");
        }
        actions = { to_pair; bypass_bucket; drop_bucket; @defaultonly no_bucket; }
        const default_action = no_bucket();
        size = BUCKETS_SIZE;
    }

    @id(0x0100000f) @name(".pair_up") @brief("The pair carries traffic.")
    action pair_up() {
        meta.pair_state = PAIR_UP;
    }

    @id(0x01000010) @name(".pair_bypass")
    @brief("Its share takes the peer port; also where the pair is unknown.")
    action pair_bypass() {
        meta.pair_state = PAIR_BYPASS;
    }

    @id(0x01000011) @name(".pair_drop") @brief("Its share is dropped (fail-action drop).")
    action pair_drop() {
        meta.pair_state = PAIR_DROP;
        meta.ended = REASON_PAIR_DOWN_DROP;
    }

    @id(0x02000007) @name(".pair_state") @brief("Whether a pair carries traffic.")
    @entry_restriction("pair < 512")
    table pair_state {
        key = { meta.passed.pair: exact @id(1) @name("pair"); }
        actions = { pair_up; pair_bypass; pair_drop; }
        const default_action = pair_bypass();
        size = PAIRS_SIZE;
    }

    @id(0x01000012) @name(".to_pair_port") @brief("Push the steering header, send by this port.")
    action to_pair_port(@id(1) bit<9> port) {
        meta.pair_port = port;
        meta.has_pair_port = 1;
    }

    @id(0x01000013) @name(".no_pair_port") @brief("To the peer port: fail open.")
    action no_pair_port() { }

    @id(0x02000008) @name(".pair_ports") @brief("The port of each side of a pair.")
    @entry_restriction("pair < 512")
    table pair_ports {
        key = {
            meta.passed.pair: exact @id(1) @name("pair");
            meta.passed.side: exact @id(2) @name("side");
        }
        actions = { to_pair_port; @defaultonly no_pair_port; }
        const default_action = no_pair_port();
        size = PAIR_PORTS_SIZE;
    }

    // What becomes of the frame; the one place where it leaves the way to the peer port.
    @hidden action forward() {
        meta.passed.reason = REASON_FORWARDED;
        meta.passed.edit = EDIT_PUSH;
        exit_port = meta.pair_port;
    }
    @hidden action copy() {
        meta.passed.reason = REASON_COPY;
        meta.clone = 1;
    }
    @hidden action bypass_share() {
        meta.passed.reason = REASON_PAIR_DOWN_BYPASS;
    }
    // Of a copy; the bucket has no pair whose state could say anything.
    @hidden action bypass_core() {
        meta.passed.reason = REASON_CORE_DOWN_BYPASS;
    }
    @hidden action drop_share() {
        meta.drop_share = 1;
    }

    @hidden
    table share {
        key = {
            meta.pair_state: exact;
            meta.has_pair_port: exact;
            meta.copy: exact;
        }
        actions = { forward; copy; bypass_share; bypass_core; drop_share; }
        const default_action = bypass_share();
        const entries = {
            (PAIR_UP, 1, 0): forward();
            (PAIR_UP, 1, 1): copy();
            (PAIR_DROP, 0, 0): drop_share();
            (PAIR_DROP, 1, 0): drop_share();
            (CORE_DROP, 0, 0): drop_share();
            (CORE_DROP, 1, 0): drop_share();
            (CORE_DROP, 0, 1): bypass_core();
            (CORE_DROP, 1, 1): bypass_core();
        }
    }

    @hidden action native_tag() {
        meta.passed.tag = meta.core | meta.passed.link;
    }

    @hidden action no_session() {
        meta.passed.reason = meta.no_session;
        meta.balance = 0;
    }

    apply {
        if (meta.balance == 1) {
            if (meta.ip_version == 0) {
                no_session();
            } else {
                units.apply();
            }
        }
        if (meta.balance == 1) {
            bucket_of.apply();
            buckets.apply();
        }
        if (meta.balance == 1) {
            if (meta.primary == 0 && meta.pair_state != CORE_DROP) {
                pair_state.apply();
            }
            pair_ports.apply();
            if (meta.steering_mode == STEERING_NATIVE) {
                native_tag();
            }
            share.apply();
        }
    }
}

#endif
