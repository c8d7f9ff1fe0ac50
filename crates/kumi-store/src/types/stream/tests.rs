mod model;
mod redis;

use super::*;
use std::collections::BTreeMap;

fn id(ms: u64, seq: u64) -> StreamId {
    StreamId::new(ms, seq)
}

/// A stream with entries `1-0` to `count-0`, five to a node.
fn stream_of(count: u64) -> Stream {
    let limits = NodeLimits {
        max_bytes: 4096,
        max_entries: 5,
    };
    let mut stream = Stream::new();
    for ms in 1..=count {
        stream.append(id(ms, 0), &[b"f", b"v"], limits).unwrap();
    }
    stream
}

fn ids(entries: Entries<'_>) -> Vec<u64> {
    entries.map(|entry| entry.id().ms).collect()
}

#[test]
fn ids_only_grow() {
    let mut stream = stream_of(3);
    let limits = NodeLimits::default();
    for old in [id(3, 0), id(2, 9), StreamId::MIN] {
        assert_eq!(
            stream.append(old, &[b"f", b"v"], limits),
            Err(AppendError::IdTooSmall)
        );
    }
    assert_eq!(stream.next_id(2), Some(id(3, 1)));
    assert_eq!(stream.next_id(9), Some(id(9, 0)));
    assert_eq!(stream.next_id_in(3), Some(id(3, 1)));
    assert_eq!(stream.next_id_in(4), Some(id(4, 0)));
    stream.append(StreamId::MAX, &[b"f", b"v"], limits).unwrap();
    assert_eq!(stream.next_id(5), None);
    assert_eq!(stream.next_id_in(u64::MAX), None);
}

#[test]
fn ranges_in_both_directions() {
    let stream = stream_of(12);
    assert_eq!(stream.node_count(), 3);
    assert_eq!(ids(stream.range(id(4, 0), id(7, 0))), [4, 5, 6, 7]);
    assert_eq!(ids(stream.range_back(id(4, 0), id(7, 0))), [7, 6, 5, 4]);
    assert_eq!(ids(stream.range(id(4, 1), id(7, 9))), [5, 6, 7]);
    assert!(ids(stream.range(id(9, 0), id(2, 0))).is_empty());
    assert!(ids(stream.range_back(id(9, 0), id(2, 0))).is_empty());
    assert!(ids(stream.range(id(13, 0), StreamId::MAX)).is_empty());
    assert_eq!(stream.get(id(6, 0)).unwrap().field_count(), 1);
    assert!(stream.get(id(6, 1)).is_none());
    assert_eq!(stream.last().unwrap().id(), id(12, 0));
}

#[test]
fn a_node_goes_with_its_last_entry() {
    let mut stream = stream_of(7);
    assert_eq!(stream.delete(&[id(6, 0), id(6, 0), id(9, 0)]), 1);
    assert_eq!((stream.node_count(), stream.len()), (2, 6));
    assert_eq!(stream.delete(&[id(7, 0)]), 1);
    assert_eq!((stream.node_count(), stream.len()), (1, 5));
    assert_eq!(stream.max_deleted_id(), id(7, 0));
    assert_eq!(stream.delete(&[id(1, 0), id(2, 0)]), 2);
    assert_eq!(stream.first_id(), id(3, 0));
    assert_eq!(stream.delete(&[id(3, 0), id(4, 0), id(5, 0)]), 3);
    assert_eq!((stream.node_count(), stream.len()), (0, 0));
    assert_eq!(stream.first_id(), StreamId::MIN);
    assert_eq!((stream.heap_bytes(), stream.entries_added()), (0, 7));
}

#[test]
fn approximate_trims_take_whole_nodes_within_their_limit() {
    let trim = |to, approximate, limit| Trim {
        to,
        approximate,
        limit,
    };
    let cases = [
        (trim(TrimTo::MaxLen(7), true, 0), 10),
        (trim(TrimTo::MaxLen(7), false, 0), 13),
        (trim(TrimTo::MaxLen(7), true, 5), 5),
        (trim(TrimTo::MaxLen(7), true, 4), 0),
        (trim(TrimTo::MaxLen(0), true, 0), 20),
        (trim(TrimTo::MinId(id(8, 0)), true, 0), 5),
        (trim(TrimTo::MinId(id(8, 0)), false, 0), 7),
        (trim(TrimTo::MinId(StreamId::MAX), false, 0), 20),
        (trim(TrimTo::MinId(StreamId::MIN), false, 0), 0),
    ];
    for (trim, removed) in cases {
        let mut stream = stream_of(20);
        assert_eq!(stream.trim(trim), removed, "{trim:?}");
        assert_eq!(stream.len(), 20 - removed);
        let first = stream.range(StreamId::MIN, StreamId::MAX).next();
        let expected = first.map_or(StreamId::MIN, |entry| entry.id());
        assert_eq!(stream.first_id(), expected);
    }
}

#[test]
fn a_trim_of_a_stream_without_entries_clears_the_first_id() {
    let counters = Counters {
        first_id: id(3, 0),
        max_deleted_id: id(5, 0),
        entries_added: 5,
    };
    for to in [
        TrimTo::MaxLen(5),
        TrimTo::MaxLen(0),
        TrimTo::MinId(id(9, 0)),
    ] {
        let mut stream = Stream::new();
        stream.restore_counters(id(5, 0), Some(counters)).unwrap();
        assert_eq!(stream.first_id(), id(3, 0));
        let trim = Trim {
            to,
            approximate: false,
            limit: 0,
        };
        assert_eq!(stream.trim(trim), 0);
        assert_eq!(stream.first_id(), StreamId::MIN, "{trim:?}");
    }
}

#[test]
fn a_removed_consumer_takes_its_pending_entries_along() {
    let mut stream = stream_of(5);
    assert!(stream.create_group(b"g", StreamId::MIN, None));
    assert!(!stream.create_group(b"g", StreamId::MIN, None));
    let mut group = stream.group_mut(b"g").unwrap();
    let alice = group.create_consumer(b"alice", 1).unwrap();
    let bob = group.create_consumer(b"bob", 1).unwrap();
    assert_eq!(group.create_consumer(b"bob", 1), None);
    for ms in 1..=3 {
        group.deliver(id(ms, 0), alice, 10);
    }
    group.deliver(id(2, 0), bob, 11);
    group.redeliver(id(2, 0), 12);
    let nack = *group.nack(id(2, 0)).unwrap();
    assert_eq!((nack.delivery_time, nack.delivery_count), (12, 2));
    assert_eq!(group.consumer(alice).unwrap().pending_count(), 2);
    assert_eq!(group.remove_consumer(b"alice"), Some(2));
    assert_eq!(group.remove_consumer(b"alice"), None);
    assert_eq!((group.pending_count(), group.consumer_count()), (1, 1));
    assert!(!group.deliver(id(4, 0), alice, 13), "the key is stale");
    // The slot is used again.
    let carol = group.create_consumer(b"carol", 1).unwrap();
    assert_eq!(carol, alice);
    assert_eq!(group.consumer(carol).unwrap().name(), b"carol");
    assert!(group.acknowledge(id(2, 0)));
    assert!(!group.acknowledge(id(2, 0)));
    assert_eq!(group.consumer(bob).unwrap().pending_count(), 0);
    drop(group);
    assert_eq!(
        stream.remove_group(b"g").map(|group| group.last_id()),
        Some(StreamId::MIN)
    );
}

/// Names in an order of their own, more than one array of them takes.
fn many_names() -> Vec<Vec<u8>> {
    let mut names: Vec<_> = (0..3000)
        .map(|n| format!("name:{n}").into_bytes())
        .collect();
    fastrand::Rng::with_seed(3).shuffle(&mut names);
    names
}

#[test]
fn many_groups_are_in_the_order_of_their_names() {
    let names = many_names();
    let mut stream = stream_of(1);
    let bytes = stream.heap_bytes();
    for (number, name) in (1..).zip(&names) {
        assert!(stream.create_group(name, id(number, 0), None));
        assert!(!stream.create_group(name, StreamId::MIN, None));
    }
    let mut expected: BTreeMap<Vec<u8>, StreamId> = (1..)
        .zip(&names)
        .map(|(number, name)| (name.clone(), id(number, 0)))
        .collect();
    let check = |stream: &Stream, expected: &BTreeMap<Vec<u8>, StreamId>| {
        assert_eq!(stream.group_count(), expected.len());
        let groups = stream.groups().map(|(name, group)| (name, group.last_id()));
        let expected = expected.iter().map(|(name, id)| (name.as_slice(), *id));
        assert!(groups.eq(expected));
    };
    check(&stream, &expected);
    // Groups that were restored are divided in another way and are the same.
    let mut restored = stream_of(1);
    let groups = names.iter().map(|name| {
        let group = stream.group(name).unwrap().clone();
        (name.clone().into_boxed_slice(), Box::new(group))
    });
    assert!(restored.restore_groups(groups.collect()));
    assert_eq!(restored, stream);
    assert_eq!(restored.heap_bytes(), stream.heap_bytes());
    let twice = names.iter().chain(&names[..1]);
    let twice = twice.map(|name| (name.clone().into_boxed_slice(), Box::default()));
    assert!(!restored.restore_groups(twice.collect()));
    for name in &names[..2900] {
        let last_id = stream.remove_group(name).map(|group| group.last_id());
        assert_eq!(last_id, expected.remove(name));
        assert!(stream.remove_group(name).is_none() && stream.group(name).is_none());
    }
    check(&stream, &expected);
    for name in &names[2900..] {
        stream.group_mut(name).unwrap().create_consumer(b"c", 1);
        assert!(stream.remove_group(name).is_some());
    }
    assert_eq!((stream.group_count(), stream.heap_bytes()), (0, bytes));
}

#[test]
fn many_consumers_are_in_the_order_of_their_names() {
    let names = many_names();
    let mut group = Group::default();
    let mut restored = Group::default();
    let mut expected = BTreeMap::new();
    for name in &names {
        let key = group.create_consumer(name, 1).unwrap();
        assert_eq!(group.create_consumer(name, 1), None);
        assert_eq!(restored.restore_consumer(name, 1, -1), key);
        expected.insert(name.as_slice(), key);
    }
    assert!(restored.sort_consumers());
    assert_eq!(restored, group);
    restored.restore_consumer(&names[7], 1, -1);
    assert!(!restored.sort_consumers());
    let check = |group: &Group, expected: &BTreeMap<&[u8], ConsumerKey>| {
        assert_eq!(group.consumer_count(), expected.len());
        let found = group.consumers().map(Consumer::name);
        assert!(found.eq(expected.keys().copied()));
        for (name, key) in expected {
            assert_eq!(group.find_consumer(name), Some(*key));
        }
    };
    check(&group, &expected);
    for name in &names[..2900] {
        assert_eq!(group.remove_consumer(name), Some(0));
        assert_eq!(group.remove_consumer(name), None);
        expected.remove(name.as_slice());
    }
    check(&group, &expected);
    // Slots are used again.
    let bytes = group.heap_bytes();
    for name in &names[..2900] {
        let key = group.create_consumer(name, 1).unwrap();
        expected.insert(name.as_slice(), key);
    }
    check(&group, &expected);
    let name_bytes: usize = names[..2900].iter().map(Vec::len).sum();
    assert_eq!(group.heap_bytes(), bytes + name_bytes);
}

#[test]
fn the_largest_count_of_deliveries_stays_the_largest() {
    let mut stream = stream_of(1);
    stream.create_group(b"g", StreamId::MIN, None);
    let mut group = stream.group_mut(b"g").unwrap();
    let consumer = group.create_consumer(b"c", 1).unwrap();
    let nack = Nack {
        consumer,
        delivery_time: 1,
        delivery_count: u64::MAX,
    };
    assert!(group.set_pending(id(1, 0), nack));
    group.redeliver(id(1, 0), 2);
    drop(group);
    let claim = Claim {
        consumer,
        min_idle_ms: 0,
        now_ms: 3,
        delivery_time: 3,
        delivery_count: None,
        force: false,
        just_id: false,
    };
    assert_eq!(stream.claim(b"g", id(1, 0), claim), Some(Claimed::Yes));
    let nack = stream.group(b"g").unwrap().nack(id(1, 0)).unwrap();
    assert_eq!((nack.delivery_time, nack.delivery_count), (3, u64::MAX));
}

#[test]
fn a_large_stream_is_dropped_in_slices() {
    let mut stream = stream_of(1000);
    stream.create_group(b"g", StreamId::MIN, None);
    let mut group = stream.group_mut(b"g").unwrap();
    let consumer = group.create_consumer(b"c", 1).unwrap();
    for ms in 1..=500 {
        group.deliver(id(ms, 0), consumer, 1);
    }
    drop(group);
    let pieces = stream.pieces();
    // Nodes, the arrays of pending entries of the group and of its consumer, and the consumer.
    assert_eq!(pieces, 200 + 8 + 8 + 1);
    for piece in 1..=pieces {
        assert_eq!(stream.drop_piece(), piece < pieces, "piece {piece}");
    }
    assert_eq!((stream.node_count(), stream.group_count()), (0, 0));
}
