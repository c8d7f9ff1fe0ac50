//! The rows of the set commands, and SPOP of a set whose only member is known.

use super::{Generator, Row, row};
use crate::command::{Arg, Delivery, Request, Step};

pub(super) const ROWS: &[Row] = &[
    row("SADD", &[], key_members).weight(60),
    row("SREM", &[], key_members).weight(15),
    row("SMEMBERS", &[], one_key).weight(20),
    row("SISMEMBER", &[], key_member),
    row("SMISMEMBER", &[], key_members),
    row("SCARD", &[], one_key),
    row("SPOP", &[], spop),
    row("SRANDMEMBER", &[], srandmember).weight(15),
    row("SMOVE", &[], smove).weight(15),
    row("SINTER", &[], several),
    row("SINTERCARD", &["LIMIT"], sintercard).weight(15),
    row("SINTERSTORE", &[], store).weight(15),
    row("SUNION", &[], several),
    row("SUNIONSTORE", &[], store).weight(15),
    row("SDIFF", &[], several),
    row("SDIFFSTORE", &[], store).weight(15),
    row("SSCAN", &["MATCH", "COUNT"], sscan).weight(15),
];

/// How many members a set of a sequence can never have.
const MORE_THAN_ANY: &str = "10000";

fn key(generator: &mut Generator<'_>) -> Arg {
    generator.collection_key(&[b"s1", b"s2", b"s3"])
}

fn one_key(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator)]
}

fn several(generator: &mut Generator<'_>) -> Vec<Arg> {
    (0..generator.rng.between(1, 3))
        .map(|_| key(generator))
        .collect()
}

fn key_member(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), generator.element()]
}

fn key_members(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    if generator.rng.percent(30) {
        // Integers alone: the set stays an intset.
        for _ in 0..generator.rng.between(1, 5) {
            args.push(Arg::from(generator.rng.below(12) as i64 - 3));
        }
    } else {
        args.extend(generator.elements(5));
    }
    args
}

/// Which members leave is random, so all of them do, or none.
fn spop(generator: &mut Generator<'_>) -> Vec<Arg> {
    let count = generator.rng.pick(&[
        MORE_THAN_ANY,
        MORE_THAN_ANY,
        MORE_THAN_ANY,
        "0",
        "-1",
        "abc",
        "9223372036854775807",
    ]);
    vec![key(generator), Arg::from(count)]
}

fn srandmember(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![key(generator)];
    if generator.rng.percent(80) {
        args.push(match generator.rng.below(3) {
            0 => Arg::from(generator.rng.pick(&["-1", "-3", "-20", "0"])),
            _ => generator.count(),
        });
    }
    args
}

fn smove(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![key(generator), key(generator), generator.element()]
}

fn sintercard(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = several(generator);
    let number = match generator.rng.below(10) {
        0 => generator.integer(),
        _ => Arg::from(args.len() as i64),
    };
    args.insert(0, number);
    if generator.rng.percent(50) {
        args.push(generator.word("LIMIT"));
        if generator.rng.percent(95) {
            args.push(generator.count());
        }
    }
    generator.maybe(3, "FOO", &mut args);
    args
}

fn store(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = several(generator);
    args.insert(0, key(generator));
    args
}

fn sscan(generator: &mut Generator<'_>) -> Vec<Arg> {
    let key = key(generator);
    generator.element_scan(key)
}

/// A set of one member, and SPOP of that member.
pub(super) fn steps(generator: &mut Generator<'_>, steps: &mut Vec<Step>) {
    let (key, member) = (key(generator), generator.element());
    let mut pop = vec![Arg::from("SPOP"), key.clone()];
    if generator.rng.percent(30) {
        pop.push(Arg::from("1"));
    }
    let requests = vec![
        Request::new([Arg::from("DEL"), key.clone()]),
        Request::new([Arg::from("SADD"), key, member]),
        Request { args: pop },
    ];
    steps.push(generator.run(requests, Delivery::OneByOne));
}
