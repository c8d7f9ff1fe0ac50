//! Functions that refuse what the Rust side would refuse, with the path of the field at fault.
//!
//! A check looks at everything that a reader in Rust looks at: that fields are there and of their type, that whole
//! numbers are whole, bytes are base64 in its one form and texts can be written as UTF-8, then at every constraint, and
//! at how deep it all nests. Whole numbers beyond 2^53 are refused too, although Rust has them, because JavaScript has
//! rounded them by then. Only what JSON would carry counts: a field that is inherited is not there.

use super::types::literal;
use super::{Writer, text};
use crate::model::{Field, Message, Protocol, Union};
use crate::names::{pascal_case, shouting_case, type_identifier};
use crate::pattern::for_javascript;
use crate::shape::{Kind, Shape};
use std::collections::BTreeSet;

/// How many objects and arrays may lie within each other. Readers in Rust refuse the next one.
const MAX_DEPTH: usize = 127;

pub(super) fn write(out: &mut Writer, protocol: &Protocol) {
    write_error(out, protocol);
    let used = Used::of(protocol);
    write_own(out, used.fields);
    if used.bytes {
        write_base64(out);
    }
    if used.json {
        write_json(out, protocol);
    }
    let patterns = Patterns::of(protocol);
    patterns.write(out);
    for message in &protocol.messages {
        write_check(out, protocol, &patterns, message);
    }
    for union in &protocol.unions {
        write_union_check(out, protocol, &patterns, union);
    }
}

/// The patterns of all fields and variants, each once: they are compiled when the module is loaded.
struct Patterns(BTreeSet<String>);

impl Patterns {
    fn of(protocol: &Protocol) -> Self {
        let mut all = BTreeSet::new();
        for (ty, constraints, _) in protocol.members() {
            collect(&Shape::of(protocol, ty, constraints), &mut all);
        }
        Self(all)
    }

    fn write(&self, out: &mut Writer) {
        if !self.0.is_empty() {
            out.blank();
        }
        for pattern in &self.0 {
            let expression = text(&for_javascript(pattern));
            let name = self.name(pattern);
            out.line(&format!("const {name} = new RegExp({expression}, \"u\");"));
        }
    }

    /// No name of a schema becomes such a one: types are in Pascal case.
    fn name(&self, pattern: &str) -> String {
        let before = self.0.range(..pattern.to_owned()).count();
        format!("PATTERN_{before}")
    }
}

fn collect(shape: &Shape, into: &mut BTreeSet<String>) {
    into.extend(shape.patterns.iter().cloned());
    if let Kind::Array(item) | Kind::Map(item) = &shape.kind {
        collect(item, into);
    }
}

pub(super) fn error_name(protocol: &Protocol) -> String {
    format!("{}InvalidMessage", pascal_case(&protocol.name))
}

fn write_error(out: &mut Writer, protocol: &Protocol) {
    let error = error_name(protocol);
    out.blank();
    out.doc(Some(
        "A message that breaks its schema. If it was to be sent, it was not.",
    ));
    out.line(&format!("export class {error} extends Error {{"));
    out.doc(Some(
        "The field at fault, such as `users[3].name`; empty when it is the message itself.",
    ));
    out.line("readonly path: string;");
    out.line("constructor(path: string, problem: string) {");
    out.line("super(path === \"\" ? problem : `${path}: ${problem}`);");
    out.line(&format!("this.name = {};", text(&error)));
    out.line("this.path = path;");
    out.line("}");
    out.line("}");
}

/// What helps the checks is written only where something needs it, because strict compilers refuse the rest.
#[derive(Default)]
struct Used {
    fields: bool,
    bytes: bool,
    json: bool,
}

impl Used {
    fn of(protocol: &Protocol) -> Self {
        let mut used = Self::default();
        for (ty, constraints, _) in protocol.members() {
            used.fields = true;
            used.look(&Shape::of(protocol, ty, constraints));
        }
        used
    }

    fn look(&mut self, shape: &Shape) {
        match &shape.kind {
            Kind::Bytes => self.bytes = true,
            Kind::Json => self.json = true,
            Kind::Array(item) | Kind::Map(item) => self.look(item),
            _ => {}
        }
    }
}

fn write_own(out: &mut Writer, used: bool) {
    if !used {
        return;
    }
    out.blank();
    out.doc(Some("A field as it would be sent: `constructor` and the like are no fields unless the object has them itself."));
    out.line("function own(of: object, name: string): unknown {");
    out.line("const found = Object.getOwnPropertyDescriptor(of, name);");
    out.line(
        "return found?.enumerable === true ? (of as { [key: string]: unknown })[name] : undefined;",
    );
    out.line("}");
}

fn write_base64(out: &mut Writer) {
    out.blank();
    out.doc(Some(
        "How many bytes a text stands for, or -1 if it is not base64 with padding. The bits that padding leaves over are zero.",
    ));
    out.line("function base64Length(value: unknown): number {");
    out.line("if (typeof value !== \"string\" || value.length % 4 !== 0) {");
    out.line("return -1;");
    out.line("}");
    out.line("const digits = value.replace(/={1,2}$/, \"\");");
    out.line("const padding = value.length - digits.length;");
    out.line("const last = [/^/, /[AEIMQUYcgkosw048]$/, /[AQgw]$/][padding];");
    out.line("if (/[^A-Za-z0-9+/]/.test(digits) || last?.test(digits) !== true) {");
    out.line("return -1;");
    out.line("}");
    out.line("return (value.length / 4) * 3 - padding;");
    out.line("}");
}

fn write_json(out: &mut Writer, protocol: &Protocol) {
    let error = error_name(protocol);
    out.blank();
    out.doc(Some("Refuses what JSON cannot say."));
    out.line("function refuseNoJson(value: unknown, path: string, depth: number): void {");
    out.line("const isText = typeof value === \"string\" && !/\\p{Surrogate}/u.test(value);");
    out.line("const isNumber = typeof value === \"number\" && Number.isFinite(value);");
    out.line("if (value === null || typeof value === \"boolean\" || isText || isNumber) {");
    out.line("return;");
    out.line("}");
    out.line("if (typeof value !== \"object\") {");
    out.line(&format!(
        "throw new {error}(path, \"it cannot be said in JSON\");"
    ));
    out.line("}");
    out.line(&format!("if (depth >= {MAX_DEPTH}) {{"));
    out.line(&format!(
        "throw new {error}(path, \"it is nested too deeply\");"
    ));
    out.line("}");
    out.line("if (Array.isArray(value)) {");
    out.line("for (const [index, item] of value.entries()) {");
    out.line("refuseNoJson(item, `${path}[${index}]`, depth + 1);");
    out.line("}");
    out.line("return;");
    out.line("}");
    out.line("for (const [key, item] of Object.entries(value)) {");
    out.line("if (/\\p{Surrogate}/u.test(key)) {");
    out.line(&format!(
        "throw new {error}(path, \"a key of it cannot be said in JSON\");"
    ));
    out.line("}");
    out.line("refuseNoJson(item, `${path}[${JSON.stringify(key)}]`, depth + 1);");
    out.line("}");
    out.line("}");
}

fn write_check(out: &mut Writer, protocol: &Protocol, patterns: &Patterns, message: &Message) {
    let check = Check { protocol, patterns };
    check.begin(out, &message.name);
    for field in &message.fields {
        check.field(out, field);
    }
    out.line("}");
}

/// A union is an object: `type` has the name of a variant, `value` what the variant holds.
fn write_union_check(out: &mut Writer, protocol: &Protocol, patterns: &Patterns, union: &Union) {
    let check = Check { protocol, patterns };
    check.begin(out, &union.name);
    out.line("const field = own(value, \"value\");");
    out.line("switch (own(value, \"type\")) {");
    for variant in &union.variants {
        let shape = Shape::of(protocol, &variant.ty, &variant.constraints);
        out.line(&format!("case {}: {{", text(&variant.name)));
        check.refuse(out, "field === undefined", "${path}value", "it is missing");
        check.shape(out, &shape, "field", "${path}value", 0);
        out.line("break;");
        out.line("}");
    }
    out.line("default:");
    out.line(&format!(
        "throw new {}(`${{path}}type`, {});",
        error_name(protocol),
        text(&format!("it is no variant of {}", union.name))
    ));
    out.line("}");
    out.line("}");
}

/// Writes statements that refuse a value. Paths are put together only when something is wrong.
struct Check<'p> {
    protocol: &'p Protocol,
    patterns: &'p Patterns,
}

impl Check<'_> {
    /// The head of the function that checks a message or a union, up to where it is known to be an object.
    fn begin(&self, out: &mut Writer, name: &str) {
        let name = type_identifier(name);
        out.blank();
        out.doc(Some(&format!(
            "Throws {} unless a value is what the schema says.",
            error_name(self.protocol)
        )));
        // The last two are for what lies within a message.
        out.line(&format!(
            "export function check{name}(value: unknown, path = \"\", depth = 0): asserts value is {name} {{"
        ));
        self.container(
            out,
            "${path.slice(0, -1)}",
            "typeof value !== \"object\" || value === null || Array.isArray(value)",
            "it is no object",
            "depth",
        );
    }

    fn field(&self, out: &mut Writer, field: &Field) {
        let shape = Shape::of(self.protocol, &field.ty, &field.constraints);
        let path = format!("${{path}}{}", field.name);
        out.line("{");
        out.line(&format!("const field = own(value, {});", text(&field.name)));
        // As in Rust: what has a default may be missing, and what has none may also be null.
        let missing = match (field.required, &field.default) {
            (true, _) => None,
            (false, Some(_)) => Some("field !== undefined"),
            (false, None) => Some("field !== undefined && field !== null"),
        };
        match missing {
            Some(condition) => out.line(&format!("if ({condition}) {{")),
            None => self.refuse(out, "field === undefined", &path, "it is missing"),
        }
        self.shape(out, &shape, "field", &path, 0);
        if missing.is_some() {
            out.line("}");
        }
        out.line("}");
    }

    fn refuse(&self, out: &mut Writer, condition: &str, path: &str, problem: &str) {
        out.line(&format!("if ({condition}) {{"));
        out.line(&format!(
            "throw new {}(`{path}`, {});",
            error_name(self.protocol),
            text(problem)
        ));
        out.line("}");
    }

    /// Refuses what is no array or object, and what lies too deep. `depth` says how many lie around it.
    fn container(&self, out: &mut Writer, path: &str, is_other: &str, problem: &str, depth: &str) {
        self.refuse(out, is_other, path, problem);
        self.refuse(
            out,
            &format!("{depth} >= {MAX_DEPTH}"),
            path,
            "it is nested too deeply",
        );
    }

    /// `level` counts the arrays and maps of this field around the value.
    fn shape(&self, out: &mut Writer, shape: &Shape, value: &str, path: &str, level: usize) {
        let depth = format!("depth + {}", level + 1);
        let is_text = format!("typeof {value} !== \"string\" || /\\p{{Surrogate}}/u.test({value})");
        match &shape.kind {
            Kind::String => self.refuse(out, &is_text, path, "it is no text"),
            Kind::Int | Kind::Timestamp => self.refuse(
                out,
                &format!("typeof {value} !== \"number\" || !Number.isSafeInteger({value})"),
                path,
                "it is no whole number that is exact in JavaScript",
            ),
            Kind::Float => self.refuse(
                out,
                &format!("typeof {value} !== \"number\" || !Number.isFinite({value})"),
                path,
                "it is not a finite number",
            ),
            Kind::Bool => self.refuse(
                out,
                &format!("typeof {value} !== \"boolean\""),
                path,
                "it is neither true nor false",
            ),
            Kind::Bytes => {
                let length = format!("length{level}");
                out.line(&format!("const {length} = base64Length({value});"));
                self.refuse(out, &format!("{length} < 0"), path, "it is no base64");
            }
            Kind::Json => out.line(&format!("refuseNoJson({value}, `{path}`, {depth});")),
            Kind::Array(_) => self.container(
                out,
                path,
                &format!("!Array.isArray({value})"),
                "it is no array",
                &depth,
            ),
            Kind::Map(_) => self.container(
                out,
                path,
                &format!(
                    "typeof {value} !== \"object\" || {value} === null || Array.isArray({value})"
                ),
                "it is no object",
                &depth,
            ),
            Kind::Enum(name) => self.enumeration(out, name, value, path, &is_text),
            Kind::Message(name) | Kind::Union(name) => out.line(&format!(
                "check{}({value}, `{path}.`, {depth});",
                type_identifier(name)
            )),
        }
        self.bounds(out, shape, value, path, level);
        self.items(out, shape, value, path, level);
    }

    fn enumeration(&self, out: &mut Writer, name: &str, value: &str, path: &str, is_text: &str) {
        let declared = self.protocol.enumeration(name);
        if declared.is_some_and(|declared| declared.open) {
            return self.refuse(out, is_text, path, "it is no text");
        }
        let values = format!("{}_VALUES", shouting_case(name));
        self.refuse(
            out,
            &format!("!({values} as readonly unknown[]).includes({value})"),
            path,
            &format!("it is no value of {name}"),
        );
    }

    fn bounds(&self, out: &mut Writer, shape: &Shape, value: &str, path: &str, level: usize) {
        if let Some(min) = &shape.min {
            let condition = format!("!({value} >= {})", literal(min));
            self.refuse(out, &condition, path, &format!("it is less than {min}"));
        }
        if let Some(max) = &shape.max {
            let condition = format!("!({value} <= {})", literal(max));
            self.refuse(out, &condition, path, &format!("it is more than {max}"));
        }
        let measured = match shape.kind {
            Kind::String => format!("[...{value}].length"),
            Kind::Map(_) => format!("Object.keys({value}).length"),
            Kind::Bytes => format!("length{level}"),
            _ => format!("{value}.length"),
        };
        // Characters are counted as Unicode has them, of which JavaScript's `length` counts some twice. Most texts
        // are told apart by that alone, which costs nothing.
        let is_text = matches!(shape.kind, Kind::String);
        if let Some(least) = shape.min_length {
            let quick = if is_text {
                format!("{value}.length < {least} || ")
            } else {
                String::new()
            };
            let problem = format!("it is shorter than {least}");
            self.refuse(out, &format!("{quick}{measured} < {least}"), path, &problem);
        }
        if let Some(most) = shape.max_length {
            let quick = if is_text {
                format!("{value}.length > {most} && ")
            } else {
                String::new()
            };
            let problem = format!("it is longer than {most}");
            self.refuse(out, &format!("{quick}{measured} > {most}"), path, &problem);
        }
        for pattern in &shape.patterns {
            let expression = self.patterns.name(pattern);
            self.refuse(
                out,
                &format!("!{expression}.test({value})"),
                path,
                &format!("it does not match {pattern}"),
            );
        }
    }

    fn items(&self, out: &mut Writer, shape: &Shape, value: &str, path: &str, level: usize) {
        let each = format!("item{level}");
        match &shape.kind {
            Kind::Array(item) => {
                let index = format!("index{level}");
                out.line(&format!(
                    "for (const [{index}, {each}] of ({value} as readonly unknown[]).entries()) {{"
                ));
                let path = format!("{path}[${{{index}}}]");
                self.shape(out, item, &each, &path, level + 1);
                out.line("}");
            }
            Kind::Map(item) => {
                let key = format!("key{level}");
                out.line(&format!(
                    "for (const [{key}, {each}] of Object.entries({value} as {{ [key: string]: unknown }})) {{"
                ));
                let is_text = format!("/\\p{{Surrogate}}/u.test({key})");
                self.refuse(out, &is_text, path, "a key of it is no text");
                let path = format!("{path}[${{JSON.stringify({key})}}]");
                self.shape(out, item, &each, &path, level + 1);
                out.line("}");
            }
            _ => {}
        }
    }
}
