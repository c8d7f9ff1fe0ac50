//! Errors inside the machine and their messages.
//!
//! A type error is raised without its text, because only the run loop knows in which register the value was. The text is
//! made by [`Vm::finish_error`] when the error leaves the loop.

use super::{Args, Frame, Vm};
use crate::base::chunk_name::chunk_id;
use crate::base::value::Value;

/// The result of anything a script may make fail.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// An error on its way to whatever catches it.
#[derive(Debug)]
pub struct Error(pub(crate) Box<ErrorKind>);

#[derive(Debug)]
pub(crate) enum ErrorKind {
    /// Any value, usually a message or a table with `err`.
    Thrown(Value),
    /// The memory limit; a plain message when it is caught.
    Memory,
    /// An operation on a value of the wrong type. `register` is where the value was.
    Type {
        action: &'static str,
        value: Value,
        register: Option<usize>,
    },
    /// A message that needs the position of the running function.
    Message(String),
    /// An invalid pattern; the native that used it adds its caller's position.
    PatternError(String),
    /// The host ended the script; nothing catches it.
    Interrupted(String),
    /// The running coroutine yields this many values from the top of the stack.
    Yield(usize),
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Error {
        Error(Box::new(kind))
    }
}

impl Error {
    pub(crate) fn thrown(value: Value) -> Error {
        Error::from(ErrorKind::Thrown(value))
    }

    #[cold]
    pub(crate) fn message(text: impl Into<String>) -> Error {
        Error::from(ErrorKind::Message(text.into()))
    }

    #[cold]
    pub(crate) fn type_error(action: &'static str, value: Value) -> Error {
        Error::from(ErrorKind::Type {
            action,
            value,
            register: None,
        })
    }

    /// Says in which register the value of a type error was, unless that is known.
    #[cold]
    pub(crate) fn at_register(mut self, operand: u32) -> Error {
        if let ErrorKind::Type { register, .. } = &mut *self.0
            && operand < crate::base::proto::CONSTANT
            && register.is_none()
        {
            *register = Some(operand as usize);
        }
        self
    }

    /// Says that the value of a type error was in no register.
    pub(crate) fn nowhere(mut self) -> Error {
        if let ErrorKind::Type { register, .. } = &mut *self.0 {
            *register = Some(usize::MAX);
        }
        self
    }

    /// Whether `pcall` catches it.
    pub(crate) fn is_catchable(&self) -> bool {
        !matches!(*self.0, ErrorKind::Interrupted(_) | ErrorKind::Yield(_))
    }
}

impl Vm {
    /// Gives an error its text, from the frame that is running now.
    #[cold]
    pub(crate) fn finish_error(&mut self, error: Error) -> Error {
        let text = match *error.0 {
            ErrorKind::Type {
                action,
                value,
                register,
            } => {
                self.spend_on_name();
                let name = self
                    .frames
                    .last()
                    .copied()
                    .and_then(|frame| self.variable_name(&frame, register?));
                let kind = value.type_name();
                match name {
                    Some((what, name)) => {
                        let name = String::from_utf8_lossy(&name).into_owned();
                        format!("attempt to {action} {what} '{name}' (a {kind} value)")
                    }
                    None => format!("attempt to {action} a {kind} value"),
                }
            }
            ErrorKind::PatternError(text) => return self.error(text),
            ErrorKind::Message(text) => text,
            _ => return error,
        };
        let mut bytes = match self.frames.last() {
            Some(frame) if frame.is_lua() => self.position(&{ *frame }),
            _ => Vec::new(),
        };
        bytes.extend_from_slice(text.as_bytes());
        Error::thrown(self.str(&bytes))
    }

    /// `chunk:line: ` of a Lua frame.
    pub(crate) fn position(&self, frame: &Frame) -> Vec<u8> {
        let source = self.heap.protos.items[frame.proto as usize].source;
        let mut text = chunk_id(self.heap.bytes_of(source));
        text.extend_from_slice(format!(":{}: ", self.line(frame)).as_bytes());
        text
    }

    pub(crate) fn line(&self, frame: &Frame) -> u32 {
        let lines = &self.heap.protos.items[frame.proto as usize].lines;
        let at = (frame.pc as usize).saturating_sub(1);
        lines.get(at).copied().unwrap_or(0)
    }

    /// The frame of a level: 0 is the running function. Tail calls take a level of their own without a frame.
    pub(crate) fn level(&self, level: usize) -> Option<Option<usize>> {
        let mut left = level;
        for at in (0..self.frames.len()).rev() {
            if left == 0 {
                return Some(Some(at));
            }
            left -= 1;
            let lost = self.frames[at].tail_calls as usize;
            if left < lost {
                return Some(None);
            }
            left -= lost;
        }
        None
    }

    /// The position of the function at a level, or nothing for native functions and lost frames.
    pub(crate) fn position_at(&self, level: usize) -> Vec<u8> {
        match self.level(level) {
            Some(Some(at)) if self.frames[at].is_lua() => self.position(&self.frames[at]),
            _ => Vec::new(),
        }
    }

    /// An error of a native function: the position of its caller and a text.
    #[cold]
    pub(crate) fn error(&mut self, text: impl AsRef<[u8]>) -> Error {
        let mut bytes = self.position_at(1);
        bytes.extend_from_slice(text.as_ref());
        self.spend(bytes.len() / 8);
        Error::thrown(self.str(&bytes))
    }

    /// Charges the search for a name in the code and the variables of the function that failed.
    fn spend_on_name(&mut self) {
        let mut innermost = self.frames.iter().rev().take(2);
        if let Some(frame) = innermost.find(|frame| frame.is_lua()).copied() {
            let locals = self.heap.protos.items[frame.proto as usize].locals.len();
            self.spend((frame.pc as usize + locals) / 16);
        }
    }

    /// `bad argument #n to 'name' (text)`, with `at` counted from zero.
    #[cold]
    pub(crate) fn bad_argument(&mut self, at: usize, text: impl AsRef<[u8]>) -> Error {
        self.spend_on_name();
        let mut number = at + 1;
        let (name, method) = match self.function_name(0) {
            Some((what, name)) => (name, what == "method"),
            None => (b"?".to_vec(), false),
        };
        let mut message = Vec::new();
        if method {
            number -= 1;
            if number == 0 {
                message.extend_from_slice(b"calling '");
                message.extend_from_slice(&name);
                message.extend_from_slice(b"' on bad self (");
                message.extend_from_slice(text.as_ref());
                message.push(b')');
                return self.error(message);
            }
        }
        message.extend_from_slice(format!("bad argument #{number} to '").as_bytes());
        message.extend_from_slice(&name);
        message.extend_from_slice(b"' (");
        message.extend_from_slice(text.as_ref());
        message.push(b')');
        self.error(message)
    }

    /// `x expected, got y` for an argument.
    #[cold]
    pub(crate) fn wrong_type(&mut self, args: Args, at: usize, expected: &str) -> Error {
        let got = if at < args.count {
            self.stack[args.base + at].type_name()
        } else {
            "no value"
        };
        self.bad_argument(at, format!("{expected} expected, got {got}"))
    }
}
