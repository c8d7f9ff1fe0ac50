use super::*;
use crate::reference::Reference;
use crate::support::frame::Frame;

fn range(start: i64, end: i64, unit: Unit) -> Range {
    Range {
        start,
        end: Some(end),
        unit,
    }
}

#[test]
fn counts_of_ranges() {
    let text = b"foobar";
    let cases = [
        (Range::ALL, 26),
        (range(0, 0, Unit::Byte), 4),
        (range(1, 1, Unit::Byte), 6),
        (range(5, 30, Unit::Bit), 17),
        (range(-2, -1, Unit::Byte), 7),
        (range(-1, -2, Unit::Byte), 0),
        (range(10, 20, Unit::Byte), 0),
        (range(i64::MIN, i64::MAX, Unit::Bit), 26),
    ];
    for (range, expected) in cases {
        assert_eq!(count(text, range), expected, "{range:?}");
    }
    assert_eq!(count(b"", Range::ALL), 0);
}

#[test]
fn positions_of_bits() {
    let open = |start| Range {
        start,
        end: None,
        unit: Unit::Byte,
    };
    let cases: &[(&[u8], bool, Range, Option<u64>)] = &[
        (b"\xff\xf0\x00", false, Range::ALL, Some(12)),
        (b"\x00\xff\xf0", true, open(2), Some(16)),
        (b"\x00\x00\x00", true, Range::ALL, None),
        (b"\xff\xff", false, Range::ALL, Some(16)),
        (b"\xff\xff", false, range(0, -1, Unit::Byte), None),
        (b"\xff\xff", false, open(5), None),
        (b"\x00\xff\xf0", true, range(7, 15, Unit::Bit), Some(8)),
        (b"", false, Range::ALL, None),
    ];
    for &(bytes, wanted, range, expected) in cases {
        assert_eq!(
            position(bytes, wanted, range),
            expected,
            "{bytes:?} {range:?}"
        );
    }
}

#[test]
fn field_types() {
    for (good, bits) in [("i1", 1), ("i64", 64), ("u1", 1), ("u63", 63)] {
        let field = Field::parse(good.as_bytes());
        assert_eq!(field.map(Field::bits), Some(bits), "{good}");
    }
    for bad in ["", "i", "u0", "i0", "u64", "i65", "x8", "u08", "i-1", "u8 "] {
        assert!(Field::parse(bad.as_bytes()).is_none(), "{bad}");
    }
}

#[test]
fn fields_read_and_write_what_the_bits_say() {
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let signed = rng.bool();
        let bits = rng.u32(1..=if signed { 64 } else { 63 });
        let field = Field { signed, bits };
        let offset = rng.u64(0..100);
        let mut bytes: Vec<u8> = (0..24).map(|_| rng.u8(..)).collect();
        let plain = (0..u64::from(bits)).fold(0u64, |raw, index| {
            raw << 1 | u64::from(bit(&bytes, offset + index))
        });
        assert_eq!(field.read(&bytes, offset), field.sign_extend(plain));
        let value = field.fit(rng.i64(..), Overflow::Wrap).unwrap();
        let before = bytes.clone();
        field.write(&mut bytes, offset, value);
        assert_eq!(field.read(&bytes, offset), value);
        for other in (0..offset).chain(offset + u64::from(bits)..192) {
            assert_eq!(bit(&bytes, other), bit(&before, other));
        }
    }
    let field = Field::parse(b"u8").unwrap();
    assert_eq!(field.read(b"ab", u64::MAX - 100), 0);
    assert_eq!(field.read(b"\xff", 4), 0xf0);
}

#[test]
fn counting_searching_and_combining_agree_with_redis() {
    let seed = 11;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut redis = Reference::start();
    let units = [(Unit::Byte, "BYTE"), (Unit::Bit, "BIT")];
    for round in 0..1500 {
        let fill = [0x00, 0xff][rng.usize(0..2)];
        let mut bytes = vec![fill; rng.usize(1..40)];
        for _ in 0..rng.usize(0..3) {
            let at = rng.usize(0..bytes.len());
            bytes[at] = rng.u8(..);
        }
        redis.call(&[b"SET".as_slice(), b"k", &bytes]);
        let (unit, name) = units[rng.usize(0..2)];
        let (start, end) = (rng.i64(-330..330), rng.i64(-330..330));
        let (from, to) = (start.to_string(), end.to_string());
        let span = range(start, end, unit);
        let context = format!("seed {seed} round {round}: {bytes:?} {span:?}");
        assert_eq!(
            count(&bytes, span) as i64,
            redis.number(&["BITCOUNT", "k", &from, &to, name]),
            "{context}"
        );
        let wanted = rng.bool();
        let digit = if wanted { "1" } else { "0" };
        let place = |found: Option<u64>| found.map_or(-1, |bit| bit as i64);
        assert_eq!(
            place(position(&bytes, wanted, span)),
            redis.number(&["BITPOS", "k", digit, &from, &to, name]),
            "{context} {wanted}"
        );
        let open = Range {
            start,
            end: None,
            unit: Unit::Byte,
        };
        assert_eq!(
            place(position(&bytes, wanted, open)),
            redis.number(&["BITPOS", "k", digit, &from]),
            "{context} {wanted}"
        );
        let other: Vec<u8> = (0..rng.usize(0..40)).map(|_| rng.u8(..)).collect();
        redis.call(&[b"SET".as_slice(), b"o", &other]);
        let (op, name) =
            [(BitOp::And, "AND"), (BitOp::Or, "OR"), (BitOp::Xor, "XOR")][rng.usize(0..3)];
        redis.call(&["BITOP", name, "d", "k", "o", "k"]);
        assert_eq!(
            combine(op, &[&bytes, &other, &bytes]),
            redis.text(&["GET", "d"])
        );
        redis.call(&["BITOP", name, "d", "missing", "o", "k"]);
        assert_eq!(
            combine(op, &[b"", &other, &bytes]),
            redis.text(&["GET", "d"])
        );
        redis.call(&["BITOP", "NOT", "d", "k"]);
        assert_eq!(combine(BitOp::Not, &[&bytes]), redis.text(&["GET", "d"]));
    }
}

fn combine(op: BitOp, sources: &[&[u8]]) -> Vec<u8> {
    let mut result = Combined::new(op);
    for source in sources {
        result.add(source);
    }
    result.into_bytes()
}

#[test]
fn fields_agree_with_redis() {
    let seed = 5;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut redis = Reference::start();
    let mut bytes = vec![0u8; 24];
    redis.call(&[b"SET".as_slice(), b"k", &bytes]);
    let policies = [
        (Overflow::Wrap, "WRAP"),
        (Overflow::Sat, "SAT"),
        (Overflow::Fail, "FAIL"),
    ];
    for round in 0..4000 {
        let signed = rng.bool();
        let bits = rng.u32(1..=if signed { 64 } else { 63 });
        let field = Field { signed, bits };
        let name = format!("{}{bits}", if signed { 'i' } else { 'u' });
        assert_eq!(Field::parse(name.as_bytes()), Some(field));
        let offset = rng.u64(0..128);
        let (overflow, policy) = policies[rng.usize(0..3)];
        let number = match rng.u8(0..6) {
            0 => i64::MAX,
            1 => i64::MIN,
            2 => rng.i64(-3..3),
            3 => (1i64 << (bits - 1)).wrapping_sub(1),
            _ => rng.i64(..) >> rng.u32(0..63),
        };
        let old = field.read(&bytes, offset);
        let set = rng.bool();
        let stored = match set {
            true => field.fit(number, overflow),
            false => field.add(old, number, overflow),
        };
        let expected = match stored {
            Some(_) if set => Frame::Integer(old),
            Some(new) => Frame::Integer(new),
            None => Frame::NullBulk,
        };
        if let Some(new) = stored {
            field.write(&mut bytes, offset, new);
        }
        let op = if set { "SET" } else { "INCRBY" };
        let reply = redis.call(&[
            "BITFIELD",
            "k",
            "OVERFLOW",
            policy,
            op,
            &name,
            &offset.to_string(),
            &number.to_string(),
        ]);
        assert_eq!(
            reply,
            Frame::Array(vec![expected]),
            "seed {seed} round {round}: {policy} {op} {name} {offset} {number} over {old}"
        );
        assert_eq!(redis.text(&["GET", "k"]), bytes, "round {round}");
    }
}
