//! The answering side: a trait per channel, and the functions that let an implementation answer.
//!
//! A server implements `{Channel}Service`. Where the server asks too, a client implements `{Channel}ClientService`.

use super::Code;
use super::channel::carried;
use crate::model::{Channel, Side};
use crate::names::{pascal_case, rust_identifier, snake_case};

impl Code<'_> {
    pub(super) fn service(&mut self, channel: &Channel) {
        let (name, snake) = (pascal_case(&channel.name), snake_case(&channel.name));
        self.out.blank();
        self.line("unison::typed_service! {");
        self.doc(&[
            &format!("What a server does on channel `{}`.", channel.name),
            channel.description.as_deref().unwrap_or_default(),
        ]);
        self.line(&format!("pub trait {name}Service for {name}Peer;"));
        self.line(&format!(
            "pub fn register_{snake}, register_{snake}_with = {snake}_spec;"
        ));
        if channel.from.is_client() {
            self.requests(&channel.requests);
        }
        self.events("events", channel.events_from(Side::Client), |event| {
            format!("{}{};", rust_identifier(&event.name), carried(event))
        });
        self.line("}");
        if channel.from.is_server() && !channel.requests.is_empty() {
            self.out.blank();
            self.line("unison::typed_client_service! {");
            self.doc(&[&format!(
                "What a client answers on channel `{}`.",
                channel.name
            )]);
            self.line(&format!("pub trait {name}ClientService for {name}Client;"));
            self.requests(&channel.requests);
            self.line("}");
        }
    }
}
