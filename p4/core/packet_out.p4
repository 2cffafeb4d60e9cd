// A frame of the controller: out by the port that it names. A keep-alive gets its transmit time on the way; one that has
// no room for it, and a port that there cannot be, are dropped.

#ifndef SLUICE_PACKET_OUT
#define SLUICE_PACKET_OUT

control PacketOut(inout headers_t hdr, inout meta_t meta, inout bit<9> exit_port) {
    apply {
        meta.passed.replica = REPLICA_PACKET_OUT;
        if (hdr.keep_alive.isValid()) {
            meta.passed.replica = REPLICA_PROBE;
        }
        exit_port = hdr.packet_out.egress_port[8:0];
        if (hdr.packet_out.egress_port[15:9] != 0 || !hdr.eth.isValid()
            || (hdr.eth.type == TYPE_KEEP_ALIVE && !hdr.keep_alive.isValid())) {
            meta.drop = 1;
        }
        hdr.packet_out.setInvalid();
    }
}

#endif
