//! What is read, compared with the `kdl` crate; and what is refused, with where.

use super::*;
use crate::diagnostic::Diagnostics;
use crate::limits::MAX_BLOCK_DEPTH;
use crate::source::{Sources, Spanned};
use proptest::prelude::*;

fn read(text: &str) -> Result<Document, Diagnostics> {
    let mut sources = Sources::default();
    let mut errors = Diagnostics::default();
    let file = sources.add("t.kdl".into(), text.into());
    let document = parse(&sources, file, &mut errors);
    if errors.is_empty() {
        Ok(document)
    } else {
        Err(errors)
    }
}

/// A document without its formatting.
fn ours(document: &Document) -> String {
    let mut out = String::new();
    for node in &document.nodes {
        let annotation = |annotation: &Option<Spanned<String>>| {
            annotation
                .as_ref()
                .map(|annotation| annotation.value.clone())
        };
        out += &format!("{:?} {:?}", annotation(&node.annotation), node.name.value);
        for value in &node.arguments {
            out += &format!(
                " {:?} {}",
                annotation(&value.annotation),
                scalar(&value.scalar)
            );
        }
        for (name, value) in &node.properties {
            out += &format!(
                " {:?}={:?} {}",
                name.value,
                annotation(&value.annotation),
                scalar(&value.scalar)
            );
        }
        if let Some(children) = &node.children {
            out += &format!(" {{ {} }}", ours(children));
        }
        out += ";";
    }
    out
}

fn scalar(scalar: &Scalar) -> String {
    match scalar {
        Scalar::String(text) => format!("{text:?}"),
        Scalar::Integer(number) => format!("{number}"),
        Scalar::Float(number) => format!("{number:?}"),
        Scalar::Bool(truth) => format!("{truth}"),
        Scalar::Null => "null".into(),
    }
}

/// The same of the reference.
fn theirs(document: &::kdl::KdlDocument) -> String {
    let mut out = String::new();
    for node in document.nodes() {
        let annotation = |annotation: Option<&::kdl::KdlIdentifier>| {
            annotation.map(|annotation| annotation.value().to_owned())
        };
        let value = |entry: &::kdl::KdlEntry| {
            let scalar = match entry.value() {
                ::kdl::KdlValue::String(text) => format!("{text:?}"),
                ::kdl::KdlValue::Integer(number) => format!("{number}"),
                ::kdl::KdlValue::Float(number) => format!("{number:?}"),
                ::kdl::KdlValue::Bool(truth) => format!("{truth}"),
                ::kdl::KdlValue::Null => "null".into(),
            };
            format!("{:?} {scalar}", annotation(entry.ty()))
        };
        out += &format!("{:?} {:?}", annotation(node.ty()), node.name().value());
        for entry in node.entries().iter().filter(|entry| entry.name().is_none()) {
            out += &format!(" {}", value(entry));
        }
        for entry in node.entries() {
            if let Some(name) = entry.name() {
                out += &format!(" {:?}={}", name.value(), value(entry));
            }
        }
        if let Some(children) = node.children() {
            out += &format!(" {{ {} }}", theirs(children));
        }
        out += ";";
    }
    out
}

fn check(text: &str) {
    let document = read(text).unwrap_or_else(|errors| panic!("{text:?}\n{errors}"));
    let reference =
        ::kdl::KdlDocument::parse_v2(text).unwrap_or_else(|error| panic!("{text:?}\n{error:?}"));
    assert_eq!(ours(&document), theirs(&reference), "{text:?}");
}

#[test]
fn documents_mean_what_the_reference_says() {
    for text in [
        "",
        "\u{feff}a",
        "a; b;c",
        "a 1 -2 +3 0x1F -0xff 0o17 0b1010 1_000 1.5 1e3 1.5e-3 1_0.0_1",
        "a #true #false #null #inf #-inf #nan",
        r#"a "b" c=d "e f"="g" h=(t)1 (t)"i""#,
        r#"a "\n\r\t\\\"\b\f\s\u{1F600}" "x \
              y""#,
        r###"a #"raw \n "quoted""# ##"has "# in it"##"###,
        "a \"\"\"\n    one\n      two\n\n    three\n    \"\"\"",
        "a \"\"\"\n    esc \\\"\"\" \\\n       joined\n    \"\"\"",
        "a #\"\"\"\n  raw \\n\n  \"\"\"#",
        "a \"\"\"\n\"\"\"",
        "(type)node (u8)1 p=(date)\"x\"",
        "a { b { c; d }; e } // end",
        "a{b}\nc",
        "a /* in /* nested */ side */ 1",
        "a 1 \\\n  2 \\ // why\n  3",
        "/- off { x }\non 1 /-2 /-p=3 /-{ gone } { kept } /-{ also }",
        "/-\n\n// note\noff\non",
        "- -- -a .a +a a.b <x> ?! a'b 名前 =1"
            .strip_suffix(" =1")
            .unwrap_or_default(),
        "a b = 1 c  =  2",
        "\"a b\" \"\"",
        "a \r\n b \r c \u{85} d \u{c} e \u{2028} f",
        "a\u{3000}1\u{a0}2",
    ] {
        check(text);
    }
}

#[test]
fn comments_and_empty_lines_are_kept() {
    let document = read("// one\n\n\n\na // two\n/- off 1\nb { // three\n}\n/* four */").unwrap();
    let [a, b] = &*document.nodes else {
        panic!("{document:?}")
    };
    assert_eq!(a.leading, [Trivia::Comment("// one".into()), Trivia::Blank]);
    assert_eq!(a.trailing.as_deref(), Some("// two"));
    assert_eq!(b.leading, [Trivia::Disabled("/- off 1".into())]);
    let inner = b.children.as_ref().unwrap();
    assert_eq!(inner.trailing, [Trivia::Comment("// three".into())]);
    assert_eq!(document.trailing, [Trivia::Comment("/* four */".into())]);
}

#[test]
fn errors_say_where_and_reading_goes_on() {
    let check = |text: &str, expected: &[&str]| {
        let errors = read(text).expect_err(text);
        let said: Vec<String> = errors
            .iter()
            .map(|error| format!("{}:{} {}", error.line, error.column, error.message))
            .collect();
        assert_eq!(said, expected, "{text:?}");
    };
    check(
        "a \"b\nc \"d\ne",
        &[
            "1:3 this text has no closing quote",
            "2:3 this text has no closing quote",
        ],
    );
    check("a {\n b\n", &["1:3 this block is never closed"]);
    check(
        "a\n}\nb }",
        &["2:1 this '}' closes nothing", "3:3 this '}' closes nothing"],
    );
    check(
        "a true",
        &["1:3 this word needs a '#' in front, or quotes if it is a text"],
    );
    check("a #yes", &["1:3 there is no such word"]);
    check(
        "a 1x .5",
        &["1:3 this is not a number; a text that begins with a digit needs quotes"],
    );
    check("a \"\\q\"", &["1:4 there is no such escape"]);
    check("a \"\\u{110000}\"", &["1:4 this is no character"]);
    check("a \"b\"\"c\"", &["1:6 a space is missing here"]);
    check("a { } b", &["1:7 nothing may follow a block on its line"]);
    check("a { } { }", &["1:9 a node has one block at most"]);
    check("{ b }", &["1:1 a block needs a node before it"]);
    check(
        "12 b",
        &["1:1 a name was expected here, not a whole number"],
    );
    check(
        "a 1=2",
        &["1:3 a property has a name before its '=', not a whole number"],
    );
    check("a b=", &["1:5 a value was expected here"]);
    check("(t a", &["1:1 this type annotation is not closed"]);
    check("/* a", &["1:1 this comment is never closed"]);
    check(
        "a \"\"\"x\"\"\"",
        &["1:3 a text of several lines begins on the line below its '\"\"\"'"],
    );
    check(
        "a \"\"\"\nx",
        &["1:3 this text of several lines is never closed"],
    );
    check(
        "a \"\"\"\n x\n  \"\"\"",
        &["1:3 a line of this text is indented less than its closing '\"\"\"'"],
    );
    check(
        "a \"\"\"\n x\"\"\"",
        &["1:3 the closing '\"\"\"' has to stand on a line of its own"],
    );
    check("a #\"b\nc", &["1:3 this text has no closing quote"]);
    check(
        "a \u{1}",
        &[
            "1:3 the character U+0001 may not stand in a file",
            "1:3 a value was expected here",
        ],
    );
    check(
        "a {\n b \"c\n d {\n e 1x\n }\n}\nf 2x",
        &[
            "2:4 this text has no closing quote",
            "4:4 this is not a number; a text that begins with a digit needs quotes",
            "7:3 this is not a number; a text that begins with a digit needs quotes",
        ],
    );
}

#[test]
fn absurd_nesting_is_refused_without_touching_the_stack() {
    for text in [
        "a{".repeat(200_000),
        "a /-{".repeat(200_000),
        "/-a{".repeat(200_000),
        "{".repeat(200_000),
    ] {
        assert!(read(&text).is_err());
    }
    let deepest = format!(
        "{}{}",
        "a{".repeat(MAX_BLOCK_DEPTH),
        "}".repeat(MAX_BLOCK_DEPTH)
    );
    assert!(read(&deepest).is_ok());
    assert!(read(&format!("a{{{deepest}}}")).is_err());
    for text in [
        "}".repeat(500_000),
        "/*".repeat(200_000),
        "\"".repeat(500_001),
        "#".repeat(500_000),
        "(".repeat(500_000),
    ] {
        assert!(read(&text).is_err());
    }
    assert!(read(&format!("{}{}", "/*".repeat(100_000), "*/".repeat(100_000))).is_ok());
    assert!(read(&"\\\n".repeat(200_000)).is_ok());
}

/// Pieces from which documents are put together, sound and unsound ones.
const PIECES: &[&str] = &[
    "a",
    "b ",
    "-",
    "1",
    "0x",
    "1.5",
    ".5",
    "_",
    " ",
    "  ",
    "\n",
    ";",
    "{",
    "}",
    "(",
    ")",
    "=",
    "\"",
    "\"x\"",
    "\"\"\"",
    "\"\"\"\n",
    "#",
    "#\"",
    "\"#",
    "#true",
    "#null",
    "true",
    "\\",
    "\\n",
    "\\\n",
    "/",
    "//",
    "/*",
    "*/",
    "/-",
    "\t",
    "\r\n",
    "名",
    "\u{3000}",
    "field \"n\" type=\"int\"\n",
];

proptest! {
    #[test]
    fn whatever_is_accepted_means_what_the_reference_says(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..24)
    ) {
        let text = pieces.concat();
        if let Ok(document) = read(&text)
            && let Ok(reference) = ::kdl::KdlDocument::parse_v2(&text)
        {
            prop_assert_eq!(ours(&document), theirs(&reference), "{:?}", text);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,64}") {
        let _ = read(&text);
    }
}
