//! What the checks of a schema are made of: a shape for each message and union, which the runtime checks values by.

use super::types::literal;
use super::{WIDTH, Writer, property, text};
use crate::model::{Field, Message, Protocol, Union};
use crate::names::{shouting_case, type_identifier};
use crate::pattern::for_javascript;
use crate::shape::{Kind, Patterns, Shape};

pub(super) fn write(out: &mut Writer, protocol: &Protocol) {
    let patterns = Patterns::of(protocol);
    if !patterns.is_empty() {
        out.blank();
    }
    for (name, pattern) in patterns.iter() {
        let expression = text(&for_javascript(pattern));
        out.line(&format!(
            "const {name} = [{}, new RegExp({expression}, \"u\")] as const;",
            text(pattern)
        ));
    }
    let checks = Checks { protocol, patterns };
    out.blank();
    for message in &protocol.messages {
        checks.message(out, message);
    }
    for union in &protocol.unions {
        checks.union(out, union);
    }
}

struct Checks<'p> {
    protocol: &'p Protocol,
    patterns: Patterns,
}

impl Checks<'_> {
    fn message(&self, out: &mut Writer, message: &Message) {
        let name = type_identifier(&message.name);
        let fields: Vec<String> = message
            .fields
            .iter()
            .map(|field| format!("{}: {}", property(&field.name), self.field(field)))
            .collect();
        let open = format!("export const check{name}: unison.Check<{name}> = unison.message({{");
        out.lines.list(&open, &fields, "});", WIDTH);
    }

    fn union(&self, out: &mut Writer, union: &Union) {
        let name = type_identifier(&union.name);
        let variants: Vec<String> = union
            .variants
            .iter()
            .map(|variant| {
                let shape = Shape::of(self.protocol, &variant.ty, &variant.constraints);
                format!("{}: {}", property(&variant.name), self.shape(&shape))
            })
            .collect();
        let open = format!(
            "export const check{name}: unison.Check<{name}> = unison.union({}, {{",
            text(&union.name)
        );
        out.lines.list(&open, &variants, "});", WIDTH);
    }

    /// As in Rust: what has a default may be missing, and what has none may also be null.
    fn field(&self, field: &Field) -> String {
        let shape = self.shape(&Shape::of(self.protocol, &field.ty, &field.constraints));
        match (field.required, &field.default) {
            (true, _) => shape,
            (false, Some(_)) => format!("unison.defaulted({shape})"),
            (false, None) => format!("unison.optional({shape})"),
        }
    }

    fn shape(&self, shape: &Shape) -> String {
        let (function, mut arguments) = match &shape.kind {
            Kind::String => ("text", Vec::new()),
            Kind::Int | Kind::Timestamp => ("int", Vec::new()),
            Kind::Float => ("float", Vec::new()),
            Kind::Bool => ("bool", Vec::new()),
            Kind::Bytes => ("bytes", Vec::new()),
            Kind::Json => ("json", Vec::new()),
            Kind::Array(item) => ("array", vec![self.shape(item)]),
            Kind::Map(item) => ("map", vec![self.shape(item)]),
            Kind::Enum(name) => {
                let declared = self.protocol.enumeration(name);
                if declared.is_some_and(|declared| declared.open) {
                    ("text", Vec::new())
                } else {
                    let values = format!("{}_VALUES", shouting_case(name));
                    ("oneOf", vec![text(name), values])
                }
            }
            Kind::Message(name) | Kind::Union(name) => (
                "held",
                vec![format!("() => check{}", type_identifier(name))],
            ),
        };
        arguments.extend(self.limits(shape));
        format!("unison.{function}({})", arguments.join(", "))
    }

    /// The constraints of a shape, if it has some.
    fn limits(&self, shape: &Shape) -> Option<String> {
        let patterns: Vec<String> = shape
            .patterns
            .iter()
            .map(|pattern| self.patterns.name(pattern))
            .collect();
        let limits: Vec<String> = [
            shape
                .min
                .as_ref()
                .map(|min| format!("min: {}", literal(min))),
            shape
                .max
                .as_ref()
                .map(|max| format!("max: {}", literal(max))),
            shape.min_length.map(|least| format!("minLength: {least}")),
            shape.max_length.map(|most| format!("maxLength: {most}")),
            (!patterns.is_empty()).then(|| format!("patterns: [{}]", patterns.join(", "))),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!limits.is_empty()).then(|| format!("{{ {} }}", limits.join(", ")))
    }
}
