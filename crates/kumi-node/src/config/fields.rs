//! The arguments, properties and children of a node, taken by name and kind. Unknown ones are errors that say what may have
//! been meant; so are values of the wrong kind, and values that look like secrets.

use super::secrets::has_secret;
use super::settings::{Place, Section};
use kumi_kdl::{Diagnostics, Document, Node, Scalar, Sources, Span, Spanned, Value, did_you_mean};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Adds errors to a list, each with its place.
pub(super) struct Reader<'a> {
    pub(super) sources: &'a Sources,
    pub(super) errors: &'a mut Diagnostics,
}

/// The properties of a node by name, each known to its section.
pub(super) struct Properties<'n> {
    by_name: BTreeMap<&'n str, &'n Value>,
}

impl<'n> Properties<'n> {
    pub(super) fn get(&self, name: &str) -> Option<&'n Value> {
        self.by_name.get(name).copied()
    }
}

impl Reader<'_> {
    pub(super) fn error(
        &mut self,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let sources = self.sources;
        self.errors
            .push_with(|| sources.diagnostic(span, message).help(help));
    }

    /// The properties of an entry; unknown names and second ones are errors.
    pub(super) fn properties<'n>(&mut self, node: &'n Node, section: Section) -> Properties<'n> {
        let known = section.names(Place::Property);
        let mut by_name = BTreeMap::new();
        for (name, value) in &node.properties {
            if !known.contains(&&*name.value) {
                let message = format!("{section} has no property {:?}", name.value);
                self.unknown(
                    name,
                    message,
                    &known,
                    "it has none: write values behind the name or in a block",
                );
            } else if by_name.insert(&*name.value, value).is_some() {
                self.error(
                    name.span,
                    format!("{} is given twice", name.value),
                    "keep one of them",
                );
            }
        }
        Properties { by_name }
    }

    /// The nodes in a section's block by name; unknown names and second ones are errors.
    pub(super) fn children<'n>(
        &mut self,
        node: &'n Node,
        section: Section,
    ) -> BTreeMap<&'n str, &'n Node> {
        let known = section.names(Place::Child);
        let mut by_name = BTreeMap::new();
        for child in nodes(node) {
            let name = &child.name;
            self.no_annotations(child);
            if !known.contains(&&*name.value) {
                let message = format!("{section} has no {:?}", name.value);
                self.unknown(name, message, &known, "it has no block");
            } else if by_name.insert(&*name.value, child).is_some() {
                self.error(
                    name.span,
                    format!("{} is given twice", name.value),
                    "keep one of them",
                );
            }
        }
        by_name
    }

    /// Reports a name that its place does not have.
    pub(super) fn unknown(
        &mut self,
        name: &Spanned<String>,
        message: String,
        known: &[&str],
        none: &str,
    ) {
        let help = match (did_you_mean(&name.value, known.iter().copied()), known) {
            (Some(meant), _) => format!("did you mean {meant}?"),
            (None, []) => none.to_owned(),
            (None, _) => format!("known here: {}", known.join(", ")),
        };
        self.error(name.span, message, help);
    }

    pub(super) fn no_annotations(&mut self, node: &Node) {
        let values = node
            .arguments
            .iter()
            .chain(node.properties.iter().map(|(_, value)| value));
        let all = values
            .map(|value| &value.annotation)
            .chain([&node.annotation]);
        for annotation in all.flatten() {
            self.error(
                annotation.span,
                "type annotations mean nothing in kumi.kdl",
                "take it out",
            );
        }
    }

    pub(super) fn no_properties(&mut self, node: &Node) {
        if let Some((name, _)) = node.properties.first() {
            let message = format!("{} has no properties", node.name.value);
            self.error(
                name.span,
                message,
                format!("write {} VALUE", node.name.value),
            );
        }
    }

    pub(super) fn no_block(&mut self, node: &Node) {
        if let Some(child) = nodes(node).first() {
            self.error(
                child.name.span,
                format!("{} has no block", node.name.value),
                "take it out",
            );
        }
    }

    /// The values of a node in a block, one at least; none of them has a name.
    fn values<'n>(&mut self, node: &'n Node) -> &'n [Value] {
        self.no_properties(node);
        self.no_block(node);
        if node.arguments.is_empty() {
            let name = &node.name.value;
            self.error(
                node.name.span,
                format!("{name} needs a value"),
                format!("write {name} VALUE"),
            );
        }
        &node.arguments
    }

    /// The one value of a node in a block.
    pub(super) fn value<'n>(&mut self, node: &'n Node) -> Option<&'n Value> {
        let values = self.values(node);
        if let Some(second) = values.get(1) {
            self.error(
                second.span,
                format!("{} has one value", node.name.value),
                "take this one out",
            );
        }
        values.first()
    }

    /// A list of texts.
    pub(super) fn list<T, E: Display>(
        &mut self,
        node: Option<&&Node>,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<T> {
        let Some(node) = node else {
            return Vec::new();
        };
        let values = self.values(node);
        values
            .iter()
            .filter_map(|value| self.parsed(value, &node.name.value, &read))
            .collect()
    }

    /// A text that is no secret.
    pub(super) fn text<'n>(&mut self, value: &'n Value, name: &str) -> Option<&'n str> {
        match &value.scalar {
            Scalar::String(text) if has_secret(text) => {
                let help = match name {
                    "URL" => {
                        "put the URL into a file that only the node may read, and write store url-file=\"FILE\""
                    }
                    "exec" | "pipe" => {
                        "put NAME=VALUE into a file, name it as env-file=\"FILE\", and use $NAME here"
                    }
                    _ => "put it into a file that only the node may read, and name the file",
                };
                self.error(value.span, format!("{name} seems to hold a secret"), help);
                None
            }
            Scalar::String(text) => Some(text),
            other => {
                let message = format!("{name} is a text, not {}", other.kind());
                self.error(value.span, message, "put quotes around it");
                None
            }
        }
    }

    /// A text that is not empty.
    pub(super) fn filled(&mut self, value: &Value, name: &str) -> Option<String> {
        let text = self.text(value, name)?;
        if text.trim().is_empty() {
            self.error(
                value.span,
                format!("{name} is empty"),
                "write something, or take it out",
            );
            return None;
        }
        Some(text.to_owned())
    }

    pub(super) fn path(&mut self, value: &Value, name: &str) -> Option<PathBuf> {
        self.filled(value, name).map(PathBuf::from)
    }

    /// What a text is read as.
    pub(super) fn parsed<T, E: Display>(
        &mut self,
        value: &Value,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(value, name)?;
        match read(text) {
            Ok(read) => Some(read),
            Err(error) => {
                self.error(
                    value.span,
                    format!("{name} cannot be {text:?}"),
                    error.to_string(),
                );
                None
            }
        }
    }

    /// A whole number within bounds.
    pub(super) fn number(
        &mut self,
        value: &Value,
        name: &str,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        let (least, most) = (range.start(), range.end());
        let number = match value.scalar {
            Scalar::Integer(number) => u32::try_from(number).ok(),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            let message = format!("{name} is a whole number from {least} to {most}");
            self.error(value.span, message, format!("without quotes, as {least}"));
        }
        number
    }

    pub(super) fn port(&mut self, value: &Value) -> Option<u16> {
        let port = self.number(value, "port", 1..=u16::MAX.into());
        port.and_then(|port| u16::try_from(port).ok())
    }

    pub(super) fn truth(&mut self, value: &Value, name: &str) -> Option<bool> {
        match value.scalar {
            Scalar::Bool(truth) => Some(truth),
            ref other => {
                let message = format!("{name} is #true or #false, not {}", other.kind());
                self.error(value.span, message, "write #true or #false, without quotes");
                None
            }
        }
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        value: &Value,
        name: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(value, name)?;
        let found = choices.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let help = match did_you_mean(text, words.iter().copied()) {
                Some(meant) => format!("did you mean {meant:?}?"),
                None => format!("it is one of {}", words.join(", ")),
            };
            self.error(value.span, format!("{name} cannot be {text:?}"), help);
        }
        found.map(|(_, choice)| *choice)
    }
}

/// The nodes in a node's block.
pub(super) fn nodes(node: &Node) -> &[Node] {
    node.children
        .as_ref()
        .map_or(&[], |Document { nodes, .. }| nodes)
}
