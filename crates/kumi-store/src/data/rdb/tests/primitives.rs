use super::super::*;
use super::{Collected, read_value};
use proptest::prelude::*;

fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Writer::new(&mut out, Compression::Lzf));
    out
}

#[test]
fn lengths_take_the_bytes_of_their_size() {
    let cases = [
        (0, 1),
        (63, 1),
        (64, 2),
        (16_383, 2),
        (16_384, 5),
        (u64::from(u32::MAX), 5),
        (u64::from(u32::MAX) + 1, 9),
        (u64::MAX, 9),
    ];
    for (length, bytes) in cases {
        let out = written(|writer| writer.length(length));
        assert_eq!(out.len(), bytes, "{length}");
        let mut reader = Reader::new(&out[..]);
        assert_eq!(reader.length(), Ok(length));
        assert!(reader.into_input().is_empty());
    }
}

#[test]
fn strings_that_are_integers_are_written_as_integers() {
    let cases: &[(&[u8], usize)] = &[
        (b"", 1),
        (b"0", 2),
        (b"-128", 2),
        (b"128", 3),
        (b"-32768", 3),
        (b"32768", 5),
        (b"2147483647", 5),
        (b"-2147483648", 5),
        (b"2147483648", 11),
        (b"007", 4),
        (b"+1", 3),
        (b"-0", 3),
    ];
    for &(string, bytes) in cases {
        let out = written(|writer| writer.string(string));
        assert_eq!(out.len(), bytes, "{}", string.escape_ascii());
        assert_eq!(Reader::new(&out[..]).string(), Ok(string));
    }
    let long = [b'a'; 1000];
    let out = written(|writer| writer.string(&long));
    assert_eq!(out[0], 0xc3);
    assert_eq!(Reader::new(&out[..]).string(), Ok(&long[..]));
}

#[test]
fn bad_beginnings_are_refused() {
    for first in [0x82, 0xbf, 0xc4, 0xff] {
        let bytes = [first, 0, 0, 0, 0, 0, 0, 0, 0];
        let unknown = RdbError::UnknownEncoding(first);
        assert_eq!(Reader::new(&bytes[..]).string(), Err(unknown.clone()));
        assert_eq!(Reader::new(&bytes[..]).length(), Err(unknown));
    }
    // An integer is no length.
    assert_eq!(
        Reader::new(&[0xc0, 1][..]).length(),
        Err(RdbError::UnknownEncoding(0xc0))
    );
    // A length without the bytes.
    let huge = written(|writer| writer.length(u64::MAX));
    assert_eq!(Reader::new(&huge[..]).string(), Err(RdbError::Truncated));
    // A compressed string that claims more than it can give.
    let bomb = written(|writer| {
        writer.byte(0xc3);
        writer.length(2);
        writer.length(1 << 40);
        writer.raw(&[0, b'a']);
    });
    assert_eq!(Reader::new(&bomb[..]).string(), Err(RdbError::Lzf));
}

/// The first sorted sets had their scores as text.
#[test]
fn scores_of_the_first_versions() {
    let mut bytes = vec![4];
    for (member, score) in [
        ("a", &b"\x031.5"[..]),
        ("b", b"\xff"),
        ("c", b"\xfe"),
        ("d", b"\x06-1e+10"),
    ] {
        bytes.push(1);
        bytes.extend_from_slice(member.as_bytes());
        bytes.extend_from_slice(score);
    }
    let expected = [
        ("a", 1.5),
        ("b", f64::NEG_INFINITY),
        ("c", f64::INFINITY),
        ("d", -1e10),
    ];
    let expected = expected.map(|(member, score)| (member.as_bytes().to_vec(), score));
    assert_eq!(
        read_value(kind::ZSET, &bytes),
        Ok(Collected::SortedSet(expected.into()))
    );
    for bad in [
        &b"\x01\x01a\xfd"[..],
        b"\x01\x01a\x01x",
        b"\x01\x01a\x03nan",
    ] {
        assert!(matches!(
            read_value(kind::ZSET, bad),
            Err(RdbError::Corrupt(_))
        ));
    }
}

proptest! {
    #[test]
    fn any_string_comes_back(string in prop::collection::vec(prop_oneof![Just(b'1'), any::<u8>()], 0..200)) {
        let out = written(|writer| writer.string(&string));
        let mut reader = Reader::new(&out[..]);
        prop_assert_eq!(reader.string(), Ok(&string[..]));
        prop_assert!(reader.into_input().is_empty());
    }

    #[test]
    fn any_intset_comes_back(members in prop::collection::btree_set(any::<i64>(), 1..30), shift in 0u32..63) {
        let members: Vec<i64> = members.into_iter().map(|member| member >> shift)
            .collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        let out = written(|writer| writer.intset(&members));
        let expected = members.iter().map(|member| member.to_string().into_bytes()).collect();
        prop_assert_eq!(read_value(out[0], &out[1..]), Ok(Collected::Set(expected)));
    }
}
