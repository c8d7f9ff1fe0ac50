//! Keys whose deadline really passes.
//!
//! Active expiry is off in generated sequences, so that a key past its deadline stays where it is until somebody
//! touches it: which command touches it, and what that shows, is then up to the sequence alone. Setting the deadline
//! and letting it pass are adjacent steps, or the moment of expiry would depend on the machine's load.

use super::Generator;
use crate::command::{Arg, Delivery, Request, Step};

/// For how long a busy machine is trusted not to hold a server up between two of its instructions.
const PREEMPTION_MILLIS: i64 = 40;

pub(super) fn steps(generator: &mut Generator<'_>, steps: &mut Vec<Step>) {
    if generator.subscribed[generator.client] && generator.protocols[generator.client] == 2 {
        return;
    }
    generator.expiring = true;
    let key = generator.key();
    let value = generator.value();
    let (soon, later) = (generator.rng.between(1, 4) as i64, PREEMPTION_MILLIS);
    let watched = generator.rng.percent(15);
    let kind = generator.rng.below(10);
    // PEXPIRE deletes a key whose deadline has passed by the time it is set, and WATCH remembers whether the key was
    // past it: where that matters, the deadline is further off than the server is likely to be kept waiting.
    let millis = if watched || kind >= 8 { later } else { soon };
    let word = |text: &str| Arg::from(text);
    let ahead = Arg::UnixMillis(60_000);
    let (first, second) = match kind {
        0..4 => (
            vec![
                word("SET"),
                key.clone(),
                value,
                word("PX"),
                Arg::from(millis),
            ],
            None,
        ),
        4..6 => (
            vec![word("PSETEX"), key.clone(), Arg::from(millis), value],
            None,
        ),
        6..8 => (
            vec![word("SET"), key.clone(), value, word("PXAT"), ahead],
            Some(vec![
                word("GETEX"),
                key.clone(),
                word("PX"),
                Arg::from(millis),
            ]),
        ),
        8 => (
            vec![word("SET"), key.clone(), value],
            Some(vec![word("PEXPIRE"), key.clone(), Arg::from(millis)]),
        ),
        _ => (
            vec![word("SET"), key.clone(), value, word("EX"), word("100000")],
            Some(vec![
                word("PEXPIRE"),
                key.clone(),
                Arg::from(millis),
                word("LT"),
            ]),
        ),
    };
    let watcher = watched.then(|| Request::new([word("WATCH"), key]));
    let requests = [Some(first), second]
        .into_iter()
        .flatten()
        .map(|args| Request { args })
        .chain(watcher)
        .collect();
    // One packet: the deadline is set and watched before it can pass.
    steps.push(generator.run(requests, Delivery::OnePacket));
    steps.push(Step::PassTime {
        millis: millis as u64 + 2,
    });
}
