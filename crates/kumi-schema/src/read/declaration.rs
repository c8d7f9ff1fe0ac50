//! What stands in a protocol: its description, messages, enums, unions, typedefs and channels.

use super::Reader;
use super::files::File;
use crate::limits::MAX_MEMBERS;
use crate::model::{
    At, Enum, EnumValue, FieldPlaces, Message, Protocol, Type, Typedef, Union, Variant,
};
use crate::names;
use kumi_kdl::{Node, Scalar, Span, Spanned};
use std::collections::BTreeMap;

const IN_FILE: &[&str] = &["protocol", "import", "message", "enum", "union", "typedef"];
const IN_PROTOCOL: &[&str] = &[
    "namespace",
    "description",
    "import",
    "message",
    "enum",
    "union",
    "typedef",
    "channel",
    "service",
];

impl Reader {
    /// Reads the declarations of all files into `protocol`. Channels count only in `root`, the protocol asked for.
    pub(super) fn declarations(
        &mut self,
        files: &[File],
        root: Option<&Node>,
        protocol: &mut Protocol,
    ) {
        let mut types = Types::default();
        for file in files {
            for node in &file.document.nodes {
                match &*node.name.value {
                    "protocol" => {
                        let is_root = root.is_some_and(|root| std::ptr::eq(root, node));
                        self.protocol_body(node, is_root, protocol, &mut types);
                    }
                    "import" => {}
                    "message" | "enum" | "union" | "typedef" => {
                        self.type_node(node, protocol, &mut types)
                    }
                    "channel" | "service" => self.error_help(
                        node.name.span,
                        format!("a {} belongs into a protocol", node.name.value),
                        "put it between the braces of protocol \"...\" { }",
                    ),
                    _ => self.unknown_node(node, "a schema", IN_FILE),
                }
            }
        }
        // Channels come last, because a request without fields may name a message declared anywhere.
        for node in root
            .iter()
            .flat_map(|root| &root.children)
            .flat_map(|children| &children.nodes)
        {
            match &*node.name.value {
                "channel" => self.channel(node, protocol, &mut types),
                "service" => self.service(node, protocol, &mut types),
                _ => {}
            }
        }
    }

    fn protocol_body(
        &mut self,
        node: &Node,
        is_root: bool,
        protocol: &mut Protocol,
        types: &mut Types,
    ) {
        for child in node.children.iter().flat_map(|children| &children.nodes) {
            match &*child.name.value {
                "message" | "enum" | "union" | "typedef" => self.type_node(child, protocol, types),
                "namespace" if is_root => {
                    let text = self.text_node(child);
                    self.set_once(child, &mut protocol.namespace, text);
                }
                "description" if is_root => {
                    let text = self.text_node(child);
                    self.set_once(child, &mut protocol.description, text);
                }
                // Read elsewhere, or, in an imported protocol, not used.
                "namespace" | "description" | "import" | "channel" | "service" => {}
                _ => self.unknown_node(child, "a protocol", IN_PROTOCOL),
            }
        }
    }

    pub(super) fn set_once(
        &mut self,
        node: &Node,
        place: &mut Option<String>,
        text: Option<String>,
    ) {
        if place.is_some() {
            self.error(
                node.name.span,
                format!("'{}' is given twice", node.name.value),
            );
        }
        *place = text.or(place.take());
    }

    /// `description "..."`
    pub(super) fn text_node(&mut self, node: &Node) -> Option<String> {
        self.properties(node, &[]);
        self.no_children(node);
        let text = self.text_argument(node, &node.name.value, "\"some words\"")?;
        Some(text.value)
    }

    fn type_node(&mut self, node: &Node, protocol: &mut Protocol, types: &mut Types) {
        self.not_built_in(node);
        match &*node.name.value {
            "message" => self.message(node, protocol, types),
            "enum" => self.enumeration(node, protocol, types),
            "union" => self.union(node, protocol, types),
            _ => self.typedef(node, protocol, types),
        }
    }

    /// `type="int"` is always the built-in one, so a type of that name could not be reached. What a request or event
    /// carries needs no name elsewhere and may be called so.
    fn not_built_in(&mut self, node: &Node) {
        if let Some(name) = node.arguments.first()
            && let Scalar::String(text) = &name.scalar
            && Type::BUILT_IN.contains(&&**text)
            && names::type_problem(text).is_none()
        {
            self.error_help(
                name.span,
                format!("{text:?} is a type already"),
                "choose another name; type= would mean the one that is built in",
            );
        }
    }

    fn message(&mut self, node: &Node, protocol: &mut Protocol, types: &mut Types) {
        let properties = self.properties(node, &["description"]);
        let mut description = self.text(&properties, "description").map(|text| text.value);
        let name = self.name_argument(node, "message", "\"Room\"");
        let fields = self.fields(node, &mut description, &[], "a message");
        protocol.add_message(Message {
            name: self.declared_name(types, name),
            description,
            fields,
            at: At(Self::name_place(node)),
        });
    }

    fn enumeration(&mut self, node: &Node, protocol: &mut Protocol, types: &mut Types) {
        let properties = self.properties(node, &["description", "open"]);
        let mut declared = Enum {
            name: String::new(),
            description: self.text(&properties, "description").map(|text| text.value),
            values: Vec::new(),
            open: self.truth(&properties, "open"),
            at: At(node.name.span),
        };
        // Values may also stand behind the name: enum "Kind" "text" "image".
        let mut head = node.clone();
        let inline = head.arguments.split_off(head.arguments.len().min(1));
        let name = self.name_argument(&head, "enum", "\"Kind\"");
        for value in &inline {
            self.enum_value(&mut declared, value, None);
        }
        for child in node.children.iter().flat_map(|children| &children.nodes) {
            match &*child.name.value {
                "value" => {
                    let properties = self.properties(child, &["description"]);
                    self.no_children(child);
                    let description = self.text(&properties, "description").map(|text| text.value);
                    if self.text_argument(child, "value", "\"text\"").is_some() {
                        self.enum_value(&mut declared, &child.arguments[0], description);
                    }
                }
                "values" => {
                    self.properties(child, &[]);
                    self.no_children(child);
                    for value in &child.arguments {
                        self.enum_value(&mut declared, value, None);
                    }
                }
                "description" => {
                    let text = self.text_node(child);
                    self.set_once(child, &mut declared.description, text);
                }
                _ => self.unknown_node(child, "an enum", &["value", "values", "description"]),
            }
        }
        if let Some(name) = name.as_ref().filter(|_| declared.values.is_empty()) {
            self.error_help(
                name.span,
                format!("enum {:?} has no values", name.value),
                "for instance: value \"text\"",
            );
        }
        declared.at = At(Self::name_place(node));
        declared.name = self.declared_name(types, name);
        protocol.add_enum(declared);
    }

    fn enum_value(
        &mut self,
        declared: &mut Enum,
        value: &kumi_kdl::Value,
        description: Option<String>,
    ) {
        let Scalar::String(name) = &value.scalar else {
            let message = format!("a value of an enum is a text, not {}", value.scalar.kind());
            return self.error_help(value.span, message, "put quotes around it");
        };
        if let Some(problem) = names::problem(name) {
            return self.error(value.span, problem);
        }
        if let Some(first) = declared.values.iter().find(|known| known.name == *name) {
            let span = first.at.0;
            return self.duplicate(value.span, "value", name, span, "take one of them out");
        }
        if declared.values.len() >= MAX_MEMBERS {
            return self.error(
                value.span,
                format!("an enum has at most {MAX_MEMBERS} values"),
            );
        }
        declared.values.push(EnumValue {
            name: name.clone(),
            description,
            at: At(value.span),
        });
    }

    fn union(&mut self, node: &Node, protocol: &mut Protocol, types: &mut Types) {
        let properties = self.properties(node, &["description"]);
        let mut description = self.text(&properties, "description").map(|text| text.value);
        let name = self.name_argument(node, "union", "\"Shape\"");
        let mut variants: Vec<Variant> = Vec::new();
        let mut listed = 0;
        for child in node.children.iter().flat_map(|children| &children.nodes) {
            match &*child.name.value {
                "variant" => {
                    listed += 1;
                    let variant = self.variant(child, &variants);
                    variants.extend(variant);
                }
                "description" => {
                    let text = self.text_node(child);
                    self.set_once(child, &mut description, text);
                }
                _ => self.unknown_node(child, "a union", &["variant", "description"]),
            }
        }
        if let Some(name) = name.as_ref().filter(|_| listed == 0) {
            self.error_help(
                name.span,
                format!("union {:?} has no variants", name.value),
                "for instance: variant \"text\" type=\"string\"",
            );
        }
        protocol.add_union(Union {
            name: self.declared_name(types, name),
            description,
            variants,
            at: At(Self::name_place(node)),
        });
    }

    /// `variant "circle" type="Circle"`. Nothing if its name is refused or taken by one before.
    fn variant(&mut self, node: &Node, before: &[Variant]) -> Option<Variant> {
        let name = self.name_argument(node, "variant", "\"text\" type=\"string\"");
        self.no_children(node);
        let typed = self.typed(node, false);
        let name = name?;
        if let Some(first) = before.iter().find(|known| known.name == name.value) {
            let first = first.at.name.0;
            self.duplicate(
                name.span,
                "variant",
                &name.value,
                first,
                "take one of them out, or rename it",
            );
            return None;
        }
        if before.len() >= MAX_MEMBERS {
            let message = format!("a union has at most {MAX_MEMBERS} variants");
            self.error(node.name.span, message);
            return None;
        }
        Some(Variant {
            name: name.value,
            ty: typed.ty,
            constraints: typed.constraints,
            description: typed.description,
            at: FieldPlaces {
                name: At(name.span),
                ..typed.at
            },
        })
    }

    fn typedef(&mut self, node: &Node, protocol: &mut Protocol, types: &mut Types) {
        let name = self.name_argument(node, "typedef", "\"RoomName\" type=\"string\"");
        self.no_children(node);
        let declared = self.typed(node, false);
        protocol.add_typedef(Typedef {
            name: self.declared_name(types, name),
            ty: declared.ty,
            constraints: declared.constraints,
            description: declared.description,
            at: declared.at,
        });
    }

    /// The name that a declaration takes. It is empty if that was refused: what is in the declaration is checked all the
    /// same.
    pub(super) fn declared_name(
        &mut self,
        types: &mut Types,
        name: Option<Spanned<String>>,
    ) -> String {
        let name = name.filter(|name| self.declare(types, name));
        name.map(|name| name.value).unwrap_or_default()
    }

    /// Takes a name for a type. Messages, enums, unions and typedefs share one set of names.
    fn declare(&mut self, types: &mut Types, name: &Spanned<String>) -> bool {
        let declared = self.take_name(types, name);
        if !declared {
            self.unusable.insert(name.value.clone());
        }
        declared
    }

    fn take_name(&mut self, types: &mut Types, name: &Spanned<String>) -> bool {
        if let Some(problem) = names::type_problem(&name.value) {
            self.error_help(name.span, problem, "choose another name");
            return false;
        }
        if types.by_code_name.len() >= MAX_MEMBERS {
            self.error(
                name.span,
                format!("a schema has at most {MAX_MEMBERS} types"),
            );
            return false;
        }
        let in_code = names::type_identifier(&name.value);
        match types.by_code_name.get(&in_code) {
            Some((known, first)) => {
                let (known, first) = (known.clone(), *first);
                if known == name.value {
                    let help = "give one of them another name; a message that several channels use is declared \
                                once with 'message' and then only named";
                    self.duplicate(name.span, "type", &name.value, first, help);
                } else {
                    let place = self.sources.diagnostic(first, "").place();
                    let message = format!(
                        "{:?} and {known:?} would both be called {in_code} in code",
                        name.value
                    );
                    self.error_with(name.span, message, |diagnostic| {
                        diagnostic
                            .note(format!("the other one is at {place}"))
                            .help("choose another name")
                    });
                }
                false
            }
            None => {
                types
                    .by_code_name
                    .insert(in_code, (name.value.clone(), name.span));
                true
            }
        }
    }
}

/// The names that types have taken so far.
#[derive(Default)]
pub(super) struct Types {
    /// By their name in code; with the name as written, and where.
    by_code_name: BTreeMap<String, (String, Span)>,
}
