//! Bytes on the wire that are not the tidy arrays every client library sends: inline commands and broken frames.

use super::Generator;
use crate::command::{Request, Step};

/// Inline lines with what they mean.
const INLINE: &[(&[u8], &[&[u8]])] = &[
    (b"PING\r\n", &[b"PING"]),
    (b"ping\n", &[b"PING"]),
    (b"\r\nPING\r\n", &[b"PING"]),
    (b"  PING  \r\n", &[b"PING"]),
    (b"ECHO \"a b\"\r\n", &[b"ECHO", b"a b"]),
    (b"ECHO 'it\\'s'\r\n", &[b"ECHO", b"it's"]),
    (
        b"ECHO \"\\x41\\n\\r\\t\\a\\b\\q\"\r\n",
        &[b"ECHO", b"A\n\r\t\x07\x08q"],
    ),
    (b"SET a \"\"\r\n", &[b"SET", b"a", b""]),
    (b"SET\ta\t1\r\n", &[b"SET", b"a", b"1"]),
    (b"*0\r\n*-1\r\nPING\r\n", &[b"PING"]),
    (b"get a b c\r\n", &[b"get", b"a", b"b", b"c"]),
    (b"nosuch 'x y'\r\n", &[b"nosuch", b"x y"]),
];

/// Broken input; the server answers what it can and closes.
const BROKEN: &[&[u8]] = &[
    b"ECHO \"unbalanced\r\n",
    b"ECHO 'a'b\r\n",
    b"ECHO \"a\"b\r\n",
    b"*abc\r\n",
    b"*1\r\nPING\r\n",
    b"*1\r\n$abc\r\n",
    b"*1\r\n$-5\r\n",
    b"*1\r\n$\r\n",
    b"*1\r\n+4\r\n",
    b"*2147483648\r\n",
    b"*99999999999999999999\r\n",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n$99999999999999999999\r\n",
    b"*\r\n",
    b"*1\r\n$4\r\nPING\r\n*1\r\n$x\r\n",
    b"PING\r\n*x\r\nPING\r\n",
];

pub(super) fn step(generator: &mut Generator<'_>) -> Step {
    if generator.rng.percent(70) {
        let (bytes, args) = INLINE[generator.rng.below(INLINE.len())];
        let request = Request::new(args.iter().copied());
        return Step::Raw {
            client: generator.client,
            bytes: bytes.to_vec(),
            requests: vec![request],
            closes: false,
        };
    }
    generator.subscribed[generator.client] = false;
    generator.queueing[generator.client] = false;
    let bytes = match generator.rng.below(20) {
        // No end of the line, or of the number, within 64 KiB.
        0 => vec![b'a'; 70_000],
        1 => [b"*".as_slice(), &[b'1'; 70_000]].concat(),
        2 => [b"*1\r\n$".as_slice(), &[b'1'; 70_000]].concat(),
        _ => generator.rng.pick(BROKEN).to_vec(),
    };
    Step::Raw {
        client: generator.client,
        bytes,
        requests: vec![],
        closes: true,
    }
}
