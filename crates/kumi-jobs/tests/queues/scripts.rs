//! The scripts as a program in another language calls them: by redis-cli, with what docs/jobs-protocol.md says.

use crate::servers::{Kind, Server, on_both_servers};

on_both_servers![
    a_program_in_any_language_can_be_a_worker,
    a_wrong_field_is_an_error_before_anything_is_written,
];

const LIB: &str = include_str!("../../src/redis/lua/lib.lua");
const ENQUEUE: &str = include_str!("../../src/redis/lua/enqueue.lua");
const TURN: &str = include_str!("../../src/redis/lua/turn.lua");

/// What a script replies, in lines.
fn run(server: &Server, body: &str, arguments: &str) -> Vec<String> {
    let code = format!("{LIB}{body}");
    let mut words = vec!["EVAL", &code, "1", "kumi:jobs:{raw}:", ""];
    // A dash stands for an empty argument, a dash in quotes for a dash.
    let arguments = arguments.split(' ').map(|word| match word {
        "-" => "",
        "'-'" => "-",
        word => word,
    });
    words.extend(arguments);
    server.cli(&words).lines().map(str::to_owned).collect()
}

async fn a_program_in_any_language_can_be_a_worker(kind: Kind) {
    let server = Server::start(kind);
    let task = "mine mail {} - - - - - - - - - -";
    assert_eq!(run(&server, ENQUEUE, &format!("1 {task}")), ["Nq"]);
    assert_eq!(run(&server, ENQUEUE, &format!("1 {task}")), ["E"]);
    let head = "w~0000000000000001 00000000000000ab 15000";
    let turn = run(&server, TURN, &format!("{head} 5 1 0 mail 5"));
    let claim = "mine 1-00000000000000ab mail 1 1 5 ";
    assert!(turn.iter().any(|line| line.starts_with(claim)), "{turn:?}");
    assert_eq!(turn.last().map(String::as_str), Some("1"), "it holds one");
    let report = format!("{head} 0 0 1 mine 1-00000000000000ab S 1 7");
    for expected in ["As", "D"] {
        let turn = run(&server, TURN, &report);
        assert_eq!(turn.get(4).map(String::as_str), Some(expected), "{turn:?}");
    }
    let result = server.cli(&["HGET", "kumi:jobs:{raw}:result", "mine"]);
    assert_eq!(result, "7");
}

async fn a_wrong_field_is_an_error_before_anything_is_written(kind: Kind) {
    let server = Server::start(kind);
    let right = "mine mail {} - 5 1 0 k - - - - -";
    for (wrong, text) in [
        ("- mail {} - 5 1 0 - - - - - -", "an id"),
        ("'-' mail {} - 5 1 0 - - - - - -", "an id"),
        ("next - {} - 5 1 0 - - - - - -", "a type"),
        ("next mail {} - 0 1 0 - - - - - -", "max_attempts"),
        ("next mail {} - many 1 0 - - - - - -", "max_attempts"),
        ("next mail {} - 4294967296 1 0 - - - - - -", "max_attempts"),
        ("next mail {} - 10000000000 1 0 - - - - - -", "max_attempts"),
        ("next mail {} - 5 4 0 - - - - - -", "a priority"),
        ("next mail {} - 5 1 soon - - - - - -", "a delay"),
        ("next mail {} - 5 1 -1 - - - - - -", "a delay"),
        ("next mail {} - 5 1 0 u long - - - -", "a window"),
        (
            "next mail {} - 5 1 0 - - - - -",
            "a task has thirteen fields",
        ),
        ("next mail {} - 5 1 0 - - - - - soon", "a back-off"),
    ] {
        let reply = run(&server, ENQUEUE, &format!("2 {right} {wrong}"));
        let reply = reply.join(" ");
        let expected = format!("ERR task 2: {text}");
        assert!(reply.contains(&expected), "{wrong}: {reply}");
        assert_eq!(server.cli(&["DBSIZE"]), "0", "{wrong}");
    }
    let largest = "mine mail {} - 4294967295 1 0 - - - - - -";
    assert_eq!(run(&server, ENQUEUE, &format!("1 {largest}")), ["Nq"]);
}
