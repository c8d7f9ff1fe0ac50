//! The rows of the pub/sub commands.

use super::{Generator, Row, row};
use crate::command::Arg;

pub(super) const ROWS: &[Row] = &[
    row("SUBSCRIBE", &[], channels).weight(15),
    row("UNSUBSCRIBE", &[], |generator| leave(generator, channels)).weight(15),
    row("PSUBSCRIBE", &[], patterns),
    row("PUNSUBSCRIBE", &[], |generator| leave(generator, patterns)),
    row("SSUBSCRIBE", &[], channels),
    row("SUNSUBSCRIBE", &[], |generator| leave(generator, channels)),
    row("PUBLISH", &[], publish).weight(35),
    row("SPUBLISH", &[], publish).weight(15),
    row("PUBSUB CHANNELS", &[], optional_glob),
    row("PUBSUB NUMSUB", &[], optional_channels),
    row("PUBSUB NUMPAT", &[], |_| vec![]).weight(5),
    row("PUBSUB SHARDCHANNELS", &[], optional_glob).weight(5),
    row("PUBSUB SHARDNUMSUB", &[], optional_channels).weight(5),
    row("PUBSUB HELP", &[], |_| vec![]).weight(1),
    row("PUBSUB", &[], |generator| {
        vec![generator.one_of(&["FOO", "CHANNEL"])]
    })
    .weight(1),
];

fn channels(generator: &mut Generator<'_>) -> Vec<Arg> {
    generator.channels()
}

fn patterns(generator: &mut Generator<'_>) -> Vec<Arg> {
    let most = if generator.is_queueing() { 1 } else { 2 };
    (0..generator.rng.between(1, most))
        .map(|_| {
            Arg::from(generator.rng.pick(&[
                b"news*".as_slice(),
                b"*",
                b"c?at",
                b"[nc]*",
                b"",
                b"__key*__:*",
                b"__keyspace@0__:[ab]",
            ]))
        })
        .collect()
}

/// Leaving some, or everything by naming nothing.
fn leave(generator: &mut Generator<'_>, some: fn(&mut Generator<'_>) -> Vec<Arg>) -> Vec<Arg> {
    // Inside a transaction a bare UNSUBSCRIBE may write any number of replies, which nobody could tell apart.
    if !generator.is_queueing() && generator.rng.percent(40) {
        vec![]
    } else {
        some(generator)
    }
}

fn publish(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.channel(), generator.value()]
}

fn optional_glob(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(10) {
        0..4 => vec![],
        4..9 => vec![Arg::from(
            generator.rng.pick(&["*", "news*", "c[gh]at", "nomatch"]),
        )],
        _ => vec![generator.glob(), generator.glob()],
    }
}

fn optional_channels(generator: &mut Generator<'_>) -> Vec<Arg> {
    if generator.rng.percent(20) {
        vec![]
    } else {
        (0..generator.rng.between(1, 3))
            .map(|_| generator.channel())
            .collect()
    }
}
