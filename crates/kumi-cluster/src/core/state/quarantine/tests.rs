use super::OrderTaken::{Full, Imposed, Known, Lifted, Noted};
use super::QuarantineReason::Unreachable;
use super::*;
use crate::core::base::reason::MAX_REASON_BYTES;
use alloc::format;
use alloc::vec;
use proptest::prelude::*;

const MEMORY: Duration = Duration::from_secs(60);

fn authority(name: &str) -> Authority {
    Authority::new(name).expect("valid")
}

fn at(seconds: u64) -> TimerInstant {
    TimerInstant::from_millis(seconds * 1000)
}

fn order(name: &str, version: u64, seconds: u64) -> QuarantineRumor {
    QuarantineRumor {
        authority: authority(name),
        version,
        remaining_ms: seconds * 1000,
        remember_ms: (seconds + MEMORY.as_secs()) * 1000,
        text: ReasonText::escaped("bad disk"),
    }
}

#[test]
fn the_detector_blocks_one_uid_and_the_operator_all_of_them() {
    let mut table = QuarantineTable::new(9, MEMORY);
    let (a, one, two) = (authority("a:1"), NodeUid::from_raw(1), NodeUid::from_raw(2));
    assert!(table.quarantine(&a, one, Unreachable, Duration::from_secs(5), at(0)));
    assert!(table.blocks(&a, one, at(4)).is_some());
    assert!(table.blocks(&a, one, at(5)).is_none());
    assert!(table.blocks(&a, two, at(0)).is_none());
    assert_eq!(table.order(&order("a:1", 1, 10), at(0)), Imposed);
    let entry = table.blocks(&a, two, at(9)).expect("all lives are blocked");
    assert_eq!((entry.uid, entry.expires_at), (None, at(10)));
}

#[test]
fn stale_gossip_never_renews_a_quarantine_not_even_after_its_end() {
    let mut table = QuarantineTable::new(9, MEMORY);
    assert_eq!(table.order(&order("a:1", 7, 10), at(0)), Imposed);
    assert_eq!(table.order(&order("a:1", 7, 10), at(5)), Known);
    assert_eq!(table.order(&order("a:1", 6, 99), at(5)), Known);
    assert_eq!(table.poll_expired(at(10)).len(), 1);
    assert_eq!(table.order(&order("a:1", 7, 10), at(11)), Known);
    assert!(table.ordered(&authority("a:1"), at(11)).is_none());
    assert!(table.poll_expired(at(11)).is_empty(), "released once");
    assert_eq!(table.order(&order("a:1", 8, 10), at(12)), Imposed);
}

#[test]
fn an_order_without_time_lifts_the_quarantine_and_is_told_to_those_who_missed_it() {
    let mut table = QuarantineTable::new(9, MEMORY);
    table.order(&order("a:1", 1, 1000), at(0));
    assert_eq!(table.order(&order("a:1", 2, 0), at(1)), Lifted);
    assert!(table.ordered(&authority("a:1"), at(1)).is_none());
    assert!(table.poll_expired(at(1)).is_empty(), "told as lifted");
    let mut missed = QuarantineTable::new(9, MEMORY);
    missed.order(&order("a:1", 1, 1000), at(0));
    assert_ne!(table.digest(at(900)), missed.digest(at(900)));
    for rumor in table.rumors(at(900)) {
        assert_eq!(missed.order(&rumor, at(900)), Lifted);
    }
    assert_eq!(table.digest(at(900)), missed.digest(at(900)));
}

#[test]
fn a_lifted_order_is_remembered_as_long_as_anybody_may_hold_it_to_be_in_force() {
    let mut table = QuarantineTable::new(9, MEMORY);
    table.order(&order("a:1", 1, 1000), at(0));
    table.order(&order("a:1", 2, 0), at(1));
    let mut heard = QuarantineTable::new(9, MEMORY);
    let rumor = table.rumor(&authority("a:1"), at(2)).expect("remembered");
    assert_eq!(heard.order(&rumor, at(2)), Noted);
    for mut table in [table, heard] {
        table.poll_expired(at(999));
        let late = QuarantineRumor {
            remaining_ms: 1000,
            ..order("a:1", 1, 1)
        };
        assert_eq!(table.order(&late, at(999)), Known, "it does not return");
    }
}

#[test]
fn a_shorter_order_is_remembered_as_long_as_the_one_it_replaced() {
    let mut table = QuarantineTable::new(9, MEMORY);
    table.order(&order("a:1", 1, 1000), at(0));
    assert_eq!(table.order(&order("a:1", 2, 10), at(0)), Imposed);
    assert_eq!(table.poll_expired(at(10)).len(), 1);
    table.poll_expired(at(900));
    assert_eq!(table.order(&order("a:1", 1, 100), at(900)), Known);
}

#[test]
fn an_order_that_all_are_about_to_forget_is_not_taken_up_again() {
    let (mut one, mut two) = (
        QuarantineTable::new(9, MEMORY),
        QuarantineTable::new(9, MEMORY),
    );
    one.order(&order("a:1", 1, 10), at(0));
    // The other one's clock runs ahead of it.
    two.order(&order("a:1", 1, 10), at(5));
    one.poll_expired(at(70));
    assert!(one.is_empty());
    let rumor = two.rumor(&authority("a:1"), at(70)).expect("kept");
    assert_eq!(one.order(&rumor, at(70)), Known);
    assert_eq!(one.digest(at(70)), two.digest(at(70)), "no longer told");
    assert!(two.rumors(at(70)).is_empty());
}

#[test]
fn the_memory_of_an_order_does_not_grow_by_being_told_back_and_forth() {
    let (mut one, mut two) = (
        QuarantineTable::new(9, MEMORY),
        QuarantineTable::new(9, MEMORY),
    );
    one.order(&order("a:1", 1, 10), at(0));
    for second in 0..40 {
        let rumor = one.rumor(&authority("a:1"), at(second)).expect("kept");
        two.order(&rumor, at(second + 1));
        core::mem::swap(&mut one, &mut two);
    }
    for mut table in [one, two] {
        table.poll_expired(at(72));
        assert!(table.is_empty(), "{table:?}");
    }
}

#[test]
fn to_lift_what_the_detector_blocked_is_a_release_too() {
    let mut table = QuarantineTable::new(9, MEMORY);
    let (a, uid) = (authority("a:1"), NodeUid::from_raw(1));
    table.quarantine(&a, uid, Unreachable, Duration::from_secs(99), at(0));
    assert_eq!(table.order(&order("a:1", 1, 0), at(1)), Lifted);
    assert!(table.blocks(&a, uid, at(1)).is_none());
    assert_eq!(table.order(&order("a:1", 2, 0), at(2)), Noted);
}

#[test]
fn an_order_that_was_told_to_be_over_stays_over_when_the_clock_is_set_back() {
    let mut table = QuarantineTable::new(9, MEMORY);
    let (a, uid) = (authority("a:1"), NodeUid::from_raw(1));
    table.order(&order("a:1", 1, 10), at(100));
    assert_eq!(table.poll_expired(at(111)).len(), 1);
    assert!(table.blocks(&a, uid, at(105)).is_none());
    assert!(table.snapshot(at(105)).is_empty());
    assert_eq!(
        table.rumor(&a, at(105)).map(|rumor| rumor.remaining_ms),
        Some(0)
    );
}

#[test]
fn spent_orders_are_forgotten_in_the_end() {
    let mut table = QuarantineTable::new(9, MEMORY);
    table.order(&order("a:1", 1, 10), at(0));
    table.quarantine(
        &authority("b:1"),
        NodeUid::from_raw(1),
        Unreachable,
        Duration::from_secs(3),
        at(0),
    );
    let mut polls = 0;
    while let Some(next) = table.next_expiry() {
        table.poll_expired(next);
        polls += 1;
        assert!(polls < 9, "every poll at its deadline makes progress");
    }
    assert!(table.is_empty());
    assert_eq!(polls, 3);
}

#[test]
fn a_full_table_says_so_unless_a_spent_order_can_make_room() {
    let mut table = QuarantineTable::new(1, MEMORY);
    assert_eq!(table.order(&order("a:1", 1, 10), at(0)), Imposed);
    assert_eq!(table.order(&order("b:1", 1, 10), at(0)), Full);
    assert_eq!(table.order(&order("a:1", 2, 10), at(0)), Imposed);
    assert_eq!(table.snapshot(at(0)).len(), 1);
    table.poll_expired(at(10));
    assert_eq!(table.order(&order("b:1", 1, 10), at(10)), Imposed);
    assert_eq!(table.len(), 1);
}

#[test]
fn what_travels_has_the_time_that_remains() {
    let mut table = QuarantineTable::new(9, MEMORY);
    table.order(&order("a:1", 1, 10), at(0));
    let rumors = table.rumors(at(4));
    assert_eq!(
        rumors,
        vec![QuarantineRumor {
            remaining_ms: 6000,
            remember_ms: 66_000,
            ..order("a:1", 1, 10)
        }]
    );
}

proptest! {
    #[test]
    fn whatever_an_operator_types_can_be_shown_and_sent(raw in ".{0,300}") {
        let text = ReasonText::escaped(&raw);
        prop_assert!(text.as_str().len() <= MAX_REASON_BYTES);
        prop_assert_eq!(ReasonText::from_wire(text.as_str()), Some(text.clone()));
        let shown = format!("{text}");
        prop_assert!(shown.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{}", shown);
    }

    #[test]
    fn orders_converge_whatever_order_they_arrive_in(
        orders in proptest::collection::vec((1..6u64, 0..50u64), 1..8),
        swap in 0..8usize,
    ) {
        let (mut one, mut two) = (QuarantineTable::new(9, MEMORY), QuarantineTable::new(9, MEMORY));
        // A version belongs to one order: its duration is a function of it.
        let orders: Vec<_> = orders.iter().map(|&(version, _)| order("a:1", version, version * 7 % 20)).collect();
        orders.iter().for_each(|order| { one.order(order, at(0)); });
        let mut turned = orders.clone();
        turned.rotate_left(swap % orders.len());
        turned.iter().for_each(|order| { two.order(order, at(0)); });
        prop_assert_eq!(one.snapshot(at(0)), two.snapshot(at(0)));
        prop_assert_eq!(one.digest(at(1)), two.digest(at(1)));
    }
}
