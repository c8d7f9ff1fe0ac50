//! No two things in generated code have one name, whatever a schema calls them. A name that would meet another in
//! either language is refused by the checks; what they let through is looked at here as the compilers would.

use kumi_schema::{RustOptions, Schema};
use proc_macro2::{TokenStream, TokenTree};
use proptest::prelude::*;
use std::collections::BTreeSet;
use syn::{ImplItem, Item};

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

fn any_name() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PARTS), 1..4).prop_map(|parts| parts.join("_"))
}

fn side() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["client", "server", "either"])
}

/// Channels of requests and events from any side, around a few types.
fn schemas() -> impl Strategy<Value = String> {
    let event =
        (any_name(), side()).prop_map(|(name, side)| format!("event \"{name}\" from=\"{side}\"\n"));
    let request =
        any_name().prop_map(|name| format!("request \"{name}\" {{ field \"n\" type=\"int\" }}\n"));
    let channel = (
        any_name(),
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
    let types = (
        any_name(),
        any_name(),
        any_name(),
        any_name(),
        any_name(),
        any_name(),
    );
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
    let file = syn::parse_file(code).expect("it is Rust");
    let module = file.items.into_iter().find_map(|item| match item {
        Item::Mod(module) => module.content,
        _ => None,
    });
    for item in module.expect("a module").1 {
        match item {
            Item::Const(item) => scopes.add("values", item.ident),
            Item::Static(item) => scopes.add("values", item.ident),
            Item::Fn(item) => scopes.add("values", item.sig.ident),
            Item::Type(item) => scopes.add("types", item.ident),
            Item::Use(_) => {}
            Item::Impl(item) => {
                let syn::Type::Path(own) = *item.self_ty else {
                    panic!("an impl of something else");
                };
                let own = own.path.get_ident().expect("a plain name").clone();
                for method in item.items {
                    if let ImplItem::Fn(method) = method {
                        scopes.add(format!("impl {own}"), method.sig.ident);
                    }
                }
            }
            Item::Macro(item) => {
                let name = item.mac.path.segments.last().expect("a path").ident.clone();
                scopes.table(&name.to_string(), &words(item.mac.tokens));
            }
            _ => panic!("an item of another kind"),
        }
    }
    scopes
}

/// A token of a table: a word, a mark, or what stands in brackets.
#[derive(Clone, PartialEq)]
enum Word {
    Name(String),
    Mark(char),
    Group(Vec<Word>),
}

/// The tokens of a table without their attributes.
fn words(tokens: TokenStream) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) => words.push(Word::Name(name.to_string())),
            TokenTree::Group(_) if words.last() == Some(&Word::Mark('#')) => drop(words.pop()),
            TokenTree::Group(group) => words.push(Word::Group(self::words(group.stream()))),
            TokenTree::Punct(mark) => words.push(Word::Mark(mark.as_char())),
            TokenTree::Literal(_) => {}
        }
    }
    words
}

fn name(word: &Word) -> Option<&str> {
    match word {
        Word::Name(name) => Some(name),
        _ => None,
    }
}

impl Scopes {
    /// The names that a macro of the runtime declares.
    fn table(&mut self, table: &str, words: &[Word]) {
        match table {
            "typed_messages" | "typed_enums" | "typed_unions" | "typed_sums" => {
                for item in words.chunks(4) {
                    let [_, Word::Name(kind), Word::Name(own), Word::Group(body)] = item else {
                        panic!("an item of {table}");
                    };
                    self.add("types", own);
                    if kind == "struct" {
                        // A field is between `pub` and its colon.
                        for field in body.windows(2).filter(|two| name(&two[0]) == Some("pub")) {
                            self.add(format!("struct {own}"), name(&field[1]).expect("a field"));
                        }
                        self.add(format!("impl {own}"), "validate");
                    } else {
                        for variant in body.split(|word| *word == Word::Mark(',')) {
                            if let Some(variant) = variant.iter().find_map(name) {
                                self.add(format!("enum {own}"), variant);
                            }
                        }
                    }
                }
            }
            "typed_connection" => {
                let mut lines = words.split(|word| *word == Word::Mark(';'));
                let types: Vec<&str> = lines.next().expect("types")[2..]
                    .iter()
                    .filter_map(name)
                    .collect();
                types.iter().for_each(|own| self.add("types", own));
                for channel in lines.filter_map(|line| line.first().and_then(name)) {
                    self.add(format!("impl {}", types[0]), channel);
                    for own in [types[0], types[3], types[4]] {
                        self.add(format!("struct {own}"), channel);
                    }
                }
            }
            "typed_handle" | "typed_service" | "typed_client_service" => self.channel(table, words),
            _ => panic!("a table {table}"),
        }
    }

    fn channel(&mut self, table: &str, words: &[Word]) {
        let own = name(&words[2]).expect("a handle or a trait").to_owned();
        self.add("types", &own);
        let is_handle = table == "typed_handle";
        let scope = format!("{} {own}", if is_handle { "impl" } else { "trait" });
        if is_handle {
            for method in [
                "from_channel",
                "raw_channel",
                "with_binary",
                "with_options",
                "serve_requests",
            ] {
                self.add(&scope, method);
            }
        } else if table == "typed_service" {
            self.add(&scope, "channel_opened");
            self.add(&scope, "channel_closed");
            let register = words.split(|word| *word == Word::Mark(';')).nth(1);
            let register = register.expect("functions").iter().filter_map(name);
            register
                .skip(2)
                .take(2)
                .for_each(|function| self.add("values", function));
        }
        let mut head = Vec::new();
        for word in words {
            let Word::Group(lines) = word else {
                head.extend(name(word));
                continue;
            };
            let streams = (head.iter().rev().nth(1) == Some(&"streams"))
                .then(|| head.last().expect("its name").to_string());
            if let Some(streams) = &streams {
                self.add("types", streams);
                self.add(&scope, "event_streams");
            }
            for line in lines.split(|word| *word == Word::Mark(';')) {
                let names: Vec<&str> = line.iter().filter_map(name).collect();
                match (&streams, &*names) {
                    (_, []) => {}
                    (Some(streams), names) => {
                        self.add(format!("struct {streams}"), names[0]);
                        self.add(&scope, names[names.len() - 1]);
                    }
                    (None, names) => self.add(&scope, names[0]),
                }
            }
        }
    }
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
        if let (2, Some((_, name))) = (depth, text.split_once(" as "))
            && class.is_none()
        {
            // A name of the runtime's, under the protocol's own.
            if let Some(name) = name.strip_suffix(',') {
                scopes.add("types", name);
                if !text.starts_with("type ") {
                    scopes.add("values", name);
                }
            }
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
        ("struct MainEventStreams", "posted"),
        ("struct EverythingServerConnection", "main"),
        ("values", "register_main_with"),
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
        ("types", "EverythingTransport"),
        ("values", "EverythingInvalidMessage"),
        ("statics of EverythingClient", "connect"),
    ] {
        assert!(has(&typescript, scope, name), "{scope} {name}");
    }
    assert_eq!((rust.twice, typescript.twice), (vec![], vec![]));
}
