//! Names that differ in a schema but would meet in the code written from it. What has no name is left out: it was refused.

use super::Checker;
use crate::model::{At, Channel, Protocol, Side};
use crate::names::{pascal_case, rust_identifier, snake_case, type_identifier};
use std::collections::BTreeMap;

impl Checker<'_> {
    pub(super) fn names(&mut self, protocol: &Protocol) {
        for message in &protocol.messages {
            let fields = message
                .fields
                .iter()
                .filter(|field| !field.name.is_empty())
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
        for union in &protocol.unions {
            let variants = union.variants.iter();
            let variants = variants.map(|variant| (&*variant.name, variant.at.name));
            self.apart(variants, type_identifier);
        }
        let channels = named_channels(protocol).map(|channel| (&*channel.name, channel.at));
        self.apart(channels, rust_identifier);
        for channel in &protocol.channels {
            let mut channel = channel.clone();
            channel.requests.retain(|request| !request.name.is_empty());
            channel.events.retain(|event| !event.name.is_empty());
            let requests = channel
                .requests
                .iter()
                .map(|request| (&*request.name, request.at));
            let events = channel.events.iter().map(|event| (&*event.name, event.at));
            // As variants of an enum, where `get_1` and `get1` are one name.
            if self.apart(requests.chain(events), type_identifier) && !channel.name.is_empty() {
                self.methods(&channel);
            }
        }
        self.first_letters(protocol);
        self.connection_methods(protocol);
        self.generated(protocol);
        self.meetings(protocol);
    }

    /// What these are called is the beginning of other names in code, which cannot begin with a digit.
    fn first_letters(&mut self, protocol: &Protocol) {
        let channels = protocol.channels.iter();
        let inner = channels.clone().flat_map(|channel| {
            let requests = channel.requests.iter();
            let events = channel.events.iter();
            requests
                .map(|request| (&request.name, request.at))
                .chain(events.map(|event| (&event.name, event.at)))
        });
        let names = std::iter::once((&protocol.name, protocol.at))
            .chain(channels.map(|channel| (&channel.name, channel.at)))
            .chain(inner);
        for (name, at) in names {
            if snake_case(name).starts_with(|first: char| first.is_ascii_digit()) {
                self.error_help(
                    at,
                    format!("{name:?} would begin with a digit in code"),
                    "begin it with a letter",
                );
            }
        }
    }

    /// A connection has a method for each channel beside those that every connection has.
    fn connection_methods(&mut self, protocol: &Protocol) {
        for channel in &protocol.channels {
            let method = snake_case(&channel.name);
            if matches!(&*method, "build" | "clone") {
                self.error_help(
                    channel.at,
                    format!("the method {method} of a connection has another meaning already"),
                    "choose another name",
                );
            }
        }
    }

    /// What is generated for one channel does not meet what is generated for another.
    fn meetings(&mut self, protocol: &Protocol) {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for channel in named_channels(protocol) {
            for name in channel_items(channel) {
                let Some(other) = seen.get(&*name).copied() else {
                    seen.insert(name, &channel.name);
                    continue;
                };
                if other != channel.name {
                    self.error_help(
                        channel.at,
                        format!(
                            "code for channels {other:?} and {:?} would both be called {name}",
                            channel.name
                        ),
                        "choose another name",
                    );
                    break;
                }
            }
        }
    }

    /// No two of these have the same name in code. Says whether that is so.
    fn apart<'n>(
        &mut self,
        names: impl Iterator<Item = (&'n str, At)>,
        in_code: fn(&str) -> String,
    ) -> bool {
        let before = self.errors.len();
        let mut seen: BTreeMap<String, (&str, At)> = BTreeMap::new();
        for (name, at) in names {
            let code = in_code(name);
            let Some(&(first, first_at)) = seen.get(&code) else {
                seen.insert(code, (name, at));
                continue;
            };
            let message = if first == name {
                format!("{name:?} is there twice")
            } else {
                format!("{name:?} and {first:?} would both be called {code} in code")
            };
            let sources = self.sources;
            self.error(at, message, |diagnostic| {
                let place = sources.diagnostic(first_at.0, "").place();
                diagnostic
                    .note(format!("the other one is at {place}"))
                    .help("choose another name")
            });
        }
        self.errors.len() == before
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
            .chain(protocol.unions.iter().map(|union| (&union.name, union.at)))
            .chain(
                protocol
                    .typedefs
                    .iter()
                    .map(|typedef| (&typedef.name, typedef.at.name)),
            );
        for (name, at) in types.filter(|(name, _)| !name.is_empty()) {
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

fn named_channels(protocol: &Protocol) -> impl Iterator<Item = &Channel> {
    let channels = protocol.channels.iter();
    channels.filter(|channel| !channel.name.is_empty())
}

/// Everything on the top level of generated code that is called after a channel.
fn channel_items(channel: &Channel) -> Vec<String> {
    let (own, snake) = (pascal_case(&channel.name), snake_case(&channel.name));
    let mut items: Vec<String> = ["Client", "Service", "Peer", "Channel"]
        .map(|suffix| format!("{own}{suffix}"))
        .into();
    if channel.from.is_server() && !channel.requests.is_empty() {
        items.push(format!("{own}ClientService"));
    }
    if channel.requests.len() > 1 {
        items.extend(["Request", "Response"].map(|suffix| format!("{own}{suffix}")));
    }
    for (side, suffix) in [(Side::Client, "ClientEvent"), (Side::Server, "ServerEvent")] {
        if channel.events_from(side).count() > 1 {
            items.push(format!("{own}{suffix}"));
        }
    }
    if channel.events_from(Side::Server).next().is_some() {
        items.push(format!("{own}EventStreams"));
    }
    items.extend([
        format!("{snake}_spec"),
        format!("{snake}_options"),
        format!("register_{snake}"),
        format!("register_{snake}_with"),
    ]);
    items
}

/// What generated code is called besides the types of a schema, and what for.
pub(crate) fn generated_names(protocol: &Protocol) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let own = pascal_case(&protocol.name);
    for suffix in [
        "Channels",
        "Connection",
        "QuicConnection",
        "ConnectionBuilder",
        "ServerConnection",
        "Transport",
        "Client",
        "ChannelTransport",
        "ChannelSpec",
        "CallOptions",
        "EventStream",
        "Json",
        "InvalidMessage",
        "Signal",
    ] {
        names.insert(
            format!("{own}{suffix}"),
            format!("protocol {:?}", protocol.name),
        );
    }
    for channel in named_channels(protocol) {
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
