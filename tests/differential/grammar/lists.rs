//! The rows of the list commands.

use super::{Generator, Row, row};
use crate::command::Arg;

pub(super) const ROWS: &[Row] = &[
    row("LPUSH", &[], push).weight(30),
    row("RPUSH", &[], push).weight(50),
    row("LPUSHX", &[], push),
    row("RPUSHX", &[], push),
    row("LPOP", &[], pop),
    row("RPOP", &[], pop),
    row("LLEN", &[], one_key),
    row("LRANGE", &[], range).weight(25),
    row("LINDEX", &[], |generator| {
        vec![key(generator), generator.index()]
    }),
    row("LSET", &[], |generator| {
        vec![key(generator), generator.index(), generator.element()]
    }),
    row("LINSERT", &["BEFORE", "AFTER"], linsert).weight(15),
    row("LREM", &[], lrem).weight(15),
    row("LTRIM", &[], range),
    row("LPOS", &["RANK", "COUNT", "MAXLEN"], lpos).weight(25),
    row("LMOVE", &["LEFT", "RIGHT"], lmove).weight(15),
    row("RPOPLPUSH", &[], |generator| {
        vec![key(generator), key(generator)]
    }),
    row("LMPOP", &["LEFT", "RIGHT", "COUNT"], lmpop).weight(15),
];

fn key(generator: &mut Generator<'_>) -> Arg {
    generator.collection_key(&[b"l1", b"l2"])
}

fn one_key(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator)]
}

fn push(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    args.extend(generator.elements(5));
    args
}

fn pop(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    if generator.rng.percent(50) {
        args.push(generator.count());
    }
    args
}

fn range(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), generator.index(), generator.index()]
}

fn linsert(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![
        key(generator),
        generator.one_of(&[
            "BEFORE", "AFTER", "BEFORE", "AFTER", "BEFORE", "AFTER", "AT",
        ]),
        generator.element(),
        generator.element(),
    ]
}

fn lrem(generator: &mut Generator<'_>) -> Vec<Arg> {
    let count = match generator.rng.below(8) {
        0 => generator.integer(),
        _ => Arg::from(generator.rng.below(7) as i64 - 3),
    };
    vec![key(generator), count, generator.element()]
}

fn lpos(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator), generator.element()];
    for _ in 0..generator.rng.below(4) {
        args.push(generator.one_of(&["RANK", "COUNT", "MAXLEN"]));
        if generator.rng.percent(95) {
            args.push(match generator.rng.below(6) {
                0 => generator.integer(),
                _ => Arg::from(generator.rng.below(8) as i64 - 2),
            });
        }
    }
    generator.maybe(3, "FOO", &mut args);
    args
}

fn end(generator: &mut Generator<'_>) -> Arg {
    generator.one_of(&["LEFT", "RIGHT", "LEFT", "RIGHT", "LEFT", "RIGHT", "UP"])
}

fn lmove(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![
        key(generator),
        key(generator),
        end(generator),
        end(generator),
    ]
}

fn lmpop(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args: Vec<Arg> = (0..generator.rng.between(1, 3))
        .map(|_| key(generator))
        .collect();
    let number = match generator.rng.below(10) {
        0 => generator.integer(),
        _ => Arg::from(args.len() as i64),
    };
    args.insert(0, number);
    args.push(end(generator));
    if generator.rng.percent(60) {
        args.push(generator.word("COUNT"));
        if generator.rng.percent(95) {
            args.push(generator.count());
        }
    }
    generator.maybe(3, "FOO", &mut args);
    args
}
