//! What a full run must have sent and seen: every command, every option token, and every declared error path.
//!
//! Commands and tokens are declared by the grammar's rows. Error paths are declared in `error_paths.txt`, one per
//! line: the command, a tab, and the error with everything variable replaced by `%`. Only the reference's answers
//! count: an error that this server alone gives would be a difference, not coverage.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::{Arg, Request};
use crate::grammar::{row_of, rows};
use crate::session::Item;
use crate::support::frame::Frame;

const DECLARED_ERRORS: &str = include_str!("error_paths.txt");

/// How many times an error path must be seen to be worth declaring: a rare one would come and go.
const OFTEN: usize = 2;

/// What has been sent and seen so far.
#[derive(Default)]
pub(crate) struct Coverage {
    commands: BTreeSet<&'static str>,
    tokens: BTreeSet<(&'static str, &'static str)>,
    errors: BTreeMap<(String, String), usize>,
    ways: BTreeSet<&'static str>,
    /// How many requests were sent.
    requests: u64,
}

/// The protocols, and every way a request reaches a server or an answer comes about.
const WAYS: &[&str] = &[
    "RESP2",
    "RESP3",
    "one by one",
    "one packet",
    "pieces",
    "inline",
    "broken frame",
    "answer later",
    "deadline passes",
    "key leaves by itself",
];

impl Coverage {
    /// Takes note of what the reference showed.
    pub(crate) fn saw(&mut self, item: &Item) {
        match item {
            Item::Answer {
                request,
                replies,
                queued,
            } => {
                for reply in replies {
                    self.answered(request, &reply.frame);
                }
                if let [reply] = replies.as_slice()
                    && let Some(elements) = reply.frame.items()
                {
                    for (request, element) in queued.iter().zip(elements) {
                        self.answered(request, element);
                    }
                }
            }
            Item::Stray(reply) => {
                if let Some(error) = reply.frame.error() {
                    let seen = ("(protocol)".to_string(), normalise(error));
                    *self.errors.entry(seen).or_default() += 1;
                }
            }
            _ => {}
        }
    }

    /// Takes note of a request, whether it will be answered or not.
    pub(crate) fn sent(&mut self, request: &Request) {
        self.requests += 1;
        let Some(row) = row_of(request) else { return };
        self.commands.insert(row.name);
        let words: Vec<String> = request
            .args
            .iter()
            .skip(row.name.split(' ').count())
            .filter_map(|arg| match arg {
                Arg::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).to_ascii_uppercase()),
                _ => None,
            })
            .collect();
        for token in row.tokens {
            if words.iter().any(|word| word.eq_ignore_ascii_case(token)) {
                self.tokens.insert((row.name, token));
            }
        }
    }

    pub(crate) fn went(&mut self, way: &'static str) {
        self.ways.insert(way);
    }

    fn answered(&mut self, request: &Request, frame: &Frame) {
        if let Some(error) = frame.error() {
            // What is refused for the client's or the server's state is refused in one text, whatever the command.
            let name = match row_of(request) {
                _ if error.starts_with(b"ERR Can't execute") => "(subscribed)",
                _ if error.starts_with(b"NOAUTH Authentication") => "(unauthenticated)",
                _ if error.starts_with(b"OOM") => "(out of memory)",
                _ if error.starts_with(b"ERR Protocol error") => "(protocol)",
                Some(row) => row.name,
                None => "(unknown)",
            };
            *self
                .errors
                .entry((name.to_string(), normalise(error)))
                .or_default() += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: Coverage) {
        self.commands.extend(other.commands);
        self.tokens.extend(other.tokens);
        self.ways.extend(other.ways);
        self.requests += other.requests;
        for (error, times) in other.errors {
            *self.errors.entry(error).or_default() += times;
        }
    }

    /// Everything declared that never happened.
    pub(crate) fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> = WAYS
            .iter()
            .filter(|way| !self.ways.contains(*way))
            .map(|way| format!("way {way:?}"))
            .collect();
        for row in rows() {
            if !self.commands.contains(row.name) {
                missing.push(format!("command {}", row.name));
            }
            for token in row.tokens {
                if !self.tokens.contains(&(row.name, token)) {
                    missing.push(format!("option {token} of {}", row.name));
                }
            }
        }
        for line in DECLARED_ERRORS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let (command, error) = line.split_once('\t').unwrap_or((line, ""));
            if !self
                .errors
                .contains_key(&(command.to_string(), error.to_string()))
            {
                missing.push(format!("error of {command}: {error}"));
            }
        }
        missing
    }

    /// The error paths seen often enough, in the form of the declaration.
    pub(crate) fn declaration(&self) -> String {
        let header = "# The error paths a full run must come upon: the command, a tab, the error with what varies as %.\n\
                      # Renewed by KUMI_DIFF_DECLARE=path, and reviewed: a line that went missing is a path no longer reached.\n";
        let lines = self
            .errors
            .iter()
            .filter(|(_, times)| **times >= OFTEN)
            .map(|((command, error), _)| format!("{command}\t{error}\n"));
        std::iter::once(header.to_string()).chain(lines).collect()
    }

    pub(crate) fn summary(&self) -> String {
        format!(
            "{} requests: {} commands, {} options, {} error paths",
            self.requests,
            self.commands.len(),
            self.tokens.len(),
            self.errors.len()
        )
    }
}

/// An error's text without what varies: everything in quotes, and everything after a few texts that end in a word of
/// the client's.
pub(crate) fn normalise(error: &[u8]) -> String {
    // The apostrophe of "can't" quotes nothing.
    let text = error
        .escape_ascii()
        .to_string()
        .replace("\\'", "'")
        .replace("n't", "n`t");
    for ending in [", with args beginning with: ", "ERR Unsupported option "] {
        if let Some((head, _)) = text.split_once(ending) {
            return format!("{}{ending}%", normalise(head.as_bytes()));
        }
    }
    // A script's error ends with its SHA-1 and the line.
    if let Some((head, _)) = text.split_once(" script: ") {
        return format!("{} script: %", normalise(head.as_bytes()));
    }
    let mut out = String::new();
    let mut parts = text.split('\'');
    out.push_str(parts.next().unwrap_or_default());
    while let Some(quoted) = parts.next() {
        match parts.next() {
            // A lone apostrophe quotes nothing either.
            None => {
                out.push('\'');
                out.push_str(quoted);
            }
            Some(after) => {
                out.push_str("'%'");
                out.push_str(after);
            }
        }
    }
    out
}
