//! The rows of client-side caching, and steps that read keys and have them changed by another client.
//!
//! They are drawn in sequences of their own: whatever a tracking client reads may come back as a push, so every client of
//! such a sequence is asked for its messages after each step.

use super::{Generator, Row, row};
use crate::command::{Arg, Delivery, Request, Step};

pub(super) const ROWS: &[Row] = &[
    row(
        "CLIENT TRACKING",
        &[
            "ON", "OFF", "REDIRECT", "PREFIX", "BCAST", "OPTIN", "OPTOUT", "NOLOOP",
        ],
        tracking,
    )
    .weight(40),
    row("CLIENT CACHING", &["YES", "NO"], |generator| {
        vec![generator.one_of(&["YES", "YES", "NO", "NO", "MAYBE"])]
    })
    .weight(15),
    row("CLIENT TRACKINGINFO", &[], |_| vec![]).weight(15),
    row("CLIENT GETREDIR", &[], |_| vec![]).weight(5),
];

/// Turning tracking on or off, a command of this family, or a read that a change of the same key follows.
pub(super) fn steps(generator: &mut Generator<'_>, steps: &mut Vec<Step>) {
    match generator.rng.below(10) {
        0..4 => {
            let row = match generator.rng.below(10) {
                0..6 => &ROWS[0],
                6 => &ROWS[1],
                7 | 8 => &ROWS[2],
                _ => &ROWS[3],
            };
            let mut request = generator.write(row);
            if generator.rng.percent(6) {
                request = generator.damage(request);
            }
            if super::is_safe(&request) && generator.is_tellable(&request) {
                steps.push(generator.run(vec![request], Delivery::OneByOne));
            }
        }
        // The flag of CLIENT CACHING holds for one command, so both are in one packet.
        4 | 5 => {
            let word = generator.one_of(&["YES", "NO"]);
            let caching = Request::new([Arg::from("CLIENT"), Arg::from("CACHING"), word]);
            let read = read(generator);
            steps.push(generator.run(vec![caching, read], Delivery::OnePacket));
        }
        _ => {
            let read = read(generator);
            let key = read.args[1].clone();
            steps.push(generator.run(vec![read], Delivery::OneByOne));
            generator.client = generator.rng.below(generator.clients);
            let change = change(generator, key);
            steps.push(generator.run(vec![change], Delivery::OneByOne));
        }
    }
}

fn read(generator: &mut Generator<'_>) -> Request {
    let key = generator.key();
    let name = generator.rng.pick(&[
        "GET", "STRLEN", "EXISTS", "TYPE", "TTL", "MGET", "LLEN", "HGETALL", "SCARD", "ZCARD",
    ]);
    Request::new([Arg::from(name), key])
}

fn change(generator: &mut Generator<'_>, key: Arg) -> Request {
    let value = generator.value();
    let args = match generator.rng.below(8) {
        0..3 => vec![Arg::from("SET"), key, value],
        3 => vec![Arg::from("DEL"), key],
        4 => vec![Arg::from("EXPIRE"), key, Arg::from("100000")],
        5 => vec![
            Arg::from("MSET"),
            key,
            value.clone(),
            generator.key(),
            value,
        ],
        6 => vec![Arg::from("RPUSH"), key, value],
        _ => vec![Arg::from(generator.rng.pick(&["FLUSHALL", "FLUSHDB"]))],
    };
    Request { args }
}

fn tracking(generator: &mut Generator<'_>) -> Vec<Arg> {
    if generator.rng.percent(12) {
        return vec![generator.one_of(&["OFF", "OFF", "MAYBE"])];
    }
    let mut args = vec![generator.one_of(&["ON"])];
    if generator.rng.percent(35) {
        generator.maybe(95, "BCAST", &mut args);
        for _ in 0..generator.rng.below(3) {
            args.push(generator.word("PREFIX"));
            let prefix = generator.rng.pick(&[
                b"k".as_slice(),
                b"ke",
                b"a",
                b"b",
                b"",
                b"key:1",
                b"nothing",
            ]);
            args.push(Arg::from(prefix));
        }
        generator.maybe(5, "OPTIN", &mut args);
    } else {
        generator.maybe(20, "OPTIN", &mut args);
        generator.maybe(15, "OPTOUT", &mut args);
    }
    generator.maybe(25, "NOLOOP", &mut args);
    if generator.rng.percent(25) {
        args.push(generator.word("REDIRECT"));
        args.push(match generator.rng.below(10) {
            0 => Arg::from(generator.rng.pick(&["0", "-1", "abc", "", "999999999"])),
            _ => generator.client_id(),
        });
    }
    args
}
