//! `cjson.decode`.

use super::{Setting, setting};
use crate::base::number;
use crate::base::value::{Str, TableId, Value};
use crate::vm::host::Host;
use crate::vm::{Args, Error, Result, SMALL, Vm};

/// Bytes of a string that are read between two charges.
const CHUNK: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Str(Str),
    Number(f64),
    Bool(bool),
    Null,
    Colon,
    Comma,
    End,
    Invalid(&'static str),
}

impl Token {
    fn name(self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::Str(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Bool(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Invalid(reason) => reason,
        }
    }
}

/// A table being filled.
enum Open {
    Array { table: TableId, next: usize },
    Object { table: TableId, key: Value },
}

struct Decoder<'a> {
    vm: &'a mut Vm,
    host: &'a mut dyn Host,
    text: Str,
    at: usize,
    /// Where the current token began, or where it is wrong.
    index: usize,
    max_depth: i32,
    invalid_numbers: bool,
    open: Vec<Open>,
    checked: usize,
}

pub(super) fn decode(vm: &mut Vm, host: &mut dyn Host, args: Args) -> Result<usize> {
    if args.count != 1 {
        return Err(vm.bad_argument(0, "expected 1 argument"));
    }
    let text = vm.check_str(args, 0)?;
    if let [a, b, ..] = vm.heap.bytes_of(text)
        && (*a == 0 || *b == 0)
    {
        return Err(vm.error("JSON parser does not support UTF-16 or UTF-32"));
    }
    let max_depth = setting(vm, args, Setting::DecodeMaxDepth);
    let invalid_numbers = setting(vm, args, Setting::DecodeInvalidNumbers) != 0;
    let mut decoder = Decoder {
        vm,
        host,
        text,
        at: 0,
        index: 0,
        max_depth,
        invalid_numbers,
        open: Vec::new(),
        checked: 0,
    };
    let value = decoder.document()?;
    vm.give(value)
}

impl Decoder<'_> {
    fn document(&mut self) -> Result<Value> {
        let token = self.token()?;
        let mut done = self.value(token)?;
        loop {
            // A value is complete, or a table was opened.
            if let Some(value) = done {
                match self.open.last_mut() {
                    None => break,
                    Some(Open::Array { table, next }) => {
                        let (table, at) = (*table, *next);
                        *next += 1;
                        self.vm.heap.raw_set_index(table, at, value);
                        self.vm.reserve_growth(table)?;
                    }
                    Some(Open::Object { table, key }) => {
                        let (table, key) = (*table, *key);
                        self.vm.heap.raw_set(table, key, value);
                        self.vm.reserve_growth(table)?;
                    }
                }
                done = self.after_element()?;
            } else {
                done = self.first_element()?;
            }
        }
        let value = done.unwrap_or_default();
        self.vm.push(value);
        let token = self.token()?;
        if !matches!(token, Token::End) {
            return Err(self.unexpected("the end", token));
        }
        Ok(value)
    }

    /// The first token after an opening bracket.
    fn first_element(&mut self) -> Result<Option<Value>> {
        let token = self.token()?;
        match (self.open.last(), token) {
            (Some(Open::Array { .. }), Token::ArrayEnd)
            | (Some(Open::Object { .. }), Token::ObjectEnd) => Ok(self.close()),
            (Some(Open::Object { .. }), _) => self.member(token),
            _ => self.value(token),
        }
    }

    fn after_element(&mut self) -> Result<Option<Value>> {
        let token = self.token()?;
        let in_array = matches!(self.open.last(), Some(Open::Array { .. }));
        match token {
            Token::ArrayEnd if in_array => Ok(self.close()),
            Token::ObjectEnd if !in_array => Ok(self.close()),
            Token::Comma => {
                let token = self.token()?;
                if in_array {
                    self.value(token)
                } else {
                    self.member(token)
                }
            }
            _ if in_array => Err(self.unexpected("comma or array end", token)),
            _ => Err(self.unexpected("comma or object end", token)),
        }
    }

    fn member(&mut self, token: Token) -> Result<Option<Value>> {
        let Token::Str(name) = token else {
            return Err(self.unexpected("object key string", token));
        };
        if let Some(Open::Object { key, .. }) = self.open.last_mut() {
            *key = Value::Str(name);
        }
        let place = self.vm.top - 1;
        self.vm.stack[place] = Value::Str(name);
        let token = self.token()?;
        if !matches!(token, Token::Colon) {
            return Err(self.unexpected("colon", token));
        }
        let token = self.token()?;
        self.value(token)
    }

    /// The table that ends here, as a value.
    fn close(&mut self) -> Option<Value> {
        let open = self.open.pop()?;
        self.vm.top -= 2;
        match open {
            Open::Array { table, .. } | Open::Object { table, .. } => Some(Value::Table(table)),
        }
    }

    fn value(&mut self, token: Token) -> Result<Option<Value>> {
        Ok(Some(match token {
            Token::Str(s) => Value::Str(s),
            Token::Number(n) => Value::Number(n),
            Token::Bool(b) => Value::Bool(b),
            Token::Null => Value::Light(0),
            Token::ObjectBegin | Token::ArrayBegin => {
                let depth = self.open.len() + 1;
                if depth as i64 > i64::from(self.max_depth) {
                    let place = self.at;
                    return Err(self.vm.error(format!(
                        "Found too many nested data structures ({depth}) at character {place}"
                    )));
                }
                let table = self.vm.heap.table(0, 0);
                // Where the collector finds the table and its key.
                self.vm.push(Value::Table(table));
                self.vm.push(Value::Nil);
                self.open.push(match token {
                    Token::ObjectBegin => Open::Object {
                        table,
                        key: Value::Nil,
                    },
                    _ => Open::Array { table, next: 1 },
                });
                return Ok(None);
            }
            _ => return Err(self.unexpected("value", token)),
        }))
    }

    fn unexpected(&mut self, expected: &str, token: Token) -> Error {
        let found = token.name();
        let place = self.index + 1;
        self.vm.error(format!(
            "Expected {expected} but found {found} at character {place}"
        ))
    }

    fn byte(&self, at: usize) -> u8 {
        self.vm
            .heap
            .bytes_of(self.text)
            .get(at)
            .copied()
            .unwrap_or(0)
    }

    fn rest(&self) -> &[u8] {
        self.vm
            .heap
            .bytes_of(self.text)
            .get(self.at..)
            .unwrap_or_default()
    }

    fn token(&mut self) -> Result<Token> {
        if self.at > self.checked + 4096 {
            let work = self.at - self.checked;
            self.checked = self.at;
            self.vm.charge(self.host, work / 4)?;
            self.vm.reserve_memory(0)?;
        }
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.index = self.at;
        let token = match self.byte(self.at) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            // A zero byte ends the text, as it does for the original.
            0 => return Ok(Token::End),
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' => {
                if !self.invalid_numbers && self.is_invalid_number() {
                    return Ok(Token::Invalid("invalid number"));
                }
                return Ok(self.number());
            }
            _ => return Ok(self.word()),
        };
        self.at += 1;
        Ok(token)
    }

    fn word(&mut self) -> Token {
        for (text, token) in [
            (&b"true"[..], Token::Bool(true)),
            (b"false", Token::Bool(false)),
            (b"null", Token::Null),
        ] {
            if self.rest().starts_with(text) {
                self.at += text.len();
                return token;
            }
        }
        let first = self.byte(self.at);
        if self.invalid_numbers && b"+IiNn".contains(&first) && self.is_invalid_number() {
            return self.number();
        }
        Token::Invalid("invalid token")
    }

    /// Numbers that are not JSON but that C reads.
    fn is_invalid_number(&self) -> bool {
        let rest = self.rest();
        if rest.first() == Some(&b'+') {
            return true;
        }
        let digits = rest.strip_prefix(b"-").unwrap_or(rest);
        match digits.first() {
            Some(b'0') => digits
                .get(1)
                .is_some_and(|b| *b | 0x20 == b'x' || b.is_ascii_digit()),
            Some(b) if *b <= b'9' => false,
            _ => digits.get(..3).is_some_and(|start| {
                start.eq_ignore_ascii_case(b"inf") || start.eq_ignore_ascii_case(b"nan")
            }),
        }
    }

    fn number(&mut self) -> Token {
        // C reads up to a zero byte.
        let rest = self.rest();
        let window = &rest[..rest.len().min(4096)];
        match number::prefix(window) {
            Some((value, used)) if used > 0 => {
                self.at += used;
                Token::Number(value)
            }
            _ => Token::Invalid("invalid number"),
        }
    }

    fn string(&mut self) -> Result<Token> {
        let mut out = std::mem::take(&mut self.vm.scratch);
        out.clear();
        self.at += 1;
        let token = match self.string_into(&mut out)? {
            Ok(()) if out.len() > SMALL => {
                Token::Str(self.vm.heap.string_from(std::mem::take(&mut out)))
            }
            Ok(()) => Token::Str(self.vm.heap.string(&out)),
            Err(reason) => {
                self.index = self.at;
                if out.capacity() > SMALL {
                    out = Vec::new();
                }
                Token::Invalid(reason)
            }
        };
        self.vm.scratch = out;
        Ok(token)
    }

    /// The inner error is the reason why it is no string.
    fn string_into(&mut self, out: &mut Vec<u8>) -> Result<std::result::Result<(), &'static str>> {
        loop {
            let rest = self.rest();
            let rest = &rest[..rest.len().min(CHUNK)];
            let special = rest.iter().position(|b| matches!(b, b'"' | b'\\' | 0));
            let plain = special.unwrap_or(rest.len());
            // Room for a character of an escape besides.
            self.vm.room(self.host, out, plain + 4)?;
            let from = self.at;
            out.extend_from_slice(&self.vm.heap.bytes_of(self.text)[from..from + plain]);
            self.at += plain;
            if special.is_none() && plain > 0 {
                continue;
            }
            match self.byte(self.at) {
                b'"' => {
                    self.at += 1;
                    return Ok(Ok(()));
                }
                b'\\' => {
                    if let Err(reason) = self.escape(out) {
                        return Ok(Err(reason));
                    }
                }
                _ => return Ok(Err("unexpected end of string")),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> std::result::Result<(), &'static str> {
        let plain = match self.byte(self.at + 1) {
            escaped @ (b'"' | b'\\' | b'/') => escaped,
            b'b' => 8,
            b'f' => 12,
            b'n' => 10,
            b'r' => 13,
            b't' => 9,
            b'u' => return self.unicode(out),
            _ => return Err("invalid escape code"),
        };
        out.push(plain);
        self.at += 2;
        Ok(())
    }

    fn unicode(&mut self, out: &mut Vec<u8>) -> std::result::Result<(), &'static str> {
        const INVALID: &str = "invalid unicode escape code";
        let first = self.hex4(self.at + 2).ok_or(INVALID)?;
        let mut code = first;
        let mut used = 6;
        if first & 0xF800 == 0xD800 {
            let low = self.hex4(self.at + 8).ok_or(INVALID)?;
            if first & 0x400 != 0
                || self.byte(self.at + 6) != b'\\'
                || self.byte(self.at + 7) != b'u'
                || low & 0xFC00 != 0xDC00
            {
                return Err(INVALID);
            }
            code = ((first & 0x3FF) << 10 | low & 0x3FF) + 0x10000;
            used = 12;
        }
        let character = char::from_u32(code).ok_or(INVALID)?;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += used;
        Ok(())
    }

    fn hex4(&self, at: usize) -> Option<u32> {
        (at..at + 4).try_fold(0, |code, at| {
            let digit = (self.byte(at) as char).to_digit(16)?;
            Some(code << 4 | digit)
        })
    }
}
