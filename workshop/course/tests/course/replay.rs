//! Replays what the guide shows: `console` blocks with a real redis-cli and the mini command, `bytes` blocks on a socket.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use course::bytes::from_visible;
use course::lang::Lang;
use course::server::Server;
use course::wire::Client;

use crate::common::{mini_command, scratch, stages, succeeded};
use crate::guide::{PAGES, Page};

/// The server that a page's reader has by then: the one of its step.
fn server_of(name: &str) -> &'static Path {
    let step: usize = name[..2].parse().unwrap_or(0);
    &stages()[step]
}

#[test]
fn what_the_guide_shows_is_what_happens() {
    stages();
    std::thread::scope(|scope| {
        for lang in Lang::ALL {
            for name in PAGES {
                scope.spawn(move || replay(lang, name));
            }
        }
    });
}

fn replay(lang: Lang, name: &'static str) {
    let page = Page::read(lang, name);
    let place = format!("{} {}", lang.code(), page.name);
    let folder = scratch(&format!("guide-{}-{name}", lang.code()));
    let started = folder.join("started");
    succeeded(mini_command(&started).args(["start", "--lang", lang.code()]).output().expect("mini runs"));
    let blocks = page.blocks.iter().filter(|(kind, _)| kind == "console" || kind == "bytes");
    let mut server = None;
    for (kind, text) in blocks {
        let server = match (kind.as_str(), text.contains("redis-cli")) {
            ("bytes", _) | ("console", true) if !text.contains("cargo mini setup") => {
                let start = || Server::start(server_of(name), &[]).expect("it starts");
                Some(server.get_or_insert_with(start).address)
            }
            _ => None,
        };
        match (kind.as_str(), server) {
            ("bytes", Some(address)) => {
                let mut client = Client::connect(address).expect("it accepts");
                for line in text.lines() {
                    match line.split_once(": ") {
                        Some(("C", bytes)) => client.send(&from_visible(bytes)),
                        Some(("S", bytes)) => client.expect(&from_visible(bytes)).unwrap_or_else(|failure| {
                            panic!("{place}:\n{}", failure.lines(Lang::En).join("\n"));
                        }),
                        _ => panic!("{place}: {line}"),
                    }
                }
            }
            (_, address) => console(&place, text, address.map_or(0, |address| address.port()), |arguments| {
                let folder = if arguments.starts_with("start") { folder.join("new") } else { started.clone() };
                let mut command = mini_command(&folder);
                if arguments.starts_with("test") {
                    command.env("MINI_SERVER", server_of(name));
                }
                command.args(arguments.split_whitespace());
                command
            }),
        }
    }
}

/// Runs each command of a block and compares what it prints.
fn console(place: &str, text: &str, port: u16, mini: impl Fn(&str) -> Command) {
    for part in format!("\n{text}").split("\n$ ").skip(1) {
        let (command, expected) = part.split_once('\n').unwrap_or((part, ""));
        let mut process = match command.strip_prefix("cargo mini ") {
            Some(arguments) => mini(arguments),
            None => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &command.replacen("redis-cli", &format!("redis-cli --no-raw -p {port}"), 1)]);
                shell.stdin(Stdio::null());
                shell
            }
        };
        // What cargo says on standard error of locks and the like is not shown in the guide.
        let output = process.output().expect("it runs");
        let output = as_on_a_free_port(String::from_utf8_lossy(&output.stdout).into_owned());
        // On a busy machine a second may pass between two commands.
        let output = match (command.starts_with("redis-cli TTL"), expected.trim_end()) {
            (true, "(integer) 100") => {
                output.replace("(integer) 99", "(integer) 100").replace("(integer) 98", "(integer) 100")
            }
            _ => output,
        };
        let (got, wanted): (Vec<&str>, Vec<&str>) =
            (output.trim_end().lines().collect(), expected.trim_end().lines().collect());
        assert!(
            fits(&got, &wanted),
            "{place}: $ {command}\n--- the guide shows\n{expected}\n--- but it prints\n{output}"
        );
    }
}

/// `setup` tells whether port 6379 is free, which is not for this test to decide.
fn as_on_a_free_port(output: String) -> String {
    if TcpListener::bind(("127.0.0.1", 6379)).is_ok() {
        return output;
    }
    let lines = output.lines().filter(|line| !line.contains("6380"));
    lines
        .map(|line| line.replace("✗ port 6379", "✓ port 6379").replace("✗ ポート 6379", "✓ ポート 6379") + "\n")
        .collect()
}

/// Compares lines; `…` stands for any text in a line, and alone in a line for any number of lines.
fn fits(got: &[&str], wanted: &[&str]) -> bool {
    match (got.split_first(), wanted.split_first()) {
        (_, Some((line, rest))) if line.trim() == "…" => (0..=got.len()).any(|skipped| fits(&got[skipped..], rest)),
        (Some((got, others)), Some((wanted, rest))) => {
            let same = match wanted.split_once('…') {
                Some((start, end)) => {
                    got.len() >= start.len() + end.len() && got.starts_with(start) && got.ends_with(end)
                }
                None => got.trim_end() == wanted.trim_end(),
            };
            same && fits(others, rest)
        }
        (None, None) => true,
        _ => false,
    }
}

#[test]
fn three_dots_stand_for_lines_or_text() {
    assert!(fits(&["a", "b", "c"], &["a", "…", "c"]));
    assert!(fits(&["rustc 1.95"], &["rustc 1.…"]));
    assert!(!fits(&["a", "b"], &["a"]));
    assert!(!fits(&["a"], &["a", "b"]));
}
