// A frame from a pair port (contract, "From a pair port"): keep-alives to the controller as they came, plain ones by their
// EtherType and steered ones by the link index that stands for the controller; everything else back to the link that its steering header names, on the side that it came back on.

#ifndef SLUICE_BACK
#define SLUICE_BACK

control Back(inout headers_t hdr, inout meta_t meta, inout bit<9> exit_port) {
    @id(0x01000014) @name(".to_link_port") @brief("Pop the steering header, send by this port.")
    action to_link_port(@id(1) bit<9> port) {
        meta.passed.reason = REASON_RETURNED;
        meta.passed.link = meta.index;
        exit_port = port;
    }

    // A keep-alive, plain or steered.
    @id(0x0100001c) @name(".to_controller") @brief("A steered probe: to the controller as it came.")
    action to_controller() {
        meta.passed.reason = REASON_KEEP_ALIVE;
        meta.ended = REASON_KEEP_ALIVE;
        exit_port = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = (bit<16>)meta.ingress_port;
        hdr.packet_in.receive_time = meta.now;
    }

    @id(0x01000015) @name(".unknown_link") @brief("Drop: no such link.")
    action unknown_link() {
        meta.ended = REASON_UNKNOWN_LINK;
        meta.drop = 1;
    }

    @id(0x02000009) @name(".links") @brief("The port of each side of a link.")
    table links {
        key = {
            meta.index[7:0]: exact @id(1) @name("link");
            meta.passed.side: exact @id(2) @name("side");
        }
        actions = { to_link_port; to_controller; @defaultonly unknown_link; }
        const default_action = unknown_link();
        size = LINKS_SIZE;
    }

    @hidden action refuse(bit<8> reason) {
        meta.ended = reason;
        meta.drop = 1;
    }

    @hidden action native_index() {
        meta.index = meta.index & 0x00ff;
    }

    @hidden action dot1q_vid() {
        meta.index = meta.index & 0x0fff;
    }

    @hidden action dot1q_index() {
        meta.index = meta.index - meta.steering_base;
    }

    @hidden action pop_unknown() {
        hdr.eth.type = hdr.unknown.type;
        hdr.unknown.setInvalid();
    }

    @hidden action pop_tag() {
        hdr.eth.type = hdr.vlan0.type;
        hdr.vlan0.setInvalid();
    }

    apply {
        if (hdr.eth.isValid() && hdr.eth.type == TYPE_KEEP_ALIVE) {
            to_controller();
        } else if (meta.passed.role == ROLE_COPY_PAIR) {
            refuse(REASON_COPY_RETURN);
        } else {
            // A header that is cut before the EtherType behind it was not extracted: without it what is left after
            // the pop were no frame.
            if (hdr.eth.isValid() && hdr.eth.type == meta.steering_tpid) {
                if (hdr.unknown.isValid()) {
                    meta.has_header = 1;
                    meta.index = hdr.unknown.value;
                } else if (hdr.vlan0.isValid()) {
                    meta.has_header = 1;
                    meta.index = hdr.vlan0.value;
                }
            }
            if (meta.steering_mode == STEERING_DOT1Q) {
                dot1q_vid();
                dot1q_index();
            } else {
                native_index();
            }
            if (meta.has_header == 0 || meta.index[15:8] != 0) {
                refuse(REASON_NO_STEERING_HEADER);
            } else {
                links.apply();
                if (meta.passed.reason == REASON_RETURNED) {
                    if (hdr.unknown.isValid()) {
                        pop_unknown();
                    } else {
                        pop_tag();
                    }
                }
            }
        }
    }
}

#endif
