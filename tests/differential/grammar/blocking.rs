//! The rows of the commands that wait for lists and sorted sets, and steps in which clients really wait, for those and
//! for streams, while another one writes.
//!
//! A row's timeout is over in a moment. In the steps, a waiting client is known to wait before another one goes on, and
//! CLIENT UNBLOCK ends every wait that nothing else has ended: both servers must say the same of whether it had to.
//!
//! 7.2 executes a command again that waited; 7.0 serves it with the key that became ready, whatever its other keys hold.
//! Of the keys that one command waits for, all but one are therefore never written. XREAD waits for one key alone: it
//! would announce again that the others are missing. What happens to XREADGROUP when its key is lost is 7.2's alone, too.

use super::{Generator, Row, row, streams};
use crate::command::{Arg, Delivery, Request, Step};

pub(super) const ROWS: &[Row] = &[
    row("BLPOP", &[], pop_list).weight(20),
    row("BRPOP", &[], pop_list).weight(20),
    row("BLMOVE", &["LEFT", "RIGHT"], blmove).weight(15),
    row("BRPOPLPUSH", &[], |generator| {
        vec![list(generator), list(generator), timeout(generator)]
    }),
    row("BLMPOP", &["LEFT", "RIGHT", "COUNT"], |generator| {
        pop_many(generator, list, ["LEFT", "RIGHT"])
    })
    .weight(15),
    row("BZPOPMIN", &[], pop_sorted_set).weight(15),
    row("BZPOPMAX", &[], pop_sorted_set).weight(15),
    row("BZMPOP", &["MIN", "MAX", "COUNT"], |generator| {
        pop_many(generator, sorted_set, ["MIN", "MAX"])
    })
    .weight(15),
];

fn list(generator: &mut Generator<'_>) -> Arg {
    generator.collection_key(&[b"l1", b"l2"])
}

fn sorted_set(generator: &mut Generator<'_>) -> Arg {
    generator.collection_key(&[b"z1", b"z2"])
}

/// A timeout that is over in a moment, or none at all.
fn timeout(generator: &mut Generator<'_>) -> Arg {
    Arg::from(generator.rng.pick(&[
        "0.001", "0.001", "0.001", "0.002", "0.001", "1e-3", "-1", "x", "", "nan",
    ]))
}

fn pop_list(generator: &mut Generator<'_>) -> Vec<Arg> {
    pop(generator, list)
}

fn pop_sorted_set(generator: &mut Generator<'_>) -> Vec<Arg> {
    pop(generator, sorted_set)
}

fn pop(generator: &mut Generator<'_>, key: fn(&mut Generator<'_>) -> Arg) -> Vec<Arg> {
    let mut args: Vec<Arg> = (0..generator.rng.between(1, 3))
        .map(|_| key(generator))
        .collect();
    args.push(timeout(generator));
    args
}

fn blmove(generator: &mut Generator<'_>) -> Vec<Arg> {
    let end = ["LEFT", "RIGHT", "LEFT", "RIGHT", "LEFT", "RIGHT", "UP"];
    vec![
        list(generator),
        list(generator),
        generator.one_of(&end),
        generator.one_of(&end),
        timeout(generator),
    ]
}

fn pop_many(
    generator: &mut Generator<'_>,
    key: fn(&mut Generator<'_>) -> Arg,
    ends: [&str; 2],
) -> Vec<Arg> {
    let mut keys: Vec<Arg> = (0..generator.rng.between(1, 3))
        .map(|_| key(generator))
        .collect();
    let number = match generator.rng.below(10) {
        0 => generator.integer(),
        _ => Arg::from(keys.len() as i64),
    };
    let mut args = vec![timeout(generator), number];
    args.append(&mut keys);
    args.push(generator.one_of(&[ends[0], ends[1], ends[0], ends[1], "UP"]));
    if generator.rng.percent(50) {
        args.extend([generator.word("COUNT"), generator.count()]);
    }
    args
}

/// What clients of a step wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    List,
    SortedSet,
    Stream,
    Group,
}

/// One or two clients wait, another one writes, and then the waits end.
pub(super) fn steps(generator: &mut Generator<'_>, steps: &mut Vec<Step>) {
    let free = |client: &usize| {
        let restricted = generator.subscribed[*client] && generator.protocols[*client] == 2;
        !generator.queueing[*client] && !restricted
    };
    let clients: Vec<usize> = (0..generator.clients).filter(free).collect();
    if clients.len() < 2 || generator.password {
        return;
    }
    let first = generator.rng.below(clients.len());
    let writer = clients[first];
    let waiters = clients.iter().copied().filter(|client| *client != writer);
    let most = generator.rng.between(1, 2);
    let waiters: Vec<usize> = waiters.take(most).collect();
    let awaited = match generator.rng.below(8) {
        0..3 => Awaited::List,
        3..5 => Awaited::SortedSet,
        5 | 6 => Awaited::Stream,
        _ => Awaited::Group,
    };
    for &client in &clients {
        generator.client = client;
        // The guess that it is in no transaction may be wrong.
        let requests = vec![Request::new(["DISCARD"]), Request::new(["SELECT", "0"])];
        steps.push(generator.run(requests, Delivery::OneByOne));
    }
    generator.client = writer;
    let mut before = vec![
        Request::new(["CONFIG", "SET", "maxmemory", "0"]),
        Request::new(["DEL", "w1", "w2", "w3"]),
    ];
    if awaited == Awaited::Group {
        before.push(Request::new([
            "XGROUP", "CREATE", "w1", "g1", "$", "MKSTREAM",
        ]));
        for consumer in ["c1", "c2"] {
            before.push(Request::new([
                "XGROUP",
                "CREATECONSUMER",
                "w1",
                "g1",
                consumer,
            ]));
        }
    }
    steps.push(generator.run(before, Delivery::OneByOne));
    for &client in &waiters {
        let request = wait(generator, awaited);
        let command = request.word(0);
        steps.push(Step::Send {
            client,
            requests: vec![request],
        });
        steps.push(Step::AwaitExecuted { client, command });
    }
    generator.client = writer;
    for _ in 0..generator.rng.between(0, 3) {
        let requests = write(generator, awaited);
        let delivery = match generator.rng.percent(50) {
            true => Delivery::OneByOne,
            false => Delivery::OnePacket,
        };
        steps.push(generator.run(requests, delivery));
    }
    for &client in &waiters {
        let mut unblock = vec![
            Arg::from("CLIENT"),
            Arg::from("UNBLOCK"),
            Arg::ClientId(client),
        ];
        if generator.rng.percent(50) {
            unblock.push(generator.one_of(&["TIMEOUT", "ERROR"]));
        }
        steps.push(generator.run(vec![Request { args: unblock }], Delivery::OneByOne));
        steps.push(Step::Collect { client });
    }
}

/// A request that waits, since its keys do not exist.
fn wait(generator: &mut Generator<'_>, awaited: Awaited) -> Request {
    let for_ever = generator.rng.pick(&["0", "100"]);
    let end = generator.rng.pick(&["LEFT", "RIGHT"]);
    let words: Vec<&str> = match (awaited, generator.rng.below(6)) {
        (Awaited::List, 0) => vec!["BLPOP", "w1", for_ever],
        (Awaited::List, 1) => vec!["BRPOP", "w9", "w1", "w1", for_ever],
        (Awaited::List, 2) => vec!["BLMOVE", "w1", "w2", end, "LEFT", for_ever],
        (Awaited::List, 3) => vec!["BLMOVE", "w1", "w1", end, "RIGHT", for_ever],
        (Awaited::List, 4) => vec!["BRPOPLPUSH", "w1", "w2", for_ever],
        (Awaited::List, _) => vec!["BLMPOP", for_ever, "2", "w1", "w9", end, "COUNT", "2"],
        (Awaited::SortedSet, 0 | 1) => vec!["BZPOPMIN", "w9", "w1", for_ever],
        (Awaited::SortedSet, 2 | 3) => vec!["BZPOPMAX", "w1", for_ever],
        (Awaited::SortedSet, _) => vec!["BZMPOP", for_ever, "2", "w9", "w1", "MIN", "COUNT", "2"],
        (Awaited::Stream, 0..3) => vec!["XREAD", "BLOCK", "0", "STREAMS", "w1", "$"],
        (Awaited::Stream, _) => vec![
            "XREAD", "COUNT", "1", "BLOCK", "100000", "STREAMS", "w1", "0",
        ],
        (Awaited::Group, kind) => {
            let consumer = generator.rng.pick(&["c1", "c2"]);
            let mut words = vec!["XREADGROUP", "GROUP", "g1", consumer];
            if kind == 0 {
                words.push("NOACK");
            }
            words.extend(["BLOCK", "0", "STREAMS", "w1", ">"]);
            words
        }
    };
    Request::new(words)
}

/// What another client does meanwhile: mostly what ends the wait.
fn write(generator: &mut Generator<'_>, awaited: Awaited) -> Vec<Request> {
    let key = generator.rng.pick(&["w1", "w1", "w1", "w2", "w3"]);
    let own = match awaited {
        Awaited::List => {
            let push = generator.rng.pick(&["RPUSH", "LPUSH"]);
            let elements = generator.rng.between(1, 3);
            let words = [push, key].into_iter().chain(["a", "b", "c"]);
            Request::new(words.take(2 + elements))
        }
        Awaited::SortedSet => Request::new(["ZADD", key, "1", "a", "2", "b", "0", "c"]),
        Awaited::Stream | Awaited::Group => {
            let id = streams::new_id(generator);
            let mut args = ["XADD", key].map(Arg::from).to_vec();
            args.extend([id, Arg::from("f"), Arg::from("v")]);
            Request { args }
        }
    };
    let through = |command: &[&str]| {
        let mut there = own.clone();
        there.args[1] = Arg::from("w4");
        let command = Request::new(command.iter().copied());
        vec![Request::new(["DEL", "w4"]), there, command]
    };
    // The group of a consumer that waits must not be lost.
    let safe = awaited != Awaited::Group;
    match generator.rng.below(12) {
        0 => vec![
            Request::new(["MULTI"]),
            own.clone(),
            Request::new(["DEL", key]),
            own,
            Request::new(["EXEC"]),
        ]
        .into_iter()
        .filter(|request| safe || request.word(0) != "del")
        .collect(),
        1 if safe => vec![
            Request::new(["SET", key, "x"]),
            Request::new(["DEL", key]),
            own,
        ],
        2 if safe => through(&["RENAME", "w4", key]),
        3 if safe && generator.rng.percent(50) => through(&["COPY", "w4", key, "REPLACE"]),
        3 if safe => through(&["COPY", "w4", key]),
        4 if safe => vec![own, Request::new(["DEL", key])],
        5 if safe => vec![Request::new(["FLUSHALL"])],
        6 if safe => vec![Request::new(["SADD", key, "x"])],
        7 | 8 if safe => {
            let command = stored(generator, awaited, key);
            let mut there = own;
            there.args[1] = Arg::from("w4");
            if command.word(0).starts_with("geo") {
                there = Request::new(["GEOADD", "w4", "13", "38", "a", "13.001", "38", "b"]);
            }
            let mut requests = vec![Request::new(["DEL", "w4"]), there, command];
            // A command that overwrites a key ends no wait, and neither does what is added to it then; one that removes the
            // key first does.
            match generator.rng.below(10) {
                0..4 => requests.insert(0, Request::new(["SET", key, "x"])),
                4..7 => requests.insert(0, Request::new(["DEL", key])),
                _ => {}
            }
            requests
        }
        _ => vec![own],
    }
}

/// A command that makes `key` from `w4`. A payload is that of the server itself: those of 7.0 and 7.2 differ.
fn stored(generator: &mut Generator<'_>, awaited: Awaited, key: &str) -> Request {
    const RESTORE: [&str; 2] = [
        "return redis.call('RESTORE', KEYS[2], 0, redis.call('DUMP', KEYS[1]))",
        "return redis.call('RESTORE', KEYS[2], 0, redis.call('DUMP', KEYS[1]), 'REPLACE')",
    ];
    let restore = vec!["EVAL", generator.rng.pick(&RESTORE), "2", "w4", key];
    let words = match (awaited, generator.rng.below(7)) {
        (Awaited::List, 0..4) => vec!["SORT", "w4", "ALPHA", "STORE", key],
        (Awaited::SortedSet, 0) => vec!["ZUNIONSTORE", key, "1", "w4"],
        (Awaited::SortedSet, 1) => vec!["ZINTERSTORE", key, "2", "w4", "w4"],
        (Awaited::SortedSet, 2) => vec!["ZDIFFSTORE", key, "2", "w4", "w9"],
        (Awaited::SortedSet, 3) => vec!["ZRANGESTORE", key, "w4", "0", "-1"],
        (Awaited::SortedSet, 4) => vec![
            "GEOSEARCHSTORE",
            key,
            "w4",
            "FROMLONLAT",
            "13",
            "38",
            "BYRADIUS",
            "1",
            "km",
        ],
        (Awaited::SortedSet, 5) => vec!["GEORADIUS", "w4", "13", "38", "1", "km", "STORE", key],
        _ => restore,
    };
    Request::new(words)
}
