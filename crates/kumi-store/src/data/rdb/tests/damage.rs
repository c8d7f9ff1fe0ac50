//! Damaged values: each kind by hand, then random mutations.

use super::*;
use proptest::prelude::*;

/// A string as RDB writes it, uncompressed.
fn rdb_string(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Writer::new(&mut out, Compression::None).string(bytes);
    out
}

fn listpack(texts: &[&str]) -> Vec<u8> {
    let mut block = PackedList::new();
    for text in texts {
        block.push_back(Elem::parse(text.as_bytes()));
    }
    let mut out = Vec::new();
    block.view().write_listpack(&mut out);
    out
}

/// A ziplist of short strings.
fn ziplist(texts: &[&str]) -> Vec<u8> {
    let mut entries = Vec::new();
    let (mut last, mut before) = (10, 0);
    for text in texts {
        last = 10 + entries.len();
        entries.push(before);
        entries.push(text.len() as u8);
        entries.extend_from_slice(text.as_bytes());
        before = 2 + text.len() as u8;
    }
    let mut out = (11 + entries.len() as u32).to_le_bytes().to_vec();
    out.extend_from_slice(&(last as u32).to_le_bytes());
    out.extend_from_slice(&(texts.len() as u16).to_le_bytes());
    out.extend_from_slice(&entries);
    out.push(0xff);
    out
}

fn read_packed(kind: u8, packed: &[u8]) -> Result<Collected, RdbError> {
    read_value(kind, &rdb_string(packed))
}

fn text(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

#[test]
fn zipmaps_of_the_first_versions() {
    let zipmap = b"\x02\x01a\x03\x02one..\x00\x04\x00four\xff";
    let hash = [(text("a"), text("one")), (text(""), text("four"))];
    assert_eq!(
        read_packed(kind::HASH_ZIPMAP, zipmap),
        Ok(Collected::Hash(hash.into()))
    );
    let uncounted = b"\xfe\xfe\x01\x00\x00\x00a\x01\x00b\xff";
    assert_eq!(
        read_packed(kind::HASH_ZIPMAP, uncounted),
        Ok(Collected::Hash([(text("a"), text("b"))].into()))
    );
    let bad: &[&[u8]] = &[
        b"",
        b"\x00",
        b"\x00\xff",                             // empty
        b"\x01\xff",                             // fewer than counted
        b"\x01\x01a\x01\x00b",                   // no end
        b"\x01\x01a\x01\x00b\xff\xff",           // something behind the end
        b"\x01\x01a\xff",                        // a field without a value
        b"\x01\x01a\x09\x00b\xff",               // a value past the end
        b"\x01\x01a\x01\x09b\xff",               // unused bytes past the end
        b"\x02\x01a\x01\x00b\x01a\x01\x00c\xff", // a field twice
        b"\x01\xfe\xff\xff\xff\xffa\x01\x00b\xff",
    ];
    for zipmap in bad {
        assert!(
            read_packed(kind::HASH_ZIPMAP, zipmap).is_err(),
            "{zipmap:?}"
        );
    }
}

#[test]
fn ziplists_are_checked_entry_by_entry() {
    let good = ziplist(&["a", "1", "bb", "2"]);
    let list = ["a", "1", "bb", "2"].map(text).to_vec();
    assert_eq!(
        read_packed(kind::LIST_ZIPLIST, &good),
        Ok(Collected::List(list))
    );
    let hash = [(text("a"), text("1")), (text("bb"), text("2"))];
    assert_eq!(
        read_packed(kind::HASH_ZIPLIST, &good),
        Ok(Collected::Hash(hash.into()))
    );
    let scores = [(text("a"), 1.0), (text("bb"), 2.0)];
    assert_eq!(
        read_packed(kind::ZSET_ZIPLIST, &good),
        Ok(Collected::SortedSet(scores.into()))
    );
    // Every byte but the letters matters.
    for at in 0..good.len() {
        for flip in [1u8, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            if let Ok(Collected::List(list)) = read_packed(kind::LIST_ZIPLIST, &bad) {
                assert_eq!(list.len(), 4, "byte {at} ^ {flip:#x}");
            }
        }
        assert!(read_packed(kind::LIST_ZIPLIST, &good[..at]).is_err());
    }
    let uncounted = {
        let mut bytes = good.clone();
        bytes[8..10].fill(0xff);
        bytes
    };
    assert!(read_packed(kind::LIST_ZIPLIST, &uncounted).is_ok());
    assert_eq!(
        read_packed(kind::LIST_ZIPLIST, &ziplist(&[])),
        Err(RdbError::Empty)
    );
}

#[test]
fn duplicates_half_pairs_and_empty_collections_are_refused() {
    let refused: &[(u8, Vec<u8>)] = &[
        (kind::SET, b"\x02\x01a\x01a".to_vec()),
        (kind::HASH, b"\x02\x01a\x01b\x01a\x01c".to_vec()),
        (kind::ZSET, b"\x02\x01a\x011\x01a\x012".to_vec()),
        (kind::LIST, b"\x00".to_vec()),
        (kind::SET, b"\x00".to_vec()),
        (kind::HASH, b"\x00".to_vec()),
        (kind::ZSET_2, b"\x00".to_vec()),
        (kind::LIST_QUICKLIST, b"\x00".to_vec()),
        (kind::LIST_QUICKLIST_2, b"\x00".to_vec()),
        (
            kind::HASH_ZIPLIST,
            rdb_string(&ziplist(&["a", "1", "a", "2"])),
        ),
        (kind::HASH_ZIPLIST, rdb_string(&ziplist(&["a"]))),
        (kind::ZSET_ZIPLIST, rdb_string(&ziplist(&["a", "x"]))),
        (
            kind::HASH_LISTPACK,
            rdb_string(&listpack(&["a", "1", "a", "2"])),
        ),
        (kind::HASH_LISTPACK, rdb_string(&listpack(&["a", "1", "b"]))),
        (kind::HASH_LISTPACK, rdb_string(&listpack(&[]))),
        (kind::ZSET_LISTPACK, rdb_string(&listpack(&["a", "nan"]))),
        (
            kind::ZSET_LISTPACK,
            rdb_string(&listpack(&["a", "1", "a", "1"])),
        ),
        (kind::SET_LISTPACK, rdb_string(&listpack(&["a", "a"]))),
        (kind::SET_LISTPACK, rdb_string(&listpack(&["7", "7"]))),
        (kind::SET_INTSET, rdb_string(b"\x02\0\0\0\0\0\0\0")),
        (
            kind::SET_INTSET,
            rdb_string(b"\x02\0\0\0\x02\0\0\0\x01\0\x01\0"),
        ),
        (
            kind::SET_INTSET,
            rdb_string(b"\x02\0\0\0\x02\0\0\0\x02\0\x01\0"),
        ),
        (
            kind::SET_INTSET,
            rdb_string(b"\x03\0\0\0\x01\0\0\0\x01\0\x01"),
        ),
        (kind::SET_INTSET, rdb_string(b"\x02\0\0\0\x02\0\0\0\x01\0")),
        (kind::LIST_QUICKLIST_2, b"\x01\x03\x01a".to_vec()),
    ];
    for (kind, value) in refused {
        assert!(read_value(*kind, value).is_err(), "{kind} {value:?}");
    }
    assert!(read_value(kind::LIST_QUICKLIST_2, b"\x01\x01\x01a").is_ok());
}

#[test]
fn modules_and_unknown_types_are_refused_by_name() {
    let mut id = Vec::new();
    // "ReJSON-RL" version 3: nine times six bits, then ten.
    let name = b"ReJSON-RL".iter().fold(0u64, |bits, character| {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let index = alphabet.iter().position(|other| other == character);
        bits << 6 | index.expect("it is in the alphabet") as u64
    });
    Writer::new(&mut id, Compression::None).length(name << 10 | 3);
    assert_eq!(
        read_value(kind::MODULE_2, &id),
        Err(RdbError::Module("ReJSON-RL".into()))
    );
    for unknown in [8, 22, 200, 255] {
        assert_eq!(
            read_value(unknown, b"\x01a"),
            Err(RdbError::UnknownType(unknown))
        );
    }
}

#[test]
fn a_claimed_length_reserves_nothing() {
    let mut huge = Vec::new();
    Writer::new(&mut huge, Compression::None).length(u64::MAX);
    for kind in 0..22 {
        assert!(read_value(kind, &huge).is_err(), "{kind}");
    }
}

/// A stream without entries and with groups of these names, each with consumers of these names.
fn stream_with_groups(groups: &[String], consumers: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, Compression::None);
    // Nodes and length; last, first and largest deleted id; entries added.
    (0..9).for_each(|_| writer.length(0));
    writer.length(groups.len() as u64);
    for group in groups {
        writer.string(group.as_bytes());
        // Last id, entries read, pending entries.
        (0..4).for_each(|_| writer.length(0));
        writer.length(consumers.len() as u64);
        for consumer in consumers {
            writer.string(consumer.as_bytes());
            writer.raw(&7_i64.to_le_bytes());
            writer.length(0);
        }
    }
    out
}

#[test]
fn groups_and_consumers_are_read_in_any_order_and_each_once() {
    let names = ["b", "", "c", "a"].map(str::to_owned);
    let value = stream_with_groups(&names, &names);
    let Ok(Collected::Stream(mut stream)) = read_value(kind::STREAM_LISTPACKS_2, &value) else {
        panic!("it is a stream");
    };
    let sorted = [&b""[..], b"a", b"b", b"c"];
    assert!(stream.groups().map(|(name, _)| name).eq(sorted));
    for (_, group) in stream.groups() {
        assert!(group.consumers().map(|consumer| consumer.name()).eq(sorted));
        assert!(group.find_consumer(b"a").is_some());
    }
    for name in sorted {
        assert!(stream.remove_group(name).is_some());
    }
    assert_eq!(stream.heap_bytes(), 0);
    let twice = ["b", "a", "b"].map(str::to_owned);
    for (groups, consumers, what) in [
        (&twice[..], &names[..1], "consumer group"),
        (&names[..1], &twice[..], "consumer"),
    ] {
        assert_eq!(
            read_value(
                kind::STREAM_LISTPACKS_2,
                &stream_with_groups(groups, consumers)
            ),
            Err(RdbError::Duplicate(what))
        );
    }
}

/// With a move of all others for each of them, this takes minutes.
#[test]
fn many_groups_in_descending_order_are_read_in_little_time() {
    let names: Vec<String> = (0..400_000).rev().map(|n| format!("{n:06}")).collect();
    let value = stream_with_groups(&names, &[]);
    let started = std::time::Instant::now();
    let read = read_value(kind::STREAM_LISTPACKS_2, &value);
    let reading = started.elapsed();
    assert!(read.is_ok());
    assert!(reading < std::time::Duration::from_secs(20), "{reading:?}");
}

/// One good value of every type and encoding.
fn samples() -> Vec<Vec<u8>> {
    let mut samples: Vec<Vec<u8>> = vec![
        [vec![kind::HASH_ZIPLIST], rdb_string(&ziplist(&["a", "1"]))].concat(),
        [
            vec![kind::HASH_ZIPMAP],
            rdb_string(b"\x01\x01a\x01\x00b\xff"),
        ]
        .concat(),
        [
            vec![kind::SET_LISTPACK],
            rdb_string(&listpack(&["a", "700", "b"])),
        ]
        .concat(),
    ];
    let mut stream = Stream::new();
    for ms in 1..6 {
        let id = crate::types::stream::StreamId::new(ms, 0);
        stream
            .append(
                id,
                &[b"f".as_slice(), b"v", b"n", b"12"],
                Default::default(),
            )
            .unwrap();
    }
    stream.create_group(b"g", crate::types::stream::StreamId::new(3, 0), Some(3));
    let mut group = stream.group_mut(b"g").unwrap();
    let consumer = group.create_consumer(b"c", 5).unwrap();
    group.deliver(crate::types::stream::StreamId::new(2, 0), consumer, 9);
    drop(group);
    let values = [
        Collected::String(vec![b'a'; 50]),
        Collected::List(["a", "12", "b"].map(text).to_vec()),
        Collected::Set(["1", "2"].map(text).into()),
        Collected::Set(["x", "2"].map(text).into()),
        Collected::SortedSet([(text("m"), 1.5), (text("n"), 2.0)].into()),
        Collected::Hash([(text("f"), text("v"))].into()),
        Collected::Stream(Box::new(stream)),
    ];
    for value in values {
        let payload = value.dump(Compression::Lzf);
        samples.push(payload[..payload.len() - 10].to_vec());
    }
    samples
}

#[test]
fn a_value_cut_anywhere_is_refused() {
    for sample in samples() {
        assert!(read_value(sample[0], &sample[1..]).is_ok());
        for cut in 1..sample.len() {
            assert!(
                read_value(sample[0], &sample[1..cut]).is_err(),
                "{sample:?} cut at {cut}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn changed_bytes_never_panic(
        which in 0usize..10, changes in prop::collection::vec((0usize..120, any::<u8>()), 1..4)
    ) {
        let mut sample = samples().swap_remove(which);
        for (at, byte) in changes {
            let at = at % sample.len();
            sample[at] = byte;
        }
        // What is still a value can be written and read again.
        if let Ok(value) = read_value(sample[0], &sample[1..]) {
            let again = restore(&value.dump(Compression::Lzf));
            prop_assert!(again.is_ok(), "{value:?}");
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 1..200)) {
        let _ = read_value(bytes[0] % 22, &bytes[1..]);
    }
}
