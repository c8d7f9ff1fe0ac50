//! Rust from a schema: types, validation, typed clients and servers, and connections.
//!
//! The code names one crate, the runtime, whose path is a parameter; everything else it needs is re-exported there.
//! It is put together as text, read back as Rust, and printed by one printer, so it is formatted, and a text that is
//! not Rust never leaves this module. It has no inner attributes, so that `include!` takes it.

mod channel;
mod connection;
mod service;
mod types;
mod validation;

use crate::hash::{SchemaHash, protocol_hash};
use crate::model::{Protocol, Schema};
use crate::names;
use std::collections::BTreeSet;
use std::fmt::Write;
use syn::Item;

/// Where the runtime is, unless somebody says otherwise.
const DEFAULT_RUNTIME: &str = "::kumi_unison";

/// How Rust code is to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RustOptions {
    runtime: String,
}

impl RustOptions {
    /// Code for `::kumi_unison`.
    pub fn new() -> Self {
        Self {
            runtime: DEFAULT_RUNTIME.into(),
        }
    }

    /// The path under which the code finds the runtime's crate, such as `crate::net`.
    pub fn runtime(mut self, path: impl Into<String>) -> Self {
        self.runtime = path.into();
        self
    }
}

impl Default for RustOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Why no Rust code could be written. Nothing was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RustError {
    /// The caller's mistake.
    #[error("{0:?} is not the path of a crate or module")]
    Runtime(String),
    /// Ours: what was put together is not Rust. The schema is worth a bug report.
    #[error("the generated code is not Rust: {0}")]
    Internal(String),
}

impl Schema {
    /// The text of a Rust module.
    pub fn to_rust(&self, options: &RustOptions) -> Result<String, RustError> {
        if syn::parse_str::<syn::Path>(&options.runtime).is_err() {
            return Err(RustError::Runtime(options.runtime.clone()));
        }
        let code = Code {
            protocol: &self.protocol,
            rt: &options.runtime,
            types: code_names(&self.protocol),
            text: String::new(),
        };
        let text = code.write();
        let mut file =
            syn::parse_file(&text).map_err(|error| RustError::Internal(error.to_string()))?;
        file.items.iter_mut().for_each(allow_unused);
        Ok(format!(
            "// Generated from {} by kumi-schema. Changes belong into the schema.\n\n{}",
            label(&self.protocol),
            with_air(&prettyplease::unparse(&file))
        ))
    }
}

/// A binary that uses a part of a protocol is not to be warned about the rest, nor about items of a module that nobody
/// else sees. An inner attribute would say it once,
/// but `include!` refuses those.
fn allow_unused(item: &mut Item) {
    let attributes = match item {
        Item::Const(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        Item::Fn(item) => &mut item.attrs,
        Item::Impl(item) if item.trait_.is_none() => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        Item::Trait(item) => &mut item.attrs,
        Item::Type(item) => &mut item.attrs,
        _ => return,
    };
    attributes.push(syn::parse_quote!(#[allow(dead_code, unreachable_pub)]));
}

/// The printer puts no empty lines between items and methods; readers like them.
fn with_air(code: &str) -> String {
    let begins = ["///", "#[", "pub ", "fn ", "async fn ", "impl ", "static "];
    let mut out = String::with_capacity(code.len() + code.len() / 50);
    let mut before: Option<&str> = None;
    for line in code.lines() {
        let depth = line.len() - line.trim_start().len();
        let ended = before.is_some_and(|before| {
            let same = before.len() - before.trim_start().len() == depth;
            let is_code = !before.trim_start().starts_with("///");
            let item =
                before.trim_start() == "}" || (depth == 0 && is_code && before.ends_with(';'));
            same && item
        });
        let starts = depth <= 4
            && begins
                .iter()
                .any(|word| line.trim_start().starts_with(word));
        if ended && starts {
            out.push('\n');
        }
        // Inside of attributes the printer leaves out the space that keeps a colon and a path apart.
        let start = line.trim_start();
        if start.starts_with("#[rkyv(") || start.starts_with("__") {
            out.push_str(&line.replace(":::", ": ::"));
        } else {
            out.push_str(line);
        }
        out.push('\n');
        before = Some(line);
    }
    out
}

fn label(protocol: &Protocol) -> String {
    let namespace = protocol.namespace.as_deref().unwrap_or_default();
    let words: Vec<&str> = namespace.split_whitespace().collect();
    if words.is_empty() {
        return format!("protocol {}", protocol.name);
    }
    format!("protocol {} ({})", protocol.name, words.join(" "))
}

/// The code while it is put together.
struct Code<'s> {
    protocol: &'s Protocol,
    /// The runtime's path.
    rt: &'s str,
    /// What the schema's types are called in code.
    types: BTreeSet<String>,
    text: String,
}

impl Code<'_> {
    fn write(mut self) -> String {
        self.head();
        self.types();
        for channel in &self.protocol.channels {
            self.channel(channel);
            self.service(channel);
        }
        self.connections();
        self.text
    }

    fn head(&mut self) {
        let prefix = names::shouting_case(&self.protocol.name);
        self.doc(&["Version of the protocol. Peers whose first numbers differ refuse each other."]);
        let version = self.protocol.version;
        self.line(format_args!(
            "pub const {prefix}_PROTOCOL_VERSION: &str = \"{version}\";"
        ));
        self.doc(&["Hash over the whole protocol."]);
        let hash = bytes(protocol_hash(self.protocol));
        self.line(format_args!(
            "pub const {prefix}_PROTOCOL_HASH: [u8; 32] = {hash};"
        ));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    /// Documentation, a paragraph each.
    fn doc(&mut self, paragraphs: &[&str]) {
        let mut first = true;
        for paragraph in paragraphs {
            let mut lines = paragraph.trim().lines().map(str::trim).peekable();
            if lines.peek().is_none() {
                continue;
            }
            if !first {
                self.line(format_args!("///"));
            }
            first = false;
            for line in lines {
                self.line(format_args!("/// {}", as_text(line)));
            }
        }
    }

    /// `Result`, or its full path where a message has taken the name.
    fn result(&self) -> &'static str {
        self.prelude("Result", "::core::result::Result")
    }

    /// A name that every module of Rust knows, or its full path where a type of the schema has taken it.
    fn prelude(&self, name: &'static str, path: &'static str) -> &'static str {
        if self.types.contains(name) {
            path
        } else {
            name
        }
    }

    fn send_trait(&self) -> &'static str {
        self.prelude("Send", "::core::marker::Send")
    }

    fn sync_trait(&self) -> &'static str {
        self.prelude("Sync", "::core::marker::Sync")
    }

    fn conversion(&self) -> &'static str {
        self.prelude("From", "::core::convert::From")
    }

    /// A name for a type parameter that is no type of the schema.
    fn parameter(&self) -> &'static str {
        self.prelude("S", "__S")
    }
}

fn code_names(protocol: &Protocol) -> BTreeSet<String> {
    let messages = protocol.messages.iter().map(|message| &message.name);
    let enums = protocol.enums.iter().map(|declared| &declared.name);
    let typedefs = protocol.typedefs.iter().map(|typedef| &typedef.name);
    let all = messages.chain(enums).chain(typedefs);
    all.map(|name| names::type_identifier(name)).collect()
}

/// A line of a comment that stays text: brackets would be taken for links and tags, three backticks or tildes for code
/// that is run as a test, and a comment with a carriage return is no Rust.
fn as_text(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for character in line.chars() {
        match character {
            '[' | ']' | '<' | '>' => {
                out.push('\\');
                out.push(character);
            }
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out.replace("```", "\\`\\`\\`").replace("~~~", "\\~\\~\\~")
}

fn bytes(hash: SchemaHash) -> String {
    let bytes: Vec<String> = hash.0.iter().map(|byte| format!("0x{byte:02x}")).collect();
    format!("[{}]", bytes.join(", "))
}

/// A text of Rust.
fn text(value: &str) -> String {
    format!("{value:?}")
}
