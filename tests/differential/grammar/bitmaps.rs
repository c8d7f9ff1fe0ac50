//! The arguments of the bitmap commands.

use super::Generator;
use crate::command::Arg;

/// An offset near the start, or one that is refused.
fn offset(generator: &mut Generator<'_>) -> Arg {
    match generator.rng.below(20) {
        0 => Arg::from(
            generator
                .rng
                .pick(&["-1", "4294967297", "9223372036854775807", "x", ""]),
        ),
        _ => Arg::from(generator.rng.between(0, 90) as i64),
    }
}

pub(super) fn setbit(generator: &mut Generator<'_>) -> Vec<Arg> {
    let bit = generator.rng.pick(&["0", "1", "1", "1", "2", "x"]);
    vec![generator.key(), offset(generator), Arg::from(bit)]
}

pub(super) fn getbit(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.key(), offset(generator)]
}

/// A start, an end and a unit, or the first of them.
fn range(generator: &mut Generator<'_>, parts: usize, args: &mut Vec<Arg>) {
    if parts > 0 {
        args.push(generator.index());
    }
    if parts > 1 {
        args.push(generator.index());
    }
    if parts > 2 {
        args.push(generator.one_of(&["BYTE", "BIT", "BIT", "WORD"]));
    }
}

pub(super) fn bitcount(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![generator.key()];
    let parts = [0, 2, 2, 3, 3, 1][generator.rng.below(6)];
    range(generator, parts, &mut args);
    args
}

pub(super) fn bitpos(generator: &mut Generator<'_>) -> Vec<Arg> {
    let bit = generator.rng.pick(&["0", "1", "0", "1", "2", "x"]);
    let mut args = vec![generator.key(), Arg::from(bit)];
    let parts = [0, 1, 2, 3, 3][generator.rng.below(5)];
    range(generator, parts, &mut args);
    args
}

pub(super) fn bitop(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![
        generator.one_of(&["AND", "OR", "XOR", "NOT", "NOT", "NAND"]),
        generator.key(),
    ];
    match generator.rng.below(3) {
        0 => args.extend(generator.keys(3)),
        _ => args.push(generator.key()),
    }
    args
}

fn field(generator: &mut Generator<'_>, args: &mut Vec<Arg>) {
    let kind = generator
        .rng
        .pick(&["u8", "i8", "u1", "i5", "i64", "u63", "u64", "i0", "x"]);
    args.push(Arg::from(kind));
    args.push(match generator.rng.below(3) {
        0 => Arg::from(generator.rng.pick(&["#0", "#1", "#2", "#-1", "#x"])),
        _ => offset(generator),
    });
}

pub(super) fn bitfield(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![generator.key()];
    for _ in 0..generator.rng.between(0, 3) {
        let word = generator.one_of(&["GET", "SET", "INCRBY", "INCRBY", "OVERFLOW"]);
        let is = |name: &str| word == Arg::from(name) || word == Arg::from(&*name.to_lowercase());
        let (overflow, get) = (is("OVERFLOW"), is("GET"));
        args.push(word.clone());
        if overflow {
            args.push(generator.one_of(&["WRAP", "SAT", "FAIL", "NONE"]));
            continue;
        }
        field(generator, &mut args);
        if !get {
            args.push(Arg::from(
                generator
                    .rng
                    .pick(&["1", "-1", "100", "255", "-129", "90000", "x"]),
            ));
        }
    }
    args
}

pub(super) fn bitfield_ro(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![generator.key()];
    for _ in 0..generator.rng.between(0, 2) {
        args.push(generator.one_of(&["GET", "GET", "GET", "SET"]));
        field(generator, &mut args);
    }
    args
}
