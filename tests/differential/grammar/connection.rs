//! The rows of the connection commands.
//!
//! Commands that silence or stop a client (CLIENT REPLY, CLIENT PAUSE with a real duration, MONITOR) are not drawn at
//! random: the scripts of `scenarios` put them where the silence is expected.

use super::{Generator, Row, row};
use crate::command::Arg;

pub(super) const ROWS: &[Row] = &[
    row("PING", &[], ping),
    row("ECHO", &[], |generator| vec![generator.value()]),
    row("HELLO", &["AUTH", "SETNAME"], hello).weight(12),
    row("AUTH", &[], auth),
    row("SELECT", &[], |generator| vec![generator.database()]).weight(15),
    row("QUIT", &[], quit).weight(1),
    row("RESET", &[], |_| vec![]).weight(4),
    row("CLIENT ID", &[], |_| vec![]).weight(4),
    row("CLIENT INFO", &[], |_| vec![]).weight(4),
    row(
        "CLIENT LIST",
        &[
            "TYPE", "ID", "NORMAL", "MASTER", "REPLICA", "SLAVE", "PUBSUB",
        ],
        list,
    ),
    row(
        "CLIENT KILL",
        &["ID", "TYPE", "USER", "ADDR", "LADDR", "SKIPME", "YES", "NO"],
        kill,
    )
    .weight(12),
    row("CLIENT SETNAME", &[], |generator| vec![name(generator)]),
    row("CLIENT GETNAME", &[], |_| vec![]).weight(6),
    row("CLIENT NO-EVICT", &["ON", "OFF"], |generator| {
        vec![generator.one_of(&["ON", "OFF", "MAYBE"])]
    })
    .weight(5),
    row("CLIENT PAUSE", &["WRITE", "ALL"], pause).weight(6),
    row("CLIENT UNPAUSE", &[], |_| vec![]).weight(3),
    row("CLIENT REPLY", &["ON", "OFF", "SKIP"], reply).weight(4),
    row("CLIENT UNBLOCK", &["TIMEOUT", "ERROR"], unblock),
    row("CLIENT HELP", &[], |_| vec![]).weight(2),
    row("CLIENT", &[], |generator| {
        vec![generator.one_of(&["FOO", "KILLS", "NAME"])]
    })
    .weight(3),
];

fn ping(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(10) {
        0..5 => vec![],
        5..9 => vec![generator.value()],
        _ => vec![generator.value(), generator.value()],
    }
}

fn hello(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = Vec::new();
    if generator.rng.percent(10) {
        return args;
    }
    args.push(Arg::from(match generator.rng.below(10) {
        // The client keeps its protocol more often than not, or whole runs would drift to one of the two.
        0..5 => {
            if generator.protocols[generator.client] == 3 {
                "3"
            } else {
                "2"
            }
        }
        5 => "2",
        6 => "3",
        _ => generator
            .rng
            .pick(&["1", "4", "abc", "", "-1", "99999999999999999999", "3.0"]),
    }));
    if generator.rng.percent(30) {
        args.push(generator.word("AUTH"));
        args.push(generator.one_of(&["default", "nobody"]));
        if generator.rng.percent(90) {
            args.push(password(generator));
        }
    }
    if generator.rng.percent(30) {
        args.push(generator.word("SETNAME"));
        if generator.rng.percent(90) {
            args.push(name(generator));
        }
    }
    generator.maybe(8, "FOO", &mut args);
    args
}

fn password(generator: &mut Generator<'_>) -> Arg {
    Arg::from(generator.rng.pick(&["secret", "wrong", ""]))
}

fn auth(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(10) {
        0..5 => vec![password(generator)],
        5..9 => vec![
            generator.one_of(&["default", "nobody"]),
            password(generator),
        ],
        _ => vec![
            password(generator),
            password(generator),
            password(generator),
        ],
    }
}

fn quit(generator: &mut Generator<'_>) -> Vec<Arg> {
    if generator.rng.percent(80) {
        vec![]
    } else {
        vec![generator.value()]
    }
}

fn name(generator: &mut Generator<'_>) -> Arg {
    Arg::from(generator.rng.pick(&[
        b"alice".as_slice(),
        b"bob",
        b"",
        b"two words",
        b"nul\x00",
        b"\xc3\xa9",
        b"~!",
        b"\x7f",
    ]))
}

fn list(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(10) {
        0..2 => vec![],
        2..5 => {
            let kind = generator.one_of(&["NORMAL", "MASTER", "REPLICA", "SLAVE", "PUBSUB", "FOO"]);
            vec![generator.word("TYPE"), kind]
        }
        5..8 => {
            let mut args = vec![generator.word("ID")];
            for _ in 0..generator.rng.between(1, 3) {
                args.push(generator.client_id());
            }
            args
        }
        8 => {
            let id = generator.integer();
            vec![generator.word("ID"), id]
        }
        _ => vec![generator.one_of(&["ID", "TYPE", "FOO"])],
    }
}

fn kill(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(10) {
        0 => {
            return vec![Arg::from(generator.rng.pick(&[
                "127.0.0.1:1",
                "nonsense",
                "",
            ]))];
        }
        1 => {
            return vec![
                generator.word("ID"),
                Arg::from(generator.rng.pick(&["0", "-1", "abc", "", "999999999"])),
            ];
        }
        2 => {
            // A filter that matches nobody, or is none.
            let filter = generator.one_of(&["TYPE", "USER", "ADDR", "LADDR", "SKIPME", "FOO"]);
            return vec![
                filter,
                Arg::from(generator.rng.pick(&["foo", "master", "replica", ""])),
            ];
        }
        _ => {}
    }
    // Every real kill names one of the sequence's own clients: the test's other connections must live.
    let mut args = vec![generator.word("ID"), generator.client_id()];
    for _ in 0..generator.rng.below(3) {
        let (filter, value) = match generator.rng.below(5) {
            0 => (
                "TYPE",
                generator.one_of(&["NORMAL", "PUBSUB", "MASTER", "REPLICA", "SLAVE", "FOO"]),
            ),
            1 => ("USER", generator.one_of(&["default", "nobody"])),
            2 => ("ADDR", address(generator)),
            3 => ("LADDR", address(generator)),
            _ => ("SKIPME", generator.one_of(&["YES", "NO", "MAYBE"])),
        };
        args.push(generator.word(filter));
        args.push(value);
    }
    args
}

fn address(generator: &mut Generator<'_>) -> Arg {
    if generator.rng.percent(70) {
        Arg::SocketAddress
    } else {
        Arg::from("127.0.0.1:1")
    }
}

fn pause(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![Arg::from(generator.rng.pick(&[
        "0",
        "1",
        "-1",
        "abc",
        "",
        "99999999999999999999",
        "1.5",
    ]))];
    if generator.rng.percent(60) {
        args.push(generator.one_of(&["WRITE", "ALL", "FOO"]));
    }
    args
}

fn reply(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.one_of(&["ON", "ON", "FOO"])]
}

fn unblock(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![if generator.rng.percent(60) {
        generator.client_id()
    } else {
        generator.integer()
    }];
    if generator.rng.percent(60) {
        args.push(generator.one_of(&["TIMEOUT", "ERROR", "FOO"]));
    }
    args
}
