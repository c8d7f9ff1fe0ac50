//! The same changes on a running redis-server: afterwards its DUMP holds the same nodes.
//!
//! Redis 7.0 has no lists that are called `listpack`, so the list here is a quicklist from its first element on.

use super::*;
use crate::reference::{Reference, payload};

fn theirs(redis: &mut Reference) -> Vec<Vec<Vec<u8>>> {
    let payload = redis.call(&["DUMP", "k"]);
    payload.text().map(payload::list_nodes).unwrap_or_default()
}

fn ours(list: &List) -> Vec<Vec<Vec<u8>>> {
    let view = list.view();
    (0..view.node_count())
        .filter_map(|at| match view.node(at)? {
            NodeRef::Packed(node) if node.is_empty() => None,
            NodeRef::Packed(node) => Some(node.iter().map(|elem| elem.text().to_vec()).collect()),
            NodeRef::Lone(bytes) | NodeRef::Plain(bytes) => Some(vec![bytes.to_vec()]),
        })
        .collect()
}

/// Sets a limit at random.
fn configure(redis: &mut Reference, rng: &mut fastrand::Rng) -> ListLimits {
    let limits = limits([-1, -2, 3, 8, 1][rng.usize(0..5)]);
    let fill = limits.fill.to_string();
    redis.call(&["CONFIG", "SET", "list-max-listpack-size", &fill]);
    limits
}

#[test]
fn nodes_split_and_merge_as_in_redis() {
    let mut redis = Reference::start();
    for seed in 0..12 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut limits = configure(&mut redis, &mut rng);
        redis.call(&["DEL", "k"]);
        let mut list = List::quicklist(limits);
        for step in 0..300 {
            // The list keeps the limit it was created with.
            if rng.u8(0..30) == 0 {
                limits = configure(&mut redis, &mut rng);
                if list.is_empty() {
                    list = List::quicklist(limits);
                }
            }
            let element = match rng.u8(0..3) {
                0 => vec![b'x'; rng.usize(0..1500)],
                _ => rng.u32(0..40).to_string().into_bytes(),
            };
            let index = rng.usize(0..list.len() + 1);
            let place = index.to_string();
            let context = format!(
                "seed {seed} step {step} fill {} of {}",
                limits.fill, list.fill
            );
            match rng.u8(0..14) {
                0..6 => {
                    let front = rng.bool();
                    let (side, command) = match front {
                        true => (Side::Front, "LPUSH"),
                        false => (Side::Back, "RPUSH"),
                    };
                    list.push(side, &element, limits);
                    redis.number(&[command.as_bytes(), b"k", &element]);
                }
                6..9 if index < list.len() => {
                    // LINSERT finds its place by an element; this one occurs once.
                    let pivot = format!("pivot {step}").into_bytes();
                    list.set(index, &pivot, limits);
                    redis.call(&[b"LSET".as_slice(), b"k", place.as_bytes(), &pivot]);
                    let (side, word) = match rng.bool() {
                        true => (Side::Front, "BEFORE"),
                        false => (Side::Back, "AFTER"),
                    };
                    assert!(list.insert(index, side, &element, limits));
                    redis.number(&[
                        b"LINSERT".as_slice(),
                        b"k",
                        word.as_bytes(),
                        &pivot,
                        &element,
                    ]);
                }
                9 if index < list.len() => {
                    list.set(index, &element, limits);
                    redis.call(&[b"LSET".as_slice(), b"k", place.as_bytes(), &element]);
                }
                10 => {
                    let (side, count) = match rng.bool() {
                        true => (Side::Front, "2"),
                        false => (Side::Back, "-2"),
                    };
                    let removed = list.remove_equal(&element, side, 2);
                    let theirs =
                        redis.number(&[b"LREM".as_slice(), b"k", count.as_bytes(), &element]);
                    assert_eq!(removed as i64, theirs, "{context}");
                }
                11 => {
                    let keep = list.len() - rng.usize(0..list.len().min(3) + 1);
                    let start = rng.usize(0..2);
                    let (from, to) = (start.to_string(), (keep as i64 - 1).to_string());
                    list.remove_range(keep, usize::MAX);
                    list.remove_range(0, start);
                    if keep == 0 {
                        redis.call(&["DEL", "k"]);
                    } else {
                        redis.call(&["LTRIM", "k", &from, &to]);
                    }
                }
                _ => {
                    list.remove_range(0, 1);
                    redis.call(&["LPOP", "k"]);
                }
            }
            assert_eq!(ours(&list), theirs(&mut redis), "{context}");
            if list.is_empty() {
                list = List::quicklist(limits);
            }
        }
        list.push(Side::Back, b"last", limits);
        let payload = payload::of_list(list.view());
        redis.call(&[b"RESTORE".as_slice(), b"k", b"0", &payload, b"REPLACE"]);
        assert_eq!(ours(&list), theirs(&mut redis), "seed {seed}");
        // What was read is a list with the same nodes.
        let mut again = List::new();
        for node in ours(&list) {
            let mut block = PackedList::new();
            node.iter()
                .for_each(|text| block.push_back(Elem::parse(text)));
            again.push_node(block);
        }
        assert_eq!(ours(&again), ours(&list), "seed {seed}");
        again.push_plain_node(b"plain");
        assert_eq!(again.len(), list.len() + 1);
        again.settle(false, limits);
        assert_eq!(name(&again), "quicklist");
    }
}
