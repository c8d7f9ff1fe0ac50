//! The arguments of the PF commands.

use super::Generator;
use crate::command::Arg;

pub(super) fn pfadd(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![generator.key()];
    for _ in 0..generator.rng.between(0, 4) {
        args.push(generator.value());
    }
    args
}

pub(super) fn keys(generator: &mut Generator<'_>) -> Vec<Arg> {
    generator.keys(3)
}

pub(super) fn pfdebug(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![
        generator.one_of(&["DECODE", "ENCODING", "TODENSE", "NOTHING"]),
        generator.key(),
    ]
}
