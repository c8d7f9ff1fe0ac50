//! Schemas put together at random: formatting changes nothing that matters, and nothing makes the reader fall over.

use kumi_schema::{Difference, RustOptions, Schema, format};
use proptest::prelude::*;

fn types() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("type=\"string\" min_length=1 max_length=9".to_owned()),
        Just("pattern=#\"^\\w+$\"# type=string".to_owned()),
        Just("type=\"int\" max=10 min=0x1".to_owned()),
        Just("type=number default=1.5e0".to_owned()),
        Just("type=\"bool\" default=#true".to_owned()),
        Just("type=\"timestamp\"".to_owned()),
        Just("type=\"bytes\" max_length=16".to_owned()),
        Just("type=\"json\"".to_owned()),
        Just("item_type=\"Shared\" type=\"array\"".to_owned()),
        Just("type=\"map\" item_type=\"Colour\"".to_owned()),
        Just("type=\"Shared\"".to_owned()),
        Just("type=\"Part\" required=#true".to_owned()),
        Just("type=\"array\" item_type=Part".to_owned()),
        Just("type=\"Colour\" default=\"red\"".to_owned()),
        Just("type=\"Short\" required=#true".to_owned()),
    ]
}

fn spaces() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        " ",
        "  ",
        "\t",
        " /* note */ ",
        " \\\n   ",
        " /-old=1 ",
    ])
    .prop_map(str::to_owned)
}

fn line_ends() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "\n",
        ";",
        "\n\n\n",
        " // why\n",
        "\n// above\n",
        "\n/- field \"x\" type=\"nothing\"\n",
    ])
    .prop_map(str::to_owned)
}

fn fields() -> impl Strategy<Value = String> {
    prop::collection::vec(
        (types(), spaces(), line_ends(), "[a-z \"\\\\é{}]{0,8}"),
        0..5,
    )
    .prop_map(|fields| {
        let written = fields
            .iter()
            .enumerate()
            .map(|(index, (ty, space, end, text))| {
                let description = text.replace('\\', "\\\\").replace('"', "\\\"");
                format!("field \"f{index}\"{space}{ty} description=\"{description}\"{end}")
            });
        written.collect()
    })
}

fn schemas() -> impl Strategy<Value = String> {
    let channel = (
        prop::sample::select(vec!["client", "server", "either"]),
        prop::sample::select(vec!["transient", "persistent"]),
        fields(),
        fields(),
        any::<bool>(),
        line_ends(),
    );
    (prop::collection::vec(channel, 1..4), fields(), spaces()).prop_map(|(channels, shared, space)| {
        let mut text = "protocol\t\"p\" version=\"1.0.0\" {\n".to_owned();
        text += "typedef \"Short\" max_length=5 type=\"string\"\nenum \"Colour\" { values \"red\" \"blue\" }\n";
        text += &format!("message \"Shared\"{space}{{\nfield \"s\" type=\"int\"\n{}}}\n", shared.replace("\"Shared\"", "\"string\""));
        text += "union \"Part\" { variant \"s\" type=\"Shared\"; variant \"p\" item_type=\"Part\" type=array\nvariant n min=1 type=int }\n";
        for (index, (from, lifetime, asked, told, answers, end)) in channels.iter().enumerate() {
            text += &format!("channel \"c{index}\" lifetime={lifetime} from=\"{from}\" {{\n");
            let returns = if *answers { format!("returns \"A{index}\" {{ }}{end}") } else { String::new() };
            text += &format!("request \"R{index}\" {{\n{asked}\n{returns}\n}}{end}\nevent \"E{index}\" {{\n{told}\n}}\n}}\n");
        }
        text + "}"
    })
}

/// Names of every kind of thing: words of the languages, of generated code, and what the grammar allows beside them.
fn names() -> impl Strategy<Value = Vec<String>> {
    let words = prop::sample::select(vec![
        "self",
        "Self",
        "crate",
        "type",
        "async",
        "union",
        "gen",
        "_2fa",
        "__x",
        "Option",
        "Send",
        "send",
        "S",
        "from",
        "clone",
        "new",
        "validate",
        "default",
        "build",
        "transport",
        "close",
        "delete",
        "Result",
        "Client",
        "p",
        "p.client",
        "p-channel",
        "P_Connection",
        "Unknown",
        "LISTED",
        "as_str",
        "r#type",
        "a",
        "A",
        "a-b",
        "a_b",
        "a.b",
        "aB",
    ]);
    let other = "[A-Za-z_][A-Za-z0-9_.-]{0,5}";
    let name = prop_oneof![words.prop_map(str::to_owned), other];
    prop::collection::vec(name, 10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn formatting_keeps_the_meaning(text in schemas()) {
        let before = Schema::parse("t.kdl", &text).map_err(|errors| TestCaseError::fail(format!("{text}\n{errors}")))?;
        let formatted = format("t.kdl", &text).map_err(|errors| TestCaseError::fail(errors.to_string()))?;
        let after = Schema::parse("t.kdl", &formatted)
            .map_err(|errors| TestCaseError::fail(format!("{formatted}\n{errors}")))?;
        prop_assert_eq!(&before, &after, "{}", formatted);
        prop_assert_eq!(before.protocol_hash(), after.protocol_hash());
        prop_assert_eq!(format("t.kdl", &formatted).ok(), Some(formatted.clone()), "formatting twice");
        prop_assert_eq!(Difference::between(&before, &after).changes, vec![]);
        prop_assert_eq!(before.to_markdown(), after.to_markdown());
        prop_assert!(!before.to_typescript().is_empty());
    }

    #[test]
    fn every_sound_schema_becomes_rust(text in schemas()) {
        let schema = Schema::parse("t.kdl", &text).map_err(|errors| TestCaseError::fail(errors.to_string()))?;
        let code = schema.to_rust(&RustOptions::new()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert!(code.contains("pub struct PChannels"));
    }

    #[test]
    fn every_name_that_is_let_through_becomes_rust(names in names(), open in any::<bool>()) {
        let [protocol, channel, other, request, answer, event, message, field, declared, value] = &names[..] else {
            return Err(TestCaseError::fail("ten names"));
        };
        let text = format!(
            r#"protocol "{protocol}" version="1.0.0" {{
                enum "{declared}" open=#{open} {{ value "{value}"; value "{field}" }}
                union "u{declared}" {{ variant "{value}" type="{message}"; variant "{field}" type="u{declared}" }}
                message "{message}" {{ field "{field}" type="{declared}" default="{value}"; field "{event}" type="string" }}
                channel "{channel}" from="either" {{
                    request "{request}" {{ returns "{answer}" {{ field "{field}" type="{message}" }} }}
                    request "{other}" {{ returns "{answer}" }}
                    event "{event}" {{ field "{value}" type="int" required=#true }}
                    event "{message}"
                }}
                channel "{other}" {{ event "{answer}" }}
            }}"#
        );
        if let Ok(schema) = Schema::parse("t.kdl", &text) {
            let code = schema.to_rust(&RustOptions::new());
            prop_assert!(code.is_ok(), "{text}\n{:?}", code.err());
        }
    }

    #[test]
    fn a_schema_with_a_hole_in_it_is_read_or_refused(text in schemas(), at in any::<prop::sample::Index>(), length in 0usize..40) {
        let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let start = boundaries[at.index(boundaries.len())];
        let end = boundaries.iter().copied().find(|&end| end >= start + length).unwrap_or(text.len());
        let holed = format!("{}{}", &text[..start], &text[end..]);
        if let Err(errors) = Schema::parse("t.kdl", &holed) {
            prop_assert!(!errors.is_empty() && !errors.to_string().is_empty());
        }
        if let Ok(once) = format("t.kdl", &holed) {
            prop_assert_eq!(format("t.kdl", &once).ok(), Some(once));
        }
    }
}
