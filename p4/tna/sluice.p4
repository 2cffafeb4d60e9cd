// Sluice on the Tofino native architecture, for Tofino 1.

#include <core.p4>
#include <tna.p4>

#include "arch.p4"
#include "../core/sizes.p4"
#include "../core/restrictions.p4"
#include "../core/headers.p4"
#include "../core/parser.p4"
#include "../core/classify.p4"
#include "../core/ports.p4"
#include "../core/rules.p4"
#include "../core/hash.p4"
#include "../core/balance.p4"
#include "../core/back.p4"
#include "../core/packet_out.p4"
#include "../core/leave.p4"

parser SluiceIngressParser(
        packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    FrameParser() frame;

    state start {
        pkt.extract(intrinsic);
        pkt.advance(PORT_METADATA_SIZE);
        meta.passed.setValid();
        meta.passed.replica = REPLICA_FRAME;
        meta.passed.edit = EDIT_NONE;
        transition select(intrinsic.ingress_port) {
            CPU_PORT: from_controller;
            default: from_wire;
        }
    }

    state from_controller {
        pkt.extract(hdr.packet_out);
        transition from_wire;
    }

    state from_wire {
        frame.apply(pkt, hdr, meta);
        transition accept;
    }
}

// Frames that end in ingress are counted here: drops, and keep-alives to the controller. A counter's value on this
// target is the sum of its cell here and in egress.
VERDICTS(IngressVerdicts, ARCH_COUNT_IN, meta.ended,
         ".ingress_verdicts", 0x12010001, ".ingress_link_verdicts", 0x12010002,
         ".ingress_pair_verdicts", 0x12010003)

control SluiceIngress(
        inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t intrinsic,
        in ingress_intrinsic_metadata_from_parser_t from_parser,
        inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
        inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    Ports() ports;
    Classify() classify;
    SessionHash() session_hash;
    Rules() rules;
    Balance() balance;
    Back() back;
    PacketOut() from_controller;
    IngressVerdicts() verdicts;

    @id(0x1201000c) @name(".cut_frames")
    @brief("Frames that end within a header, by port.")
    Counter<bit<64>, bit<9>>(PORT_CELLS, CounterType_t.PACKETS_AND_BYTES) cut_frames;

    @hidden action mirror_copy() {
        for_deparser.mirror_type = MIRROR_COPY;
        meta.session = (MirrorId_t)meta.pair_port + 1;
        meta.copy_replica = REPLICA_COPY;
        meta.copy_edit = EDIT_PUSH;
    }

    @hidden action to_controller() {
        for_tm.bypass_egress = 1;
        meta.passed.setInvalid();
    }

    apply {
        meta.ingress_port = intrinsic.ingress_port;
        meta.now = (bit<64>)from_parser.global_tstamp;
        if (hdr.packet_out.isValid()) {
            from_controller.apply(hdr, meta, for_tm.ucast_egress_port);
        } else {
            // Looking at the error keeps the chip from dropping the frame for it.
            if (from_parser.parser_err != PARSER_ERROR_OK) {
                cut_frames.count(intrinsic.ingress_port, 4);
            }
            ports.apply(meta, for_tm.ucast_egress_port);
            classify.apply(hdr, meta);
            if (meta.passed.role == ROLE_LINK) {
                session_hash.apply(meta);
                rules.apply(hdr, meta);
                balance.apply(meta, for_tm.ucast_egress_port);
            } else if (meta.passed.role != ROLE_NONE) {
                back.apply(hdr, meta, for_tm.ucast_egress_port);
            }
        }
        // What `Balance` decides last is looked at beside it, in the same stage.
        if (meta.balance == 1 && meta.copy == 1 && meta.pair_state == PAIR_UP && meta.has_pair_port == 1) {
            mirror_copy();
        }
        if (meta.drop == 1 || (meta.balance == 1 && (meta.pair_state == PAIR_DROP || meta.pair_state == CORE_DROP) && meta.copy == 0)) {
            for_deparser.drop_ctl = 1;
            if (meta.passed.replica == REPLICA_FRAME) {
                verdicts.apply(meta);
            }
        } else if (hdr.packet_in.isValid()) {
            verdicts.apply(meta);
            to_controller();
        }
    }
}

control SluiceIngressDeparser(
        packet_out pkt, inout headers_t hdr, in meta_t meta,
        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Mirror() mirror;

    apply {
        if (for_deparser.mirror_type == MIRROR_COPY) {
            mirror.emit<passed_t>(meta.session, {
                meta.copy_replica, meta.passed.reason, meta.passed.role, meta.passed.padding, meta.passed.side,
                meta.passed.link, meta.passed.pair, meta.copy_edit, meta.passed.tpid, meta.passed.tag
            });
        }
        pkt.emit(meta.passed);
        pkt.emit(hdr);
    }
}

parser SluiceEgressParser(
        packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t intrinsic) {
    PacketOutParser() of_controller;

    state start {
        pkt.extract(intrinsic);
        pkt.extract(meta.passed);
        transition select(meta.passed.replica) {
            REPLICA_PACKET_OUT: from_controller;
            default: from_wire;
        }
    }

    // It is read here, where times are written.
    state from_controller {
        of_controller.apply(pkt, hdr);
        transition accept;
    }

    state from_wire {
        pkt.extract(hdr.eth);
        transition accept;
    }
}

control SluiceEgress(
        inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t intrinsic,
        in egress_intrinsic_metadata_from_parser_t from_parser,
        inout egress_intrinsic_metadata_for_deparser_t for_deparser,
        inout egress_intrinsic_metadata_for_output_port_t for_port) {
    Leave() leave;

    apply {
        meta.now = (bit<64>)from_parser.global_tstamp;
        meta.length = intrinsic.pkt_length - (ETHERNET_BYTES + FCS_BYTES + PASSED_BYTES);
        leave.apply(hdr, meta, intrinsic.egress_port);
        if (meta.lost == 1) {
            for_deparser.drop_ctl = 1;
        }
        meta.passed.setInvalid();
    }
}

control SluiceEgressDeparser(
        packet_out pkt, inout headers_t hdr, in meta_t meta,
        in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        pkt.emit(hdr);
    }
}

Pipeline(
    SluiceIngressParser(),
    SluiceIngress(),
    SluiceIngressDeparser(),
    SluiceEgressParser(),
    SluiceEgress(),
    SluiceEgressDeparser()) pipe;

@pkginfo(name="sluice", version="0.1.0")
@brief("Balances links over inline appliances.")
@pa_auto_init_metadata
Switch(pipe) main;
