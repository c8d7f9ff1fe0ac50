//! The laws of merging, on small domains in which everything collides with everything.

use super::*;
use crate::core::base::status::NodeStatus::*;
use alloc::vec;
use proptest::prelude::*;

fn authority() -> Authority {
    Authority::new("a:1").expect("valid")
}

fn record(uid: u64, incarnation: u64, status: NodeStatus) -> MemberRecord {
    MemberRecord {
        authority: authority(),
        uid: NodeUid::from_raw(uid),
        incarnation,
        status,
        accusations: Accusations::NONE,
        metadata_stamp: 0,
        metadata: MemberMetadata::EMPTY,
    }
}

fn merged(one: &MemberRecord, two: &MemberRecord) -> MemberRecord {
    let mut result = one.clone();
    result.merge(two);
    result
}

prop_compose! {
    /// Everything that can be written down, whether or not any life would produce it.
    fn any_record()(
        uid in 1..4u64,
        incarnation in 1..5u64,
        status in 0..6u8,
        accusers in proptest::collection::btree_map(1..40u64, 1..5u16, 0..30),
        stamp in 0..3u64,
        text in 0..2u8,
    ) -> MemberRecord {
        let status = NodeStatus::from_code(status).expect("below 6");
        let mut record = record(uid, incarnation, status);
        if status == Suspect {
            for (accuser, round) in accusers {
                record.accusations.add(Accusation { accuser: NodeUid::from_raw(accuser), round });
            }
        }
        record.metadata_stamp = stamp;
        if stamp > 0 {
            record.metadata = MemberMetadata::from_bytes(&[text]).expect("short");
        }
        record
    }
}

proptest! {
    #[test]
    fn merging_is_idempotent(one in any_record()) {
        let mut again = one.clone();
        prop_assert_eq!(again.merge(&one), Merge::Unchanged);
        prop_assert_eq!(again, one);
    }

    #[test]
    fn merging_is_commutative(one in any_record(), two in any_record()) {
        prop_assert_eq!(merged(&one, &two), merged(&two, &one));
    }

    #[test]
    fn merging_is_associative(one in any_record(), two in any_record(), three in any_record()) {
        let left = merged(&merged(&one, &two), &three);
        let right = merged(&one, &merged(&two, &three));
        prop_assert_eq!(left, right);
    }

    #[test]
    fn nothing_brings_a_terminal_uid_back(one in any_record(), two in any_record()) {
        let result = merged(&one, &two);
        let both = [&one, &two].into_iter().filter(|record| record.uid == result.uid);
        let terminal = both.clone().any(|record| record.status.is_terminal());
        prop_assert_eq!(result.status.is_terminal(), terminal);
        let incarnation = both.map(|record| record.incarnation).max();
        prop_assert_eq!(Some(result.incarnation), incarnation);
    }

    #[test]
    fn equal_digests_mean_equal_records(one in any_record(), two in any_record()) {
        let same_text = one.metadata_stamp != two.metadata_stamp || one.metadata == two.metadata;
        if same_text {
            prop_assert_eq!(one == two, one.digest(0) == two.digest(0));
        }
    }
}

#[test]
fn precedence_is_uid_then_terminal_then_incarnation_then_rank() {
    let mut rising = Vec::new();
    for uid in 1..3 {
        for incarnation in 1..4 {
            for status in [Joining, Up, Suspect, Leaving] {
                rising.push(record(uid, incarnation, status));
            }
        }
        // At every incarnation; the one of the result is the highest that was heard of.
        rising.push(record(uid, 1, Dead));
        rising.push(record(uid, 1, Removed));
    }
    for (index, lower) in rising.iter().enumerate() {
        for higher in &rising[index + 1..] {
            for result in [merged(lower, higher), merged(higher, lower)] {
                assert_eq!((result.uid, result.status), (higher.uid, higher.status));
            }
        }
    }
}

#[test]
fn no_status_goes_back_and_the_incarnation_is_learned_all_the_same() {
    for (from, to, kept) in [
        (Leaving, Joining, Leaving),
        (Leaving, Up, Leaving),
        (Leaving, Suspect, Leaving),
        (Up, Joining, Up),
        (Suspect, Joining, Up),
    ] {
        let mut known = record(1, 1, from);
        assert_eq!(known.merge(&record(1, 2, to)), Merge::Advanced);
        assert_eq!(known.status, to, "the order is what it is");
        assert!(!known.settle(from), "{from} to {to}");
        assert_eq!((known.status, known.incarnation), (kept, 2));
        let outweighs = merged(&record(1, 2, to), &known).status;
        assert_eq!(outweighs, kept, "the merge does not depend on the order");
    }
}

#[test]
fn steps_that_gossip_skipped_are_no_steps_back() {
    for (from, to) in [
        (Joining, Suspect),
        (Joining, Leaving),
        (Suspect, Up),
        (Up, Dead),
    ] {
        let mut known = record(1, 2, to);
        assert!(known.settle(from), "{from} to {to}");
        assert_eq!(known.status, to);
    }
}

#[test]
fn accusers_belong_to_one_incarnation() {
    let mut known = record(1, 1, Suspect);
    for accuser in [5, 3] {
        let accusation = Accusation {
            accuser: NodeUid::from_raw(accuser),
            round: 1,
        };
        known.accusations.add(accusation);
    }
    let standing: Vec<u64> = known.accusations.standing().map(NodeUid::raw).collect();
    assert_eq!(standing, vec![3, 5]);
    known.merge(&record(1, 2, Up));
    assert_eq!((known.status, known.accusations.as_slice().len()), (Up, 0));
}

#[test]
fn a_withdrawn_accusation_outweighs_the_earlier_one_in_any_order() {
    let accusation = |round| Accusation {
        accuser: NodeUid::from_raw(9),
        round,
    };
    let (mut accused, mut withdrawn) = (record(1, 1, Suspect), record(1, 1, Suspect));
    accused.accusations.add(accusation(1));
    withdrawn.accusations.add(accusation(2));
    for result in [merged(&accused, &withdrawn), merged(&withdrawn, &accused)] {
        assert_eq!(result.accusations.standing().count(), 0);
        assert_eq!(result.accusations.round_of(NodeUid::from_raw(9)), 2);
    }
}

#[test]
fn a_rumour_without_metadata_keeps_what_was_known() {
    let mut known = record(1, 1, Up);
    known.metadata_stamp = 1;
    known.metadata = MemberMetadata::from_bytes(b"x").expect("short");
    known.merge(&record(1, 2, Up));
    assert_eq!(
        (known.incarnation, known.metadata.as_bytes()),
        (2, &b"x"[..])
    );
}
