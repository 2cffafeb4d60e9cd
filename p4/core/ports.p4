// What the port is for that a frame came in by, and how steering headers look.

#ifndef SLUICE_PORTS
#define SLUICE_PORTS

control Ports(inout meta_t meta, inout bit<9> exit_port) {
    ARCH_COUNTER(port_in, ".port_in", bit<9>, PORT_CELLS, 0x12000006, "Frames received, by port.")

    @id(0x01000001) @name(".set_steering") @brief("Header format: mode 0 native, 1 dot1q.")
    @action_restriction(SET_STEERING_RESTRICTION)
    action set_steering(@id(1) bit<8> mode, @id(2) bit<16> tpid, @id(3) bit<16> base_vid) {
        meta.steering_mode = mode;
        meta.steering_tpid = tpid;
        meta.passed.tpid = tpid;
        meta.steering_base = base_vid;
    }

    @id(0x02000001) @name(".steering") @brief("How steering headers look.")
    table steering {
        actions = { set_steering; }
        default_action = set_steering(STEERING_NATIVE, TYPE_STEERING, 0);
        size = 1;
    }

    @id(0x01000002) @name(".link_port") @brief("A link's port; side 0 LAN, 1 WAN.")
    action link_port(@id(1) bit<8> link, @id(2) bit<1> side, @id(3) bit<9> peer_port) {
        meta.passed.role = ROLE_LINK;
        meta.passed.link = (bit<16>)link;
        meta.passed.side = side;
        meta.peer = peer_port;
        exit_port = peer_port;
    }

    @id(0x01000003) @name(".pair_port") @brief("A pair's port; side 0 LAN, 1 WAN.")
    @action_restriction("pair < 512")
    action pair_port(@id(1) bit<16> pair, @id(2) bit<1> side) {
        meta.passed.role = ROLE_PAIR;
        meta.passed.pair = pair;
        meta.passed.side = side;
    }

    @id(0x01000004) @name(".copy_pair_port")
    @brief("A port of a pair that only gets copies: nothing but keep-alives is taken from it.")
    @action_restriction("pair < 512")
    action copy_pair_port(@id(1) bit<16> pair, @id(2) bit<1> side) {
        meta.passed.role = ROLE_COPY_PAIR;
        meta.passed.pair = pair;
        meta.passed.side = side;
    }

    @id(0x01000005) @name(".unknown_port") @brief("Drop: the port serves nothing.")
    action unknown_port() {
        meta.ended = REASON_UNKNOWN_PORT;
        meta.drop = 1;
    }

    @id(0x02000002) @name(".ports") @brief("What a port is for.")
    table ports {
        key = { meta.ingress_port: exact @id(1) @name("ingress_port"); }
        actions = { link_port; pair_port; copy_pair_port; @defaultonly unknown_port; }
        const default_action = unknown_port();
        size = PORTS_SIZE;
    }

    // Of a frame to an appliance; in native mode the tag waits for the core. On Tofino an action is one operation deep.
    @hidden action dot1q_tag() {
        meta.passed.tag = meta.steering_base + meta.passed.link;
    }
    @hidden action dot1q_vid() {
        meta.passed.tag = meta.passed.tag & 0x0fff;
    }

    apply {
        steering.apply();
        ports.apply();
        if (meta.steering_mode == STEERING_DOT1Q) {
            dot1q_tag();
            dot1q_vid();
        }
        ARCH_COUNT_IN(port_in, meta.ingress_port);
    }
}

#endif
