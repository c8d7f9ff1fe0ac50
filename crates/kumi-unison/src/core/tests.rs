//! Two cores, a clock moved by hand, and whatever a peer may do wrong.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;

mod credit;
mod limits;

use super::*;
use crate::error::RemoteError;
use crate::wire::FrameReader;

const LIMIT: u32 = 16;
const BUDGET: usize = 100_000;
const UNWRITTEN: usize = 1 << 24;
const PEER: Option<SocketAddr> = Some(SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7400)));

fn settings() -> Settings {
    Settings {
        schema: None,
        persistent: true,
        policy: EventPolicy::Wait,
        window: Window {
            events: 8,
            bytes: 1_000,
        },
        max_in_flight: LIMIT,
        output_limit_bytes: 1 << 20,
        open_timeout: Duration::from_secs(10),
        unreliable: false,
        part_of: None,
        budget: Arc::new(Budget::new(BUDGET)),
        unwritten: Arc::new(Budget::new(UNWRITTEN)),
        peer: PEER,
    }
}

/// One side, with what came out of it.
struct Side {
    core: Core,
    effects: Effects,
}

impl Side {
    fn new(core: Core) -> Self {
        Self {
            core,
            effects: Effects::default(),
        }
    }

    fn output(&mut self, now: Instant) -> (Step, Bytes) {
        let mut chunks = Vec::new();
        let stream = self.core.generation();
        let step = self
            .core
            .take_output(stream, now, &mut chunks, Waker::noop());
        (step, chunks.concat().into())
    }

    fn call(&mut self, now: Instant, id: u64, seconds: u64) -> Result<(), Refused> {
        let payload = Payload::bytes(&b"question"[..]);
        let deadline = now + Duration::from_secs(seconds);
        let call = NewCall {
            id,
            method: "m",
            payload: &payload,
            deadline,
            trace: None,
        };
        self.core
            .start_call(now, &call, &mut None, &mut self.effects)
    }

    fn result(&mut self, id: u64) -> Option<Result<Payload, NetworkError>> {
        match self
            .core
            .poll_call(id, &mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    fn event(&mut self) -> Option<Result<ProtocolMessage, NetworkError>> {
        let mut cx = Context::from_waker(Waker::noop());
        match self
            .core
            .poll_event(Lane::Rest, &mut None, &mut cx, &mut self.effects)
        {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    fn answer(&mut self, now: Instant, call: &IncomingCall) {
        let key = (call.generation, call.id);
        let answer = Ok(Payload::bytes(&b"answer"[..]));
        self.core.answer(now, key, &answer, None, &mut self.effects);
    }

    fn feed(&mut self, now: Instant, bytes: Bytes) -> Result<(), NetworkError> {
        let mut reader = FrameReader::new();
        reader.push(bytes);
        while let Some(packet) = reader.next()? {
            let (message, metadata) = ProtocolMessage::decode(&packet.header, &packet.body)?;
            self.core
                .handle(now, &packet.header, message, metadata, &mut self.effects)?;
        }
        assert!(!reader.is_partial(), "output ends with a frame");
        Ok(())
    }
}

/// An opener and an acceptor.
struct Lab {
    now: Instant,
    near: Side,
    far: Side,
}

impl Lab {
    fn new() -> Self {
        let now = Instant::now();
        let codec = Arc::new(Codec::new());
        let core = Core::opener(settings(), "c", 1, 0, Arc::clone(&codec), (now, 0)).unwrap();
        let mut near = Side::new(core);
        let opening = Opening {
            window: settings().window,
            in_flight: LIMIT,
            ..Opening::default()
        };
        let core = Core::acceptor(settings(), "c", &opening, 1, 0, codec, (now, 0)).unwrap();
        let (_, opening) = near.output(now);
        assert!(!opening.is_empty());
        let mut far = Side::new(core);
        far.core.set_has_service(&mut far.effects);
        Self { now, near, far }
    }

    fn open() -> Self {
        let mut lab = Self::new();
        lab.pump();
        assert_eq!(*lab.near.core.phase(), Phase::Open);
        lab
    }

    /// Carries bytes to and fro until there are none.
    fn pump(&mut self) {
        loop {
            let (_, there) = self.near.output(self.now);
            let (_, back) = self.far.output(self.now);
            if there.is_empty() && back.is_empty() {
                return;
            }
            self.far.feed(self.now, there).unwrap();
            self.near.feed(self.now, back).unwrap();
        }
    }
}

/// A message as the peer's next packet.
fn packet(
    side: &Side,
    packet_type: PacketType,
    message: &ProtocolMessage,
) -> (PacketHeader, Bytes) {
    let frame = crate::wire::encode_frame(packet_type, message, &Codec::new()).unwrap();
    let mut reader = FrameReader::new();
    reader.push(frame.into());
    let mut packet = reader.next().unwrap().unwrap();
    packet.header.sequence = side.core.expected_sequence;
    (packet.header, packet.body)
}

fn inject(
    side: &mut Side,
    now: Instant,
    packet_type: PacketType,
    message: &ProtocolMessage,
) -> Result<(), NetworkError> {
    let (header, body) = packet(side, packet_type, message);
    let (message, metadata) = ProtocolMessage::decode(&header, &body).unwrap();
    side.core
        .handle(now, &header, message, metadata, &mut side.effects)
}

#[test]
fn a_call_is_answered_once() {
    let mut lab = Lab::open();
    lab.near.call(lab.now, 2, 1).unwrap();
    assert_eq!(lab.near.result(2), None);
    lab.pump();
    let call = lab.far.effects.run.pop().unwrap();
    assert_eq!(
        (call.method.as_str(), &call.payload.bytes[..]),
        ("m", &b"question"[..])
    );
    assert_eq!(call.deadline, Some(lab.now + Duration::from_secs(1)));
    lab.far.answer(lab.now, &call);
    lab.far.answer(lab.now, &call);
    lab.pump();
    assert_eq!(lab.near.result(2), Some(Ok(Payload::bytes(&b"answer"[..]))));
    assert_eq!(
        lab.near.result(2),
        Some(Err(NetworkError::Cancelled)),
        "taken already"
    );
    assert_eq!(lab.near.core.load(), (0, 0, 0));
    assert_eq!(lab.far.core.load(), (0, 0, 0));
}

#[test]
fn what_a_peer_must_not_do_is_an_error() {
    let response = |id| ProtocolMessage::response(id, ContentType::Bytes, Bytes::new());
    let event = |name: &str, len| ProtocolMessage::event(name, ContentType::Bytes, vec![0; len]);
    let control =
        |name: &str, payload: Vec<u8>| ProtocolMessage::event(name, ContentType::Bytes, payload);
    let request = |id| ProtocolMessage::request(id, "m", ContentType::Bytes, Bytes::new());
    let cases: [(&str, PacketType, ProtocolMessage); 9] = [
        ("an answer to no request", PacketType::Data, response(99)),
        (
            "an acknowledgement that was not expected",
            PacketType::Handshake,
            response(1),
        ),
        ("a request as control", PacketType::Control, request(9)),
        ("a second opening", PacketType::Handshake, request(9)),
        ("a reserved event", PacketType::Data, event("__resumed", 0)),
        (
            "a CANCEL of broken length",
            PacketType::Control,
            control(methods::CANCEL, vec![0; 7]),
        ),
        (
            "a credit of broken length",
            PacketType::Control,
            control(methods::CREDIT, vec![0; 7]),
        ),
        (
            "credit beyond the window",
            PacketType::Control,
            control(methods::CREDIT, vec![1; 8]),
        ),
        ("an answer as heartbeat", PacketType::Heartbeat, response(9)),
    ];
    for (what, packet_type, message) in cases {
        let mut lab = Lab::open();
        let now = lab.now;
        assert!(
            inject(&mut lab.near, now, packet_type, &message).is_err(),
            "{what}"
        );
    }
}

#[test]
fn a_packet_out_of_sequence_is_an_error() {
    let mut lab = Lab::open();
    let message = ProtocolMessage::event("e", ContentType::Bytes, Bytes::new());
    let (mut header, body) = packet(&lab.near, PacketType::Data, &message);
    for sequence in [0, header.sequence + 1] {
        header.sequence = sequence;
        let (message, metadata) = ProtocolMessage::decode(&header, &body).unwrap();
        let result =
            lab.near
                .core
                .handle(lab.now, &header, message, metadata, &mut lab.near.effects);
        assert!(matches!(
            result,
            Err(NetworkError::Wire(WireError::Sequence { .. }))
        ));
    }
}

#[test]
fn an_id_in_use_is_an_error_and_one_answered_may_come_again() {
    let mut lab = Lab::open();
    let now = lab.now;
    let request = ProtocolMessage::request(5, "m", ContentType::Bytes, Bytes::new());
    inject(&mut lab.far, now, PacketType::Data, &request).unwrap();
    assert!(inject(&mut lab.far, now, PacketType::Data, &request).is_err());
    let call = lab.far.effects.run.pop().unwrap();
    lab.far.answer(now, &call);
    assert_eq!(lab.far.core.load(), (0, 0, 0));
}

#[test]
fn an_event_without_credit_is_an_error() {
    let mut lab = Lab::open();
    let now = lab.now;
    let event = ProtocolMessage::event("e", ContentType::Bytes, Bytes::new());
    for _ in 0..settings().window.events {
        inject(&mut lab.near, now, PacketType::Data, &event).unwrap();
    }
    assert!(inject(&mut lab.near, now, PacketType::Data, &event).is_err());
    let mut lab = Lab::open();
    let big = ProtocolMessage::event("e", ContentType::Bytes, vec![0; 5_000]);
    inject(&mut lab.near, now, PacketType::Data, &big).unwrap();
    inject(&mut lab.near, now, PacketType::Data, &big).unwrap();
    assert!(
        inject(&mut lab.near, now, PacketType::Data, &big).is_err(),
        "two halves are all"
    );
}

#[test]
fn credit_comes_back_as_events_are_taken() {
    let mut lab = Lab::open();
    let payload = Payload::bytes(&b"x"[..]);
    let mut sent = 0;
    for _ in 0..100 {
        while lab
            .far
            .core
            .send_event(lab.now, "e", &payload, &mut None, &mut lab.far.effects)
            .is_ok()
        {
            sent += 1;
        }
        lab.pump();
        while let Some(event) = lab.near.event() {
            event.unwrap();
        }
        lab.pump();
    }
    assert_eq!(sent, 800);
}

#[test]
fn a_deadline_ends_the_call_and_cancels_its_handler() {
    let mut lab = Lab::open();
    lab.near.call(lab.now, 2, 1).unwrap();
    lab.near.call(lab.now, 3, 5).unwrap();
    lab.pump();
    let calls = std::mem::take(&mut lab.far.effects.run);
    let token = lab.far.core.token(0, 2);
    lab.now += Duration::from_millis(999);
    lab.near.core.handle_timeout(lab.now, &mut lab.near.effects);
    assert_eq!(lab.near.result(2), None);
    lab.now += Duration::from_millis(1);
    assert_eq!(lab.near.core.next_deadline(), Some(lab.now));
    lab.near.core.handle_timeout(lab.now, &mut lab.near.effects);
    assert_eq!(lab.near.result(2), Some(Err(NetworkError::deadline())));
    assert_eq!(
        lab.near.core.next_deadline(),
        Some(lab.now + Duration::from_secs(4))
    );
    assert_eq!(
        lab.near.core.load(),
        (1, 1, 0),
        "counted until it is answered"
    );
    assert!(!token.is_cancelled());
    lab.pump();
    assert!(token.is_cancelled());
    for call in &calls {
        lab.far.answer(lab.now, call);
    }
    lab.pump();
    assert_eq!(lab.near.effects.counts.late, 1);
    assert_eq!(lab.near.result(3), Some(Ok(Payload::bytes(&b"answer"[..]))));
    assert_eq!(lab.near.core.load(), (0, 0, 0));
}

#[test]
fn a_handler_s_token_fires_at_the_deadline_without_any_message() {
    let mut lab = Lab::open();
    lab.near.call(lab.now, 2, 1).unwrap();
    lab.pump();
    let token = lab.far.core.token(0, 2);
    lab.now += Duration::from_secs(1);
    lab.far.core.handle_timeout(lab.now, &mut lab.far.effects);
    assert!(token.is_cancelled());
    assert_eq!(lab.far.core.next_deadline(), None);
    assert!(
        lab.far.core.token(0, 77).is_cancelled(),
        "what is not known counts as cancelled"
    );
}

#[test]
fn calls_given_up_make_no_room_for_more() {
    let mut lab = Lab::open();
    for id in 2..2 + u64::from(LIMIT) {
        lab.near.call(lab.now, id, 9).unwrap();
    }
    assert_eq!(lab.near.call(lab.now, 100, 9), Err(Refused::Full));
    for id in 2..2 + u64::from(LIMIT) {
        lab.near.core.abandon_call(id, &mut lab.near.effects);
    }
    assert_eq!(lab.near.core.load(), (0, LIMIT as usize, 0));
    assert_eq!(lab.near.call(lab.now, 100, 9), Err(Refused::Full));
    lab.pump();
    assert_eq!(lab.far.effects.counts.cancels_received, u64::from(LIMIT));
    for call in std::mem::take(&mut lab.far.effects.run) {
        lab.far.answer(lab.now, &call);
    }
    lab.pump();
    assert_eq!(lab.near.core.load(), (0, 0, 0));
    assert_eq!(lab.near.call(lab.now, 100, 9), Ok(()));
}

#[test]
fn requests_are_held_until_there_is_a_service() {
    let mut lab = Lab::open();
    lab.far.core.requests.serve(false);
    for (id, seconds) in [(2, 9), (3, 9), (4, 1)] {
        lab.near.call(lab.now, id, seconds).unwrap();
    }
    lab.pump();
    lab.near.core.abandon_call(3, &mut lab.near.effects);
    lab.pump();
    assert_eq!(
        lab.near.core.load(),
        (2, 0, 0),
        "one that no handler saw is answered at once"
    );
    lab.now += Duration::from_secs(1);
    lab.far.core.handle_timeout(lab.now, &mut lab.far.effects);
    lab.pump();
    assert_eq!(lab.near.result(4), Some(Err(NetworkError::deadline())));
    lab.far.core.set_has_service(&mut lab.far.effects);
    let run: Vec<u64> = lab.far.effects.run.iter().map(|call| call.id).collect();
    assert_eq!(run, [2]);
}

#[test]
fn loss_tells_what_may_have_run() {
    let mut lab = Lab::open();
    lab.near.call(lab.now, 2, 9).unwrap();
    lab.near.output(lab.now);
    lab.near.call(lab.now, 3, 9).unwrap();
    lab.near.core.handle_loss(&mut lab.near.effects);
    let lost = |maybe_executed| Some(Err(NetworkError::lost(maybe_executed, PEER)));
    assert_eq!(lab.near.result(2), lost(true));
    assert_eq!(lab.near.result(3), lost(false));
    assert_eq!(
        lab.near.call(lab.now, 4, 9),
        Err(Refused::Full),
        "waits for the next stream"
    );
    assert_eq!(lab.near.core.load(), (0, 0, 0));
    assert_eq!(lab.near.output(lab.now).0, Step::Exit);
}

#[test]
fn a_reattached_channel_says_so_and_ignores_answers_of_before() {
    let mut lab = Lab::open();
    lab.far.core.settings.persistent = true;
    lab.near.core.set_has_service(&mut lab.near.effects);
    let now = lab.now;
    let request = ProtocolMessage::request(5, "m", ContentType::Bytes, Bytes::new());
    inject(&mut lab.near, now, PacketType::Data, &request).unwrap();
    let old = lab.near.effects.run.pop().unwrap();
    let token = lab.near.core.token(old.generation, old.id);
    let event = ProtocolMessage::event("e", ContentType::Bytes, vec![0; 100]);
    for _ in 0..8 {
        inject(&mut lab.near, now, PacketType::Data, &event).unwrap();
    }
    lab.near.core.handle_loss(&mut lab.near.effects);
    assert!(token.is_cancelled());
    lab.near
        .core
        .reattach(now, 9, 4, PEER, &mut lab.near.effects)
        .unwrap();
    assert!(
        lab.near
            .core
            .reattach(now, 10, 4, PEER, &mut lab.near.effects)
            .is_err(),
        "it has a stream"
    );

    let (_, bytes) = lab.near.output(now);
    let mut reader = FrameReader::new();
    reader.push(bytes);
    let opening = reader.next().unwrap().unwrap();
    let (opening, _) = ProtocolMessage::decode(&opening.header, &opening.body).unwrap();
    assert_eq!((opening.id, opening.method.as_str()), (9, "__channel:c"));
    let opening: Opening = payload_of(opening).to_json().unwrap();
    assert_eq!(
        opening.held,
        Window {
            events: 8,
            bytes: 800
        },
        "what was not taken still counts"
    );
    let ack = Payload::json(&serde_json::json!({ "typed": true })).unwrap();
    let ack = ProtocolMessage::response(9, ack.content_type, ack.bytes);
    inject(&mut lab.near, now, PacketType::Handshake, &ack).unwrap();
    assert_eq!(*lab.near.core.phase(), Phase::Open);
    let mut chunks = Vec::new();
    let late = lab
        .near
        .core
        .take_output(0, now, &mut chunks, Waker::noop());
    assert_eq!(
        (late, chunks.len()),
        (Step::Exit, 0),
        "the writer of before gets nothing"
    );
    assert!(lab.near.core.reader_should_stop(0, Waker::noop()));
    lab.near.answer(now, &old);
    assert_eq!(
        lab.near.output(now).0,
        Step::Wait,
        "no call waits for that answer"
    );
    assert!(
        inject(&mut lab.near, now, PacketType::Data, &event).is_err(),
        "the window is still full"
    );
    for _ in 0..8 {
        assert_eq!(lab.near.event().unwrap().unwrap().method, "e");
    }
    assert!(lab.near.event().unwrap().unwrap().is_resumed());
    assert!(lab.near.event().is_none());
}

#[test]
fn a_refused_opening_fails_early_calls() {
    let mut lab = Lab::new();
    lab.near.call(lab.now, 2, 9).unwrap();
    let refusal = Payload::json(&NetworkError::Busy.to_remote()).unwrap();
    let refusal = ProtocolMessage {
        msg_type: MessageType::Error,
        ..ProtocolMessage::response(1, refusal.content_type, refusal.bytes)
    };
    let now = lab.now;
    inject(&mut lab.near, now, PacketType::Handshake, &refusal).unwrap();
    assert_eq!(lab.near.result(2), Some(Err(NetworkError::Busy)));
    assert_eq!(
        lab.near.call(now, 3, 9),
        Err(Refused::Error(NetworkError::Busy))
    );
    assert_eq!(lab.near.core.load(), (0, 0, 0));
}

#[test]
fn an_opening_without_an_answer_ends_in_time() {
    let mut lab = Lab::new();
    lab.near.call(lab.now, 2, 60).unwrap();
    lab.now += Duration::from_secs(10);
    assert_eq!(lab.near.core.next_deadline(), Some(lab.now));
    lab.near.core.handle_timeout(lab.now, &mut lab.near.effects);
    assert_eq!(lab.near.result(2), Some(Err(NetworkError::deadline())));
    assert_eq!(lab.near.output(lab.now).0, Step::Reset);
}

#[test]
fn the_writer_is_woken_when_a_step_both_queues_and_ends() {
    let mut lab = Lab::open();
    lab.near.effects = Effects::default();
    assert_eq!(lab.near.output(lab.now).0, Step::Wait);
    lab.near.call(lab.now, 2, 9).unwrap();
    assert!(lab.near.effects.writer.is_some());
    lab.near
        .core
        .end(NetworkError::closed(), true, &mut lab.near.effects);
    assert!(lab.near.effects.writer.is_some());
}

#[test]
fn a_peer_that_asks_and_does_not_read_is_cut_off() {
    let mut lab = Lab::open();
    let now = lab.now;
    lab.far.core.drain_here();
    let request = ProtocolMessage::request(1, "m", ContentType::Bytes, Bytes::new());
    let cut_off = (0..200_000)
        .find(|_| inject(&mut lab.far, now, PacketType::Data, &request).is_err())
        .expect("sooner or later");
    assert!(cut_off > 10_000);
    assert!(lab.far.core.outbox.queued_bytes() < 2 * REFUSAL_ALLOWANCE);
}

#[test]
fn the_peer_s_end_lets_running_requests_be_answered() {
    let mut lab = Lab::open();
    lab.near.call(lab.now, 2, 9).unwrap();
    lab.pump();
    let call = lab.far.effects.run.pop().unwrap();
    lab.far.core.handle_end(&mut lab.far.effects);
    assert_eq!(lab.far.output(lab.now).0, Step::Wait);
    lab.far.answer(lab.now, &call);
    assert_eq!(lab.far.output(lab.now).0, Step::Write);
    assert_eq!(lab.far.output(lab.now).0, Step::Finish);
    assert!(matches!(
        lab.far.core.phase(),
        Phase::Ended {
            error: NetworkError::Closed { .. },
            ..
        }
    ));
}

/// Whatever happens in whatever order, every call that was started ends exactly once and nothing is left.
#[test]
fn random_histories_end_every_call_once() {
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut lab = Lab::open();
        let mut open: HashMap<u64, ()> = HashMap::new();
        let mut running = Vec::new();
        let (mut next_id, mut ended, mut started, mut dropped) = (2, 0, 0, 0);
        for _ in 0..rng.usize(1..200) {
            match rng.u8(..10) {
                0..=3 => {
                    if lab.near.call(lab.now, next_id, rng.u64(1..5)).is_ok() {
                        open.insert(next_id, ());
                        started += 1;
                    }
                    next_id += 1;
                }
                4..=5 => lab.pump(),
                6 => {
                    running.append(&mut lab.far.effects.run);
                    if !running.is_empty() {
                        let call = running.swap_remove(rng.usize(..running.len()));
                        lab.far.answer(lab.now, &call);
                    }
                }
                7 => {
                    lab.now += Duration::from_millis(rng.u64(..2_000));
                    lab.near.core.handle_timeout(lab.now, &mut lab.near.effects);
                    lab.far.core.handle_timeout(lab.now, &mut lab.far.effects);
                }
                8 => {
                    if let Some(id) = open.keys().next().copied() {
                        open.remove(&id);
                        dropped += 1;
                        lab.near.core.abandon_call(id, &mut lab.near.effects);
                    }
                }
                _ => {}
            }
            let ids: Vec<u64> = open.keys().copied().collect();
            for id in ids {
                if lab.near.result(id).is_some() {
                    open.remove(&id);
                    ended += 1;
                }
            }
        }
        match rng.u8(..3) {
            0 => lab.near.core.handle_loss(&mut lab.near.effects),
            1 => lab.near.core.handle_end(&mut lab.near.effects),
            _ => lab
                .near
                .core
                .end(NetworkError::closed(), true, &mut lab.near.effects),
        }
        for id in open.into_keys() {
            assert!(lab.near.result(id).unwrap().is_err(), "seed {seed}");
            ended += 1;
        }
        assert_eq!(ended + dropped, started, "seed {seed}");
        assert_eq!(lab.near.core.calls.len(), 0, "seed {seed}");
        assert_eq!(lab.near.core.calls.waiting(), 0, "seed {seed}");
    }
}

#[test]
fn an_error_of_the_runtime_is_told_apart_from_a_handler_s() {
    let mut lab = Lab::open();
    for id in [2, 3] {
        lab.near.call(lab.now, id, 9).unwrap();
    }
    lab.pump();
    let busy = RemoteError::new("busy", "mine");
    let effects = &mut lab.far.effects;
    lab.far
        .core
        .answer(lab.now, (0, 2), &Err(busy.clone()), None, effects);
    lab.far
        .core
        .answer_refusal(lab.now, (0, 3), &NetworkError::Busy, effects);
    lab.pump();
    assert_eq!(lab.near.result(2), Some(Err(NetworkError::Remote(busy))));
    assert_eq!(lab.near.result(3), Some(Err(NetworkError::Busy)));
}
