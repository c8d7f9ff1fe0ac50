//! `validate()`: every constraint of a message and of what it holds, with the path of the field that breaks it.

use super::{Code, text};
use crate::model::{Literal, Message, Union};
use crate::names::{rust_identifier, type_identifier};
use crate::shape::{Kind, Shape};

impl Code<'_> {
    /// Whether some value of a message breaks its schema.
    pub(super) fn is_constrained(&self, message: &Message) -> bool {
        let mut fields = message.fields.iter();
        fields.any(|field| needs_check(&Shape::of(self.protocol, &field.ty, &field.constraints)))
    }

    pub(super) fn validate(&mut self, message: &Message) {
        let (rt, result) = (self.rt, self.result());
        self.doc(&[
            "Checks every constraint of the schema.",
            "Fails with the path of the first field that breaks one.",
        ]);
        self.line(format_args!(
            "pub fn validate(&self) -> {result}<(), {rt}::ValidationError> {{"
        ));
        for field in &message.fields {
            let shape = Shape::of(self.protocol, &field.ty, &field.constraints);
            if !needs_check(&shape) {
                continue;
            }
            let identifier = rust_identifier(&field.name);
            if field.is_optional() {
                self.line(format_args!("if let Some(value) = &self.{identifier} {{"));
            } else {
                self.line(format_args!("{{ let value = &self.{identifier};"));
            }
            let path = Path {
                format: field.name.clone(),
                arguments: Vec::new(),
            };
            self.check(&shape, "value", &path, 0);
            self.line(format_args!("}}"));
        }
        self.line(format_args!("Ok(()) }}"));
    }

    pub(super) fn validate_union(&mut self, union: &Union) {
        let (rt, result) = (self.rt, self.result());
        self.doc(&["Checks every constraint of the schema. Fails with the path of the first value that breaks one."]);
        self.line(format_args!(
            "pub fn validate(&self) -> {result}<(), {rt}::ValidationError> {{ match self {{"
        ));
        let mut others = false;
        for variant in &union.variants {
            let shape = Shape::of(self.protocol, &variant.ty, &variant.constraints);
            if !needs_check(&shape) {
                others = true;
                continue;
            }
            let name = type_identifier(&variant.name);
            self.line(format_args!("Self::{name}(value) => {{"));
            let path = Path {
                format: "value".into(),
                arguments: Vec::new(),
            };
            self.check(&shape, "value", &path, 0);
            self.line(format_args!("}}"));
        }
        if others {
            self.line(format_args!("_ => {{}}"));
        }
        self.line(format_args!("}} Ok(()) }}"));
    }

    /// Checks the value that the reference `value` points to.
    fn check(&mut self, shape: &Shape, value: &str, path: &Path, depth: usize) {
        let rt = self.rt;
        let mut checks = Vec::new();
        let number = |literal: &Literal| match (literal, &shape.kind) {
            (Literal::Int(number), Kind::Timestamp) => format!("{rt}::Timestamp({number})"),
            (Literal::Float(number), _) => format!("{number:?}"),
            (other, _) => other.to_string(),
        };
        if matches!(shape.kind, Kind::Float) {
            checks.push(format!("finite(*{value})"));
        }
        if let Some(min) = &shape.min {
            checks.push(format!("at_least({value}, &{})", number(min)));
        }
        if let Some(max) = &shape.max {
            checks.push(format!("at_most({value}, &{})", number(max)));
        }
        let length = match shape.kind {
            Kind::String => format!("{value}.chars().count()"),
            _ => format!("{value}.len()"),
        };
        if let Some(least) = shape.min_length {
            checks.push(format!("min_length({length}, {least})"));
        }
        if let Some(most) = shape.max_length {
            checks.push(format!("max_length({length}, {most})"));
        }
        for check in checks {
            self.line(format_args!(
                "{rt}::typed::check::{check}.map_err(|problem| problem.at({}))?;",
                path.text()
            ));
        }
        for pattern in &shape.patterns {
            self.line(format_args!(
                "{{ static PATTERN: {rt}::typed::check::Pattern = {rt}::typed::check::Pattern::new({}); \
                 PATTERN.check({value}).map_err(|problem| problem.at({}))?; }}",
                text(pattern),
                path.text()
            ));
        }
        let inner = format!("value{depth}");
        match &shape.kind {
            Kind::Array(item) if needs_check(item) => {
                let index = format!("index{depth}");
                self.line(format_args!(
                    "for ({index}, {inner}) in {value}.iter().enumerate() {{"
                ));
                self.check(item, &inner, &path.then("[{}]", &index), depth + 1);
                self.line(format_args!("}}"));
            }
            Kind::Map(item) if needs_check(item) => {
                let key = format!("key{depth}");
                self.line(format_args!("for ({key}, {inner}) in {value} {{"));
                self.check(item, &inner, &path.then("[{:?}]", &key), depth + 1);
                self.line(format_args!("}}"));
            }
            Kind::Message(_) | Kind::Union(_) => self.line(format_args!(
                "{value}.validate().map_err(|error| error.within({}))?;",
                path.text()
            )),
            _ => {}
        }
    }
}

/// Messages and unions are always checked by their own `validate`.
fn needs_check(shape: &Shape) -> bool {
    !shape.is_unconstrained()
        || match &shape.kind {
            Kind::Array(item) | Kind::Map(item) => needs_check(item),
            Kind::Message(_) | Kind::Union(_) | Kind::Float => true,
            _ => false,
        }
}

/// How the path of a value is written, with the variables that hold indices and keys.
struct Path {
    format: String,
    arguments: Vec<String>,
}

impl Path {
    fn then(&self, format: &str, argument: &str) -> Path {
        let mut arguments = self.arguments.clone();
        arguments.push(argument.to_owned());
        Path {
            format: format!("{}{format}", self.format),
            arguments,
        }
    }

    /// An expression; it is evaluated only when something is wrong.
    fn text(&self) -> String {
        if self.arguments.is_empty() {
            text(&self.format)
        } else {
            format!(
                "format!({}, {})",
                text(&self.format),
                self.arguments.join(", ")
            )
        }
    }
}
