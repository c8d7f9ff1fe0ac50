//! What a command answers when it refuses. The text is what the client sees, code word first.
//!
//! An error never means that state was half changed: a command checks everything before it
//! writes anything.

use std::borrow::Cow;

/// A refusal, as it goes over the wire without the leading `-`.
///
/// The text is bytes because Redis echoes parts of the request, which need not be UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError(Cow<'static, [u8]>);

pub(crate) type CommandResult = Result<(), CommandError>;

impl CommandError {
    pub(crate) const SYNTAX: Self = Self::fixed("ERR syntax error");
    pub(crate) const NOT_INTEGER: Self = Self::fixed("ERR value is not an integer or out of range");
    pub(crate) const NOT_FLOAT: Self = Self::fixed("ERR value is not a valid float");
    pub(crate) const NO_SUCH_KEY: Self = Self::fixed("ERR no such key");
    pub(crate) const DB_OUT_OF_RANGE: Self = Self::fixed("ERR DB index is out of range");
    pub(crate) const NO_AUTH: Self = Self::fixed("NOAUTH Authentication required.");
    pub(crate) const WRONG_TYPE: Self =
        Self::fixed("WRONGTYPE Operation against a key holding the wrong kind of value");
    pub(crate) const NO_AOF: Self =
        Self::fixed("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
    pub(crate) const LOADING: Self = Self::fixed("LOADING Redis is loading the dataset in memory");
    pub(crate) const OOM: Self =
        Self::fixed("OOM command not allowed when used memory > 'maxmemory'.");

    /// A refusal whose text never changes. A new code belongs in `OWN_CODES` of `engine/stats.rs`.
    pub(crate) const fn fixed(text: &'static str) -> Self {
        Self(Cow::Borrowed(text.as_bytes()))
    }

    /// A refusal built from the request or from state. A new code belongs in `OWN_CODES` of `engine/stats.rs`.
    pub(crate) fn new(text: impl Into<Vec<u8>>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    /// `ERR wrong number of arguments for 'get' command`; subcommands as `client|id`.
    pub(crate) fn arity(full_name: &str) -> Self {
        Self::new(format!(
            "ERR wrong number of arguments for '{full_name}' command"
        ))
    }

    /// The whole text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The first word (`ERR`, `NOAUTH`, ...), under which error statistics are kept.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        error_code(&self.0)
    }
}

/// The first word of an error's text. A text of one word, or with a very long one, counts as `ERR`.
pub(crate) fn error_code(text: &[u8]) -> &[u8] {
    const LONGEST_CODE: usize = 32;
    let head = &text[..text.len().min(LONGEST_CODE)];
    let end = head.iter().position(|byte| b" \r\n".contains(byte));
    end.map_or(b"ERR", |end| &head[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_the_first_word() {
        assert_eq!(CommandError::NO_AUTH.code(), b"NOAUTH");
        assert_eq!(CommandError::arity("get").code(), b"ERR");
    }
}
