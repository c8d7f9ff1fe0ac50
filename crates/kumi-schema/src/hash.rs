//! What peers compare before they trust the binary format: a hash over what a channel's messages look like.
//!
//! It is SHA-256 over a canonical text, one fact a line. What makes no difference to a peer is not in it: comments,
//! formatting, descriptions, the names of typedefs, the order of messages, channels, requests and events, the lifetime,
//! whether a request is idempotent, and the version, which travels beside it. The order of fields, of enum values
//! and of variants is in it, because the binary format stores them in order.

use crate::model::{Channel, Field, Protocol, Schema};
use crate::shape::{Kind, Shape};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;

/// A hash over a channel or a protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaHash(pub [u8; 32]);

impl fmt::Display for SchemaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SchemaHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SchemaHash({self})")
    }
}

impl Schema {
    /// The hash over a channel: its name, who sends what on it, and all messages, enums and unions it uses. None when there
    /// is no such channel.
    pub fn channel_hash(&self, channel: &str) -> Option<SchemaHash> {
        let channel = self.protocol.channel(channel)?;
        Some(channel_hash(&self.protocol, channel))
    }

    /// The hash over the whole protocol: its name, namespace and version, and the hashes of its channels.
    pub fn protocol_hash(&self) -> SchemaHash {
        protocol_hash(&self.protocol)
    }
}

pub(crate) fn protocol_hash(protocol: &Protocol) -> SchemaHash {
    let mut channels: Vec<(&str, SchemaHash)> = protocol
        .channels
        .iter()
        .map(|channel| (&*channel.name, channel_hash(protocol, channel)))
        .collect();
    channels.sort();
    let mut text = String::from("kumi-schema protocol 1\n");
    line(
        &mut text,
        &[
            "protocol",
            &quoted(&protocol.name),
            &protocol.version.to_string(),
        ],
    );
    line(
        &mut text,
        &[
            "namespace",
            &quoted(protocol.namespace.as_deref().unwrap_or("")),
        ],
    );
    for (name, hash) in channels {
        line(&mut text, &["channel", &quoted(name), &hash.to_string()]);
    }
    digest(&text)
}

pub(crate) fn channel_hash(protocol: &Protocol, channel: &Channel) -> SchemaHash {
    digest(&canonical(protocol, channel))
}

fn digest(text: &str) -> SchemaHash {
    SchemaHash(Sha256::digest(text.as_bytes()).into())
}

/// The text that is hashed.
fn canonical(protocol: &Protocol, channel: &Channel) -> String {
    let mut facts = Vec::new();
    let mut used = Vec::new();
    for request in &channel.requests {
        used.push(request.message.clone());
        used.extend(request.returns.clone());
        facts.push(format!(
            "request {} from {} takes {} returns {}",
            quoted(&request.name),
            channel.from.as_str(),
            request.message,
            request.returns.as_deref().unwrap_or("-"),
        ));
    }
    for event in &channel.events {
        used.push(event.message.clone());
        facts.push(format!(
            "event {} from {} carries {}",
            quoted(&event.name),
            event.from.as_str(),
            event.message
        ));
    }
    facts.sort();
    let mut text = String::from("kumi-schema channel 1\n");
    line(
        &mut text,
        &["channel", &quoted(&channel.name), channel.delivery.as_str()],
    );
    facts.iter().for_each(|fact| line(&mut text, &[fact]));
    for (_, declaration) in reachable(protocol, used) {
        text.push_str(&declaration);
    }
    text
}

/// The messages, enums and unions that can be met from some, with their declarations, sorted by name.
fn reachable(protocol: &Protocol, mut open: Vec<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    while let Some(name) = open.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let mut text = String::new();
        if let Some(message) = protocol.message(&name) {
            line(&mut text, &["message", &name]);
            for field in &message.fields {
                let shape = Shape::of(protocol, &field.ty, &field.constraints);
                line(&mut text, &["field", &field_fact(field, &shape)]);
                open.extend(shape.named().map(str::to_owned));
            }
        } else if let Some(declared) = protocol.enumeration(&name) {
            let kind = if declared.open { "open" } else { "closed" };
            line(&mut text, &["enum", &name, kind]);
            for value in &declared.values {
                line(&mut text, &["value", &quoted(&value.name)]);
            }
        } else if let Some(union) = protocol.union(&name) {
            line(&mut text, &["union", &name]);
            for variant in &union.variants {
                let shape = Shape::of(protocol, &variant.ty, &variant.constraints);
                let mut fact = quoted(&variant.name);
                write_shape(&mut fact, &shape);
                line(&mut text, &["variant", &fact]);
                open.extend(shape.named().map(str::to_owned));
            }
        }
        found.insert(name, text);
    }
    found
}

fn field_fact(field: &Field, shape: &Shape) -> String {
    let mut text = format!(
        "{} {}",
        quoted(&field.name),
        if field.required {
            "required"
        } else {
            "optional"
        }
    );
    if let Some(default) = &field.default {
        // Writing to a String cannot fail; the same holds below.
        let _ = write!(text, " default {default}");
    }
    write_shape(&mut text, shape);
    text
}

fn write_shape(text: &mut String, shape: &Shape) {
    let _ = match &shape.kind {
        Kind::Array(_) => write!(text, " array"),
        Kind::Map(_) => write!(text, " map"),
        other => write!(text, " {other}"),
    };
    let bounds = [("min", &shape.min), ("max", &shape.max)];
    for (name, bound) in bounds {
        if let Some(bound) = bound {
            let _ = write!(text, " {name} {bound}");
        }
    }
    let lengths = [
        ("min_length", shape.min_length),
        ("max_length", shape.max_length),
    ];
    for (name, length) in lengths {
        if let Some(length) = length {
            let _ = write!(text, " {name} {length}");
        }
    }
    for pattern in &shape.patterns {
        let _ = write!(text, " pattern {}", quoted(pattern));
    }
    if let Kind::Array(item) | Kind::Map(item) = &shape.kind {
        text.push_str(" of");
        write_shape(text, item);
    }
}

fn line(text: &mut String, words: &[&str]) {
    text.push_str(&words.join(" "));
    text.push('\n');
}

/// Quotes keep facts apart that hold spaces or line ends.
fn quoted(text: &str) -> String {
    format!("{text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: &str = r#"
        protocol "chat" version="1.0.0" {
            typedef "Name" type="string" max_length=20
            message "User" { field "name" type="Name" required=#true; field "age" type="int" }
            enum "Kind" { value "a"; value "b" }
            channel "rooms" from="client" {
                request "Join" { field "user" type="User"; returns "Joined" { field "kind" type="Kind" } }
                event "Posted" { field "text" type="string" }
            }
            channel "other" from="server" { event "Tick" }
        }"#;

    fn hash(text: &str) -> SchemaHash {
        Schema::parse("t.kdl", text)
            .unwrap()
            .channel_hash("rooms")
            .unwrap()
    }

    #[test]
    fn what_no_peer_can_notice_leaves_the_hash_alone() {
        let same = r#"
            // Another order, other words.
            protocol "chat" version="1.7.3" {
                description "a chat"
                channel "other" from="server" { event "Tick" { field "n" type="int" } }
                enum "Kind" { values "a" "b" }
                channel "rooms" from="client" lifetime="transient" description="x" {
                    event "Posted" { field "text" type="string" description="what was said" }
                    request "Join" idempotent=#true { returns "Joined" { field "kind" type="Kind" }; field "user" type="User" }
                }
                message "User" { field "name" type="string" required=#true max_length=20; field "age" type="int" }
                message "Unused" { field "x" type="int" }
            }"#;
        assert_eq!(hash(CHAT), hash(same));
        assert_eq!(hash(CHAT).to_string().len(), 64);
    }

    #[test]
    fn what_a_peer_can_notice_changes_the_hash() {
        let changes = [
            ("max_length=20", "max_length=21"),
            ("field \"age\" type=\"int\"", "field \"age\" type=\"float\""),
            ("type=\"Name\" required=#true", "type=\"Name\""),
            ("value \"a\"; value \"b\"", "value \"b\"; value \"a\""),
            ("enum \"Kind\"", "enum \"Kind\" open=#true"),
            ("from=\"client\"", "from=\"server\""),
            ("event \"Posted\"", "event \"Said\""),
            (
                "field \"name\" type=\"Name\" required=#true; field \"age\" type=\"int\"",
                "field \"age\" type=\"int\"; field \"name\" type=\"Name\" required=#true",
            ),
        ];
        for (from, to) in changes {
            let changed = CHAT.replacen(from, to, 1);
            assert_ne!(changed, CHAT, "{from} is not there");
            assert_ne!(hash(&changed), hash(CHAT), "{from} -> {to}");
        }
    }

    #[test]
    fn the_hash_of_a_protocol_notices_every_channel_and_the_version() {
        let of = |text: &str| Schema::parse("t.kdl", text).unwrap().protocol_hash();
        assert_eq!(of(CHAT), of(&CHAT.replace("        ", "  ")));
        assert_ne!(
            of(CHAT),
            of(&CHAT.replace("event \"Tick\"", "event \"Tock\""))
        );
        assert_ne!(of(CHAT), of(&CHAT.replace("1.0.0", "1.1.0")));
        assert_eq!(
            Schema::parse("t.kdl", CHAT).unwrap().channel_hash("none"),
            None
        );
    }
}
