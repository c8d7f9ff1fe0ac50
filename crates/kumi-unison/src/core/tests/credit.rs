//! When credit goes back, and who gets it.

use super::*;

/// A receiver with this window, whose acknowledgement is written.
fn receiver(now: Instant, events: u32) -> Side {
    let window = Window {
        events,
        bytes: 1_000,
    };
    let settings = Settings {
        window,
        ..settings()
    };
    let opening = Opening::default();
    let codec = Arc::new(Codec::new());
    let core = Core::acceptor(settings, "c", &opening, 1, 0, codec, (now, 0)).unwrap();
    let mut side = Side::new(core);
    side.output(now);
    side
}

fn send(side: &mut Side, now: Instant, method: &str, count: u32) {
    for _ in 0..count {
        let event = ProtocolMessage::event(method, ContentType::Bytes, Bytes::new());
        inject(side, now, PacketType::Data, &event).unwrap();
    }
}

fn take(side: &mut Side, lane: Lane) -> Option<String> {
    let mut cx = Context::from_waker(Waker::noop());
    match side
        .core
        .poll_event(lane, &mut None, &mut cx, &mut side.effects)
    {
        Poll::Ready(event) => Some(event.unwrap().method),
        Poll::Pending => None,
    }
}

/// Events of which the credit is returned now.
fn returned(side: &mut Side, now: Instant) -> Option<u32> {
    let (_, bytes) = side.output(now);
    let mut reader = FrameReader::new();
    reader.push(bytes);
    let packet = reader.next().unwrap()?;
    let (message, _) = ProtocolMessage::decode(&packet.header, &packet.body).unwrap();
    assert_eq!(message.method, methods::CREDIT);
    let events = message.payload.first_chunk::<4>().unwrap();
    Some(u32::from_le_bytes(*events))
}

#[test]
fn a_peer_without_credit_gets_what_is_owed_once_a_second() {
    let now = Instant::now();
    let mut side = receiver(now, 256);
    send(&mut side, now, "e", 256);
    assert_eq!(returned(&mut side, now), None);
    assert!(side.event().is_some());
    assert_eq!(returned(&mut side, now), Some(1));
    send(&mut side, now, "e", 1);
    assert!(side.event().is_some() && side.event().is_some());
    assert_eq!(returned(&mut side, now), None);
    let later = now + Duration::from_secs(1);
    assert_eq!(side.core.next_deadline(), Some(later));
    side.core.handle_timeout(later, &mut side.effects);
    assert_eq!(side.core.next_deadline(), None, "no timer without need");
    assert_eq!(returned(&mut side, later), Some(2));
    // A quarter of the window waits for no time.
    send(&mut side, later, "e", 2);
    for _ in 0..64 {
        assert!(side.event().is_some());
    }
    assert_eq!(returned(&mut side, later), Some(64));
}

#[test]
fn a_peer_that_has_credit_waits_for_a_quarter_of_the_window() {
    let now = Instant::now();
    let mut side = receiver(now, 256);
    send(&mut side, now, "e", 255);
    for _ in 0..63 {
        assert!(side.event().is_some());
    }
    assert_eq!(returned(&mut side, now), None);
    assert_eq!(side.core.next_deadline(), None);
    // With the last credit gone there is nothing to wait for.
    send(&mut side, now, "e", 1);
    assert_eq!(returned(&mut side, now), Some(63));
}

#[test]
fn byte_credit_that_keeps_the_largest_event_waiting_is_returned_too() {
    let now = Instant::now();
    let mut side = receiver(now, 256);
    let event = ProtocolMessage::event("e", ContentType::Bytes, vec![0; 100]);
    for _ in 0..6 {
        inject(&mut side, now, PacketType::Data, &event).unwrap();
    }
    assert!(side.event().is_some());
    assert_eq!(returned(&mut side, now), Some(1));
}

#[test]
fn events_that_are_not_asked_for_leave_half_of_the_window_to_the_others() {
    let now = Instant::now();
    let mut side = receiver(now, 8);
    let wanted = side.core.add_lane("a");
    assert_eq!(take(&mut side, wanted), None);
    for _ in 0..10 {
        send(&mut side, now, "b", 4);
        returned(&mut side, now);
    }
    assert_eq!(side.effects.counts.events_dropped, 36);
    send(&mut side, now, "a", 1);
    assert_eq!(take(&mut side, wanted).as_deref(), Some("a"));
    // The newest are there for a receiver that asks for them now, and are not dropped any more.
    let late = side.core.add_lane("b");
    send(&mut side, now, "b", 1);
    for _ in 0..5 {
        assert_eq!(take(&mut side, late).as_deref(), Some("b"));
    }
    assert_eq!(take(&mut side, late), None);
    assert_eq!(side.effects.counts.events_dropped, 36);
}

#[test]
fn events_that_came_before_any_receiver_waits_are_all_kept() {
    let now = Instant::now();
    let mut side = receiver(now, 8);
    send(&mut side, now, "b", 8);
    let (first, second) = (side.core.add_lane("a"), side.core.add_lane("b"));
    assert_eq!(take(&mut side, first), None);
    for _ in 0..8 {
        assert_eq!(take(&mut side, second).as_deref(), Some("b"));
    }
    assert_eq!(side.effects.counts.events_dropped, 0);
}

#[test]
fn a_full_window_of_events_without_a_receiver_makes_room_for_one_that_waits() {
    let now = Instant::now();
    let mut side = receiver(now, 8);
    send(&mut side, now, "b", 8);
    let wanted = side.core.add_lane("a");
    assert_eq!(take(&mut side, wanted), None);
    assert_eq!(returned(&mut side, now), Some(4));
    assert_eq!(side.effects.counts.events_dropped, 4);
}

#[test]
fn a_receiver_that_is_dropped_leaves_half_of_the_window_to_one_that_waits() {
    let now = Instant::now();
    let mut side = receiver(now, 8);
    let (wanted, unread) = (side.core.add_lane("a"), side.core.add_lane("b"));
    assert_eq!(take(&mut side, wanted), None);
    send(&mut side, now, "b", 8);
    assert_eq!(returned(&mut side, now), None, "a receiver may read them");
    side.core.remove_lane(unread, &mut side.effects);
    assert_eq!(returned(&mut side, now), Some(4));
    assert_eq!(side.effects.counts.events_dropped, 4);
}

#[test]
fn of_a_window_of_one_event_the_rest_keeps_none() {
    let now = Instant::now();
    let mut side = receiver(now, 1);
    let wanted = side.core.add_lane("a");
    assert_eq!(take(&mut side, wanted), None);
    send(&mut side, now, "b", 1);
    assert_eq!(side.effects.counts.events_dropped, 1);
    assert_eq!(returned(&mut side, now), Some(1));
}

#[test]
fn what_recv_was_called_for_is_never_dropped() {
    let now = Instant::now();
    let mut side = receiver(now, 8);
    assert!(side.event().is_none());
    let wanted = side.core.add_lane("a");
    assert_eq!(take(&mut side, wanted), None);
    send(&mut side, now, "b", 8);
    assert_eq!(take(&mut side, wanted), None);
    assert_eq!(side.effects.counts.events_dropped, 0);
    for _ in 0..8 {
        assert!(side.event().is_some());
    }
}

#[test]
fn of_the_rest_the_notes_stay() {
    let now = Instant::now();
    let mut side = receiver(now, 4);
    let wanted = side.core.add_lane("a");
    send(&mut side, now, "b", 1);
    side.core.inbox.resumed(&mut side.effects.wakers);
    assert!(take(&mut side, wanted).is_some(), "the note");
    assert_eq!(take(&mut side, wanted), None);
    send(&mut side, now, "b", 3);
    assert!(side.effects.counts.events_dropped > 0);
    assert!(side.event().unwrap().unwrap().is_resumed());
}
