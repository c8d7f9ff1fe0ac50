use super::*;
use crate::core::base::identity::NodeIdentity;
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::status::NodeStatus::*;
use alloc::format;
use alloc::vec;
use proptest::prelude::*;

fn record(port: u16, uid: u64, status: NodeStatus) -> MemberRecord {
    let identity = NodeIdentity {
        authority: Authority::new(&format!("n:{port}")).expect("valid"),
        uid: NodeUid::from_raw(uid),
    };
    MemberRecord::new(identity, status, MemberMetadata::EMPTY)
}

fn apply(table: &mut MembershipTable, record: &MemberRecord) -> Applied {
    table.apply(record).expect("there is room")
}

#[test]
fn tables_that_agree_have_one_digest_whatever_the_order() {
    let records = [
        record(1, 1, Up),
        record(2, 1, Joining),
        record(3, 1, Suspect),
        record(4, 1, Up),
    ];
    let (mut one, mut two) = (MembershipTable::new(9), MembershipTable::new(9));
    for (index, record) in records.iter().enumerate() {
        apply(&mut one, record);
        apply(&mut two, &records[records.len() - 1 - index]);
    }
    assert_eq!(one.digest(), two.digest());
    apply(&mut two, &record(4, 1, Suspect));
    assert_ne!(one.digest(), two.digest());
}

#[test]
fn a_tombstone_leaves_the_digest_as_if_the_member_had_never_been() {
    let (mut one, two) = (MembershipTable::new(9), MembershipTable::new(9));
    apply(&mut one, &record(1, 1, Up));
    apply(&mut one, &record(1, 1, Dead));
    assert_eq!(one.digest(), two.digest());
    assert_eq!((one.len(), one.active_len(), one.ring().len()), (1, 0, 0));
}

#[test]
fn an_older_life_is_refused_with_the_current_one_named() {
    let mut table = MembershipTable::new(9);
    apply(&mut table, &record(1, 5, Up));
    let current = NodeUid::from_raw(5);
    assert_eq!(
        apply(&mut table, &record(1, 4, Up)),
        Applied::Older { current }
    );
    let superseded = Applied::Superseded {
        uid: current,
        from: Up,
    };
    assert_eq!(apply(&mut table, &record(1, 6, Joining)), superseded);
}

#[test]
fn a_delta_holds_each_changed_record_once_and_a_bad_bookmark_gets_everything() {
    let mut table = MembershipTable::new(9);
    for port in 1..4 {
        apply(&mut table, &record(port, 1, Joining));
    }
    let bookmark = table.version();
    apply(&mut table, &record(2, 1, Up));
    apply(&mut table, &record(2, 1, Leaving));
    let delta = table.delta_since(bookmark);
    assert_eq!(delta.records, vec![record(2, 1, Leaving)]);
    assert_eq!(table.delta_since(0).records.len(), 3);
    assert_eq!(table.delta_since(bookmark + 99).records.len(), 3);
    assert_eq!(table.delta_since(bookmark + 99).from_version, 0);
}

#[test]
fn a_tombstone_of_a_stranger_is_kept_but_not_passed_on() {
    let mut table = MembershipTable::new(9);
    apply(&mut table, &record(1, 1, Removed));
    assert!(table.delta_since(0).is_empty());
    assert_eq!(table.in_buckets(u64::MAX).count(), 0);
    assert_eq!(apply(&mut table, &record(1, 1, Up)), Applied::Known);
    apply(&mut table, &record(1, 2, Up));
    assert_eq!(table.delta_since(0).records.len(), 1);
}

#[test]
fn the_table_refuses_more_than_its_limit_and_reuses_what_was_collected() {
    let mut table = MembershipTable::new(2);
    apply(&mut table, &record(1, 1, Up));
    apply(&mut table, &record(2, 1, Up));
    assert_eq!(
        table.apply(&record(3, 1, Up)),
        Err(MembershipError::TableFull { limit: 2 })
    );
    apply(&mut table, &record(1, 1, Removed));
    let slot = table.slot_of(&record(1, 1, Up).authority).expect("known");
    assert!(table.collect(slot).is_some());
    assert_eq!(apply(&mut table, &record(3, 1, Up)), Applied::Added);
    assert_eq!(table.active().len(), 2);
}

#[test]
fn forgetting_the_active_keeps_tombstones_and_spoils_every_bookmark() {
    let mut table = MembershipTable::new(9);
    apply(&mut table, &record(1, 1, Up));
    apply(&mut table, &record(2, 1, Up));
    apply(&mut table, &record(2, 1, Dead));
    let bookmark = table.version();
    let forgotten = table.forget_active();
    assert_eq!(forgotten.len(), 1);
    assert_eq!((table.len(), table.active_len()), (1, 0));
    assert_eq!(table.digest(), MembershipTable::new(9).digest());
    apply(&mut table, &record(3, 1, Up));
    let delta = table.delta_since(bookmark);
    assert_eq!((delta.from_version, delta.records.len()), (0, 2));
    assert_eq!(table.delta_since(table.version()).records, vec![]);
}

#[test]
fn everybody_is_watched_by_the_next_on_the_ring_and_watches_the_previous() {
    let mut table = MembershipTable::new(99);
    for port in 0..30 {
        apply(&mut table, &record(port, 1, Up));
    }
    apply(&mut table, &record(77, 1, Joining));
    assert_eq!(table.ring().len(), 30);
    for (slot, entry) in table.iter().filter(|(_, entry)| entry.record.status == Up) {
        let watchers = table.ring().after(entry.place, slot, 9);
        assert_eq!(watchers.len(), 9);
        for &watcher in &watchers {
            let place = table.entry(watcher).expect("known").place;
            assert!(table.ring().before(place, watcher, 9).contains(&slot));
            assert_ne!(watcher, slot);
        }
        assert_eq!(table.ring().after(entry.place, slot, 99).len(), 29);
    }
}

#[test]
fn a_member_passed_over_watches_none_and_is_watched_by_the_next_that_are_not() {
    let mut table = MembershipTable::new(99);
    for port in 0..30 {
        apply(&mut table, &record(port, 1, Suspect));
    }
    let slots: Vec<Slot> = table.iter().map(|(slot, _)| slot).collect();
    let epoch = table.ring().epoch();
    for &slot in &slots[..20] {
        table.pass_over(slot, true);
    }
    assert!(table.ring().epoch() > epoch);
    for (slot, entry) in table.iter() {
        let watchers = table.ring().after(entry.place, slot, 4);
        assert_eq!(watchers.len(), 4);
        for (other, watcher) in table.iter().filter(|(other, _)| *other != slot) {
            let watches = watchers.contains(&other);
            assert!(!watches || slots[20..].contains(&other));
            let subjects = table.ring().before(watcher.place, other, 4);
            if slots[20..].contains(&other) {
                assert_eq!(subjects.contains(&slot), watches);
            }
        }
    }
    apply(
        &mut table,
        &MemberRecord {
            incarnation: 2,
            ..record(0, 1, Up)
        },
    );
    let slot = table.slot_of(&record(0, 1, Up).authority).expect("known");
    let chosen = table
        .iter()
        .any(|(other, entry)| table.ring().after(entry.place, other, 29).contains(&slot));
    assert!(chosen, "it has refuted");
}

#[test]
fn accusing_makes_a_suspect_only_of_a_member_that_is_up() {
    let mut table = MembershipTable::new(9);
    let accusation = |round| Accusation {
        accuser: NodeUid::from_raw(3),
        round,
    };
    for (port, status) in [(1, Joining), (2, Leaving), (3, Dead)] {
        apply(&mut table, &record(port, 1, status));
        let slot = table
            .slot_of(&record(port, 1, Up).authority)
            .expect("known");
        assert!(!table.accuse(slot, accusation(1)), "{status}");
    }
    apply(&mut table, &record(4, 1, Up));
    let slot = table.slot_of(&record(4, 1, Up).authority).expect("known");
    assert!(table.accuse(slot, accusation(1)));
    assert!(!table.accuse(slot, accusation(1)));
    assert!(table.accuse(slot, accusation(2)));
    assert_eq!(table.entry(slot).expect("known").record.status, Suspect);
}

proptest! {
    /// A table refuses steps back, which depends on what it heard first; but what it makes of them outweighs what
    /// others heard, so that two tables that tell each other what they know agree.
    #[test]
    fn tables_that_heard_the_same_in_any_order_agree_once_they_have_compared(
        heard in proptest::collection::vec((1..3u64, 1..5u64, 0..6u8), 1..12),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        let records: Vec<MemberRecord> = heard
            .into_iter()
            .map(|(uid, incarnation, status)| {
                let status = NodeStatus::from_code(status).expect("below 6");
                MemberRecord { incarnation, ..record(1, uid, status) }
            })
            .collect();
        let mut shuffled = records.clone();
        for (index, other) in order.iter().enumerate().take(records.len()) {
            shuffled.swap(index, other.index(records.len()));
        }
        let mut tables = [MembershipTable::new(9), MembershipTable::new(9)];
        for (one, two) in records.iter().zip(&shuffled) {
            apply(&mut tables[0], one);
            apply(&mut tables[1], two);
        }
        let authority = &records[0].authority;
        for round in 0..2 {
            let told = tables[round % 2].record(authority).expect("known").clone();
            apply(&mut tables[(round + 1) % 2], &told);
        }
        let [one, two] = tables.map(|table| table.record(authority).cloned());
        prop_assert_eq!(one, two);
    }
}
