//! A type that is missing is reported unless it may have been declared in what could not be read.

use kumi_schema::{MemoryLoader, Schema};

/// The errors of a schema whose first lines are `head` and whose protocol begins with `body`.
fn messages(head: &str, body: &str) -> Vec<String> {
    let text = format!(
        "{head}\nprotocol \"p\" version=\"1.0.0\" {{\n{body}\nchannel \"c0\" {{ event \"E0\" }}\n}}"
    );
    let loader = MemoryLoader::new().with("p.kdl", text).with("a.kdl", "");
    let errors = Schema::load_with(&loader, "p.kdl").expect_err("refused");
    errors.iter().map(|error| error.message.clone()).collect()
}

const MISSING: &str = "there is no type \"Missing\"";
const USE: &str = "message \"M\" { field \"a\" type=\"Missing\" }";

#[test]
fn a_field_that_cannot_be_read_hides_no_missing_type() {
    let wrong = "message \"N\" { field \"b\" pattern=r\"^a$\" }";
    let unread = "a text in quotes cannot stand here";
    let found = messages("", &format!("{USE}\n{wrong}"));
    assert_eq!(found, [MISSING, unread]);
    let found = messages("", &format!("{wrong}\n{USE}"));
    assert_eq!(found, [unread, MISSING]);
}

#[test]
fn a_declaration_that_cannot_be_read_hides_what_it_may_have_declared() {
    for wrong in [
        "message \"Missing\" x=r\"y\" { }",
        "channel \"c\" { request \"R\"; event \"Missing\" x=r\"y\" }",
        "channel \"c\" { request \"R\" { returns \"Missing\" x=r\"y\" } }",
    ] {
        let found = messages("", &format!("{USE}\n{wrong}"));
        assert_eq!(found, ["a text in quotes cannot stand here"], "{wrong}");
    }
}

#[test]
fn braces_that_do_not_match_hide_missing_types() {
    for wrong in ["message \"N\" { field \"b\" type=\"int\"", "}"] {
        let found = messages("", &format!("{USE}\n{wrong}"));
        assert!(!found.is_empty());
        assert!(!found.iter().any(|message| message == MISSING), "{found:?}");
    }
}

#[test]
fn an_import_hides_missing_types_only_when_its_file_is_not_read() {
    assert_eq!(messages("import \"a.kdl\"", USE), [MISSING]);
    assert_eq!(
        messages("import \"a.kdl\" x=1", USE),
        ["'import' has no property \"x\"", MISSING]
    );
    for import in ["import 5", "import \"a.kdl\" \"b.kdl\"", "import \"b.kdl\""] {
        let found = messages(import, USE);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_ne!(found, [MISSING]);
    }
}
