//! 実装済み。起こりうるエラーです。バイト列の誤り（`RespError`）とコマンドの誤り（`CommandError`）。

use std::{fmt, io};

/// 不正な RESP 形式、または途中での切断です。接続は切断されます。
#[derive(Debug)]
pub enum RespError {
    /// ソケットのエラー、またはコマンドの途中での切断。
    Io(io::Error),
    /// RESP ではない入力。文字列は誤りの内容です。
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

/// 実行できないコマンドです。クライアントには文字列が返り、接続は維持されます。
#[derive(Debug, PartialEq)]
pub enum CommandError {
    /// 未知のコマンド。
    UnknownCommand,
    /// 引数不足または引数過剰。
    WrongNumberOfArguments,
    /// 値や引数が 64 ビット整数ではない、または範囲を超える。
    NotAnInteger,
    /// 引数の構文誤り。
    Syntax,
    /// 値が `MAX_VALUE` より長い。
    ValueTooLong,
    /// キーがすでに `MAX_KEYS` 個ある。
    TooManyKeys,
    /// Pub/Sub モードでは実行できないコマンド（ステップ 6）。
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
