// A frame of the controller: out by the port that it names. A keep-alive gets its transmit time on the way (`core/leave.p4`);
// a plain one that has no room for it, and a port that there cannot be, are dropped. By the port to the controller it comes
// straight back.

#ifndef SLUICE_PACKET_OUT
#define SLUICE_PACKET_OUT

// Keep-alives by their form alone: plain ones, and steered ones behind four bytes of any header.
parser PacketOutParser(packet_in pkt, inout headers_t hdr) {
    state start {
        pkt.extract(hdr.eth);
        transition select(hdr.eth.type) {
            TYPE_KEEP_ALIVE: keep_alive;
            default: behind_macs;
        }
    }

    state keep_alive {
        pkt.extract(hdr.keep_alive);
        transition accept;
    }

    state behind_macs {
        pkt.extract(hdr.unknown);
        transition select(hdr.unknown.type) {
            TYPE_KEEP_ALIVE: magic;
            TYPE_IPV4: ipv4;
            TYPE_IPV6: ipv6;
            default: accept;
        }
    }

    state ipv4 {
        pkt.extract(hdr.outer_v4);
        transition select(hdr.outer_v4.version, hdr.outer_v4.ihl, hdr.outer_v4.protocol) {
            (4, 5, PROTO_UDP): udp;
            default: accept;
        }
    }

    state ipv6 {
        pkt.extract(hdr.outer_v6);
        transition select(hdr.outer_v6.version, hdr.outer_v6.next) {
            (6, PROTO_UDP): udp;
            default: accept;
        }
    }

    state udp {
        pkt.extract(hdr.udp);
        transition magic;
    }

    state magic {
        transition select(pkt.lookahead<bit<32>>()) {
            KEEP_ALIVE_MAGIC: probe;
            default: accept;
        }
    }

    state probe {
        pkt.extract(hdr.probe);
        transition accept;
    }
}

control PacketOut(inout headers_t hdr, inout meta_t meta, inout bit<9> exit_port) {
    apply {
        meta.passed.replica = REPLICA_PACKET_OUT;
        exit_port = hdr.packet_out.egress_port[8:0];
        if (hdr.packet_out.egress_port[15:9] != 0 || !hdr.eth.isValid()
            || (hdr.eth.type == TYPE_KEEP_ALIVE && !hdr.keep_alive.isValid())) {
            meta.drop = 1;
        }
        hdr.packet_out.setInvalid();
    }
}

#endif
