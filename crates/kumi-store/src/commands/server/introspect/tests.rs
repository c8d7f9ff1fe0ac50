//! What COMMAND answers, in both protocols.

use super::usage::{self, Argument, Shape};
use crate::testing::Lab;
use kumi_resp::{ReplyLimits, decode_reply};

/// The whole of COMMAND INFO GET in RESP2.
const GET: &str = "*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n";

/// The same in RESP3.
const GET_RESP3: &str = "*10\r\n$3\r\nget\r\n:2\r\n~2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n~3\r\n+@read\r\n+@string\r\n+@fast\r\n~0\r\n~1\r\n%3\r\n$5\r\nflags\r\n~2\r\n+RO\r\n+access\r\n$12\r\nbegin_search\r\n%2\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n%1\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n%2\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n%3\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n~0\r\n";

const CONFIG_GET: &str = "*10\r\n$10\r\nconfig|get\r\n:-3\r\n*4\r\n+admin\r\n+noscript\r\n+loading\r\n+stale\r\n:0\r\n:0\r\n:0\r\n*3\r\n+@admin\r\n+@slow\r\n+@dangerous\r\n*0\r\n*0\r\n*0\r\n";

#[test]
fn info_has_the_shape_clients_know() {
    let mut lab = Lab::new();
    lab.check(&[
        ("COMMAND INFO get", &format!("*1\r\n{GET}")),
        (
            "COMMAND INFO CONFIG|Get nope config|nope",
            &format!("*3\r\n{CONFIG_GET}$-1\r\n$-1\r\n"),
        ),
    ]);
    assert!(lab.run("COMMAND INFO config").starts_with(
        "*1\r\n*10\r\n$6\r\nconfig\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*1\r\n+@slow\r\n*0\r\n*0\r\n*5\r\n*10\r\n$10\r\nconfig|get\r\n"
    ));
    lab.run("HELLO 3");
    lab.check(&[
        ("COMMAND INFO GET", &format!("*1\r\n{GET_RESP3}")),
        ("COMMAND INFO nope", "*1\r\n_\r\n"),
    ]);
    assert!(
        lab.run("COMMAND INFO config")
            .contains("~0\r\n~0\r\n*5\r\n*10\r\n")
    );
}

#[test]
fn all_three_ways_to_ask_for_everything_agree() {
    let mut lab = Lab::new();
    let count = lab.run("COMMAND COUNT");
    let all = lab.run("COMMAND");
    assert_eq!(all, lab.run("COMMAND INFO"));
    let header = format!("*{}", &count[1..]);
    assert!(all.starts_with(&header), "{header}");
    assert!(lab.run("COMMAND DOCS").starts_with('*'));
    lab.run("HELLO 3");
    let header = format!("%{}", &count[1..]);
    assert!(lab.run("COMMAND DOCS").starts_with(&header));
}

#[test]
fn every_answer_decodes() {
    let mut lab = Lab::new();
    for hello in ["HELLO 2", "HELLO 3"] {
        lab.run(hello);
        for line in ["COMMAND", "COMMAND DOCS", "COMMAND LIST", "COMMAND HELP"] {
            let answer = lab.run(line);
            let decoded = decode_reply(answer.as_bytes(), &ReplyLimits::default());
            let whole = matches!(&decoded, Ok(Some((_, used))) if *used == answer.len());
            assert!(whole, "{line}: {decoded:?}");
        }
    }
}

#[test]
fn list_is_filtered() {
    Lab::new().check(&[
        ("COMMAND LIST FILTERBY PATTERN TIM*", "*1\r\n$4\r\ntime\r\n"),
        (
            "COMMAND LIST filterby pattern slowlog|l*",
            "*1\r\n$11\r\nslowlog|len\r\n",
        ),
        (
            "COMMAND LIST FILTERBY PATTERN function|d*",
            "*2\r\n$15\r\nfunction|delete\r\n$13\r\nfunction|dump\r\n",
        ),
        ("COMMAND LIST FILTERBY ACLCAT nope", "*0\r\n"),
        ("COMMAND LIST FILTERBY MODULE json", "*0\r\n"),
        ("COMMAND LIST FILTERBY NOPE x", "-ERR syntax error\r\n"),
        ("COMMAND LIST FILTERBY PATTERN", "-ERR syntax error\r\n"),
        ("COMMAND LIST x", "-ERR syntax error\r\n"),
        ("COMMAND LIST FILTERBY PATTERN a b", "-ERR syntax error\r\n"),
    ]);
}

#[test]
fn getkeys_finds_the_keys_of_a_request() {
    let mut lab = Lab::new();
    lab.check(&[
        ("COMMAND GETKEYS GET a", "*1\r\n$1\r\na\r\n"),
        ("COMMAND GETKEYS WATCH a b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        ("COMMAND GETKEYS MEMORY USAGE a", "*1\r\n$1\r\na\r\n"),
        ("COMMAND GETKEYS EVAL script x a", "*0\r\n"),
        ("COMMAND GETKEYS FCALL f 2 a", "*0\r\n"),
        (
            "COMMAND GETKEYS PING x",
            "-ERR The command has no key arguments\r\n",
        ),
        (
            "COMMAND GETKEYS SPUBLISH a b",
            "-ERR The command has no key arguments\r\n",
        ),
        (
            "COMMAND GETKEYS NOPE a",
            "-ERR Invalid command specified\r\n",
        ),
        (
            "COMMAND GETKEYS CONFIG NOPE",
            "-ERR Invalid command specified\r\n",
        ),
        (
            "COMMAND GETKEYS GET a b",
            "-ERR Invalid number of arguments specified for command\r\n",
        ),
        (
            "COMMAND GETKEYS",
            "-ERR wrong number of arguments for 'command|getkeys' command\r\n",
        ),
    ]);
}

#[test]
fn getkeysandflags_depends_on_the_options() {
    let mut lab = Lab::new();
    lab.check(&[
        (
            "COMMAND GETKEYSANDFLAGS SET a b",
            "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+OW\r\n+update\r\n",
        ),
        (
            "COMMAND GETKEYSANDFLAGS SET a b NX get",
            "*1\r\n*2\r\n$1\r\na\r\n*3\r\n+RW\r\n+access\r\n+update\r\n",
        ),
        (
            "COMMAND GETKEYSANDFLAGS BITFIELD a SET u8 0 1",
            "*1\r\n*2\r\n$1\r\na\r\n*3\r\n+RW\r\n+access\r\n+update\r\n",
        ),
        (
            "COMMAND GETKEYSANDFLAGS BITFIELD a GET u8 0",
            "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+RO\r\n+access\r\n",
        ),
        (
            "COMMAND GETKEYSANDFLAGS GET a",
            "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+RO\r\n+access\r\n",
        ),
    ]);
    lab.run("HELLO 3");
    lab.check(&[(
        "COMMAND GETKEYSANDFLAGS GET a",
        "*1\r\n*2\r\n$1\r\na\r\n~2\r\n+RO\r\n+access\r\n",
    )]);
}

#[test]
fn docs_tell_how_a_command_is_called() {
    let mut lab = Lab::new();
    let docs = lab.run("COMMAND DOCS memory|usage nope");
    assert!(
        docs.starts_with("*2\r\n$12\r\nmemory|usage\r\n*10\r\n$7\r\nsummary\r\n"),
        "{docs}"
    );
    assert!(
        docs.ends_with(
            "$9\r\narguments\r\n*2\r\n*8\r\n$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n$12\r\ndisplay_text\r\n$3\r\nkey\r\n$14\r\nkey_spec_index\r\n:0\r\n*10\r\n$4\r\nname\r\n$5\r\ncount\r\n$4\r\ntype\r\n$7\r\ninteger\r\n$12\r\ndisplay_text\r\n$5\r\ncount\r\n$5\r\ntoken\r\n$7\r\nSAMPLES\r\n$5\r\nflags\r\n*1\r\n+optional\r\n"
        ),
        "{docs}"
    );
    let docs = lab.run("COMMAND DOCS slaveof");
    assert!(
        docs.contains("doc_flags\r\n*1\r\n+deprecated\r\n$16\r\ndeprecated_since\r\n$5\r\n5.0.0\r\n$11\r\nreplaced_by\r\n$11\r\n`REPLICAOF`\r\n"),
        "{docs}"
    );
    assert_eq!(lab.run("COMMAND DOCS nope"), "*0\r\n");
}

fn flatten(arguments: &[Argument]) -> Vec<&Argument> {
    let mut all = Vec::new();
    for argument in arguments {
        all.push(argument);
        if let Shape::OneOf(parts) | Shape::Block(parts) = &argument.shape {
            all.extend(flatten(parts));
        }
    }
    all
}

#[test]
fn usage_lines_follow_the_rules_and_name_the_keys() {
    let lab = Lab::new();
    for (_, indexed) in lab.store.index.iter() {
        let arguments = usage::parse(indexed.row.usage);
        let all = flatten(&arguments);
        for argument in &all {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "-:".contains(letter);
            let is_plain = !argument.name.is_empty() && argument.name.chars().all(plain);
            assert!(is_plain, "{}: {argument:?}", indexed.full_name);
        }
        let names_keys = all.iter().any(|argument| argument.kind() == "key");
        let mut specs = indexed.row.keys.iter();
        let has_keys = specs.any(|spec| spec.names_keys());
        assert_eq!(names_keys, has_keys, "{}", indexed.full_name);
    }
}
