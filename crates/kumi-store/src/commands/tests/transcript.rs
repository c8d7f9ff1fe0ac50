//! Replies, byte for byte, against those that a server of the 7.2 line gave.

use std::collections::BTreeSet;

use crate::base::ids::SessionKey;
use crate::testing::Lab;
use crate::testing::json::{self, Value};

const TRANSCRIPT: &str = include_str!("../../../../../tests/fixtures/redis-7.2/transcript.jsonl");
const DUMPS: &str = include_str!("../../../../../tests/fixtures/redis-7.2/dumps.jsonl");

/// Longer than any command of the transcript waits.
const TIMEOUT_MS: u64 = 20;

/// How a reply is compared.
#[derive(Debug, PartialEq)]
enum Rule {
    Exactly,
    /// Pairs in any order.
    Pairs,
    /// Elements in any order.
    AnyOrder,
    /// Not at all.
    Passed,
}

fn rule(words: &[String], reply: &[u8]) -> Rule {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    match (word(0), word(1)) {
        ("CONFIG", "GET") => Rule::Pairs,
        ("FUNCTION", "LIST") => Rule::AnyOrder,
        // Random, and the recorded server's own version.
        ("ACL", "GENPASS") | ("EVAL", "return redis.REDIS_VERSION_NUM") => Rule::Passed,
        // `sanitize-payload`, which every user has, is shown only if it was given.
        ("ACL", "LIST" | "GETUSER") => Rule::Passed,
        // Commands that a server without client tracking or append-only file does not have.
        ("CLIENT", _) | ("WAITAOF", _) if reply.starts_with(b"-ERR unknown ") => Rule::Passed,
        _ => Rule::Exactly,
    }
}

#[test]
fn every_recorded_reply_is_given() {
    let mut lab = Lab::new();
    lab.allow_debug();
    lab.configure("save", "");
    restore_functions(&mut lab);
    let mut client = lab.client;
    let mut wrong = Vec::new();
    let mut lines = 0;
    for line in TRANSCRIPT.lines().map(json::parse) {
        let words = words(&line["cmd"]);
        if line.get("connect").is_some() {
            client = connect(&mut lab, &line["resp"]);
        }
        let reply = reply(&mut lab, client, &words);
        let expected = line["reply"].as_str().expect("a reply is text");
        let words: Vec<String> = words
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        if !matches(&rule(&words, &reply), &reply, expected.as_bytes()) {
            let reply = String::from_utf8_lossy(&reply);
            wrong.push(format!(
                "{}: {reply:?} instead of {expected:?}",
                words.join(" ")
            ));
        }
        lines += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines > 300, "only {lines} commands were read");
}

/// The transcript's server had the functions of the recorded FUNCTION DUMP.
fn restore_functions(lab: &mut Lab) {
    let last = DUMPS.lines().last().map(json::parse).expect("a last line");
    let payload = last["function_dump"].as_str().expect("a payload");
    let payload: Vec<u8> = (0..payload.len() / 2)
        .map(|at| u8::from_str_radix(&payload[at * 2..at * 2 + 2], 16).expect("hexadecimal"))
        .collect();
    let answer = lab.send(lab.client, &[b"FUNCTION", b"RESTORE", &payload]);
    assert_eq!(answer, "+OK\r\n");
}

fn connect(lab: &mut Lab, resp: &Value) -> SessionKey {
    let client = lab.connect();
    lab.run_as(client, "DEL k s d l b");
    if *resp == Value::Number(3) {
        lab.run_as(client, "HELLO 3");
    }
    client
}

fn words(command: &Value) -> Vec<Vec<u8>> {
    let words = command.as_array().expect("a command is a list");
    words
        .iter()
        .map(|word| match (word.as_str(), &word["times"]) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (None, Value::Number(times)) => {
                let text = word["repeat"].as_str().expect("a text is repeated");
                text.repeat(*times as usize).into_bytes()
            }
            other => panic!("not a word: {other:?}"),
        })
        .collect()
}

/// The reply, after its timeout if the command waits.
fn reply(lab: &mut Lab, client: SessionKey, words: &[Vec<u8>]) -> Vec<u8> {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let reply = lab.send_raw(client, &words);
    if !reply.is_empty() {
        return reply;
    }
    lab.advance_ms(TIMEOUT_MS);
    lab.received(client).into_bytes()
}

fn matches(rule: &Rule, reply: &[u8], expected: &[u8]) -> bool {
    match rule {
        Rule::Exactly => reply == expected,
        Rule::AnyOrder => sorted_lines(reply) == sorted_lines(expected),
        Rule::Passed => true,
        Rule::Pairs => pairs(reply) == pairs(expected),
    }
}

fn sorted_lines(reply: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = reply.split(|&byte| byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// The lines of a reply with its pairs in order: the first line, then name and value with their lengths.
fn pairs(reply: &[u8]) -> (Vec<u8>, BTreeSet<Vec<Vec<u8>>>) {
    let mut lines = reply
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect::<Vec<_>>()
        .into_iter();
    let first = lines.next().unwrap_or_default();
    let rest: Vec<Vec<u8>> = lines.collect();
    (first, rest.chunks(4).map(<[Vec<u8>]>::to_vec).collect())
}
