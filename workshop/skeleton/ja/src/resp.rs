//! RespParser: バイト列をコマンドに、応答をバイト列に変換します。
//!
//! ```text
//! *2\r\n          2 要素の配列
//! $3\r\nGET\r\n   3 バイトの Bulk String
//! $3\r\nfoo\r\n   3 バイトの Bulk String
//! ```

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::commands::Reply;
use crate::error::RespError;
use crate::limits::{MAX_ARGUMENTS, MAX_LINE, MAX_MESSAGE};

/// コマンド名と引数（バイト列）。
pub type Command = Vec<Vec<u8>>;

/// コマンドを読み取ります。呼び出しのあいだに状態を持ちません（ステートレス）。
pub struct RespParser;

impl RespParser {
    /// ステップ 2。1 つのコマンドを読み取ります。その前に切断された場合は `None` を返します。
    /// 1. `read_line` を呼ぶ。行がなければ `return Ok(None)`。
    /// 2. `parse_length(&line, b'*', MAX_ARGUMENTS)?` が引数の個数になる。
    /// 3. 引数ごとに、もう一度 `read_line`（行がなければエラー: `unexpected_end()`）、`b'$'` と `MAX_MESSAGE` の残りで
    ///    `parse_length`、そのバイト数 + 2 バイトを `read_exact` で読む。
    /// 4. `strip_crlf` が最後の 2 バイトを切り落とす。その戻り値を保存する。
    pub async fn parse_command<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Option<Command>, RespError> {
        todo!("step 2: resp.rs")
    }
}

/// ステップ 2。`\r\n` まで読み、それを除いた 1 行を返します。入力の終わりでは `None`。
/// 1. `reader.take(MAX_LINE).read_until(b'\n', &mut line).await?` は `\n` を含めて `line` に追加する。
/// 2. `line` が空なら入力の終わり: `None`。
/// 3. それ以外は `strip_crlf` で行末を除いた行を返す。
async fn read_line<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Option<Vec<u8>>, RespError> {
    todo!("step 2: resp.rs")
}

/// 実装済み。末尾の `\r\n` を切り落とします。なければエラー。
fn strip_crlf(mut bytes: Vec<u8>) -> Result<Vec<u8>, RespError> {
    if !bytes.ends_with(b"\r\n") {
        return Err(RespError::Protocol("expected CRLF"));
    }
    bytes.truncate(bytes.len() - 2);
    Ok(bytes)
}

/// 実装済み。`kind`（`*` または `$`）に続く数値。最大は `limit`。
fn parse_length(line: &[u8], kind: u8, limit: usize) -> Result<usize, RespError> {
    let digits = match line.split_first() {
        Some((first, digits)) if *first == kind => digits,
        _ if kind == b'*' => return Err(RespError::Protocol("expected '*'")),
        _ => return Err(RespError::Protocol("expected '$'")),
    };
    let digits = str::from_utf8(digits).map_err(|_| RespError::Protocol("invalid length"))?;
    let length = digits.parse().map_err(|_| RespError::Protocol("invalid length"))?;
    if length > limit {
        return Err(RespError::Protocol("message is too long"));
    }
    Ok(length)
}

/// 実装済み。コマンドの途中での切断を表すエラー。
fn unexpected_end() -> RespError {
    RespError::Io(std::io::ErrorKind::UnexpectedEof.into())
}

/// ステップ 2。Simple String: `+OK\r\n`。
pub fn encode_simple_string(value: &str) -> Vec<u8> {
    todo!("step 2: resp.rs")
}

/// 実装済み。Error: `-ERR message\r\n`。
pub fn encode_error(message: &str) -> Vec<u8> {
    format!("-ERR {message}\r\n").into_bytes()
}

/// ステップ 2。Integer: `:42\r\n`。
pub fn encode_integer(value: i64) -> Vec<u8> {
    todo!("step 2: resp.rs")
}

/// ステップ 2。Bulk String: `$3\r\nfoo\r\n`。`None` は Null Bulk String `$-1\r\n` です。
/// 値は文字列ではなくバイト列です。`extend_from_slice` で追加します。
pub fn encode_bulk_string(value: Option<&[u8]>) -> Vec<u8> {
    todo!("step 2: resp.rs")
}

/// 実装済み。上のエンコーダを使って、任意の応答をエンコードします。
pub fn encode_reply(reply: &Reply) -> Vec<u8> {
    match reply {
        Reply::Simple(text) => encode_simple_string(text),
        Reply::Integer(number) => encode_integer(*number),
        Reply::Bulk(value) => encode_bulk_string(value.as_deref()),
        Reply::Array(items) => {
            let mut bytes = format!("*{}\r\n", items.len()).into_bytes();
            for item in items {
                bytes.extend(encode_reply(item));
            }
            bytes
        }
    }
}
