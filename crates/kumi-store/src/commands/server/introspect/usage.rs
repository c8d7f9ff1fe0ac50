//! Usage lines as data: what stands in a row as `key [EX seconds | PERSIST]` becomes the tree of
//! arguments that COMMAND DOCS answers, so that a command's syntax is written down once.
//!
//! ```text
//!   [x]           optional            <x | y>, [x | y]   one of these
//!   WORD, = ~ * $ a token             WORD name          a token and its value
//!   x [x ...]     once or more        x y [x y ...]      the pair once or more
//! ```
//!
//! A line that breaks these rules still parses to something: it is our own text, and a test looks
//! at every one.

/// What an argument is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Value,
    Token,
    OneOf(Vec<Argument>),
    Block(Vec<Argument>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) shape: Shape,
    /// The word that introduces it, or that it is.
    pub(super) token: Option<&'static str>,
    pub(super) optional: bool,
    pub(super) multiple: bool,
}

impl Argument {
    fn new(name: &str, shape: Shape) -> Self {
        Self {
            name: name.to_ascii_lowercase(),
            shape,
            token: None,
            optional: false,
            multiple: false,
        }
    }

    /// The type COMMAND DOCS names.
    pub(super) fn kind(&self) -> &'static str {
        match self.shape {
            Shape::OneOf(_) => "oneof",
            Shape::Block(_) => "block",
            Shape::Token => "pure-token",
            Shape::Value => match self.name.as_str() {
                "key" | "key1" | "key2" | "newkey" | "source" | "destination" | "destkey"
                | "sourcekey" => "key",
                "pattern" => "pattern",
                "unix-time-seconds" | "unix-time-milliseconds" => "unix-time",
                "client-id" | "count" | "cursor" | "db" | "decrement" | "destination-db"
                | "end" | "index" | "index1" | "index2" | "milliseconds" | "min-match-len"
                | "numreplicas" | "offset" | "port" | "protover" | "seconds" | "start"
                | "timeout" => "integer",
                _ => "string",
            },
        }
    }

    pub(super) fn flags(&self) -> Vec<&'static str> {
        let flags = [(self.optional, "optional"), (self.multiple, "multiple")];
        let set = flags.into_iter().filter(|(on, _)| *on);
        set.map(|(_, name)| name).collect()
    }
}

pub(super) fn parse(usage: &'static str) -> Vec<Argument> {
    let mut words = Words { rest: usage };
    let mut choices = choices(&mut words);
    match choices.len() {
        1 => choices.remove(0),
        _ => vec![one_of(choices)],
    }
}

/// Splits a line into brackets, bars, dots and words.
struct Words {
    rest: &'static str,
}

impl Iterator for Words {
    type Item = &'static str;

    fn next(&mut self) -> Option<&'static str> {
        let line = self.rest.trim_start();
        let first = line.chars().next()?;
        let end = if "[]<>|".contains(first) {
            1
        } else {
            line.find(|letter: char| letter == ' ' || "[]<>|".contains(letter))
                .unwrap_or(line.len())
        };
        let (word, rest) = line.split_at(end);
        self.rest = rest;
        Some(word)
    }
}

/// Sequences between bars, up to a closing bracket or the end.
fn choices(words: &mut Words) -> Vec<Vec<Argument>> {
    let mut choices = vec![Vec::new()];
    while let Some(word) = words.next() {
        match word {
            "]" | ">" => break,
            "|" => choices.push(Vec::new()),
            _ => {
                let sequence = choices.last_mut().expect("it began with one");
                append(sequence, word, words);
            }
        }
    }
    choices
}

fn append(sequence: &mut Vec<Argument>, word: &'static str, words: &mut Words) {
    match word {
        "[" => {
            let choices = choices(words);
            if let [repeated] = choices.as_slice()
                && repeated.last().is_some_and(|last| last.name == "...")
            {
                return repeat(sequence, &repeated[..repeated.len() - 1]);
            }
            let mut argument = one_of(choices);
            argument.optional = true;
            sequence.push(argument);
        }
        "<" => {
            let argument = one_of(choices(words));
            add_value(sequence, argument);
        }
        _ if is_token(word) => {
            let name = SIGNS.iter().find(|(sign, _)| *sign == word);
            let name = name.map_or(word, |(_, name)| name);
            let mut argument = Argument::new(name, Shape::Token);
            argument.token = Some(word);
            sequence.push(argument);
        }
        _ => add_value(sequence, Argument::new(word, Shape::Value)),
    }
}

/// Tokens that are no words, and how Redis names them.
const SIGNS: &[(&str, &str)] = &[
    ("=", "equal"),
    ("~", "approximately"),
    ("*", "auto-id"),
    ("$", "new-id"),
];

fn is_token(word: &str) -> bool {
    let letters = || word.chars().filter(|letter| letter.is_ascii_alphabetic());
    let is_sign = SIGNS.iter().any(|(sign, _)| *sign == word);
    is_sign || letters().next().is_some() && letters().all(|letter| letter.is_ascii_uppercase())
}

/// A value right behind a token belongs to it.
fn add_value(sequence: &mut Vec<Argument>, mut argument: Argument) {
    if let Some(last) = sequence.pop_if(|last| last.shape == Shape::Token) {
        if matches!(argument.shape, Shape::OneOf(_)) {
            argument.name.clone_from(&last.name);
        }
        argument.token = last.token;
    }
    sequence.push(argument);
}

/// Marks the end of a sequence as repeatable, if it is what is repeated.
fn repeat(sequence: &mut Vec<Argument>, repeated: &[Argument]) {
    let start = sequence.len().saturating_sub(repeated.len());
    if repeated.len() > 1 {
        let parts: Vec<Argument> = sequence.drain(start..).collect();
        let name = parts.first().map_or("", |part| &part.name).to_owned();
        sequence.push(Argument::new(&name, Shape::Block(parts)));
    }
    if let Some(last) = sequence.last_mut() {
        last.multiple = true;
    }
}

/// Several sequences become a choice, several arguments a block; one argument is itself.
fn one_of(choices: Vec<Vec<Argument>>) -> Argument {
    let mut arguments: Vec<Argument> = choices.into_iter().map(block).collect();
    if arguments.len() == 1 {
        return arguments.remove(0);
    }
    let name = arguments.first().map_or("", |first| &first.name).to_owned();
    Argument::new(&name, Shape::OneOf(arguments))
}

fn block(mut sequence: Vec<Argument>) -> Argument {
    if sequence.len() == 1 {
        return sequence.remove(0);
    }
    let name = sequence.first().map_or("", |first| &first.name).to_owned();
    Argument::new(&name, Shape::Block(sequence))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree in one line: `?` optional, `*` multiple, `TOKEN:` before a value.
    fn show(arguments: &[Argument]) -> String {
        let shown: Vec<String> = arguments
            .iter()
            .map(|argument| {
                let body = match &argument.shape {
                    Shape::Value => format!("{}/{}", argument.name, argument.kind()),
                    Shape::Token => String::new(),
                    Shape::OneOf(parts) => format!("one({})", show(parts)),
                    Shape::Block(parts) => format!("block({})", show(parts)),
                };
                let token = argument
                    .token
                    .map_or(String::new(), |token| format!("{token}:"));
                let optional = if argument.optional { "?" } else { "" };
                let multiple = if argument.multiple { "*" } else { "" };
                format!("{token}{body}{optional}{multiple}")
            })
            .collect();
        shown.join(" ")
    }

    #[track_caller]
    fn check(usage: &'static str, expected: &str) {
        assert_eq!(show(&parse(usage)), expected);
    }

    #[test]
    fn usage_lines_become_trees() {
        check("", "");
        check("key", "key/key");
        check("[message]", "message/string?");
        check("key [key ...]", "key/key*");
        check("[event [event ...]]", "event/string?*");
        check("key value [key value ...]", "block(key/key value/string)*");
        check("key [NX | XX]", "key/key one(NX: XX:)?");
        check(
            "key [EX seconds|PXAT unix-time-milliseconds|PERSIST]",
            "key/key one(EX:seconds/integer PXAT:unix-time-milliseconds/unix-time PERSIST:)?",
        );
        check(
            "<host port|NO ONE>",
            "one(block(host/string port/integer) block(NO: ONE:))",
        );
        check(
            "[protover [AUTH username password] [SETNAME clientname]]",
            "block(protover/integer block(AUTH:username/string password/string)? SETNAME:clientname/string?)?",
        );
        check(
            "[TYPE <NORMAL|PUBSUB>] [ID client-id [client-id ...]]",
            "TYPE:one(NORMAL: PUBSUB:)? ID:client-id/integer?*",
        );
        check("<0|1>", "one(0/string 1/string)");
    }
}
