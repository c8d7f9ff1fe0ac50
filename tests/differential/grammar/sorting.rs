//! The rows of SORT and SORT_RO, and the values they sort and sort by.

use super::{Generator, Row, row};
use crate::command::{Arg, Delivery, Request, Step};

pub(super) const ROWS: &[Row] = &[
    row(
        "SORT",
        &["BY", "LIMIT", "GET", "ASC", "DESC", "ALPHA", "STORE"],
        |generator| sort(generator, true),
    )
    .weight(40),
    row(
        "SORT_RO",
        &["BY", "LIMIT", "GET", "ASC", "DESC", "ALPHA"],
        |generator| sort(generator, false),
    )
    .weight(15),
];

/// Values to sort and to sort by.
pub(super) fn steps(generator: &mut Generator<'_>, steps: &mut Vec<Step>) {
    let mut requests = Vec::new();
    for _ in 0..generator.rng.between(3, 8) {
        let (name, args) = match generator.rng.below(4) {
            0 => ("RPUSH", fill(generator)),
            1 => ("HSET", field(generator)),
            _ => ("SET", weight(generator)),
        };
        let mut words = vec![Arg::from(name)];
        words.extend(args);
        requests.push(Request { args: words });
    }
    steps.push(generator.run(requests, Delivery::OneByOne));
}

/// A list of numbers, which can be sorted.
fn fill(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![Arg::from("numbers")];
    for _ in 0..generator.rng.between(2, 6) {
        args.push(Arg::from(generator.rng.below(12) as i64 - 3));
    }
    args
}

/// A key that BY and GET can lead to, and its value.
fn weight(generator: &mut Generator<'_>) -> Vec<Arg> {
    let name = format!("w{}", generator.rng.below(12) as i64 - 3);
    vec![Arg::from(name.as_str()), weight_value(generator)]
}

/// The same with a field of a hash.
fn field(generator: &mut Generator<'_>) -> Vec<Arg> {
    let name = format!("hw{}", generator.rng.below(12) as i64 - 3);
    vec![
        Arg::from(name.as_str()),
        Arg::from("f"),
        weight_value(generator),
    ]
}

fn weight_value(generator: &mut Generator<'_>) -> Arg {
    match generator.rng.below(8) {
        0 => generator.value(),
        1 => generator.float(),
        _ => Arg::from(generator.rng.below(30) as i64),
    }
}

fn pattern(generator: &mut Generator<'_>) -> Arg {
    Arg::from(generator.rng.pick(&[
        "w*",
        "w*",
        "hw*->f",
        "hw*->f",
        "nosort",
        "#",
        "hw*->",
        "*",
        "w*->f",
        "",
        "w**",
        "hw*->nothing",
    ]))
}

fn sort(generator: &mut Generator<'_>, may_store: bool) -> Vec<Arg> {
    let mut args = vec![match generator.rng.below(10) {
        0..5 => Arg::from("numbers"),
        5..7 => Arg::from(generator.rng.pick(&["l1", "z1", "s1", "g1"])),
        _ => generator.key(),
    }];
    for _ in 0..generator.rng.below(4) {
        match generator.rng.below(12) {
            0..3 => {
                args.push(generator.word("BY"));
                args.push(pattern(generator));
            }
            3..5 => {
                args.push(generator.word("GET"));
                args.push(pattern(generator));
            }
            5..7 => {
                args.push(generator.word("LIMIT"));
                args.push(generator.count());
                args.push(generator.count());
            }
            7..9 => args.push(generator.one_of(&["ASC", "DESC", "DESC"])),
            9 | 10 => args.push(generator.word("ALPHA")),
            _ => args.push(generator.one_of(&["FOO", "LIMIT", "BY", "GET", "STORE"])),
        }
    }
    if generator.rng.percent(if may_store { 30 } else { 3 }) {
        args.push(generator.word("STORE"));
        args.push(generator.collection_key(&[b"numbers", b"l1", b"l2"]));
    }
    args
}
