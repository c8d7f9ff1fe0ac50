//! The manifest of an append-only file, in the form of Redis 7: which files it consists of, in which order.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b      the base: all data at one moment
//! file appendonly.aof.1.base.rdb seq 1 type h      history: no longer used, to be removed
//! file appendonly.aof.4.incr.aof seq 4 type i      increments: the writes since, in order
//! file appendonly.aof.5.incr.aof seq 5 type i
//! ```
//!
//! Words are separated by blanks; a name with special bytes is quoted. Lines that begin with `#` are comments, and pairs of
//! words other than `file`, `seq` and `type` are skipped, because later versions of Redis write more of them.

use super::files::{AofFile, Files};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest line of a manifest, in bytes, as in Redis.
const MAX_LINE: usize = 1024;
const LONG_LINE: &str = "The AOF manifest file contains too long line";
/// The longest manifest that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The first line of a manifest that has none before it, a comment.
const FIRST: &str = "# first\n";

/// Why a manifest cannot be read. The files it names were not touched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The file has no line with a file in it.
    #[error("Found an empty AOF manifest")]
    Empty,
    /// A line is not what it should be.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What is wrong.
        reason: &'static str,
    },
}

/// A file of an append-only file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name in the directory.
    pub name: String,
    /// Its number. The base and the increments are counted apart.
    pub seq: u64,
}

impl Part {
    /// Its line in the manifest.
    fn line(&self, kind: char) -> String {
        format!("file {} seq {} type {kind}\n", quoted(&self.name), self.seq)
    }
}

/// The files of an append-only file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Manifest {
    /// All data at one moment.
    pub base: Option<Part>,
    /// Files that are no longer used.
    pub history: Vec<Part>,
    /// The writes since, in order.
    pub increments: Vec<Part>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// A line is malformed, the base occurs twice, or the numbers of the increments do not rise.
    pub fn parse(text: &[u8]) -> Result<Self, ManifestError> {
        let mut manifest = Self::default();
        let mut found = false;
        for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let error = |reason| ManifestError::Line {
                line: index + 1,
                reason,
            };
            if line.first() == Some(&b'#') {
                continue;
            }
            if line.len() > MAX_LINE {
                return Err(error(LONG_LINE));
            }
            let Some(line) = line.strip_suffix(b"\n") else {
                return Err(error("the line has no end: the manifest is cut off"));
            };
            manifest.add(line.trim_ascii()).map_err(error)?;
            found = true;
        }
        if found {
            Ok(manifest)
        } else {
            Err(ManifestError::Empty)
        }
    }

    fn add(&mut self, line: &[u8]) -> Result<(), &'static str> {
        const FORMAT: &str = "Invalid AOF manifest file format";
        let words = split_words(line).ok_or(FORMAT)?;
        let (pairs, []) = words.as_chunks::<2>() else {
            return Err(FORMAT);
        };
        let (mut name, mut seq, mut kind) = (None, None, None);
        for [key, value] in pairs {
            match key.to_ascii_lowercase().as_slice() {
                b"file" => {
                    let text = String::from_utf8(value.clone()).map_err(|_| FORMAT)?;
                    if text.is_empty()
                        || text.contains(['/', '\\', '\0'])
                        || text == ".."
                        || text == "."
                    {
                        return Err("File can't be a path, just a filename");
                    }
                    name = Some(text);
                }
                b"seq" => {
                    let text = std::str::from_utf8(value).map_err(|_| FORMAT)?;
                    seq = Some(text.parse::<u64>().map_err(|_| FORMAT)?);
                }
                b"type" => kind = value.first().copied(),
                _ => {}
            }
        }
        let (Some(name), Some(seq), Some(kind)) = (name, seq.filter(|&seq| seq > 0), kind) else {
            return Err(FORMAT);
        };
        let part = Part { name, seq };
        // Escapes lengthen a name. What is read must be readable when it has been written again.
        if part.line(char::from(kind)).len() > MAX_LINE {
            return Err(LONG_LINE);
        }
        match kind {
            b'b' if self.base.is_some() => Err("Found duplicate base file information"),
            b'b' => {
                self.base = Some(part);
                Ok(())
            }
            b'h' => {
                self.history.push(part);
                Ok(())
            }
            b'i' if self.increments.last().is_some_and(|last| last.seq >= seq) => {
                Err("Found a non-monotonic sequence number")
            }
            b'i' => {
                self.increments.push(part);
                Ok(())
            }
            _ => Err("Unknown AOF file type"),
        }
    }

    /// The text of the manifest's file.
    #[must_use]
    pub fn text(&self) -> String {
        let kinds = [
            (self.base.as_slice(), 'b'),
            (&self.history, 'h'),
            (&self.increments, 'i'),
        ];
        let mut text = String::new();
        for (parts, kind) in kinds {
            for part in parts {
                text += &part.line(kind);
            }
        }
        text
    }

    /// The number of the last base, also of one that is no longer used.
    pub(crate) fn last_base_seq(&self) -> u64 {
        let history = self
            .history
            .iter()
            .filter(|part| part.name.contains(".base."));
        let parts = self.base.iter().chain(history);
        parts.map(|part| part.seq).max().unwrap_or(0)
    }

    /// The number of the last increment, also of one that is no longer used.
    pub(crate) fn last_increment_seq(&self) -> u64 {
        let history = self
            .history
            .iter()
            .filter(|part| part.name.contains(".incr."));
        let parts = self.increments.iter().chain(history);
        parts.map(|part| part.seq).max().unwrap_or(0)
    }

    /// The files with data, in the order they are loaded.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Part> {
        self.base.iter().chain(&self.increments)
    }

    /// Reads the manifest of a file, none if it does not exist.
    pub(crate) fn read(files: &dyn Files, path: &Path) -> io::Result<Option<Self>> {
        let (reader, len) = match files.read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
        if len > MAX_BYTES {
            return Err(invalid(format!("{len} bytes are too long for a manifest")));
        }
        let mut text = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(reader, MAX_BYTES), &mut text)?;
        let manifest = Self::parse(&text).map_err(|error| invalid(error.to_string()))?;
        Ok(Some(manifest))
    }

    /// Writes the manifest under a temporary name. `first` says that there is none yet, which the file notes.
    pub(crate) fn prepare(
        &self,
        files: &dyn Files,
        directory: &Path,
        name: &str,
        first: bool,
    ) -> io::Result<()> {
        let file: Arc<dyn AofFile> = files.create(&temporary(directory, name))?;
        let head = if first { FIRST } else { "" };
        let text = self.text();
        file.append(&mut [head, &text].map(|text| IoSlice::new(text.as_bytes())))?;
        file.sync()
    }

    /// Gives a prepared manifest its name: at every moment the old one or the new one is complete under it.
    ///
    /// # Errors
    /// Either of them may be on disk.
    pub(crate) fn commit(files: &dyn Files, directory: &Path, name: &str) -> io::Result<()> {
        Self::name(files, directory, name)?;
        files.sync_directory(directory)
    }

    /// The first half of [`Manifest::commit`]: the name is not on disk yet.
    pub(crate) fn name(files: &dyn Files, directory: &Path, name: &str) -> io::Result<()> {
        files.rename(&temporary(directory, name), &directory.join(name))
    }

    /// Reads a first manifest that was prepared and did not get its name.
    pub(crate) fn read_unfinished(files: &dyn Files, directory: &Path, name: &str) -> Option<Self> {
        let (reader, _) = files.read(&temporary(directory, name)).ok()?;
        let mut text = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(reader, MAX_BYTES), &mut text).ok()?;
        let text = text.strip_prefix(FIRST.as_bytes())?;
        Self::parse(text).ok()
    }
}

fn temporary(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("temp-{name}"))
}

/// The words of a line; quotes as Redis reads them in its configuration. `None` if a quote does not end.
fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut rest) = (Vec::new(), line);
    loop {
        rest = rest.trim_ascii_start();
        let Some(&first) = rest.first() else {
            return Some(words);
        };
        let (word, after) = match first {
            b'"' => double_quoted(&rest[1..])?,
            b'\'' => single_quoted(&rest[1..])?,
            _ => {
                let end = rest.iter().position(u8::is_ascii_whitespace);
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                (word.to_vec(), after)
            }
        };
        if after
            .first()
            .is_some_and(|byte| !byte.is_ascii_whitespace())
        {
            return None;
        }
        words.push(word);
        rest = after;
    }
}

fn double_quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut word, mut at) = (Vec::new(), 0);
    loop {
        match *text.get(at)? {
            b'"' => return Some((word, &text[at + 1..])),
            b'\\' => {
                let escaped = *text.get(at + 1)?;
                let hex = (escaped == b'x')
                    .then(|| text.get(at + 2..at + 4))
                    .flatten()
                    .and_then(|digits| std::str::from_utf8(digits).ok())
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok());
                let (byte, len) = match (hex, escaped) {
                    (Some(byte), _) => (byte, 4),
                    (None, b'n') => (b'\n', 2),
                    (None, b'r') => (b'\r', 2),
                    (None, b't') => (b'\t', 2),
                    (None, b'b') => (8, 2),
                    (None, b'a') => (7, 2),
                    (None, byte) => (byte, 2),
                };
                word.push(byte);
                at += len;
            }
            byte => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

fn single_quoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let (mut word, mut at) = (Vec::new(), 0);
    loop {
        match (*text.get(at)?, text.get(at + 1)) {
            (b'\\', Some(b'\'')) => {
                word.push(b'\'');
                at += 2;
            }
            (b'\'', _) => return Some((word, &text[at + 1..])),
            (byte, _) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// A name as a word of the manifest.
fn quoted(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !name.is_empty() && name.bytes().all(plain) {
        return name.to_owned();
    }
    let mut text = String::from("\"");
    for byte in name.bytes() {
        match byte {
            b'"' | b'\\' => text += &format!("\\{}", byte as char),
            b'\n' => text += "\\n",
            b'\r' => text += "\\r",
            b'\t' => text += "\\t",
            7 => text += "\\a",
            8 => text += "\\b",
            byte if byte.is_ascii_graphic() || byte == b' ' => text.push(byte as char),
            byte => text += &format!("\\x{byte:02x}"),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, seq: u64) -> Part {
        Part {
            name: name.into(),
            seq,
        }
    }

    #[test]
    fn a_name_that_would_not_fit_when_written_again_is_an_error() {
        let name = "\u{1e}".repeat(300);
        let text = format!("file {name} seq 1 type i\n");
        let expected = ManifestError::Line {
            line: 1,
            reason: LONG_LINE,
        };
        assert_eq!(Manifest::parse(text.as_bytes()), Err(expected));
    }

    #[test]
    fn what_redis_writes_is_read_and_written_alike() {
        let text = "file appendonly.aof.2.base.rdb seq 2 type b\n\
                    file appendonly.aof.1.base.rdb seq 1 type h\n\
                    file appendonly.aof.4.incr.aof seq 4 type i\n\
                    file appendonly.aof.5.incr.aof seq 5 type i\n";
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        assert_eq!(manifest.base, Some(part("appendonly.aof.2.base.rdb", 2)));
        assert_eq!(manifest.increments.len(), 2);
        assert_eq!(manifest.text(), text);
        assert_eq!(
            (manifest.last_base_seq(), manifest.last_increment_seq()),
            (2, 5)
        );
    }

    #[test]
    fn comments_and_words_of_later_versions_are_skipped() {
        let text = b"# written by hand\nfile a.1.incr.aof seq 1 type i startoffset 0\n";
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.increments, [part("a.1.incr.aof", 1)]);
    }

    #[test]
    fn names_with_special_bytes_are_quoted() {
        let manifest = Manifest {
            base: Some(part("my \"file\".1.base.rdb", 1)),
            ..Manifest::default()
        };
        assert_eq!(
            manifest.text(),
            "file \"my \\\"file\\\".1.base.rdb\" seq 1 type b\n"
        );
        assert_eq!(Manifest::parse(manifest.text().as_bytes()), Ok(manifest));
        let manifest = Manifest {
            base: Some(part(" a\n\r\t\u{7}\u{8}\u{1}.1.base.rdb", 1)),
            ..Manifest::default()
        };
        let text = "file \" a\\n\\r\\t\\a\\b\\x01.1.base.rdb\" seq 1 type b\n";
        assert_eq!(manifest.text(), text);
        assert_eq!(Manifest::parse(text.as_bytes()), Ok(manifest));
        let single = Manifest::parse(b"file 'a b' seq 1 type i\n").unwrap();
        assert_eq!(single.increments[0].name, "a b");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let error = Manifest::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        check("", "empty AOF manifest");
        check("# nothing\n", "empty AOF manifest");
        check("\n", "line 1: Invalid AOF manifest");
        check("file a seq 1\n", "Invalid AOF manifest");
        check("file a seq 1 type\n", "Invalid AOF manifest");
        check("file a seq 0 type b\n", "Invalid AOF manifest");
        check("file a seq x type b\n", "Invalid AOF manifest");
        check("file \"a seq 1 type b\n", "Invalid AOF manifest");
        check("file a seq 1 type x\n", "Unknown AOF file type");
        check("file ../a seq 1 type b\n", "can't be a path");
        check(
            "file a seq 1 type b\nfile b seq 2 type b\n",
            "line 2: Found duplicate base",
        );
        check(
            "file a seq 2 type i\nfile b seq 2 type i\n",
            "non-monotonic",
        );
        check("file a seq 2 type i", "cut off");
        check(
            &format!("file {} seq 1 type b\n", "a".repeat(1100)),
            "too long line",
        );
    }
}
