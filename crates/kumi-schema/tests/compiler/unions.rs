//! Unions: what is read and refused, what changes their hash, and what a change does to peers.

use kumi_schema::{Difference, Impact, Schema, Type, format};

fn schema(body: &str) -> String {
    format!(
        "protocol \"p\" version=\"1.0.0\" {{\n{body}\nchannel \"c\" {{ event \"E\" {{ field \"u\" type=\"U\" }} }}\n}}"
    )
}

fn read(body: &str) -> Schema {
    Schema::parse("t.kdl", &schema(body)).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The errors of a protocol's body, as `line:column message | help`.
fn refused(body: &str, expected: &[&str]) {
    let errors = Schema::parse("t.kdl", &schema(body)).expect_err(body);
    let said: Vec<String> = errors
        .iter()
        .map(|error| {
            let help = error.help.as_deref().map(|help| format!(" | {help}"));
            let (line, column) = (error.line - 1, error.column);
            format!(
                "{line}:{column} {}{}",
                error.message,
                help.unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(said, expected, "{body}");
}

#[test]
fn a_union_has_its_variants_in_order() {
    let schema = read(
        "union \"U\" description=\"One of two.\" { variant \"text\" type=\"string\" max_length=3 description=\"Words.\"\n\
         variant \"list\" type=\"array\" item_type=\"U\" }",
    );
    let union = schema.protocol().union("U").expect("it is declared");
    assert_eq!(union.description.as_deref(), Some("One of two."));
    let [text, list] = &*union.variants else {
        panic!("two variants");
    };
    assert_eq!((&*text.name, &text.ty), ("text", &Type::String));
    assert_eq!(text.constraints.max_length, Some(3));
    assert_eq!(text.description.as_deref(), Some("Words."));
    assert_eq!(list.ty, Type::Array(Box::new(Type::Named("U".into()))));
}

#[test]
fn formatting_keeps_a_union() {
    let text = schema(
        "union U{variant \"a\" max=1 type=int;variant \"b\" type=\"U2\"};union \"U2\" {variant \"c\" type=\"bool\"}",
    );
    let formatted = format("t.kdl", &text).expect("it is KDL");
    assert!(
        formatted.contains("    union \"U\" {\n        variant \"a\" type=\"int\" max=1\n"),
        "{formatted}"
    );
    assert_eq!(
        Schema::parse("t.kdl", &text).expect("sound"),
        Schema::parse("t.kdl", &formatted).expect("sound")
    );
}

#[test]
fn unions_that_make_no_sense_are_refused() {
    refused(
        "union \"U\"",
        &["1:7 union \"U\" has no variants | for instance: variant \"text\" type=\"string\""],
    );
    refused(
        "union \"U\" { variant \"a\" type=\"Nothing\" }",
        &["1:30 there is no type \"Nothing\" | declare it: message \"Nothing\" { ... }"],
    );
    refused(
        "union \"U\" { variant \"a\" type=\"int\"; variant \"a\" type=\"bool\" }",
        &["1:45 variant \"a\" is declared twice | take one of them out, or rename it"],
    );
    refused(
        "union \"U\" { variant \"a_b\" type=\"int\"; variant \"aB\" type=\"bool\" }",
        &["1:47 \"aB\" and \"a_b\" would both be called AB in code | choose another name"],
    );
    refused(
        "union \"U\" { variant \"a\" }",
        &["1:13 this variant has no type | for instance: type=\"string\""],
    );
    refused(
        "union \"U\" { variant \"a\" type=\"int\" required=#true; value \"b\" }",
        &[
            "1:36 'variant' has no property \"required\" | it has type, item_type, min, max, min_length, max_length, pattern, description",
            "1:52 'value' has no place in a union | known here: variant, description",
        ],
    );
    refused(
        "union \"U\" { variant \"a\" type=\"int\" max_length=1; variant \"b\" type=\"int\" min=2 max=1 }",
        &[
            "1:47 max_length means nothing for int | did you mean max?",
            "1:83 no number is at least 2 and at most 1 | make min the smaller one",
        ],
    );
    refused(
        "union \"U\" { variant \"a\" type=\"int\" }\nenum \"U\" { value \"b\" }",
        &[
            "2:6 type \"U\" is declared twice | give one of them another name; a message that several channels use is declared once with 'message' and then only named",
        ],
    );
    refused(
        "union \"U\" { variant \"a\" type=\"int\" }\nmessage \"M\" { field \"u\" type=\"U\" default=1 }",
        &["2:42 a union cannot be a default | leave it out"],
    );
    refused(
        "union \"U\" { variant \"a\" type=\"int\" }\nchannel \"d\" { request \"R\" { returns \"U\" } }",
        &[
            "2:37 \"U\" is not a message | what travels on a channel is a message; give it a field of this type",
        ],
    );
    refused(
        "union \"U\" { variant \"a\" type=\"array\" item_type=\"M\" }\nmessage \"M\" {}",
        &[
            "1:48 \"M\" holds nothing, so an array of it is only a number | make the field an int, or give the message a field",
        ],
    );
}

#[test]
fn a_union_needs_a_variant_that_ends() {
    let help = "a union needs a variant that does not lead back to it";
    refused(
        "union \"U\" { variant \"a\" type=\"U\"; variant \"b\" type=\"V\" }\nunion \"V\" { variant \"c\" type=\"U\" }",
        &[&format!(
            "1:7 union \"U\" always holds itself: U -> U | {help}"
        )],
    );
    refused(
        "union \"U\" { variant \"a\" type=\"M\"; variant \"b\" type=\"M\" }\nmessage \"M\" { field \"u\" type=\"U\" required=#true }",
        &[&format!(
            "2:9 message \"M\" always holds itself: M -> U -> M | {help}"
        )],
    );
    for ends in [
        "variant \"b\" type=\"int\"",
        "variant \"b\" type=\"array\" item_type=\"M\"",
        "variant \"b\" type=\"N\"",
    ] {
        read(&format!(
            "union \"U\" {{ variant \"a\" type=\"M\"; {ends} }}\n\
             message \"M\" {{ field \"u\" type=\"U\" required=#true }}\nmessage \"N\" {{ field \"u\" type=\"U\" }}"
        ));
    }
}

const BASE: &str = "union \"U\" { variant \"a\" type=\"int\" max=5; variant \"m\" type=\"M\" }\n\
                    message \"M\" { field \"x\" type=\"int\" }";

/// One replacement in `BASE`, and the one change that it makes. The hash of the channel changes with it.
fn changes(from: &str, to: &str, impact: Impact, expected: &str) {
    let changed = BASE.replacen(from, to, 1);
    assert_ne!(changed, BASE, "{from} is not there");
    let (old, new) = (read(BASE), read(&changed));
    let difference = Difference::between(&old, &new);
    let [change] = &*difference.changes else {
        panic!("{:?}", difference.changes);
    };
    assert_eq!((change.impact, &*change.text), (impact, expected));
    assert!(
        change
            .place
            .starts_with("channel c, event E, field u, union U"),
        "{}",
        change.place
    );
    assert_ne!(
        old.channel_hash("c"),
        new.channel_hash("c"),
        "{from} -> {to}"
    );
}

#[test]
fn every_change_of_a_union_is_told() {
    use Impact::{Breaking, Safe};
    changes(
        "variant \"a\"",
        "variant \"b\" type=\"bool\"; variant \"a\"",
        Breaking,
        "variant \"b\" is new, and older peers refuse it",
    );
    changes(
        "variant \"a\" type=\"int\" max=5; ",
        "",
        Breaking,
        "variant \"a\" is gone",
    );
    changes(
        "type=\"int\" max=5",
        "type=\"string\"",
        Breaking,
        "its type was int and is string",
    );
    changes("max=5", "max=4", Breaking, "its max is narrower");
    changes(
        "field \"x\" type=\"int\"",
        "field \"x\" type=\"int\"; field \"y\" type=\"int\"",
        Safe,
        "it is new",
    );
    changes(
        "variant \"a\" type=\"int\" max=5; variant \"m\" type=\"M\"",
        "variant \"m\" type=\"M\"; variant \"a\" type=\"int\" max=5",
        Safe,
        "its variants have another order; the binary format is off between the two versions",
    );
}

#[test]
fn a_union_in_place_of_a_message_breaks() {
    let difference = Difference::between(
        &read("message \"U\" { field \"x\" type=\"int\" }"),
        &read("union \"U\" { variant \"a\" type=\"int\" }"),
    );
    assert!(difference.is_breaking(), "{difference:?}");
}
