//! Methods that code for one channel would have twice.
//!
//! A handle has a method per request beside those for sending and hearing events, and both languages build these names
//! in their own way: an event `Send` is heard through `send_events`, and an event `Events` is sent through it. So the
//! methods of every class and trait that will be written are listed here and compared.

use super::Checker;
use crate::model::{At, Channel, Side};
use crate::names::{camel_case, pascal_case, rust_identifier, snake_case};
use std::collections::{BTreeMap, BTreeSet};

/// Methods of one class or trait: what it always has, and what requests and events add, with where they stand.
struct Methods {
    always: &'static [&'static str],
    added: Vec<(String, At)>,
}

const HANDLE: &[&str] = &[
    "event_streams",
    "from_channel",
    "raw_channel",
    "serve_requests",
    "with_binary",
    "with_options",
];

impl Checker<'_> {
    pub(super) fn methods(&mut self, channel: &Channel) {
        let mut reported = BTreeSet::new();
        for methods in [
            client(channel),
            peer(channel),
            service(channel),
            web(channel),
        ] {
            let mut seen: BTreeMap<String, Option<At>> = methods
                .always
                .iter()
                .map(|&name| (name.to_owned(), None))
                .collect();
            for (name, at) in methods.added {
                let Some(&first) = seen.get(&name) else {
                    seen.insert(name, Some(at));
                    continue;
                };
                // Both languages may have the same problem with a name; it is reported once.
                if !reported.insert((at.0.start, at.0.end)) {
                    continue;
                }
                let sources = self.sources;
                let message = format!(
                    "the method {name} of channel {:?} has another meaning already",
                    channel.name
                );
                self.error(at, message, |mut diagnostic| {
                    if let Some(first) = first {
                        let place = sources.diagnostic(first.0, "").place();
                        diagnostic = diagnostic.note(format!("the other one comes from {place}"));
                    }
                    diagnostic.help("choose another name")
                });
            }
        }
    }
}

fn requests(channel: &Channel, asks: bool, name: fn(&str) -> String) -> Vec<(String, At)> {
    let requests = channel.requests.iter().filter(|_| asks);
    requests
        .map(|request| (name(&request.name), request.at))
        .collect()
}

fn events(channel: &Channel, side: Side, name: impl Fn(&str) -> String) -> Vec<(String, At)> {
    let events = channel.events_from(side);
    events.map(|event| (name(&event.name), event.at)).collect()
}

/// `{Channel}Client` of Rust.
fn client(channel: &Channel) -> Methods {
    let mut added = requests(channel, channel.from.is_client(), rust_identifier);
    added.extend(events(channel, Side::Client, |name| {
        format!("send_{}", snake_case(name))
    }));
    added.extend(events(channel, Side::Server, |name| {
        format!("{}_events", snake_case(name))
    }));
    Methods {
        always: HANDLE,
        added,
    }
}

/// `{Channel}Peer` of Rust.
fn peer(channel: &Channel) -> Methods {
    let mut added = requests(channel, channel.from.is_server(), rust_identifier);
    added.extend(events(channel, Side::Server, |name| {
        format!("send_{}", snake_case(name))
    }));
    Methods {
        always: HANDLE,
        added,
    }
}

/// `{Channel}Service` of Rust.
fn service(channel: &Channel) -> Methods {
    let mut added = requests(channel, channel.from.is_client(), rust_identifier);
    added.extend(events(channel, Side::Client, rust_identifier));
    Methods {
        always: &["channel_closed", "channel_opened"],
        added,
    }
}

/// `{Channel}Channel` of TypeScript. Requests that are called like its own members get another name there.
fn web(channel: &Channel) -> Methods {
    let mut added = requests(channel, channel.from.is_client(), camel_case);
    added.extend(requests(channel, channel.from.is_server(), |name| {
        format!("onAsked{}", pascal_case(name))
    }));
    added.extend(events(channel, Side::Client, |name| {
        format!("send{}", pascal_case(name))
    }));
    for name in [
        |name: &str| format!("on{}", pascal_case(name)),
        |name: &str| format!("{}Events", camel_case(name)),
    ] {
        added.extend(events(channel, Side::Server, name));
    }
    Methods { always: &[], added }
}
