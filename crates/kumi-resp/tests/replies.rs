//! Replies through the public door: what the encoder writes, the decoder reads back, and what no
//! encoder wrote is refused without harm.

use kumi_resp::{Frame, Protocol, ProtocolError, ReplyLimits, decode_reply, encode};
use proptest::prelude::*;

/// Writes any frame with the functions a server uses.
fn write(frame: &Frame, out: &mut Vec<u8>) {
    const RESP3: Protocol = Protocol::Resp3;
    match frame {
        Frame::Simple(text) => encode::simple(out, text),
        Frame::Error(text) => encode::error(out, text),
        Frame::Integer(value) => encode::integer(out, *value),
        Frame::Bulk(bytes) => encode::bulk(out, bytes),
        Frame::NullBulk => encode::null(out, Protocol::Resp2),
        Frame::NullArray => encode::null_array(out, Protocol::Resp2),
        Frame::Null => encode::null(out, RESP3),
        Frame::Boolean(value) => encode::boolean(out, RESP3, *value),
        Frame::Double(value) => encode::double(out, RESP3, *value),
        Frame::BigNumber(digits) => {
            let digits = std::str::from_utf8(digits).expect("digits are ASCII");
            encode::big_number(out, RESP3, digits);
        }
        Frame::BulkError(text) => encode::bulk_error(out, RESP3, text),
        Frame::Verbatim { format, text } => encode::verbatim(out, RESP3, format, text),
        Frame::Array(elements) => {
            encode::array(out, elements.len());
            elements.iter().for_each(|element| write(element, out));
        }
        Frame::Set(elements) => {
            encode::set(out, RESP3, elements.len());
            elements.iter().for_each(|element| write(element, out));
        }
        Frame::Push(elements) => {
            encode::push(out, RESP3, elements.len());
            elements.iter().for_each(|element| write(element, out));
        }
        Frame::Map(pairs) => {
            encode::map(out, RESP3, pairs.len());
            write_pairs(pairs, out);
        }
        Frame::Attribute { pairs, reply } => {
            encode::attribute(out, pairs.len());
            write_pairs(pairs, out);
            write(reply, out);
        }
        other => panic!("no way to write {other:?}"),
    }
}

fn write_pairs(pairs: &[(Frame, Frame)], out: &mut Vec<u8>) {
    for (key, value) in pairs {
        write(key, out);
        write(value, out);
    }
}

fn frame() -> impl Strategy<Value = Frame> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..120);
    let line = || "[ -~]{0,30}".prop_map(String::into_bytes);
    let double = any::<f64>().prop_filter("NaN equals nothing", |value| !value.is_nan());
    let leaf = prop_oneof![
        line().prop_map(Frame::Simple),
        line().prop_map(Frame::Error),
        any::<i64>().prop_map(Frame::Integer),
        (-200_i64..200).prop_map(Frame::Integer),
        bytes().prop_map(Frame::Bulk),
        Just(Frame::NullBulk),
        Just(Frame::NullArray),
        Just(Frame::Null),
        any::<bool>().prop_map(Frame::Boolean),
        double.prop_map(Frame::Double),
        (-1000_i32..1000).prop_map(|n| Frame::Double(f64::from(n) / 8.0)),
        "-?[0-9]{1,40}".prop_map(|digits| Frame::BigNumber(digits.into_bytes())),
        bytes().prop_map(Frame::BulkError),
        (any::<[u8; 3]>(), bytes()).prop_map(|(format, text)| Frame::Verbatim { format, text }),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let elements = prop::collection::vec(inner.clone(), 0..5);
        let pairs = prop::collection::vec((inner.clone(), inner.clone()), 0..4);
        prop_oneof![
            elements.clone().prop_map(Frame::Array),
            elements.clone().prop_map(Frame::Set),
            elements.prop_map(Frame::Push),
            pairs.clone().prop_map(Frame::Map),
            (pairs, inner).prop_map(|(pairs, reply)| Frame::Attribute {
                pairs,
                reply: Box::new(reply)
            }),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(frame in frame()) {
        let mut wire = Vec::new();
        write(&frame, &mut wire);
        let len = wire.len();
        let limits = ReplyLimits::default();
        for cut in 0..len {
            prop_assert_eq!(decode_reply(&wire[..cut], &limits), Ok(None), "cut at {}", cut);
        }
        wire.extend_from_slice(b"+next\r\n");
        prop_assert_eq!(decode_reply(&wire, &limits), Ok(Some((frame, len))));
    }

    #[test]
    fn garbage_is_read_or_refused(bytes in prop::collection::vec(
        prop_oneof![
            3 => prop::sample::select(b"+-:$*_#,(!=%~>|\r\n0123tfx".to_vec()),
            1 => any::<u8>(),
        ],
        0..60,
    )) {
        if let Ok(Some((_, consumed))) = decode_reply(&bytes, &ReplyLimits::default()) {
            prop_assert!(consumed > 0 && consumed <= bytes.len());
        }
    }
}

#[test]
fn nan_reads_back_as_nan() {
    let mut wire = Vec::new();
    write(&Frame::Double(-f64::NAN), &mut wire);
    assert_eq!(wire, b",nan\r\n");
    let decoded = decode_reply(&wire, &ReplyLimits::default());
    assert!(matches!(decoded, Ok(Some((Frame::Double(value), 6))) if value.is_nan()));
}

#[test]
fn types_that_resp2_lacks_become_what_redis_sends() {
    fn check(write: impl Fn(&mut Vec<u8>, Protocol), resp2: &str, resp3: &str) {
        for (protocol, expected) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
            let mut out = Vec::new();
            write(&mut out, protocol);
            assert_eq!(out.escape_ascii().to_string(), expected);
        }
    }
    check(encode::null, r"$-1\r\n", r"_\r\n");
    check(encode::null_array, r"*-1\r\n", r"_\r\n");
    check(|out, p| encode::map(out, p, 60), r"*120\r\n", r"%60\r\n");
    check(|out, p| encode::set(out, p, 2), r"*2\r\n", r"~2\r\n");
    check(|out, p| encode::push(out, p, 2), r"*2\r\n", r">2\r\n");
    check(
        |out, p| encode::boolean(out, p, false),
        r":0\r\n",
        r"#f\r\n",
    );
    check(
        |out, p| encode::double(out, p, f64::NEG_INFINITY),
        r"$4\r\n-inf\r\n",
        r",-inf\r\n",
    );
    check(
        |out, p| encode::big_number(out, p, "123"),
        r"$3\r\n123\r\n",
        r"(123\r\n",
    );
    check(
        |out, p| encode::verbatim(out, p, b"mkd", b"*"),
        r"$1\r\n*\r\n",
        r"=5\r\nmkd:*\r\n",
    );
    check(
        |out, p| encode::bulk_error(out, p, "ERR a\r\nb\n"),
        r"-ERR a  b\r\n",
        r"!9\r\nERR a\r\nb\n\r\n",
    );
}

#[test]
fn a_line_reply_stays_one_line() {
    let check = |text: &str, expected: &str| {
        let mut out = Vec::new();
        encode::error(&mut out, text);
        encode::simple(&mut out, text.trim_end());
        let expected = format!("-{expected}\r\n+{expected}\r\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    };
    check("ERR plain", "ERR plain");
    check("ERR a\r\n+OK\r\n", "ERR a  +OK");
    check("", "");
    check("\n\r", "");
}

#[test]
fn broken_replies_are_refused() {
    use ProtocolError::{MalformedReply, ReplyTooLong, UnknownReplyType};
    let limits = ReplyLimits {
        max_len: 100,
        max_elements: 50,
        ..ReplyLimits::default()
    };
    let check = |input: &[u8], expected| {
        let decoded = decode_reply(input, &limits);
        assert_eq!(decoded, Err(expected), "{}", input.escape_ascii());
    };
    check(b"x", UnknownReplyType(b'x'));
    check(b"*1\r\n?", UnknownReplyType(b'?'));
    for input in [
        &b"+a\rb"[..],
        b":\r\n",
        b":x\r\n",
        b":++1\r\n",
        b"$x\r\n",
        b"$-2\r\n",
        b"$?\r\n",
        b"*?\r\n",
        b"*-2\r\n",
        b"%-1\r\n",
        b"$1\r\nabc",
        b"$1\r\na\rx",
        b"_x\r\n",
        b"#x\r\n",
        b",x\r\n",
        b",\r\n",
        b"(\r\n",
        b"(1.5\r\n",
        b"=3\r\ntxt\r\n",
        b"=4\r\ntxt.\r\n",
        b"!-1\r\n",
    ] {
        check(input, MalformedReply);
    }
    check(b"$101\r\n", ReplyTooLong);
    check(b"*51\r\n", ReplyTooLong);
    check(&[b'+'; 102], ReplyTooLong);
    check(&[&[b'+'; 102][..], b"\r\n"].concat(), ReplyTooLong);
}

#[test]
fn nesting_ends_at_the_limit() {
    let limits = ReplyLimits {
        max_depth: 10,
        ..ReplyLimits::default()
    };
    for head in [
        "*1\r\n",
        "~1\r\n",
        ">1\r\n",
        "%1\r\n:0\r\n",
        "|1\r\n:0\r\n:0\r\n",
    ] {
        let nested = |depth| format!("{}:7\r\n", head.repeat(depth)).into_bytes();
        assert!(matches!(decode_reply(&nested(10), &limits), Ok(Some(_))));
        let too_deep = Err(ProtocolError::ReplyTooDeep);
        assert_eq!(decode_reply(&nested(11), &limits), too_deep);
        assert_eq!(decode_reply(&nested(100_000), &limits), too_deep);
    }
}

#[test]
fn claimed_lengths_are_not_believed() {
    let decoded = decode_reply(b"*2147483647\r\n*2147483647\r\n", &ReplyLimits::default());
    assert_eq!(decoded, Ok(None));
}
