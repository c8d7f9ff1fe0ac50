//! TypeScript from a schema: types, checks, and a typed client over an interface that any transport can fill.
//!
//! One module without imports that a strict compiler takes, with no library but the language's own. It opens no
//! connection: the transport is the caller's, so the same client runs over WebTransport, a bridge, or a fake in a test.
//! Times are numbers of milliseconds, bytes are base64 texts, and whole numbers are JavaScript's, exact to 2^53.

mod checks;
mod client;
mod types;

use crate::hash::protocol_hash;
use crate::model::{Protocol, Schema};
use crate::names;

impl Schema {
    /// The text of a TypeScript module.
    pub fn to_typescript(&self) -> String {
        let protocol = &self.protocol;
        let mut out = Writer::default();
        out.line(&format!(
            "// Generated from {} by kumi-schema. Changes belong into the schema.",
            protocol_label(protocol)
        ));
        out.blank();
        let prefix = names::shouting_case(&protocol.name);
        out.doc(Some(
            "Version of the protocol. Peers whose first numbers differ refuse each other.",
        ));
        out.line(&format!(
            "export const {prefix}_VERSION = {};",
            text(&protocol.version.to_string())
        ));
        out.blank();
        out.doc(Some("Hash over the whole protocol."));
        out.line(&format!(
            "export const {prefix}_HASH = {};",
            text(&protocol_hash(protocol).to_string())
        ));
        types::write(&mut out, protocol);
        checks::write(&mut out, protocol);
        client::write(&mut out, protocol);
        out.text
    }
}

fn protocol_label(protocol: &Protocol) -> String {
    match &protocol.namespace {
        Some(namespace) => format!("protocol {} ({})", protocol.name, one_line(namespace)),
        None => format!("protocol {}", protocol.name),
    }
}

/// How long a line of a comment may get, in characters.
const MAX_COMMENT: usize = 110;

/// Lines with their indentation.
#[derive(Default)]
struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    fn line(&mut self, line: &str) {
        if line.starts_with('}') || line.starts_with(')') || line.starts_with(']') {
            self.depth = self.depth.saturating_sub(1);
        }
        if !line.is_empty() {
            (0..self.depth).for_each(|_| self.text.push_str("  "));
        }
        self.text.push_str(line);
        self.text.push('\n');
        if line.ends_with('{') || line.ends_with('(') || line.ends_with('[') {
            self.depth += 1;
        }
    }

    fn blank(&mut self) {
        self.line("");
    }

    /// A comment for readers and editors. Nothing in it can end it.
    fn doc(&mut self, text: Option<&str>) {
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
            return;
        };
        let lines: Vec<String> = text
            .trim()
            .lines()
            .map(|line| line.trim_end().replace("*/", "*\u{200b}/"))
            .flat_map(|line| wrapped(&line))
            .collect();
        if let [line] = &*lines {
            return self.raw(&format!("/** {line} */"));
        }
        self.raw("/**");
        for line in lines {
            self.raw(format!(" * {line}").trim_end());
        }
        self.raw(" */");
    }

    /// A line that says nothing about depth.
    fn raw(&mut self, line: &str) {
        (0..self.depth).for_each(|_| self.text.push_str("  "));
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// A line of a comment as lines of a readable length, broken where it has spaces.
fn wrapped(line: &str) -> Vec<String> {
    let text = line.trim_start();
    let mut lines = Vec::new();
    let mut last = line[..line.len() - text.len()].to_owned();
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 && last.chars().count() + word.chars().count() >= MAX_COMMENT {
            lines.push(std::mem::take(&mut last));
        } else if index > 0 {
            last.push(' ');
        }
        last.push_str(word);
    }
    lines.push(last);
    lines
}

/// A text of TypeScript. JSON's rules are JavaScript's, with two line ends more to escape.
fn text(value: &str) -> String {
    let mut out = String::from("\"");
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if other.is_control() || matches!(other, '\u{2028}' | '\u{2029}') => {
                out.push_str(&format!("\\u{:04x}", other as u32));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A property's name, in quotes where it is no identifier.
fn property(name: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || character == '_';
    if name.chars().all(plain) && !name.starts_with(|first: char| first.is_ascii_digit()) {
        name.to_owned()
    } else {
        text(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_wrapped_at_spaces_and_keep_their_words() {
        let long = format!("  - {}", "word  and ".repeat(40));
        let lines = wrapped(long.trim_end());
        assert!(lines.len() > 2);
        assert!(lines.iter().all(|line| line.len() <= MAX_COMMENT));
        assert!(lines[0].starts_with("  - word  and"));
        assert_eq!(lines.join(" "), long.trim_end());
        assert_eq!(wrapped(&"x".repeat(300)).len(), 1);
        assert_eq!(wrapped(""), [""]);
    }
}
