//! What a channel is called and how it is opened, and the handles of both sides: `{Channel}Client` for the side that
//! opened it, `{Channel}Peer` for the side that answers.

use super::{Code, bytes, text};
use crate::hash::channel_hash;
use crate::model::{Channel, Compression, Delivery, Event, Lifetime, Overflow, Request, Side};
use crate::names::{pascal_case, rust_identifier, shouting_case, snake_case, type_identifier};

/// Names that come from a schema may look like conventions they do not follow, such as `from_room`.
pub(super) const FOREIGN_NAMES: &str = "#[allow(clippy::new_ret_no_self, clippy::should_implement_trait, clippy::wrong_self_convention)]";

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
        self.event_streams(channel);
    }

    /// The hash, and the two values with which the runtime knows the channel.
    fn facts(&mut self, channel: &Channel) {
        let rt = self.rt;
        let shouting = shouting_case(&channel.name);
        let snake = snake_case(&channel.name);
        let hash = bytes(channel_hash(self.protocol, channel));
        self.doc(&[&format!(
            "Hash over channel `{}`. Peers with the same hash may use the binary format.",
            channel.name
        )]);
        self.line(format_args!(
            "pub const {shouting}_CHANNEL_HASH: [u8; 32] = {hash};"
        ));
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
        let protocol = shouting_case(&self.protocol.name);
        let policy = match channel.overflow {
            Overflow::DropOldest => "DropOldest",
            Overflow::Wait => "Wait",
            Overflow::Close => "Close",
        };
        let policy = match channel.events.is_empty() {
            true => String::new(),
            false => format!(".event_policy({rt}::EventPolicy::{policy})"),
        };
        let compression = match channel.compression {
            Compression::Auto => "",
            Compression::Off => ".compression(false)",
        };
        let settings = format!(
            ".direction({rt}::ChannelDirection::{direction}).lifetime({rt}::Lifetime::{lifetime})\
             .delivery({rt}::Delivery::{delivery}){policy}{compression}\
             .schema({rt}::SchemaId::new({shouting}_CHANNEL_HASH, {protocol}_PROTOCOL_VERSION))"
        );
        self.doc(&[&format!(
            "What channel `{}` is, for a server that offers it.",
            channel.name
        )]);
        let name = text(&channel.name);
        self.line(format_args!(
            "pub fn {snake}_spec() -> {rt}::ChannelSpec {{ {rt}::ChannelSpec::new({name}).options({snake}_options()) }}"
        ));
        self.doc(&[&format!(
            "With what a client opens channel `{}`.",
            channel.name
        )]);
        self.line(format_args!(
            "pub fn {snake}_options() -> {rt}::ChannelOptions {{ {rt}::ChannelOptions::new(){settings} }}"
        ));
    }

    /// A handle with a method for everything that its side sends.
    fn handle(&mut self, channel: &Channel, name: &str, side: Side, plain: &str) {
        let rt = self.rt;
        self.doc(&[
            plain,
            channel.description.as_deref().unwrap_or_default(),
            "Clones are the same channel.",
        ]);
        self.line(format_args!("#[derive(Clone, Debug)]"));
        self.line(format_args!("pub struct {name}({rt}::TypedChannel<Self>);"));
        self.line(format_args!("{rt}::typed_handle!({name});"));
        let body = self.text.len();
        self.line(format_args!("{FOREIGN_NAMES}"));
        self.line(format_args!("impl {name} {{"));
        let methods = self.text.len();
        let asks = match side {
            Side::Server => channel.from.is_server(),
            _ => channel.from.is_client(),
        };
        for request in channel.requests.iter().filter(|_| asks) {
            self.request(request);
        }
        for event in channel.events_from(side) {
            self.send(event);
        }
        for event in channel
            .events_from(side.opposite())
            .filter(|_| side == Side::Client)
        {
            self.stream(event);
        }
        if side == Side::Client && channel.events_from(Side::Server).next().is_some() {
            self.take_streams(channel);
        }
        if side == Side::Client && channel.from.is_server() && !channel.requests.is_empty() {
            self.serve_requests(channel);
        }
        if self.text.len() == methods {
            // This side sends and hears nothing.
            self.text.truncate(body);
        } else {
            self.line(format_args!("}}"));
        }
    }

    fn request(&mut self, request: &Request) {
        let (rt, result) = (self.rt, self.result());
        let plain = format!("Asks `{}`.", request.name);
        let repeat = if request.idempotent {
            "Idempotent: it is sent again when the connection breaks before its answer came."
        } else {
            ""
        };
        self.doc(&[request.description.as_deref().unwrap_or(&plain), repeat]);
        self.line(format_args!(
            "pub async fn {}(&self, request: &{}) -> {result}<{}, {rt}::NetworkError> {{ \
             self.0.call({}, request, {}).await }}",
            rust_identifier(&request.name),
            type_identifier(&request.message),
            answer(request),
            text(&request.name),
            request.idempotent,
        ));
    }

    fn send(&mut self, event: &Event) {
        let (rt, result) = (self.rt, self.result());
        let plain = format!("Sends `{}`.", event.name);
        self.doc(&[
            event.description.as_deref().unwrap_or(&plain),
            "What happens when the other side does not keep up is the channel's policy.",
        ]);
        self.line(format_args!(
            "pub async fn send_{}(&self, event: &{}) -> {result}<(), {rt}::NetworkError> {{ \
             self.0.emit({}, event).await }}",
            snake_case(&event.name),
            type_identifier(&event.message),
            text(&event.name),
        ));
    }

    fn stream(&mut self, event: &Event) {
        let rt = self.rt;
        let plain = format!("Every `{}`, from now on.", event.name);
        self.doc(&[
            event.description.as_deref().unwrap_or(&plain),
            "While the stream lives, these events come to it alone. Events of other names wait until they are \
             asked for, up to half of the window while this stream is waited on; then the oldest are dropped and \
             counted. `event_streams` takes all of them at once.",
        ]);
        self.line(format_args!(
            "pub fn {}_events(&self) -> {rt}::EventStream<{}> {{ self.0.events({}) }}",
            snake_case(&event.name),
            type_identifier(&event.message),
            text(&event.name),
        ));
    }

    fn take_streams(&mut self, channel: &Channel) {
        let name = pascal_case(&channel.name);
        self.doc(&[
            "A stream for every event of the channel.",
            "Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.",
        ]);
        self.line(format_args!(
            "pub fn event_streams(&self) -> {name}EventStreams {{"
        ));
        self.line(format_args!("let streams = {name}EventStreams {{"));
        for event in channel.events_from(Side::Server) {
            let field = rust_identifier(&event.name);
            self.line(format_args!(
                "{field}: self.{}_events(),",
                snake_case(&event.name)
            ));
        }
        self.line(format_args!(
            "}}; self.raw_channel().discard_events(); streams }}"
        ));
    }

    fn event_streams(&mut self, channel: &Channel) {
        let rt = self.rt;
        if channel.events_from(Side::Server).next().is_none() {
            return;
        }
        let name = pascal_case(&channel.name);
        self.doc(&[&format!(
            "A stream for every event that the server sends on channel `{}`.",
            channel.name
        )]);
        self.line(format_args!("#[derive(Debug)]"));
        self.line(format_args!("pub struct {name}EventStreams {{"));
        for event in channel.events_from(Side::Server) {
            let plain = format!("Every `{}`.", event.name);
            self.doc(&[event.description.as_deref().unwrap_or(&plain)]);
            self.line(format_args!(
                "pub {}: {rt}::EventStream<{}>,",
                rust_identifier(&event.name),
                type_identifier(&event.message)
            ));
        }
        self.line(format_args!("}}"));
    }
}

/// The type of a request's answer.
pub(super) fn answer(request: &Request) -> String {
    request
        .returns
        .as_deref()
        .map_or("()".into(), type_identifier)
}
