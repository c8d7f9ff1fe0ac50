//! The lexer: bytes to tokens, with Lua 5.1's messages.

use super::CompileError;
use crate::base::chunk_name::chunk_id;
use crate::base::number;
use crate::base::value::Str;
use crate::vm::heap::Heap;
use crate::vm::meter::Budget;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Token {
    /// An operator or any other single byte.
    Byte(u8),
    Keyword(Keyword),
    Concat,
    Dots,
    Equal,
    GreaterEqual,
    LessEqual,
    NotEqual,
    Number(f64),
    Name(Str),
    Text(Str),
    End,
}

macro_rules! keywords {
    ($($name:ident $text:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Keyword { $($name),* }

        impl Keyword {
            fn find(text: &[u8]) -> Option<Keyword> {
                $(if text == $text.as_bytes() { return Some(Keyword::$name); })*
                None
            }

            pub(crate) fn text(self) -> &'static str {
                match self { $(Keyword::$name => $text),* }
            }
        }
    };
}

keywords! {
    And "and", Break "break", Do "do", Else "else", Elseif "elseif", End "end", False "false", For "for",
    Function "function", If "if", In "in", Local "local", Nil "nil", Not "not", Or "or", Repeat "repeat",
    Return "return", Then "then", True "true", Until "until", While "while",
}

impl Token {
    pub(crate) fn is(self, byte: u8) -> bool {
        matches!(self, Token::Byte(b) if b == byte)
    }

    pub(crate) fn is_keyword(self, keyword: Keyword) -> bool {
        matches!(self, Token::Keyword(k) if k == keyword)
    }

    /// The form messages show when the token stands for its kind.
    pub(crate) fn kind(self) -> Vec<u8> {
        match self {
            Token::Byte(b) if b.is_ascii_control() => format!("char({b})").into_bytes(),
            Token::Byte(b) => vec![b],
            Token::Keyword(k) => k.text().into(),
            Token::Concat => "..".into(),
            Token::Dots => "...".into(),
            Token::Equal => "==".into(),
            Token::GreaterEqual => ">=".into(),
            Token::LessEqual => "<=".into(),
            Token::NotEqual => "~=".into(),
            Token::Number(_) => "<number>".into(),
            Token::Name(_) => "<name>".into(),
            Token::Text(_) => "<string>".into(),
            Token::End => "<eof>".into(),
        }
    }
}

/// What a message names as the place of the error.
pub(crate) enum Near {
    Token(Token),
    /// The text read so far.
    Buffer,
    Nothing,
}

pub(crate) struct Lexer<'a> {
    pub(crate) heap: &'a mut Heap,
    input: &'a [u8],
    at: usize,
    pub(crate) budget: Budget<'a>,
    /// The place in the input up to which work is charged, and the tokens since.
    paid: usize,
    tokens: usize,
    /// Bytes that the parser holds for the functions that are being compiled.
    pub(crate) held: usize,
    buffer: Vec<u8>,
    pub(crate) line: u32,
    /// Line of the token before the current one.
    pub(crate) last_line: u32,
    pub(crate) token: Token,
    ahead: Option<Token>,
    pub(crate) source: Str,
}

type Result<T> = std::result::Result<T, CompileError>;

/// Bytes of the input between two charges.
const PAY_BYTES: usize = 8 * 1024;
/// What a token costs besides its bytes.
const TOKEN_COST: usize = 16;

/// Lines a chunk may have.
const MAX_LINES: u32 = i32::MAX as u32 - 2;

impl<'a> Lexer<'a> {
    pub(crate) fn new(
        heap: &'a mut Heap,
        input: &'a [u8],
        source: Str,
        budget: Budget<'a>,
    ) -> Lexer<'a> {
        Lexer {
            heap,
            input,
            at: 0,
            budget,
            paid: 0,
            tokens: 0,
            held: 0,
            buffer: Vec::new(),
            line: 1,
            last_line: 1,
            token: Token::End,
            ahead: None,
            source,
        }
    }

    /// Charges work of the parser.
    pub(crate) fn charge(&mut self, work: usize) -> Result<()> {
        let burnt = self.budget.meter.burn(work);
        burnt.map_err(CompileError::Stopped)
    }

    /// Charges what was read, once there is enough of it. Called for every token, and inside of long ones.
    #[inline]
    fn pay(&mut self) -> Result<()> {
        if self.at - self.paid < PAY_BYTES {
            return Ok(());
        }
        self.pay_now()
    }

    #[cold]
    fn pay_now(&mut self) -> Result<()> {
        let work = self.at - self.paid + self.tokens * TOKEN_COST;
        (self.paid, self.tokens) = (self.at, 0);
        self.charge(work)?;
        // A token is twice in memory when it becomes a string, and its buffers grow by doubling.
        let buffers = self.buffer.capacity() * 4;
        self.check_memory(self.held + buffers)
    }

    /// Fails if the heap has no room for this many more bytes.
    pub(crate) fn check_memory(&self, more: usize) -> Result<()> {
        if self.budget.has_room(self.heap, more) {
            return Ok(());
        }
        Err(CompileError::Memory)
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        self.last_line = self.line;
        self.token = match self.ahead.take() {
            Some(token) => token,
            None => self.lex()?,
        };
        Ok(())
    }

    pub(crate) fn look_ahead(&mut self) -> Result<Token> {
        let token = self.lex()?;
        self.ahead = Some(token);
        Ok(token)
    }

    /// An error at the current token.
    pub(crate) fn syntax_error(&self, message: &str) -> CompileError {
        self.error(message, Near::Token(self.token))
    }

    pub(crate) fn error(&self, message: &str, near: Near) -> CompileError {
        let mut text = chunk_id(self.heap.bytes_of(self.source));
        text.extend_from_slice(format!(":{}: ", self.line).as_bytes());
        text.extend_from_slice(message.as_bytes());
        let near = match near {
            // A zero byte counts as no token.
            Near::Nothing | Near::Token(Token::Byte(0)) => None,
            Near::Buffer => Some(self.buffer.clone()),
            Near::Token(token) => Some(match token {
                Token::Name(_) | Token::Text(_) | Token::Number(_) => self.buffer.clone(),
                _ => token.kind(),
            }),
        };
        if let Some(near) = near {
            text.extend_from_slice(b" near '");
            // C's formatting stops at a zero byte.
            text.extend(near.iter().take_while(|b| **b != 0));
            text.push(b'\'');
        }
        CompileError::Syntax(text)
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn save(&mut self) {
        if let Some(byte) = self.peek() {
            self.buffer.push(byte);
            self.at += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn new_line(&mut self) -> Result<()> {
        let first = self.peek();
        self.at += 1;
        if matches!(self.peek(), Some(b'\n' | b'\r')) && self.peek() != first {
            self.at += 1;
        }
        self.line += 1;
        if self.line >= MAX_LINES {
            return Err(self.syntax_error("chunk has too many lines"));
        }
        Ok(())
    }

    fn lex(&mut self) -> Result<Token> {
        self.buffer.clear();
        self.tokens += 1;
        loop {
            self.pay()?;
            let Some(byte) = self.peek() else {
                return Ok(Token::End);
            };
            match byte {
                b'\n' | b'\r' => self.new_line()?,
                b'-' => {
                    self.at += 1;
                    if !self.accept(b'-') {
                        return Ok(Token::Byte(b'-'));
                    }
                    self.comment()?;
                }
                b'[' => {
                    let start = self.at;
                    match self.long_bracket() {
                        Some(level) => return self.long_string(level, true),
                        None if self.at == start + 1 => return Ok(Token::Byte(b'[')),
                        None => {
                            self.buffer = self.input[start..self.at].to_vec();
                            return Err(self.error("invalid long string delimiter", Near::Buffer));
                        }
                    }
                }
                b'=' => return Ok(self.operator(b'=', Token::Equal)),
                b'<' => return Ok(self.operator(b'<', Token::LessEqual)),
                b'>' => return Ok(self.operator(b'>', Token::GreaterEqual)),
                b'~' => return Ok(self.operator(b'~', Token::NotEqual)),
                b'"' | b'\'' => return self.quoted(byte),
                b'.' => {
                    self.save();
                    if self.accept(b'.') {
                        return Ok(if self.accept(b'.') {
                            Token::Dots
                        } else {
                            Token::Concat
                        });
                    }
                    if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
                        return Ok(Token::Byte(b'.'));
                    }
                    return self.numeral();
                }
                _ if number::is_space(byte) => self.at += 1,
                _ if byte.is_ascii_digit() => return self.numeral(),
                _ if byte.is_ascii_alphabetic() || byte == b'_' => return Ok(self.name()),
                _ => {
                    self.at += 1;
                    return Ok(Token::Byte(byte));
                }
            }
        }
    }

    fn operator(&mut self, byte: u8, with_equal: Token) -> Token {
        self.at += 1;
        if self.accept(b'=') {
            with_equal
        } else {
            Token::Byte(byte)
        }
    }

    fn name(&mut self) -> Token {
        let start = self.at;
        let rest = &self.input[start..];
        let len = rest
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
            .count();
        self.at += len;
        self.buffer.extend_from_slice(&rest[..len]);
        match Keyword::find(&self.buffer) {
            Some(keyword) => Token::Keyword(keyword),
            None => Token::Name(self.heap.name(&self.buffer)),
        }
    }

    fn numeral(&mut self) -> Result<Token> {
        while self.peek().is_some_and(|b| b.is_ascii_digit() || b == b'.') {
            self.save();
            self.pay()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.save();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.save();
            }
        }
        while self
            .peek()
            .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
        {
            self.save();
        }
        match number::parse(&self.buffer) {
            Some(value) => Ok(Token::Number(value)),
            None => Err(self.error("malformed number", Near::Buffer)),
        }
    }

    fn comment(&mut self) -> Result<()> {
        if self.peek() == Some(b'[') {
            let level = self.long_bracket();
            self.buffer.clear();
            if let Some(level) = level {
                self.long_string(level, false)?;
                self.buffer.clear();
                return Ok(());
            }
        }
        while !matches!(self.peek(), None | Some(b'\n' | b'\r')) {
            self.at += 1;
            self.pay()?;
        }
        Ok(())
    }

    /// Reads `[`, equal signs and `[`, and gives the number of equal signs; otherwise stops after the equal signs.
    fn long_bracket(&mut self) -> Option<usize> {
        self.at += 1;
        let mut level = 0;
        while self.accept(b'=') {
            level += 1;
        }
        self.accept(b'[').then_some(level)
    }

    fn long_string(&mut self, level: usize, wanted: bool) -> Result<Token> {
        self.buffer.clear();
        let opening = [b"[", &*vec![b'='; level], b"["].concat();
        let closing = [b"]", &*vec![b'='; level], b"]"].concat();
        if matches!(self.peek(), Some(b'\n' | b'\r')) {
            self.new_line()?;
        }
        loop {
            self.pay()?;
            match self.peek() {
                None => {
                    let message = if wanted {
                        "unfinished long string"
                    } else {
                        "unfinished long comment"
                    };
                    return Err(self.error(message, Near::Token(Token::End)));
                }
                Some(b']') if self.input[self.at..].starts_with(&closing) => {
                    self.at += closing.len();
                    let text = self.heap.string(&self.buffer);
                    if wanted {
                        // A message shows the text with its brackets.
                        self.buffer = [&*opening, &self.buffer, &closing].concat();
                    }
                    return Ok(Token::Text(text));
                }
                Some(b'\n' | b'\r') => {
                    self.buffer.push(b'\n');
                    self.new_line()?;
                    if !wanted {
                        self.buffer.clear();
                    }
                }
                Some(byte) => {
                    if wanted {
                        self.buffer.push(byte);
                    }
                    self.at += 1;
                }
            }
        }
    }

    fn quoted(&mut self, quote: u8) -> Result<Token> {
        let mut text = Vec::new();
        // `buffer` holds what a message shows: the string as read so far, with its quotes.
        self.save();
        loop {
            self.pay()?;
            match self.peek() {
                None => return Err(self.error("unfinished string", Near::Token(Token::End))),
                Some(b'\n' | b'\r') => return Err(self.error("unfinished string", Near::Buffer)),
                Some(byte) if byte == quote => {
                    self.save();
                    let text = self.heap.string(&text);
                    return Ok(Token::Text(text));
                }
                Some(b'\\') => {
                    self.at += 1;
                    let from = text.len();
                    self.escape(&mut text)?;
                    self.buffer.extend_from_slice(&text[from..]);
                }
                Some(byte) => {
                    text.push(byte);
                    self.save();
                }
            }
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<()> {
        let Some(byte) = self.peek() else {
            return Ok(());
        };
        let plain = match byte {
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'\n' | b'\r' => {
                text.push(b'\n');
                return self.new_line();
            }
            b'0'..=b'9' => {
                let mut code = 0u32;
                let mut count = 0;
                while let Some(digit @ b'0'..=b'9') = self.peek()
                    && count < 3
                {
                    code = code * 10 + u32::from(digit - b'0');
                    self.at += 1;
                    count += 1;
                }
                let Ok(code) = u8::try_from(code) else {
                    return Err(self.error("escape sequence too large", Near::Buffer));
                };
                text.push(code);
                return Ok(());
            }
            other => other,
        };
        text.push(plain);
        self.at += 1;
        Ok(())
    }
}
