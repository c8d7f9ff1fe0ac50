//! en: RespParser: bytes to commands, and replies to bytes.
//! ja: RespParser: バイト列をコマンドに、応答をバイト列に変換します。
//!
//! ```text
//! en: *2\r\n          an array of 2
//! en: $3\r\nGET\r\n   a bulk string of 3 bytes
//! en: $3\r\nfoo\r\n   a bulk string of 3 bytes
//! ja: *2\r\n          2 要素の配列
//! ja: $3\r\nGET\r\n   3 バイトの Bulk String
//! ja: $3\r\nfoo\r\n   3 バイトの Bulk String
//! ```

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::commands::Reply;
use crate::error::RespError;
use crate::limits::{MAX_ARGUMENTS, MAX_LINE, MAX_MESSAGE};

/// en: A command's name and arguments, as bytes.
/// ja: コマンド名と引数（バイト列）。
pub type Command = Vec<Vec<u8>>;

/// en: Reads commands. It keeps nothing between two calls (stateless).
/// ja: コマンドを読み取ります。呼び出しのあいだに状態を持ちません（ステートレス）。
pub struct RespParser;

impl RespParser {
    /// en: Step 2. Reads one command; `None` if the client closed the connection before it.
    /// en: 1. `read_line`; no line means `return Ok(None)`;
    /// en: 2. `parse_length(&line, b'*', MAX_ARGUMENTS)?` is the number of arguments;
    /// en: 3. for each: `read_line` again (no line is an error: `unexpected_end()`), `parse_length` with `b'$'` and
    /// en:    what is left of `MAX_MESSAGE`, then `read_exact` that many bytes and 2 more;
    /// en: 4. `strip_crlf` cuts the 2 bytes off; keep what it returns.
    /// ja: ステップ 2。1 つのコマンドを読み取ります。その前に切断された場合は `None` を返します。
    /// ja: 1. `read_line` を呼ぶ。行がなければ `return Ok(None)`。
    /// ja: 2. `parse_length(&line, b'*', MAX_ARGUMENTS)?` が引数の個数になる。
    /// ja: 3. 引数ごとに、もう一度 `read_line`（行がなければエラー: `unexpected_end()`）、`b'$'` と `MAX_MESSAGE` の残りで
    /// ja:    `parse_length`、そのバイト数 + 2 バイトを `read_exact` で読む。
    /// ja: 4. `strip_crlf` が最後の 2 バイトを切り落とす。その戻り値を保存する。
    pub async fn parse_command<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Option<Command>, RespError> {
        //@ step 2
        let Some(line) = read_line(reader).await? else {
            return Ok(None);
        };
        let count = parse_length(&line, b'*', MAX_ARGUMENTS)?;
        let mut command = Vec::new();
        let mut left = MAX_MESSAGE;
        for _ in 0..count {
            let line = read_line(reader).await?.ok_or_else(unexpected_end)?;
            let length = parse_length(&line, b'$', left)?;
            left -= length;
            let mut bytes = vec![0; length + 2];
            reader.read_exact(&mut bytes).await?;
            command.push(strip_crlf(bytes)?);
        }
        Ok(Some(command))
        //@ end
    }
}

/// en: Step 2. Reads up to `\r\n` and returns the line without it; `None` at the end of the input.
/// en: 1. `reader.take(MAX_LINE).read_until(b'\n', &mut line).await?` appends to `line`, the `\n` included;
/// en: 2. an empty line means the end: `None`;
/// en: 3. otherwise the line, without its end: `strip_crlf`.
/// ja: ステップ 2。`\r\n` まで読み、それを除いた 1 行を返します。入力の終わりでは `None`。
/// ja: 1. `reader.take(MAX_LINE).read_until(b'\n', &mut line).await?` は `\n` を含めて `line` に追加する。
/// ja: 2. `line` が空なら入力の終わり: `None`。
/// ja: 3. それ以外は `strip_crlf` で行末を除いた行を返す。
async fn read_line<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Option<Vec<u8>>, RespError> {
    //@ step 2 given60
    let mut line = Vec::new();
    reader.take(MAX_LINE).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Ok(None);
    }
    let line = strip_crlf(line)?;
    Ok(Some(line))
    //@ end
}

/// en: Given. Cuts off the `\r\n` at the end; an error if there is none.
/// ja: 実装済み。末尾の `\r\n` を切り落とします。なければエラー。
fn strip_crlf(mut bytes: Vec<u8>) -> Result<Vec<u8>, RespError> {
    if !bytes.ends_with(b"\r\n") {
        return Err(RespError::Protocol("expected CRLF"));
    }
    bytes.truncate(bytes.len() - 2);
    Ok(bytes)
}

/// en: Given. The number behind `kind` (`*` or `$`), at most `limit`.
/// ja: 実装済み。`kind`（`*` または `$`）に続く数値。最大は `limit`。
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

/// en: Given. The client left in the middle of a command.
/// ja: 実装済み。コマンドの途中での切断を表すエラー。
fn unexpected_end() -> RespError {
    RespError::Io(std::io::ErrorKind::UnexpectedEof.into())
}

/// en: Step 2. A simple string: `+OK\r\n`.
/// ja: ステップ 2。Simple String: `+OK\r\n`。
pub fn encode_simple_string(value: &str) -> Vec<u8> {
    //@ step 2 given60
    format!("+{value}\r\n").into_bytes()
    //@ end
}

/// en: Given. An error: `-ERR message\r\n`.
/// ja: 実装済み。Error: `-ERR message\r\n`。
pub fn encode_error(message: &str) -> Vec<u8> {
    format!("-ERR {message}\r\n").into_bytes()
}

/// en: Step 2. An integer: `:42\r\n`.
/// ja: ステップ 2。Integer: `:42\r\n`。
pub fn encode_integer(value: i64) -> Vec<u8> {
    //@ step 2 given60
    format!(":{value}\r\n").into_bytes()
    //@ end
}

/// en: Step 2. A bulk string: `$3\r\nfoo\r\n`; `None` is the null bulk string `$-1\r\n`.
/// en: The value is bytes, not text: append it with `extend_from_slice`.
/// ja: ステップ 2。Bulk String: `$3\r\nfoo\r\n`。`None` は Null Bulk String `$-1\r\n` です。
/// ja: 値は文字列ではなくバイト列です。`extend_from_slice` で追加します。
pub fn encode_bulk_string(value: Option<&[u8]>) -> Vec<u8> {
    //@ step 2 given60
    let Some(value) = value else {
        return b"$-1\r\n".to_vec();
    };
    let mut bytes = format!("${}\r\n", value.len()).into_bytes();
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(b"\r\n");
    bytes
    //@ end
}

/// en: Given. Any reply, by the encoders above.
/// ja: 実装済み。上のエンコーダを使って、任意の応答をエンコードします。
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
