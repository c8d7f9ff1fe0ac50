//! A schema as a page to read, in Markdown.
//!
//! Everything on it comes from the schema: descriptions, who sends what, which values are allowed. Texts of the schema
//! cannot break out of their place on the page.

use crate::hash::channel_hash;
use crate::model::{
    Channel, Compression, Delivery, Enum, Field, Lifetime, Message, Overflow, Protocol, Schema,
    Side, Union,
};
use crate::shape::{Kind, Shape};
use std::collections::BTreeSet;
use std::fmt::Write;

impl Schema {
    /// The page.
    pub fn to_markdown(&self) -> String {
        let protocol = &self.protocol;
        let mut page = Page::default();
        page.line(&format!("# {}", plain(&protocol.name)));
        page.description(protocol.description.as_deref());
        let mut facts = format!("Version {}", protocol.version);
        if let Some(namespace) = &protocol.namespace {
            facts.push_str(&format!(", namespace {}", code(namespace)));
        }
        facts.push_str(&format!(
            ". Peers understand each other when their versions begin with {}.",
            protocol.version.major
        ));
        page.paragraph(&facts);
        page.line("## Channels");
        for channel in &protocol.channels {
            page.channel(protocol, channel);
        }
        let (carried, held) = (carried(protocol), held(protocol));
        let others: Vec<&Message> = protocol
            .messages
            .iter()
            .filter(|message| !carried.contains(&*message.name) || held.contains(&message.name))
            .collect();
        if !others.is_empty() {
            page.line("## Messages");
            for message in others {
                page.line(&format!("### {}", plain(&message.name)));
                page.description(message.description.as_deref());
                page.fields(protocol, message);
            }
        }
        if !protocol.unions.is_empty() {
            page.line("## Unions");
            for union in &protocol.unions {
                page.union(protocol, union);
            }
        }
        if !protocol.enums.is_empty() {
            page.line("## Enums");
            protocol
                .enums
                .iter()
                .for_each(|declared| page.enumeration(declared));
        }
        page.text.trim_end().to_owned() + "\n"
    }
}

/// Messages that are shown with the request or event that carries them.
fn carried(protocol: &Protocol) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for channel in &protocol.channels {
        for request in &channel.requests {
            names.insert(&*request.message);
            names.extend(request.returns.as_deref());
        }
        names.extend(channel.events.iter().map(|event| &*event.message));
    }
    names
}

/// Messages, enums and unions that a field or a variant has as its type. A reader looks for them by name.
fn held(protocol: &Protocol) -> BTreeSet<String> {
    let members = protocol.members();
    members
        .map(|(ty, constraints, _)| Shape::of(protocol, ty, constraints))
        .filter_map(|shape| shape.named().map(str::to_owned))
        .collect()
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    /// A block of its own.
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push_str("\n\n");
    }

    fn paragraph(&mut self, text: &str) {
        self.line(text);
    }

    fn description(&mut self, text: Option<&str>) {
        for paragraph in text.unwrap_or_default().split("\n\n") {
            let lines: Vec<String> = paragraph.lines().map(|line| plain(line.trim())).collect();
            let paragraph = lines.join("\n");
            if !paragraph.trim().is_empty() {
                self.paragraph(&paragraph);
            }
        }
    }

    fn channel(&mut self, protocol: &Protocol, channel: &Channel) {
        self.line(&format!("### {}", code(&channel.name)));
        self.description(channel.description.as_deref());
        let lifetime = match channel.lifetime {
            Lifetime::Persistent => "Persistent: it is opened again after a lost connection.",
            Lifetime::Transient => "Transient: it ends with its connection.",
        };
        let delivery = match channel.delivery {
            Delivery::Reliable => {
                "Reliable: events arrive in the order they were sent; those that were on their way when a connection was lost are gone."
            }
            Delivery::Unreliable => "Unreliable: events are datagrams and may get lost.",
        };
        let overflow = match channel.overflow {
            _ if channel.events.is_empty() => "",
            Overflow::DropOldest => " Of events that a peer does not read, the oldest are dropped.",
            Overflow::Wait => " A peer that does not read events makes the sender wait.",
            Overflow::Close => " A peer that does not read events loses the channel.",
        };
        let compression = match channel.compression {
            Compression::Auto => "",
            Compression::Off => " Nothing on it is compressed.",
        };
        let hash = channel_hash(protocol, channel).to_string();
        self.paragraph(&format!(
            "{lifetime} {delivery}{overflow}{compression} Schema hash `{}...`.",
            &hash[..16]
        ));
        for request in &channel.requests {
            self.line(&format!("#### Request {}", code(&request.name)));
            self.description(request.description.as_deref());
            let mut facts = match channel.from {
                Side::Client => "The client asks, the server answers.".to_owned(),
                Side::Server => "The server asks, the client answers.".to_owned(),
                Side::Either => "Either side asks, the other answers.".to_owned(),
            };
            if request.idempotent {
                facts.push_str(" Idempotent: it may be sent again when its answer got lost.");
            }
            self.paragraph(&facts);
            self.carried(protocol, &request.message, "It has no fields.");
            match &request.returns {
                Some(answer) => {
                    self.paragraph(&format!("Returns {}:", code(answer)));
                    self.carried(protocol, answer, "The answer has no fields.");
                }
                None => self.paragraph("The answer is empty."),
            }
        }
        for event in &channel.events {
            self.line(&format!("#### Event {}", code(&event.name)));
            self.description(event.description.as_deref());
            self.paragraph(match event.from {
                Side::Client => "Sent by the client.",
                Side::Server => "Sent by the server.",
                Side::Either => "Sent by either side.",
            });
            self.carried(protocol, &event.message, "It has no fields.");
        }
    }

    fn carried(&mut self, protocol: &Protocol, name: &str, empty: &str) {
        match protocol.message(name) {
            Some(message) if !message.fields.is_empty() => self.fields(protocol, message),
            _ => self.paragraph(empty),
        }
    }

    fn fields(&mut self, protocol: &Protocol, message: &Message) {
        if message.fields.is_empty() {
            return self.paragraph("It has no fields.");
        }
        self.text
            .push_str("| field | type | | |\n|---|---|---|---|\n");
        for field in &message.fields {
            let shape = Shape::of(protocol, &field.ty, &field.constraints);
            // Writing to a String cannot fail.
            let _ = writeln!(
                self.text,
                "| {} | {} | {} | {} |",
                cell(&code(&field.name)),
                cell(&plain(&shape.kind.to_string())),
                cell(&presence(field)),
                cell(&notes(field.description.as_deref(), &shape)),
            );
        }
        self.text.push('\n');
    }

    fn union(&mut self, protocol: &Protocol, union: &Union) {
        self.line(&format!("### {}", plain(&union.name)));
        self.description(union.description.as_deref());
        self.text.push_str("| variant | type | |\n|---|---|---|\n");
        for variant in &union.variants {
            let shape = Shape::of(protocol, &variant.ty, &variant.constraints);
            let _ = writeln!(
                self.text,
                "| {} | {} | {} |",
                cell(&code(&variant.name)),
                cell(&plain(&shape.kind.to_string())),
                cell(&notes(variant.description.as_deref(), &shape)),
            );
        }
        self.text.push('\n');
    }

    fn enumeration(&mut self, declared: &Enum) {
        self.line(&format!("### {}", plain(&declared.name)));
        self.description(declared.description.as_deref());
        if declared.open {
            self.paragraph("Open: values that are not listed are kept, not refused.");
        }
        for value in &declared.values {
            let _ = write!(self.text, "- {}", code(&value.name));
            if let Some(description) = &value.description {
                let _ = write!(self.text, ": {}", plain(&one_line(description)));
            }
            self.text.push('\n');
        }
        self.text.push('\n');
    }
}

fn presence(field: &Field) -> String {
    match (&field.default, field.required) {
        (_, true) => "required".into(),
        (Some(default), false) => format!("default {}", code(&default.to_string())),
        (None, false) => "optional".into(),
    }
}

fn notes(description: Option<&str>, shape: &Shape) -> String {
    let mut notes = Vec::new();
    if let Some(description) = description {
        let text = plain(&one_line(description));
        notes.push(text.trim_end_matches('.').to_owned());
    }
    notes.extend(constraint_notes(shape));
    if let Kind::Array(item) | Kind::Map(item) = &shape.kind {
        notes.extend(
            constraint_notes(item)
                .into_iter()
                .map(|note| format!("each {note}")),
        );
    }
    notes.join(". ")
}

fn constraint_notes(shape: &Shape) -> Vec<String> {
    let mut notes = Vec::new();
    match (&shape.min, &shape.max) {
        (Some(min), Some(max)) => notes.push(format!("{min} to {max}")),
        (Some(min), None) => notes.push(format!("at least {min}")),
        (None, Some(max)) => notes.push(format!("at most {max}")),
        (None, None) => {}
    }
    let unit = match shape.kind {
        Kind::String => "characters",
        Kind::Bytes => "bytes",
        _ => "items",
    };
    match (shape.min_length, shape.max_length) {
        (Some(min), Some(max)) => notes.push(format!("{min} to {max} {unit}")),
        (Some(min), None) => notes.push(format!("at least {min} {unit}")),
        (None, Some(max)) => notes.push(format!("at most {max} {unit}")),
        (None, None) => {}
    }
    notes.extend(
        shape
            .patterns
            .iter()
            .map(|pattern| format!("matches {}", code(pattern))),
    );
    notes
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text that stays text: what Markdown or HTML would take for its own is escaped.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // At the beginning of a line these make lists, headings and rules; a number with a dot does too.
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let counts = digits > 0 && text[digits..].starts_with(['.', ')']);
    for (at, character) in text.char_indices() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '*' | '_' | '`' | '[' | ']' | '#' | '\\' => {
                out.push('\\');
                out.push(character);
            }
            '-' | '=' | '+' | '~' if at == 0 => {
                out.push('\\');
                out.push(character);
            }
            '.' | ')' if counts && at == digits => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
    }
    out
}

/// Text between backticks, more of them than it has itself.
fn code(text: &str) -> String {
    let runs = text.split(|character| character != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0) + 1);
    let text = text.replace(|character: char| character.is_control(), " ");
    if text.starts_with('`') || text.ends_with('`') {
        format!("{fence} {text} {fence}")
    } else {
        format!("{fence}{text}{fence}")
    }
}

/// A table's cell ends at a bar, even between backticks.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_the_schema_says() {
        let schema = Schema::parse(
            "t.kdl",
            r#"
protocol "chat" version="1.2.0" namespace="example" {
    description "Rooms <b>and</b> messages."
    enum "Kind" open=#true { value "text" description="just words"; value "image" }
    message "User" { field "name" type="string" required=#true min_length=1 max_length=20 pattern="a|b" }
    union "Part" description="A piece." { variant "user" type="User"; variant "n" type="int" max=9 description="A | b." }
    channel "rooms" from="client" {
        request "Join" idempotent=#true description="Enter a room." {
            field "user" type="User"
            field "tries" type="int" default=3 min=1 description="How often."
            returns "Joined" { field "kinds" type="array" item_type="Kind" }
        }
        event "Closed"
    }
}"#,
        )
        .unwrap();
        let page = schema.to_markdown();
        let hash = schema.channel_hash("rooms").unwrap().to_string();
        let expected = r#"# chat

Rooms &lt;b&gt;and&lt;/b&gt; messages.

Version 1.2.0, namespace `example`. Peers understand each other when their versions begin with 1.

## Channels

### `rooms`

Persistent: it is opened again after a lost connection. Reliable: events arrive in the order they were sent; those that were on their way when a connection was lost are gone. Of events that a peer does not read, the oldest are dropped. Schema hash `HASH...`.

#### Request `Join`

Enter a room.

The client asks, the server answers. Idempotent: it may be sent again when its answer got lost.

| field | type | | |
|---|---|---|---|
| `user` | User | optional |  |
| `tries` | int | default `3` | How often. at least 1 |

Returns `Joined`:

| field | type | | |
|---|---|---|---|
| `kinds` | array of Kind | optional |  |

#### Event `Closed`

Sent by the server.

It has no fields.

## Messages

### User

| field | type | | |
|---|---|---|---|
| `name` | string | required | 1 to 20 characters. matches `a\|b` |

## Unions

### Part

A piece.

| variant | type | |
|---|---|---|
| `user` | User |  |
| `n` | int | A \| b. at most 9 |

## Enums

### Kind

Open: values that are not listed are kept, not refused.

- `text`: just words
- `image`
"#;
        assert_eq!(page, expected.replace("HASH", &hash[..16]));
    }

    #[test]
    fn a_message_that_others_hold_has_a_heading_although_a_request_carries_it() {
        let schema = Schema::parse(
            "t.kdl",
            r#"
protocol "p" version="1.0.0" {
    message "Page" { field "users" type="array" item_type="User" }
    channel "c" {
        request "Find" { returns "User" { field "name" type="string"; field "next" type="Next" } }
        request "List" { returns "Page" }
    }
    typedef "Next" type="User"
}"#,
        )
        .unwrap();
        let page = schema.to_markdown();
        let (_, messages) = page.split_once("## Messages\n").expect("a section");
        assert!(messages.contains("### User\n"), "{page}");
        assert!(!messages.contains("### Page\n"), "{page}");
    }

    #[test]
    fn texts_stay_in_their_place() {
        let schema = Schema::parse(
            "t.kdl",
            r##"
protocol "p" version="1.0.0" {
    description "Title\n===\n- no list\n1. no list either\n--- # no rule"
    channel "c" {
        event "E" {
            field "x" type="string" pattern=#"a\|b|`c"# description="left | right"
            field "y" type="string" default="two  spaces"
        }
    }
}"##,
        )
        .unwrap();
        let page = schema.to_markdown();
        for expected in [
            "Title\n\\===\n\\- no list\n1\\. no list either\n\\--- \\# no rule\n",
            r"| `x` | string | optional | left \| right. matches ``a\\|b\|`c`` |",
            "| `y` | string | default `\"two  spaces\"` |",
        ] {
            assert!(page.contains(expected), "no {expected:?} in\n{page}");
        }
    }
}
