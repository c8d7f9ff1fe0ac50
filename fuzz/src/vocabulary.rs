//! The words clients say: command names and tokens from the store's own table, so that a command is fuzzed from the
//! day its row exists, and a few keys and numbers.

use crate::World;
use kumi_resp::Frame;
use kumi_store::config::TABLE;
use std::sync::OnceLock;

/// Few keys, so that commands meet the same ones.
const KEYS: &[&str] = &["a", "b", "c", "key:1", "key:2", "{t}x", "{t}y"];

/// Values and numbers at which something changes.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "10",
    "12.5",
    "1e3",
    "-0.5",
    "100",
    "1500",
    "1700000001",
    "1700000001000",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1048576",
    "4294967296",
    "hello",
    "hallo welt",
    "*",
    "a*",
    "[a-c]?",
    "__key*__:*",
    "KEA",
    "\"\"",
    "\"\\x00\\xff\"",
    "NaN",
    "inf",
];

/// What a mutator chooses from.
#[derive(Debug)]
pub struct Vocabulary {
    /// Commands with the number of words they want: exact, or at least that many when negative.
    pub commands: Vec<(String, i64)>,
    /// Option names of all commands.
    pub tokens: Vec<String>,
    /// Names of directives.
    pub directives: Vec<&'static str>,
}

impl Vocabulary {
    /// One of the words that may stand behind a command.
    pub fn word<'v>(&'v self, rng: &mut fastrand::Rng) -> &'v str {
        let token = |rng: &mut fastrand::Rng| rng.choice(&self.tokens).map(String::as_str);
        let word = match rng.u8(..8) {
            0..3 => rng.choice(KEYS).copied(),
            3..6 => rng.choice(VALUES).copied(),
            6 => rng.choice(&self.directives).copied(),
            _ => token(rng),
        };
        word.unwrap_or("a")
    }
}

/// The vocabulary of this build, made once.
pub fn vocabulary() -> &'static Vocabulary {
    static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();
    VOCABULARY.get_or_init(|| {
        let mut world = World::new();
        let mut commands = Vec::new();
        collect_commands(world.ask(&[b"COMMAND"]).as_ref(), &mut commands);
        commands.extend([
            ("@client".to_owned(), 2),
            ("@wait".to_owned(), 2),
            ("@hangup".to_owned(), 1),
        ]);
        let mut tokens = Vec::new();
        if let Some(docs) = world.ask(&[b"COMMAND", b"DOCS"]) {
            collect_tokens(&docs, &mut tokens);
        }
        tokens.sort();
        tokens.dedup();
        let directives = TABLE.iter().map(|directive| directive.name).collect();
        Vocabulary {
            commands,
            tokens,
            directives,
        }
    })
}

/// Name and arity of every row, subcommands (its tenth element) included.
fn collect_commands(rows: Option<&Frame>, commands: &mut Vec<(String, i64)>) {
    let Some(Frame::Array(rows)) = rows else {
        return;
    };
    for row in rows {
        if let Frame::Array(row) = row
            && let [Frame::Bulk(name), Frame::Integer(arity), ..] = &**row
        {
            let name = String::from_utf8_lossy(name).replace('|', " ");
            commands.push((name, *arity));
            collect_commands(row.get(9), commands);
        }
    }
}

/// In RESP2 a token is the string behind the string `token`.
fn collect_tokens(docs: &Frame, tokens: &mut Vec<String>) {
    let Frame::Array(elements) = docs else {
        return;
    };
    for pair in elements.windows(2) {
        if let [Frame::Bulk(name), Frame::Bulk(token)] = pair
            && name == b"token"
        {
            tokens.push(String::from_utf8_lossy(token).into_owned());
        }
    }
    elements
        .iter()
        .for_each(|element| collect_tokens(element, tokens));
}
