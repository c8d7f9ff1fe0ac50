use super::*;
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
        text: ReasonText::escaped("bad disk"),
    }
}

#[test]
fn the_detector_blocks_one_uid_and_the_operator_all_of_them() {
    let mut table = QuarantineTable::new(9, MEMORY);
    let (a, one, two) = (authority("a:1"), NodeUid::from_raw(1), NodeUid::from_raw(2));
    assert!(table.quarantine_uid(&a, one, Duration::from_secs(5), at(0)));
    assert!(table.blocks(&a, one, at(4)).is_some());
    assert!(table.blocks(&a, one, at(5)).is_none());
    assert!(table.blocks(&a, two, at(0)).is_none());
    assert!(table.order(&order("a:1", 1, 10), at(0)));
    let entry = table.blocks(&a, two, at(9)).expect("all lives are blocked");
    assert_eq!((entry.uid, entry.expires_at), (None, at(10)));
}

#[test]
fn stale_gossip_never_renews_a_quarantine_not_even_after_its_end() {
    let mut table = QuarantineTable::new(9, MEMORY);
    assert!(table.order(&order("a:1", 7, 10), at(0)));
    assert!(!table.order(&order("a:1", 7, 10), at(5)));
    assert!(!table.order(&order("a:1", 6, 99), at(5)));
    assert_eq!(table.poll_expired(at(10)).len(), 1);
    assert!(!table.order(&order("a:1", 7, 10), at(11)));
    assert!(table.ordered(&authority("a:1"), at(11)).is_none());
    assert!(table.poll_expired(at(11)).is_empty(), "released once");
    assert!(table.order(&order("a:1", 8, 10), at(12)));
}

#[test]
fn an_order_without_time_lifts_the_quarantine() {
    let mut table = QuarantineTable::new(9, MEMORY);
    table.order(&order("a:1", 1, 1000), at(0));
    assert!(table.order(&order("a:1", 2, 0), at(1)));
    assert!(table.ordered(&authority("a:1"), at(1)).is_none());
    assert!(
        !table.order(&order("a:1", 1, 1000), at(2)),
        "the lifted order does not return"
    );
    assert!(table.rumors(at(2)).is_empty());
    assert_eq!(
        table
            .rumor(&authority("a:1"), at(2))
            .map(|rumor| rumor.remaining_ms),
        Some(0)
    );
}

#[test]
fn spent_orders_are_forgotten_in_the_end() {
    let mut table = QuarantineTable::new(9, MEMORY);
    table.order(&order("a:1", 1, 10), at(0));
    table.quarantine_uid(
        &authority("b:1"),
        NodeUid::from_raw(1),
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
fn a_full_table_takes_no_more_but_knows_the_old_ones() {
    let mut table = QuarantineTable::new(1, MEMORY);
    assert!(table.order(&order("a:1", 1, 10), at(0)));
    assert!(!table.order(&order("b:1", 1, 10), at(0)));
    assert!(table.order(&order("a:1", 2, 10), at(0)));
    assert_eq!(table.snapshot(at(0)).len(), 1);
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
