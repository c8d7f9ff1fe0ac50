//! Any text as a schema: it is read or refused with places that exist. What was read survives being formatted, and
//! becomes Rust, TypeScript and a page.

use kumi_schema::{Diagnostics, Difference, MemoryLoader, RustOptions, Schema, format};

const NAME: &str = "fuzz.kdl";

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let schema = load(text);
    if let Err(errors) = &schema {
        check_places(errors, text);
    }
    let formatted = match format(NAME, text) {
        Ok(formatted) => formatted,
        Err(errors) => {
            check_places(&errors, text);
            assert!(
                schema.is_err(),
                "a schema that cannot be formatted was read"
            );
            return;
        }
    };
    match format(NAME, &formatted) {
        Ok(again) => assert_eq!(again, formatted, "formatting changes what it wrote"),
        Err(errors) => panic!("formatted text is refused: {errors}\n{formatted}"),
    }
    match (schema, load(&formatted)) {
        (Ok(before), Ok(after)) => {
            assert_eq!(before, after, "formatting changed the meaning");
            assert_eq!(before.protocol_hash(), after.protocol_hash());
            assert!(Difference::between(&before, &after).changes.is_empty());
            if let Err(error) = before.to_rust(&RustOptions::new()) {
                panic!("{error}");
            }
            assert!(!before.to_typescript().is_empty() && !before.to_markdown().is_empty());
        }
        (Err(before), Err(after)) => assert_eq!(before.len(), after.len(), "{before}\n\n{after}"),
        (before, after) => panic!("formatting changed the verdict: {before:?} {after:?}"),
    }
}

/// Imports find a file that imports itself, one that imports the root, one with types, or nothing.
fn load(text: &str) -> Result<Schema, Diagnostics> {
    let loader = MemoryLoader::new()
        .with(NAME, text)
        .with("self.kdl", "import \"self.kdl\"")
        .with("root.kdl", "import \"fuzz.kdl\"")
        .with("types.kdl", "enum \"Kind\" { values \"a\" \"b\" }\nmessage \"User\" { field \"name\" type=\"string\" }");
    Schema::load_with(&loader, NAME)
}

fn check_places(errors: &Diagnostics, text: &str) {
    assert!(!errors.is_empty());
    let lines = text.split('\n').count();
    for error in errors {
        assert!(!error.message.is_empty());
        assert!(
            error.file != NAME || (1..=lines).contains(&error.line),
            "{error}"
        );
    }
    assert!(!errors.to_string().is_empty());
}
