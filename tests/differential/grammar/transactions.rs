//! The rows of the transaction commands, and whole transactions with a rival writing in between.

use super::{Generator, Row, Weights, row};
use crate::command::{Arg, Delivery, Request, Step};

pub(super) const ROWS: &[Row] = &[
    row("MULTI", &[], |_| vec![]),
    row("EXEC", &[], |_| vec![]),
    row("DISCARD", &[], |_| vec![]),
    row("WATCH", &[], |generator| generator.keys(3)).weight(15),
    row("UNWATCH", &[], |_| vec![]).weight(5),
];

/// How often each kind of command stands in a transaction: mostly data, some errors.
const INSIDE: Weights = [6, 40, 28, 6, 2, 8, 6, 6, 6, 6, 4, 4, 4, 0, 0];
const INSIDE_WAITING: Weights = [3, 10, 14, 3, 2, 3, 2, 2, 4, 4, 2, 0, 0, 40, 12];

/// WATCH, MULTI, some commands, EXEC; a rival may change a watched key at any point before EXEC.
pub(super) fn steps(generator: &mut Generator<'_>, weights: &Weights, steps: &mut Vec<Step>) {
    let owner = generator.client;
    let rival = (owner + 1) % generator.clients;
    let mut watched = None;
    if generator.rng.percent(60) {
        let key = generator.key();
        watched = Some(key.clone());
        steps.push(generator.run(
            vec![Request::new([Arg::from("WATCH"), key])],
            Delivery::OneByOne,
        ));
    }
    if generator.rng.percent(40) {
        interfere(generator, rival, watched.as_ref(), weights, steps);
        generator.client = owner;
    }
    let mut requests = vec![Request::new(["MULTI"])];
    generator.queueing[owner] = true;
    for _ in 0..generator.rng.between(0, 5) {
        requests.push(match generator.waiting {
            true => generator.request(&INSIDE_WAITING),
            false => generator.request(&INSIDE),
        });
    }
    let ending = if generator.rng.percent(90) {
        "EXEC"
    } else {
        "DISCARD"
    };
    requests.push(Request::new([ending]));
    if generator.rng.percent(40) && !generator.password {
        steps.push(generator.run(requests, Delivery::OnePacket));
    } else {
        let cut = generator.rng.between(1, requests.len() - 1);
        let rest = requests.split_off(cut);
        steps.push(generator.run(requests, Delivery::OneByOne));
        if generator.rng.percent(50) {
            interfere(generator, rival, watched.as_ref(), weights, steps);
            generator.client = owner;
        }
        steps.push(generator.run(rest, Delivery::OneByOne));
    }
    generator.queueing[owner] = false;
}

/// The rival writes the watched key, reads it, empties the database, or does something else.
fn interfere(
    generator: &mut Generator<'_>,
    rival: usize,
    watched: Option<&Arg>,
    weights: &Weights,
    steps: &mut Vec<Step>,
) {
    generator.client = rival;
    let key = match watched {
        Some(key) => key.clone(),
        None => generator.key(),
    };
    let word = |text: &str| Arg::from(text);
    let args = match generator.rng.below(12) {
        0..3 => vec![word("SET"), key, generator.value()],
        3 => vec![word("DEL"), key],
        4 => vec![word("GET"), key],
        5 => vec![word("EXPIRE"), key, word("100000")],
        6 => vec![word("PERSIST"), key],
        7 => vec![word("FLUSHALL")],
        8 => vec![word("FLUSHDB")],
        9 => vec![word("SWAPDB"), word("0"), word("1")],
        10 => vec![word("SETNX"), key, generator.value()],
        _ => {
            let request = generator.request(weights);
            steps.push(generator.run(vec![request], Delivery::OneByOne));
            return;
        }
    };
    steps.push(generator.run(vec![Request { args }], Delivery::OneByOne));
}
