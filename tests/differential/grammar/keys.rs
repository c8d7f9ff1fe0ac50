//! The rows of the commands on keys of any type.

use super::{Generator, Row, row};
use crate::command::Arg;

pub(super) const ROWS: &[Row] = &[
    row("DEL", &[], several),
    row("UNLINK", &[], several),
    row("EXISTS", &[], several),
    row("TYPE", &[], one_key),
    row("EXPIRE", &["NX", "XX", "GT", "LT"], expire).weight(20),
    row("PEXPIRE", &["NX", "XX", "GT", "LT"], expire).weight(15),
    row("EXPIREAT", &["NX", "XX", "GT", "LT"], |generator| {
        expire_at(generator, false)
    })
    .weight(15),
    row("PEXPIREAT", &["NX", "XX", "GT", "LT"], |generator| {
        expire_at(generator, true)
    })
    .weight(15),
    row("TTL", &[], one_key),
    row("PTTL", &[], one_key),
    row("EXPIRETIME", &[], one_key),
    row("PEXPIRETIME", &[], one_key),
    row("PERSIST", &[], one_key),
    row("RENAME", &[], |generator| {
        vec![generator.key(), generator.key()]
    })
    .weight(15),
    row("RENAMENX", &[], |generator| {
        vec![generator.key(), generator.key()]
    }),
    row("COPY", &["DB", "REPLACE"], copy).weight(20),
    row("MOVE", &[], |generator| {
        vec![generator.key(), generator.database()]
    }),
    row("RANDOMKEY", &[], |_| vec![]).weight(5),
    row("KEYS", &[], |generator| vec![generator.glob()]),
    row("SCAN", &["MATCH", "COUNT", "TYPE"], scan).weight(15),
    row("TOUCH", &[], several),
    row("DBSIZE", &[], |_| vec![]).weight(5),
    row("FLUSHDB", &["ASYNC", "SYNC"], flush).weight(3),
    row("FLUSHALL", &["ASYNC", "SYNC"], flush).weight(2),
    row("SWAPDB", &[], |generator| {
        vec![generator.database(), generator.database()]
    })
    .weight(6),
    row("OBJECT ENCODING", &[], one_key).weight(15),
    row("OBJECT REFCOUNT", &[], one_key).weight(4),
    row("OBJECT IDLETIME", &[], one_key).weight(4),
    row("OBJECT FREQ", &[], one_key).weight(4),
    row("OBJECT HELP", &[], |_| vec![]).weight(2),
    row("OBJECT", &[], unknown_object).weight(2),
];

fn one_key(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.key()]
}

fn several(generator: &mut Generator<'_>) -> Vec<Arg> {
    generator.keys(4)
}

fn expire(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![generator.key(), generator.lifetime()];
    conditions(generator, &mut args);
    args
}

fn expire_at(generator: &mut Generator<'_>, millis: bool) -> Vec<Arg> {
    let mut args = vec![generator.key(), generator.point(millis)];
    conditions(generator, &mut args);
    args
}

/// NX, XX, GT and LT: mostly one, sometimes some that exclude each other.
fn conditions(generator: &mut Generator<'_>, args: &mut Vec<Arg>) {
    match generator.rng.below(10) {
        0..4 => {}
        4..8 => args.push(generator.one_of(&["NX", "XX", "GT", "LT"])),
        _ => {
            for _ in 0..generator.rng.between(2, 3) {
                args.push(generator.one_of(&["NX", "XX", "GT", "LT", "FOO", "GET"]));
            }
        }
    }
}

fn copy(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![generator.key(), generator.key()];
    if generator.rng.percent(50) {
        args.push(generator.word("DB"));
        if generator.rng.percent(90) {
            args.push(generator.database());
        }
    }
    generator.maybe(50, "REPLACE", &mut args);
    generator.maybe(5, "FOO", &mut args);
    args
}

fn scan(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![if generator.rng.percent(90) {
        Arg::from("0")
    } else {
        Arg::from(
            generator
                .rng
                .pick(&["abc", "", "99999999999999999999999", "1.5", " 0", "0x1"]),
        )
    }];
    for _ in 0..generator.rng.below(4) {
        match generator.rng.below(4) {
            0 => {
                args.push(generator.word("MATCH"));
                args.push(generator.glob());
            }
            1 => {
                args.push(generator.word("COUNT"));
                args.push(if generator.rng.percent(80) {
                    Arg::from(generator.rng.pick(&["1", "2", "10", "1000"]))
                } else {
                    Arg::from(generator.rng.pick(&[
                        "0",
                        "-1",
                        "abc",
                        "",
                        "99999999999999999999",
                        "1.5",
                    ]))
                });
            }
            2 => {
                args.push(generator.word("TYPE"));
                args.push(generator.one_of(&["STRING", "HASH", "SET", "ZSET", "LIST", "STREAM"]));
            }
            _ => generator.maybe(20, "FOO", &mut args),
        }
    }
    args
}

fn flush(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(10) {
        0..4 => vec![],
        4..9 => vec![generator.one_of(&["ASYNC", "SYNC"])],
        _ => vec![generator.one_of(&["FOO", "NOW"])],
    }
}

fn unknown_object(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![
        generator.one_of(&["FOO", "ENCODINGS", "FREQUENCY"]),
        generator.key(),
    ]
}
