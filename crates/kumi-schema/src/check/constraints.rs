//! Constraints that fit their type, leave room for a value, and let their own default through.

use super::Checker;
use crate::model::{At, Constraints, FieldPlaces, Literal, Protocol, Type};
use crate::pattern;
use crate::value::Violation;

/// The first number that is too large for 64 bits with a sign.
const MAX_EXACT: f64 = 9_223_372_036_854_775_808.0;

/// The largest whole number that JavaScript holds exactly, and so does the one after it.
const MAX_SAFE: u64 = (1 << 53) - 1;

impl Checker<'_> {
    pub(super) fn constraints(&mut self, protocol: &mut Protocol) {
        for typedef in &protocol.typedefs {
            self.fits(protocol, &typedef.ty, &typedef.constraints, &typedef.at);
        }
        for message in &protocol.messages {
            for field in &message.fields {
                self.fits(protocol, &field.ty, &field.constraints, &field.at);
                if let Some(default) = &field.default {
                    self.default(protocol, &field.ty, default, &field.constraints, &field.at);
                }
            }
        }
        for variant in protocol.unions.iter().flat_map(|union| &union.variants) {
            self.fits(protocol, &variant.ty, &variant.constraints, &variant.at);
        }
        normalise(protocol);
    }

    /// Whether constraints make sense for a type at all.
    fn fits(
        &mut self,
        protocol: &Protocol,
        ty: &Type,
        constraints: &Constraints,
        at: &FieldPlaces,
    ) {
        let (base, inherited) = protocol.resolve(ty);
        self.pattern(constraints, at);
        // What an undeclared type allows is not known, and its name is reported already. Bounds are bounds all the same.
        if let Type::Named(name) = base
            && protocol.message(name).is_none()
            && protocol.enumeration(name).is_none()
            && protocol.union(name).is_none()
        {
            self.room(constraints, &inherited, at);
            return;
        }
        let is_number = matches!(base, Type::Int | Type::Float | Type::Timestamp);
        let has_length = matches!(
            base,
            Type::String | Type::Bytes | Type::Array(_) | Type::Map(_)
        );
        let checks = [
            (
                "min",
                constraints.min.is_some(),
                is_number,
                at.min,
                "numbers",
            ),
            (
                "max",
                constraints.max.is_some(),
                is_number,
                at.max,
                "numbers",
            ),
            (
                "min_length",
                constraints.min_length.is_some(),
                has_length,
                at.min_length,
                "string, bytes, array and map",
            ),
            (
                "max_length",
                constraints.max_length.is_some(),
                has_length,
                at.max_length,
                "string, bytes, array and map",
            ),
            (
                "pattern",
                constraints.pattern.is_some(),
                *base == Type::String,
                at.pattern,
                "string",
            ),
        ];
        for (name, given, allowed, at, belongs) in checks {
            if given && !allowed {
                let help = match (name, has_length, is_number) {
                    ("min", true, _) => "did you mean min_length?".to_owned(),
                    ("max", true, _) => "did you mean max_length?".to_owned(),
                    ("min_length", _, true) => "did you mean min?".to_owned(),
                    ("max_length", _, true) => "did you mean max?".to_owned(),
                    _ => format!("it belongs to {belongs}"),
                };
                self.error_help(at, format!("{name} means nothing for {base}"), help);
            }
        }
        self.whole_bounds(base, constraints, at);
        self.room(constraints, &inherited, at);
    }

    fn whole_bounds(&mut self, base: &Type, constraints: &Constraints, at: &FieldPlaces) {
        if !matches!(base, Type::Int | Type::Timestamp) {
            return;
        }
        for (bound, at) in [(&constraints.min, at.min), (&constraints.max, at.max)] {
            if let Some(Literal::Float(number)) = bound
                && number.fract() != 0.0
            {
                self.error_help(
                    at,
                    format!("{base} has whole numbers only"),
                    "take the fraction off",
                );
            } else if let Some(Literal::Float(number)) = bound
                && !(-MAX_EXACT..MAX_EXACT).contains(number)
            {
                self.error_help(
                    at,
                    format!("{number:e} is no bound for {base}, which has 64 bits"),
                    "leave it out",
                );
            }
        }
    }

    fn pattern(&mut self, constraints: &Constraints, at: &FieldPlaces) {
        if let Some(text) = &constraints.pattern
            && let Some(problem) = pattern::problem(text)
        {
            self.error_help(
                at.pattern,
                problem,
                "a raw text needs no doubled backslashes: #\"^\\d+$\"#",
            );
        }
    }

    /// Bounds are not the wrong way round, those of typedefs included.
    fn room(&mut self, constraints: &Constraints, inherited: &[&Constraints], at: &FieldPlaces) {
        let all = || std::iter::once(constraints).chain(inherited.iter().copied());
        let min = all()
            .filter_map(|set| set.min.as_ref())
            .map(number)
            .reduce(f64::max);
        let max = all()
            .filter_map(|set| set.max.as_ref())
            .map(number)
            .reduce(f64::min);
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let at = if constraints.max.is_some() {
                at.max
            } else {
                at.min
            };
            self.error_help(
                at,
                format!("no number is at least {min} and at most {max}"),
                "make min the smaller one",
            );
        }
        let min = all().filter_map(|set| set.min_length).max();
        let max = all().filter_map(|set| set.max_length).min();
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            let at = if constraints.max_length.is_some() {
                at.max_length
            } else {
                at.min_length
            };
            self.error_help(
                at,
                format!("nothing is at least {min} and at most {max} long"),
                "make min_length the smaller one",
            );
        }
    }

    fn default(
        &mut self,
        protocol: &Protocol,
        ty: &Type,
        default: &Literal,
        constraints: &Constraints,
        at: &FieldPlaces,
    ) {
        let (base, mut all) = protocol.resolve(ty);
        all.push(constraints);
        if let Type::Named(name) = base {
            return self.named_default(protocol, name, default, at.default);
        }
        let fits = match (base, default) {
            (Type::String, Literal::String(_)) | (Type::Bool, Literal::Bool(_)) => true,
            (Type::Int | Type::Timestamp, Literal::Int(_)) => true,
            (Type::Float, Literal::Int(_) | Literal::Float(_)) => true,
            (Type::Bytes | Type::Json | Type::Array(_) | Type::Map(_), _) => {
                return self.error_help(
                    at.default,
                    format!("{base} cannot have a default"),
                    "leave it out: a field that is not required may be missing",
                );
            }
            _ => false,
        };
        if !fits {
            let help = match base {
                Type::String => "put quotes around it",
                Type::Bool => "write #true or #false",
                Type::Float => "write a number",
                _ => "write a whole number",
            };
            return self.error_help(at.default, format!("{default} is not of type {base}"), help);
        }
        if let Literal::Int(number) = default
            && matches!(base, Type::Int | Type::Timestamp)
            && number.unsigned_abs() > MAX_SAFE
        {
            return self.error_help(
                at.default,
                format!("{number} is not exact in JavaScript, which would take another default"),
                format!("whole numbers are exact from -{MAX_SAFE} to {MAX_SAFE}"),
            );
        }
        for constraints in all {
            if let Some(violation) = Violation::of(default, constraints) {
                return self.error_help(
                    at.default,
                    format!("the default is refused by the field itself: {violation}"),
                    "change one of the two",
                );
            }
        }
    }

    /// A default of an enum is one of its values; messages and unions have none.
    fn named_default(&mut self, protocol: &Protocol, name: &str, default: &Literal, at: At) {
        let Some(declared) = protocol.enumeration(name) else {
            if protocol.message(name).is_some() {
                self.error_help(at, "a message cannot be a default", "leave it out");
            } else if protocol.union(name).is_some() {
                self.error_help(at, "a union cannot be a default", "leave it out");
            }
            return;
        };
        let known = |text: &str| declared.values.iter().any(|value| value.name == text);
        match default {
            Literal::String(text) if known(text) => {}
            other => {
                let text = match other {
                    Literal::String(text) => text.clone(),
                    other => other.to_string(),
                };
                self.error(
                    at,
                    format!("{text:?} is no value of enum {name:?}"),
                    |diagnostic| {
                        let values = declared.values.iter().map(|value| &*value.name);
                        let listed: Vec<&str> = values.clone().take(8).collect();
                        diagnostic.help(match kumi_kdl::did_you_mean(&text, values) {
                            Some(meant) => format!("did you mean {meant:?}?"),
                            None => format!("it has {}", listed.join(", ")),
                        })
                    },
                );
            }
        }
    }
}

fn number(literal: &Literal) -> f64 {
    match literal {
        Literal::Int(number) => *number as f64,
        Literal::Float(number) => *number,
        _ => 0.0,
    }
}

/// Writes numbers as their type has them, so that `1` and `1.0` mean the same for a float.
fn normalise(protocol: &mut Protocol) {
    let bases = |protocol: &Protocol, ty: &Type| protocol.resolve(ty).0.clone();
    let frozen = protocol.clone();
    for typedef in &mut protocol.typedefs {
        let base = bases(&frozen, &typedef.ty);
        adapt(&base, &mut typedef.constraints, &mut None);
    }
    for variant in protocol
        .unions
        .iter_mut()
        .flat_map(|union| &mut union.variants)
    {
        let base = bases(&frozen, &variant.ty);
        adapt(&base, &mut variant.constraints, &mut None);
    }
    for message in &mut protocol.messages {
        for field in &mut message.fields {
            let base = bases(&frozen, &field.ty);
            adapt(&base, &mut field.constraints, &mut field.default);
        }
    }
}

fn adapt(base: &Type, constraints: &mut Constraints, default: &mut Option<Literal>) {
    for literal in [&mut constraints.min, &mut constraints.max, default]
        .into_iter()
        .flatten()
    {
        match (base, &*literal) {
            (Type::Float, Literal::Int(number)) => *literal = Literal::Float(*number as f64),
            (Type::Int | Type::Timestamp, Literal::Float(number)) if number.fract() == 0.0 => {
                *literal = Literal::Int(*number as i64);
            }
            _ => {}
        }
    }
}
