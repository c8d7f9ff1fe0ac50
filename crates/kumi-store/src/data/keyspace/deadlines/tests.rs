//! The deadline index against a model, and the bounds it promises on memory and on work.

use super::*;
use proptest::prelude::*;

const MILLION: u64 = 1_000_000;

fn filled(records: impl IntoIterator<Item = (u64, u64)>) -> Deadlines {
    let mut deadlines = Deadlines::new();
    for (deadline, hash) in records {
        deadlines.insert(deadline, hash);
    }
    deadlines
}

fn random_records(count: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut rng = fastrand::Rng::with_seed(count);
    (0..count).map(move |_| (rng.u64(..3_600_000), rng.u64(..)))
}

fn bytes_per_record(deadlines: &Deadlines) -> f64 {
    deadlines.heap_bytes() as f64 / deadlines.len() as f64
}

/// Everything the fields promise about each other.
fn check_shape(deadlines: &Deadlines) {
    let mut previous = None;
    for (&bound, chunk) in &deadlines.chunks {
        assert!(
            chunk.is_sorted() && chunk.first().is_some_and(|&first| bound <= first),
            "bound or order is wrong"
        );
        assert!(
            previous.is_none_or(|previous| previous < bound),
            "a chunk reaches into the next"
        );
        assert!(
            chunk.len() <= CHUNK_MAX || chunk.get(1) == chunk.last(),
            "a chunk is too long"
        );
        previous = chunk.last().copied();
    }
    assert_eq!(
        deadlines.len(),
        deadlines.chunks.values().map(Vec::len).sum::<usize>()
    );
    assert_eq!(
        deadlines.capacity,
        deadlines.chunks.values().map(Vec::capacity).sum::<usize>()
    );
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64),
    InsertRun(u64, u64),
    Remove(u64, u64),
    RemoveNth(usize),
    PopDue(u64, usize),
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few deadlines and fewer hashes, so that equal pairs are common.
    let (deadline, hash) = (0..40u64, 0..6u64);
    let step = prop_oneof![
        12 => (deadline.clone(), hash.clone()).prop_map(|(deadline, hash)| Step::Insert(deadline, hash)),
        6 => (deadline.clone(), 0..200u64).prop_map(|(deadline, count)| Step::InsertRun(deadline, count)),
        4 => (deadline.clone(), hash).prop_map(|(deadline, hash)| Step::Remove(deadline, hash)),
        12 => any::<usize>().prop_map(Step::RemoveNth),
        4 => (deadline, 0..300usize).prop_map(|(now, max)| Step::PopDue(now, max)),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn index_agrees_with_a_sorted_multiset(steps in steps()) {
        let mut deadlines = Deadlines::new();
        let mut model: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Insert(deadline, hash) => {
                    deadlines.insert(deadline, hash);
                    *model.entry((deadline, hash)).or_default() += 1;
                }
                Step::InsertRun(deadline, count) => {
                    for hash in 0..count {
                        deadlines.insert(deadline, hash * 7);
                        *model.entry((deadline, hash * 7)).or_default() += 1;
                    }
                }
                Step::Remove(deadline, hash) => {
                    prop_assert_eq!(deadlines.remove(deadline, hash), take(&mut model, (deadline, hash)));
                }
                Step::RemoveNth(nth) if !model.is_empty() => {
                    let nth = nth % model.len();
                    for _ in 0..20 {
                        let Some((&pair, _)) = model.iter().nth(nth) else { break };
                        prop_assert!(deadlines.remove(pair.0, pair.1) && take(&mut model, pair));
                    }
                }
                Step::RemoveNth(_) => {}
                Step::PopDue(now, max) => {
                    let (mut popped, mut expected) = (Vec::new(), Vec::new());
                    deadlines.pop_due(now, max, &mut popped);
                    while expected.len() < max {
                        let Some((&pair, _)) = model.first_key_value().filter(|(pair, _)| pair.0 <= now) else {
                            break;
                        };
                        expected.push(pair);
                        take(&mut model, pair);
                    }
                    prop_assert_eq!(popped, expected);
                }
                Step::Clear => {
                    deadlines = Deadlines::new();
                    model.clear();
                }
            }
            check_shape(&deadlines);
            prop_assert_eq!(deadlines.len(), model.values().sum::<usize>());
            prop_assert_eq!(deadlines.first(), model.first_key_value().map(|(pair, _)| pair.0));
        }
    }
}

fn take(model: &mut BTreeMap<(u64, u64), usize>, pair: (u64, u64)) -> bool {
    let Some(count) = model.get_mut(&pair) else {
        return false;
    };
    *count -= 1;
    if *count == 0 {
        model.remove(&pair);
    }
    true
}

#[test]
fn a_million_changes_of_one_deadline_leave_the_memory_where_it_was() {
    let rising = || (0..100_000).map(|deadline| (deadline * 36, deadline));
    for mut deadlines in [
        Deadlines::new(),
        filled(rising()),
        filled(random_records(100_000)),
    ] {
        let (home, hash) = (1_800_000, 42);
        deadlines.insert(home, hash);
        let before = deadlines.heap_bytes();
        let mut rng = fastrand::Rng::with_seed(7);
        let mut deadline = home;
        for _ in 0..MILLION {
            assert!(deadlines.remove(deadline, hash));
            deadline = rng.u64(..4_000_000);
            deadlines.insert(deadline, hash);
        }
        assert!(
            deadlines.heap_bytes() <= before + CHUNK_MAX * RECORD_BYTES,
            "grew beyond one chunk"
        );
        deadlines.remove(deadline, hash);
        deadlines.insert(home, hash);
        assert!(deadlines.heap_bytes() <= before);
        check_shape(&deadlines);
    }
}

#[test]
fn rising_deadlines_fill_chunks_to_the_brim() {
    let deadlines = filled(
        (0..MILLION).map(|deadline| (deadline, deadline.wrapping_mul(0x9E37_79B9_7F4A_7C15))),
    );
    let bytes = bytes_per_record(&deadlines);
    assert!(bytes <= 17.5, "{bytes} bytes per record");
}

#[test]
fn random_and_falling_deadlines_waste_little() {
    for deadlines in [
        filled(random_records(MILLION)),
        filled((0..MILLION).rev().map(|deadline| (deadline, 1))),
    ] {
        let bytes = bytes_per_record(&deadlines);
        assert!(bytes <= 20.0, "{bytes} bytes per record");
    }
}

#[test]
fn memory_follows_the_records_down() {
    let mut records: Vec<_> = random_records(200_000).collect();
    let mut deadlines = filled(records.iter().copied());
    fastrand::Rng::with_seed(3).shuffle(&mut records);
    for (removed, &(deadline, hash)) in records.iter().enumerate() {
        assert!(deadlines.remove(deadline, hash));
        if removed % 10_000 == 0 {
            let bytes = bytes_per_record(&deadlines);
            assert!(
                bytes <= 24.0,
                "{bytes} bytes per record with {} left",
                deadlines.len()
            );
        }
    }
    assert_eq!(deadlines.len(), 0);
    assert_eq!(deadlines.heap_bytes(), 0);
}

#[test]
fn no_operation_moves_more_than_a_chunk() {
    let mut records: Vec<_> = random_records(5_000).collect();
    let mut deadlines = filled(records.iter().copied());
    let mut rng = fastrand::Rng::with_seed(11);
    let mut out = Vec::new();
    let places = |deadlines: &Deadlines| -> BTreeMap<*const Record, usize> {
        deadlines
            .chunks
            .values()
            .map(|chunk| (chunk.as_ptr(), chunk.len()))
            .collect()
    };
    for round in 0..8_000u64 {
        let before = places(&deadlines);
        // Records come and go for a while, and then only go, so that chunks both split and merge.
        match rng.u8(..10) {
            0..5 if round < 3_000 => {
                let record = (rng.u64(..3_600_000), rng.u64(..));
                records.push(record);
                deadlines.insert(record.0, record.1);
            }
            5 => deadlines.pop_due(u64::MAX, 1, &mut out),
            _ if records.is_empty() => break,
            _ => {
                let (deadline, hash) = records.swap_remove(rng.usize(..records.len()));
                deadlines.remove(deadline, hash);
            }
        }
        let touched = places(&deadlines)
            .iter()
            .filter(|(place, len)| before.get(*place) != Some(*len))
            .map(|(_, len)| len)
            .sum::<usize>();
        assert!(
            touched <= CHUNK_MAX + 1,
            "{touched} records touched in round {round}"
        );
    }
}

#[test]
fn pop_due_takes_what_is_due_in_order_and_no_more_than_asked() {
    let mut deadlines = filled([(30, 1), (10, 2), (20, 3), (10, 1), (21, 0)]);
    let mut out = vec![(0, 0)];
    deadlines.pop_due(9, 10, &mut out);
    assert_eq!(out, [(0, 0)]);
    deadlines.pop_due(20, 2, &mut out);
    assert_eq!(out, [(0, 0), (10, 1), (10, 2)]);
    deadlines.pop_due(20, 10, &mut out);
    assert_eq!(out[3..], [(20, 3)]);
    assert_eq!((deadlines.len(), deadlines.first()), (2, Some(21)));
    deadlines.pop_due(u64::MAX, 10, &mut out);
    assert_eq!(out[4..], [(21, 0), (30, 1)]);
    assert_eq!(
        (deadlines.len(), deadlines.first(), deadlines.heap_bytes()),
        (0, None, 0)
    );
}

#[test]
fn equal_pairs_are_kept_and_removed_one_by_one() {
    let mut deadlines = filled(std::iter::repeat_n((5, 5), 1_000).chain([(4, 9), (6, 0)]));
    for _ in 0..1_000 {
        assert!(deadlines.remove(5, 5));
    }
    assert!(!deadlines.remove(5, 5));
    assert_eq!(deadlines.len(), 2);
}

#[test]
fn count_due_looks_across_chunks() {
    let deadlines = filled((0..1_000).map(|deadline| (deadline, 7)));
    for now in [0, 1, 127, 128, 500, 999, u64::MAX] {
        let expected = 1_000.min(now.saturating_add(1));
        assert_eq!(deadlines.count_due(now) as u64, expected, "{now}");
    }
    assert_eq!(Deadlines::new().count_due(u64::MAX), 0);
}
