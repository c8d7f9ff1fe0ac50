//! One node's arguments and properties: known ones by name and kind, unknown ones with what may have been meant.

use super::Reader;
use crate::names;
use kumi_kdl::{Node, Scalar, Span, Spanned, Value, did_you_mean};
use std::collections::BTreeMap;

/// The properties of a node that its kind knows, by name.
pub(super) struct Properties<'n> {
    by_name: BTreeMap<&'n str, &'n Value>,
}

impl<'n> Properties<'n> {
    pub(super) fn get(&self, name: &str) -> Option<&'n Value> {
        self.by_name.get(name).copied()
    }
}

impl Reader {
    /// Takes the properties of a node and refuses those its kind does not have.
    pub(super) fn properties<'n>(&mut self, node: &'n Node, known: &[&str]) -> Properties<'n> {
        self.no_annotation(&node.annotation);
        let mut by_name = BTreeMap::new();
        for (name, value) in &node.properties {
            self.no_annotation(&value.annotation);
            let kind = &node.name.value;
            if !known.contains(&&*name.value) {
                let message = format!("'{kind}' has no property {:?}", name.value);
                self.error_with(name.span, message, |diagnostic| {
                    let meant = did_you_mean(&name.value, known.iter().copied());
                    diagnostic.help(match (meant, known) {
                        (Some(meant), _) => format!("did you mean {meant}?"),
                        (None, []) => "it has none at all".into(),
                        (None, _) => format!("it has {}", known.join(", ")),
                    })
                });
            } else if by_name.insert(&*name.value, value).is_some() {
                self.error(name.span, format!("{:?} is given twice", name.value));
            }
        }
        Properties { by_name }
    }

    fn no_annotation(&mut self, annotation: &Option<Spanned<String>>) {
        if let Some(annotation) = annotation {
            self.error_help(
                annotation.span,
                "type annotations mean nothing in a schema",
                "take it out; a field says its type as type=\"...\"",
            );
        }
    }

    /// The one argument of a node, which is a name that can be used. What is refused as the name of a type is unusable.
    pub(super) fn name_argument(
        &mut self,
        node: &Node,
        kind: &str,
        example: &str,
    ) -> Option<Spanned<String>> {
        let name = self.text_argument(node, kind, example);
        if let Some(name) = &name
            && let Some(problem) = names::problem(&name.value)
        {
            self.error(name.span, problem);
            if declares_type(kind) {
                self.unusable.insert(name.value.clone());
            }
            return None;
        }
        self.incomplete |= name.is_none() && declares_type(kind);
        name
    }

    /// Where the name of a node stands, whether it can be used or not; its kind if there is none.
    pub(super) fn name_place(node: &Node) -> Span {
        let name = node.arguments.first();
        name.map_or(node.name.span, |name| name.span)
    }

    /// The one argument of a node, which is a text.
    pub(super) fn text_argument(
        &mut self,
        node: &Node,
        kind: &str,
        example: &str,
    ) -> Option<Spanned<String>> {
        for argument in &node.arguments {
            self.no_annotation(&argument.annotation);
        }
        if let Some(second) = node.arguments.get(1) {
            self.error_help(
                second.span,
                format!("'{kind}' has one name"),
                "write everything else as property=value",
            );
        }
        match node.arguments.first() {
            Some(Value {
                scalar: Scalar::String(text),
                span,
                ..
            }) => Some(Spanned::new(text.clone(), *span)),
            Some(other) => {
                let message = format!("a text was expected here, not {}", other.scalar.kind());
                self.error_help(
                    other.span,
                    message,
                    format!("for instance: {kind} {example}"),
                );
                None
            }
            None => {
                self.error_help(
                    node.name.span,
                    format!("'{kind}' needs a name"),
                    format!("for instance: {kind} {example}"),
                );
                None
            }
        }
    }

    pub(super) fn no_children(&mut self, node: &Node) {
        let first = node
            .children
            .as_ref()
            .and_then(|children| children.nodes.first());
        if let Some(child) = first {
            self.error(
                child.name.span,
                format!("'{}' has no block", node.name.value),
            );
        }
    }

    /// A property that is a text.
    pub(super) fn text(
        &mut self,
        properties: &Properties<'_>,
        name: &str,
    ) -> Option<Spanned<String>> {
        let value = properties.get(name)?;
        match &value.scalar {
            Scalar::String(text) => Some(Spanned::new(text.clone(), value.span)),
            other => {
                let message = format!("{name} is a text, not {}", other.kind());
                self.error_help(value.span, message, "put quotes around it");
                None
            }
        }
    }

    /// A property that is true or false; false when it is missing.
    pub(super) fn truth(&mut self, properties: &Properties<'_>, name: &str) -> bool {
        match properties
            .get(name)
            .map(|value| (&value.scalar, value.span))
        {
            None => false,
            Some((Scalar::Bool(truth), _)) => *truth,
            Some((other, span)) => {
                let message = format!("{name} is #true or #false, not {}", other.kind());
                self.error_help(span, message, format!("write {name}=#true"));
                false
            }
        }
    }

    /// A property that is one of a few words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        properties: &Properties<'_>,
        name: &str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let text = self.text(properties, name)?;
        let found = choices.iter().find(|(word, _)| *word == text.value);
        if let Some((_, choice)) = found {
            return Some(*choice);
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let message = format!("{name} cannot be {:?}", text.value);
        self.error_with(text.span, message, |diagnostic| {
            diagnostic.help(match did_you_mean(&text.value, words.iter().copied()) {
                Some(word) => format!("did you mean {word:?}?"),
                None => format!("it is one of {}", quoted_list(&words)),
            })
        });
        None
    }

    /// A node that has no place where it stands.
    pub(super) fn unknown_node(&mut self, node: &Node, place: &str, known: &[&str]) {
        let message = format!("'{}' has no place in {place}", node.name.value);
        self.error_with(node.name.span, message, |diagnostic| {
            diagnostic.help(
                match did_you_mean(&node.name.value, known.iter().copied()) {
                    Some(word) => format!("did you mean {word}?"),
                    None => format!("known here: {}", known.join(", ")),
                },
            )
        });
    }

    /// Says that something was declared before, and where.
    pub(super) fn duplicate(
        &mut self,
        span: Span,
        what: &str,
        name: &str,
        first: Span,
        help: &str,
    ) {
        let sources = &self.sources;
        self.errors.push_with(|| {
            let place = sources.diagnostic(first, "").place();
            sources
                .diagnostic(span, format!("{what} {name:?} is declared twice"))
                .note(format!("the first one is at {place}"))
                .help(help)
        });
    }
}

/// Whether a node of this kind adds a name that others may refer to.
fn declares_type(kind: &str) -> bool {
    !matches!(kind, "protocol" | "channel" | "service" | "field" | "value")
}

/// `"a", "b" and "c"`
pub(super) fn quoted_list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
