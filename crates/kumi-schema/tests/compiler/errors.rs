//! What a person sees when a schema is wrong: the place, the line, a caret and a way out.

use kumi_schema::{Diagnostics, MemoryLoader, Schema};

fn refused(text: &str) -> Diagnostics {
    match Schema::parse("t.kdl", text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(errors) => errors,
    }
}

/// The errors of a protocol's body, as `line:column message | help`.
fn check(body: &str, expected: &[&str]) {
    let text = format!(
        "protocol \"p\" version=\"1.0.0\" {{\n{body}\nchannel \"c0\" {{ event \"E0\" }}\n}}"
    );
    let errors = refused(&text);
    let said: Vec<String> = errors
        .iter()
        .map(|error| {
            let help = error.help.as_deref().map(|help| format!(" | {help}"));
            format!(
                "{}:{} {}{}",
                error.line - 1,
                error.column,
                error.message,
                help.unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(said, expected, "{body}");
}

#[test]
fn errors_are_shown_with_their_line_and_a_way_out() {
    let errors = refused(
        r#"protocol "chat" version="1" {
    message "User" {
        field "name" type="strng" requird=#true
        field "name" type="int" min=3 max=1
	field "年齢" type="int"
    }
    chanel "rooms" {
    }
    channel "rooms" from="cleint" {
        request "Join" { returns "Usr" }
    }
}
"#,
    );
    let expected = r#"error: there is no type "strng"
  --> t.kdl:3:27
   |
 3 |         field "name" type="strng" requird=#true
   |                           ^^^^^^^
   = help: did you mean "string"?

error: 'field' has no property "requird"
  --> t.kdl:3:35
   |
 3 |         field "name" type="strng" requird=#true
   |                                   ^^^^^^^
   = help: did you mean required?

error: field "name" is declared twice
  --> t.kdl:4:15
   |
 4 |         field "name" type="int" min=3 max=1
   |               ^^^^^^
   = note: the first one is at t.kdl:3:15
   = help: take one of them out, or rename it

error: no number is at least 3 and at most 1
  --> t.kdl:4:43
   |
 4 |         field "name" type="int" min=3 max=1
   |                                           ^
   = help: make min the smaller one

error: a name begins with a letter from a to z, small or capital
  --> t.kdl:5:8
   |
 5 | 	field "年齢" type="int"
   | 	      ^^^^^^
   = help: 

error: 'chanel' has no place in a protocol
  --> t.kdl:7:5
   |
 7 |     chanel "rooms" {
   |     ^^^^^^
   = help: did you mean channel?

error: from cannot be "cleint"
  --> t.kdl:9:26
   |
 9 |     channel "rooms" from="cleint" {
   |                          ^^^^^^^^
   = help: did you mean "client"?

error: there is no message "Usr"
  --> t.kdl:10:34
    |
 10 |         request "Join" { returns "Usr" }
    |                                  ^^^^^
    = help: did you mean "User"?"#;
    let shown = errors.to_string();
    assert_eq!(shown, expected.replace("\n   = help: \n", "\n"), "{shown}");
}

#[test]
fn errors_of_all_kinds_come_at_once() {
    check(
        r#"message "M" { field "x" type="strng" requird=#true }
message "A" { field "b" type="B" required=#true }
message "B" { field "a" type="A" required=#true }
message "P" { field "p" type="string" pattern="[" }
message "Q" { field "p" type="string" default=3 }
message "R" { field "n" type="int" min=3 max=1 }
enum "E" "a" "a"
channel "c1" { request "Join" { returns "Usr" } }
channel "c1" { request "R" { returns "Usr" }; event "E1"; event "E1" }
channel "1" { event "E2" { field "x" type="strng" } }
message "N" { field "x" type="int"; field "x" type="int" min=3 max=1 }
message "O" { field "1" type="strng"; field "2" type="strng" }
message "1" { field "x" type="strng" min=3 max=1 }
service "s" { method "1" { request { field "a" tpe="int" } } }
channel "c2" { request "2" { field "b" type="1"; returns "3" { field "y" type="strng" } }; event "4"; event "5" }
enum "6" "a" "a"
typedef "7" type="string" pattern="["
message "M" { field "z" type="strng" }
message "S" { field "w" min=3 max=1 }"#,
        &[
            "1:30 there is no type \"strng\" | did you mean \"string\"?",
            "1:38 'field' has no property \"requird\" | did you mean required?",
            "2:9 message \"A\" always holds itself: A -> B -> A | one of these fields has to be optional, or an array or \
             a map",
            "4:47 this is no regular expression: found unclosed character class | a raw text needs no doubled \
             backslashes: #\"^\\d+$\"#",
            "5:47 3 is not of type string | put quotes around it",
            "6:46 no number is at least 3 and at most 1 | make min the smaller one",
            "7:14 value \"a\" is declared twice | take one of them out",
            "8:41 there is no message \"Usr\" | declare it: message \"Usr\" { field ... }",
            "9:9 channel \"c1\" is declared twice | give one of them another name",
            "9:38 there is no message \"Usr\" | declare it: message \"Usr\" { field ... }",
            "9:65 \"E1\" is there twice | choose another name",
            "10:9 a name begins with a letter from a to z, small or capital",
            "10:43 there is no type \"strng\" | did you mean \"string\"?",
            "11:43 field \"x\" is declared twice | take one of them out, or rename it",
            "11:68 no number is at least 3 and at most 1 | make min the smaller one",
            "12:21 a name begins with a letter from a to z, small or capital",
            "12:30 there is no type \"strng\" | did you mean \"string\"?",
            "12:45 a name begins with a letter from a to z, small or capital",
            "12:54 there is no type \"strng\" | did you mean \"string\"?",
            "13:9 a name begins with a letter from a to z, small or capital",
            "13:30 there is no type \"strng\" | did you mean \"string\"?",
            "13:48 no number is at least 3 and at most 1 | make min the smaller one",
            "14:22 a name begins with a letter from a to z, small or capital",
            "14:38 this field has no type | for instance: type=\"string\"",
            "14:48 'field' has no property \"tpe\" | did you mean type?",
            "15:24 a name begins with a letter from a to z, small or capital",
            "15:58 a name begins with a letter from a to z, small or capital",
            "15:79 there is no type \"strng\" | did you mean \"string\"?",
            "15:98 a name begins with a letter from a to z, small or capital",
            "15:109 a name begins with a letter from a to z, small or capital",
            "16:6 a name begins with a letter from a to z, small or capital",
            "16:14 value \"a\" is declared twice | take one of them out",
            "17:9 a name begins with a letter from a to z, small or capital",
            "17:35 this is no regular expression: found unclosed character class | a raw text needs no doubled \
             backslashes: #\"^\\d+$\"#",
            "18:9 type \"M\" is declared twice | give one of them another name; a message that several channels use is \
             declared once with 'message' and then only named",
            "18:30 there is no type \"strng\" | did you mean \"string\"?",
            "19:15 this field has no type | for instance: type=\"string\"",
            "19:35 no number is at least 3 and at most 1 | make min the smaller one",
        ],
    );
    // A line that cannot be read, and a file without a protocol.
    let errors = refused(
        r#"message "A" { field "a" type="A" required=#true }
message "B" { field "n" type="int" max= }
message "C" { field "n" type="int" min=3 max=1 }
"#,
    );
    let said: Vec<_> = errors
        .iter()
        .map(|error| (error.line, &*error.message))
        .collect();
    let expected = [
        (1, "message \"A\" always holds itself: A -> A"),
        (2, "a value was expected here"),
        (3, "no number is at least 3 and at most 1"),
    ];
    assert_eq!(said, expected);
}

#[test]
fn fields_and_their_constraints() {
    check(
        "message \"M\" { field \"a\" }",
        &["1:15 this field has no type | for instance: type=\"string\""],
    );
    check(
        "message \"M\" { field type=\"int\" }",
        &["1:15 'field' needs a name | for instance: field \"text\" type=\"string\""],
    );
    check(
        "message \"M\" { field \"a\" type=\"string\" min=1 }",
        &["1:43 min means nothing for string | did you mean min_length?"],
    );
    check(
        "message \"M\" { field \"a\" type=\"int\" max_length=1 }",
        &["1:47 max_length means nothing for int | did you mean max?"],
    );
    check(
        "message \"M\" { field \"a\" type=\"bool\" pattern=\"x\" }",
        &["1:45 pattern means nothing for bool | it belongs to string"],
    );
    check(
        "message \"M\" { field \"a\" type=\"int\" min=5 max=4 }",
        &["1:46 no number is at least 5 and at most 4 | make min the smaller one"],
    );
    check(
        "typedef \"T\" type=\"string\" max_length=3\nmessage \"M\" { field \"a\" type=\"T\" min_length=4 }",
        &["2:45 nothing is at least 4 and at most 3 long | make min_length the smaller one"],
    );
    check(
        "message \"M\" { field \"a\" type=\"int\" min=1.5 }",
        &["1:40 int has whole numbers only | take the fraction off"],
    );
    check(
        "message \"M\" { field \"a\" type=\"int\" item_type=\"int\" }",
        &["1:46 \"int\" has no items | item_type belongs to type=\"array\" and type=\"map\""],
    );
    check(
        "message \"M\" { field \"a\" type=\"array\" item_type=\"map\" }",
        &[
            "1:48 item_type cannot be \"map\" | give the inner one a name: typedef \"Row\" type=\"array\" item_type=\"int\"",
        ],
    );
    check(
        "message \"M\" { field \"a\" type=\"string\" min_length=-1 }",
        &["1:50 min_length is a whole number from 0 to 4294967296"],
    );
    check(
        "message \"M\" { field \"a\" type=\"float\" min=#inf }",
        &["1:42 min is not a finite number | leave it out when there is no bound"],
    );
    check(
        "message \"M\" { field \"a\" type=\"int\" max=99999999999999999999 }",
        &["1:40 max does not fit into 64 bits"],
    );
    check(
        "message \"M\" { field \"a\" type=\"int\" required=\"yes\" }",
        &["1:45 required is #true or #false, not text | write required=#true"],
    );
    check(
        "message \"M\" { field \"a\" type=(x)\"int\" }",
        &[
            "1:30 type annotations mean nothing in a schema | take it out; a field says its type as type=\"...\"",
        ],
    );
}

#[test]
fn a_wrong_pattern_is_refused_where_it_stands() {
    let errors = refused(
        "protocol \"p\" version=\"1.0.0\" { channel \"c\" { event \"E\" { field \"a\" type=\"string\" pattern=\"(\" } } }",
    );
    let error = errors.iter().next().expect("one error");
    assert!(
        error.message.starts_with("this is no regular expression: "),
        "{error}"
    );
    assert_eq!(error.column, 90);
}

#[test]
fn defaults_fit_their_own_field() {
    let field = |rest: &str| format!("message \"M\" {{ field \"a\" {rest} }}");
    check(
        &field("type=\"int\" default=\"x\""),
        &["1:44 \"x\" is not of type int | write a whole number"],
    );
    check(
        &field("type=\"string\" default=1"),
        &["1:47 1 is not of type string | put quotes around it"],
    );
    check(
        &field("type=\"bool\" default=1"),
        &["1:45 1 is not of type bool | write #true or #false"],
    );
    check(
        &field("type=\"int\" max=3 default=4"),
        &[
            "1:50 the default is refused by the field itself: it is more than 3 | change one of the two",
        ],
    );
    check(
        &field("type=\"string\" min_length=3 default=\"ab\""),
        &[
            "1:60 the default is refused by the field itself: it is shorter than 3 | change one of the two",
        ],
    );
    check(
        &field("type=\"string\" pattern=\"^x\" default=\"ab\""),
        &[
            "1:60 the default is refused by the field itself: it does not match ^x | change one of the two",
        ],
    );
    check(
        &format!(
            "enum \"K\" {{ values \"red\" \"blue\" }}\n{}",
            field("type=\"K\" default=\"rad\"")
        ),
        &["2:42 \"rad\" is no value of enum \"K\" | did you mean \"red\"?"],
    );
    check(
        &field("type=\"array\" default=\"x\""),
        &[
            "1:46 array of json cannot have a default | leave it out: a field that is not required may be missing",
        ],
    );
    check(
        &field("type=\"int\" default=#null"),
        &[
            "1:44 default cannot be #null | leave it out: a field that is not required may be missing",
        ],
    );
}

#[test]
fn names_are_usable_and_apart() {
    check(
        "message \"Option\"",
        &["1:9 the name \"Option\" is taken by generated code | choose another name"],
    );
    check(
        "message \"user_id\"\nmessage \"UserId\"",
        &[
            "2:9 \"UserId\" and \"user_id\" would both be called UserId in code | choose another name",
        ],
    );
    check(
        "message \"M\" { field \"user-id\" type=\"int\"; field \"userId\" type=\"int\" }",
        &[
            "1:49 \"userId\" and \"user-id\" would both be called user_id in code | choose another name",
        ],
    );
    check(
        "enum \"K\" { values \"a\" \"A\" }",
        &["1:23 \"A\" and \"a\" would both be called A in code | choose another name"],
    );
    check(
        "enum \"K\" open=#true { value \"unknown\" }",
        &[
            "1:29 an open enum has a variant Unknown already | it holds the values that are not listed; choose another name",
        ],
    );
    check(
        "message \"PConnection\"",
        &["1:9 the name \"PConnection\" is needed for protocol \"p\" | choose another name"],
    );
    check(
        "message \"C0Peer\"",
        &["1:9 the name \"C0Peer\" is needed for channel \"c0\" | choose another name"],
    );
    check(
        "message \"a b\"",
        &[
            "1:9 a name consists of the letters a to z, digits, '_', '-' and '.', so ' ' cannot be part of it",
        ],
    );
    check(
        "channel \"c\" { event \"E\" }\nchannel \"c\" { event \"F\" }",
        &["2:9 channel \"c\" is declared twice | give one of them another name"],
    );
    check(
        "enum \"K\"",
        &["1:6 enum \"K\" has no values | for instance: value \"text\""],
    );
}

#[test]
fn messages_do_not_hold_themselves_without_end() {
    let tail = "one of these fields has to be optional, or an array or a map";
    check(
        "message \"A\" { field \"b\" type=\"B\" required=#true }\nmessage \"B\" { field \"a\" type=\"A\" required=#true }",
        &[&format!(
            "1:9 message \"A\" always holds itself: A -> B -> A | {tail}"
        )],
    );
    check(
        "message \"A\" { field \"a\" type=\"T\" required=#true }\ntypedef \"T\" type=\"A\"",
        &[&format!(
            "1:9 message \"A\" always holds itself: A -> A | {tail}"
        )],
    );
    check(
        "typedef \"T\" type=\"array\" item_type=\"U\"\ntypedef \"U\" type=\"T\"",
        &[
            "1:9 typedef \"T\" stands for itself: T -> U -> T | use a message where a type has to hold itself",
            "2:9 typedef \"U\" stands for itself: U -> T -> U | use a message where a type has to hold itself",
        ],
    );
}

#[test]
fn channels_carry_something_they_can() {
    check(
        "channel \"c\"",
        &["1:9 channel \"c\" has no requests and no events | add a request or an event"],
    );
    check(
        "channel \"c\" delivery=\"unreliable\" { request \"R\" }",
        &[
            "1:45 an unreliable channel carries events only | a response could be lost; put the request on a reliable channel",
        ],
    );
    check(
        "channel \"c\" { request \"R\" { returns \"E00\" } }",
        &["1:37 there is no message \"E00\" | did you mean \"E0\"?"],
    );
    check(
        "enum \"K\" { value \"a\" }\nchannel \"c\" { request \"R\" { returns \"K\" } }",
        &[
            "2:37 \"K\" is not a message | what travels on a channel is a message; give it a field of this type",
        ],
    );
    check(
        "channel \"c\" { request \"R\" { returns \"A\" { }; returns \"B\" { } } }",
        &["1:46 a request returns one message"],
    );
    check(
        "channel \"c\" lifetime=\"transient\" { send \"A\" { }; recv \"B\" { }; recv \"C\" { } }",
        &[
            "1:69 it is not clear which 'recv' answers which 'send' | write each pair as: request \"Ask\" { returns \"Answer\" }",
        ],
    );
    check(
        "channel \"c\" { event \"E\" { field \"a\" type=\"int\" }; event \"F\" }\nchannel \"d\" { event \"E\" { field \"a\" type=\"int\" } }",
        &[
            "2:21 type \"E\" is declared twice | give one of them another name; a message that several channels use is \
         declared once with 'message' and then only named",
        ],
    );
}

#[test]
fn a_file_without_a_sound_head_says_so() {
    let message = |text: &str| refused(text).iter().next().expect("one").message.clone();
    assert_eq!(message(""), "there is no protocol in this file");
    assert_eq!(
        message("protocol \"p\" { channel \"c\" { event \"E\" } }"),
        "the protocol has no version"
    );
    assert_eq!(
        message("protocol \"p\" version=\"v1\" { channel \"c\" { event \"E\" } }"),
        "\"v1\" is not a version"
    );
    assert_eq!(
        message("protocol version=\"1.0.0\" { channel \"c\" { event \"E\" } }"),
        "'protocol' needs a name"
    );
    assert_eq!(
        message("protocol \"p\" version=\"1.0.0\""),
        "protocol \"p\" has no channels"
    );
    assert_eq!(
        message(
            "channel \"c\" { event \"E\" }\nprotocol \"p\" version=\"1.0.0\" { channel \"d\" { event \"E\" } }"
        ),
        "a channel belongs into a protocol"
    );
    let two = "protocol \"p\" version=\"1.0.0\" { channel \"c\" { event \"E\" } }";
    assert_eq!(
        message(&format!("{two}\n{}", two.replace('E', "F"))),
        "a file describes one protocol"
    );
}

#[test]
fn imports_are_followed_once_and_never_in_circles() {
    let root = "import \"a.kdl\"\nprotocol \"p\" version=\"1.0.0\" {\n channel \"c\" { event \"E\" { field \"x\" type=\"A\" } }\n}";
    let load = |loader: MemoryLoader| Schema::load_with(&loader.with("p.kdl", root), "p.kdl");
    let schema = load(
        MemoryLoader::new()
            .with("a.kdl", "import \"deep/b.kdl\"\nmessage \"A\" { field \"b\" type=\"B\" }")
            .with("deep/b.kdl", "import \"../c.kdl\"\nimport \"../c.kdl\"\nmessage \"B\" { field \"k\" type=\"K\" }")
            .with("c.kdl", "protocol \"other\" version=\"9.0.0\" { enum \"K\" { value \"a\" }; channel \"no\" { event \"No\" } }"),
    )
    .unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        schema.files().collect::<Vec<_>>(),
        ["p.kdl", "a.kdl", "deep/b.kdl", "c.kdl"]
    );
    assert_eq!(schema.protocol().channels.len(), 1);

    let message = |loader: MemoryLoader| {
        let errors = load(loader).expect_err("refused");
        let error = errors.iter().next().expect("one");
        format!("{} {}", error.place(), error.message)
    };
    assert_eq!(
        message(MemoryLoader::new().with("a.kdl", "\nimport \"p.kdl\"")),
        "a.kdl:2:8 these files import each other: p.kdl -> a.kdl -> p.kdl"
    );
    assert_eq!(
        message(MemoryLoader::new()),
        "p.kdl:1:8 \"a.kdl\" cannot be read: there is no such file"
    );
    assert_eq!(
        message(MemoryLoader::new().with("a.kdl", "message \"A\" {")),
        "a.kdl:1:13 this block is never closed"
    );
    let mut chain = MemoryLoader::new().with("a.kdl", "import \"f0.kdl\"");
    for n in 0..40 {
        chain = chain.with(format!("f{n}.kdl"), format!("import \"f{}.kdl\"", n + 1));
    }
    assert_eq!(
        message(chain),
        "f13.kdl:1:8 a chain of imports is longer than 16 files"
    );
    let large =
        MemoryLoader::new().with("a.kdl", " ".repeat(kumi_schema::limits::MAX_FILE_BYTES + 1));
    assert_eq!(
        message(large),
        "p.kdl:1:8 \"a.kdl\" cannot be read: it is larger than 1024 KiB"
    );
}

#[test]
fn a_circle_is_seen_however_the_first_file_was_named() {
    let loader = MemoryLoader::new()
        .with("./p.kdl", "import \"a.kdl\"")
        .with("p.kdl", "import \"a.kdl\"")
        .with("a.kdl", "import \"p.kdl\"");
    let errors = Schema::load_with(&loader, "./p.kdl").expect_err("a circle");
    let circles = errors
        .iter()
        .filter(|error| error.message == "these files import each other: p.kdl -> a.kdl -> p.kdl");
    assert_eq!(circles.count(), 1, "{errors}");
}

#[test]
fn names_that_would_meet_in_code_are_refused() {
    let twice = "choose another name";
    check(
        "channel \"room\" from=\"server\" { request \"A\" }\nchannel \"room-client\" { event \"B\" }",
        &[&format!(
            "2:9 code for channels \"room\" and \"room-client\" would both be called RoomClientService | {twice}"
        )],
    );
    check(
        "channel \"spec\" { event \"A\" }\nchannel \"register\" { event \"B\" }",
        &[&format!(
            "2:9 code for channels \"spec\" and \"register\" would both be called register_spec | {twice}"
        )],
    );
    check(
        "channel \"build\" { event \"A\" }\nchannel \"clone\" { event \"B\" }",
        &[
            &format!("1:9 the method build of a connection has another meaning already | {twice}"),
            &format!("2:9 the method clone of a connection has another meaning already | {twice}"),
        ],
    );
    check(
        "channel \"_2fa\" { event \"_1\u{5f}st\" }",
        &[
            "1:9 \"_2fa\" would begin with a digit in code | begin it with a letter",
            "1:24 \"_1_st\" would begin with a digit in code | begin it with a letter",
        ],
    );
}

/// Both languages make names of methods out of names of events, each in its own way.
#[test]
fn methods_that_would_meet_in_code_are_refused() {
    let meets = |method: &str, at: &str| {
        format!(
            "{at} the method {method} of channel \"c\" has another meaning already | choose another name"
        )
    };
    // `send` heard and `events` sent.
    check(
        "channel \"c\" { request \"Q\"\nevent \"Send\" from=\"either\"\nevent \"Events\" from=\"either\" }",
        &[&meets("send_events", "2:7")],
    );
    check(
        "channel \"c\" { event \"Send\" from=\"server\"\nevent \"Events\" from=\"client\" }",
        &[&meets("send_events", "1:21")],
    );
    check(
        "channel \"c\" { request \"x_events\"\nevent \"X\" }",
        &[&meets("x_events", "2:7")],
    );
    // Only TypeScript has these.
    check(
        "channel \"c\" { request \"on_posted\"\nevent \"Posted\" }",
        &[&meets("onPosted", "2:7")],
    );
    check(
        "channel \"c\" from=\"either\" { request \"Confirm\"\nrequest \"OnAskedConfirm\" }",
        &[&meets("onAskedConfirm", "1:37")],
    );
    check(
        "channel \"c\" { request \"with-binary\" }\nchannel \"d\" { event \"ChannelOpened\" from=\"client\" }",
        &[
            &meets("with_binary", "1:23"),
            "2:21 the method channel_opened of channel \"d\" has another meaning already | choose another name",
        ],
    );
    // As variants of one enum these two are the same.
    check(
        "message \"M\"\nservice \"c\" { method \"get_1\" { request \"M\" }; method \"get1\" { request \"M\" } }",
        &["2:54 \"get1\" and \"get_1\" would both be called Get1 in code | choose another name"],
    );
    // Sent by one side and heard by the other, nothing meets.
    let apart = "protocol \"p\" version=\"1.0.0\" { channel \"c\" {
        event \"Send\" from=\"client\"; event \"Events\" from=\"client\" } }";
    assert!(Schema::parse("t.kdl", apart).is_ok());
}

#[test]
fn what_is_built_in_is_not_declared_again() {
    for (declaration, at) in [
        ("enum \"int\" { value \"a\" }", "1:6"),
        ("typedef \"array\" type=\"int\"", "1:9"),
        ("message \"map\" { field \"n\" type=\"int\" }", "1:9"),
    ] {
        let name = declaration.split('"').nth(1).expect("a name");
        check(
            declaration,
            &[&format!(
                "{at} \"{name}\" is a type already | choose another name; type= would mean the one that is built in"
            )],
        );
    }
    // What only travels needs no name elsewhere.
    let carried = "protocol \"p\" version=\"1.0.0\" { channel \"c\" { request \"map\" { returns \"json\" { } } } }";
    assert!(Schema::parse("t.kdl", carried).is_ok());
}

#[test]
fn descriptions_are_texts_and_stand_once() {
    check(
        "channel \"c\" description=\"a\" { description \"b\"; event \"E\" description=5 }",
        &[
            "1:31 'description' is given twice",
            "1:70 description is a text, not a whole number | put quotes around it",
        ],
    );
    check(
        "service \"s\" { method \"m\" description=\"a\" { description \"b\"; request \"R\" idempotent=#true {} } }",
        &[
            "1:44 'description' is given twice",
            "1:73 'request' has no property \"idempotent\" | it has description",
        ],
    );
}

/// One mistake, one error.
#[test]
fn a_name_that_is_refused_is_not_reported_missing_too() {
    let taken = "the name \"Default\" is taken by generated code | choose another name";
    check(
        "channel \"c\" { request \"Default\" { field \"a\" type=\"int\"; returns \"Default\" } }",
        &[&format!("1:23 {taken}")],
    );
    check(
        "message \"Default\"\nmessage \"M\" { field \"d\" type=\"array\" item_type=\"Default\" }",
        &[&format!("1:9 {taken}")],
    );
    check(
        "channel \"c\" { event \"get_x\" { field \"a\" type=\"int\" } }\nchannel \"d\" { event \"getX\" { field \"a\" type=\"int\" } }",
        &["2:21 \"getX\" and \"get_x\" would both be called GetX in code | choose another name"],
    );
    check(
        "channel \"c\" { request \"R\" { returns \"Somewhere\" } }",
        &[
            "1:37 there is no message \"Somewhere\" | declare it: message \"Somewhere\" { field ... }",
        ],
    );
}

#[test]
fn a_default_that_javascript_would_round_is_refused() {
    let exact = "whole numbers are exact from -9007199254740991 to 9007199254740991";
    for (number, ty) in [
        ("9223372036854775807", "int"),
        ("-9007199254740993", "int"),
        ("9007199254740992", "timestamp"),
    ] {
        let text = format!("message \"M\" {{ field \"a\" type=\"{ty}\" default={number} }}");
        let at = text.find(number).expect("it is there") + 1;
        check(
            &text,
            &[&format!(
                "1:{at} {number} is not exact in JavaScript, which would take another default | {exact}"
            )],
        );
    }
}

#[test]
fn files_of_the_older_kdl_and_missing_quotes_are_understood() {
    check(
        "message \"M\" { field \"a\" type=\"string\" pattern=r\"^a$\" }",
        &[
            "1:48 a text in quotes cannot stand here | a raw text of KDL 2 begins with '#' and no 'r': #\"...\"#",
        ],
    );
    check(
        "message \"M\" { field \"a\" type=\"string\" pattern=r#\"^a$\"# }",
        &[
            "1:48 a text in quotes cannot stand here | a raw text of KDL 2 begins with '#' and no 'r': #\"...\"#",
        ],
    );
    let errors = refused("protocol \"p version=\"1.0.0\" {\n channel \"c\" { event \"E\" }\n}");
    let first = errors.iter().next().expect("an error");
    assert_eq!(
        (first.column, &*first.message, first.help.as_deref()),
        (
            22,
            "a space is missing here",
            Some("a text ends at its next quote; one is missing before this, or a space")
        )
    );
}

#[test]
fn an_import_that_is_missing_finds_its_neighbour() {
    let text = "import \"types/comon.kdl\"\nimport \"other.kdl\"\nprotocol \"p\" version=\"1.0.0\" { channel \"c\" { event \"E\" } }";
    let help = |errors: Diagnostics| -> Vec<Option<String>> {
        errors.iter().map(|error| error.help.clone()).collect()
    };
    let expected = [
        Some("did you mean \"types/common.kdl\"?".to_owned()),
        Some("a path is relative to the file that imports it".to_owned()),
    ];
    let loader = MemoryLoader::new()
        .with("a/p.kdl", text)
        .with("a/types/common.kdl", "")
        .with("comon.kdl", "");
    let errors = Schema::load_with(&loader, "a/p.kdl").expect_err("two are missing");
    assert_eq!(help(errors), expected);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("types")).expect("it is ours");
    std::fs::write(folder.path().join("types/common.kdl"), "").expect("it is ours");
    std::fs::write(folder.path().join("types/comon.txt"), "").expect("it is ours");
    std::fs::write(folder.path().join("p.kdl"), text).expect("it is ours");
    let errors = Schema::load(folder.path().join("p.kdl")).expect_err("two are missing");
    assert_eq!(help(errors), expected);
}

#[test]
fn bounds_and_arrays_that_mean_nothing_are_refused() {
    check(
        "message \"M\" { field \"a\" type=\"int\" min=1e300 }",
        &["1:40 1e300 is no bound for int, which has 64 bits | leave it out"],
    );
    check(
        "message \"None1\" { field \"n\" type=\"Nothing\" required=#true }\nmessage \"Nothing\" {}\n\
         message \"M\" { field \"a\" type=\"array\" item_type=\"None1\" }",
        &[
            "3:48 \"None1\" holds nothing, so an array of it is only a number | make the field an int, or give the \
           message a field",
        ],
    );
}

/// What an undeclared type allows is not known.
#[test]
fn a_misspelt_type_is_one_error() {
    check(
        "message \"M\" { field \"a\" type=\"strng\" min=1 max_length=64 default=3; field \"b\" type=\"Strng\" pattern=\"(\" }",
        &[
            "1:30 there is no type \"strng\" | did you mean \"string\"?",
            "1:84 there is no type \"Strng\" | did you mean \"string\"?",
            "1:100 this is no regular expression: found open group without closing ')' | a raw text needs no doubled \
             backslashes: #\"^\\d+$\"#",
        ],
    );
}
