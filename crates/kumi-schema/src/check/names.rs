//! Names that differ in a schema but would meet in the code written from it.

use super::Checker;
use crate::model::{At, Channel, Protocol};
use crate::names::{pascal_case, rust_identifier, snake_case, type_identifier};
use std::collections::BTreeMap;

impl Checker<'_> {
    pub(super) fn names(&mut self, protocol: &Protocol) {
        for message in &protocol.messages {
            let fields = message
                .fields
                .iter()
                .map(|field| (&*field.name, field.at.name));
            self.apart(fields, rust_identifier);
        }
        for declared in &protocol.enums {
            let values = declared.values.iter().map(|value| (&*value.name, value.at));
            self.apart(values, type_identifier);
            if declared.open
                && let Some(value) = declared
                    .values
                    .iter()
                    .find(|value| type_identifier(&value.name) == "Unknown")
            {
                self.error_help(
                    value.at,
                    "an open enum has a variant Unknown already",
                    "it holds the values that are not listed; choose another name",
                );
            }
        }
        let channels = protocol
            .channels
            .iter()
            .map(|channel| (&*channel.name, channel.at));
        self.apart(channels, rust_identifier);
        for channel in &protocol.channels {
            let requests = channel
                .requests
                .iter()
                .map(|request| (&*request.name, request.at));
            let events = channel.events.iter().map(|event| (&*event.name, event.at));
            self.apart(requests.chain(events), rust_identifier);
            self.methods(channel);
        }
        self.generated(protocol);
    }

    /// No two of these have the same name in code.
    fn apart<'n>(
        &mut self,
        names: impl Iterator<Item = (&'n str, At)>,
        in_code: fn(&str) -> String,
    ) {
        let mut seen: BTreeMap<String, (&str, At)> = BTreeMap::new();
        for (name, at) in names {
            let code = in_code(name);
            let Some(&(first, first_at)) = seen.get(&code) else {
                seen.insert(code, (name, at));
                continue;
            };
            let place = self.place(first_at);
            let message = if first == name {
                format!("{name:?} is there twice")
            } else {
                format!("{name:?} and {first:?} would both be called {code} in code")
            };
            self.error(at, message, |diagnostic| {
                diagnostic
                    .note(format!("the other one is at {place}"))
                    .help("choose another name")
            });
        }
    }

    /// Sending and hearing an event are methods of their own beside the requests.
    fn methods(&mut self, channel: &Channel) {
        let of_events: Vec<String> = channel
            .events
            .iter()
            .flat_map(|event| {
                let name = snake_case(&event.name);
                [
                    format!("send_{name}"),
                    format!("{name}_events"),
                    format!("on_{name}"),
                ]
            })
            .collect();
        let taken = [
            "channel_closed",
            "channel_opened",
            "event_streams",
            "from_channel",
            "raw_channel",
            "serve_requests",
            "with_binary",
            "with_options",
        ];
        for request in &channel.requests {
            let method = snake_case(&request.name);
            if taken.contains(&&*method) || of_events.contains(&method) {
                self.error_help(
                    request.at,
                    format!(
                        "the method {method} of channel {:?} has another meaning already",
                        channel.name
                    ),
                    "choose another name",
                );
            }
        }
        for event in &channel.events {
            let method = snake_case(&event.name);
            if taken.contains(&&*method) {
                self.error_help(
                    event.at,
                    format!(
                        "the method {method} of channel {:?} has another meaning already",
                        channel.name
                    ),
                    "choose another name",
                );
            }
        }
    }

    /// Types of a schema do not take the names of those that are generated around it.
    fn generated(&mut self, protocol: &Protocol) {
        let generated = generated_names(protocol);
        let types = protocol
            .messages
            .iter()
            .map(|message| (&message.name, message.at))
            .chain(
                protocol
                    .enums
                    .iter()
                    .map(|declared| (&declared.name, declared.at)),
            )
            .chain(
                protocol
                    .typedefs
                    .iter()
                    .map(|typedef| (&typedef.name, typedef.at.name)),
            );
        for (name, at) in types {
            if let Some(why) = generated.get(&type_identifier(name)) {
                self.error_help(
                    at,
                    format!("the name {name:?} is needed for {why}"),
                    "choose another name",
                );
            }
        }
    }
}

/// What generated code is called besides the types of a schema, and what for.
pub(crate) fn generated_names(protocol: &Protocol) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let own = pascal_case(&protocol.name);
    for suffix in [
        "Connection",
        "QuicConnection",
        "ConnectionBuilder",
        "ServerConnection",
        "Transport",
        "Client",
        "ChannelTransport",
        "ChannelSpec",
        "CallOptions",
        "Json",
        "InvalidMessage",
    ] {
        names.insert(
            format!("{own}{suffix}"),
            format!("protocol {:?}", protocol.name),
        );
    }
    for channel in &protocol.channels {
        let own = pascal_case(&channel.name);
        for suffix in [
            "Client",
            "ClientService",
            "Service",
            "Peer",
            "Request",
            "Response",
            "ClientEvent",
            "ServerEvent",
            "EventStreams",
            "Channel",
        ] {
            names.insert(
                format!("{own}{suffix}"),
                format!("channel {:?}", channel.name),
            );
        }
    }
    names
}
