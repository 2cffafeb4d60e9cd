//! Sessions with a master agent that the test plays, under a virtual clock.

use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

use super::*;
use crate::{Binding, Column, Oid, SearchRange, Table, Value};

static COLUMNS: [Column<u32>; 1] =
    [Column { number: 1, name: "number", value: |row| Some(Value::Gauge32(*row)) }];

/// A view at once, or never.
struct Fixed(bool);

impl Source for Fixed {
    async fn view(&self, _: Master, _: &[SearchRange]) -> Option<Arc<dyn View>> {
        if !self.0 {
            std::future::pending::<()>().await;
        }
        Some(Arc::new(Table::scalars(subtree(), &COLUMNS, 7)))
    }
}

fn subtree() -> Oid {
    Oid::new([1, 3, 6, 1, 4, 1, 9])
}

/// The master agent's end.
struct Lab {
    wire: DuplexStream,
    held: JoinHandle<Ended>,
    outbox: Arc<Outbox>,
    state: watch::Receiver<State>,
    stop: Option<oneshot::Sender<()>>,
}

impl Lab {
    fn start(source: Fixed) -> Self {
        let (ours, wire) = tokio::io::duplex(4096);
        let outbox = Arc::new(Outbox::default());
        let (sender, state) = watch::channel(State::Down(String::new()));
        let (stop, mut stopped) = oneshot::channel();
        let box_ = outbox.clone();
        let held = tokio::spawn(async move {
            let settings = Settings {
                address: "unix:/nowhere".parse().unwrap(),
                subtree: subtree(),
                description: "test".to_owned(),
            };
            hold(ours, &settings, &Arc::new(source), &box_, &sender, &mut stopped).await
        });
        Lab { wire, held, outbox, state, stop: Some(stop) }
    }

    async fn read(&mut self) -> Pdu {
        let mut octets = vec![0; HEADER];
        self.wire.read_exact(&mut octets).await.unwrap();
        let header = Header::decode(octets.first_chunk().unwrap()).unwrap();
        octets.resize(HEADER + header.payload, 0);
        self.wire.read_exact(&mut octets[HEADER..]).await.unwrap();
        Pdu::decode(&octets).unwrap()
    }

    async fn write(&mut self, order: ByteOrder, packet: u32, body: Body) {
        let pdu = Pdu { order, session: 77, transaction: packet, packet, body };
        self.wire.write_all(&pdu.encode()).await.unwrap();
    }

    async fn respond(&mut self, to: &Pdu, error: ResponseError) {
        let body = Body::Response { uptime: 100, error, index: 0, bindings: Vec::new() };
        self.write(ByteOrder::Little, to.packet, body).await;
    }

    /// Up to a session that is registered.
    async fn up(source: Fixed) -> Self {
        let mut lab = Lab::start(source);
        let open = lab.read().await;
        assert!(matches!(&open.body, Body::Open { id, .. } if *id == subtree()), "{open:?}");
        lab.respond(&open, ResponseError::NONE).await;
        let register = lab.read().await;
        assert_eq!(register.session, 77);
        assert!(matches!(&register.body, Body::Register(what) if what.subtree == subtree()), "{register:?}");
        lab.respond(&register, ResponseError::NONE).await;
        lab.state.wait_for(|state| *state == State::Up).await.unwrap();
        lab
    }

    fn get() -> Body {
        let range = SearchRange { start: subtree().child([1, 0]), include: false, end: Oid::default() };
        Body::Get { context: None, ranges: vec![range] }
    }
}

fn value(pdu: &Pdu) -> (ResponseError, Vec<Value>) {
    let Body::Response { error, bindings, .. } = &pdu.body else { panic!("{pdu:?}") };
    (*error, bindings.iter().map(|binding| binding.value.clone()).collect())
}

fn news(number: u32) -> Notification {
    let objects = vec![Binding::new(Oid::new([1, 3, number]), Value::Integer(1))];
    Notification { kind: subtree().child([0, number]), objects }
}

#[tokio::test(start_paused = true)]
async fn requests_are_answered_in_their_own_byte_order() {
    let mut lab = Lab::up(Fixed(true)).await;
    for order in [ByteOrder::Network, ByteOrder::Little] {
        lab.write(order, 5, Lab::get()).await;
        let answer = lab.read().await;
        assert_eq!((answer.order, answer.session, answer.packet), (order, 77, 5));
        assert_eq!(value(&answer), (ResponseError::NONE, vec![Value::Gauge32(7)]));
    }
    let wrong = Pdu { order: ByteOrder::Network, session: 78, transaction: 1, packet: 1, body: Lab::get() };
    lab.wire.write_all(&wrong.encode()).await.unwrap();
    assert_eq!(value(&lab.read().await).0, ResponseError::NOT_OPEN);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_master_is_pinged_and_a_silent_one_given_up() {
    let mut lab = Lab::up(Fixed(true)).await;
    let up = Instant::now();
    let ping = lab.read().await;
    assert_eq!(ping.body, Body::Ping { context: None });
    assert_eq!(up.elapsed().as_secs(), QUIET.as_secs());
    lab.respond(&ping, ResponseError::NONE).await;
    let answered = Instant::now();
    assert_eq!(lab.read().await.body, Body::Ping { context: None });
    assert!(matches!(lab.read().await.body, Body::Close { reason: CloseReason::Timeouts }));
    assert!(matches!(lab.held.await.unwrap(), Ended::Silent { what: "Ping" }));
    assert_eq!(answered.elapsed().as_secs(), (QUIET + PATIENCE).as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_view_that_does_not_come_is_an_error_and_holds_up_nothing_else() {
    let mut lab = Lab::up(Fixed(false)).await;
    let asked = Instant::now();
    lab.write(ByteOrder::Network, 5, Lab::get()).await;
    lab.outbox.put(news(1));
    let notify = lab.read().await;
    assert!(matches!(&notify.body, Body::Notify { bindings, .. } if bindings.len() == 2), "{notify:?}");
    assert!(asked.elapsed().is_zero());
    lab.respond(&notify, ResponseError::NONE).await;
    let answer = lab.read().await;
    assert_eq!((answer.packet, value(&answer).0), (5, ResponseError::GENERAL));
    assert_eq!(asked.elapsed().as_secs(), VIEW_PATIENCE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_master_that_does_not_read_is_given_up() {
    let mut lab = Lab::up(Fixed(true)).await;
    // Far more answers than fit into the wire.
    for packet in 0..40 {
        lab.write(ByteOrder::Network, packet, Lab::get()).await;
    }
    for number in 0..100 {
        lab.outbox.put(news(number));
    }
    let body = Body::TestSet { context: None, bindings: Vec::new() };
    let mut sent = 0;
    let gone = loop {
        let pdu =
            Pdu { order: ByteOrder::Network, session: 77, transaction: 1, packet: 1, body: body.clone() };
        match tokio::time::timeout(PATIENCE * 2, lab.wire.write_all(&pdu.encode())).await {
            Ok(Ok(())) => sent += 1,
            Ok(Err(_)) => break true,
            Err(_) => break false,
        }
    };
    assert!(gone && sent > 0, "the connection is closed after {sent} requests");
    assert!(matches!(lab.held.await.unwrap(), Ended::Deaf | Ended::Silent { what: "Notify" }));
    assert_eq!(lab.outbox.take().await, news(0), "what was not confirmed waits for the next session");
}

#[tokio::test(start_paused = true)]
async fn notifications_without_a_response_are_given_back_in_order() {
    let mut lab = Lab::up(Fixed(true)).await;
    (1..=3).for_each(|number| lab.outbox.put(news(number)));
    let first = lab.read().await;
    lab.respond(&first, ResponseError::NONE).await;
    lab.read().await;
    lab.read().await;
    let body = Body::Close { reason: CloseReason::Shutdown };
    lab.write(ByteOrder::Network, 9, body).await;
    assert!(matches!(lab.held.await.unwrap(), Ended::Closed(CloseReason::Shutdown)));
    assert_eq!([lab.outbox.take().await, lab.outbox.take().await], [news(2), news(3)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_ends_the_session() {
    let mut lab = Lab::start(Fixed(true));
    let open = lab.read().await;
    lab.respond(&open, ResponseError(256)).await;
    assert_eq!(lab.held.await.unwrap().to_string(), "the master agent refused the Open: openFailed");
    let mut lab = Lab::start(Fixed(true));
    let open = lab.read().await;
    lab.respond(&open, ResponseError::NONE).await;
    let register = lab.read().await;
    lab.respond(&register, ResponseError::DUPLICATE_REGISTRATION).await;
    assert!(matches!(lab.read().await.body, Body::Close { reason: CloseReason::Other }));
    let ended = lab.held.await.unwrap().to_string();
    assert_eq!(ended, "the master agent refused the Register: duplicateRegistration");
}

#[tokio::test(start_paused = true)]
async fn rubbish_ends_the_session_and_a_bad_request_is_told_so() {
    let mut lab = Lab::up(Fixed(true)).await;
    let mut octets =
        Pdu { order: ByteOrder::Network, session: 77, transaction: 1, packet: 6, body: Lab::get() }.encode();
    octets[HEADER] = 200;
    lab.wire.write_all(&octets).await.unwrap();
    let answer = lab.read().await;
    assert_eq!((answer.packet, value(&answer).0), (6, ResponseError::PARSE_ERROR));
    lab.wire.write_all(&[0xff; 64]).await.unwrap();
    assert!(matches!(lab.read().await.body, Body::Close { reason: CloseReason::ParseError }));
    assert!(matches!(lab.held.await.unwrap(), Ended::Decode(DecodeError::Version(0xff))));
}

#[tokio::test(start_paused = true)]
async fn who_ends_says_so() {
    let mut lab = Lab::up(Fixed(true)).await;
    drop(lab.stop.take());
    assert!(matches!(lab.read().await.body, Body::Close { reason: CloseReason::Shutdown }));
    assert!(matches!(lab.held.await.unwrap(), Ended::Stopped));
}

#[test]
fn a_time_before_the_masters_start_is_zero() {
    let now = std::time::Instant::now();
    let master = Master { started: now };
    assert_eq!(master.stamp(now + Duration::from_millis(1234)), 123);
    assert_eq!(master.stamp(now.checked_sub(Duration::from_secs(1)).unwrap()), 0);
    assert_eq!(master.stamp(now + Duration::from_millis(((1 << 32) + 5) * 10)), 5);
}
