//! What a channel is called and how it is opened, and the handles of both sides: `{Channel}Client` for the side that
//! opened it, `{Channel}Peer` for the side that answers.

use super::{Code, text};
use crate::hash::channel_hash;
use crate::model::{Channel, Compression, Delivery, Event, Lifetime, Overflow, Request, Side};
use crate::names::{pascal_case, rust_identifier, shouting_case, snake_case, type_identifier};

impl Code<'_> {
    pub(super) fn channel(&mut self, channel: &Channel) {
        self.facts(channel);
        let name = pascal_case(&channel.name);
        self.handle(
            channel,
            &format!("{name}Client"),
            Side::Client,
            &format!("The client's side of channel `{}`.", channel.name),
        );
        self.handle(
            channel,
            &format!("{name}Peer"),
            Side::Server,
            &format!(
                "The server's side of channel `{}`: one client that has it open.",
                channel.name
            ),
        );
    }

    /// The hash, and the two values with which the runtime knows the channel.
    fn facts(&mut self, channel: &Channel) {
        let shouting = shouting_case(&channel.name);
        let snake = snake_case(&channel.name);
        self.out.blank();
        self.doc(&[&format!(
            "Hash over channel `{}`. Peers with the same hash may use the binary format.",
            channel.name
        )]);
        self.hash(
            &format!("{shouting}_CHANNEL"),
            channel_hash(self.protocol, channel),
        );
        let direction = match channel.from {
            Side::Client => "ClientToServer",
            Side::Server => "ServerToClient",
            Side::Either => "Bidirectional",
        };
        let lifetime = match channel.lifetime {
            Lifetime::Transient => "Transient",
            Lifetime::Persistent => "Persistent",
        };
        let delivery = match channel.delivery {
            Delivery::Reliable => "Reliable",
            Delivery::Unreliable => "Unreliable",
        };
        let policy = match channel.overflow {
            Overflow::DropOldest => "DropOldest",
            Overflow::Wait => "Wait",
            Overflow::Close => "Close",
        };
        self.out.blank();
        self.doc(&["The channel for a server that offers it."]);
        self.line(&format!("pub fn {snake}_spec() -> unison::ChannelSpec {{"));
        let name = text(&channel.name);
        self.line(&format!(
            "unison::ChannelSpec::new({name}).options({snake}_options())"
        ));
        self.line("}");
        self.out.blank();
        self.doc(&["The options with which a client opens the channel."]);
        self.line(&format!(
            "pub fn {snake}_options() -> unison::ChannelOptions {{"
        ));
        let protocol = shouting_case(&self.protocol.name);
        self.line("unison::ChannelOptions::new()");
        self.line(&format!(
            "    .direction(unison::ChannelDirection::{direction})"
        ));
        self.line(&format!("    .lifetime(unison::Lifetime::{lifetime})"));
        self.line(&format!("    .delivery(unison::Delivery::{delivery})"));
        if !channel.events.is_empty() {
            self.line(&format!("    .event_policy(unison::EventPolicy::{policy})"));
        }
        if channel.compression == Compression::Off {
            self.line("    .compression(false)");
        }
        self.line(&format!(
            "    .schema(unison::SchemaId::new({shouting}_CHANNEL_HASH, {protocol}_PROTOCOL_VERSION))"
        ));
        self.line("}");
    }

    /// A handle with a method for everything that its side sends, and on the client's side for every event it receives.
    fn handle(&mut self, channel: &Channel, name: &str, side: Side, plain: &str) {
        self.out.blank();
        self.line("unison::typed_handle! {");
        self.doc(&[plain, channel.description.as_deref().unwrap_or_default()]);
        self.line(&format!("pub struct {name};"));
        let asks = match side {
            Side::Server => channel.from.is_server(),
            _ => channel.from.is_client(),
        };
        if asks {
            self.requests(&channel.requests);
        }
        self.events("sends", channel.events_from(side), |event| {
            format!("send_{}{};", snake_case(&event.name), carried(event))
        });
        if side == Side::Client {
            let streams = format!("streams {}EventStreams", pascal_case(&channel.name));
            self.events(&streams, channel.events_from(Side::Server), |event| {
                let (field, method) = (rust_identifier(&event.name), snake_case(&event.name));
                format!("{field}{}, {method}_events;", carried(event))
            });
        }
        self.line("}");
    }

    /// The table of requests, if there are some.
    pub(super) fn requests(&mut self, requests: &[Request]) {
        if requests.is_empty() {
            return;
        }
        self.line("requests {");
        for request in requests {
            self.described(&request.description);
            let idempotent = if request.idempotent {
                " idempotent"
            } else {
                ""
            };
            self.line(&format!(
                "{}({}) -> {} = {}{idempotent};",
                rust_identifier(&request.name),
                type_identifier(&request.message),
                answer(request),
                text(&request.name)
            ));
        }
        self.line("}");
    }

    /// The table of events, if there are some.
    pub(super) fn events<'e>(
        &mut self,
        head: &str,
        events: impl Iterator<Item = &'e Event>,
        line: impl Fn(&Event) -> String,
    ) {
        let mut events = events.peekable();
        if events.peek().is_none() {
            return;
        }
        self.line(&format!("{head} {{"));
        for event in events {
            self.described(&event.description);
            self.line(&line(event));
        }
        self.line("}");
    }
}

/// The message of an event and its name on the wire.
pub(super) fn carried(event: &Event) -> String {
    format!(
        "({}) = {}",
        type_identifier(&event.message),
        text(&event.name)
    )
}

/// The type of a request's answer.
pub(super) fn answer(request: &Request) -> String {
    request
        .returns
        .as_deref()
        .map_or("()".into(), type_identifier)
}
