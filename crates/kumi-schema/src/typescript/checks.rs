//! Functions that refuse messages that break their constraints, with the path of the field at fault.

use super::types::literal;
use super::{Writer, member, text};
use crate::model::{Message, Protocol};
use crate::names::{pascal_case, type_identifier};
use crate::pattern::for_javascript;
use crate::shape::{Kind, Shape};
use std::collections::BTreeSet;

pub(super) fn write(out: &mut Writer, protocol: &Protocol) {
    let error = error_name(protocol);
    out.blank();
    out.doc(Some(
        "A message that breaks a constraint of its schema. It was not sent.",
    ));
    out.line(&format!("export class {error} extends Error {{"));
    out.doc(Some("The field at fault, such as `users[3].name`."));
    out.line("readonly path: string;");
    out.line("constructor(path: string, problem: string) {");
    out.line("super(`${path}: ${problem}`);");
    out.line(&format!("this.name = {};", text(&error)));
    out.line("this.path = path;");
    out.line("}");
    out.line("}");
    let checked = checked(protocol);
    for message in &protocol.messages {
        if checked.contains(&*message.name) {
            write_check(out, protocol, message, &checked);
        }
    }
}

pub(super) fn error_name(protocol: &Protocol) -> String {
    format!("{}InvalidMessage", pascal_case(&protocol.name))
}

/// Messages that have something to check, in themselves or in what they hold.
pub(super) fn checked(protocol: &Protocol) -> BTreeSet<&str> {
    let mut checked: BTreeSet<&str> = BTreeSet::new();
    loop {
        let before = checked.len();
        for message in &protocol.messages {
            let needs = message.fields.iter().any(|field| {
                needs_check(
                    &Shape::of(protocol, &field.ty, &field.constraints),
                    &checked,
                )
            });
            if needs {
                checked.insert(&message.name);
            }
        }
        if checked.len() == before {
            return checked;
        }
    }
}

fn needs_check(shape: &Shape, checked: &BTreeSet<&str>) -> bool {
    !shape.is_unconstrained()
        || match &shape.kind {
            Kind::Array(item) | Kind::Map(item) => needs_check(item, checked),
            Kind::Message(name) => checked.contains(&**name),
            // What is not finite has no place in JSON.
            Kind::Float => true,
            _ => false,
        }
}

fn write_check(out: &mut Writer, protocol: &Protocol, message: &Message, checked: &BTreeSet<&str>) {
    let name = type_identifier(&message.name);
    out.blank();
    out.doc(Some(&format!(
        "Throws {} if a value breaks its constraints.",
        error_name(protocol)
    )));
    out.line(&format!(
        "export function check{name}(value: {name}, path = \"\"): void {{"
    ));
    for field in &message.fields {
        let shape = Shape::of(protocol, &field.ty, &field.constraints);
        if !needs_check(&shape, checked) {
            continue;
        }
        let value = member("value", &field.name);
        let path = format!("${{path}}{}", field.name);
        if field.required {
            out.line("{");
            out.line(&format!("const field = {value};"));
        } else {
            out.line("{");
            out.line(&format!("const field = {value};"));
            out.line("if (field !== undefined) {");
        }
        write_shape(out, protocol, &shape, "field", &path, 0, checked);
        if !field.required {
            out.line("}");
        }
        out.line("}");
    }
    out.line("}");
}

fn write_shape(
    out: &mut Writer,
    protocol: &Protocol,
    shape: &Shape,
    value: &str,
    path: &str,
    depth: usize,
    checked: &BTreeSet<&str>,
) {
    let error = error_name(protocol);
    let mut refuse = |condition: String, problem: String| {
        out.line(&format!("if ({condition}) {{"));
        out.line(&format!("throw new {error}(`{path}`, {});", text(&problem)));
        out.line("}");
    };
    if matches!(shape.kind, Kind::Float) {
        refuse(
            format!("!Number.isFinite({value})"),
            "it is not a number that can be sent".into(),
        );
    }
    if let Some(min) = &shape.min {
        refuse(
            format!("!({value} >= {})", literal(min)),
            format!("it is less than {min}"),
        );
    }
    if let Some(max) = &shape.max {
        refuse(
            format!("!({value} <= {})", literal(max)),
            format!("it is more than {max}"),
        );
    }
    let length = match &shape.kind {
        Kind::String => format!("[...{value}].length"),
        // Base64: four characters for three bytes, less the padding.
        Kind::Bytes => format!("({value}.length / 4) * 3 - ({value}.match(/=/g) ?? []).length"),
        Kind::Map(_) => format!("Object.keys({value}).length"),
        _ => format!("{value}.length"),
    };
    if let Some(least) = shape.min_length {
        refuse(
            format!("{length} < {least}"),
            format!("it is shorter than {least}"),
        );
    }
    if let Some(most) = shape.max_length {
        refuse(
            format!("{length} > {most}"),
            format!("it is longer than {most}"),
        );
    }
    for pattern in &shape.patterns {
        refuse(
            format!(
                "!new RegExp({}, \"u\").test({value})",
                text(&for_javascript(pattern))
            ),
            format!("it does not match {pattern}"),
        );
    }
    match &shape.kind {
        Kind::Array(item) if needs_check(item, checked) => {
            let (each, index) = (format!("item{depth}"), format!("index{depth}"));
            out.line(&format!(
                "for (const [{index}, {each}] of {value}.entries()) {{"
            ));
            let path = format!("{path}[${{{index}}}]");
            write_shape(out, protocol, item, &each, &path, depth + 1, checked);
            out.line("}");
        }
        Kind::Map(item) if needs_check(item, checked) => {
            let (each, key) = (format!("item{depth}"), format!("key{depth}"));
            out.line(&format!(
                "for (const [{key}, {each}] of Object.entries({value})) {{"
            ));
            let path = format!("{path}[${{JSON.stringify({key})}}]");
            write_shape(out, protocol, item, &each, &path, depth + 1, checked);
            out.line("}");
        }
        Kind::Message(name) if checked.contains(&**name) => {
            out.line(&format!(
                "check{}({value}, `{path}.`);",
                type_identifier(name)
            ));
        }
        _ => {}
    }
}
