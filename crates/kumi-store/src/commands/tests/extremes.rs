//! Offsets, counts, ids, scores and times at the ends of their ranges: an error, or an answer in bounded time and memory.

use crate::testing::Lab;

const TABLE: &str = include_str!("extremes.txt");

#[test]
fn extreme_numbers_are_answered_as_in_redis() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (commands, expected) in TABLE.lines().filter_map(|line| line.split_once(" => ")) {
        let mut lab = Lab::new();
        let mut reply = String::new();
        for command in commands.split("; ") {
            reply = match command.strip_prefix("EVAL ") {
                Some(script) => {
                    let script = script.strip_suffix(" 0").unwrap_or(script);
                    lab.send(lab.client, &[b"EVAL", script.as_bytes(), b"0"])
                }
                None => lab.run(command),
            };
        }
        let reply = reply.replace("\r\n", "|");
        if reply != expected {
            wrong.push(format!("{commands}: {reply} instead of {expected}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 150, "only {count} lines were read");
}

#[test]
fn the_last_bit_of_the_longest_string_can_be_set() {
    Lab::new().check(&[
        ("SETBIT k 4294967295 1", ":0\r\n"),
        ("STRLEN k", ":536870912\r\n"),
        ("GETBIT k 4294967295", ":1\r\n"),
        ("GETRANGE k -1 -1", "$1\r\n\u{1}\r\n"),
        (
            "SETBIT k 4294967296 1",
            "-ERR bit offset is not an integer or out of range\r\n",
        ),
        (
            "APPEND k x",
            "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n",
        ),
        ("DEL k", ":1\r\n"),
    ]);
}
