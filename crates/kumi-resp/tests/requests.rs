//! Requests through the public door: what real clients send, what broken ones send, and every way
//! a network may cut it into pieces. The expected texts were taken from a running redis-server.

use kumi_resp::{Decoder, Limits, OwnedArgs, Step, encode};
use proptest::prelude::*;

/// What a connection saw: its requests, and the reply to the error that ended it, if one did.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    requests: Vec<OwnedArgs>,
    error: Option<String>,
    /// Bytes that are no whole request yet.
    left: usize,
}

/// Plays a connection whose reads return `pieces`.
fn feed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: &Limits) -> Outcome {
    let mut decoder = Decoder::new();
    let mut buf = Vec::new();
    let mut outcome = Outcome::default();
    for piece in pieces {
        buf.extend_from_slice(piece);
        loop {
            let dropped = match decoder.decode(&buf, limits) {
                Ok(Step::Request { args, consumed }) => {
                    assert!(!args.is_empty() && consumed > 0 && consumed <= buf.len());
                    outcome.requests.push(args.to_owned());
                    consumed
                }
                Ok(Step::Incomplete { consumed, need }) => {
                    assert!(need > 0 && consumed <= buf.len());
                    buf.drain(..consumed);
                    break;
                }
                Err(error) => {
                    let mut reply = Vec::new();
                    encode::protocol_error(&mut reply, &error);
                    outcome.error = Some(reply.escape_ascii().to_string());
                    return outcome;
                }
            };
            buf.drain(..dropped);
        }
    }
    outcome.left = buf.len();
    outcome
}

fn feed_whole(input: &[u8], limits: &Limits) -> Outcome {
    feed([input], limits)
}

/// Requests as `word|word` (`empty` for a word without a byte), then what ended the input: `...` for an unfinished request, an error's
/// text, or nothing.
fn shown(outcome: &Outcome) -> String {
    let mut parts: Vec<String> = outcome
        .requests
        .iter()
        .map(|request| {
            let words = request.as_args().iter().map(|arg| match arg {
                b"" => "empty".to_owned(),
                word => word.escape_ascii().to_string(),
            });
            words.collect::<Vec<_>>().join("|")
        })
        .collect();
    if let Some(error) = &outcome.error {
        let text = error.strip_prefix("-ERR Protocol error: ");
        let text = text.and_then(|text| text.strip_suffix("\\r\\n"));
        parts.push(format!("! {}", text.expect("the form of every error")));
    } else if outcome.left > 0 {
        parts.push("...".into());
    }
    parts.join(" ; ")
}

/// Checks the input as a whole, cut in two at every byte, and byte by byte.
#[track_caller]
fn check_with(limits: &Limits, input: &[u8], expected: &str) {
    let whole = feed_whole(input, limits);
    assert_eq!(shown(&whole), expected, "{}", input.escape_ascii());
    if input.len() < 1024 {
        for cut in 0..input.len() {
            let (a, b) = input.split_at(cut);
            assert_eq!(shown(&feed([a, b], limits)), expected, "cut at {cut}");
        }
        assert_eq!(shown(&feed(input.chunks(1), limits)), expected);
    }
}

#[track_caller]
fn check(input: &[u8], expected: &str) {
    check_with(&Limits::default(), input, expected);
}

#[test]
fn arrays_of_bulks_are_requests() {
    check(b"*1\r\n$4\r\nPING\r\n", "PING");
    check(
        b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n",
        "SET|key|value",
    );
    check(
        b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
        "PING ; GET|k",
    );
    check(b"*1\r\n$0\r\n\r\n", "empty");
    check(
        b"*2\r\n$1\r\na\r\n$4\r\n\r\n\x00\xff\r\n",
        r"a|\r\n\x00\xff",
    );
    check(b"*1\r\n$12\r\nabcdefghijkl\r\n", "abcdefghijkl");
    let long = [&b"*1\r\n$345\r\n"[..], &[b'x'; 345], b"\r\n"].concat();
    check(&long, &"x".repeat(345));
    let twelve = [&b"*12\r\n"[..], &b"$1\r\na\r\n".repeat(12)].concat();
    check(&twelve, "a|a|a|a|a|a|a|a|a|a|a|a");
}

#[test]
fn unfinished_requests_wait() {
    for input in [
        &b"*"[..],
        b"*1",
        b"*1\r",
        b"*x\r",
        b"*1\r\n",
        b"*1\r\n$",
        b"*1\r\n:",
        b"*1\r\n:4\r",
        b"*1\r\n\n",
        b"*1\r\n$4\r",
        b"*1\r\n$4\r\nPING",
        b"*1\r\n$4\r\nPING\r",
        b"*2147483647\r\n",
        b"*1\r\n$536870912\r\n",
        b"PING",
        b"PING\r",
    ] {
        check(input, "...");
    }
}

#[test]
fn empty_requests_are_skipped() {
    check(b"*0\r\n", "");
    check(b"*0\r\n*-1\r\n*-5\r\n*1\r\n$4\r\nPING\r\n", "PING");
    check(b"*-9223372036854775808\r\nPING\r\n", "PING");
    check(b"\r\n\n  \r\n\t\r\r\nPING\r\n\r\n", "PING");
    check(b"*0\r\n\r\n*2\r\n$1\r\na\r\n$1", "...");
}

#[test]
fn bytes_redis_does_not_look_at_may_be_anything() {
    check(b"*1\r\n$4\r\nPINGXY*1\r\n$1\r\na..", "PING ; a");
    check(b"*1\rX$4\rXPING\r\n", "PING");
}

#[test]
fn wrong_counts_are_refused() {
    for count in [
        "", "x", "+1", "01", "00", "-0", "-01", " 1", "1 ", "1x", "1\n",
    ] {
        let input = format!("*{count}\r\n$4\r\nPING\r\n");
        check(input.as_bytes(), "! invalid multibulk length");
    }
    check(b"*2147483648\r\n", "! invalid multibulk length");
    check(b"*9223372036854775808\r\n", "! invalid multibulk length");
    check(b"*-9223372036854775809\r\n", "! invalid multibulk length");
    check(b"*1\n$4\r\nPING\r\n", "! invalid multibulk length");
}

#[test]
fn wrong_lengths_are_refused() {
    for len in [
        "", "x", "+4", "04", "00", "-0", "-1", " 4", "4 ", "4x", "12x", "1234x", "4\nPING",
    ] {
        let input = format!("*1\r\n${len}\r\nPING\r\n");
        check(input.as_bytes(), "! invalid bulk length");
    }
    check(b"*1\r\n$536870913\r\n", "! invalid bulk length");
    check(b"*1\r\n$99999999999999999999\r\n", "! invalid bulk length");
    check(b"PING\r\n*1\r\n$x\r\n", "PING ; ! invalid bulk length");
}

#[test]
fn what_stands_for_a_dollar_is_named() {
    check(b"*1\r\n:4\r\nPING\r\n", "! expected \\'$\\', got \\':\\'");
    check(b"*1\r\n*1\r\n", "! expected \\'$\\', got \\'*\\'");
    check(b"*1\r\n\r\n", "! expected \\'$\\', got \\' \\'");
    check(b"*1\r\n\n\r\n", "! expected \\'$\\', got \\' \\'");
    check(b"*1\r\n\xff\r\n", "! expected \\'$\\', got \\'\\xff\\'");
}

#[test]
fn endless_length_lines_are_refused() {
    let line = |before: &str, len: usize| [before.as_bytes(), &vec![b'1'; len]].concat();
    check(&line("*", 65535), "...");
    check(&line("*", 65536), "! too big mbulk count string");
    check(&line("*1\r\n$", 65535), "...");
    check(&line("*1\r\n$", 65536), "! too big bulk count string");
    check(&line("*1\r\nx", 65536), "! too big bulk count string");
    let ended = [line("*1\r\n$", 65536), b"\r\n".to_vec()].concat();
    check(&ended, "! too big bulk count string");
}

#[test]
fn strangers_get_little_room() {
    let limits = Limits {
        authenticated: false,
        ..Limits::default()
    };
    let check = |input: &[u8], expected| check_with(&limits, input, expected);
    check(b"*10\r\n", "...");
    check(b"*11\r\n", "! unauthenticated multibulk length");
    check(b"*2147483648\r\n", "! invalid multibulk length");
    check(b"*1\r\n$16384\r\n", "...");
    check(b"*1\r\n$16385\r\n", "! unauthenticated bulk length");
    check(b"*1\r\n$536870913\r\n", "! invalid bulk length");
    check(b"a b c d e f g h i j k l\n", "a|b|c|d|e|f|g|h|i|j|k|l");
}

#[test]
fn limits_are_the_callers() {
    let limits = Limits {
        max_bulk_len: 5,
        max_args: 2,
        max_inline_len: 6,
        authenticated: true,
    };
    let check = |input: &[u8], expected| check_with(&limits, input, expected);
    check(b"*2\r\n$5\r\nabcde\r\n$1\r\na\r\n", "abcde|a");
    check(b"*3\r\n", "! invalid multibulk length");
    check(b"*1\r\n$6\r\n", "! invalid bulk length");
    check(b"*1\r\n$10\r\n", "! invalid bulk length");
    check(b"abcdef\n", "abcdef");
    check(b"abcdef", "...");
    check(b"abcdefg", "! too big inline request");
    check(b"abcdef\r\n", "! too big inline request");
    check(b"*0000000000", "...");
}

#[test]
fn lines_are_requests() {
    check(b"PING\n", "PING");
    check(b"PING\r\n", "PING");
    check(b"PING\r\r\n", "PING");
    check(b"  SET  key\tvalue \r\n", "SET|key|value");
    check(b"PING a\rb\n", "PING|a|b");
    check(b"$4\r\nPING\r\n", "$4 ; PING");
    check(b"PING a\x0bb\n", r"PING|a\x0bb");
    check(b"PING \x0b\x0ca\n", "PING|a");
    check(b"PING \x85\xa0\n", r"PING|\x85\xa0");
    let long = [b"PING ".to_vec(), vec![b'a'; 65531], b"\n".to_vec()].concat();
    check(&long, &format!("PING|{}", "a".repeat(65531)));
    check(&vec![b'a'; 65537], "! too big inline request");
}

#[test]
fn a_line_with_a_nul_byte_does_not_end() {
    let limits = Limits {
        max_inline_len: 6,
        ..Limits::default()
    };
    let check = |input: &[u8], expected| check_with(&limits, input, expected);
    check(b"PING a\n\x00", "PING|a ; ...");
    check(b"a\x00b\n", "...");
    check(b"a\x00b\nc\n", "...");
    check(b"a\x00b\nc\nd", "! too big inline request");
    check(b"$\x00b\nc\nd", "! too big inline request");
    check(b"a\n\x00b\nc\nde", "a ; ! too big inline request");
}

#[test]
fn quotes_in_lines_are_resolved() {
    check(b"PING \"a b\"\n", "PING|a b");
    check(b"PING a\"b\"\n", "PING|ab");
    check(b"PING a'b'\n", "PING|ab");
    check(b"PING 'a\\'b'\n", r"PING|a\'b");
    check(b"PING 'a\\nb'\n", r"PING|a\\nb");
    check(
        b"PING \"\\n\\r\\t\\b\\a\\x41\\xZZ\\q\\\"\"\n",
        r#"PING|\n\r\t\x08\x07AxZZq\""#,
    );
    check(b"PING \"\\x4\" \"\\x\" \"\\xfF\"\n", r"PING|x4|x|\xff");
    check(b"PING \"\"\n", "PING|empty");
    check(b"PING \"a\"\x0bb\n", "PING|a|b");
    check(b"'PING' \"a\"\tb ''\n", "PING|a|b|empty");
}

#[test]
fn unbalanced_quotes_are_refused() {
    for line in [
        &b"PING \"a\"b\n"[..],
        b"PING a\"b\"c\n",
        b"PING 'a'b\n",
        b"PING \"abc\n",
        b"PING 'abc\n",
        b"PING 'abc\\'\n",
        b"PING \"abc\\\n",
        b"PING \"abc\\\"\n",
        b"PING \"a\r\n\"\n",
        b"\"\n",
        b"PING \"\"\"\"\n",
    ] {
        check(line, "! unbalanced quotes in request");
    }
}

#[test]
fn need_is_the_rest_of_a_known_argument() {
    let mut decoder = Decoder::new();
    let limits = Limits::default();
    let mut need_of = |buf: &[u8]| match decoder.decode(buf, &limits) {
        Ok(Step::Incomplete { need, .. }) => need,
        other => panic!("{other:?}"),
    };
    assert_eq!(need_of(b""), 1);
    assert_eq!(need_of(b"*2\r\n$3\r\nGET"), 2);
    assert_eq!(need_of(b"*2\r\n$3\r\nGET\r\n$1000"), 1);
    assert_eq!(need_of(b"*2\r\n$3\r\nGET\r\n$1000\r\n"), 1002);
    assert_eq!(need_of(b"*2\r\n$3\r\nGET\r\n$1000\r\nabc"), 999);
}

#[test]
fn claimed_lengths_allocate_nothing() {
    let mut decoder = Decoder::new();
    let limits = Limits::default();
    let input = b"*2147483647\r\n$536870912\r\n";
    assert!(matches!(
        decoder.decode(input, &limits),
        Ok(Step::Incomplete { .. })
    ));
    assert_eq!(decoder.heap_bytes(), 0);
}

#[test]
fn memory_of_a_huge_request_is_given_back() {
    let mut decoder = Decoder::new();
    let limits = Limits::default();
    let huge = [&b"*100000\r\n"[..], &b"$0\r\n\r\n".repeat(100_000)].concat();
    assert!(matches!(
        decoder.decode(&huge, &limits),
        Ok(Step::Request { args, .. }) if args.len() == 100_000
    ));
    assert!(matches!(
        decoder.decode(b"PING\r\n", &limits),
        Ok(Step::Request { .. })
    ));
    assert!(decoder.heap_bytes() < 64 * 1024);
}

#[test]
fn a_reset_forgets_the_request_begun() {
    let mut decoder = Decoder::new();
    let limits = Limits::default();
    for begun in [&b"*2\r\n$3\r\nGET\r\n$10"[..], b"*2\r\n$3\r\nGE", b"PIN"] {
        let step = decoder.decode(begun, &limits).unwrap();
        assert!(matches!(step, Step::Incomplete { .. }));
        decoder.reset();
        let step = decoder.decode(b"*1\r\n$1\r\na\r\n", &limits).unwrap();
        assert!(matches!(step, Step::Request { args, consumed: 11 } if &args[0] == b"a"));
    }
}

#[test]
fn a_buffer_that_shrank_does_not_panic() {
    let mut decoder = Decoder::new();
    let limits = Limits::default();
    let step = decoder.decode(b"*2\r\n$3\r\nGET\r\n", &limits).unwrap();
    assert!(matches!(step, Step::Incomplete { .. }));
    let step = decoder.decode(b"*2\r\n", &limits).unwrap();
    assert_eq!(
        step,
        Step::Incomplete {
            consumed: 0,
            need: 9
        }
    );
}

/// A request with its wire form, in any of the ways to write one.
fn request() -> impl Strategy<Value = (OwnedArgs, Vec<u8>)> {
    let bytes = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..20),
        1 => prop::collection::vec(any::<u8>(), 90..1100),
    ];
    let multibulk = prop::collection::vec(bytes, 1..12).prop_map(|args| {
        let mut wire = Vec::new();
        encode::array(&mut wire, args.len());
        for arg in &args {
            encode::bulk(&mut wire, arg);
        }
        (OwnedArgs::from_slices(args), wire)
    });
    let plain = prop::collection::vec("[a-z:0-9$*]{1,9}", 1..5)
        .prop_filter("a line that starts with * is no line", |words| {
            !words[0].starts_with('*')
        })
        .prop_map(|words| {
            let wire = format!("{}\r\n", words.join(" "));
            (OwnedArgs::from_slices(words), wire.into_bytes())
        });
    let quoted =
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 1..5).prop_map(|words| {
            let escape = |byte: &u8| format!("\\x{byte:02x}");
            let quote =
                |word: &Vec<u8>| format!("\"{}\"", word.iter().map(escape).collect::<String>());
            let line = words.iter().map(quote).collect::<Vec<_>>().join(" ");
            (OwnedArgs::from_slices(words), format!("{line}\n").into())
        });
    prop_oneof![4 => multibulk, 1 => plain, 1 => quoted]
}

/// Requests with empty ones among them, as one stream.
fn stream() -> impl Strategy<Value = (Vec<OwnedArgs>, Vec<u8>)> {
    let gap = prop_oneof![
        6 => Just(""), 1 => Just("*0\r\n"), 1 => Just("*-1\r\n"), 1 => Just("\r\n"), 1 => Just(" \n"),
    ];
    prop::collection::vec((gap, request()), 0..10).prop_map(|parts| {
        let mut requests = Vec::new();
        let mut wire = Vec::new();
        for (gap, (request, bytes)) in parts {
            wire.extend_from_slice(gap.as_bytes());
            wire.extend_from_slice(&bytes);
            requests.push(request);
        }
        (requests, wire)
    })
}

/// Bytes that look enough like the protocol to get far into the decoder.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        4 => Just(b"\r\n".to_vec()),
        2 => prop::sample::select(b"*$\r\n\"'\\ x-+0123:_\0\xff".to_vec()).prop_map(|byte| vec![byte]),
        2 => (-2_i64..20).prop_map(|n| format!("*{n}\r\n").into_bytes()),
        4 => (-1_i64..20).prop_map(|n| format!("${n}\r\n").into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..20),
        1 => any::<i64>().prop_map(|n| n.to_string().into_bytes()),
    ];
    prop::collection::vec(token, 0..30).prop_map(|tokens| tokens.concat())
}

/// `bytes` in pieces of the given sizes, taken round and round.
fn pieces<'a>(bytes: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    sizes.iter().cycle().map_while(move |&size| {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![3 => 1_usize..8, 1 => 8_usize..400], 1..20)
}

proptest! {
    #[test]
    fn any_cut_of_any_stream_gives_its_requests((requests, wire) in stream(), sizes in sizes()) {
        let limits = Limits::default();
        let expected = Outcome { requests, ..Outcome::default() };
        prop_assert_eq!(&feed_whole(&wire, &limits), &expected);
        prop_assert_eq!(&feed(pieces(&wire, &sizes), &limits), &expected);
    }

    #[test]
    fn every_cut_of_a_request_gives_it((request, wire) in request()) {
        let limits = Limits::default();
        let expected = Outcome { requests: vec![request], ..Outcome::default() };
        for cut in 0..wire.len() {
            let (a, b) = wire.split_at(cut);
            prop_assert_eq!(&feed([a, b], &limits), &expected);
        }
        prop_assert_eq!(&feed(wire.chunks(1), &limits), &expected);
    }

    #[test]
    fn need_never_asks_past_the_request((_, wire) in request(), cut in any::<prop::sample::Index>()) {
        let have = cut.index(wire.len());
        match Decoder::new().decode(&wire[..have], &Limits::default()) {
            Ok(Step::Incomplete { need, .. }) => prop_assert!(have + need <= wire.len()),
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn garbage_means_the_same_however_it_is_cut(
        bytes in garbage(),
        sizes in sizes(),
        max_inline_len in 0_usize..40,
        authenticated in any::<bool>(),
    ) {
        let limits = Limits { max_inline_len, authenticated, max_args: 15, max_bulk_len: 18 };
        let whole = feed_whole(&bytes, &limits);
        prop_assert_eq!(&feed(pieces(&bytes, &sizes), &limits), &whole);
        prop_assert_eq!(&feed(bytes.chunks(1), &limits), &whole);
    }
}
