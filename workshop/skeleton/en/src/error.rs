//! Given. What can go wrong: in the bytes (`RespError`) and in a command (`CommandError`).

use std::{fmt, io};

/// The bytes of a client make no sense, or end too early. The connection is closed.
#[derive(Debug)]
pub enum RespError {
    /// The socket failed, or the client left in the middle of a command.
    Io(io::Error),
    /// Not RESP; the text says what was wrong.
    Protocol(&'static str),
}

impl From<io::Error> for RespError {
    fn from(error: io::Error) -> RespError {
        RespError::Io(error)
    }
}

impl fmt::Display for RespError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RespError::Io(error) => write!(out, "{error}"),
            RespError::Protocol(what) => write!(out, "Protocol error: {what}"),
        }
    }
}

/// A command that cannot be executed. The client gets the text, and the connection stays open.
#[derive(Debug, PartialEq)]
pub enum CommandError {
    /// There is no such command.
    UnknownCommand,
    /// Too few or too many arguments.
    WrongNumberOfArguments,
    /// A value or argument is not a 64-bit number, or would no longer be one.
    NotAnInteger,
    /// The arguments do not fit the command.
    Syntax,
    /// The value is longer than `MAX_VALUE`.
    ValueTooLong,
    /// There are `MAX_KEYS` keys already.
    TooManyKeys,
    /// Not allowed while the connection is subscribed (step 6).
    PubSubMode,
}

impl fmt::Display for CommandError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            CommandError::UnknownCommand => "unknown command",
            CommandError::WrongNumberOfArguments => "wrong number of arguments",
            CommandError::NotAnInteger => "value is not an integer or out of range",
            CommandError::Syntax => "syntax error",
            CommandError::ValueTooLong => "value is longer than 512 KB",
            CommandError::TooManyKeys => "the limit of 10000 keys is reached",
            CommandError::PubSubMode => "Can't execute this command while subscribed",
        })
    }
}
