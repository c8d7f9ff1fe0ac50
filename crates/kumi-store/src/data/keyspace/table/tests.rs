//! The table through its own functions, against a model and with hashes a keyed hash never gives.

use std::collections::{HashMap, HashSet};
use std::thread;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::snapshot::Piece;
use super::super::value::{NewValue, StringRef, ValueRef};
use super::*;

impl Table {
    fn with_hashes(hash: fn(&[u8]) -> u64) -> Self {
        let mut table = Table::new((0, 0));
        table.hasher.fixed = Some(hash);
        table
    }

    fn put(&mut self, key: u32, value: i64) {
        self.put_until(key, value, None);
    }

    fn put_until(&mut self, key: u32, value: i64, deadline: Option<u64>) {
        let key = key.to_be_bytes();
        let hash = self.hash(&key);
        match self.find(hash, &key) {
            Some(position) => assert!(self.at_mut(position).set_int(value)),
            None => self.insert_new(hash, Entry::new(&key, NewValue::Int(value), deadline, 0)),
        }
    }

    fn value(&self, key: u32) -> Option<i64> {
        let entry = self.get(self.hash(&key.to_be_bytes()), &key.to_be_bytes())?;
        assert_eq!(number(entry), key);
        match entry.string() {
            Some(StringRef::Int(value)) => Some(value),
            _ => panic!("only numbers were stored"),
        }
    }

    fn delete(&mut self, key: u32) -> Option<Entry> {
        let position = self.find(self.hash(&key.to_be_bytes()), &key.to_be_bytes())?;
        Some(self.remove_at(position))
    }

    fn assert_sound(&self) {
        let mut at_depth = [0; MAX_DEPTH as usize + 1];
        let (mut len, mut covered, mut overflow_bytes) = (0, 0, 0);
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(segment) = &slot.segment else {
                continue;
            };
            assert_eq!(
                covered, index,
                "a segment begins where the one before it ends"
            );
            covered += 1 << (self.depth - segment.depth);
            at_depth[segment.depth as usize] += 1;
            len += segment.len();
            overflow_bytes += segment.overflow_bytes();
            segment.assert_sound(|entry| self.hash(entry.key()));
            for entry in segment.iter() {
                assert_eq!(self.owner(self.hash(entry.key())), Some(index));
            }
        }
        assert_eq!(covered, self.slots.len());
        assert_eq!((at_depth, len), (self.at_depth, self.len));
        assert_eq!(overflow_bytes, self.overflow_bytes);
        assert_eq!(self.segments, at_depth.iter().sum::<usize>());
        assert!(
            self.depth == 0 || at_depth[self.depth as usize] > 0,
            "the directory is too deep"
        );
    }
}

fn number(entry: &Entry) -> u32 {
    u32::from_be_bytes(entry.key().try_into().unwrap())
}

/// A hash without a seed that is as good as random.
fn mixed(key: &[u8]) -> u64 {
    let number = u32::from_be_bytes(key.try_into().unwrap());
    let mut hash = (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ hash >> 32
}

type Hash = fn(&[u8]) -> u64;

/// The hashes an adversary would like to see, and one honest one.
const HASHES: [(&str, Hash); 8] = [
    ("mixed", mixed),
    ("all equal", |_| 0x0123_4567_89ab_cdef),
    ("all zero", |_| 0),
    (
        "one of two",
        |key| if mixed(key) & 1 == 0 { 0 } else { u64::MAX },
    ),
    ("one home", |key| mixed(key) & !0x00ff_ff00),
    ("one tag", |key| mixed(key) & !0xff),
    ("one directory slot", |key| mixed(key) & 0x00ff_ffff),
    ("the last two homes", |key| mixed(key) | 0x00f8_0000),
];

#[test]
fn a_small_table_without_memory_puts_its_splits_off_for_a_while() {
    let add = |table: &mut Table, key: u32, room: usize| {
        let bytes = key.to_be_bytes();
        let entry = Entry::new(&bytes, NewValue::Int(i64::from(key)), None, 0);
        table.insert_within(table.hash(&bytes), entry, room);
    };
    let mut table = Table::with_hashes(mixed);
    let mut keys = 0;
    while table.overflow_bytes == 0 {
        add(&mut table, keys, 0);
        keys += 1;
    }
    assert_eq!(table.segments, 1);
    let full = table.heap_bytes();
    while table.segments == 1 {
        add(&mut table, keys, 0);
        keys += 1;
        let grown = table.heap_bytes() - full;
        assert!(table.segments > 1 || grown <= 4096, "{grown} bytes");
    }
    let most = CAPACITY + PUT_OFF_ENTRIES + 1;
    assert!((CAPACITY / 2..=most).contains(&(keys as usize)), "{keys}");
    assert_eq!(table.overflow_bytes, 0, "the split made room for all");
    table.assert_sound();

    // Entries that go make room for those beside the buckets.
    for room in [0, usize::MAX] {
        let mut table = Table::with_hashes(mixed);
        let count = (CAPACITY + PUT_OFF_ENTRIES / 2) as u32;
        for key in 0..count {
            add(&mut table, key, room);
        }
        let put_off = room == 0;
        assert_eq!(
            (table.segments, table.overflow_bytes > 0),
            if put_off { (1, true) } else { (2, false) }
        );
        table.assert_sound();
        for key in 0..count {
            assert_eq!(table.value(key), Some(i64::from(key)));
        }
        for key in 0..count / 2 {
            assert!(table.delete(key).is_some());
            table.assert_sound();
        }
        assert_eq!(table.overflow_bytes, 0);
        for key in 0..count {
            assert_eq!(table.value(key).is_some(), key >= count / 2);
        }
    }

    // A large one does not: the lists beside its buckets would cost time.
    let mut table = Table::with_hashes(mixed);
    for key in 0..100_000 {
        add(&mut table, key, usize::MAX);
    }
    let segments = table.segments;
    for key in 100_000..200_000 {
        add(&mut table, key, 0);
    }
    assert!(table.segments > segments && table.overflow_bytes == 0);
}

#[test]
fn an_entry_in_the_bucket_after_its_home_is_found_for_a_prefetch() {
    // One home bucket for all, which has 14 slots.
    let mut table = Table::with_hashes(|key| u64::from(key[3]));
    for key in 1..=20 {
        table.put(key, 0);
    }
    for key in 1..=20 {
        assert_eq!(table.candidate(key.into()).map(number), Some(key));
    }
    assert!(table.candidate(21).is_none());
}

#[test]
fn what_was_inserted_is_found_and_removed_again() {
    let mut table = Table::new((1, 2));
    for key in 0..100_000 {
        table.put(key, key.into());
    }
    table.assert_sound();
    assert_eq!(table.len(), 100_000);
    for key in 0..100_000 {
        assert_eq!(table.value(key), Some(key.into()));
        assert_eq!(number(&table.delete(key).unwrap()), key);
        assert_eq!(table.value(key), None);
    }
    assert_eq!((table.len(), table.segments, table.slots.len()), (0, 1, 1));
}

#[test]
fn an_unused_table_has_nothing_on_the_heap() {
    let table = Table::new((1, 2));
    assert_eq!((table.heap_bytes(), table.len()), (0, 0));
    assert!(table.get(7, b"key").is_none());
    assert_eq!(
        table.scan(0, &mut |_| panic!("there is nothing to visit")),
        0
    );
    assert!(table.random(&mut fastrand::Rng::with_seed(1)).is_none());
    assert!(table.iter().next().is_none());
}

/// Run with `--nocapture` to see the figures.
#[test]
fn a_segment_fills_before_it_splits() {
    let mut loads: Vec<usize> = (0..200)
        .map(|seed| {
            let mut table = Table::new((seed, 3));
            let keys = (0..).find(|&key| {
                table.put(key, 0);
                table.segments == 2
            });
            100 * keys.unwrap() as usize / CAPACITY
        })
        .collect();
    loads.sort_unstable();
    let mean = loads.iter().sum::<usize>() / loads.len();
    let (lowest, low) = (loads[0], loads[loads.len() / 20]);
    println!("load at a split: mean {mean}%, lowest twentieth {low}%, lowest {lowest}%");
    assert!(mean >= 90 && low >= 80);
}

/// Growth comes in waves, because all segments fill at about the same pace; this is the crest.
#[test]
fn a_small_key_costs_at_most_71_bytes_in_the_worst_phase_of_growth() {
    let mut table = Table::new((1, 2));
    let (mut entries, mut worst, mut best) = (0, 0.0_f64, f64::MAX);
    for key in 0..1_000_000_u32 {
        let key = format!("key:{key:012}").into_bytes();
        let entry = Entry::new(&key, NewValue::Bytes(b"0123456789abcdef"), None, 0);
        entries += entry.heap_bytes();
        table.insert_new(table.hash(&key), entry);
        if table.len() >= 400_000 {
            let bytes = (table.heap_bytes() + entries) as f64 / table.len() as f64;
            (worst, best) = (worst.max(bytes), best.min(bytes));
        }
    }
    let end = (table.heap_bytes() + entries) as f64 / table.len() as f64;
    println!("bytes per key: worst {worst:.1}, best {best:.1}, at a million {end:.1}");
    assert!(worst <= 71.0);
}

#[test]
fn a_table_that_empties_gives_its_memory_back_on_the_way() {
    let mut table = Table::new((5, 6));
    (0..50_000).for_each(|key| table.put(key, 0));
    let full = table.heap_bytes();
    (0..45_000).for_each(|key| drop(table.delete(key)));
    table.assert_sound();
    assert!(
        table.heap_bytes() * 5 < full,
        "{} of {full} bytes",
        table.heap_bytes()
    );
}

#[test]
fn keys_that_all_collide_cost_time_but_no_directory() {
    for (name, hash) in HASHES {
        let mut table = Table::with_hashes(hash);
        (0..3000).for_each(|key| table.put(key, key.into()));
        table.assert_sound();
        assert!(
            table.slots.len() <= FREE_SLOTS.max(table.segments * SLOTS_PER_SEGMENT),
            "{name}"
        );
        assert!(
            (0..3000).all(|key| table.value(key) == Some(key.into())),
            "{name}"
        );
        assert!((0..3000).all(|key| table.delete(key).is_some()), "{name}");
        table.assert_sound();
        assert_eq!((table.len(), table.segments), (0, 1), "{name}");
    }
}

#[test]
fn only_a_due_key_with_exactly_this_hash_is_found() {
    // Keys 2n and 2n + 1 have the same hash.
    let mut table = Table::with_hashes(|key| {
        let number = u32::from_be_bytes(key.try_into().unwrap());
        mixed(&(number & !1).to_be_bytes())
    });
    let hash = mixed(&0_u32.to_be_bytes());
    table.put_until(0, 0, Some(2000));
    table.put_until(1, 0, Some(1000));
    (2..2000).for_each(|key| table.put_until(key, 0, Some(1)));
    assert!(table.find_due(hash, 999).is_none());
    assert_eq!(
        table
            .find_due(hash, 1000)
            .map(|found| number(table.at(found))),
        Some(1)
    );
    assert!(table.delete(1).is_some());
    assert!(table.find_due(hash, 1000).is_none());
    assert_eq!(
        table
            .find_due(hash, u64::MAX)
            .map(|found| number(table.at(found))),
        Some(0)
    );
    // The same bucket and tag, but another hash.
    assert!(table.find_due(hash ^ 1 << 24, u64::MAX).is_none());
}

/// The keys and values in pieces.
fn copied(pieces: &[Piece]) -> HashMap<u32, i64> {
    let mut all = HashMap::new();
    for copy in pieces.iter().flat_map(Piece::iter) {
        let ValueRef::String(StringRef::Int(value)) = copy.value else {
            panic!("{copy:?}");
        };
        let key = u32::from_be_bytes(copy.key.try_into().unwrap());
        assert_eq!(all.insert(key, value), None, "key {key} was copied twice");
    }
    all
}

#[test]
fn a_snapshot_holds_what_was_there_while_the_table_grows_and_shrinks() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut table = Table::new((seed, 9));
        let keys = rng.u32(1..6_000);
        (0..keys).for_each(|key| table.put(key, rng.i64(..)));
        let expected: HashMap<u32, i64> = (0..keys)
            .map(|key| (key, table.value(key).unwrap()))
            .collect();
        table.begin_snapshot(3, false);
        let mut pieces = Vec::new();
        // Most writes add, most remove, or they are mixed.
        let removes = rng.u32(0..=8);
        let batch = rng.u32(0..2_000);
        loop {
            for _ in 0..batch {
                let key = rng.u32(0..12_000);
                if rng.u32(0..8) < removes {
                    drop(table.delete(key));
                } else {
                    table.put(key, rng.i64(..));
                }
            }
            let mut steps = rng.u32(0..40);
            let ended = table.copy_slice(&mut pieces, &mut || {
                steps = steps.saturating_sub(1);
                steps > 0
            });
            table.take_pieces(&mut pieces);
            if ended {
                break;
            }
        }
        assert!(!table.has_snapshot());
        assert!(pieces.iter().all(|piece| piece.db == 3));
        assert_eq!(copied(&pieces), expected, "seed {seed}");
    }
}

#[test]
fn random_meets_every_key_about_equally_often() {
    for len in [1, 2, 100, 1000] {
        let mut table = Table::new((8, 9));
        (0..len).for_each(|key| table.put(key, 0));
        let mut rng = fastrand::Rng::with_seed(4);
        let mut met = vec![0; len as usize];
        for _ in 0..len * 200 {
            met[number(table.random(&mut rng).unwrap()) as usize] += 1;
        }
        assert!(
            met.iter().all(|&times| (100..=320).contains(&times)),
            "{met:?}"
        );
    }
}

#[test]
fn random_finds_the_last_key_of_a_table_with_colliding_hashes() {
    let mut table = Table::with_hashes(|_| u64::MAX);
    (0..500).for_each(|key| table.put(key, 0));
    let mut rng = fastrand::Rng::with_seed(4);
    let met: HashSet<u32> = (0..10_000)
        .filter_map(|_| table.random(&mut rng))
        .map(number)
        .collect();
    assert_eq!(met.len(), 500);
}

#[test]
fn iteration_meets_every_entry_once() {
    let mut table = Table::new((8, 9));
    (0..5000).for_each(|key| table.put(key, 0));
    let mut met: Vec<u32> = table.iter().map(number).collect();
    met.sort_unstable();
    assert!(met.into_iter().eq(0..5000));
}

#[test]
fn a_table_can_be_dropped_on_another_thread() {
    let mut table = Table::new((1, 2));
    (0..10_000).for_each(|key| table.put(key, 0));
    thread::spawn(move || drop(table)).join().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Put(u32, u32),
    Take(u32, u32),
    Scan(u32),
}

/// Steps over ranges of keys, so that a short sequence fills and empties several segments.
fn steps(keys: u32, range: u32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..keys, 1..range).prop_map(|(from, len)| Step::Put(from, len)),
        2 => (0..keys, 1..range).prop_map(|(from, len)| Step::Take(from, len)),
        3 => (1..200_u32).prop_map(Step::Scan),
    ];
    vec(step, 1..40)
}

/// Every second time the honest hash, because only that makes big tables.
fn which_hash() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), 1..HASHES.len()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_table_does_what_a_hash_map_does(
        which in which_hash(), steps in steps(6000, 2000),
    ) {
        // Lists of colliding keys are searched one by one, so those tables stay small.
        let scale = if which == 0 { 1 } else { 8 };
        let mut table = Table::with_hashes(HASHES[which].1);
        let mut model = HashMap::new();
        for (round, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(from, len) => for key in from / scale..(from + len) / scale {
                    table.put(key, round as i64);
                    model.insert(key, round as i64);
                },
                Step::Take(from, len) => for key in from / scale..(from + len) / scale {
                    prop_assert_eq!(table.delete(key).is_some(), model.remove(&key).is_some());
                },
                Step::Scan(_) => table.assert_sound(),
            }
            prop_assert_eq!(table.len(), model.len());
        }
        table.assert_sound();
        for key in 0..8000 {
            prop_assert_eq!(table.value(key), model.get(&key).copied());
        }
        prop_assert_eq!(table.iter().count(), model.len());
    }

    #[test]
    fn scan_returns_exactly_once_whatever_was_present_throughout(
        which in which_hash(), stable in 1..2000_u32, steps in steps(20_000, 8000),
    ) {
        let scale = if which == 0 { 1 } else { 16 };
        let mut table = Table::with_hashes(HASHES[which].1);
        let stable = stable / scale + 1;
        // The stable keys are those no step names.
        (0..stable).for_each(|key| table.put(1_000_000 + key, 0));

        let (mut cursor, mut met, mut twice) = (0, HashSet::new(), 0);
        let mut rounds = 0;
        let mut scan = |table: &Table, positions: u32| {
            for _ in 0..positions {
                cursor = table.scan(cursor, &mut |entry| {
                    let key = number(entry);
                    twice += u32::from(key >= 1_000_000 && !met.insert(key));
                });
                if cursor == 0 {
                    return (true, met.len() as u32, twice);
                }
            }
            (false, 0, 0)
        };
        let mut end = (false, 0, 0);
        for step in steps {
            match step {
                Step::Put(from, len) => {
                    (from / scale..(from + len) / scale).for_each(|key| table.put(key, 0));
                }
                Step::Take(from, len) => {
                    (from / scale..(from + len) / scale).for_each(|key| drop(table.delete(key)));
                }
                Step::Scan(positions) => end = scan(&table, positions),
            }
            if end.0 {
                break;
            }
        }
        while !end.0 {
            rounds += 1;
            prop_assert!(rounds < 10_000, "the scan does not end");
            end = scan(&table, 1000);
        }
        prop_assert_eq!(end.1, stable);
        prop_assert_eq!(end.2, 0, "keys that came twice");
    }
}

/// How often each key comes in one whole scan, with `between` called after every position.
fn scan_all(table: &mut Table, mut between: impl FnMut(&mut Table)) -> HashMap<u32, u32> {
    let (mut cursor, mut met) = (0, HashMap::new());
    loop {
        cursor = table.scan(cursor, &mut |entry| {
            *met.entry(number(entry)).or_insert(0) += 1
        });
        if cursor == 0 {
            return met;
        }
        between(table);
    }
}

#[test]
fn scan_of_a_table_at_rest_meets_every_key_exactly_once() {
    for (name, hash) in HASHES {
        let mut table = Table::with_hashes(hash);
        (0..3000).for_each(|key| table.put(key, 0));
        let met = scan_all(&mut table, |_| {});
        assert_eq!((met.len(), met.values().max()), (3000, Some(&1)), "{name}");
    }
}

#[test]
fn scan_of_a_growing_table_meets_every_old_key_exactly_once() {
    let mut table = Table::new((1, 2));
    (0..3000).for_each(|key| table.put(key, 0));
    let (segments, mut next) = (table.segments, 3000);
    let met = scan_all(&mut table, |table| {
        (0..200).for_each(|key| table.put(next + key, 0));
        next += if next < 60_000 { 200 } else { 0 };
    });
    assert!(table.segments > segments * 8);
    assert!((0..3000).all(|key| met[&key] == 1));
}

#[test]
fn scan_of_a_shrinking_table_meets_every_remaining_key_exactly_once() {
    let mut table = Table::new((1, 2));
    (0..63_000).for_each(|key| table.put(key, 0));
    let (segments, mut next) = (table.segments, 3000);
    let met = scan_all(&mut table, |table| {
        (next..next + 20).for_each(|key| drop(table.delete(key)));
        next += 20;
    });
    assert!(table.segments < segments / 8);
    assert!((0..3000).all(|key| met[&key] == 1));
}

#[test]
fn scan_takes_any_cursor_and_hands_out_small_ones() {
    let mut table = Table::new((1, 2));
    (0..20_000).for_each(|key| table.put(key, 0));
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..10_000 {
        let cursor = rng.u64(..) >> rng.u32(0..64);
        let next = table.scan(cursor, &mut |_| {});
        assert!(
            next < 1 << (table.depth + Cursor::BUCKET_BITS),
            "{cursor} gave {next}"
        );
    }
}
