//! Messages as structs, enums and unions as enums, typedefs as aliases.
//!
//! A field that is neither required nor has a default is an `Option`; one with a default has its plain type and is
//! always written. A closed enum refuses values it does not list; an open one keeps them in its variant `Unknown`.
//! Unknown fields are ignored, so that a newer peer may add some.

use super::{Code, WIDTH, text};
use crate::check::{Circles, edges};
use crate::model::{Enum, Field, Literal, Message, Type, Union, Variant};
use crate::names::{rust_identifier, snake_case, type_identifier};
use crate::shape::{Kind, Shape};

impl Code<'_> {
    pub(super) fn types(&mut self) {
        let protocol = self.protocol;
        self.patterns();
        if !protocol.typedefs.is_empty() {
            self.out.blank();
        }
        for typedef in &protocol.typedefs {
            self.described(&typedef.description);
            let (name, ty) = (type_identifier(&typedef.name), self.rust_type(&typedef.ty));
            self.line(&format!("pub type {name} = {ty};"));
        }
        self.table("typed_enums", &protocol.enums, Self::enumeration);
        let edges = edges(protocol, |_| true);
        let circles = Circles::of(&edges);
        self.table("typed_unions", &protocol.unions, |code, union| {
            code.union(union, &circles);
        });
        self.table("typed_messages", &protocol.messages, |code, message| {
            code.message(message, &circles);
        });
        for message in &protocol.messages {
            self.constructors(message, &circles);
        }
    }

    /// The items of one kind, for the macro that declares them.
    fn table<T>(&mut self, name: &str, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        if items.is_empty() {
            return;
        }
        self.out.blank();
        self.line(&format!("unison::{name}! {{"));
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.blank();
            }
            write(self, item);
        }
        self.line("}");
    }

    pub(super) fn rust_type(&self, ty: &Type) -> String {
        match ty {
            Type::String => "String".into(),
            Type::Int => "i64".into(),
            Type::Float => "f64".into(),
            Type::Bool => "bool".into(),
            Type::Timestamp => "unison::Timestamp".into(),
            Type::Bytes => "Vec<u8>".into(),
            Type::Json => "unison::Json".into(),
            Type::Array(item) => format!("Vec<{}>", self.rust_type(item)),
            Type::Map(item) => format!(
                "::std::collections::BTreeMap<String, {}>",
                self.rust_type(item)
            ),
            Type::Named(name) => type_identifier(name),
        }
    }

    fn enumeration(&mut self, declared: &Enum) {
        self.described(&declared.description);
        let name = type_identifier(&declared.name);
        let mut values: Vec<String> = declared
            .values
            .iter()
            .map(|value| format!("{} = {}", type_identifier(&value.name), text(&value.name)))
            .collect();
        let is_described = declared
            .values
            .iter()
            .any(|value| value.description.is_some());
        if !is_described {
            values.extend(declared.open.then(|| "..Unknown".into()));
            return self
                .out
                .list(&format!("pub enum {name} {{"), &values, "}", WIDTH);
        }
        self.line(&format!("pub enum {name} {{"));
        for (value, line) in declared.values.iter().zip(values) {
            self.described(&value.description);
            self.line(&format!("{line},"));
        }
        if declared.open {
            self.line("..Unknown");
        }
        self.line("}");
    }

    fn union(&mut self, union: &Union, circles: &Circles<'_>) {
        self.described(&union.description);
        self.line(&format!("pub enum {} {{", type_identifier(&union.name)));
        for variant in &union.variants {
            self.variant(union, variant, circles);
        }
        self.line("}");
    }

    fn variant(&mut self, union: &Union, variant: &Variant, circles: &Circles<'_>) {
        self.described(&variant.description);
        let shape = Shape::of(self.protocol, &variant.ty, &variant.constraints);
        if let Some(rule) = self.rule(&shape) {
            self.line(&format!("#[check({rule})]"));
        }
        let attribute = match holds_bytes(&shape) {
            true => format!("#[serde({BASE64})] "),
            false => String::new(),
        };
        let ty = self.rust_type(&variant.ty);
        let ty = match self.protocol.resolve(&variant.ty).0 {
            Type::Named(held) if circles.leads_back(&union.name, held) => format!("Box<{ty}>"),
            _ => ty,
        };
        let name = type_identifier(&variant.name);
        self.line(&format!(
            "{name}({attribute}{ty}) = {},",
            text(&variant.name)
        ));
    }

    fn message(&mut self, message: &Message, circles: &Circles<'_>) {
        self.described(&message.description);
        let name = type_identifier(&message.name);
        if name != message.name {
            self.line(&format!("#[name = {}]", text(&message.name)));
        }
        if !demands(message) && !defaults(message) {
            self.line("#[derive(Default)]");
        } else if reads_as_default(message) {
            self.line("#[serde(default)]");
        }
        if message.fields.is_empty() {
            return self.line(&format!("pub struct {name} {{}}"));
        }
        self.line(&format!("pub struct {name} {{"));
        for field in &message.fields {
            self.field(message, field, circles);
        }
        self.line("}");
    }

    fn field(&mut self, message: &Message, field: &Field, circles: &Circles<'_>) {
        let shape = Shape::of(self.protocol, &field.ty, &field.constraints);
        self.described(&field.description);
        let identifier = rust_identifier(&field.name);
        if identifier.trim_start_matches("r#") != field.name {
            self.line(&format!("#[name = {}]", text(&field.name)));
        }
        let mut serde = Vec::new();
        if field.is_optional() {
            if holds_bytes(&shape) {
                serde.push("default".to_owned());
            }
            serde.push("skip_serializing_if = \"Option::is_none\"".into());
        } else if has_default_function(message, field) {
            serde.push(format!(
                "default = \"{}::default_{}\"",
                type_identifier(&message.name),
                snake_case(&field.name)
            ));
        }
        if holds_bytes(&shape) {
            serde.push(BASE64.into());
        }
        if !serde.is_empty() {
            self.out.list("#[serde(", &serde, ")]", WIDTH);
        }
        if let Some(rule) = self.rule(&shape) {
            let rule = match field.is_optional() {
                true => format!("some({rule})"),
                false => rule,
            };
            self.line(&format!("#[check({rule})]"));
        }
        let ty = self.field_type(message, field, circles);
        self.line(&format!("pub {identifier}: {ty},"));
    }

    fn field_type(&self, message: &Message, field: &Field, circles: &Circles<'_>) -> String {
        let ty = self.rust_type(&field.ty);
        if !field.is_optional() {
            return ty;
        }
        match self.protocol.resolve(&field.ty).0 {
            Type::Named(held) if circles.leads_back(&message.name, held) => {
                format!("Option<Box<{ty}>>")
            }
            _ => format!("Option<{ty}>"),
        }
    }

    /// `new`, which takes the required fields, or `Default`.
    fn constructors(&mut self, message: &Message, circles: &Circles<'_>) {
        let name = type_identifier(&message.name);
        let (demands, defaults) = (demands(message), defaults(message));
        if !demands && !defaults {
            return;
        }
        let values: Vec<String> = message
            .fields
            .iter()
            .map(|field| self.initial(message, field))
            .collect();
        self.out.blank();
        if !demands {
            self.line(&format!("impl Default for {name} {{"));
            self.line("fn default() -> Self {");
        } else {
            let arguments: Vec<String> = message
                .fields
                .iter()
                .filter(|field| is_demanded(field))
                .map(|field| {
                    let ty = match self.protocol.resolve(&field.ty).0 {
                        Type::String => {
                            let into = self.prelude("Into", "::core::convert::Into");
                            format!("impl {into}<String>")
                        }
                        _ => self.field_type(message, field, circles),
                    };
                    format!("{}: {ty}", rust_identifier(&field.name))
                })
                .collect();
            self.line(&format!("impl {name} {{"));
            self.doc(&["With the required fields; the others have their defaults or are absent."]);
            self.out
                .list("pub fn new(", &arguments, ") -> Self {", WIDTH);
        }
        self.out.list("Self {", &values, "}", WIDTH);
        self.line("}");
        self.line("}");
        self.default_functions(message, &name);
    }

    /// What serde calls for missing fields.
    fn default_functions(&mut self, message: &Message, name: &str) {
        let mut fields = message
            .fields
            .iter()
            .filter(|field| has_default_function(message, field))
            .peekable();
        if fields.peek().is_none() {
            return;
        }
        self.out.blank();
        self.line(&format!("impl {name} {{"));
        for (index, field) in fields.enumerate() {
            if index > 0 {
                self.out.blank();
            }
            let (snake, ty) = (snake_case(&field.name), self.rust_type(&field.ty));
            self.line(&format!("fn default_{snake}() -> {ty} {{"));
            let value = field.default.as_ref();
            self.line(&value.map_or(String::new(), |value| self.literal(field, value)));
            self.line("}");
        }
        self.line("}");
    }

    /// What a new message has in a field: an argument of `new`, its default or nothing.
    fn initial(&self, message: &Message, field: &Field) -> String {
        let identifier = rust_identifier(&field.name);
        let is_text = matches!(self.protocol.resolve(&field.ty).0, Type::String);
        match &field.default {
            Some(_) if has_default_function(message, field) => {
                format!("{identifier}: Self::default_{}()", snake_case(&field.name))
            }
            Some(default) => format!("{identifier}: {}", self.literal(field, default)),
            None if field.required && is_text => format!("{identifier}: {identifier}.into()"),
            None if field.required => identifier,
            None => format!("{identifier}: None"),
        }
    }

    fn literal(&self, field: &Field, literal: &Literal) -> String {
        let base = self.protocol.resolve(&field.ty).0;
        match (literal, base) {
            (Literal::String(value), Type::Named(declared)) => {
                format!("{}::{}", type_identifier(declared), type_identifier(value))
            }
            (Literal::String(value), _) => format!("{}.to_owned()", text(value)),
            (Literal::Int(number), Type::Timestamp) => format!("unison::Timestamp({number})"),
            (Literal::Int(number), _) => number.to_string(),
            (Literal::Float(number), _) => format!("{number:?}"),
            (Literal::Bool(truth), _) => truth.to_string(),
        }
    }
}

/// serde's attribute for bytes, and for what is made of bytes.
const BASE64: &str = "with = \"unison::typed::base64_bytes\"";

/// Whether a message cannot be made without an argument.
fn demands(message: &Message) -> bool {
    message.fields.iter().any(is_demanded)
}

fn is_demanded(field: &Field) -> bool {
    field.required && field.default.is_none()
}

fn defaults(message: &Message) -> bool {
    message.fields.iter().any(|field| field.default.is_some())
}

/// Whether serde takes missing fields from the message's `Default`: where each has a default or is an option. A required
/// field with a default has to be there.
fn reads_as_default(message: &Message) -> bool {
    defaults(message) && message.fields.iter().all(|field| !field.required)
}

/// Whether a missing field is read by a function of its own.
fn has_default_function(message: &Message, field: &Field) -> bool {
    field.default.is_some() && !field.required && !reads_as_default(message)
}

fn holds_bytes(shape: &Shape) -> bool {
    match &shape.kind {
        Kind::Bytes => true,
        Kind::Array(item) | Kind::Map(item) => holds_bytes(item),
        _ => false,
    }
}
