//! One reading serves everybody, and a data plane that is gone does not take what is known with it.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail the test

mod lab;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use controller::telemetry::{Snapshot, Telemetry};
use dataplane::schema::counters;
use lab::{Lab, Plane, REST, site_text};
use swpipe::counters::{Count, Place};

const LONG: Duration = Duration::from_secs(3600);

fn begin(pairs: usize, state: &std::path::Path) -> Lab {
    let (plane, packets) = Plane::new();
    Lab::start(plane, packets, &site_text(pairs, "", REST), state, 0.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_ask_at_once_share_a_reading() {
    let state = tempfile::tempdir().unwrap();
    let lab = begin(2, state.path());
    let telemetry = Telemetry::new(lab.desk.clone());
    lab.until("both pairs up", |lab| lab.pairs_up() == 2).await;

    lab.plane.hold_readings(true);
    let before = lab.plane.readings.load(SeqCst);
    let mut askers: Vec<Pin<Box<dyn Future<Output = Arc<Snapshot>> + Send>>> = Vec::new();
    for _ in 0..100 {
        let telemetry = telemetry.clone();
        let mut asker: Pin<Box<dyn Future<Output = _> + Send>> =
            Box::pin(async move { telemetry.snapshot(Duration::ZERO).await });
        assert!(asker.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        askers.push(asker);
    }
    lab.until("the reading begins", |lab| lab.plane.readings.load(SeqCst) > before).await;
    lab.plane.hold_readings(false);
    for asker in askers {
        assert_eq!(asker.await.stale, None);
    }
    // The one that the first began, and the next one for all who asked after that had begun.
    assert!(lab.plane.readings.load(SeqCst) - before <= 2);

    let before = lab.plane.readings.load(SeqCst);
    let kept = telemetry.snapshot(LONG).await;
    assert!(Arc::ptr_eq(&kept, &telemetry.snapshot(LONG).await));
    assert_eq!(lab.plane.readings.load(SeqCst), before);
    assert!(!Arc::ptr_eq(&kept, &telemetry.snapshot(Duration::ZERO).await));
    assert_eq!(lab.plane.readings.load(SeqCst), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asker_that_goes_away_does_not_end_the_reading() {
    let state = tempfile::tempdir().unwrap();
    let lab = begin(1, state.path());
    let telemetry = Telemetry::new(lab.desk.clone());
    lab.plane.hold_readings(true);
    let before = lab.plane.readings.load(SeqCst);
    let mut asker = Box::pin(telemetry.snapshot(LONG));
    assert!(asker.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    lab.until("the reading begins", |lab| lab.plane.readings.load(SeqCst) > before).await;
    drop(asker);
    lab.plane.hold_readings(false);
    telemetry.snapshot(LONG).await;
    assert_eq!(lab.plane.readings.load(SeqCst), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_data_plane_counters_stand_and_states_go_on() {
    let state = tempfile::tempdir().unwrap();
    let lab = begin(2, state.path());
    let telemetry = Telemetry::new(lab.desk.clone());
    lab.until("both pairs up", |lab| lab.pairs_up() == 2).await;
    let pair = *lab.desk.view.load().ids.pairs.values().next().unwrap();
    let port = lab.desk.view.load().site.ports["l0"].id;
    for (counter, index) in [
        (&counters::PORT_IN, counters::port(port)),
        (&counters::PAIR_OUT, counters::pair_out(pair, dataplane::Side::Lan)),
    ] {
        let count = Count { packets: 7, bytes: 700 };
        lab.plane.device.counters().set(Place::Array(counter.id, index), count);
    }
    let good = telemetry.snapshot(Duration::ZERO).await;
    assert_eq!((good.stale.as_deref(), good.counted), (None, Some(good.at)));

    lab.plane.lose();
    let counts = |snapshot: &Snapshot| {
        let port = snapshot.ports.iter().find(|port| port.name == "l0").unwrap();
        let link = &snapshot.links[0];
        let pair = &snapshot.balancer.units[0].pairs[0];
        (port.rx.bytes, link.lan.rx_bytes, snapshot.drops.frames_in, pair.tx_packets)
    };
    assert_eq!(counts(&good), (700, 700, 7, 7));
    // Keep-alives cannot be sent any more, and what was not sent is not lost.
    let lost = telemetry.snapshot(Duration::ZERO).await;
    assert!(lost.stale.as_ref().unwrap().contains("is not there: cut"), "{:?}", lost.stale);
    assert_eq!(counts(&lost), counts(&good));
    assert_eq!((lost.counted, lost.target.state.as_str()), (good.counted, "lost"));
    assert!(lost.at > good.at);
    assert_eq!(lost.balancer.units[0].pairs_up, 2);

    lab.plane.regain(2);
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let again = telemetry.snapshot(Duration::ZERO).await;
        if again.stale.is_none() {
            assert_eq!(counts(&again), counts(&good));
            return;
        }
        assert!(Instant::now() < deadline);
    }
}
