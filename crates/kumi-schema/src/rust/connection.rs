//! `{Protocol}Channels`, all channels open on a connection of any transport, with its builder, and `{Protocol}Connection`,
//! the same as plain values inside one process.
//!
//! In memory a channel is made of plain values. What its field is follows from who sends requests and events on it:
//!
//! | requests from | events | the client's field |
//! |---|---|---|
//! | client | none | `RequestChannel<Q, A>` |
//! | server | none | `RespondChannel<Q, A>` |
//! | either | none | `PeerChannel<Q, A>` |
//! | neither side | from the client | `SendChannel<E>` |
//! | neither side | from the server | `ReceiveChannel<E>` |
//! | neither side | both ways | `BidirectionalChannel<Out, In>` |
//! | a side | some | `ServiceChannel` of one of the first three and one of the last three |
//!
//! Several requests, or several events of one side, become an enum of their own.

use super::channel::answer;
use super::{Code, WIDTH, text};
use crate::model::{Channel, Event, Side};
use crate::names::{pascal_case, rust_identifier, snake_case, type_identifier};

/// A variant of an enum over messages, and its message.
type Variant = (String, Option<String>);

impl Code<'_> {
    pub(super) fn connections(&mut self) {
        let protocol = self.protocol;
        let sums: Vec<_> = protocol.channels.iter().flat_map(sums).collect();
        if !sums.is_empty() {
            self.out.blank();
            self.line("unison::typed_sums! {");
            for (doc, name, variants) in sums {
                self.doc(&[&doc]);
                let variants = variants_text(&variants);
                self.out
                    .list(&format!("pub enum {name} {{"), &variants, "}", WIDTH);
            }
            self.line("}");
        }
        let name = pascal_case(&protocol.name);
        self.out.blank();
        self.line("unison::typed_connection! {");
        self.described(&protocol.description);
        let types = [
            "Channels",
            "QuicConnection",
            "ConnectionBuilder",
            "Connection",
            "ServerConnection",
        ];
        let types = types.map(|suffix| format!("{name}{suffix}"));
        self.line(&format!("pub struct {};", types.join(", ")));
        for channel in &protocol.channels {
            self.described(&channel.description);
            self.line(&format!(
                "{}: {}Client = {}, {}_options,",
                rust_identifier(&channel.name),
                pascal_case(&channel.name),
                text(&channel.name),
                snake_case(&channel.name),
            ));
            self.line(&format!("    {};", half(channel)));
        }
        self.line("}");
    }
}

/// Enums over several requests or events, each with its documentation and name.
fn sums(channel: &Channel) -> Vec<(String, String, Vec<Variant>)> {
    let name = pascal_case(&channel.name);
    let mut sums = Vec::new();
    if channel.requests.len() > 1 {
        let requests = channel.requests.iter();
        let asked = requests
            .clone()
            .map(|request| (&request.name, Some(&*request.message)));
        let answered = requests.map(|request| (&request.name, request.returns.as_deref()));
        sums.push((
            format!("Any request of channel `{}`.", channel.name),
            format!("{name}Request"),
            variants(asked),
        ));
        sums.push((
            format!(
                "The response to any request of channel `{}`, by the request's name.",
                channel.name
            ),
            format!("{name}Response"),
            variants(answered),
        ));
    }
    for (side, suffix) in [(Side::Client, "ClientEvent"), (Side::Server, "ServerEvent")] {
        let events: Vec<&Event> = channel.events_from(side).collect();
        if events.len() > 1 {
            let doc = format!(
                "Any event that the {} sends on channel `{}`.",
                side.as_str(),
                channel.name
            );
            let events = events.iter();
            let events = events.map(|event| (&event.name, Some(&*event.message)));
            sums.push((doc, format!("{name}{suffix}"), variants(events)));
        }
    }
    sums
}

fn variants<'n>(names: impl Iterator<Item = (&'n String, Option<&'n str>)>) -> Vec<Variant> {
    names
        .map(|(name, message)| (type_identifier(name), message.map(type_identifier)))
        .collect()
}

/// A message that two variants have is in brackets: nothing converts from it.
fn variants_text(variants: &[Variant]) -> Vec<String> {
    let is_shared = |message: &String| {
        let same = variants
            .iter()
            .filter(|(_, other)| other.as_ref() == Some(message));
        same.count() > 1
    };
    let variants = variants.iter();
    variants
        .map(|(name, message)| match message {
            None => name.clone(),
            Some(message) if is_shared(message) => format!("{name}[{message}]"),
            Some(message) => format!("{name}({message})"),
        })
        .collect()
}

/// The type of the client's half of a channel in memory. See the table at the top.
fn half(channel: &Channel) -> String {
    let name = pascal_case(&channel.name);
    let requests = (!channel.requests.is_empty()).then(|| {
        let (question, reply) = match &*channel.requests {
            [request] => (type_identifier(&request.message), answer(request)),
            _ => (format!("{name}Request"), format!("{name}Response")),
        };
        let half = match channel.from {
            Side::Client => "RequestChannel",
            Side::Server => "RespondChannel",
            Side::Either => "PeerChannel",
        };
        format!("local::{half}<{question}, {reply}>")
    });
    let carried = |side: Side, suffix: &str| {
        let events: Vec<&Event> = channel.events_from(side).collect();
        match &*events {
            [] => None,
            [event] => Some(type_identifier(&event.message)),
            _ => Some(format!("{name}{suffix}")),
        }
    };
    let events = match (
        carried(Side::Client, "ClientEvent"),
        carried(Side::Server, "ServerEvent"),
    ) {
        (None, None) => None,
        (Some(up), None) => Some(format!("local::SendChannel<{up}>")),
        (None, Some(down)) => Some(format!("local::ReceiveChannel<{down}>")),
        (Some(up), Some(down)) => Some(format!("local::BidirectionalChannel<{up}, {down}>")),
    };
    match (requests, events) {
        (Some(requests), Some(events)) => format!("local::ServiceChannel<{requests}, {events}>"),
        // A checked channel carries something.
        (requests, events) => requests.or(events).unwrap_or_else(|| "()".into()),
    }
}
