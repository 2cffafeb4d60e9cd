//! The target over P4Runtime, with the software pipeline's server behind it in the limits of several targets.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail the test

use std::sync::Arc;
use std::time::Duration;

use controller::target::{P4rt, Program, Standing, Target, TargetError};
use dataplane::PortId;
use dataplane::SteeringMode;
use dataplane::entry::{Entry, Update};
use dataplane::tables::{
    CloneSessionEntry, Family, PortMtuEntry, RuleAction, RuleEntry, RuleField, RuleMatch, SteeringEntry,
};
use dataplane::target::{BMV2, SWPIPE, TOFINO1, TargetProfile};
use swpipe::device::Device;
use swpipe::server::Server;

/// A controller's target and the device that it programs, each with its profile.
async fn connected(
    controllers: &'static TargetProfile,
    devices: &'static TargetProfile,
) -> (P4rt, Arc<Device>, Server) {
    let device = Arc::new(Device::new(devices));
    let server = Server::new(device.clone(), 1, None);
    let address = p4runtime::client::Target::dial("test", server.connector());
    let program = Program::of(controllers, None).unwrap();
    let (target, _packets) = P4rt::start(address, "test".to_owned(), 1, 1, program).unwrap();
    let mut standing = target.standing();
    let primary = standing.wait_for(|standing| matches!(standing, Standing::Primary(_)));
    tokio::time::timeout(Duration::from_secs(20), primary).await.unwrap().unwrap();
    (target, device, server)
}

fn rule(priority: i32) -> Entry {
    let mut matches = RuleMatch::default();
    matches.set_exact(RuleField::IpVersion, 4, Family::V4);
    let rule = RuleEntry { family: Family::V4, priority, matches, action: RuleAction::Drop };
    Entry { metadata: format!("rule-{priority}").into_bytes(), ..rule.entry() }
}

fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort();
    entries
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_every_kind_are_written_and_read() {
    for profile in [&SWPIPE, &TOFINO1] {
        let (target, device, _server) = connected(profile, profile).await;
        assert!(target.prepare().await.unwrap());
        assert!(!target.prepare().await.unwrap(), "{profile}: it has the pipeline by now");
        let steering = SteeringEntry { mode: SteeringMode::Native { tpid: 0x88b7 } }.entry();
        let entries = [
            rule(1),
            PortMtuEntry { port: PortId(8), mtu: 1500 }.entry(),
            CloneSessionEntry::to(PortId(8)).entry(),
        ];
        let mut updates = vec![Update::Modify(steering.clone())];
        updates.extend(entries.iter().cloned().map(Update::Insert));
        target.write(updates).await.unwrap();
        let wanted = sorted(entries.into_iter().chain([steering]).collect());
        assert_eq!(sorted(target.entries().await.unwrap()), wanted);
        assert_eq!(device.entries(None), wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_that_the_data_plane_does_not_take_is_told_with_what_to_do() {
    let (target, device, _server) = connected(&SWPIPE, &TOFINO1).await;
    let error = target.prepare().await.unwrap_err();
    assert!(matches!(error, TargetError::Pipeline { .. }), "{error:?}");
    let text = error.to_string();
    for part in [target.pipeline().as_str(), "swpipe", "rules_v4", "tofino1", "--target-profile"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(device.entries(None).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_a_restriction_is_not_sent() {
    // Nobody is there: what is refused is refused before.
    let nobody = "unix:/nonexistent/p4rt.sock".parse().unwrap();
    let program = Program::of(&BMV2, None).unwrap();
    let (target, _packets) = P4rt::start(nobody, "nobody".to_owned(), 1, 1, program).unwrap();
    let mut matches = RuleMatch::default();
    matches.set_exact(RuleField::IpProto, 6, Family::V4);
    let rule = RuleEntry { family: Family::V4, priority: 1, matches, action: RuleAction::Drop };
    let bad = Entry { metadata: b"tcp".to_vec(), ..rule.entry() };
    let error = target.write(vec![Update::Insert(bad)]).await.unwrap_err();
    assert!(matches!(error, TargetError::Refused { .. }), "{error:?}");
    let text = error.to_string();
    for part in ["rules_v4", "tcp", "ip_version", "0x4&0xf"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    let good = target.write(vec![Update::Insert(self::rule(1))]).await.unwrap_err();
    assert!(matches!(good, TargetError::Lost { .. }), "{good:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_refused_whole_where_the_target_can_and_else_in_part() {
    for (profile, left) in [(&SWPIPE, 0), (&TOFINO1, 2)] {
        let (target, device, _server) = connected(profile, profile).await;
        target.prepare().await.unwrap();
        let missing = Update::Modify(rule(2));
        let error =
            target.write(vec![Update::Insert(rule(1)), missing, Update::Insert(rule(3))]).await.unwrap_err();
        assert!(error.to_string().contains("rule-2"), "{error}");
        assert_eq!(matches!(error, TargetError::Refused { .. }), profile.writes.all_or_nothing, "{error:?}");
        assert_eq!(matches!(error, TargetError::Partly { .. }), !profile.writes.all_or_nothing, "{error:?}");
        assert_eq!(device.entries(None).len(), left, "{profile}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_does_not_fit_one_request_takes_several() {
    let (target, device, _server) = connected(&TOFINO1, &TOFINO1).await;
    target.prepare().await.unwrap();
    assert!(TOFINO1.writes.updates < 2048);
    target.write((1..=2048).map(|priority| Update::Insert(rule(priority))).collect()).await.unwrap();
    assert_eq!(device.entries(None).len(), 2048);
}
