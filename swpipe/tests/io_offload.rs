//! Offloads of a port, as ethtool sees them.

#![allow(clippy::expect_used, reason = "tests")]

mod io_wire;

use io_wire::{in_namespace, run};
use swpipe::io::{Backend, IoError, offload, open};

#[test]
fn offloads_that_alter_frames_are_off_on_a_port() {
    in_namespace(|| {
        run("ip link add h1 type veth peer name p1");
        run("ethtool -K p1 gro on");
        let before = run("ethtool -k p1");
        let port = open(Backend::AfPacket, "p1", 1500).expect("p1");
        let after = run("ethtool -k p1");
        for feature in [
            "generic-receive-offload",
            "large-receive-offload",
            "rx-vlan-offload",
            "rx-vlan-stag-hw-parse",
            "tx-checksumming",
            "tx-checksum-ip-generic",
            "tx-checksum-sctp",
            "tcp-segmentation-offload",
            "tx-tcp-segmentation",
            "generic-segmentation-offload",
            "tx-udp-segmentation",
            "tx-vlan-offload",
            "rx-gro-list",
            "rx-udp-gro-forwarding",
        ] {
            let of = |text: &str| {
                let line = text.lines().find(|line| line.trim().starts_with(&format!("{feature}:")));
                line.expect("ethtool knows it").to_owned()
            };
            assert!(of(&after).contains(": off"), "{}", of(&after));
        }
        assert!(before.contains("generic-receive-offload: on") && before.contains("rx-vlan-offload: on"));
        let flags = run("ip -d link show p1");
        assert!(flags.contains("UP") && flags.contains("NOARP"), "{flags}");

        let receiver = port.receiver().expect("receiver");
        assert!(run("ip -d link show p1").contains("promiscuity 1"));
        drop(receiver);
        assert!(run("ip -d link show p1").contains("promiscuity 0"));
    });
}

#[test]
fn a_missing_interface_is_named() {
    in_namespace(|| {
        let error = offload::turn_off("nowhere0").expect_err("missing");
        assert!(matches!(&error, IoError::NoInterface { interface } if interface == "nowhere0"), "{error}");
    });
}

#[test]
fn an_interface_whose_offloads_stay_on_is_refused_and_both_are_named() {
    in_namespace(|| {
        // A macvlan has its lower interface's offloads, and does not let go of them.
        run("ip link add h1 type veth peer name p1");
        run("ip link add link p1 name over1 type macvlan mode bridge");
        let error = open(Backend::AfPacket, "over1", 1500).expect_err("refused");
        let IoError::Offload(offload) = &error else { panic!("{error}") };
        assert_eq!(offload.interface, "over1");
        assert!(offload.features.iter().any(|feature| feature == "tx-tcp-segmentation"), "{error}");
        let text = error.to_string();
        assert!(text.contains("over1") && text.contains("tx-tcp-segmentation, "), "{text}");
        assert!(!run("ip link show over1").contains(",UP"), "and is not brought up");
    });
}
