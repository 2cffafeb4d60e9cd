// The end of every frame and copy: the MTU of the port that it leaves by, the steering header, the one counter that
// it ends in (contract, step 7 and "Every frame ends in exactly one counter").

#ifndef SLUICE_LEAVE
#define SLUICE_LEAVE

// Whether the port takes a frame of this length. `meta.length` is what stands behind the Ethernet header.
control Mtu(inout meta_t meta, in bit<9> port) {
    @id(0x01000016) @name(".set_mtu") @brief("Bytes after the 14 of the Ethernet header.")
    action set_mtu(@id(1) bit<16> mtu) {
        meta.mtu = mtu;
    }

    @id(0x01000017) @name(".no_limit") @brief("The port sends frames of any length.")
    action no_limit() {
        meta.mtu = NO_MTU;
    }

    @id(0x0200000a) @name(".port_mtu") @brief("The longest frame that may leave by a port.")
    table port_mtu {
        key = { port: exact @id(1) @name("egress_port"); }
        actions = { set_mtu; @defaultonly no_limit; }
        const default_action = no_limit();
        size = PORTS_SIZE;
    }

    apply {
        port_mtu.apply();
        meta.excess = meta.length |-| meta.mtu;
    }
}

// The steering header on the way to an appliance.
control Steer(inout headers_t hdr, inout meta_t meta) {
    @hidden action push() {
        hdr.steering.setValid();
        hdr.steering.value = meta.passed.tag;
        hdr.steering.type = hdr.eth.type;
        hdr.eth.type = meta.passed.tpid;
    }

    apply {
        if (meta.passed.edit == EDIT_PUSH) {
            push();
        }
    }
}

// Times of the controller's packets: when a keep-alive left, and when one arrived that the controller sent to itself.
control Stamp(inout headers_t hdr, inout meta_t meta, in bit<9> port) {
    @hidden action plain() {
        hdr.keep_alive.transmit_time = meta.now;
    }

    @hidden action steered() {
        hdr.probe.transmit_time = meta.now;
        hdr.probe.complement = ~meta.now;
    }

    @hidden action back() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>)CPU_PORT;
        hdr.packet_in.receive_time = meta.now;
    }

    apply {
        if (meta.passed.replica == REPLICA_PROBE) {
            if (hdr.probe.isValid()) {
                steered();
            } else {
                plain();
            }
        }
        if (port == CPU_PORT && (meta.passed.replica == REPLICA_PACKET_OUT || meta.passed.replica == REPLICA_PROBE)) {
            back();
        }
    }
}

// Every frame in one cell, by reason, and by the link or pair that it came from. A control can be counted in at one
// place of a pipeline only; where an architecture ends frames at two, there are two of these.
#define VERDICTS(name, count, reason, of_all, id_of_all, of_links, id_of_links, of_pairs, id_of_pairs) \
    control name(in meta_t meta) { \
        ARCH_COUNTER(verdicts, of_all, bit<5>, VERDICT_CELLS, id_of_all, "Every frame, by reason.") \
        ARCH_COUNTER(link_verdicts, of_links, bit<13>, LINK_VERDICT_CELLS, id_of_links, \
                     "Frames from link ports: link * 32 + reason.") \
        ARCH_COUNTER(pair_verdicts, of_pairs, bit<14>, PAIR_VERDICT_CELLS, id_of_pairs, \
                     "Frames from pair ports: pair * 32 + reason.") \
        apply { \
            count(verdicts, reason[4:0]); \
            if (meta.passed.role == ROLE_LINK) { \
                count(link_verdicts, meta.passed.link[7:0] ++ reason[4:0]); \
            } else if (meta.passed.role != ROLE_NONE) { \
                count(pair_verdicts, meta.passed.pair[8:0] ++ reason[4:0]); \
            } \
        } \
    }

VERDICTS(Verdicts, ARCH_COUNT_OUT, meta.passed.reason,
         ".verdicts", 0x12000001, ".link_verdicts", 0x12000002, ".pair_verdicts", 0x12000003)

// What leaves, by where it leaves.
control Exits(in meta_t meta, in bit<9> port) {
    ARCH_COUNTER(pair_out, ".pair_out", bit<10>, PAIR_CELLS, 0x12000004,
                 "Frames sent to appliances: pair * 2 + side.")
    ARCH_COUNTER(link_out, ".link_out", bit<9>, LINK_CELLS, 0x12000005, "Frames returned to links: link * 2 + side.")
    ARCH_COUNTER(port_out, ".port_out", bit<9>, PORT_CELLS, 0x12000007,
                 "Frames sent, by port; keep-alives included.")
    ARCH_COUNTER(copies, ".copies", bit<10>, PAIR_CELLS, 0x12000008,
                 "Copies to appliances: pair * 2 + (1 if lost).")
    @noWarn("unused") ARCH_COUNTER(port_missed, ".port_missed", bit<9>, PORT_CELLS, 0x12000009,
                 "Frames that the target could not take in, by port; not of the program's counting.")
    @noWarn("unused") ARCH_COUNTER(port_lost, ".port_lost", bit<9>, PORT_CELLS, 0x1200000a,
                 "Frames that the target could not send after all, by port; not of the program's counting.")
    ARCH_COUNTER(probes_out, ".probes_out", bit<9>, PORT_CELLS, 0x1200000b, "Keep-alives sent, by port.")

    apply {
        if (meta.passed.replica == REPLICA_COPY) {
            ARCH_COUNT_OUT(copies, meta.passed.pair[8:0] ++ meta.lost);
        } else if (meta.lost == 0) {
            if (meta.passed.replica == REPLICA_PROBE) {
                ARCH_COUNT_OUT(probes_out, port);
            } else if (meta.passed.replica == REPLICA_FRAME) {
                if (meta.passed.reason == REASON_FORWARDED) {
                    ARCH_COUNT_OUT(pair_out, meta.passed.pair[8:0] ++ meta.passed.side);
                } else if (meta.passed.reason == REASON_RETURNED) {
                    ARCH_COUNT_OUT(link_out, meta.passed.link[7:0] ++ meta.passed.side);
                }
            }
        }
        if (meta.lost == 0 && meta.passed.reason != REASON_KEEP_ALIVE) {
            ARCH_COUNT_OUT(port_out, port);
        }
    }
}

// All of it, for one replica of a frame that leaves by `port`. `meta.length` is what stands behind the Ethernet header
// before the steering header is pushed.
control Leave(inout headers_t hdr, inout meta_t meta, in bit<9> port) {
    Mtu() mtu;
    Steer() steer;
    Stamp() stamp;
    Verdicts() verdicts;
    Exits() exits;

    @hidden action longer() {
        meta.length = meta.length + STEERING_BYTES;
    }

    @hidden action too_long() {
        meta.lost = 1;
        meta.passed.reason = REASON_MTU_EXCEEDED;
    }

    @hidden action fits() { }

    @hidden
    table length {
        key = { meta.excess: exact; }
        actions = { fits; too_long; }
        const default_action = too_long();
        const entries = { 0: fits(); }
    }

    apply {
        if (meta.passed.replica == REPLICA_PACKET_OUT && (hdr.keep_alive.isValid() || hdr.probe.isValid())) {
            meta.passed.replica = REPLICA_PROBE;
        }
        if (meta.passed.edit == EDIT_PUSH) {
            longer();
        }
        meta.lost = meta.drop;
        if (meta.drop == 0 && meta.passed.reason != REASON_KEEP_ALIVE) {
            mtu.apply(meta, port);
            length.apply();
        }
        if (meta.passed.replica == REPLICA_FRAME) {
            verdicts.apply(meta);
        }
        exits.apply(meta, port);
        steer.apply(hdr, meta);
        stamp.apply(hdr, meta, port);
    }
}

#endif
