//! No two things in generated code have one name, whatever a schema calls them. A name that would meet another in
//! either language is refused by the checks; what they let through is looked at here as the compilers would.

use kumi_schema::{RustOptions, Schema};
use proptest::prelude::*;
use std::collections::BTreeSet;
use syn::{ImplItem, Item, TraitItem};

/// What generated names are put together from. Two or three of these in a row meet each other often.
const PARTS: &[&str] = &[
    "send",
    "events",
    "on",
    "asked",
    "x",
    "X",
    "client",
    "service",
    "peer",
    "register",
    "with",
    "spec",
    "options",
    "serve",
    "streams",
    "event",
    "request",
    "requests",
    "response",
    "get_1",
    "get1",
    "channel",
    "connection",
    "quic",
    "server",
    "builder",
    "default",
    "check",
    "json",
    "values",
    "defaults",
    "version",
    "hash",
    "protocol",
    "transport",
    "signal",
    "stream",
    "close",
    "connect",
    "binary",
    "from",
    "raw",
    "opened",
    "closed",
    "message",
    "invalid",
    "build",
];

fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PARTS), 1..4).prop_map(|parts| parts.join("_"))
}

fn side() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["client", "server", "either"])
}

/// Channels of requests and events from any side, around a few types.
fn schemas() -> impl Strategy<Value = String> {
    let event =
        (name(), side()).prop_map(|(name, side)| format!("event \"{name}\" from=\"{side}\"\n"));
    let request =
        name().prop_map(|name| format!("request \"{name}\" {{ field \"n\" type=\"int\" }}\n"));
    let channel = (
        name(),
        side(),
        prop::collection::vec(event, 1..4),
        prop::collection::vec(request, 0..3),
    );
    let channel = channel.prop_map(|(name, side, events, requests)| {
        format!(
            "channel \"{name}\" from=\"{side}\" {{\n{}{}}}\n",
            events.concat(),
            requests.concat()
        )
    });
    let types = (name(), name(), name(), name(), name(), name());
    (types, prop::collection::vec(channel, 1..4)).prop_map(|((protocol, message, declared, union, a, b), channels)| {
        format!(
            "protocol \"{protocol}\" version=\"1.0.0\" {{\n\
             enum \"{declared}\" open=#true {{ values \"{a}\" \"{b}\" }}\n\
             union \"{union}\" {{ variant \"{a}\" type=\"int\"; variant \"{b}\" type=\"json\" }}\n\
             message \"{message}\" {{ field \"{a}\" type=\"int\" default=1; field \"{b}\" type=\"json\" }}\n{}}}",
            channels.concat()
        )
    })
}

/// Names that were met, each with the scope it stands in.
#[derive(Default)]
struct Scopes {
    seen: BTreeSet<(String, String)>,
    twice: Vec<(String, String)>,
}

impl Scopes {
    fn add(&mut self, scope: impl Into<String>, name: impl ToString) {
        let both = (scope.into(), name.to_string());
        if !self.seen.insert(both.clone()) {
            self.twice.push(both);
        }
    }
}

fn rust_scopes(code: &str) -> Scopes {
    let mut scopes = Scopes::default();
    for item in syn::parse_file(code).expect("it is Rust").items {
        match item {
            Item::Const(item) => scopes.add("values", item.ident),
            Item::Fn(item) => scopes.add("values", item.sig.ident),
            Item::Type(item) => scopes.add("types", item.ident),
            Item::Struct(item) => {
                // The field of a handle has no name.
                for name in item.fields.iter().filter_map(|field| field.ident.clone()) {
                    scopes.add(format!("struct {}", item.ident), name);
                }
                scopes.add("types", item.ident);
            }
            Item::Enum(item) => {
                for variant in &item.variants {
                    scopes.add(format!("enum {}", item.ident), &variant.ident);
                }
                scopes.add("types", item.ident);
            }
            Item::Trait(item) => {
                for method in &item.items {
                    if let TraitItem::Fn(method) = method {
                        scopes.add(format!("trait {}", item.ident), &method.sig.ident);
                    }
                }
                scopes.add("types", item.ident);
            }
            Item::Impl(item) if item.trait_.is_none() => {
                let syn::Type::Path(own) = *item.self_ty else {
                    panic!("an impl of something else");
                };
                let own = own.path.get_ident().expect("a plain name").clone();
                for method in item.items {
                    match method {
                        ImplItem::Fn(method) => scopes.add(format!("impl {own}"), method.sig.ident),
                        ImplItem::Const(constant) => {
                            scopes.add(format!("impl {own}"), constant.ident)
                        }
                        _ => {}
                    }
                }
            }
            Item::Macro(item)
                if item
                    .mac
                    .path
                    .segments
                    .last()
                    .is_some_and(|last| last.ident == "typed_handle") =>
            {
                for method in ["from_channel", "raw_channel", "with_binary", "with_options"] {
                    scopes.add(format!("impl {}", item.mac.tokens), method);
                }
            }
            _ => {}
        }
    }
    scopes
}

/// Reads lines, because what the generator writes has one declaration on each.
fn typescript_scopes(code: &str) -> Scopes {
    let word = |text: &str| -> String {
        let is_part = |character: &char| character.is_ascii_alphanumeric() || *character == '_';
        text.chars().take_while(is_part).collect()
    };
    let mut scopes = Scopes::default();
    let mut class: Option<String> = None;
    for line in code.lines() {
        let (depth, text) = (line.len() - line.trim_start().len(), line.trim_start());
        let bare = text.strip_prefix("export ").unwrap_or(text);
        if text.is_empty() {
            continue;
        }
        if depth == 0 {
            class = None;
            for (keyword, is_type, is_value) in [
                ("class ", true, true),
                ("interface ", true, false),
                ("type ", true, false),
                ("const ", false, true),
                ("function ", false, true),
            ] {
                if let Some(rest) = bare.strip_prefix(keyword) {
                    let name = word(rest);
                    class = is_value.then(|| name.clone()).filter(|_| is_type);
                    let spaces = [is_type.then_some("types"), is_value.then_some("values")];
                    for scope in spaces.into_iter().flatten() {
                        scopes.add(scope, &name);
                    }
                }
            }
        } else if let (Some(class), 2) = (&class, depth) {
            let mut member = text;
            let mut scope = format!("class {class}");
            for modifier in ["private ", "static ", "readonly ", "async "] {
                if let Some(rest) = member.strip_prefix(modifier) {
                    member = rest;
                    if modifier == "static " {
                        scope = format!("statics of {class}");
                    }
                }
            }
            let name = word(member);
            if !name.is_empty() && member[name.len()..].starts_with(['(', ':', ' ', '?']) {
                scopes.add(scope, name);
            }
        }
    }
    scopes
}

fn twice(text: &str) -> Option<Vec<(String, String)>> {
    let schema = Schema::parse("t.kdl", text).ok()?;
    let rust = schema.to_rust(&RustOptions::new()).expect("it is Rust");
    let mut twice = rust_scopes(&rust).twice;
    twice.extend(typescript_scopes(&schema.to_typescript()).twice);
    Some(twice)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_name_stands_twice_in_generated_code(text in schemas()) {
        if let Some(twice) = twice(&text) {
            prop_assert!(twice.is_empty(), "{twice:?}\n{text}");
        }
    }
}

/// The scopes are really looked into: a schema that is sound fills all of them.
#[test]
fn scopes_of_both_languages_are_found() {
    let schema = Schema::parse("everything.kdl", include_str!("../schemas/everything.kdl"))
        .expect("it is sound");
    let rust = rust_scopes(&schema.to_rust(&RustOptions::new()).expect("it is Rust"));
    let typescript = typescript_scopes(&schema.to_typescript());
    let has = |scopes: &Scopes, scope: &str, name: &str| {
        scopes.seen.contains(&(scope.to_owned(), name.to_owned()))
    };
    for (scope, name) in [
        ("types", "MainService"),
        ("values", "register_main"),
        ("impl MainClient", "posted_events"),
        ("impl MainClient", "with_binary"),
        ("trait MainService", "echo"),
        ("struct Scalars", "broken"),
        ("enum MainRequest", "Echo"),
    ] {
        assert!(has(&rust, scope, name), "{scope} {name}");
    }
    for (scope, name) in [
        ("types", "Scalars"),
        ("values", "checkScalars"),
        ("values", "MAIN_CHANNEL"),
        ("class MainChannel", "echo"),
        ("class MainChannel", "postedEvents"),
        ("class EverythingClient", "userService"),
        ("statics of EverythingClient", "connect"),
    ] {
        assert!(has(&typescript, scope, name), "{scope} {name}");
    }
    assert_eq!((rust.twice, typescript.twice), (vec![], vec![]));
}
