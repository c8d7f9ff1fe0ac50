//! Large and hostile schemas are read in bounded time.

use kumi_schema::{RustOptions, Schema};

/// As many types as a schema may have, in the ways that take the longest.
#[test]
fn thousands_of_types_take_no_longer_than_their_number_allows() {
    let started = std::time::Instant::now();
    let read = |body: String| {
        let text = format!(
            "protocol \"p\" version=\"1.0.0\" {{ {body}\nchannel \"c\" {{ event \"E\" }} }}"
        );
        Schema::parse("t.kdl", &text)
    };
    let lines = |line: &dyn Fn(usize) -> String| (0..4000).map(line).collect::<String>();
    // A chain of typedefs, a ring of messages, and messages that hold the next one twice and nothing in the end.
    let chain = lines(&|n| format!("typedef \"T{n}\" type=\"T{}\"\n", n + 1));
    assert!(read(chain + "typedef \"T4000\" type=\"int\"").is_err());
    let ring = lines(&|n| {
        let next = (n + 1) % 4000;
        format!("message \"M{n}\" {{ field \"next\" type=\"M{next}\" required=#true }}\n")
    });
    assert!(read(ring.clone()).is_err());
    let sound = read(ring.replace("required=#true", "")).expect("it can end");
    assert_eq!(sound.protocol().messages.len(), 4001);
    for text in [sound.to_typescript(), sound.to_markdown()] {
        assert!(text.lines().count() > 4000);
    }
    let code = sound.to_rust(&RustOptions::new()).expect("it is Rust");
    assert_eq!(code.matches("pub next: Option<Box<M").count(), 4000);
    let twice = lines(&|n| {
        let next = n + 1;
        format!(
            "message \"M{n}\" {{ field \"a\" type=\"M{next}\" required=#true; field \"b\" type=\"M{next}\" required=#true }}\n"
        )
    });
    let nothing =
        "message \"M4000\" {}\nmessage \"L\" { field \"l\" type=\"array\" item_type=\"M0\" }";
    assert_eq!(
        read(twice + nothing)
            .expect_err("an array of nothing")
            .len(),
        1
    );
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn a_line_full_of_errors_takes_no_longer_than_its_length_allows() {
    let fields = "field \"a\" type=\"int\"; ".repeat(40_000);
    let text = format!(
        "protocol \"p\" version=\"1.0.0\" {{ message \"M\" {{ {fields} }}; channel \"c\" {{ event \"E\" }} }}"
    );
    let started = std::time::Instant::now();
    let errors = Schema::parse("t.kdl", &text).expect_err("fields of one name");
    assert!(errors.len() > 1);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
