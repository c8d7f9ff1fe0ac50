//! What a peer may make this side hold, and what happens when it wants more.

use super::*;

fn unreliable() -> Side {
    let settings = Settings {
        unreliable: true,
        ..settings()
    };
    let opening = Opening::default();
    let codec = Arc::new(Codec::new());
    let core = Core::acceptor(settings, "c", &opening, 1, 0, codec, (Instant::now(), 0));
    Side::new(core.unwrap())
}

fn request(id: u64, len: usize) -> ProtocolMessage {
    ProtocolMessage::request(id, "m", ContentType::Bytes, vec![0; len])
}

fn event(len: usize) -> ProtocolMessage {
    ProtocolMessage::event("e", ContentType::Bytes, vec![0; len])
}

fn answers(side: &mut Side, now: Instant) -> Vec<ProtocolMessage> {
    let mut reader = FrameReader::new();
    reader.push(side.output(now).1);
    let mut messages = Vec::new();
    while let Some(packet) = reader.next().unwrap() {
        messages.push(
            ProtocolMessage::decode(&packet.header, &packet.body)
                .unwrap()
                .0,
        );
    }
    messages
}

#[test]
fn requests_beyond_the_budget_are_refused_whether_they_wait_or_run() {
    for has_service in [false, true] {
        let mut lab = Lab::open();
        let now = lab.now;
        lab.far.core.requests.serve(has_service);
        answers(&mut lab.far, now);
        for id in 1..=10 {
            inject(
                &mut lab.far,
                now,
                PacketType::Data,
                &request(id, BUDGET / 4),
            )
            .unwrap();
        }
        let refused = answers(&mut lab.far, now);
        assert_eq!(refused.len(), 7, "three fit");
        assert!(
            refused
                .iter()
                .all(|message| message.method == methods::ERROR)
        );
        assert_eq!(lab.far.core.load().2, 3);
        // Gone with the handlers, whether or not their answers were taken.
        let calls = std::mem::take(&mut lab.far.effects.run);
        let held = lab.far.core.requests.take_held();
        drop((calls, held));
        assert_eq!(lab.far.core.settings.budget.used_bytes(), 0);
    }
}

#[test]
fn short_requests_that_run_are_not_counted() {
    let mut lab = Lab::open();
    let now = lab.now;
    inject(&mut lab.far, now, PacketType::Data, &request(5, 64)).unwrap();
    assert_eq!(lab.far.effects.run.len(), 1);
    assert_eq!(lab.far.core.settings.budget.used_bytes(), 0);
}

#[test]
fn events_beyond_the_budget_end_the_stream_although_there_is_credit() {
    let mut lab = Lab::open();
    let now = lab.now;
    inject(&mut lab.near, now, PacketType::Data, &event(BUDGET - 1_000)).unwrap();
    assert_eq!(
        inject(&mut lab.near, now, PacketType::Data, &event(BUDGET - 1_000)),
        Err(NetworkError::MemoryLimit)
    );
    lab.near.event().unwrap().unwrap();
    assert_eq!(lab.near.core.settings.budget.used_bytes(), 0);
    let mut lab = Lab::open();
    inject(&mut lab.near, now, PacketType::Data, &event(BUDGET - 1_000)).unwrap();
    lab.near.core.discard_rest(&mut lab.near.effects);
    assert_eq!(lab.near.core.settings.budget.used_bytes(), 0);
}

#[test]
fn unread_datagrams_are_bounded_in_bytes_too() {
    let mut side = unreliable();
    for _ in 0..100 {
        side.core.handle_datagram(event(400), &mut side.effects);
    }
    assert_eq!(
        side.effects.counts.events_dropped, 98,
        "the window has 1,000 bytes"
    );
    assert!(side.event().is_some() && side.event().is_some() && side.event().is_none());
    assert_eq!(side.core.settings.budget.used_bytes(), 0);
    // One that is larger than the window takes the place of all others.
    side.core.handle_datagram(event(400), &mut side.effects);
    side.core.handle_datagram(event(5_000), &mut side.effects);
    assert_eq!(side.event().unwrap().unwrap().payload.len(), 5_000);
    assert!(side.event().is_none());
}

#[test]
fn discarded_datagrams_return_no_credit() {
    let mut side = unreliable();
    side.output(Instant::now());
    let lane = side.core.add_lane("e");
    for _ in 0..8 {
        side.core.handle_datagram(event(1), &mut side.effects);
    }
    side.core.discard_rest(&mut side.effects);
    side.core.remove_lane(lane, &mut side.effects);
    assert_eq!(side.effects.counts.events_discarded, 8);
    assert_eq!(
        side.output(Instant::now()).0,
        Step::Wait,
        "they were not charged"
    );
}

#[test]
fn a_request_with_an_earlier_deadline_wakes_who_keeps_the_time() {
    let mut lab = Lab::open();
    lab.far.effects = Effects::default();
    assert_eq!(lab.far.output(lab.now).0, Step::Wait);
    for (id, seconds, wakes) in [(2, 20, true), (3, 30, false), (4, 10, true)] {
        lab.near.call(lab.now, id, seconds).unwrap();
        let (_, bytes) = lab.near.output(lab.now);
        lab.far.feed(lab.now, bytes).unwrap();
        assert_eq!(
            lab.far.effects.writer.take().is_some(),
            wakes,
            "{seconds} s"
        );
        assert_eq!(lab.far.output(lab.now).0, Step::Wait);
    }
}

#[test]
fn refusals_for_want_of_a_place_are_bounded() {
    let mut lab = Lab::open();
    let now = lab.now;
    for id in 1..400_000 {
        inject(&mut lab.far, now, PacketType::Data, &request(id, 0)).unwrap();
        let call = lab.far.effects.run.pop();
        let Some(call) = call else { break };
        let key = (call.generation, call.id);
        lab.far
            .core
            .answer_refusal(now, key, &NetworkError::Busy, &mut lab.far.effects);
    }
    assert!(matches!(lab.far.core.phase(), Phase::Ended { .. }));
    assert!(lab.far.core.outbox.queued_bytes() < 2 * REFUSAL_ALLOWANCE);
}

#[test]
fn kept_events_are_bounded_by_our_window_whatever_the_peer_grants() {
    let settings = Settings {
        policy: EventPolicy::DropOldest,
        ..settings()
    };
    let opening = Opening {
        window: Window {
            events: u32::MAX,
            bytes: u32::MAX,
        },
        ..Opening::default()
    };
    let now = Instant::now();
    let codec = Arc::new(Codec::new());
    let core = Core::acceptor(settings, "c", &opening, 1, 0, codec, (now, 0)).unwrap();
    let mut side = Side::new(core);
    let payload = Payload::bytes(vec![7; 400]);
    for _ in 0..10_000 {
        side.core
            .send_event(now, "e", &payload, &mut None, &mut side.effects)
            .unwrap();
    }
    let counts = side.effects.counts;
    assert_eq!(counts.events_sent + counts.events_dropped + 2, 10_000);
}

#[test]
fn closing_cancels_what_the_peer_runs_for_us() {
    let mut lab = Lab::open();
    for id in [2, 3] {
        lab.near.call(lab.now, id, 9).unwrap();
    }
    lab.pump();
    lab.near.core.abandon_call(3, &mut lab.near.effects);
    let tokens = [2, 3].map(|id| lab.far.core.token(0, id));
    lab.near
        .core
        .end(NetworkError::closed(), true, &mut lab.near.effects);
    assert_eq!(lab.near.result(2), Some(Err(NetworkError::closed())));
    let (step, bytes) = lab.near.output(lab.now);
    assert_eq!(step, Step::Write);
    lab.far.feed(lab.now, bytes).unwrap();
    assert!(tokens.iter().all(|token| token.is_cancelled()));
    assert_eq!(lab.near.output(lab.now).0, Step::Finish);
}

#[test]
fn a_loss_after_the_peer_s_orderly_end_is_that_end() {
    let mut lab = Lab::open();
    lab.near.core.handle_end(&mut lab.near.effects);
    lab.near.core.handle_loss(&mut lab.near.effects);
    assert!(matches!(
        lab.near.core.phase(),
        Phase::Ended {
            error: NetworkError::Closed { .. },
            ..
        }
    ));
}

fn resuming() -> Lab {
    let mut lab = Lab::open();
    lab.near.core.handle_loss(&mut lab.near.effects);
    lab.near
        .core
        .reattach(lab.now, 9, 4, PEER, &mut lab.near.effects)
        .unwrap();
    lab
}

#[test]
fn a_slow_resumption_is_a_loss_and_not_the_end() {
    let mut lab = resuming();
    lab.now += Duration::from_secs(10);
    lab.near.core.handle_timeout(lab.now, &mut lab.near.effects);
    assert_eq!(*lab.near.core.phase(), Phase::Lost);
}

#[test]
fn a_resumption_that_is_refused_for_now_is_tried_again() {
    let name = "c".to_owned();
    let available = Vec::new();
    let cases = [
        (NetworkError::Busy, true),
        (NetworkError::draining(), true),
        (NetworkError::Unavailable { name: name.clone() }, true),
        (NetworkError::ChannelNotFound { name, available }, false),
    ];
    for (error, again) in cases {
        let mut lab = resuming();
        let refusal = Payload::json(&error.to_remote()).unwrap();
        let refusal = ProtocolMessage {
            msg_type: MessageType::Error,
            ..ProtocolMessage::response(9, refusal.content_type, refusal.bytes)
        };
        let now = lab.now;
        inject(&mut lab.near, now, PacketType::Handshake, &refusal).unwrap();
        assert_eq!(*lab.near.core.phase() == Phase::Lost, again, "{error}");
    }
}

#[test]
fn a_frame_of_the_peer_s_that_is_too_large_says_nothing_of_execution() {
    let theirs = NetworkError::from(WireError::FrameTooLarge { len: 9, max: 8 });
    let ours = NetworkError::from(WireError::TooLarge { len: 9, max: 8 });
    assert!(!theirs.is_not_executed());
    assert!(ours.is_not_executed());
}

#[test]
fn who_stops_waiting_for_events_leaves_nothing_behind() {
    let mut lab = Lab::open();
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..10 {
        let mut waiting = None;
        for _ in 0..2 {
            let effects = &mut lab.near.effects;
            let polled = lab
                .near
                .core
                .poll_event(Lane::Rest, &mut waiting, &mut cx, effects);
            assert!(polled.is_pending());
        }
        lab.near.core.stop_waiting(Lane::Rest, waiting.unwrap());
    }
    let event = event(1);
    lab.near.effects.wakers.clear();
    let now = lab.now;
    inject(&mut lab.near, now, PacketType::Data, &event).unwrap();
    assert_eq!(lab.near.effects.wakers.len(), 0);
}

/// A side whose connection has as much unwritten output as it may.
fn with_full_output(policy: EventPolicy) -> (Side, Arc<Budget>) {
    let budget = Arc::new(Budget::new(0));
    let settings = Settings {
        policy,
        unwritten: Arc::clone(&budget),
        ..settings()
    };
    let opening = Opening {
        in_flight: LIMIT,
        ..Opening::default()
    };
    let now = Instant::now();
    let codec = Arc::new(Codec::new());
    let core = Core::acceptor(settings, "c", &opening, 1, 0, codec, (now, 0)).unwrap();
    let mut side = Side::new(core);
    side.core.set_has_service(&mut side.effects);
    (side, budget)
}

#[test]
fn above_the_connection_s_limit_a_channel_sends_one_message_at_a_time() {
    let (mut side, budget) = with_full_output(EventPolicy::Wait);
    let now = Instant::now();
    for round in 0..3 {
        // The acknowledgement, or the call before, is taken and not written until the writer asks again.
        assert_eq!(side.call(now, 100 + round, 9), Err(Refused::Full));
        assert_eq!(side.output(now).0, Step::Write);
        assert_eq!(side.call(now, 100 + round, 9), Err(Refused::Full));
        assert!(budget.used_bytes() > 0 && !side.core.take_made_room());
        assert_eq!(side.output(now).0, Step::Wait);
        assert!(side.core.take_made_room(), "who waited may try again");
        assert_eq!(budget.used_bytes(), 0);
        assert_eq!(side.call(now, 100 + round, 9), Ok(()));
    }
    side.core.handle_loss(&mut side.effects);
    assert_eq!(budget.used_bytes(), 0, "what is not written is dropped");
}

#[test]
fn above_the_connection_s_limit_only_the_newest_event_is_kept() {
    let (mut side, budget) = with_full_output(EventPolicy::DropOldest);
    let now = Instant::now();
    side.output(now);
    for number in 0..100_u8 {
        let payload = Payload::bytes(vec![number; 100]);
        side.core
            .send_event(now, "e", &payload, &mut None, &mut side.effects)
            .unwrap();
    }
    assert_eq!(side.effects.counts.events_dropped, 99);
    assert!(budget.used_bytes() <= 2 * 1024, "{}", budget.used_bytes());
    assert_eq!(side.output(now).0, Step::Wait);
    side.core.output_taken(now, &mut side.effects);
    let sent = answers(&mut side, now);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].payload[0], 99);
    side.output(now);
    assert_eq!(budget.used_bytes(), 0);
}

#[test]
fn above_the_connection_s_limit_few_refusals_are_queued() {
    let (mut side, budget) = with_full_output(EventPolicy::Wait);
    let now = Instant::now();
    side.core.drain_here();
    let asked = (1..100_000).take_while(|id| {
        let asked = inject(&mut side, now, PacketType::Data, &request(*id, 0));
        asked.is_ok()
    });
    assert!(asked.count() > 100, "some are queued");
    assert!(budget.used_bytes() < 2 * REFUSALS_OVER_BUDGET);
}
