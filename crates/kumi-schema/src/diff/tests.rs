//! Every kind of change, one at a time: what is said of it, and whether it breaks.

use super::*;

const BASE: &str = r#"
protocol "chat" version="1.2.0" {
    typedef "Name" type="string" min_length=1 max_length=20 pattern="^a"
    enum "Kind" { value "a"; value "b" }
    enum "Wide" open=#true { value "a" }
    message "User" {
        field "name" type="Name" required=#true
        field "age" type="int" min=0 max=150
        field "level" type="int" default=1
        field "friends" type="array" item_type="User"
        field "kind" type="Kind"
        field "wide" type="Wide"
    }
    channel "rooms" from="client" {
        request "Join" idempotent=#true { field "user" type="User"; returns "Joined" { field "n" type="int" } }
        request "Leave"
        event "Posted" { field "text" type="string" }
    }
    channel "ticks" from="server" { event "Tick" }
}"#;

fn compare(new: &str) -> Difference {
    Difference::between(
        &Schema::parse("old.kdl", BASE).unwrap(),
        &Schema::parse("new.kdl", new).unwrap_or_else(|errors| panic!("{errors}")),
    )
}

/// One replacement, and the one change it makes.
fn check(from: &str, to: &str, expected: &str) {
    let changed = BASE.replacen(from, to, 1);
    assert_ne!(changed, BASE, "{from} is not there");
    let difference = compare(&changed);
    let said: Vec<String> = difference.changes.iter().map(Change::to_string).collect();
    assert_eq!(said, [expected], "{from} -> {to}");
}

#[test]
fn the_same_schema_has_no_changes() {
    assert_eq!(compare(BASE).changes, []);
    assert!(!compare(BASE).is_breaking());
}

#[test]
fn changes_of_channels() {
    let difference = compare(&BASE.replace("ticks", "tocks"));
    let said: Vec<String> = difference.changes.iter().map(Change::to_string).collect();
    assert_eq!(
        said,
        [
            "breaking: channel ticks: it is gone",
            "safe: channel tocks: it is new"
        ]
    );
    check(
        "\"ticks\" from=\"server\"",
        "\"ticks\" from=\"server\" delivery=\"unreliable\"",
        "breaking: channel ticks: its delivery was reliable and is unreliable",
    );
    check(
        "\"rooms\" from=\"client\"",
        "\"rooms\" from=\"client\" lifetime=\"transient\"",
        "safe: channel rooms: its lifetime was persistent and is transient",
    );
    check(
        "version=\"1.2.0\"",
        "version=\"2.0.0\"",
        "breaking: protocol: the major version was 1 and is 2",
    );
    check(
        "protocol \"chat\"",
        "protocol \"talk\"",
        "breaking: protocol: its name was \"chat\" and is \"talk\"",
    );
}

#[test]
fn changes_of_requests_and_events() {
    let join = "channel rooms, request Join";
    check(
        "idempotent=#true",
        "",
        &format!("breaking: {join}: it is no longer idempotent, and older clients may repeat it"),
    );
    check(
        "request \"Leave\"",
        "",
        "breaking: channel rooms, request Leave: it is gone",
    );
    check(
        "request \"Leave\"",
        "request \"Leave\"; request \"Ban\"",
        "safe: channel rooms, request Ban: it is new; servers need it first",
    );
    check(
        "request \"Leave\"",
        "request \"Leave\" { returns \"Left\" { } }",
        "breaking: channel rooms, request Leave: it has an answer now, which older servers do not give",
    );
    check(
        "event \"Posted\"",
        "event \"Posted\" from=\"either\"",
        "breaking: channel rooms, event Posted: it came from the server and comes from either side",
    );
    check(
        "event \"Tick\"",
        "event \"Tick\"; event \"Tock\"",
        "safe: channel ticks, event Tock: it is new; older peers ignore it",
    );
}

#[test]
fn changes_of_fields() {
    let user = "channel rooms, request Join, field user";
    check(
        "field \"age\" type=\"int\" min=0 max=150",
        "",
        &format!("safe: {user}, field age: it is gone"),
    );
    check(
        "field \"name\" type=\"Name\" required=#true",
        "",
        &format!("breaking: {user}, field name: it is gone, and older peers require it"),
    );
    check(
        "field \"kind\"",
        "field \"email\" type=\"string\"\nfield \"kind\"",
        &format!("safe: {user}, field email: it is new"),
    );
    check(
        "field \"kind\"",
        "field \"email\" type=\"string\" required=#true\nfield \"kind\"",
        &format!("breaking: {user}, field email: it is new and required"),
    );
    check(
        "type=\"Name\" required=#true",
        "type=\"Name\"",
        &format!("breaking: {user}, field name: it may be missing now, and older peers require it"),
    );
    check(
        "field \"n\" type=\"int\"",
        "field \"n\" type=\"int\" required=#true",
        "breaking: channel rooms, request Join, answer, field n: it is required now",
    );
    check(
        "default=1",
        "default=2",
        &format!("breaking: {user}, field level: a missing one meant 1 and means 2"),
    );
    check(
        "default=1",
        "",
        &format!("safe: {user}, field level: its default is gone"),
    );
    check(
        "item_type=\"User\"",
        "item_type=\"string\"",
        &format!("breaking: {user}, field friends, items: its type was User and is string"),
    );
    check(
        "type=\"array\" item_type=\"User\"",
        "type=\"map\" item_type=\"User\"",
        &format!("breaking: {user}, field friends: its type was array of User and is map of User"),
    );
}

#[test]
fn changes_of_constraints() {
    let user = "channel rooms, request Join, field user";
    let wider = "is wider; older readers refuse the new values";
    check(
        "max_length=20",
        "max_length=10",
        &format!("breaking: {user}, field name: its max_length is narrower"),
    );
    check(
        "max_length=20",
        "max_length=30",
        &format!("safe: {user}, field name: its max_length {wider}"),
    );
    check(
        "min_length=1",
        "min_length=2",
        &format!("breaking: {user}, field name: its min_length is narrower"),
    );
    check(
        "min_length=1",
        "",
        &format!("safe: {user}, field name: its min_length {wider}"),
    );
    check(
        "max=150",
        "",
        &format!("safe: {user}, field age: its max {wider}"),
    );
    check(
        "min=0",
        "min=-1",
        &format!("safe: {user}, field age: its min {wider}"),
    );
    check(
        "min=0",
        "min=1",
        &format!("breaking: {user}, field age: its min is narrower"),
    );
    check(
        "pattern=\"^a\"",
        "pattern=\"^b\"",
        &format!("breaking: {user}, field name: its pattern changed"),
    );
    check(
        "pattern=\"^a\"",
        "",
        &format!(
            "safe: {user}, field name: its pattern is gone; older readers refuse the new values"
        ),
    );
}

#[test]
fn changes_of_enums() {
    let user = "channel rooms, request Join, field user";
    check(
        "value \"b\"",
        "value \"b\"; value \"c\"",
        &format!(
            "breaking: {user}, field kind, enum Kind: value \"c\" is new, and older peers refuse it"
        ),
    );
    check(
        "value \"b\"",
        "",
        &format!("breaking: {user}, field kind, enum Kind: value \"b\" is gone"),
    );
    check(
        "open=#true { value \"a\" }",
        "open=#true { value \"a\"; value \"b\" }",
        &format!("safe: {user}, field wide, enum Wide: value \"b\" is new"),
    );
    check(
        "open=#true",
        "",
        &format!("breaking: {user}, field wide, enum Wide: it is closed now"),
    );
    check(
        "value \"a\"; value \"b\"",
        "value \"b\"; value \"a\"",
        &format!(
            "safe: {user}, field kind, enum Kind: its values have another order; the binary format is off between \
             the two versions"
        ),
    );
}

/// It changes the hash, so it is reported, but whatever travels as JSON stays the same.
#[test]
fn a_new_name_for_the_same_message_is_safe() {
    let renamed = compare(&BASE.replace("User", "Person"));
    let said: Vec<String> = renamed.changes.iter().map(Change::to_string).collect();
    assert_eq!(
        said,
        [
            "safe: channel rooms, request Join, field user: what it holds was called User and is called Person; the \
          binary format is off between the two versions"
        ]
    );
    assert_eq!(
        compare(&BASE.replace(
            "type=\"Name\"",
            "type=\"string\" min_length=1 max_length=20 pattern=\"^a\""
        ))
        .changes,
        []
    );
}

/// Two schemas without a change between them have the same hash: every difference is reported.
#[test]
fn whatever_changes_a_hash_is_told() {
    let old = Schema::parse("old.kdl", BASE).unwrap();
    let edits = [
        ("value \"a\"; value \"b\"", "value \"b\"; value \"a\""),
        ("User", "Person"),
        ("\"Kind\"", "\"Sort\""),
        ("default=1", "default=2"),
        ("default=1", ""),
        ("min=0", "min=1"),
        ("max=150", ""),
        ("pattern=\"^a\"", "pattern=\"^b\""),
        ("max_length=20", "max_length=21"),
        ("item_type=\"User\"", "item_type=\"Kind\""),
        ("type=\"array\"", "type=\"map\""),
        ("required=#true", ""),
        ("open=#true", ""),
        ("\"Posted\" {", "\"Posted\" from=\"either\" {"),
        ("from=\"client\"", "from=\"server\""),
        ("from=\"client\"", "delivery=\"reliable\""),
        ("from=\"server\"", "from=\"server\" delivery=\"unreliable\""),
        (
            "request \"Leave\"",
            "request \"Leave\" { returns \"User\" }",
        ),
        ("returns \"Joined\" { field \"n\" type=\"int\" }", ""),
        ("field \"age\" type=\"int\" min=0 max=150", ""),
        ("\"chat\"", "\"chat\" namespace=\"x\""),
        ("\"chat\"", "\"chats\""),
    ];
    for (from, to) in edits {
        let changed = BASE.replace(from, to);
        assert_ne!(changed, BASE, "{from} is not there");
        let new = Schema::parse("new.kdl", &changed).unwrap_or_else(|errors| panic!("{errors}"));
        let same = old.protocol_hash() == new.protocol_hash();
        let told = !Difference::between(&old, &new).changes.is_empty();
        assert!(same || told, "{from} -> {to}");
    }
}

#[test]
fn a_higher_major_version_announces_what_breaks() {
    let difference = compare(
        &BASE
            .replace("1.2.0", "2.0.0")
            .replace("request \"Leave\"", ""),
    );
    assert!(difference.is_breaking() && !difference.breaks_unannounced());
    let difference = compare(
        &BASE
            .replace("1.2.0", "1.3.0")
            .replace("request \"Leave\"", ""),
    );
    assert!(difference.breaks_unannounced());
}
