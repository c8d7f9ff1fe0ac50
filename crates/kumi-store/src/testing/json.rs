//! As much JSON as the recorded values are written in.

use std::ops::Index;

/// A value of a recording. Numbers are whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Number(i64),
    Text(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object(fields) => fields
                .iter()
                .find(|(field, _)| field == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&Vec<Value>> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }
}

impl Index<&str> for Value {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&Value::Null)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

/// Reads one value; panics where it is none.
pub(crate) fn parse(text: &str) -> Value {
    let mut rest = text;
    let value = value(&mut rest);
    assert!(rest.trim().is_empty(), "something follows: {rest}");
    value
}

fn value(rest: &mut &str) -> Value {
    *rest = rest.trim_start();
    match rest.as_bytes()[0] {
        b'n' => {
            *rest = rest.strip_prefix("null").expect("it is null");
            Value::Null
        }
        b'"' => Value::Text(string(rest)),
        b'[' => Value::Array(sequence(rest, ']', value)),
        b'{' => Value::Object(sequence(rest, '}', |rest| {
            *rest = rest.trim_start();
            let name = string(rest);
            *rest = rest.trim_start().strip_prefix(':').expect("a colon");
            (name, value(rest))
        })),
        _ => {
            let end = rest.find([',', ']', '}']).unwrap_or(rest.len());
            let (number, behind) = rest.split_at(end);
            *rest = behind;
            Value::Number(number.trim().parse().expect("a number"))
        }
    }
}

fn sequence<T>(rest: &mut &str, end: char, mut item: impl FnMut(&mut &str) -> T) -> Vec<T> {
    let mut items = Vec::new();
    *rest = rest[1..].trim_start();
    while !rest.starts_with(end) {
        items.push(item(rest));
        *rest = rest.trim_start();
        *rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    *rest = &rest[1..];
    items
}

fn string(rest: &mut &str) -> String {
    let mut out = String::new();
    let mut characters = rest[1..].chars();
    loop {
        match characters.next().expect("a string ends") {
            '"' => break,
            '\\' => match characters.next().expect("something is escaped") {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'u' => {
                    let digits: String = characters.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).expect("four digits");
                    out.push(char::from_u32(code).expect("no surrogate is recorded"));
                }
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
    *rest = characters.as_str();
    out
}
