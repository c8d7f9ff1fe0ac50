//! The rows of the stream commands, and the steps that make streams worth reading.
//!
//! Ids ascend with the sequence, so that most entries can be added and most other commands find some. Since 7.2 a
//! consumer exists from the moment a command names it; before, only once it got something. Every command that names one
//! therefore stands behind the XGROUP CREATECONSUMER that creates it on both servers: [`with_consumers`].

use super::{Generator, Row, row};
use crate::command::{Arg, Delivery, Request, Step};

pub(super) const ROWS: &[Row] = &[
    row(
        "XADD",
        &["NOMKSTREAM", "MAXLEN", "MINID", "=", "~", "LIMIT"],
        xadd,
    )
    .weight(90),
    row("XLEN", &[], |generator| vec![key(generator)]),
    row("XRANGE", &["COUNT"], xrange).weight(20),
    row("XREVRANGE", &["COUNT"], xrange).weight(20),
    row("XDEL", &[], |generator| {
        let mut args = vec![key(generator)];
        args.extend(ids(generator, 3));
        args
    })
    .weight(15),
    row("XTRIM", &["MAXLEN", "MINID", "=", "~", "LIMIT"], xtrim).weight(25),
    row("XSETID", &["ENTRIESADDED", "MAXDELETEDID"], xsetid).weight(12),
    row("XREAD", &["COUNT", "BLOCK", "STREAMS"], xread).weight(25),
    row(
        "XREADGROUP",
        &["GROUP", "COUNT", "BLOCK", "NOACK", "STREAMS"],
        xreadgroup,
    )
    .weight(50),
    row("XACK", &[], |generator| {
        let mut args = vec![key(generator), group(generator)];
        args.extend(ids(generator, 3));
        args
    })
    .weight(20),
    row("XPENDING", &["IDLE"], xpending).weight(30),
    row(
        "XCLAIM",
        &["IDLE", "TIME", "RETRYCOUNT", "FORCE", "JUSTID", "LASTID"],
        xclaim,
    )
    .weight(30),
    row("XAUTOCLAIM", &["COUNT", "JUSTID"], xautoclaim).weight(25),
    row("XGROUP CREATE", &["MKSTREAM", "ENTRIESREAD"], create).weight(25),
    row("XGROUP SETID", &["ENTRIESREAD"], setid).weight(12),
    row("XGROUP DESTROY", &[], |generator| {
        vec![key(generator), group(generator)]
    })
    .weight(5),
    row("XGROUP CREATECONSUMER", &[], key_group_consumer),
    row("XGROUP DELCONSUMER", &[], key_group_consumer).weight(5),
    row("XGROUP HELP", &[], |_| vec![]).weight(2),
    row("XINFO STREAM", &["FULL", "COUNT"], xinfo_stream).weight(25),
    row("XINFO GROUPS", &[], |generator| vec![key(generator)]).weight(15),
    row("XINFO CONSUMERS", &[], |generator| {
        vec![key(generator), group(generator)]
    }),
    row("XINFO HELP", &[], |_| vec![]).weight(2),
];

/// Ids that are none, or at the edges.
const STRANGE_IDS: &[&str] = &[
    "0-0",
    "0-1",
    "0",
    "-",
    "+",
    "$",
    ">",
    "",
    "abc",
    "5-",
    "-5",
    "1-1-1",
    "1-x",
    " 1-1",
    "18446744073709551615-18446744073709551615",
    "18446744073709551615-18446744073709551614",
    "18446744073709551615",
    "18446744073709551616-1",
    "5-18446744073709551615",
];

/// A stream with two groups, consumers and some entries, or with small nodes, or with ids of the far future.
pub(super) fn steps(generator: &mut Generator<'_>, steps: &mut Vec<Step>) {
    if generator.password {
        return;
    }
    let name = key(generator);
    let word = |text: &str| Arg::from(text);
    let mut requests = Vec::new();
    match generator.rng.below(6) {
        0 => {
            // In a stream whose last id is ahead of the clock, `*` gives the id behind it.
            for id in ["99999999999999-5", "*", "*"] {
                let args = ["XADD", "key", id, "f", "v"].map(Arg::from);
                let mut request = Request::new(args);
                request.args[1] = name.clone();
                requests.push(request);
            }
        }
        1 => {
            let entries = Arg::from(generator.rng.pick(&["1", "2", "3", "5"]));
            let args = vec![
                word("CONFIG"),
                word("SET"),
                word("stream-node-max-entries"),
                entries,
            ];
            requests.push(Request { args });
        }
        2 => requests.push(Request::new([
            "CONFIG",
            "SET",
            "stream-node-max-bytes",
            "120",
        ])),
        _ => {
            let group = group(generator);
            for _ in 0..generator.rng.between(1, 6) {
                let mut args = vec![word("XADD"), name.clone(), new_id(generator)];
                args.extend(fields(generator));
                requests.push(Request { args });
            }
            let create = vec![
                word("XGROUP"),
                word("CREATE"),
                name.clone(),
                group.clone(),
                word("0"),
                word("MKSTREAM"),
            ];
            requests.push(Request { args: create });
            let consumer = consumer(generator);
            let args = vec![
                word("XREADGROUP"),
                word("GROUP"),
                group,
                consumer,
                word("COUNT"),
                word("3"),
                word("STREAMS"),
                name,
                word(">"),
            ];
            requests.push(Request { args });
        }
    }
    steps.push(generator.run(requests, Delivery::OneByOne));
}

/// Puts the creation of each consumer before the request that names it.
pub(super) fn with_consumers(steps: &mut [Step]) {
    for step in steps {
        if let Step::Run { requests, .. } | Step::Send { requests, .. } = step {
            *requests = std::mem::take(requests)
                .into_iter()
                .flat_map(|request| {
                    let mut all = creations(&request);
                    all.push(request);
                    all
                })
                .collect();
        }
    }
}

/// The requests that create the consumers which a request names.
fn creations(request: &Request) -> Vec<Request> {
    let creation = |key: &Arg, group: &Arg, consumer: &Arg| {
        let (word, sub) = (Arg::from("XGROUP"), Arg::from("CREATECONSUMER"));
        Request::new([word, sub, key.clone(), group.clone(), consumer.clone()])
    };
    let args = &request.args;
    match request.word(0).as_str() {
        "xclaim" | "xautoclaim" if args.len() > 3 => {
            vec![creation(&args[1], &args[2], &args[3])]
        }
        "xreadgroup" => {
            let (mut at, mut named) = (1, None);
            while at < args.len() {
                at += match request.word(at).as_str() {
                    "group" => {
                        named = args.get(at + 1).zip(args.get(at + 2));
                        3
                    }
                    "block" | "count" => 2,
                    "streams" => break,
                    _ => 1,
                };
            }
            let keys = args.get(at + 1..).unwrap_or_default();
            let keys = keys[..keys.len() / 2].iter();
            let named =
                keys.filter_map(|key| named.map(|(group, consumer)| (key, group, consumer)));
            named
                .map(|(key, group, consumer)| creation(key, group, consumer))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn key(generator: &mut Generator<'_>) -> Arg {
    generator.collection_key(&[b"x1", b"x1", b"x2"])
}

fn group(generator: &mut Generator<'_>) -> Arg {
    Arg::from(
        generator
            .rng
            .pick(&["g1", "g1", "g1", "g1", "g2", "g2", ""]),
    )
}

fn consumer(generator: &mut Generator<'_>) -> Arg {
    Arg::from(
        generator
            .rng
            .pick(&["c1", "c1", "c1", "c2", "c2", "with space"]),
    )
}

/// The id of an entry that may be there.
pub(super) fn id(generator: &mut Generator<'_>) -> Arg {
    if generator.rng.percent(8) {
        return Arg::from(generator.rng.pick(STRANGE_IDS));
    }
    let ms = generator.rng.below(generator.stream_ms as usize + 2);
    match generator.rng.below(10) {
        0..6 => Arg::from(format!("{ms}-{}", generator.rng.below(3)).as_str()),
        _ => Arg::from(ms as i64),
    }
}

fn ids(generator: &mut Generator<'_>, most: usize) -> Vec<Arg> {
    (0..generator.rng.between(1, most))
        .map(|_| id(generator))
        .collect()
}

/// An id for an entry to be added, mostly above the last one.
pub(super) fn new_id(generator: &mut Generator<'_>) -> Arg {
    if generator.rng.percent(8) {
        return id(generator);
    }
    generator.stream_ms += generator.rng.below(3) as u64;
    let ms = generator.stream_ms;
    match generator.rng.below(8) {
        0..4 => Arg::from(format!("{ms}-*").as_str()),
        4 => Arg::from(ms as i64),
        _ => Arg::from(format!("{ms}-{}", generator.rng.below(4)).as_str()),
    }
}

/// Mostly the same fields, which a node keeps once.
fn fields(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = Vec::new();
    match generator.rng.below(10) {
        0..5 => args.extend([Arg::from("f"), generator.element()]),
        5..8 => {
            for field in ["f", "g"] {
                args.extend([Arg::from(field), generator.element()]);
            }
        }
        _ => {
            for _ in 0..generator.rng.between(1, 4) {
                args.extend([generator.element(), generator.element()]);
            }
        }
    }
    if generator.rng.percent(2) {
        args.pop();
    }
    args
}

fn xadd(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    generator.maybe(6, "NOMKSTREAM", &mut args);
    if generator.rng.percent(25) {
        trim(generator, &mut args);
    }
    args.push(new_id(generator));
    args.extend(fields(generator));
    args
}

fn xtrim(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    trim(generator, &mut args);
    generator.maybe(2, "FOO", &mut args);
    args
}

fn trim(generator: &mut Generator<'_>, args: &mut Vec<Arg>) {
    let by_length = generator.rng.percent(50);
    args.push(generator.word(if by_length { "MAXLEN" } else { "MINID" }));
    let sign = generator.rng.below(10);
    match sign {
        0..4 => args.push(Arg::from("~")),
        4..6 => args.push(Arg::from("=")),
        _ => {}
    }
    args.push(match by_length {
        true if generator.rng.percent(80) => Arg::from(generator.rng.below(8) as i64),
        true => generator.integer(),
        false => id(generator),
    });
    let limited = if sign < 4 { 50 } else { 4 };
    if generator.rng.percent(limited) {
        args.push(generator.word("LIMIT"));
        args.push(match generator.rng.below(8) {
            0 => generator.integer(),
            _ => Arg::from(generator.rng.below(6) as i64),
        });
    }
    if generator.rng.percent(2) {
        trim(generator, args);
    }
}

fn end_of_range(generator: &mut Generator<'_>, open: &str) -> Arg {
    match generator.rng.below(10) {
        0..4 => Arg::from(open),
        4..6 => match id(generator) {
            Arg::Bytes(bytes) => Arg::Bytes([b"(", &*bytes].concat()),
            other => other,
        },
        _ => id(generator),
    }
}

fn xrange(generator: &mut Generator<'_>) -> Vec<Arg> {
    let (first, last) = match generator.rng.percent(50) {
        true => ("-", "+"),
        false => ("+", "-"),
    };
    let mut args = vec![
        key(generator),
        end_of_range(generator, first),
        end_of_range(generator, last),
    ];
    maybe_count(generator, 40, &mut args);
    generator.maybe(2, "FOO", &mut args);
    args
}

fn maybe_count(generator: &mut Generator<'_>, percent: usize, args: &mut Vec<Arg>) {
    if generator.rng.percent(percent) {
        args.push(generator.word("COUNT"));
        if generator.rng.percent(97) {
            args.push(generator.count());
        }
    }
}

fn xsetid(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator), new_id(generator)];
    if generator.rng.percent(30) {
        args.push(generator.word("ENTRIESADDED"));
        args.push(match generator.rng.below(5) {
            0 => generator.integer(),
            _ => Arg::from(generator.rng.below(40) as i64),
        });
    }
    if generator.rng.percent(30) {
        args.extend([generator.word("MAXDELETEDID"), id(generator)]);
    }
    generator.maybe(2, "FOO", &mut args);
    args
}

/// A time to wait that is over soon, or none.
fn block(generator: &mut Generator<'_>, args: &mut Vec<Arg>) {
    if generator.rng.percent(8) {
        args.push(generator.word("BLOCK"));
        args.push(Arg::from(
            generator
                .rng
                .pick(&["1", "2", "3", "1", "2", "-1", "x", "1.5", ""]),
        ));
    }
}

fn streams(generator: &mut Generator<'_>, special: &str, args: &mut Vec<Arg>) {
    args.push(generator.word("STREAMS"));
    let count = match generator.rng.below(4) {
        0 => 2,
        1 => generator.rng.between(1, 3),
        _ => 1,
    };
    args.extend((0..count).map(|_| key(generator)));
    args.extend((0..count).map(|_| match generator.rng.percent(55) {
        true => Arg::from(special),
        false => id(generator),
    }));
    if generator.rng.percent(2) {
        args.pop();
    }
}

fn xread(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = Vec::new();
    maybe_count(generator, 40, &mut args);
    block(generator, &mut args);
    if generator.rng.percent(2) {
        args.extend([
            generator.word("GROUP"),
            group(generator),
            consumer(generator),
        ]);
    }
    generator.maybe(1, "NOACK", &mut args);
    let special = generator.rng.pick(&["0", "0", "0-1", "$"]);
    streams(generator, special, &mut args);
    args
}

fn xreadgroup(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = Vec::new();
    if generator.rng.percent(98) {
        args.extend([
            generator.word("GROUP"),
            group(generator),
            consumer(generator),
        ]);
    }
    maybe_count(generator, 50, &mut args);
    block(generator, &mut args);
    generator.maybe(15, "NOACK", &mut args);
    streams(generator, ">", &mut args);
    args
}

/// A time of idleness that is over, or not, whatever the machine's load.
fn min_idle(generator: &mut Generator<'_>) -> Arg {
    Arg::from(
        generator
            .rng
            .pick(&["0", "0", "0", "0", "100000000", "-1", "x"]),
    )
}

fn xpending(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator), group(generator)];
    if generator.rng.percent(30) {
        return args;
    }
    if generator.rng.percent(25) {
        args.extend([generator.word("IDLE"), min_idle(generator)]);
    }
    args.extend([
        end_of_range(generator, "-"),
        end_of_range(generator, "+"),
        generator.count(),
    ]);
    if generator.rng.percent(40) {
        args.push(consumer(generator));
    }
    args
}

fn xclaim(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = key_group_consumer(generator);
    args.push(min_idle(generator));
    args.extend(ids(generator, 4));
    for _ in 0..generator.rng.below(3) {
        match generator.rng.below(7) {
            0 => args.extend([
                generator.word("IDLE"),
                Arg::from(generator.rng.pick(&["0", "5000", "200000000", "-5", "x"])),
            ]),
            1 => args.extend([generator.word("TIME"), Arg::UnixMillis(-50_000)]),
            2 => args.extend([
                generator.word("RETRYCOUNT"),
                Arg::from(generator.rng.pick(&["0", "3", "7", "-1", "x"])),
            ]),
            3 | 4 => args.push(generator.word("FORCE")),
            5 => args.push(generator.word("JUSTID")),
            _ => args.extend([generator.word("LASTID"), id(generator)]),
        }
    }
    generator.maybe(2, "FOO", &mut args);
    args
}

fn xautoclaim(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = key_group_consumer(generator);
    args.push(min_idle(generator));
    args.push(end_of_range(generator, "0"));
    maybe_count(generator, 50, &mut args);
    generator.maybe(30, "JUSTID", &mut args);
    generator.maybe(2, "FOO", &mut args);
    args
}

fn key_group_consumer(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), group(generator), consumer(generator)]
}

fn group_position(generator: &mut Generator<'_>) -> Arg {
    match generator.rng.below(4) {
        0 => Arg::from("$"),
        1 => Arg::from("0"),
        _ => id(generator),
    }
}

fn create(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator), group(generator), group_position(generator)];
    generator.maybe(40, "MKSTREAM", &mut args);
    entries_read(generator, &mut args);
    args
}

fn setid(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator), group(generator), group_position(generator)];
    entries_read(generator, &mut args);
    args
}

fn entries_read(generator: &mut Generator<'_>, args: &mut Vec<Arg>) {
    if generator.rng.percent(20) {
        args.push(generator.word("ENTRIESREAD"));
        args.push(match generator.rng.below(5) {
            0 => generator.integer(),
            _ => Arg::from(generator.rng.below(20) as i64 - 1),
        });
    }
}

fn xinfo_stream(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    if generator.rng.percent(60) {
        args.push(generator.word("FULL"));
        maybe_count(generator, 50, &mut args);
    }
    args
}
