use std::collections::{BTreeMap, HashSet};

use super::super::testing::{any_text, assert_uniform};
use super::*;

const SEED: Seed = (55, 66);

/// Members with their scores, kept in order by sorting.
#[derive(Default)]
struct Model(BTreeMap<Vec<u8>, f64>);

impl Model {
    fn ordered(&self) -> Vec<(Vec<u8>, f64)> {
        let mut all: Vec<_> = self.0.iter().map(|(m, &s)| (m.clone(), s)).collect();
        all.sort_by(|(left, a), (right, b)| a.total_cmp(b).then_with(|| left.cmp(right)));
        all
    }
}

fn collect<'a>(pairs: impl Iterator<Item = (Text<'a>, f64)>) -> Vec<(Vec<u8>, f64)> {
    pairs
        .map(|(member, score)| (member.to_vec(), score))
        .collect()
}

fn assert_same(zset: &Zset, model: &Model, rng: &mut fastrand::Rng) {
    if let Form::Tree(tree) = &zset.form {
        tree.assert_sound();
    }
    let (view, all) = (zset.view(), model.ordered());
    assert_eq!(collect(view.iter()), all);
    let (from, to) = (rng.usize(..=all.len()), rng.usize(..=all.len()));
    let ranks = from.min(to)..from.max(to);
    assert_eq!(collect(view.range(ranks.clone())), all[ranks.clone()]);
    let mut back = collect(view.range_back(ranks.clone()));
    back.reverse();
    assert_eq!(back, all[ranks]);
    if let Some((member, score)) = all.get(from) {
        assert_eq!(view.rank(member), Some((from, *score)));
    }
    let bounds = [rng.bool(), rng.bool()].map(|exclusive| ScoreBound {
        score: match rng.u32(..12) {
            0 => f64::INFINITY,
            1 => f64::NEG_INFINITY,
            _ if all.is_empty() => 0.0,
            _ => all[rng.usize(..all.len())].1,
        },
        exclusive,
    });
    let inside = |score: f64| {
        let [min, max] = bounds;
        (score > min.score || !min.exclusive && score == min.score)
            && (score < max.score || !max.exclusive && score == max.score)
    };
    let expected: Vec<_> = all
        .into_iter()
        .filter(|(_, score)| inside(*score))
        .collect();
    assert_eq!(
        collect(view.range(view.score_range(bounds[0], bounds[1]))),
        expected
    );
}

fn any_score(rng: &mut fastrand::Rng, spread: i64) -> f64 {
    match rng.u32(..20) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2..6 => rng.f64() * 10.0,
        6 => rng.i64(..) as f64,
        _ => rng.i64(-spread..spread) as f64,
    }
}

#[test]
fn changes_match_a_sorted_model() {
    for seed in 0..40 {
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let limits = ZsetLimits {
            entries: rng.usize(0..150),
            value_bytes: rng.usize(5..80),
        };
        let spread = 1 << rng.u32(..30);
        let members = rng.u32(1..4000);
        let long = rng.u32(..4) == 0;
        let (mut zset, mut model) = (Zset::new(), Model::default());
        let mut listpack = true;
        for step in 0..3000 {
            let mut member = rng.u32(..members).to_string().into_bytes();
            if long && rng.bool() {
                member.extend(any_text(&mut rng));
            }
            match rng.u32(..20) {
                0 if step % 1000 > 500 => {
                    let len = model.0.len();
                    let from = rng.usize(..=len);
                    let ranks = from..from + rng.usize(..=(len - from).min(400));
                    let mut removed = Vec::new();
                    zset.remove_ranks(ranks.clone(), &mut |member, score| {
                        removed.push((member.to_vec(), score));
                    });
                    assert_eq!(removed, model.ordered()[ranks]);
                    for (member, _) in removed {
                        model.0.remove(&member);
                    }
                }
                1..7 => assert_eq!(zset.remove(&member), model.0.remove(&member)),
                _ => {
                    let score = any_score(&mut rng, spread);
                    let old = model.0.get(&member).copied();
                    let updated = zset.update(&member, limits, SEED, |found| {
                        assert_eq!(found, old);
                        Some(score)
                    });
                    let expected = match old {
                        Some(old) => Updated::Scored { old, new: score },
                        None => Updated::Added(score),
                    };
                    assert_eq!(updated, expected);
                    listpack &= old.is_some() || member.len() <= limits.value_bytes;
                    model.0.insert(member, score);
                    listpack &= model.0.len() <= limits.entries;
                }
            }
            assert_eq!(zset.view().len(), model.0.len());
            assert_eq!(zset.view().encoding() == ZsetEncoding::Listpack, listpack);
            if step % 150 == 0 {
                assert_same(&zset, &model, &mut rng);
            }
            if let Some((encoding, bytes)) = zset.small() {
                zset = Zset::from_small(encoding, bytes.to_vec());
            }
        }
        assert_same(&zset, &model, &mut rng);
    }
}

#[test]
fn a_decision_for_no_score_changes_nothing() {
    for members in [3, 1000] {
        let mut zset = numbered(members);
        assert_eq!(
            zset.update(b"new", ZsetLimits::default(), SEED, |_| None),
            Updated::Nothing
        );
        assert_eq!(
            zset.update(b"1", ZsetLimits::default(), SEED, |_| None),
            Updated::Nothing
        );
        assert_eq!(zset.view().len(), members);
    }
}

/// A set of the numbers below `members`, each with its own value as the score.
fn numbered(members: usize) -> Zset {
    let mut zset = Zset::new();
    for member in 0..members {
        let text = member.to_string();
        zset.insert(text.as_bytes(), member as f64, ZsetLimits::default(), SEED);
    }
    zset
}

#[test]
fn large_sets_keep_their_ranks_through_growth_and_shrinking() {
    for (seed, ascending) in [(1, true), (2, false)] {
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut order: Vec<u32> = (0..50_000).collect();
        if !ascending {
            rng.shuffle(&mut order);
        }
        let mut zset = Zset::new();
        for &number in &order {
            let member = format!("m{number}");
            zset.insert(
                member.as_bytes(),
                f64::from(number),
                ZsetLimits::default(),
                SEED,
            );
        }
        let Form::Tree(tree) = &zset.form else {
            panic!("not a tree");
        };
        tree.assert_sound();
        for number in (0..50_000).step_by(97) {
            let member = format!("m{number}");
            let expected = (number as usize, f64::from(number));
            assert_eq!(zset.view().rank(member.as_bytes()), Some(expected));
        }
        let full = zset.heap_bytes();
        rng.shuffle(&mut order);
        for &number in &order[..49_000] {
            let member = format!("m{number}");
            assert_eq!(zset.remove(member.as_bytes()), Some(f64::from(number)));
        }
        if let Form::Tree(tree) = &zset.form {
            tree.assert_sound();
        }
        assert!(
            zset.heap_bytes() * 10 < full,
            "{} of {full}",
            zset.heap_bytes()
        );
        zset.remove_ranks(0..usize::MAX, &mut |_, _| {});
        assert!(zset.view().is_empty());
        assert!(zset.small().is_some());
    }
}

#[test]
fn members_of_one_score_are_found_by_range() {
    for members in [20, 5000] {
        let mut zset = Zset::new();
        for member in 0..members {
            let member = format!("{member:05}");
            zset.insert(member.as_bytes(), 0.0, ZsetLimits::default(), SEED);
        }
        let view = zset.view();
        let check = |min, max, expected: Range<usize>| {
            assert_eq!(view.lex_range(min, max), expected);
        };
        use LexBound::{Exclusive, Inclusive, Max, Min};
        check(Min, Max, 0..members);
        check(Inclusive(b"00005"), Max, 5..members);
        check(Exclusive(b"00005"), Inclusive(b"00010"), 6..11);
        check(Exclusive(b"00005"), Exclusive(b"00010"), 6..10);
        check(Inclusive(b"000051"), Inclusive(b"00010x"), 6..11);
        check(Max, Min, members..members);
        check(Inclusive(b"00009"), Inclusive(b"00003"), 9..9);
    }
}

#[test]
fn a_moved_member_has_its_new_rank() {
    let mut zset = numbered(3000);
    zset.insert(b"10", 2500.5, ZsetLimits::default(), SEED);
    assert_eq!(zset.view().rank(b"10"), Some((2500, 2500.5)));
    assert_eq!(zset.view().rank(b"11"), Some((10, 11.0)));
    zset.insert(b"10", 9.5, ZsetLimits::default(), SEED);
    assert_eq!(zset.view().rank(b"10"), Some((10, 9.5)));
    zset.insert(b"2999", f64::NEG_INFINITY, ZsetLimits::default(), SEED);
    assert_eq!(zset.view().rank(b"2999"), Some((0, f64::NEG_INFINITY)));
}

#[test]
fn names_follow_the_limits_of_redis() {
    let mut zset = numbered(128);
    assert_eq!(zset.view().encoding().name(), "listpack");
    zset.insert(b"one more", 1.0, ZsetLimits::default(), SEED);
    assert_eq!(zset.view().encoding().name(), "skiplist");
    zset.remove(b"one more");
    assert_eq!(zset.view().encoding().name(), "skiplist");
    zset.settle(3, ZsetLimits::default());
    assert_eq!(zset.view().encoding().name(), "listpack");
    assert!(zset.small().is_some());

    let mut zset = numbered(5);
    zset.insert(&[b'x'; 65], 1.0, ZsetLimits::default(), SEED);
    assert_eq!(zset.view().encoding().name(), "skiplist");
    assert!(zset.small().is_some(), "one long member is still one block");

    let mut zset = Zset::new();
    zset.prepare(129, 1, ZsetLimits::default());
    assert_eq!(zset.view().encoding().name(), "skiplist");
}

#[test]
fn five_members_with_integer_scores_take_little() {
    let mut zset = Zset::new();
    for member in 0..5 {
        let text = format!("member{member:02}");
        zset.insert(
            text.as_bytes(),
            f64::from(member) * 200.0,
            ZsetLimits::default(),
            SEED,
        );
    }
    let (_, bytes) = zset.small().expect("a small set");
    assert!(bytes.len() <= 4 + 5 * (9 + 2), "{}", bytes.len());
}

#[test]
fn a_negative_zero_is_kept_where_redis_keeps_it() {
    let score_of = |named: ZsetEncoding| {
        let mut zset = Zset::from_small(named, Vec::new());
        zset.insert(b"m", -0.0, ZsetLimits::default(), SEED);
        zset.view().score(b"m").expect("a member")
    };
    assert!(score_of(ZsetEncoding::Skiplist).is_sign_negative());
    assert!(score_of(ZsetEncoding::Listpack).is_sign_positive());
}

#[test]
fn a_scan_sees_every_member_that_stays_even_if_its_score_changes() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut zset = numbered(600);
        for other in 0..rng.u32(..5000) {
            let member = format!("other{other}");
            zset.insert(member.as_bytes(), rng.f64(), ZsetLimits::default(), SEED);
        }
        let (mut cursor, mut seen, mut number) = (0, HashSet::new(), 0);
        loop {
            cursor = zset.view().scan(cursor, &mut |member, _| {
                seen.insert(member.to_vec());
            });
            if cursor == 0 {
                break;
            }
            for _ in 0..rng.usize(..40) {
                let moved = rng.u32(..600).to_string();
                zset.insert(
                    moved.as_bytes(),
                    rng.f64() * 600.0,
                    ZsetLimits::default(),
                    SEED,
                );
                let member = format!("other{number}");
                number += 1;
                if seed % 2 == 0 {
                    zset.remove(member.as_bytes());
                } else {
                    zset.insert(member.as_bytes(), rng.f64(), ZsetLimits::default(), SEED);
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
    let mut rng = fastrand::Rng::with_seed(3);
    for members in [7, 2000] {
        let zset = numbered(members);
        assert_uniform(members, 100, |counts| {
            let (_, score) = zset.view().random(&mut rng).expect("not empty");
            counts[score as usize] += 1;
        });
        for share in [2, 7] {
            assert_uniform(members, 100, |counts| {
                zset.view()
                    .sample(members / share, &mut rng, &mut |_, score| {
                        counts[score as usize] += 1;
                    });
            });
        }
    }
}

#[test]
fn memory_per_member_stays_low_at_every_size() {
    let mut rng = fastrand::Rng::with_seed(4);
    for members in [129, 513, 1000, 100_000] {
        let mut zset = Zset::new();
        for _ in 0..members {
            let member = format!("member:{:06}", rng.u32(..1_000_000));
            zset.insert(member.as_bytes(), rng.f64(), ZsetLimits::default(), SEED);
        }
        let each = zset.heap_bytes() / zset.view().len();
        // Redis takes 116 for a skiplist node, a dict entry, a bucket and the member.
        let percent = if members < 10_000 { 75 } else { 65 };
        assert!(
            each * 100 <= 116 * percent,
            "{each} bytes each of {members}"
        );
    }
}

#[test]
fn a_copy_is_sound_and_independent() {
    let mut zset = numbered(3000);
    let mut copy = zset.clone();
    zset.remove_ranks(0..2000, &mut |_, _| {});
    let Form::Tree(tree) = &copy.form else {
        panic!("not a tree");
    };
    tree.assert_sound();
    assert_eq!(copy.view().rank(b"2500"), Some((2500, 2500.0)));
    copy.remove_ranks(0..usize::MAX, &mut |_, _| {});
    assert_eq!(zset.view().rank(b"2500"), Some((500, 2500.0)));
}

#[test]
fn a_large_set_is_dropped_in_pieces() {
    let mut zset = numbered(20_000);
    let pieces = zset.pieces();
    let mut dropped = 1;
    while zset.drop_piece() {
        dropped += 1;
    }
    assert_eq!(pieces, dropped);
    assert!(pieces > 20);
}

#[test]
fn what_is_too_large_for_a_listpack_is_none_by_name() {
    let limits = ZsetLimits {
        entries: usize::MAX,
        value_bytes: usize::MAX,
    };
    let member = |number: u8| {
        let mut member = vec![b'x'; 1 << 20];
        member.push(number);
        member
    };
    let mut zset = Zset::new();
    for number in 0..17 {
        zset.insert(&member(number), 1.0, limits, SEED);
        if number < 6 {
            assert_eq!(zset.view().encoding().name(), "listpack", "{number}");
        }
    }
    assert_eq!(zset.view().encoding().name(), "skiplist");
    for (count, name) in [(6, "listpack"), (17, "skiplist")] {
        let mut zset = Zset::with_encoding(ZsetEncoding::Skiplist);
        for number in 0..count {
            zset.insert(&member(number), 1.0, limits, SEED);
        }
        zset.settle((1 << 20) + 1, limits);
        assert_eq!(zset.view().encoding().name(), name);
    }
}
