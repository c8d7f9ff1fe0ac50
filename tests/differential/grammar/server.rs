//! The rows of the server commands, and commands that do not exist.
//!
//! MONITOR and a real SHUTDOWN are never drawn: they belong to `scenarios`.

use super::{Generator, Row, row};
use crate::command::Arg;

pub(super) const ROWS: &[Row] = &[
    row("INFO", SECTIONS, info),
    row("CONFIG GET", &[], config_get).weight(12),
    row("CONFIG SET", &[], config_set).weight(25),
    row("CONFIG RESETSTAT", &[], |_| vec![]).weight(2),
    row("CONFIG REWRITE", &[], |_| vec![]).weight(2),
    row("CONFIG HELP", &[], |_| vec![]).weight(1),
    row("CONFIG", &[], unknown).weight(2),
    row("COMMAND", &[], |_| vec![]).weight(1),
    row("COMMAND COUNT", &[], |_| vec![]).weight(2),
    row(
        "COMMAND LIST",
        &["FILTERBY", "MODULE", "ACLCAT", "PATTERN"],
        command_list,
    )
    .weight(8),
    row("COMMAND INFO", &[], command_names).weight(6),
    row("COMMAND DOCS", &[], command_names).weight(3),
    row("COMMAND GETKEYS", &[], getkeys).weight(12),
    row("COMMAND GETKEYSANDFLAGS", &[], getkeys).weight(12),
    row("COMMAND HELP", &[], |_| vec![]).weight(1),
    row("COMMAND FOO", &[], |_| vec![]).weight(1),
    row("TIME", &[], |_| vec![]).weight(3),
    row("MONITOR", &[], |_| vec![]).weight(0),
    row("SLOWLOG GET", &[], slowlog_get).weight(5),
    row("SLOWLOG LEN", &[], |_| vec![]).weight(3),
    row("SLOWLOG RESET", &[], |_| vec![]).weight(2),
    row("SLOWLOG HELP", &[], |_| vec![]).weight(1),
    row("SLOWLOG", &[], unknown).weight(1),
    row("LATENCY LATEST", &[], |_| vec![]).weight(2),
    row("LATENCY HISTORY", &[], event_name).weight(2),
    row("LATENCY RESET", &[], latency_reset).weight(2),
    row("LATENCY HISTOGRAM", &[], histogram).weight(4),
    row("LATENCY DOCTOR", &[], |_| vec![]).weight(1),
    row("LATENCY GRAPH", &[], event_name).weight(1),
    row("LATENCY HELP", &[], |_| vec![]).weight(1),
    row("LATENCY", &[], unknown).weight(1),
    row("MEMORY USAGE", &["SAMPLES"], memory_usage).weight(6),
    row("MEMORY STATS", &[], |_| vec![]).weight(2),
    row("MEMORY DOCTOR", &[], |_| vec![]).weight(1),
    row("MEMORY PURGE", &[], |_| vec![]).weight(1),
    row("MEMORY MALLOC-STATS", &[], |_| vec![]).weight(1),
    row("MEMORY HELP", &[], |_| vec![]).weight(1),
    row("MEMORY", &[], unknown).weight(1),
    row("MODULE LIST", &[], |_| vec![]).weight(1),
    row("MODULE HELP", &[], |_| vec![]).weight(1),
    row("DEBUG SLEEP", &[], |_| vec![Arg::from("0")]).weight(2),
    row("DEBUG SET-ACTIVE-EXPIRE", &[], |_| vec![Arg::from("0")]).weight(2),
    row("DEBUG OBJECT", &[], |generator| vec![generator.key()]).weight(6),
    row("DEBUG JMAP", &[], |_| vec![]).weight(2),
    row("DEBUG HELP", &[], |_| vec![]).weight(1),
    row("LASTSAVE", &[], |_| vec![]).weight(2),
    row(
        "SHUTDOWN",
        &["NOSAVE", "SAVE", "NOW", "FORCE", "ABORT"],
        shutdown,
    )
    .weight(5),
    row("FUNCTION FLUSH", &["ASYNC", "SYNC"], function_flush).weight(3),
    row("FUNCTION HELP", &[], |_| vec![]).weight(1),
    row("WAIT", &[], wait).weight(5),
    row("REPLICAOF", &["NO", "ONE"], replicaof).weight(3),
    row("SLAVEOF", &["NO", "ONE"], replicaof).weight(2),
    row("ROLE", &[], |_| vec![]).weight(3),
    row("NOSUCH", &[], nosuch).weight(6),
];

const SECTIONS: &[&str] = &[
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cpu",
    "modules",
    "commandstats",
    "errorstats",
    "latencystats",
    "cluster",
    "keyspace",
    "all",
    "default",
    "everything",
];

fn info(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(10) {
        0 | 1 => vec![],
        2..8 => vec![generator.one_of(SECTIONS)],
        8 => vec![generator.one_of(SECTIONS), generator.one_of(SECTIONS)],
        _ => vec![generator.one_of(&["foo", ""])],
    }
}

fn unknown(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.one_of(&["FOO", "GETS", "RESETS"])]
}

fn config_get(generator: &mut Generator<'_>) -> Vec<Arg> {
    (0..generator.rng.between(1, 3))
        .map(|_| {
            Arg::from(generator.rng.pick(&[
                "notify-keyspace-events",
                "maxmemory",
                "MAXMEMORY",
                "maxmemory*",
                "slowlog-*",
                "nosuch",
                "max*",
                "*lazy*",
                "save",
                "client-output-buffer-limit",
                "requirepass",
                "databases",
                "[t]imeout",
                "list-max-*",
                "*ziplist*",
                "hz",
                "",
                "appendonly",
            ]))
        })
        .collect()
}

/// Directives that may be set without changing what the run can observe about itself, with good and bad values.
const SETTABLE: &[(&str, &[&str])] = &[
    (
        "notify-keyspace-events",
        &[
            "KEA",
            "",
            "KEAmn",
            "Kx",
            "Eg$",
            "AKE",
            "Kq",
            "g$lshzxetdnmKE",
            "gxeKEm",
            "KK",
        ],
    ),
    (
        "maxmemory",
        &[
            "0",
            "100mb",
            "1gb",
            "1GB",
            "1",
            "1b",
            "abc",
            "-1",
            "1tb",
            "",
            "1mb1",
            "1.5gb",
            "99999999999999999999",
        ],
    ),
    ("maxmemory-policy", &["noeviction", "foo", "", "NOEVICTION"]),
    ("maxmemory-samples", &["5", "10", "0", "abc", "-1", "64"]),
    (
        "slowlog-log-slower-than",
        &["10000", "-1", "0", "abc", "99999999999999999999"],
    ),
    ("slowlog-max-len", &["128", "0", "10", "-1", "abc"]),
    ("latency-monitor-threshold", &["0", "100", "-1", "abc"]),
    ("timeout", &["0", "1000", "-1", "abc", "2147483648"]),
    ("tcp-keepalive", &["300", "0", "-1", "abc"]),
    ("hz", &["10", "100", "abc"]),
    (
        "proto-max-bulk-len",
        &["512mb", "1mb", "536870912", "1", "abc", "1048575"],
    ),
    ("client-query-buffer-limit", &["1gb", "1mb", "1", "abc"]),
    (
        "client-output-buffer-limit",
        &[
            "normal 0 0 0",
            "pubsub 32mb 8mb 60",
            "pubsub 33554432 8388608 60",
            "foo 0 0 0",
            "normal 0 0",
            "normal a b c",
            "normal 0 0 0 pubsub 1gb 1gb 1",
            "",
            "replica 256mb 64mb 60",
            "normal 1gb 0 -1",
        ],
    ),
    ("requirepass", &["secret", "", "secret"]),
    ("lazyfree-lazy-expire", &["yes", "no", "YES", "1", "maybe"]),
    ("lazyfree-lazy-user-del", &["yes", "no", "true"]),
    ("lazyfree-lazy-user-flush", &["yes", "no"]),
    ("activerehashing", &["yes", "no", "on"]),
    ("list-max-listpack-size", &["-2", "128", "abc"]),
    ("hash-max-ziplist-entries", &["512", "64", "-1"]),
    ("hash-max-listpack-entries", &["512", "64", "3", "abc"]),
    ("hash-max-listpack-value", &["64", "2", "abc"]),
    ("zset-max-listpack-entries", &["128", "3", "abc"]),
    ("zset-max-listpack-value", &["64", "2", "abc"]),
    ("set-max-intset-entries", &["512", "0", "-1"]),
    ("lfu-log-factor", &["10", "0", "-1"]),
    ("loglevel", &["notice", "debug", "NOTICE", "foo"]),
    ("maxclients", &["10000", "5000", "0", "abc"]),
    ("min-replicas-max-lag", &["10", "5", "-1"]),
    ("databases", &["16", "8"]),
    ("unixsocket", &["/nowhere"]),
    ("nosuch", &["1"]),
    ("", &["1"]),
];

fn config_set(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = Vec::new();
    let pairs = if generator.rng.percent(75) {
        1
    } else {
        generator.rng.between(2, 3)
    };
    for _ in 0..pairs {
        let (name, values) = SETTABLE[generator.rng.below(SETTABLE.len())];
        args.push(generator.word(name));
        args.push(Arg::from(generator.rng.pick(values)));
    }
    if generator.rng.percent(5) {
        args.pop();
    }
    args
}

/// Names as COMMAND takes them, of commands that exist here.
const NAMES: &[&str] = &[
    "get",
    "SET",
    "ping",
    "client",
    "client|kill",
    "client|list",
    "nosuch",
    "config|get",
    "config",
    "mset",
    "object",
    "object|encoding",
    "lcs",
    "scan",
    "expire",
    "copy",
    "client|nosuch",
    "",
];

fn command_names(generator: &mut Generator<'_>) -> Vec<Arg> {
    // Never without a name: that lists everything the server has, which is compared apart.
    (0..generator.rng.between(1, 3))
        .map(|_| generator.one_of(NAMES))
        .collect()
}

fn command_list(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(10) {
        0 => vec![],
        1 => vec![generator.one_of(&["FILTERBY", "FOO"])],
        2 => vec![
            generator.word("FILTERBY"),
            generator.one_of(&["MODULE", "ACLCAT", "PATTERN", "FOO"]),
        ],
        3 | 4 => {
            let category = generator.one_of(&[
                "string",
                "keyspace",
                "pubsub",
                "fast",
                "connection",
                "nosuch",
                "",
            ]);
            vec![
                generator.word("FILTERBY"),
                generator.word("ACLCAT"),
                category,
            ]
        }
        5..9 => {
            let glob = Arg::from(
                generator
                    .rng
                    .pick(&["get*", "client|*", "*ex", "nomatch", "s[eu]*", ""]),
            );
            vec![generator.word("FILTERBY"), generator.word("PATTERN"), glob]
        }
        _ => vec![
            generator.word("FILTERBY"),
            generator.word("MODULE"),
            Arg::from("nosuch"),
        ],
    }
}

fn getkeys(generator: &mut Generator<'_>) -> Vec<Arg> {
    let key = generator.key();
    let other = generator.key();
    let value = generator.value();
    let word = |text: &str| Arg::from(text);
    match generator.rng.below(12) {
        0 => vec![word("GET"), key],
        1 => vec![word("SET"), key, value, word("GET")],
        2 => vec![word("MSET"), key, value, other, word("x")],
        3 => vec![word("RENAME"), key, other],
        4 => vec![word("COPY"), key, other, word("REPLACE")],
        5 => vec![word("OBJECT"), word("ENCODING"), key],
        6 => vec![word("MEMORY"), word("USAGE"), key],
        7 => vec![word("DEL"), key, other],
        8 => vec![word("PING")],
        9 => vec![word("NOSUCH"), key],
        10 => vec![word("SET"), key],
        _ => vec![
            generator.one_of(&[
                "EXPIRE", "LCS", "MSET", "GETEX", "TOUCH", "SPUBLISH", "PUBLISH",
            ]),
            key,
            other,
            word("1"),
        ],
    }
}

fn slowlog_get(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(3) {
        0 => vec![],
        1 => vec![Arg::from(generator.rng.pick(&["0", "1", "10", "-1"]))],
        _ => vec![Arg::from(generator.rng.pick(&[
            "-2",
            "abc",
            "",
            "99999999999999999999",
        ]))],
    }
}

fn event_name(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.one_of(&["command", "expire-cycle", "nosuch"])]
}

fn latency_reset(generator: &mut Generator<'_>) -> Vec<Arg> {
    if generator.rng.percent(50) {
        vec![]
    } else {
        event_name(generator)
    }
}

fn histogram(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(4) {
        0 => vec![],
        _ => (0..generator.rng.between(1, 3))
            .map(|_| generator.one_of(&["set", "get", "nosuch", "client", "config|set"]))
            .collect(),
    }
}

fn memory_usage(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![generator.key()];
    if generator.rng.percent(50) {
        args.push(generator.one_of(&["SAMPLES", "SAMPLES", "FOO"]));
        if generator.rng.percent(90) {
            args.push(Arg::from(generator.rng.pick(&["0", "5", "-1", "abc"])));
        }
    }
    args
}

fn shutdown(generator: &mut Generator<'_>) -> Vec<Arg> {
    // Only what is refused: the reference must outlive the sequence.
    match generator.rng.below(5) {
        0 => vec![generator.word("ABORT")],
        1 => vec![generator.word("NOSAVE"), generator.word("SAVE")],
        2 => vec![generator.word("NOW"), generator.word("ABORT")],
        3 => vec![generator.word("FORCE"), generator.word("FOO")],
        _ => vec![generator.word("FOO")],
    }
}

fn function_flush(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(4) {
        0 => vec![],
        1 | 2 => vec![generator.one_of(&["ASYNC", "SYNC"])],
        _ => vec![generator.word("FOO")],
    }
}

fn wait(generator: &mut Generator<'_>) -> Vec<Arg> {
    match generator.rng.below(6) {
        0 | 1 => vec![Arg::from("0"), Arg::from("0")],
        2 => vec![Arg::from("1"), Arg::from("2")],
        3 => vec![Arg::from("abc"), Arg::from("0")],
        4 => vec![
            Arg::from("0"),
            Arg::from(generator.rng.pick(&["-1", "abc", "99999999999999999999"])),
        ],
        _ => vec![Arg::from("-1"), Arg::from("0")],
    }
}

fn replicaof(generator: &mut Generator<'_>) -> Vec<Arg> {
    vec![generator.word("NO"), generator.word("ONE")]
}

fn nosuch(generator: &mut Generator<'_>) -> Vec<Arg> {
    (0..generator.rng.below(5))
        .map(|_| generator.value())
        .collect()
}
