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

use super::Code;
use super::channel::answer;
use crate::model::{Channel, Event, Side};
use crate::names::{pascal_case, rust_identifier, snake_case, type_identifier};

/// The two ends of a channel in memory, as types, and how they are made.
struct Ends {
    client: String,
    server: String,
    /// A statement that declares `{field}_client` and `{field}_server`.
    make: String,
}

impl Code<'_> {
    pub(super) fn connections(&mut self) {
        let protocol = self.protocol;
        for channel in &protocol.channels {
            self.sums(channel);
        }
        self.in_memory();
        self.over_a_network();
    }

    /// Enums over several requests or events.
    fn sums(&mut self, channel: &Channel) {
        let name = pascal_case(&channel.name);
        if channel.requests.len() > 1 {
            let asked: Vec<(String, Option<String>)> = channel
                .requests
                .iter()
                .map(|request| {
                    (
                        type_identifier(&request.name),
                        Some(type_identifier(&request.message)),
                    )
                })
                .collect();
            self.sum(
                &format!("{name}Request"),
                &format!("Any request of channel `{}`.", channel.name),
                &asked,
            );
            let answered: Vec<(String, Option<String>)> = channel
                .requests
                .iter()
                .map(|request| {
                    let answer = request.returns.as_deref().map(type_identifier);
                    (type_identifier(&request.name), answer)
                })
                .collect();
            self.sum(
                &format!("{name}Response"),
                &format!(
                    "The answer to any request of channel `{}`, by the request's name.",
                    channel.name
                ),
                &answered,
            );
        }
        for (side, suffix) in [(Side::Client, "ClientEvent"), (Side::Server, "ServerEvent")] {
            let events: Vec<&Event> = channel.events_from(side).collect();
            if events.len() > 1 {
                let variants: Vec<(String, Option<String>)> = events
                    .iter()
                    .map(|event| {
                        (
                            type_identifier(&event.name),
                            Some(type_identifier(&event.message)),
                        )
                    })
                    .collect();
                let doc = format!(
                    "Any event that the {} sends on channel `{}`.",
                    side.as_str(),
                    channel.name
                );
                self.sum(&format!("{name}{suffix}"), &doc, &variants);
            }
        }
    }

    fn sum(&mut self, name: &str, doc: &str, variants: &[(String, Option<String>)]) {
        let rt = self.rt;
        self.doc(&[doc]);
        self.line(format_args!("#[derive(Clone, Debug, PartialEq)]"));
        self.line(format_args!(
            "#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]"
        ));
        self.line(format_args!("pub enum {name} {{"));
        for (variant, message) in variants {
            self.doc(&[&format!("`{variant}`")]);
            match message {
                Some(message) => self.line(format_args!("{variant}({message}),")),
                None => self.line(format_args!("{variant},")),
            }
        }
        self.line(format_args!("}}"));
        let alone = |message: &Option<String>| {
            let same = variants.iter().filter(|(_, other)| other == message);
            same.count() == 1
        };
        let convertible: Vec<String> = variants
            .iter()
            .filter(|(_, message)| alone(message))
            .filter_map(|(variant, message)| Some(format!("{variant}({})", message.as_ref()?)))
            .collect();
        if !convertible.is_empty() {
            let convertible = convertible.join(", ");
            self.line(format_args!(
                "{rt}::typed_variants!({name} {{ {convertible} }});"
            ));
        }
    }

    fn in_memory(&mut self) {
        let protocol = self.protocol;
        let name = pascal_case(&protocol.name);
        let ends: Vec<(String, Ends)> = protocol
            .channels
            .iter()
            .map(|channel| (rust_identifier(&channel.name), self.ends(channel)))
            .collect();
        let description = protocol.description.as_deref().unwrap_or_default();
        for (suffix, side, whose) in [
            ("Connection", Side::Client, "client"),
            ("ServerConnection", Side::Server, "server"),
        ] {
            self.doc(&[
                &format!(
                    "Every channel of protocol `{}` inside one process, as its {whose} holds them.",
                    protocol.name
                ),
                description,
            ]);
            self.line(format_args!("#[derive(Debug)]"));
            self.line(format_args!("pub struct {name}{suffix} {{"));
            for (channel, (field, ends)) in protocol.channels.iter().zip(&ends) {
                self.doc(&[
                    &format!("Channel `{}`.", channel.name),
                    channel.description.as_deref().unwrap_or_default(),
                ]);
                let ty = if side == Side::Client {
                    &ends.client
                } else {
                    &ends.server
                };
                self.line(format_args!("pub {field}: {ty},"));
            }
            self.line(format_args!("}}"));
        }
        self.line(format_args!("impl {name}Connection {{"));
        self.doc(&[
            "Both ends of a connection. Each channel holds up to `capacity` messages each way; a full one makes its \
             sender wait.",
        ]);
        self.line(format_args!(
            "pub fn pair(capacity: usize) -> (Self, {name}ServerConnection) {{"
        ));
        for (_, ends) in &ends {
            self.line(format_args!("{}", ends.make));
        }
        for (prefix, close) in [
            ("(Self", "client"),
            (&format!(", {name}ServerConnection")[..], "server"),
        ] {
            self.line(format_args!("{prefix} {{"));
            for (channel, (field, _)) in protocol.channels.iter().zip(&ends) {
                self.line(format_args!("{field}: {}_{close},", local(channel)));
            }
            self.line(format_args!("}}"));
        }
        self.line(format_args!(") }} }}"));
    }

    /// The types of a channel's ends. See the table at the top.
    fn ends(&self, channel: &Channel) -> Ends {
        let rt = self.rt;
        let name = pascal_case(&channel.name);
        let field = local(channel);
        let requests = (!channel.requests.is_empty()).then(|| {
            let (question, reply) = match &*channel.requests {
                [request] => (type_identifier(&request.message), answer(request)),
                _ => (format!("{name}Request"), format!("{name}Response")),
            };
            let (client, server) = match channel.from {
                Side::Client => ("RequestChannel", "RespondChannel"),
                Side::Server => ("RespondChannel", "RequestChannel"),
                Side::Either => ("PeerChannel", "PeerChannel"),
            };
            (
                format!("{rt}::local::{client}<{question}, {reply}>"),
                format!("{rt}::local::{server}<{question}, {reply}>"),
            )
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
            (Some(up), None) => Some((
                format!("{rt}::local::SendChannel<{up}>"),
                format!("{rt}::local::ReceiveChannel<{up}>"),
            )),
            (None, Some(down)) => Some((
                format!("{rt}::local::ReceiveChannel<{down}>"),
                format!("{rt}::local::SendChannel<{down}>"),
            )),
            (Some(up), Some(down)) => Some((
                format!("{rt}::local::BidirectionalChannel<{up}, {down}>"),
                format!("{rt}::local::BidirectionalChannel<{down}, {up}>"),
            )),
        };
        let pair = |ty: &str| format!("<{ty}>::pair(capacity)");
        match (requests, events) {
            (Some((client, server)), Some((client_events, server_events))) => Ends {
                make: format!(
                    "let (requests, answers) = {}; let (near, far) = {}; \
                     let {field}_client = {rt}::local::ServiceChannel {{ requests, events: near }}; \
                     let {field}_server = {rt}::local::ServiceChannel {{ requests: answers, events: far }};",
                    pair(&client),
                    pair(&client_events)
                ),
                client: format!("{rt}::local::ServiceChannel<{client}, {client_events}>"),
                server: format!("{rt}::local::ServiceChannel<{server}, {server_events}>"),
            },
            (Some((client, server)), None) | (None, Some((client, server))) => Ends {
                make: format!("let ({field}_client, {field}_server) = {};", pair(&client)),
                client,
                server,
            },
            // A checked channel carries something; a unit stands for nothing.
            (None, None) => Ends {
                make: format!("let ({field}_client, {field}_server) = ((), ());"),
                client: "()".into(),
                server: "()".into(),
            },
        }
    }

    fn over_a_network(&mut self) {
        let (rt, result, send) = (self.rt, self.result(), self.send_trait());
        let protocol = self.protocol;
        let name = pascal_case(&protocol.name);
        self.doc(&[
            &format!(
                "Every channel of protocol `{}`, open on a connection.",
                protocol.name
            ),
            protocol.description.as_deref().unwrap_or_default(),
            "A field is the channel itself, a method of the same name its typed handle.",
        ]);
        self.line(format_args!("#[derive(Clone, Debug)]"));
        self.line(format_args!("pub struct {name}Channels {{"));
        for channel in &protocol.channels {
            self.doc(&[&format!("Channel `{}`.", channel.name)]);
            self.line(format_args!(
                "pub {}: {rt}::UnisonChannel,",
                rust_identifier(&channel.name)
            ));
        }
        self.line(format_args!("}}"));
        self.line(format_args!("{}", super::channel::FOREIGN_NAMES));
        self.line(format_args!("impl {name}Channels {{"));
        for channel in &protocol.channels {
            let field = rust_identifier(&channel.name);
            let own = pascal_case(&channel.name);
            let plain = format!("Channel `{}`, typed.", channel.name);
            self.doc(&[channel.description.as_deref().unwrap_or(&plain)]);
            self.line(format_args!(
                "pub fn {field}(&self) -> {own}Client {{ {own}Client::from_channel(self.{field}.clone()) }}"
            ));
        }
        self.line(format_args!("}}"));
        self.doc(&[&format!(
            "Another name of [`{name}Channels`], whatever the transport."
        )]);
        self.line(format_args!(
            "pub type {name}QuicConnection = {name}Channels;"
        ));
        self.doc(&[&format!(
            "Opens every channel of protocol `{}`.",
            protocol.name
        )]);
        self.line(format_args!("pub trait {name}ConnectionBuilder {{"));
        self.doc(&[
            "Opens every channel at once, in one round trip, and waits until the server has agreed to each.",
            "Fails, with none left open, when one of them is refused.",
        ]);
        self.line(format_args!(
            "fn build<C: {rt}::ChannelSource + ?Sized>(client: &C) -> impl ::core::future::Future<Output = \
             {result}<{name}Channels, {rt}::NetworkError>> + {send}; }}"
        ));
        self.line(format_args!(
            "impl {name}ConnectionBuilder for {name}Channels {{"
        ));
        let list = |item: &dyn Fn(&Channel) -> String| {
            let items: Vec<String> = protocol.channels.iter().map(item).collect();
            items.join(", ")
        };
        let fields = list(&|channel| rust_identifier(&channel.name));
        let opened = list(&|channel| {
            let (name, options) = (super::text(&channel.name), snake_case(&channel.name));
            format!("({name}, {options}_options())")
        });
        self.line(format_args!(
            "async fn build<C: {rt}::ChannelSource + ?Sized>(client: &C) -> {result}<Self, {rt}::NetworkError> {{ \
             let [{fields}] = {rt}::open_channels(client, [{opened}]).await?; Ok(Self {{ {fields} }}) }} }}"
        ));
    }
}

/// The start of a local variable's name. No word of the language has anything behind it.
fn local(channel: &Channel) -> String {
    snake_case(&channel.name)
}
