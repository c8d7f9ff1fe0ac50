//! Scripted sequences for what chance would hardly meet, or must not try: clients made silent or paused, passwords,
//! memory limits, keys that leave by themselves, and the servers' big tables.
//!
//! A script has one line per request:
//!
//! ```text
//! 0> SET a 1      client 0 sends and reads the answer
//! 0+ SET a 1      the same in one packet with the 0+ lines around it
//! 0! SET a 1      client 0 sends; the answer is due later
//! 0?              client 0 reads what is due
//! 0= *1\r\n$x     client 0 sends these bytes, and the server closes the connection
//! @5              5 ms pass
//! ~a              the subscriber hears that a expired
//! ```
//!
//! `$id1` stands for client 1's id, `$s+9` and `$ms+9` for a time 9 units from now.

use crate::command::{Arg, Delivery, Request, Sequence, Step};
use crate::grammar::{is_safe, rows};
use crate::known_differences::is_bound_to_a_version;

/// Every script, over both protocols.
pub(crate) fn all() -> Vec<Sequence> {
    let mut sequences = Vec::new();
    for (name, script) in SCRIPTS {
        for protocol in [2, 3] {
            sequences.push(sequence(name, script, protocol, false));
        }
    }
    for (name, script) in ACTIVE_SCRIPTS {
        for protocol in [2, 3] {
            sequences.push(sequence(name, script, protocol, true));
        }
    }
    for protocol in [2, 3] {
        sequences.push(many_keys(protocol));
        sequences.extend(arities(protocol));
    }
    sequences
}

fn sequence(name: &str, script: &str, protocol: u8, active_expiry: bool) -> Sequence {
    let steps = steps(script);
    Sequence {
        name: format!("script {name:?} in RESP{protocol}"),
        protocols: vec![protocol; 3],
        subscriber: protocol,
        notify: "KEAmn".into(),
        active_expiry,
        steps,
    }
}

/// The steps of a script.
pub(crate) fn steps(script: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        read_line(line, &mut steps);
    }
    steps
}

fn read_line(line: &str, steps: &mut Vec<Step>) {
    if let Some(millis) = line.strip_prefix('@') {
        let millis = millis.parse().expect("a script's delay is a number");
        steps.push(Step::PassTime { millis });
        return;
    }
    if let Some(key) = line.strip_prefix('~') {
        steps.push(Step::AwaitExpired {
            key: key.as_bytes().to_vec(),
        });
        return;
    }
    let client = usize::from(line.as_bytes()[0] - b'0');
    let (kind, rest) = (line.as_bytes()[1], line[2..].trim_start());
    let request = || Request { args: words(rest) };
    match kind {
        b'>' => steps.push(Step::Run {
            client,
            requests: vec![request()],
            delivery: Delivery::OneByOne,
        }),
        b'+' => match steps.last_mut() {
            Some(Step::Run {
                client: same,
                requests,
                delivery: Delivery::OnePacket,
            }) if *same == client => requests.push(request()),
            _ => steps.push(Step::Run {
                client,
                requests: vec![request()],
                delivery: Delivery::OnePacket,
            }),
        },
        b'!' => steps.push(Step::Send {
            client,
            requests: vec![request()],
        }),
        b'?' => steps.push(Step::Collect { client }),
        b'=' => steps.push(Step::Raw {
            client,
            bytes: unescape(rest),
            requests: vec![],
            closes: true,
        }),
        other => panic!("a script has no {:?} lines", char::from(other)),
    }
}

fn words(text: &str) -> Vec<Arg> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, quoted, after) = match rest.strip_prefix('"') {
            Some(inner) => {
                let (word, after) = inner.split_once('"').expect("a script's quotes are closed");
                (word, true, after)
            }
            None => {
                let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
                (word, false, after)
            }
        };
        let number = |prefix: &str| {
            word.strip_prefix(prefix)
                .and_then(|rest| rest.parse::<i64>().ok())
        };
        words.push(if quoted {
            Arg::Bytes(unescape(word))
        } else if let Some(client) = number("$id") {
            Arg::ClientId(client as usize)
        } else if let Some(offset) = number("$s") {
            Arg::UnixSeconds(offset)
        } else if let Some(offset) = number("$ms") {
            Arg::UnixMillis(offset)
        } else if word == "$addr" {
            Arg::SocketAddress
        } else {
            Arg::from(word)
        });
        rest = after.trim_start();
    }
    words
}

/// Reads `\r`, `\n` and `\xNN`.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'r') => out.push(b'\r'),
            Some(b'n') => out.push(b'\n'),
            Some(b'x') => {
                let digits: Vec<u8> = bytes.by_ref().take(2).collect();
                let text = std::str::from_utf8(&digits).expect("hexadecimal digits are ASCII");
                out.push(u8::from_str_radix(text, 16).expect("a script's escapes are hexadecimal"));
            }
            other => panic!("a script has no escape {other:?}"),
        }
    }
    out
}

/// Enough keys for several pages of SCAN and a growing table.
fn many_keys(protocol: u8) -> Sequence {
    let run = |args: Vec<Arg>| Step::Run {
        client: 0,
        requests: vec![Request { args }],
        delivery: Delivery::OneByOne,
    };
    let mut steps = Vec::new();
    for batch in 0..20 {
        let mut args = vec![Arg::from("MSET")];
        for index in 0..150 {
            args.push(Arg::from(format!("key:{}", batch * 150 + index).as_str()));
            args.push(Arg::from(index));
        }
        steps.push(run(args));
    }
    for text in [
        "DBSIZE",
        "SCAN 0",
        "SCAN 0 COUNT 100",
        "SCAN 0 MATCH key:1* COUNT 50",
        "SCAN 0 MATCH *99 COUNT 1000 TYPE string",
        "SCAN 0 TYPE hash COUNT 500",
        "SCAN 0 COUNT 100000",
        "KEYS *",
        "KEYS key:29??",
        "SWAPDB 0 1",
        "DBSIZE",
        "FLUSHALL",
        "SELECT 1",
        "SCAN 0 COUNT 10",
    ] {
        steps.push(run(words(text)));
    }
    Sequence {
        name: format!("script \"many keys\" in RESP{protocol}"),
        protocols: vec![protocol; 2],
        subscriber: protocol,
        notify: "KEA".into(),
        active_expiry: false,
        steps,
    }
}

/// Every command of the grammar bare, and with far too many arguments.
fn arities(protocol: u8) -> Vec<Sequence> {
    let run = |request: Request| Step::Run {
        client: 0,
        requests: vec![request],
        delivery: Delivery::OneByOne,
    };
    let rows: Vec<_> = rows().collect();
    rows.chunks(25)
        .map(|rows| {
            let mut steps = Vec::new();
            for row in rows {
                let name = || row.name.split(' ').map(Arg::from);
                let bare = Request {
                    args: name().collect(),
                };
                let crowded = Request {
                    args: name().chain((0..30).map(|_| Arg::from("x"))).collect(),
                };
                for request in [bare, crowded] {
                    if is_safe(&request) && !is_bound_to_a_version(&request) {
                        steps.push(run(request));
                        // Whatever that began, the next command begins without it.
                        steps.push(run(Request::new(["RESET"])));
                        steps.push(run(Request::new([
                            Arg::from("HELLO"),
                            Arg::from(i64::from(protocol)),
                        ])));
                    }
                }
            }
            Sequence {
                name: format!(
                    "arities of {} to {} in RESP{protocol}",
                    rows[0].name,
                    rows[rows.len() - 1].name
                ),
                protocols: vec![protocol; 2],
                subscriber: protocol,
                notify: "KEA".into(),
                active_expiry: false,
                steps,
            }
        })
        .collect()
}

const SCRIPTS: &[(&str, &str)] = &[
    (
        "replies off and skipped",
        include_str!("scripts/replies_off_and_skipped.txt"),
    ),
    ("writes paused", include_str!("scripts/writes_paused.txt")),
    (
        "client-side caching",
        include_str!("scripts/client_side_caching.txt"),
    ),
    (
        "everything paused",
        include_str!("scripts/everything_paused.txt"),
    ),
    (
        "expiry while writes are paused",
        include_str!("scripts/expiry_while_writes_are_paused.txt"),
    ),
    ("a password", include_str!("scripts/a_password.txt")),
    ("no memory left", include_str!("scripts/no_memory_left.txt")),
    ("eviction", include_str!("scripts/eviction.txt")),
    (
        "strings that are too long",
        include_str!("scripts/strings_that_are_too_long.txt"),
    ),
    (
        "numbers out of range",
        include_str!("scripts/numbers_out_of_range.txt"),
    ),
    (
        "scripts and functions",
        include_str!("scripts/scripts_and_functions.txt"),
    ),
    ("transactions", include_str!("scripts/transactions.txt")),
    (
        "watched keys that expire",
        include_str!("scripts/watched_keys_that_expire.txt"),
    ),
    (
        "keys past their deadline, untouched",
        include_str!("scripts/keys_past_their_deadline_untouched.txt"),
    ),
    (
        "messages to oneself",
        include_str!("scripts/messages_to_oneself.txt"),
    ),
    ("subscribe mode", include_str!("scripts/subscribe_mode.txt")),
    ("killing", include_str!("scripts/killing.txt")),
    ("the tables", include_str!("scripts/the_tables.txt")),
    (
        "events of every kind",
        include_str!("scripts/events_of_every_kind.txt"),
    ),
    ("configuration", include_str!("scripts/configuration.txt")),
];

/// Scripts in which expired keys leave by themselves.
const ACTIVE_SCRIPTS: &[(&str, &str)] = &[(
    "keys that leave by themselves",
    include_str!("scripts/keys_that_leave_by_themselves.txt"),
)];
