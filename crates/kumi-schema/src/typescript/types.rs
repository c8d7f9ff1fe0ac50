//! Messages as interfaces, enums as unions of texts, unions as unions of objects that their `type` tells apart, typedefs as other names, defaults as constants.

use super::{Writer, property, text};
use crate::model::{Enum, Field, Literal, Message, Protocol, Type, Union};
use crate::names::{shouting_case, type_identifier};

pub(super) fn write(out: &mut Writer, protocol: &Protocol) {
    if !protocol.typedefs.is_empty() {
        out.blank();
    }
    for typedef in &protocol.typedefs {
        out.doc(typedef.description.as_deref());
        let name = type_identifier(&typedef.name);
        out.line(&format!("export type {name} = {};", type_text(&typedef.ty)));
    }
    for declared in &protocol.enums {
        write_enum(out, declared);
    }
    for union in &protocol.unions {
        write_union(out, union);
    }
    for message in &protocol.messages {
        write_message(out, message);
    }
}

fn type_text(ty: &Type) -> String {
    match ty {
        Type::String | Type::Bytes => "string".into(),
        Type::Int | Type::Float | Type::Timestamp => "number".into(),
        Type::Bool => "boolean".into(),
        Type::Json => "unison.Json".into(),
        Type::Array(item) => format!("{}[]", type_text(item)),
        Type::Map(item) => format!("{{ [key: string]: {} }}", type_text(item)),
        Type::Named(name) => type_identifier(name),
    }
}

fn write_enum(out: &mut Writer, declared: &Enum) {
    let name = type_identifier(&declared.name);
    let mut lines: Vec<String> = declared.description.iter().cloned().collect();
    if declared.open {
        lines.push("Open: a newer peer may send values that are not listed.".into());
    }
    lines.extend(declared.values.iter().filter_map(|value| {
        let description = value.description.as_ref()?;
        Some(format!(
            "- `{}`: {}",
            value.name,
            super::one_line(description)
        ))
    }));
    out.blank();
    out.doc(Some(&lines.join("\n")));
    let mut values: Vec<String> = declared
        .values
        .iter()
        .map(|value| text(&value.name))
        .collect();
    if declared.open {
        // Keeps the listed values as suggestions although any text is allowed.
        values.push("(string & {})".into());
    }
    out.line(&format!("export type {name} = {};", values.join(" | ")));
    let listed: Vec<String> = declared
        .values
        .iter()
        .map(|value| text(&value.name))
        .collect();
    out.line(&format!(
        "export const {}_VALUES = [{}] as const;",
        shouting_case(&declared.name),
        listed.join(", ")
    ));
}

fn write_union(out: &mut Writer, union: &Union) {
    let name = type_identifier(&union.name);
    let mut lines: Vec<String> = union.description.iter().cloned().collect();
    lines.extend(union.variants.iter().filter_map(|variant| {
        let description = variant.description.as_ref()?;
        Some(format!(
            "- `{}`: {}",
            variant.name,
            super::one_line(description)
        ))
    }));
    out.blank();
    out.doc(Some(&lines.join("\n")));
    out.line(&format!("export type {name} ="));
    for (index, variant) in union.variants.iter().enumerate() {
        let end = match index + 1 == union.variants.len() {
            true => ";",
            false => "",
        };
        out.raw(&format!(
            "  | {{ type: {}; value: {} }}{end}",
            text(&variant.name),
            type_text(&variant.ty)
        ));
    }
}

fn write_message(out: &mut Writer, message: &Message) {
    let name = type_identifier(&message.name);
    out.blank();
    out.doc(message.description.as_deref());
    if message.fields.is_empty() {
        out.line(&format!("export type {name} = {{ [key: string]: never }};"));
        return;
    }
    out.line(&format!("export interface {name} {{"));
    for field in &message.fields {
        out.doc(field_doc(field).as_deref());
        let mark = if field.required { "" } else { "?" };
        out.line(&format!(
            "{}{mark}: {};",
            property(&field.name),
            type_text(&field.ty)
        ));
    }
    out.line("}");
    let defaults: Vec<&Field> = message
        .fields
        .iter()
        .filter(|field| field.default.is_some())
        .collect();
    if defaults.is_empty() {
        return;
    }
    out.blank();
    out.doc(Some(&format!(
        "What fields of {name} mean when they are missing."
    )));
    out.line(&format!(
        "export const {}_DEFAULTS = {{",
        shouting_case(&message.name)
    ));
    for field in defaults {
        if let Some(default) = &field.default {
            out.line(&format!("{}: {},", property(&field.name), literal(default)));
        }
    }
    out.line("} as const;");
}

fn field_doc(field: &Field) -> Option<String> {
    let mut lines: Vec<String> = field.description.iter().cloned().collect();
    match field.ty {
        Type::Timestamp => lines.push("Milliseconds since 1970-01-01 UTC.".into()),
        Type::Bytes => lines.push("Base64.".into()),
        _ => {}
    }
    if let Some(default) = &field.default {
        lines.push(format!("Default: {}.", super::one_line(&literal(default))));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

pub(super) fn literal(literal: &Literal) -> String {
    match literal {
        Literal::String(value) => text(value),
        Literal::Int(number) => number.to_string(),
        Literal::Float(number) => format!("{number:?}"),
        Literal::Bool(truth) => truth.to_string(),
    }
}
