//! The answering side: a trait per channel, and the functions that let an implementation answer.
//!
//! A server implements `{Channel}Service`. Where the server asks too, a client implements `{Channel}ClientService`.

use super::channel::{FOREIGN_NAMES, answer};
use super::{Code, text};
use crate::model::{Channel, Request, Side};
use crate::names::{pascal_case, rust_identifier, snake_case, type_identifier};

impl Code<'_> {
    pub(super) fn service(&mut self, channel: &Channel) {
        self.server_trait(channel);
        self.register(channel);
        if channel.from.is_server() && !channel.requests.is_empty() {
            self.client_trait(channel);
        }
    }

    fn server_trait(&mut self, channel: &Channel) {
        let (send, sync) = (self.send_trait(), self.sync_trait());
        let name = pascal_case(&channel.name);
        self.doc(&[
            &format!("What a server does on channel `{}`.", channel.name),
            channel.description.as_deref().unwrap_or_default(),
            "One value serves all clients; methods run at the same time.",
        ]);
        self.line(format_args!("{FOREIGN_NAMES}"));
        self.line(format_args!(
            "pub trait {name}Service: {send} + {sync} + 'static {{"
        ));
        if channel.from.is_client() {
            for request in &channel.requests {
                self.answering_method(request, &format!("{name}Peer"));
            }
        }
        for event in channel.events_from(Side::Client) {
            let plain = format!("A client sent `{}`.", event.name);
            self.doc(&[
                event.description.as_deref().unwrap_or(&plain),
                "Events of one client are handled one after the other. Unless implemented, they are ignored.",
            ]);
            self.line(format_args!(
                "fn {}(&self, peer: &{name}Peer, event: {}) -> impl ::core::future::Future<Output = ()> + {send} {{ \
                 let _ = (peer, event); async {{}} }}",
                rust_identifier(&event.name),
                type_identifier(&event.message),
            ));
        }
        self.doc(&[
            "A client has opened the channel.",
            "Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.",
        ]);
        self.line(format_args!(
            "fn channel_opened(&self, peer: {name}Peer) -> impl ::core::future::Future<Output = ()> + {send} {{ \
             let _ = peer; async {{}} }}"
        ));
        self.doc(&["The channel of a client has ended."]);
        self.line(format_args!(
            "fn channel_closed(&self, peer: &{name}Peer) -> impl ::core::future::Future<Output = ()> + {send} {{ \
             let _ = peer; async {{}} }}"
        ));
        self.line(format_args!("}}"));
    }

    fn answering_method(&mut self, request: &Request, peer: &str) {
        let (rt, result, send) = (self.rt, self.result(), self.send_trait());
        let plain = format!("Answers `{}`.", request.name);
        let repeat = if request.idempotent {
            "Idempotent: it may come twice, and has to mean the same as once."
        } else {
            ""
        };
        self.doc(&[request.description.as_deref().unwrap_or(&plain), repeat]);
        self.line(format_args!(
            "fn {}(&self, call: {rt}::Call<{peer}>, request: {}) -> impl ::core::future::Future<Output = \
             {result}<{}, {rt}::RemoteError>> + {send};",
            rust_identifier(&request.name),
            type_identifier(&request.message),
            answer(request),
        ));
    }

    fn register(&mut self, channel: &Channel) {
        let rt = self.rt;
        let as_ref = self.prelude("AsRef", "::core::convert::AsRef");
        let s = self.parameter();
        let name = pascal_case(&channel.name);
        let snake = snake_case(&channel.name);
        self.doc(&[&format!(
            "Offers channel `{}` at a server, answered by an implementation.",
            channel.name
        )]);
        self.line(format_args!(
            "pub fn register_{snake}<{s}: {name}Service>(server: &impl {as_ref}<{rt}::ChannelRegistry>, implementation: {s}) {{ \
             register_{snake}_with(server, {snake}_spec(), implementation); }}"
        ));
        self.doc(&[&format!(
            "As `register_{snake}`, with more than the schema says, such as what happens to events of a slow client."
        )]);
        self.line(format_args!(
            "pub fn register_{snake}_with<{s}: {name}Service>(server: &impl {as_ref}<{rt}::ChannelRegistry>, \
             spec: {rt}::ChannelSpec, implementation: {s}) {{ \
             struct __Server<{s}>({s});"
        ));
        self.typed_service(channel);
        self.line(format_args!(
            "{rt}::typed::register(server, spec, __Server(implementation)); }}"
        ));
    }

    /// Hands what arrives on a channel to the methods of its service. Methods are named with the type, because `clone` and
    /// the like are methods of a reference too.
    fn typed_service(&mut self, channel: &Channel) {
        let (rt, result, s) = (self.rt, self.result(), self.parameter());
        let name = pascal_case(&channel.name);
        self.line(format_args!(
            "impl<{s}: {name}Service> {rt}::typed::TypedService for __Server<{s}> {{ type Peer = {name}Peer;"
        ));
        if channel.from.is_client() && !channel.requests.is_empty() {
            self.line(format_args!(
                "const ANSWERS: bool = true; \
                 async fn answer(&self, request: {rt}::IncomingRequest) -> {result}<{rt}::Payload, {rt}::RemoteError> {{ \
                 use {rt}::typed::answer; match request.method() {{"
            ));
            for request in &channel.requests {
                self.line(format_args!(
                    "{} => answer(request, |call, message| {s}::{}(&self.0, call, message)).await,",
                    text(&request.name),
                    rust_identifier(&request.name),
                ));
            }
            self.line(format_args!(
                "other => Err({rt}::RemoteError::method_not_found(other)), }} }}"
            ));
        }
        let mut heard = channel.events_from(Side::Client).peekable();
        if heard.peek().is_some() {
            self.line(format_args!(
                "async fn event(&self, peer: &{name}Peer, message: {rt}::ProtocolMessage) {{ \
                 use {rt}::typed::event_named;"
            ));
            for (index, event) in heard.enumerate() {
                self.line(format_args!(
                    "{}if let Some(event) = event_named(&message, {}) {{ {s}::{}(&self.0, peer, event).await; }}",
                    if index == 0 { "" } else { "else " },
                    text(&event.name),
                    rust_identifier(&event.name),
                ));
            }
            self.line(format_args!("}}"));
        }
        self.line(format_args!(
            "async fn opened(&self, peer: {name}Peer) {{ {s}::channel_opened(&self.0, peer).await; }} \
             async fn closed(&self, peer: &{name}Peer) {{ {s}::channel_closed(&self.0, peer).await; }} }}"
        ));
    }

    /// A closure that the runtime takes as a service. Methods are named with their trait, because `clone` and the like
    /// are methods of the pointer too.
    fn dispatch(&mut self, channel: &Channel, service: &str, implementation: &str) {
        let rt = self.rt;
        self.line(format_args!(
            "move |request: {rt}::IncomingRequest| {{ \
             let implementation = ::std::sync::Arc::clone(&{implementation}); \
             async move {{ match request.method() {{"
        ));
        for request in &channel.requests {
            self.line(format_args!(
                "{} => {rt}::typed::answer(request, |call, message| {service}::{}(&*implementation, call, message)).await,",
                text(&request.name),
                rust_identifier(&request.name),
            ));
        }
        self.line(format_args!(
            "other => Err({rt}::RemoteError::method_not_found(other)),"
        ));
        self.line(format_args!("}} }} }}"));
    }

    fn client_trait(&mut self, channel: &Channel) {
        let (send, sync) = (self.send_trait(), self.sync_trait());
        let name = pascal_case(&channel.name);
        self.doc(&[&format!(
            "What a client answers on channel `{}`.",
            channel.name
        )]);
        self.line(format_args!("{FOREIGN_NAMES}"));
        self.line(format_args!(
            "pub trait {name}ClientService: {send} + {sync} + 'static {{"
        ));
        for request in &channel.requests {
            self.answering_method(request, &format!("{name}Client"));
        }
        self.line(format_args!("}}"));
    }

    /// A method of the client's handle.
    pub(super) fn serve_requests(&mut self, channel: &Channel) {
        let s = self.parameter();
        let name = pascal_case(&channel.name);
        self.doc(&["Answers the server's requests, from now on and as long as the channel lives."]);
        self.line(format_args!(
            "pub fn serve_requests<{s}: {name}ClientService>(&self, implementation: {s}) {{ \
             let implementation = ::std::sync::Arc::new(implementation); self.raw_channel().set_service("
        ));
        self.dispatch(channel, &format!("{name}ClientService"), "implementation");
        self.line(format_args!("); }}"));
    }
}
