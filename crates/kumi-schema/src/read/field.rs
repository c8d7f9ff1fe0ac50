//! Fields, variants and typedefs: a type, and what values have to fulfil.

use super::Reader;
use super::node::Properties;
use crate::limits::MAX_MEMBERS;
use crate::model::{At, Constraints, Field, FieldPlaces, Literal, Type};
use kumi_kdl::{Node, Scalar};

/// What fields, variants and typedefs have in common.
pub(super) struct Typed {
    pub(super) ty: Type,
    pub(super) required: bool,
    pub(super) default: Option<Literal>,
    pub(super) constraints: Constraints,
    pub(super) description: Option<String>,
    pub(super) at: FieldPlaces,
}

const OF_TYPEDEF: &[&str] = &[
    "type",
    "item_type",
    "min",
    "max",
    "min_length",
    "max_length",
    "pattern",
    "description",
];
const OF_FIELD: &[&str] = &[
    "type",
    "required",
    "default",
    "min",
    "max",
    "min_length",
    "max_length",
    "pattern",
    "item_type",
    "description",
];

impl Reader {
    /// The fields of a node's block, which may also hold a description, and nodes that are read elsewhere.
    pub(super) fn fields(
        &mut self,
        node: &Node,
        description: &mut Option<String>,
        others: &[&str],
        place: &str,
    ) -> Vec<Field> {
        let mut fields: Vec<Field> = Vec::new();
        for child in node.children.iter().flat_map(|children| &children.nodes) {
            match &*child.name.value {
                "field" => {
                    let mut field = self.field(child);
                    let mut named = fields.iter().filter(|known| !known.name.is_empty());
                    if let Some(first) = named.find(|known| known.name == field.name) {
                        let (first, here) = (first.at.name.0, field.at.name.0);
                        self.duplicate(
                            here,
                            "field",
                            &field.name,
                            first,
                            "take one of them out, or rename it",
                        );
                        // Without a name, its type and constraints are checked all the same.
                        field.name.clear();
                    }
                    if fields.len() >= MAX_MEMBERS {
                        let message = format!("a message has at most {MAX_MEMBERS} fields");
                        self.error(child.name.span, message);
                        break;
                    }
                    fields.push(field);
                }
                "description" => {
                    let text = self.text_node(child);
                    if description.is_some() {
                        self.error(child.name.span, "'description' is given twice");
                    }
                    *description = text.or(description.take());
                }
                other if others.contains(&other) => {}
                _ => {
                    let mut known = vec!["field", "description"];
                    known.extend(others);
                    self.unknown_node(child, place, &known);
                }
            }
        }
        fields
    }

    fn field(&mut self, node: &Node) -> Field {
        let name = self.name_argument(node, "field", "\"text\" type=\"string\"");
        self.no_children(node);
        let typed = self.typed(node, true);
        // Without a usable name, its type and constraints are checked all the same.
        let (name, place) = match name {
            Some(name) => (name.value, At(name.span)),
            None => (String::new(), typed.at.name),
        };
        Field {
            name,
            ty: typed.ty,
            required: typed.required,
            default: typed.default,
            constraints: typed.constraints,
            description: typed.description,
            at: FieldPlaces {
                name: place,
                ..typed.at
            },
        }
    }

    /// Type and constraints of a field, a variant or a typedef. A type that was refused has an empty name.
    pub(super) fn typed(&mut self, node: &Node, is_field: bool) -> Typed {
        let known = if is_field { OF_FIELD } else { OF_TYPEDEF };
        let properties = self.properties(node, known);
        let place = |name: &str| {
            let value = properties.get(name);
            At(value.map_or(node.name.span, |value| value.span))
        };
        let name_place = At(node
            .arguments
            .first()
            .map_or(node.name.span, |name| name.span));
        let at = FieldPlaces {
            name: name_place,
            ty: place("type"),
            item_type: place("item_type"),
            default: place("default"),
            min: place("min"),
            max: place("max"),
            min_length: place("min_length"),
            max_length: place("max_length"),
            pattern: place("pattern"),
        };
        let ty = self.type_of(node, &properties);
        Typed {
            required: self.truth(&properties, "required"),
            default: self.literal(&properties, "default"),
            constraints: Constraints {
                min: self.number(&properties, "min"),
                max: self.number(&properties, "max"),
                min_length: self.length(&properties, "min_length"),
                max_length: self.length(&properties, "max_length"),
                pattern: self.text(&properties, "pattern").map(|text| text.value),
            },
            description: self.text(&properties, "description").map(|text| text.value),
            at,
            ty: ty.unwrap_or(Type::Named(String::new())),
        }
    }

    fn type_of(&mut self, node: &Node, properties: &Properties<'_>) -> Option<Type> {
        let item = self.text(properties, "item_type");
        if properties.get("type").is_none() {
            self.error_help(
                node.name.span,
                format!("this {} has no type", node.name.value),
                "for instance: type=\"string\"",
            );
            return None;
        }
        let text = self.text(properties, "type")?;
        for empty in [Some(&text), item.as_ref()].into_iter().flatten() {
            if empty.value.is_empty() {
                self.error(empty.span, "there is no type \"\"");
            }
        }
        let ty = match &*text.value {
            "array" | "map" => {
                let item = match item {
                    None => Type::Json,
                    Some(item) if matches!(&*item.value, "array" | "map") => {
                        self.error_help(
                            item.span,
                            format!("item_type cannot be {:?}", item.value),
                            "give the inner one a name: typedef \"Row\" type=\"array\" item_type=\"int\"",
                        );
                        return None;
                    }
                    Some(item) => scalar_type(&item.value),
                };
                return Some(match &*text.value {
                    "array" => Type::Array(Box::new(item)),
                    _ => Type::Map(Box::new(item)),
                });
            }
            other => scalar_type(other),
        };
        if let Some(item) = item {
            self.error_help(
                item.span,
                format!("{:?} has no items", text.value),
                "item_type belongs to type=\"array\" and type=\"map\"",
            );
        }
        Some(ty)
    }

    fn literal(&mut self, properties: &Properties<'_>, name: &str) -> Option<Literal> {
        let value = properties.get(name)?;
        match &value.scalar {
            Scalar::String(text) => Some(Literal::String(text.clone())),
            Scalar::Bool(truth) => Some(Literal::Bool(*truth)),
            Scalar::Integer(_) | Scalar::Float(_) => self.number(properties, name),
            Scalar::Null => {
                self.error_help(
                    value.span,
                    format!("{name} cannot be #null"),
                    "leave it out: a field that is not required may be missing",
                );
                None
            }
        }
    }

    fn number(&mut self, properties: &Properties<'_>, name: &str) -> Option<Literal> {
        let value = properties.get(name)?;
        match value.scalar {
            Scalar::Integer(number) => match i64::try_from(number) {
                Ok(number) => Some(Literal::Int(number)),
                Err(_) => {
                    self.error(value.span, format!("{name} does not fit into 64 bits"));
                    None
                }
            },
            Scalar::Float(number) if number.is_finite() => Some(Literal::Float(number)),
            Scalar::Float(_) => {
                self.error_help(
                    value.span,
                    format!("{name} is not a finite number"),
                    "leave it out when there is no bound",
                );
                None
            }
            ref other => {
                self.error(
                    value.span,
                    format!("{name} is a number, not {}", other.kind()),
                );
                None
            }
        }
    }

    fn length(&mut self, properties: &Properties<'_>, name: &str) -> Option<u64> {
        let value = properties.get(name)?;
        let length = match value.scalar {
            Scalar::Integer(number) => u64::try_from(number)
                .ok()
                .filter(|&length| length <= MAX_LENGTH),
            _ => None,
        };
        if length.is_none() {
            let message = format!("{name} is a whole number from 0 to {MAX_LENGTH}");
            self.error(value.span, message);
        }
        length
    }
}

/// A message has at most 8 MiB, so no length above this can be reached; it also fits every language's numbers.
const MAX_LENGTH: u64 = 1 << 32;

fn scalar_type(name: &str) -> Type {
    match name {
        "string" => Type::String,
        "int" => Type::Int,
        "float" | "number" => Type::Float,
        "bool" => Type::Bool,
        "timestamp" => Type::Timestamp,
        "bytes" => Type::Bytes,
        "json" => Type::Json,
        other => Type::Named(other.to_owned()),
    }
}
