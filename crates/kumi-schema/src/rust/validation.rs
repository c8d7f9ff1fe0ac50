//! The rules of fields and variants: every constraint that a schema adds to a type. What a type demands by itself, such as
//! the constraints of a message that it holds, the runtime knows.

use super::{Code, text};
use crate::model::Literal;
use crate::shape::{Kind, Shape};

impl Code<'_> {
    /// The patterns of the schema, each once: they are compiled when they are first needed.
    pub(super) fn patterns(&mut self) {
        if !self.patterns.is_empty() {
            self.out.blank();
        }
        for (name, pattern) in self.patterns.iter() {
            self.out.line(&format!(
                "static {name}: check::Pattern = check::Pattern::new({});",
                text(pattern)
            ));
        }
    }

    /// An expression for a rule, or nothing if any value of the type will do.
    pub(super) fn rule(&self, shape: &Shape) -> Option<String> {
        let mut rules = Vec::new();
        let number = |literal: &Option<Literal>| match (literal, &shape.kind) {
            (None, _) => String::new(),
            (Some(Literal::Int(number)), Kind::Timestamp) => format!("unison::Timestamp({number})"),
            (Some(Literal::Float(number)), _) => format!("{number:?}"),
            (Some(other), _) => other.to_string(),
        };
        let length =
            |length: Option<u64>| length.map_or(String::new(), |length| length.to_string());
        for (rule, least, most) in [
            ("range", number(&shape.min), number(&shape.max)),
            ("length", length(shape.min_length), length(shape.max_length)),
        ] {
            match (least.is_empty(), most.is_empty()) {
                (true, true) => {}
                (_, true) => rules.push(format!("{rule}({least}..)")),
                (_, false) => rules.push(format!("{rule}({least}..={most})")),
            }
        }
        for pattern in &shape.patterns {
            rules.push(format!("matching(&{})", self.patterns.name(pattern)));
        }
        if let Kind::Array(item) | Kind::Map(item) = &shape.kind {
            rules.extend(self.rule(item).map(|rule| format!("each({rule})")));
        }
        let last = rules.pop()?;
        let all = rules.into_iter().rev();
        Some(all.fold(last, |rest, rule| format!("both({rule}, {rest})")))
    }
}
