//! What a program writes, line by line.

use super::Program;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// The longest line that is passed on, in bytes. A longer one arrives in parts.
const LINE_LIMIT: u64 = 8 << 10;

/// Hands the lines of a stream to the program's output, until the stream ends.
pub(super) async fn pass_on(stream: impl AsyncRead + Unpin, program: Program) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    while next(&mut stream, &mut line).await {
        program.output.text(&program.name, &line);
    }
}

/// Reads a line without its end. False at the end of the stream.
async fn next(stream: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> bool {
    line.clear();
    let mut limited = stream.take(LINE_LIMIT);
    if !matches!(limited.read_until(b'\n', line).await, Ok(1..)) {
        return false;
    }
    if line.ends_with(b"\n") {
        line.pop();
    }
    if line.ends_with(b"\r") {
        line.pop();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded() {
        let long = "x".repeat(2 * LINE_LIMIT as usize + 1);
        let text = format!("one\ntwo\r\n\n{long}\nlast");
        let mut stream = text.as_bytes();
        let mut line = Vec::new();
        let mut lengths = Vec::new();
        while next(&mut stream, &mut line).await {
            lengths.push(line.len());
        }
        assert_eq!(
            lengths,
            [3, 3, 0, LINE_LIMIT as usize, LINE_LIMIT as usize, 1, 4]
        );
    }
}
