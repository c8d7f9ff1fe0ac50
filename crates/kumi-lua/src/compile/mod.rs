//! From source text to prototypes: lexer, parser and code generator in one pass, as Lua 5.1 does it.

mod code;
mod expr;
mod func;
mod lex;
mod parser;
mod stat;

pub(crate) use parser::compile;

use crate::heap::Heap;
use crate::value::Str;
use crate::vm::Error;

/// Longest chunk name shown in a message, its end included.
const ID_SIZE: usize = 80;

/// Why a chunk was not compiled.
#[derive(Debug)]
pub(crate) enum CompileError {
    /// A message with chunk name and line.
    Syntax(Vec<u8>),
    /// The parser would need more of the thread's stack than the limits allow.
    StackExhausted,
    /// The memory limit.
    Memory,
    /// The host ended the script.
    Stopped(Error),
}

impl CompileError {
    /// The text that `loadstring` returns; the error itself if nothing may catch it.
    pub(crate) fn text(self) -> Result<Vec<u8>, Error> {
        Ok(match self {
            CompileError::Syntax(text) => text,
            CompileError::StackExhausted => b"chunk has too many syntax levels".to_vec(),
            CompileError::Memory => b"not enough memory".to_vec(),
            CompileError::Stopped(error) => return Err(error),
        })
    }
}

/// The form of a chunk name that messages show.
pub(crate) fn chunk_id(source: &[u8]) -> Vec<u8> {
    match source.first() {
        Some(b'=') => source[1..].iter().take(ID_SIZE - 1).copied().collect(),
        Some(b'@') => {
            let name = &source[1..];
            let room = ID_SIZE - b" '...' \0".len();
            if name.len() > room {
                [b"...", &name[name.len() - room..]].concat()
            } else {
                name.to_vec()
            }
        }
        _ => {
            let line = source
                .iter()
                .position(|b| matches!(b, b'\n' | b'\r'))
                .unwrap_or(source.len());
            let room = ID_SIZE - b" [string \"...\"] \0".len();
            let shown = line.min(room);
            let mut id = b"[string \"".to_vec();
            id.extend_from_slice(&source[..shown]);
            if shown < source.len() {
                id.extend_from_slice(b"...");
            }
            id.extend_from_slice(b"\"]");
            id
        }
    }
}

pub(crate) fn chunk_id_of(heap: &Heap, source: Str) -> Vec<u8> {
    chunk_id(heap.bytes_of(source))
}
