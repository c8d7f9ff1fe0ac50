use std::collections::HashSet;

use super::super::testing::{any_text, assert_uniform};
use super::*;

const SEED: Seed = (33, 44);

fn contents(set: &Set) -> HashSet<Vec<u8>> {
    set.view()
        .iter()
        .map(|member| member.text().to_vec())
        .collect()
}

fn add_all<T: ToString>(set: &mut Set, members: impl IntoIterator<Item = T>) {
    for member in members {
        set.add(member.to_string().as_bytes(), SetLimits::default(), SEED);
    }
}

#[test]
fn changes_match_a_hash_set() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let limits = SetLimits {
            intset_entries: rng.usize(0..600),
            listpack_entries: rng.usize(0..200),
            listpack_value_bytes: rng.usize(0..80),
        };
        let (mut set, mut model) = (Set::new(), HashSet::new());
        let range = rng.i64(1..4000) << rng.u32(..50);
        // Some seeds have integers only, others a text sooner or later.
        let texts = rng.u32(..3) * rng.u32(..500);
        for step in 0..4000 {
            let member = if texts > 0 && rng.u32(..texts) == 0 {
                any_text(&mut rng)
            } else {
                rng.i64(-range..range).to_string().into_bytes()
            };
            if rng.u32(..10) < if step % 1000 > 600 { 8 } else { 3 } {
                let member = match model.iter().next() {
                    Some(member) if rng.bool() => Vec::clone(member),
                    _ => member,
                };
                assert_eq!(set.remove(&member), model.remove(&member));
            } else {
                let before = set.view().encoding();
                let listpack = set.view().len() < limits.listpack_entries
                    && member.len() <= limits.listpack_value_bytes;
                let new = set.add(&member, limits, SEED);
                assert_eq!(new, model.insert(member.clone()));
                let after = set.view().encoding();
                match before {
                    SetEncoding::Hashtable => assert_eq!(after, before),
                    SetEncoding::Listpack if new => assert_eq!(after, listpack_if(listpack)),
                    _ if !new => assert_eq!(after, before),
                    _ => {
                        let int = Elem::parse(&member).int().is_some();
                        let stays = int && model.len() <= limits.intset_entries;
                        assert_eq!(after == SetEncoding::Intset, stays);
                    }
                }
            }
            let probe = rng.i64(-range..range).to_string().into_bytes();
            assert_eq!(set.view().contains(&probe), model.contains(&probe));
            assert_eq!(set.view().len(), model.len());
            if step % 200 == 0 {
                assert_eq!(contents(&set), model);
                if let Form::Table(table) = &set.form {
                    table.assert_sound();
                }
            }
            if let Some((kind, bytes)) = set.small() {
                set = Set::from_small(kind, bytes.to_vec());
            }
        }
        assert_eq!(contents(&set), model);
    }
}

#[test]
fn an_intset_is_sorted_and_a_listpack_is_in_order_of_insertion() {
    let mut set = Set::new();
    add_all(&mut set, [5, -3, 100_000, 7]);
    let members: Vec<_> = set.view().iter().filter_map(Elem::int).collect();
    assert_eq!(members, [-3, 5, 7, 100_000]);
    add_all(&mut set, ["b"]);
    add_all(&mut set, [1]);
    let members: Vec<_> = set
        .view()
        .iter()
        .map(|member| member.text().to_vec())
        .collect();
    assert_eq!(members, [&b"-3"[..], b"5", b"7", b"100000", b"b", b"1"]);
    assert_eq!(set.view().encoding().name(), "listpack");
}

#[test]
fn names_follow_the_limits_of_redis() {
    let mut set = Set::new();
    add_all(&mut set, 0..512);
    assert_eq!(set.view().encoding().name(), "intset");
    add_all(&mut set, [512]);
    assert_eq!(set.view().encoding().name(), "hashtable");

    let mut set = Set::new();
    add_all(&mut set, 0..128);
    add_all(&mut set, ["text"]);
    assert_eq!(set.view().encoding().name(), "hashtable");

    let mut set = Set::new();
    add_all(&mut set, 0..127);
    add_all(&mut set, ["text"]);
    assert_eq!(set.view().encoding().name(), "listpack");
    add_all(&mut set, [999]);
    assert_eq!(set.view().encoding().name(), "hashtable");

    let mut set = Set::new();
    add_all(&mut set, ["x".repeat(65)]);
    assert_eq!(set.view().encoding().name(), "hashtable");
    assert!(set.small().is_some(), "one long member is still one block");

    // An intset that is too long for one never becomes a listpack.
    let limits = SetLimits {
        intset_entries: 3,
        ..SetLimits::default()
    };
    let mut set = Set::new();
    for member in [b"1", b"2", b"3", b"4"] {
        set.add(member, limits, SEED);
    }
    assert_eq!(set.view().encoding().name(), "hashtable");

    let hint = |first: &[u8], hint| Set::for_members(first, hint, SetLimits::default()).encoding;
    assert_eq!(hint(b"1", 512), SetEncoding::Intset);
    assert_eq!(hint(b"1", 513), SetEncoding::Hashtable);
    assert_eq!(hint(b"a", 128), SetEncoding::Listpack);
    assert_eq!(hint(b"a", 129), SetEncoding::Hashtable);
}

#[test]
fn five_small_integers_take_eleven_bytes() {
    let mut set = Set::new();
    add_all(&mut set, [1, 20, 300, 400, 999]);
    let (kind, bytes) = set.small().expect("a small set");
    assert!(kind.ints);
    assert_eq!(bytes.len(), 11);
}

#[test]
fn a_scan_sees_every_member_that_stays() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut set = Set::new();
        add_all(&mut set, 0..600);
        add_all(&mut set, (0..rng.u32(..5000)).map(|n| format!("other{n}")));
        let (mut cursor, mut seen, mut number) = (0, HashSet::new(), 0);
        loop {
            cursor = set.view().scan(cursor, &mut |member| {
                seen.insert(member.text().to_vec());
            });
            if cursor == 0 {
                break;
            }
            for _ in 0..rng.usize(..60) {
                let member = format!("other{number}");
                number += 1;
                if seed % 2 == 0 {
                    set.remove(member.as_bytes());
                } else {
                    add_all(&mut set, [format!("new{}", rng.u32(..2000))]);
                    set.remove(format!("new{}", rng.u32(..2000)).as_bytes());
                }
            }
        }
        for member in 0..600 {
            assert!(seen.contains(member.to_string().as_bytes()), "{member}");
        }
    }
}

#[test]
fn random_members_are_uniform() {
    let mut rng = fastrand::Rng::with_seed(5);
    for members in [5, 300, 5000] {
        let mut set = Set::new();
        add_all(&mut set, 0..members * 3);
        // Pages that have lost members must not be drawn less often for each that is left.
        for member in members..members * 3 {
            assert!(set.remove(member.to_string().as_bytes()));
        }
        assert_uniform(members, 100, |counts| {
            let member = set.view().random(&mut rng).and_then(Elem::int);
            counts[member.expect("a number") as usize] += 1;
        });
        assert_uniform(members, 50, |counts| {
            set.view().sample(members / 3, &mut rng, &mut |member| {
                counts[member.int().expect("a number") as usize] += 1;
            });
        });
    }
}

#[test]
fn memory_per_member_stays_low_at_every_size() {
    for members in [129, 513, 1000, 100_000] {
        let mut set = Set::new();
        add_all(&mut set, (0..members).map(|n| format!("member:{n:06}")));
        let each = set.heap_bytes() / members;
        assert!(each <= 30, "{each} bytes each of {members}");
    }
}

/// Segments are counted as the blocks that they get from the allocator.
#[test]
fn a_large_set_of_numbers_counts_all_of_its_blocks() {
    let mut set = Set::new();
    add_all(&mut set, 0..100_000);
    // Its pages of 32 bytes and less, and what holds them.
    assert!(set.heap_bytes() > 1_000_000, "{}", set.heap_bytes());
}

#[test]
fn what_is_too_large_for_a_listpack_is_none_by_name() {
    let limits = SetLimits {
        listpack_entries: usize::MAX,
        listpack_value_bytes: usize::MAX,
        ..SetLimits::default()
    };
    let mut set = Set::new();
    for number in 0..17 {
        let mut member = vec![b'x'; 1 << 20];
        member.push(number);
        assert!(set.add(&member, limits, SEED));
        if number < 6 {
            assert_eq!(set.view().encoding().name(), "listpack", "{number}");
        }
    }
    assert_eq!(set.view().encoding().name(), "hashtable");
}
