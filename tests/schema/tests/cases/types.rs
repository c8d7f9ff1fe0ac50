//! Types: what they look like in JSON and in the binary format, what is refused, what is assumed.

use super::*;
use kumi_unison::{Message, Payload, Problem};
use serde_json::Value;
use std::fmt::Debug;

/// Through JSON and through the binary format, and back.
fn survives<M: Message + PartialEq + Debug>(message: &M) -> Value {
    message.validate().expect("it is sound");
    let typed = Payload::typed(message).expect("it can be archived");
    assert_eq!(&typed.to_typed::<M>().expect("it can be read"), message);
    let payload = Payload::json(message).expect("it can be written");
    assert_eq!(&payload.to_json::<M>().expect("it can be read"), message);
    payload.to_value().expect("it is JSON")
}

fn problem<M: Message>(message: &M) -> (String, Problem) {
    let error = message.validate().expect_err("it is not sound");
    (error.path, error.problem)
}

#[test]
fn every_type_survives_both_formats() {
    assert_eq!(
        survives(&scalars()),
        json!({
            "text": "hello", "whole": 5, "broken": 0.5, "other": 1e9, "truth": true, "at": 1_700_000_000_000u64,
            "blob": "AAEC", "anything": { "deep": [1, null, "a text that is too long to be stored inline"] },
            "colour": "sea-green", "mood": "somewhat odd",
        })
    );
    assert_eq!(
        survives(&lists()),
        json!({
            "words": ["one"], "grid": [[0, 100], []],
            "people": { "ann": { "text": "ann", "list": ["a-b"], "blobs": ["AQ==", ""], "sky": { "blue": "Bw==" } } },
            "loose": [1, "x"], "free": { "k": [true] }, "moods": { "now": "good" },
        })
    );
    assert_eq!(survives(&Ping {}), json!({}));
    assert_eq!(survives(&()), json!(null));
    survives(&tree());
}

#[test]
fn odd_names_travel_as_they_were_written() {
    let odd = Odd {
        self_: Some(1),
        camel_case: Some(2),
        with_dash: Some(3),
        _2fa: Some(true),
        ..Odd::new("t")
    };
    assert_eq!(
        survives(&odd),
        json!({ "type": "t", "self": 1, "camelCase": 2, "with-dash": 3, "_2fa": true })
    );
    assert_eq!(odd.r#type, "t");
    assert_eq!(CreateUser::NAME, "CreateUser");
}

#[test]
fn what_is_missing_has_its_default_or_nothing() {
    let read: Defaults =
        serde_json::from_value(json!({ "whole": 1, "unheard": [] })).expect("nothing is required");
    let expected = Defaults {
        whole: 1,
        ..Defaults::default()
    };
    assert_eq!(read, expected);
    assert_eq!(
        survives(&Defaults::default()),
        json!({
            "text": "say \"hi\"\n", "whole": -3, "broken": 1.0, "truth": true, "at": 1000, "colour": "sea-green",
            "mood": "bad",
        })
    );
    assert_eq!(survives(&Optionals::default()), json!({}));
    let missing =
        serde_json::from_value::<Odd>(json!({ "self": 1 })).expect_err("type is required");
    assert!(missing.to_string().contains("`type`"), "{missing}");
}

#[test]
fn a_closed_enum_refuses_what_an_open_one_keeps() {
    assert!(serde_json::from_value::<Colour>(json!("pink")).is_err());
    assert_eq!(
        Colour::LISTED.map(|colour| colour.to_string()),
        ["red", "sea-green", "type"]
    );
    assert_eq!(
        serde_json::from_value::<Colour>(json!("type")).ok(),
        Some(Colour::Type)
    );
    let mood: Mood = serde_json::from_value(json!("blue")).expect("open");
    assert_eq!(mood, Mood::Unknown("blue".into()));
    assert_eq!(mood.as_str(), "blue");
    assert_eq!(
        serde_json::from_value::<Mood>(json!("good")).ok(),
        Some(Mood::Good)
    );
    assert!(serde_json::from_value::<Mood>(json!(1)).is_err());
}

#[test]
fn numbers_have_bounds() {
    let check = |change: fn(&mut Scalars), path: &str, expected: Problem| {
        let mut message = scalars();
        change(&mut message);
        assert_eq!(problem(&message), (path.to_owned(), expected));
    };
    check(
        |message| message.whole = 6,
        "whole",
        Problem::TooLarge("5".into()),
    );
    check(
        |message| message.whole = -6,
        "whole",
        Problem::TooSmall("-5".into()),
    );
    check(
        |message| message.broken = -0.6,
        "broken",
        Problem::TooSmall("-0.5".into()),
    );
    check(
        |message| message.broken = f64::NAN,
        "broken",
        Problem::NotFinite,
    );
    check(
        |message| message.other = f64::INFINITY,
        "other",
        Problem::NotFinite,
    );
    check(
        |message| message.at = Timestamp(-1),
        "at",
        Problem::TooSmall("0 ms".into()),
    );
    check(
        |message| message.blob = vec![0; 9],
        "blob",
        Problem::TooLong(8),
    );
}

#[test]
fn texts_have_lengths_in_characters_and_patterns() {
    let check = |text: &str, expected: Problem| {
        let message = Optionals {
            text: Some(text.into()),
            ..Optionals::default()
        };
        assert_eq!(problem(&message), ("text".to_owned(), expected));
    };
    check("", Problem::TooShort(1));
    check("abcdefghijklmnopqrstu", Problem::TooLong(20));
    check("é".repeat(20).as_str(), Problem::Pattern(r"^[a-z][\w-]*$"));
    check("No", Problem::Pattern(r"^[a-z][\w-]*$"));
}

#[test]
fn constraints_hold_inside_of_lists_and_name_the_place() {
    let check = |change: fn(&mut Lists), path: &str, expected: Problem| {
        let mut message = lists();
        change(&mut message);
        assert_eq!(problem(&message), (path.to_owned(), expected));
    };
    check(
        |lists| lists.words = vec!["a".into(); 4],
        "words",
        Problem::TooLong(3),
    );
    check(
        |lists| lists.words.push(String::new()),
        "words[1]",
        Problem::TooShort(1),
    );
    check(
        |lists| lists.grid = vec![vec![], vec![1, 101]],
        "grid[1][1]",
        Problem::TooLarge("100".into()),
    );
    check(
        |lists| lists.grid = vec![vec![0; 5]],
        "grid[0]",
        Problem::TooLong(4),
    );
    check(
        |lists| {
            let person = Optionals {
                list: Some(vec!["abcdefghijk".into()]),
                ..Optionals::default()
            };
            lists.people.insert("b \"b".into(), person);
        },
        "people[\"b \\\"b\"].list[0]",
        Problem::TooLong(10),
    );
    let mut message = tree();
    message.children[1].children[0].label = "too long".into();
    assert_eq!(
        problem(&message),
        (
            "children[1].children[0].label".to_owned(),
            Problem::TooLong(5)
        )
    );
}

#[test]
fn an_archive_that_nests_too_deep_is_refused() {
    let mut deep = leaf("x");
    for _ in 0..300 {
        deep = Tree {
            left: Some(Box::new(deep)),
            ..leaf("x")
        };
    }
    let payload = Payload::typed(&deep).expect("writing is not limited");
    assert!(payload.to_typed::<Tree>().is_err());
    // Taken apart by hand, because dropping it would nest as deep.
    while let Some(inner) = deep.left.take() {
        deep = *inner;
    }
}

#[test]
fn the_facts_of_the_schema_are_constants() {
    assert_eq!(EVERYTHING_PROTOCOL_VERSION, "1.4.2");
    let schema = kumi_schema::Schema::parse(
        "t.kdl",
        include_str!("../../../../crates/kumi-schema/tests/schemas/everything.kdl"),
    )
    .expect("sound");
    assert_eq!(schema.protocol_hash().0, EVERYTHING_PROTOCOL_HASH);
    assert_eq!(
        schema.channel_hash("old-query").map(|hash| hash.0),
        Some(OLD_QUERY_CHANNEL_HASH)
    );
}
