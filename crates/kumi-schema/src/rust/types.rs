//! Messages as structs, enums and unions as enums, typedefs as aliases.
//!
//! A field that is neither required nor has a default is an `Option`; one with a default has its plain type and is
//! always written. A closed enum refuses values it does not list; an open one keeps them in its variant `Unknown`.
//! Unknown fields are ignored, so that a newer peer may add some.

use super::{Code, text};
use crate::check::{Circles, edges};
use crate::model::{Constraints, Enum, Field, Literal, Message, Type, Union, Variant};
use crate::names::{rust_identifier, snake_case, type_identifier};
use crate::shape::{Kind, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// Above this many arguments a function is called unreadable by the lints.
const MANY_ARGUMENTS: usize = 7;

/// Which messages and unions hold which, to know where a value has to be boxed and where a derive would run in circles.
struct Holds<'e> {
    /// Through single fields only.
    directly: Circles<'e>,
    /// Through arrays and maps as well.
    somehow: Circles<'e>,
}

impl Code<'_> {
    pub(super) fn types(&mut self) {
        let protocol = self.protocol;
        for typedef in &protocol.typedefs {
            let plain = format!("Another name for {}.", typedef.ty);
            self.doc(&[typedef.description.as_deref().unwrap_or(&plain)]);
            let (name, ty) = (type_identifier(&typedef.name), self.rust_type(&typedef.ty));
            self.line(format_args!("pub type {name} = {ty};"));
        }
        for declared in &protocol.enums {
            self.enumeration(declared);
        }
        let (directly, somehow) = (edges(protocol, |_| true), self.all_edges());
        let holds = Holds {
            directly: Circles::of(&directly),
            somehow: Circles::of(&somehow),
        };
        for union in &protocol.unions {
            self.union(union, &holds);
        }
        for message in &protocol.messages {
            self.message(message, &holds);
        }
    }

    fn all_edges(&self) -> BTreeMap<String, BTreeSet<String>> {
        let none = Constraints::default();
        let held = |ty: &Type| {
            let shape = Shape::of(self.protocol, ty, &none);
            shape.named().map(str::to_owned)
        };
        let messages = self.protocol.messages.iter().map(|message| {
            let fields = message.fields.iter();
            let held = fields.filter_map(|field| held(&field.ty)).collect();
            (message.name.clone(), held)
        });
        let unions = self.protocol.unions.iter().map(|union| {
            let variants = union.variants.iter();
            let held = variants.filter_map(|variant| held(&variant.ty)).collect();
            (union.name.clone(), held)
        });
        messages.chain(unions).collect()
    }

    pub(super) fn rust_type(&self, ty: &Type) -> String {
        let rt = self.rt;
        match ty {
            Type::String => "String".into(),
            Type::Int => "i64".into(),
            Type::Float => "f64".into(),
            Type::Bool => "bool".into(),
            Type::Timestamp => format!("{rt}::Timestamp"),
            Type::Bytes => "Vec<u8>".into(),
            Type::Json => format!("{rt}::Json"),
            Type::Array(item) => format!("Vec<{}>", self.rust_type(item)),
            Type::Map(item) => format!(
                "::std::collections::BTreeMap<String, {}>",
                self.rust_type(item)
            ),
            Type::Named(name) => type_identifier(name),
        }
    }

    /// Everything is derived through the runtime, so that the including crate needs no dependency of its own.
    fn derives(&mut self, more: &str) {
        let rt = self.rt;
        self.line(format_args!("#[derive(Clone, Debug, PartialEq{more})]"));
        self.line(format_args!(
            "#[derive({rt}::serde::Serialize, {rt}::serde::Deserialize)]"
        ));
        self.line(format_args!(
            "#[derive({rt}::rkyv::Archive, {rt}::rkyv::Serialize)]"
        ));
        self.line(format_args!("#[derive({rt}::rkyv::Deserialize)]"));
        self.line(format_args!("#[serde(crate = \"{rt}::serde\")]"));
        self.line(format_args!("#[rkyv(crate = {rt}::rkyv)]"));
    }

    fn enumeration(&mut self, declared: &Enum) {
        let name = type_identifier(&declared.name);
        let plain = format!("One of the values of {}.", declared.name);
        let policy = if declared.open {
            "Values that are not listed are kept as `Unknown`."
        } else {
            "A value that is not listed is refused."
        };
        self.doc(&[declared.description.as_deref().unwrap_or(&plain), policy]);
        self.derives(if declared.open {
            ", Eq, Hash"
        } else {
            ", Copy, Eq, Hash"
        });
        self.line(format_args!("#[allow(clippy::enum_variant_names)]"));
        self.line(format_args!("pub enum {name} {{"));
        for value in &declared.values {
            let plain = format!("`{}`", value.name);
            self.doc(&[value.description.as_deref().unwrap_or(&plain)]);
            self.line(format_args!("#[serde(rename = {})]", text(&value.name)));
            self.line(format_args!("{},", type_identifier(&value.name)));
        }
        if declared.open {
            self.doc(&["A value that the schema does not list, as it came."]);
            self.line(format_args!("#[serde(untagged)] Unknown(String),"));
        }
        self.line(format_args!("}}"));
        self.enum_methods(declared, &name);
    }

    fn enum_methods(&mut self, declared: &Enum, name: &str) {
        self.line(format_args!("impl {name} {{"));
        let variants: Vec<String> = declared
            .values
            .iter()
            .map(|value| format!("Self::{}", type_identifier(&value.name)))
            .collect();
        self.doc(&["The values that the schema lists, in its order."]);
        let count = variants.len();
        self.line(format_args!(
            "pub const LISTED: [Self; {count}] = [{}];",
            variants.join(", ")
        ));
        self.doc(&["The value as it travels."]);
        self.line(format_args!(
            "pub fn as_str(&self) -> &str {{ match self {{"
        ));
        for (value, variant) in declared.values.iter().zip(&variants) {
            self.line(format_args!("{variant} => {},", text(&value.name)));
        }
        if declared.open {
            self.line(format_args!("Self::Unknown(value) => value,"));
        }
        self.line(format_args!("}} }} }}"));
        self.line(format_args!(
            "impl ::core::fmt::Display for {name} {{ fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> \
             ::core::fmt::Result {{ f.write_str(self.as_str()) }} }}"
        ));
    }

    /// As `{"type": "circle", "value": ...}` in JSON. A union is closed: a variant that is not listed is an error of the
    /// reader, never a panic, so the enum is exhaustive.
    fn union(&mut self, union: &Union, holds: &Holds<'_>) {
        let name = type_identifier(&union.name);
        let plain = format!("One of the variants of {}.", union.name);
        self.doc(&[
            union.description.as_deref().unwrap_or(&plain),
            "A variant that is not listed is refused.",
        ]);
        self.derives("");
        self.line(format_args!(
            "#[serde(tag = \"type\", content = \"value\")]"
        ));
        if holds.somehow.holds_itself(&union.name) {
            self.recursive_bounds();
        }
        self.line(format_args!(
            "#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]"
        ));
        self.line(format_args!("pub enum {name} {{"));
        for variant in &union.variants {
            self.variant(union, variant, holds);
        }
        self.line(format_args!("}}"));
        self.line(format_args!("impl {name} {{"));
        self.validate_union(union);
        self.line(format_args!("}}"));
    }

    fn variant(&mut self, union: &Union, variant: &Variant, holds: &Holds<'_>) {
        let plain = format!("`{}`", variant.name);
        self.doc(&[variant.description.as_deref().unwrap_or(&plain)]);
        self.line(format_args!("#[serde(rename = {})]", text(&variant.name)));
        let shape = Shape::of(self.protocol, &variant.ty, &variant.constraints);
        let mut attributes = String::new();
        if holds_bytes(&shape) {
            attributes = format!("#[serde(with = \"{}::typed::base64_bytes\")] ", self.rt);
        }
        if let Some(held) = shape.named()
            && holds.somehow.leads_back(&union.name, held)
        {
            attributes.push_str("#[rkyv(omit_bounds)] ");
        }
        let ty = self.rust_type(&variant.ty);
        let ty = match self.protocol.resolve(&variant.ty).0 {
            Type::Named(held) if holds.directly.leads_back(&union.name, held) => {
                format!("Box<{ty}>")
            }
            _ => ty,
        };
        let name = type_identifier(&variant.name);
        self.line(format_args!("{name}({attributes}{ty}),"));
    }

    fn message(&mut self, message: &Message, holds: &Holds<'_>) {
        let name = type_identifier(&message.name);
        let plain = format!("Message {}.", message.name);
        self.doc(&[message.description.as_deref().unwrap_or(&plain)]);
        let defaults = message.fields.iter().any(|field| field.default.is_some());
        let demands = message
            .fields
            .iter()
            .any(|field| field.required && field.default.is_none());
        self.derives(if defaults || demands { "" } else { ", Default" });
        if holds.somehow.holds_itself(&message.name) {
            self.recursive_bounds();
        }
        self.line(format_args!("pub struct {name} {{"));
        for field in &message.fields {
            self.field(message, field, holds);
        }
        self.line(format_args!("}}"));
        let constrained = self.is_constrained(message);
        if demands || defaults || constrained {
            self.line(format_args!("impl {name} {{"));
            if demands {
                self.constructor(message, holds);
            }
            for field in &message.fields {
                self.default_function(field);
            }
            if constrained {
                self.validate(message);
            }
            self.line(format_args!("}}"));
        }
        if defaults && !demands {
            self.default_impl(message, &name);
        }
        let (rt, wire_name) = (self.rt, text(&message.name));
        let free = if constrained { "" } else { ", unconstrained" };
        self.line(format_args!(
            "{rt}::typed_message!({name}, {wire_name}{free});"
        ));
    }

    /// A type that holds itself cannot have its bounds inferred; these are what any archive offers.
    fn recursive_bounds(&mut self) {
        let rt = self.rt;
        self.line(format_args!(
            "#[rkyv(serialize_bounds(__S: {rt}::rkyv::ser::Writer + {rt}::rkyv::ser::Allocator, \
             __S::Error: {rt}::rkyv::rancor::Source))]"
        ));
        self.line(format_args!(
            "#[rkyv(deserialize_bounds(__D::Error: {rt}::rkyv::rancor::Source))]"
        ));
        self.line(format_args!(
            "#[rkyv(bytecheck(bounds(__C: {rt}::rkyv::validation::ArchiveContext, \
             __C::Error: {rt}::rkyv::rancor::Source)))]"
        ));
    }

    fn field(&mut self, message: &Message, field: &Field, holds: &Holds<'_>) {
        let shape = Shape::of(self.protocol, &field.ty, &field.constraints);
        let plain = format!("Field {}.", field.name);
        self.doc(&[field.description.as_deref().unwrap_or(&plain)]);
        let mut serde = Vec::new();
        let identifier = rust_identifier(&field.name);
        if identifier.trim_start_matches("r#") != field.name {
            serde.push(format!("rename = {}", text(&field.name)));
        }
        if field.is_optional() {
            serde.push("default".into());
            serde.push("skip_serializing_if = \"Option::is_none\"".into());
        } else if !field.required {
            let owner = type_identifier(&message.name);
            serde.push(format!(
                "default = \"{owner}::default_{}\"",
                snake_case(&field.name)
            ));
        }
        if holds_bytes(&shape) {
            serde.push(format!("with = \"{}::typed::base64_bytes\"", self.rt));
        }
        if !serde.is_empty() {
            self.line(format_args!("#[serde({})]", serde.join(", ")));
        }
        if let Some(held) = shape.named()
            && holds.somehow.leads_back(&message.name, held)
        {
            self.line(format_args!("#[rkyv(omit_bounds)]"));
        }
        let ty = self.field_type(message, field, holds);
        self.line(format_args!("pub {identifier}: {ty},"));
    }

    fn field_type(&self, message: &Message, field: &Field, holds: &Holds<'_>) -> String {
        let ty = self.rust_type(&field.ty);
        if !field.is_optional() {
            return ty;
        }
        let boxed = match self.protocol.resolve(&field.ty).0 {
            Type::Named(held) => holds.directly.leads_back(&message.name, held),
            _ => false,
        };
        if boxed {
            format!("Option<Box<{ty}>>")
        } else {
            format!("Option<{ty}>")
        }
    }

    /// `new` takes what has to be there, and leaves out the rest.
    fn constructor(&mut self, message: &Message, holds: &Holds<'_>) {
        let demanded: Vec<&Field> = message
            .fields
            .iter()
            .filter(|field| field.required && field.default.is_none())
            .collect();
        let arguments: Vec<String> = demanded
            .iter()
            .map(|field| {
                let ty = match self.protocol.resolve(&field.ty).0 {
                    Type::String => {
                        let into = self.prelude("Into", "::core::convert::Into");
                        format!("impl {into}<String>")
                    }
                    _ => self.field_type(message, field, holds),
                };
                format!("{}: {ty}", rust_identifier(&field.name))
            })
            .collect();
        let values: Vec<String> = message
            .fields
            .iter()
            .map(|field| self.initial(field))
            .collect();
        self.doc(&["A message with what it has to have, and nothing else."]);
        if demanded.len() > MANY_ARGUMENTS {
            self.line(format_args!("#[allow(clippy::too_many_arguments)]"));
        }
        self.line(format_args!(
            "pub fn new({}) -> Self {{ Self {{ {} }} }}",
            arguments.join(", "),
            values.join(", ")
        ));
    }

    /// What `new` gives a field: its argument, its default or nothing.
    fn initial(&self, field: &Field) -> String {
        let identifier = rust_identifier(&field.name);
        let demanded = field.required && field.default.is_none();
        match self.protocol.resolve(&field.ty).0 {
            Type::String if demanded => format!("{identifier}: {identifier}.into()"),
            _ if demanded => identifier,
            _ if field.default.is_some() => {
                format!("{identifier}: Self::default_{}()", snake_case(&field.name))
            }
            _ => format!("{identifier}: None"),
        }
    }

    fn default_function(&mut self, field: &Field) {
        let Some(default) = &field.default else {
            return;
        };
        let ty = self.rust_type(&field.ty);
        let value = self.literal(field, default);
        self.line(format_args!(
            "fn default_{}() -> {ty} {{ {value} }}",
            snake_case(&field.name)
        ));
    }

    fn default_impl(&mut self, message: &Message, name: &str) {
        let values: Vec<String> = message
            .fields
            .iter()
            .map(|field| self.initial(field))
            .collect();
        self.line(format_args!(
            "impl Default for {name} {{ fn default() -> Self {{ Self {{ {} }} }} }}",
            values.join(", ")
        ));
    }

    fn literal(&self, field: &Field, literal: &Literal) -> String {
        let base = self.protocol.resolve(&field.ty).0;
        match (literal, base) {
            (Literal::String(value), Type::Named(declared)) => {
                format!("{}::{}", type_identifier(declared), type_identifier(value))
            }
            (Literal::String(value), _) => format!("{}.to_owned()", text(value)),
            (Literal::Int(number), Type::Timestamp) => format!("{}::Timestamp({number})", self.rt),
            (Literal::Int(number), _) => number.to_string(),
            (Literal::Float(number), _) => format!("{number:?}"),
            (Literal::Bool(truth), _) => truth.to_string(),
        }
    }
}

fn holds_bytes(shape: &Shape) -> bool {
    match &shape.kind {
        Kind::Bytes => true,
        Kind::Array(item) | Kind::Map(item) => holds_bytes(item),
        _ => false,
    }
}
