//! en: Given. What can go wrong: in the bytes (`RespError`) and in a command (`CommandError`).
//! ja: 実装済み。起こりうるエラーです。バイト列の誤り（`RespError`）とコマンドの誤り（`CommandError`）。

use std::{fmt, io};

/// en: The bytes of a client make no sense, or end too early. The connection is closed.
/// ja: 不正な RESP 形式、または途中での切断です。接続は切断されます。
#[derive(Debug)]
pub enum RespError {
    /// en: The socket failed, or the client left in the middle of a command.
    /// ja: ソケットのエラー、またはコマンドの途中での切断。
    Io(io::Error),
    /// en: Not RESP; the text says what was wrong.
    /// ja: RESP ではない入力。文字列は誤りの内容です。
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

/// en: A command that cannot be executed. The client gets the text, and the connection stays open.
/// ja: 実行できないコマンドです。クライアントには文字列が返り、接続は維持されます。
#[derive(Debug, PartialEq)]
pub enum CommandError {
    /// en: There is no such command.
    /// ja: 未知のコマンド。
    UnknownCommand,
    /// en: Too few or too many arguments.
    /// ja: 引数不足または引数過剰。
    WrongNumberOfArguments,
    /// en: A value or argument is not a 64-bit number, or would no longer be one.
    /// ja: 値や引数が 64 ビット整数ではない、または範囲を超える。
    NotAnInteger,
    /// en: The arguments do not fit the command.
    /// ja: 引数の構文誤り。
    Syntax,
    /// en: The value is longer than `MAX_VALUE`.
    /// ja: 値が `MAX_VALUE` より長い。
    ValueTooLong,
    /// en: There are `MAX_KEYS` keys already.
    /// ja: キーがすでに `MAX_KEYS` 個ある。
    TooManyKeys,
    /// en: Not allowed while the connection is subscribed (step 6).
    /// ja: Pub/Sub モードでは実行できないコマンド（ステップ 6）。
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
