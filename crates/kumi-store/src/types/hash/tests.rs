use std::collections::{HashMap, HashSet};

use super::super::packed::elem::Text;
use super::super::testing::{any_text, assert_uniform};
use super::*;

/// The texts of a pair.
fn texts<'a>((field, value): (Elem<'a>, Elem<'a>)) -> (Text<'a>, Text<'a>) {
    (field.text(), value.text())
}

const SEED: Seed = (11, 22);

fn limits(entries: usize, value_bytes: usize) -> HashLimits {
    HashLimits {
        entries,
        value_bytes,
    }
}

fn contents(hash: &Hash) -> HashMap<Vec<u8>, Vec<u8>> {
    let pairs = hash.view().iter().map(texts);
    pairs.map(|(f, v)| (f.to_vec(), v.to_vec())).collect()
}

fn assert_sound(hash: &Hash) {
    if let Form::Table(table) = &hash.form {
        table.assert_sound();
    }
}

#[test]
fn changes_match_a_map() {
    for seed in 0..30 {
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let limits = limits(rng.usize(0..200), rng.usize(0..100));
        let (mut hash, mut model) = (Hash::new(), HashMap::new());
        let fields = rng.i64(1..3000);
        let mut listpack = true;
        for step in 0..4000 {
            let field = rng.i64(..fields).to_string().into_bytes();
            // A run of removals now and then, so that tables shrink.
            if rng.u32(..10) < if step % 1000 > 600 { 8 } else { 3 } {
                assert_eq!(hash.remove(&field), model.remove(&field).is_some());
            } else {
                let value = any_text(&mut rng);
                listpack &= field.len().max(value.len()) <= limits.value_bytes;
                let new = hash.set(&field, &value, limits, SEED);
                assert_eq!(new, model.insert(field.clone(), value).is_none());
                listpack &= model.len() <= limits.entries;
            }
            assert_eq!(hash.view().encoding() == HashEncoding::Listpack, listpack);
            let probe = rng.i64(..fields).to_string().into_bytes();
            let found = hash.view().get(&probe).map(|value| value.text().to_vec());
            assert_eq!(found.as_ref(), model.get(&probe));
            assert_eq!(hash.view().len(), model.len());
            if step % 200 == 0 {
                assert_sound(&hash);
                assert_eq!(contents(&hash), model);
            }
            if let Some((encoding, bytes)) = hash.small() {
                assert!(PackedView::check(bytes).is_some());
                hash = Hash::from_small(encoding, bytes.to_vec());
            }
        }
        assert_eq!(contents(&hash), model);
    }
}

#[test]
fn fields_keep_their_order_while_the_hash_is_a_listpack() {
    let mut hash = Hash::new();
    for field in (0..128).rev() {
        let field = format!("f{field}");
        assert!(hash.set(field.as_bytes(), b"1", HashLimits::default(), SEED));
    }
    hash.set(b"f100", b"changed", HashLimits::default(), SEED);
    hash.remove(b"f127");
    let fields: Vec<_> = hash
        .view()
        .iter()
        .map(|(field, _)| field.text().to_vec())
        .collect();
    let expected: Vec<_> = (0..127)
        .rev()
        .map(|field| format!("f{field}").into_bytes())
        .collect();
    assert_eq!(fields, expected);
    assert_eq!(hash.view().encoding().name(), "listpack");
}

#[test]
fn a_long_value_changes_the_name_and_not_the_form() {
    let mut hash = Hash::new();
    for field in 0..5 {
        let field = format!("field{field}");
        hash.set(field.as_bytes(), b"value000", HashLimits::default(), SEED);
    }
    hash.set(b"field3", &[b'v'; 100], HashLimits::default(), SEED);
    let (encoding, bytes) = hash.small().expect("a packed hash");
    assert_eq!(encoding, HashEncoding::Hashtable);
    assert_eq!(bytes.len(), 4 + 5 * 7 + 4 * 9 + 102);
    hash.remove(b"field3");
    assert_eq!(hash.view().encoding(), HashEncoding::Hashtable);
}

#[test]
fn a_scan_sees_every_field_that_stays() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut hash = Hash::new();
        let stay: Vec<_> = (0..500).map(|n| format!("stay{n}").into_bytes()).collect();
        for field in &stay {
            hash.set(field, b"v", HashLimits::default(), SEED);
        }
        let mut others: Vec<Vec<u8>> = Vec::new();
        let (mut cursor, mut seen, mut calls) = (0, HashSet::new(), 0);
        loop {
            cursor = hash.view().scan(cursor, &mut |field, _| {
                seen.insert(field.text().to_vec());
            });
            calls += 1;
            assert!(calls < 100_000, "a scan has to end");
            if cursor == 0 {
                break;
            }
            // Growth in one half of the seeds' phases, shrinking in the other.
            if (calls / 40) % 2 == seed % 2 {
                for _ in 0..rng.usize(..100) {
                    let field = format!("other{}", rng.u32(..)).into_bytes();
                    hash.set(&field, b"v", HashLimits::default(), SEED);
                    others.push(field);
                }
            } else {
                for _ in 0..rng.usize(..200).min(others.len()) {
                    let field = others.swap_remove(rng.usize(..others.len()));
                    hash.remove(&field);
                }
            }
        }
        assert!(stay.iter().all(|field| seen.contains(field)));
        assert_sound(&hash);
    }
}

#[test]
fn a_scan_without_changes_sees_every_field_once() {
    let mut hash = Hash::new();
    for field in 0..10_000 {
        hash.set(
            format!("f{field}").as_bytes(),
            b"",
            HashLimits::default(),
            SEED,
        );
    }
    let (mut cursor, mut seen) = (0, Vec::new());
    loop {
        cursor = hash
            .view()
            .scan(cursor, &mut |field, _| seen.push(field.text().to_vec()));
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(seen.len(), 10_000);
    assert_eq!(seen.into_iter().collect::<HashSet<_>>().len(), 10_000);
}

#[test]
fn random_fields_are_uniform() {
    let mut rng = fastrand::Rng::with_seed(7);
    for fields in [10, 40, 500, 3000] {
        let mut hash = Hash::new();
        for field in 0..fields {
            hash.set(
                field.to_string().as_bytes(),
                b"v",
                HashLimits::default(),
                SEED,
            );
        }
        assert_uniform(fields, 100, |counts| {
            let (field, _) = hash.view().random(&mut rng).expect("not empty");
            counts[field.int().expect("a number") as usize] += 1;
        });
        for share in [2, 10] {
            assert_uniform(fields, 100, |counts| {
                let mut distinct = HashSet::new();
                hash.view()
                    .sample(fields / share, &mut rng, &mut |field, _| {
                        let field = field.int().expect("a number") as usize;
                        assert!(distinct.insert(field));
                        counts[field] += 1;
                    });
                assert_eq!(distinct.len(), fields / share);
            });
        }
    }
}

#[test]
fn a_sample_larger_than_the_hash_is_all_of_it() {
    let mut hash = Hash::new();
    for field in 0..100 {
        hash.set(
            format!("{field}").as_bytes(),
            b"v",
            HashLimits::default(),
            SEED,
        );
    }
    let mut seen = HashSet::new();
    let mut rng = fastrand::Rng::with_seed(1);
    hash.view().sample(usize::MAX, &mut rng, &mut |field, _| {
        seen.insert(field.text().to_vec());
    });
    assert_eq!(seen.len(), 100);
}

#[test]
fn memory_per_field_stays_low_at_every_size() {
    // (fields, Redis's bytes for each: dict entry, bucket and two strings)
    for (fields, redis) in [(129, 70), (513, 70), (1000, 70), (100_000, 64)] {
        let mut hash = Hash::new();
        for field in 0..fields {
            let field = format!("field:{field:07}");
            hash.set(field.as_bytes(), b"valueval", HashLimits::default(), SEED);
        }
        let each = hash.heap_bytes() / fields;
        assert!(each * 100 <= redis * 65, "{each} bytes each of {fields}");
    }
}

#[test]
fn large_values_leave_their_pages_small() {
    let mut hash = Hash::new();
    let value = vec![b'v'; 50_000];
    for field in 0..200 {
        hash.set(
            format!("{field}").as_bytes(),
            &value,
            HashLimits::default(),
            SEED,
        );
    }
    let Form::Table(table) = &hash.form else {
        panic!("not a table");
    };
    let longest = table.views().map(|view| view.len() / 2).max();
    assert!(longest.is_some_and(|longest| longest <= 8), "{longest:?}");
    assert!(hash.heap_bytes() < 200 * 60_000);
}

#[test]
fn a_copy_is_sound_and_independent() {
    let mut hash = Hash::new();
    for field in 0..2000 {
        let field = format!("{field}");
        hash.set(field.as_bytes(), b"v", HashLimits::default(), SEED);
    }
    let copy = hash.clone();
    for field in 0..2000 {
        hash.remove(format!("{field}").as_bytes());
    }
    assert_sound(&copy);
    assert_eq!(contents(&copy).len(), 2000);
}

#[test]
fn a_large_hash_is_dropped_in_pieces() {
    let mut hash = Hash::new();
    for field in 0..20_000 {
        hash.set(
            format!("{field}").as_bytes(),
            b"v",
            HashLimits::default(),
            SEED,
        );
    }
    let pieces = hash.pieces();
    let mut dropped = 1;
    while hash.drop_piece() {
        dropped += 1;
    }
    assert_eq!(pieces, dropped);
    assert!(pieces > 20);
}

#[test]
fn what_is_too_large_for_a_listpack_is_none_by_name() {
    let limits = limits(usize::MAX, usize::MAX);
    let mut hash = Hash::new();
    for number in 0..17 {
        hash.set(&[number], &vec![b'x'; 1 << 20], limits, SEED);
        if number < 6 {
            assert_eq!(hash.view().encoding().name(), "listpack", "{number}");
        }
    }
    assert_eq!(hash.view().encoding().name(), "hashtable");
    let mut hash = Hash::new();
    hash.set(b"f", &vec![b'x'; 17 << 20], limits, SEED);
    assert_eq!(hash.view().encoding().name(), "hashtable");
}
