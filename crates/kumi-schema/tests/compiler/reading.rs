//! What a sound schema is read as, the older forms included.

use kumi_schema::{
    Compression, Delivery, Lifetime, Literal, Overflow, RustOptions, Schema, Side, Type,
};

fn read(text: &str) -> Schema {
    Schema::parse("t.kdl", text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn body(text: &str) -> Schema {
    read(&format!("protocol \"p\" version=\"1.0.0\" {{\n{text}\n}}"))
}

#[test]
fn a_protocol_has_all_its_parts() {
    let schema = read(
        r##"
// A comment.
protocol "room-service" version="2.1" {
    namespace "example.rooms"
    description """
        Two
        lines.
        """
    typedef "Name" type="string" min_length=1 max_length=64 pattern=#"^\w+$"#
    enum "Kind" open=#true description="k" { value "text" description="words"; values "image" "file" }
    message "User" description="u" {
        field "name" type="Name" required=#true description="d"
        field "age" type="number" min=0 max=150.5
        field "tags" type="array" item_type="Name" max_length=3
        field "extra" type="map"
        field "kind" type="Kind" default="text"
    }
    channel "rooms" from="either" lifetime="transient" delivery="reliable" description="c" {
        request "Join" idempotent=#true { description "r"; field "user" type="User"; returns "Joined" { } }
        event "Left"
    }
}"##,
    );
    let protocol = schema.protocol();
    assert_eq!(protocol.version.to_string(), "2.1.0");
    assert_eq!(protocol.description.as_deref(), Some("Two\nlines."));
    assert_eq!(protocol.namespace.as_deref(), Some("example.rooms"));
    let user = protocol.message("User").unwrap();
    assert_eq!(user.fields[0].ty, Type::Named("Name".into()));
    assert!(
        user.fields[0].required && user.fields[1].is_optional() && !user.fields[4].is_optional()
    );
    assert_eq!(user.fields[1].constraints.min, Some(Literal::Float(0.0)));
    assert_eq!(
        user.fields[2].ty,
        Type::Array(Box::new(Type::Named("Name".into())))
    );
    assert_eq!(user.fields[3].ty, Type::Map(Box::new(Type::Json)));
    let kind = protocol.enumeration("Kind").unwrap();
    assert!(kind.open);
    assert_eq!(
        kind.values
            .iter()
            .map(|value| &*value.name)
            .collect::<Vec<_>>(),
        ["text", "image", "file"]
    );
    let rooms = protocol.channel("rooms").unwrap();
    assert_eq!(
        (rooms.from, rooms.lifetime, rooms.delivery),
        (Side::Either, Lifetime::Transient, Delivery::Reliable)
    );
    assert!(rooms.requests[0].idempotent);
    assert_eq!(rooms.requests[0].description.as_deref(), Some("r"));
    assert_eq!(rooms.requests[0].returns.as_deref(), Some("Joined"));
}

#[test]
fn events_go_where_requests_do_not() {
    let from = |channel: &str| body(channel).protocol().channels[0].events[0].from;
    assert_eq!(from("channel \"c\" { event \"E\" }"), Side::Client);
    assert_eq!(
        from("channel \"c\" from=\"server\" { event \"E\" }"),
        Side::Server
    );
    assert_eq!(
        from("channel \"c\" from=\"client\" { event \"E\"; request \"R\" }"),
        Side::Server
    );
    assert_eq!(
        from("channel \"c\" from=\"server\" { event \"E\"; request \"R\" }"),
        Side::Client
    );
    assert_eq!(
        from("channel \"c\" from=\"either\" { event \"E\"; request \"R\" }"),
        Side::Either
    );
    assert_eq!(
        from("channel \"c\" from=\"client\" { event \"E\" from=\"client\"; request \"R\" }"),
        Side::Client
    );
}

#[test]
fn a_channel_says_what_is_compressed_and_what_happens_to_unread_events() {
    let check = |properties: &str, compression, overflow, policy: &str| {
        let schema = body(&format!("channel \"c\" {properties} {{ event \"E\" }}"));
        let channel = &schema.protocol().channels[0];
        assert_eq!(
            (channel.compression, channel.overflow),
            (compression, overflow)
        );
        // What a client opens has both, and what a server offers has the client's options.
        let code = schema.to_rust(&RustOptions::new()).expect("it is Rust");
        assert!(code.contains("ChannelSpec::new(\"c\").options(c_options())"));
        let off = usize::from(compression == Compression::Off);
        assert_eq!(code.matches(".compression(false)").count(), off);
        let policy = format!(".event_policy(unison::EventPolicy::{policy})");
        assert_eq!(code.matches(&policy).count(), 1, "{code}");
    };
    let (auto, off) = (Compression::Auto, Compression::Off);
    check("", auto, Overflow::DropOldest, "DropOldest");
    check(
        "compression=\"off\"",
        off,
        Overflow::DropOldest,
        "DropOldest",
    );
    check(
        "overflow=\"wait\" compression=\"auto\"",
        auto,
        Overflow::Wait,
        "Wait",
    );
    check("overflow=\"close\"", auto, Overflow::Close, "Close");
}

#[test]
fn older_forms_become_newer_ones() {
    let same = |old: &str, new: &str| assert_eq!(body(old), body(new), "{old}");
    for (from, other) in [
        ("client", "server"),
        ("server", "client"),
        ("either", "either"),
    ] {
        same(
            &format!(
                "channel \"c\" from=\"{from}\" lifetime=\"transient\" {{ send \"S\" {{ field \"a\" type=\"int\" }}; recv \"R\" {{ }} }}"
            ),
            &format!(
                "channel \"c\" from=\"{from}\" lifetime=\"transient\" {{ request \"S\" {{ field \"a\" type=\"int\"; returns \"R\" {{ }} }} }}"
            ),
        );
        same(
            &format!(
                "channel \"c\" from=\"{from}\" lifetime=\"persistent\" {{ send \"S\" {{ }}; recv \"R\" {{ }} }}"
            ),
            &format!(
                "channel \"c\" from=\"{from}\" {{ event \"S\"; event \"R\" from=\"{other}\" }}"
            ),
        );
        same(
            &format!("channel \"c\" from=\"{from}\" {{ send \"S\" {{ }} }}"),
            &format!("channel \"c\" from=\"{from}\" {{ event \"S\" }}"),
        );
        same(
            &format!("channel \"c\" from=\"{from}\" {{ recv \"R\" {{ }} }}"),
            &format!("channel \"c\" from=\"{from}\" {{ event \"R\" from=\"{other}\" }}"),
        );
    }
    same(
        "message \"S\" { }\nchannel \"c\" { send \"S\" }",
        "message \"S\"\nchannel \"c\" { event \"S\" }",
    );
}

/// As a property or as a node, wherever there is one.
#[test]
fn descriptions_are_taken_wherever_they_stand() {
    let schema = body(
        "channel \"c\" lifetime=\"transient\" { description \"channel\"; send \"S\" description=\"sent\" {}; recv \"R\" { description \"got\" } }
         service \"s\" {
            description \"service\"
            method \"m\" { description \"method\"; request description=\"asked\" { field \"a\" type=\"int\" description=\"field\" }; response { description \"answered\" } }
         }
         channel \"d\" { request \"Q\" { description \"question\"; returns \"A\" description=\"answer\" {} }; event \"E\" description=\"event\" }",
    );
    let protocol = schema.protocol();
    let of = |message: &str| protocol.message(message).unwrap().description.clone();
    let said: Vec<Option<String>> = ["S", "R", "M", "MResponse", "Q", "A", "E"].map(of).into();
    let expected = [
        "sent", "got", "asked", "answered", "question", "answer", "event",
    ];
    assert_eq!(said, expected.map(|text| Some(text.to_owned())));
    let channels = protocol.channels.iter();
    let said: Vec<Option<&str>> = channels
        .map(|channel| channel.description.as_deref())
        .collect();
    assert_eq!(said, [Some("channel"), Some("service"), None]);
    let method = &protocol.channel("s").unwrap().requests[0];
    assert_eq!(method.description.as_deref(), Some("method"));
    assert_eq!(
        protocol.message("M").unwrap().fields[0]
            .description
            .as_deref(),
        Some("field")
    );
}

#[test]
fn a_service_is_a_channel_of_requests() {
    let schema = body(
        "service \"UserService\" {\n method \"createUser\" idempotent=#true {\n request { field \"name\" type=\"string\" }\n \
         response { field \"id\" type=\"int\" }\n }\n method \"ping\"\n}",
    );
    let channel = &schema.protocol().channels[0];
    assert_eq!(
        (&*channel.name, channel.from),
        ("UserService", Side::Client)
    );
    let create = &channel.requests[0];
    assert_eq!(
        (&*create.name, &*create.message, create.idempotent),
        ("createUser", "CreateUser", true)
    );
    assert_eq!(create.returns.as_deref(), Some("CreateUserResponse"));
    assert_eq!(
        schema
            .protocol()
            .message("CreateUserResponse")
            .unwrap()
            .fields[0]
            .name,
        "id"
    );
    assert_eq!(
        (&*channel.requests[1].message, &channel.requests[1].returns),
        ("Ping", &None)
    );
}

#[test]
fn a_message_may_hold_itself_where_it_can_end() {
    body(
        "message \"Tree\" { field \"children\" type=\"array\" item_type=\"Tree\" required=#true; field \"left\" type=\"Tree\" }\n\
         message \"A\" { field \"b\" type=\"B\" required=#true }\nmessage \"B\" { field \"a\" type=\"A\" }\n\
         channel \"c\" { event \"E\" { field \"t\" type=\"Tree\" required=#true } }",
    );
}

#[test]
fn a_message_declared_once_is_named_often() {
    let schema = body(
        "message \"Ack\" { field \"ok\" type=\"bool\" }\nmessage \"Note\" { field \"text\" type=\"string\" }\n\
         channel \"a\" { request \"X\" { returns \"Ack\" }; event \"Note\" }\nchannel \"b\" { request \"Y\" { returns \"Ack\" }; event \"Note\" }",
    );
    let names: Vec<&str> = schema
        .protocol()
        .messages
        .iter()
        .map(|message| &*message.name)
        .collect();
    assert_eq!(names, ["Ack", "Note", "X", "Y"]);
}
