//! The rows of the string commands, bitmaps and HyperLogLogs among them.

use super::{Generator, Row, bitmaps, hyperloglog, row};
use crate::command::Arg;

pub(super) const ROWS: &[Row] = &[
    row(
        "SET",
        &["NX", "XX", "GET", "EX", "PX", "EXAT", "PXAT", "KEEPTTL"],
        set,
    )
    .weight(60),
    row("GET", &[], one_key).weight(25),
    row("GETEX", &["EX", "PX", "EXAT", "PXAT", "PERSIST"], getex).weight(15),
    row("GETDEL", &[], one_key),
    row("GETSET", &[], key_value),
    row("MGET", &[], |generator| generator.keys(4)),
    row("MSET", &[], pairs),
    row("MSETNX", &[], pairs),
    row("SETNX", &[], key_value),
    row("SETEX", &[], lifetime_value),
    row("PSETEX", &[], lifetime_value),
    row("APPEND", &[], key_value).weight(15),
    row("STRLEN", &[], one_key),
    row("GETRANGE", &[], range),
    row("SUBSTR", &[], range).weight(5),
    row("SETRANGE", &[], setrange).weight(12),
    row("INCR", &[], one_key).weight(15),
    row("DECR", &[], one_key),
    row("INCRBY", &[], key_integer),
    row("DECRBY", &[], key_integer),
    row("INCRBYFLOAT", &[], incrbyfloat).weight(20),
    row("LCS", &["LEN", "IDX", "MINMATCHLEN", "WITHMATCHLEN"], lcs).weight(15),
    row("SETBIT", &[], bitmaps::setbit).weight(20),
    row("GETBIT", &[], bitmaps::getbit),
    row("BITCOUNT", &["BYTE", "BIT"], bitmaps::bitcount),
    row("BITPOS", &["BYTE", "BIT"], bitmaps::bitpos).weight(12),
    row("BITOP", &["AND", "OR", "XOR", "NOT"], bitmaps::bitop),
    row(
        "BITFIELD",
        &["GET", "SET", "INCRBY", "OVERFLOW", "WRAP", "SAT", "FAIL"],
        bitmaps::bitfield,
    )
    .weight(15),
    row("BITFIELD_RO", &["GET"], bitmaps::bitfield_ro),
    row("PFADD", &[], hyperloglog::pfadd).weight(20),
    row("PFCOUNT", &[], hyperloglog::keys),
    row("PFMERGE", &[], hyperloglog::keys),
    row(
        "PFDEBUG",
        &["DECODE", "ENCODING", "TODENSE"],
        hyperloglog::pfdebug,
    )
    .weight(4),
];

fn one_key(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.key()]
}

fn key_value(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.key(), generator.value()]
}

fn key_integer(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.key(), generator.integer()]
}

fn set(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = key_value(generator);
    if generator.rng.percent(40) {
        return args;
    }
    if generator.rng.percent(75) {
        if generator.rng.percent(50) {
            let word = generator.one_of(&["NX", "XX"]);
            args.push(word);
        }
        generator.maybe(40, "GET", &mut args);
        if generator.rng.percent(60) {
            set_expiry(generator, &mut args);
        }
    } else {
        // Any tokens in any order: conflicts, doubles and missing numbers.
        for _ in 0..generator.rng.between(1, 3) {
            match generator.rng.below(5) {
                0 | 1 => set_expiry(generator, &mut args),
                2 => {
                    let word = generator.one_of(&["EX", "PX", "EXAT", "PXAT"]);
                    args.push(word);
                }
                _ => {
                    let word = generator.one_of(&["NX", "XX", "GET", "KEEPTTL", "FOO", "PERSIST"]);
                    args.push(word);
                }
            }
        }
    }
    args
}

fn set_expiry(generator: &mut Generator<'_>, args: &mut Vec<Arg>) {
    if generator.rng.percent(20) {
        let word = generator.word("KEEPTTL");
        args.push(word);
    } else {
        expiry(generator, args);
    }
}

/// A token that takes a time, with one.
fn expiry(generator: &mut Generator<'_>, args: &mut Vec<Arg>) {
    let (token, time) = match generator.rng.below(4) {
        0 => ("EX", generator.lifetime()),
        1 => ("PX", generator.lifetime()),
        2 => ("EXAT", generator.point(false)),
        _ => ("PXAT", generator.point(true)),
    };
    args.push(generator.word(token));
    args.push(time);
}

fn getex(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = one_key(generator);
    match generator.rng.below(10) {
        0 => {}
        1 | 2 => args.push(generator.word("PERSIST")),
        3 => args
            .push(generator.one_of(&["EX", "PX", "EXAT", "PXAT", "KEEPTTL", "NX", "GET", "FOO"])),
        4 => {
            expiry(generator, &mut args);
            expiry(generator, &mut args);
        }
        5 => {
            expiry(generator, &mut args);
            args.push(generator.word("PERSIST"));
        }
        _ => expiry(generator, &mut args),
    }
    args
}

fn pairs(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = Vec::new();
    for _ in 0..generator.rng.between(1, 3) {
        args.extend(key_value(generator));
    }
    if generator.rng.percent(8) {
        args.push(generator.key());
    }
    args
}

fn lifetime_value(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.key(), generator.lifetime(), generator.value()]
}

fn range(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.key(), generator.index(), generator.index()]
}

fn setrange(generator: &mut Generator<'_>) -> Vec<Arg> {
    let offset = match generator.rng.below(10) {
        0 => Arg::from("-1"),
        1 => Arg::from(generator.rng.pick(&[
            "536870911",
            "536870912",
            "9223372036854775807",
            "536870900",
            "-9223372036854775808",
        ])),
        2 => generator.value(),
        _ => Arg::from(generator.rng.between(0, 60) as i64),
    };
    let value = if offset == Arg::from("536870911") || offset == Arg::from("536870900") {
        // Together just past the limit, so that no server really allocates half a gigabyte.
        Arg::Bytes(vec![b'z'; 13])
    } else {
        generator.value()
    };
    vec![generator.key(), offset, value]
}

fn incrbyfloat(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.key(), generator.float()]
}

fn lcs(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![generator.key(), generator.key()];
    match generator.rng.below(10) {
        0..2 => {}
        2 => args.push(generator.word("LEN")),
        3 => {
            args.push(generator.word("LEN"));
            args.push(generator.word("IDX"));
        }
        4 => args.push(generator.one_of(&["FOO", "MINMATCHLEN"])),
        _ => {
            args.push(generator.word("IDX"));
            if generator.rng.percent(60) {
                args.push(generator.word("MINMATCHLEN"));
                args.push(if generator.rng.percent(70) {
                    Arg::from(generator.rng.between(0, 5) as i64)
                } else {
                    generator.integer()
                });
            }
            generator.maybe(50, "WITHMATCHLEN", &mut args);
        }
    }
    args
}
