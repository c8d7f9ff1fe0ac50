//! One way to write a schema: four spaces a level, properties in a fixed order, texts in quotes.
//!
//! Comments and single empty lines stay, nodes keep their order, and nothing is reworded: what a formatted file says
//! is what it said before. Comments from within a line move above it. A text stays on one line or on several, as its
//! author had it.

use crate::limits::MAX_FILE_BYTES;
use crate::loader::too_large;
use kumi_kdl::{
    Diagnostics, Document, Node, Scalar, Sources, Trivia, Value, is_disallowed,
    is_identifier_character, is_newline,
};

/// Properties in the order in which they are written. Unknown ones follow in their own order.
const ORDER: &[&str] = &[
    "version",
    "namespace",
    "from",
    "lifetime",
    "delivery",
    "compression",
    "overflow",
    "idempotent",
    "open",
    "type",
    "item_type",
    "required",
    "default",
    "min",
    "max",
    "min_length",
    "max_length",
    "pattern",
    "description",
];

const INDENT: &str = "    ";

/// Formats a file. It has to be KDL; whether it is a sound schema makes no difference.
///
/// ```
/// let text = "protocol chat version=\"1.0.0\" {\nchannel c {event \"E\"}\n  /* soon */ }";
/// assert_eq!(
///     kumi_schema::format("chat.kdl", text).unwrap(),
///     "protocol \"chat\" version=\"1.0.0\" {\n    channel \"c\" {\n        event \"E\"\n    }\n    /* soon */\n}\n"
/// );
/// ```
pub fn format(name: &str, text: &str) -> Result<String, Diagnostics> {
    let mut sources = Sources::default();
    let mut errors = Diagnostics::default();
    if text.len() > MAX_FILE_BYTES {
        let message = format!("{name:?} cannot be formatted: {}", too_large());
        errors.push_with(|| kumi_kdl::Diagnostic::without_place(message));
        return Err(errors);
    }
    let file = sources.add(name.to_owned(), text.into());
    let document = kumi_kdl::parse(&sources, file, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut out = String::with_capacity(text.len());
    write_document(&mut out, &document, 0);
    Ok(out)
}

fn write_document(out: &mut String, document: &Document, depth: usize) {
    for (index, node) in document.nodes.iter().enumerate() {
        write_trivia(out, &node.leading, depth, index == 0);
        write_node(out, node, depth);
    }
    write_trivia(out, &document.trailing, depth, document.nodes.is_empty());
}

fn write_trivia(out: &mut String, trivia: &[Trivia], depth: usize, mut first: bool) {
    let mut blank = false;
    for part in trivia {
        let text = match part {
            Trivia::Blank => {
                blank = true;
                continue;
            }
            Trivia::Comment(text) | Trivia::Disabled(text) => text,
        };
        if std::mem::take(&mut blank) && !first {
            out.push('\n');
        }
        first = false;
        indent(out, depth);
        out.push_str(text);
        out.push('\n');
    }
    if blank && !first {
        out.push('\n');
    }
}

fn write_node(out: &mut String, node: &Node, depth: usize) {
    indent(out, depth);
    if let Some(annotation) = &node.annotation {
        write_annotation(out, &annotation.value);
    }
    write_name(out, &node.name.value);
    for argument in &node.arguments {
        out.push(' ');
        write_value(out, argument, depth);
    }
    let mut properties: Vec<_> = node.properties.iter().collect();
    properties.sort_by_key(|(name, _)| {
        let known = ORDER.iter().position(|&known| known == name.value);
        known.unwrap_or(ORDER.len())
    });
    for (name, value) in properties {
        out.push(' ');
        write_name(out, &name.value);
        out.push('=');
        write_value(out, value, depth);
    }
    if let Some(children) = &node.children {
        if children.nodes.is_empty() && children.trailing.is_empty() {
            out.push_str(" {}");
        } else {
            out.push_str(" {\n");
            write_document(out, children, depth + 1);
            indent(out, depth);
            out.push('}');
        }
    }
    if let Some(comment) = &node.trailing {
        out.push(' ');
        out.push_str(comment);
    }
    out.push('\n');
}

fn indent(out: &mut String, depth: usize) {
    (0..depth).for_each(|_| out.push_str(INDENT));
}

fn write_annotation(out: &mut String, name: &str) {
    out.push('(');
    write_name(out, name);
    out.push(')');
}

/// Without quotes where that is possible.
fn write_name(out: &mut String, name: &str) {
    let reserved = matches!(name, "true" | "false" | "null" | "inf" | "-inf" | "nan");
    let like_a_number = name
        .strip_prefix(['+', '-'])
        .unwrap_or(name)
        .trim_start_matches('.')
        .starts_with(|first: char| first.is_ascii_digit());
    if name.is_empty() || reserved || like_a_number || !name.chars().all(is_identifier_character) {
        write_text(out, name);
    } else {
        out.push_str(name);
    }
}

fn write_value(out: &mut String, value: &Value, depth: usize) {
    if let Some(annotation) = &value.annotation {
        write_annotation(out, &annotation.value);
    }
    match &value.scalar {
        Scalar::String(text) if value.in_lines && reads_well_as_lines(text) => {
            write_lines(out, text, depth + 1);
        }
        Scalar::String(text) => write_text(out, text),
        Scalar::Integer(number) => out.push_str(&number.to_string()),
        Scalar::Float(number) if number.is_nan() => out.push_str("#nan"),
        Scalar::Float(number) if number.is_infinite() => {
            out.push_str(if *number > 0.0 { "#inf" } else { "#-inf" });
        }
        Scalar::Float(number) => out.push_str(&format!("{number:?}")),
        Scalar::Bool(truth) => out.push_str(if *truth { "#true" } else { "#false" }),
        Scalar::Null => out.push_str("#null"),
    }
}

/// In quotes; raw where escapes would make it hard to read, as in patterns.
fn write_text(out: &mut String, text: &str) {
    let plain =
        |character: char| !is_newline(character) && !is_disallowed(character) && character != '\t';
    if text.contains(['\\', '"']) && text.chars().all(plain) && !text.starts_with('"') {
        let hashes = "#".repeat(1 + most_hashes(text));
        out.push_str(&format!("{hashes}\"{text}\"{hashes}"));
        return;
    }
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            other if is_newline(other) || is_disallowed(other) => {
                out.push_str(&format!("\\u{{{:x}}}", other as u32));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Whether a text of several lines comes back the same when its lines are written as they are.
fn reads_well_as_lines(text: &str) -> bool {
    let harmless = |character: char| {
        character == '\n' || (!is_newline(character) && !is_disallowed(character))
    };
    text.contains('\n')
        && text.chars().all(harmless)
        && text
            .split('\n')
            .all(|line| line.is_empty() || !line.trim().is_empty())
}

/// Raw where it holds backslashes or the quotes that would end it.
fn write_lines(out: &mut String, text: &str, depth: usize) {
    let raw = text.contains("\"\"\"") || text.contains('\\');
    let hashes = "#".repeat(if raw { 1 + most_hashes(text) } else { 0 });
    out.push_str(&format!("{hashes}\"\"\"\n"));
    for line in text.split('\n') {
        if !line.is_empty() {
            indent(out, depth);
            out.push_str(line);
        }
        out.push('\n');
    }
    indent(out, depth);
    out.push_str(&format!("\"\"\"{hashes}"));
}

/// The longest run of `#` behind a quote.
fn most_hashes(text: &str) -> usize {
    let runs = text
        .split('"')
        .skip(1)
        .map(|rest| rest.len() - rest.trim_start_matches('#').len());
    runs.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let once = format("t.kdl", text).unwrap();
        assert_eq!(once, expected);
        assert_eq!(
            format("t.kdl", &once).unwrap(),
            once,
            "formatting again changes it"
        );
    }

    #[test]
    fn properties_have_an_order_and_texts_quotes() {
        check(
            "field x pattern=\"^\\\\d\" required=#true type=string odd=1",
            "field \"x\" type=\"string\" required=#true pattern=#\"^\\d\"# odd=1\n",
        );
        check(
            "\"a b\" 0x10 1_000 1.50 #null #-inf",
            "\"a b\" 16 1000 1.5 #null #-inf\n",
        );
        check("(t)n (u)1 \"true\"=1", "(t)n (u)1 \"true\"=1\n");
    }

    #[test]
    fn comments_and_single_empty_lines_stay() {
        check(
            "\n\n// head\n\n\n\na { // first\n\n  b /* in */ 1 /-2 // end\n\n  /- c {\n d }\n// last\n\n}\n\n\n// tail\n\n",
            "// head\n\na {\n    // first\n\n    /* in */\n    // /-2\n    b 1 // end\n\n    /- c {\n d }\n    // last\n}\n\n// tail\n",
        );
    }

    #[test]
    fn a_comment_stands_there_once_wherever_it_was() {
        check(
            "field \"x\" /* why */ type /* which */ = /* this */ \"int\" /* end */ 3",
            "/* why */\n/* which */\n/* this */\n/* end */\nfield \"x\" 3 type=\"int\"\n",
        );
        let errors = format("t.kdl", "a 1 /* b").unwrap_err();
        assert_eq!(errors.len(), 1, "{errors}");
    }

    #[test]
    fn texts_of_several_lines_stay_readable() {
        check(
            "a {\n description \"\"\"\n      one\n\n        two\n      \"\"\"\n}",
            "a {\n    description \"\"\"\n        one\n\n          two\n        \"\"\"\n}\n",
        );
        check("d \"a\\n\\\"b\\\"\"", "d \"a\\n\\\"b\\\"\"\n");
        check("d \"a\\nb\"", "d \"a\\nb\"\n");
        check(
            "d \"\"\"\n say \"hi\"\n and go\n \"\"\"",
            "d \"\"\"\n    say \"hi\"\n    and go\n    \"\"\"\n",
        );
        check(
            "m x description=#\"\"\"\n \\d\n \"\"\"\n \"\"\"# { a }",
            "m \"x\" description=#\"\"\"\n    \\d\n    \"\"\"\n    \"\"\"# {\n    a\n}\n",
        );
        check("d \"a\\n \\nb\" x=1", "d \"a\\n \\nb\" x=1\n");
    }

    #[test]
    fn blocks_that_are_empty_stay_blocks() {
        check(
            "returns Pong { }\nevent E",
            "returns \"Pong\" {}\nevent \"E\"\n",
        );
    }

    #[test]
    fn what_is_not_kdl_is_refused() {
        let errors = format("t.kdl", "a \"b").unwrap_err();
        assert_eq!(errors.iter().next().unwrap().place(), "t.kdl:1:3");
        assert!(format("t.kdl", &" ".repeat(MAX_FILE_BYTES + 1)).is_err());
    }
}
