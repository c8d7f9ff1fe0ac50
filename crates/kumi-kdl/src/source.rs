//! Files as they were read, and places in them.
//!
//! A [`Span`] is small and copied around freely; only when an error is to be shown does [`Sources`] turn it into a
//! line and a column. It refuses nothing: limits on size are the loader's business.

use crate::diagnostic::Diagnostic;
use std::sync::Arc;

/// Which of the files read a span lies in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// Bytes `start..end` of a file. Files are far below 4 GiB, see [`crate::MAX_FILE_BYTES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
}

impl Span {
    /// Bytes `start..end` of a file.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            file,
            start: narrow(start),
            end: narrow(end),
        }
    }
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// A value and where it was written.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// Two names are the same wherever they stand.
impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// The name of a file, its text, and where its lines begin.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its name, as errors show it.
    pub name: String,
    /// All of it.
    pub text: Arc<str>,
    line_starts: Vec<u32>,
}

/// Every file that was read together; the first is the one asked for.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a file.
    pub fn add(&mut self, name: String, text: Arc<str>) -> FileId {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let line_starts = std::iter::once(0)
            .chain(starts.map(|at| u32::try_from(at).unwrap_or(u32::MAX)))
            .collect();
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(SourceFile {
            name,
            text,
            line_starts,
        });
        id
    }

    /// All files, in the order they were added.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// An error at a place, with the line it stands on taken along so that it can be shown without the file.
    pub fn diagnostic(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        let message = message.into();
        let Some(file) = self.files.get(span.file.0 as usize) else {
            return Diagnostic::without_place(message);
        };
        let start = floor_boundary(&file.text, span.start as usize);
        let end = floor_boundary(&file.text, span.end as usize).max(start);
        let line = file
            .line_starts
            .partition_point(|&begin| begin as usize <= start)
            .saturating_sub(1);
        let line_start = file.line_starts.get(line).map_or(0, |&at| at as usize);
        let line_end = file.text[line_start..]
            .find('\n')
            .map_or(file.text.len(), |at| line_start + at);
        let line_text = file.text[line_start..line_end].trim_end_matches('\r');
        let before = file.text[line_start..start].chars().count();
        let marked = file.text[start..end.min(line_end).max(start)]
            .chars()
            .count();
        Diagnostic::at(
            message,
            file.name.clone(),
            line + 1,
            before + 1,
            line_text.to_owned(),
            marked.max(1),
        )
    }
}

/// The largest character boundary at or below `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
