//! RespParser: bytes to commands, and replies to bytes.
//!
//! ```text
//! *2\r\n          an array of 2
//! $3\r\nGET\r\n   a bulk string of 3 bytes
//! $3\r\nfoo\r\n   a bulk string of 3 bytes
//! ```

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

use crate::commands::Reply;
use crate::error::RespError;
use crate::limits::{MAX_ARGUMENTS, MAX_LINE, MAX_MESSAGE};

/// A command's name and arguments, as bytes.
pub type Command = Vec<Vec<u8>>;

/// Reads commands. It keeps nothing between two calls (stateless).
pub struct RespParser;

impl RespParser {
    /// Step 2. Reads one command; `None` if the client closed the connection before it.
    /// 1. `read_line`; no line means `return Ok(None)`;
    /// 2. `parse_length(&line, b'*', MAX_ARGUMENTS)?` is the number of arguments;
    /// 3. for each: `read_line` again (no line is an error: `unexpected_end()`), `parse_length` with `b'$'` and
    ///    what is left of `MAX_MESSAGE`, then `read_exact` that many bytes and 2 more;
    /// 4. `strip_crlf` cuts the 2 bytes off; keep what it returns.
    pub async fn parse_command<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Option<Command>, RespError> {
        todo!("step 2: resp.rs")
    }
}

/// Step 2. Reads up to `\r\n` and returns the line without it; `None` at the end of the input.
/// 1. `reader.take(MAX_LINE).read_until(b'\n', &mut line).await?` appends to `line`, the `\n` included;
/// 2. an empty line means the end: `None`;
/// 3. otherwise the line, without its end: `strip_crlf`.
async fn read_line<R: AsyncBufRead + Unpin>(reader: &mut R) -> Result<Option<Vec<u8>>, RespError> {
    todo!("step 2: resp.rs")
}

/// Given. Cuts off the `\r\n` at the end; an error if there is none.
fn strip_crlf(mut bytes: Vec<u8>) -> Result<Vec<u8>, RespError> {
    if !bytes.ends_with(b"\r\n") {
        return Err(RespError::Protocol("expected CRLF"));
    }
    bytes.truncate(bytes.len() - 2);
    Ok(bytes)
}

/// Given. The number behind `kind` (`*` or `$`), at most `limit`.
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

/// Given. The client left in the middle of a command.
fn unexpected_end() -> RespError {
    RespError::Io(std::io::ErrorKind::UnexpectedEof.into())
}

/// Step 2. A simple string: `+OK\r\n`.
pub fn encode_simple_string(value: &str) -> Vec<u8> {
    todo!("step 2: resp.rs")
}

/// Given. An error: `-ERR message\r\n`.
pub fn encode_error(message: &str) -> Vec<u8> {
    format!("-ERR {message}\r\n").into_bytes()
}

/// Step 2. An integer: `:42\r\n`.
pub fn encode_integer(value: i64) -> Vec<u8> {
    todo!("step 2: resp.rs")
}

/// Step 2. A bulk string: `$3\r\nfoo\r\n`; `None` is the null bulk string `$-1\r\n`.
/// The value is bytes, not text: append it with `extend_from_slice`.
pub fn encode_bulk_string(value: Option<&[u8]>) -> Vec<u8> {
    todo!("step 2: resp.rs")
}

/// Given. Any reply, by the encoders above.
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
