//! Errors as a person reads them: file, line and column, the line itself, a caret under the place, and a way out.
//!
//! A [`Diagnostic`] carries all it needs to be shown. Nothing is coloured here and nothing printed.

use crate::limits::MAX_DIAGNOSTICS;
use std::fmt;

/// The longest part of a line that is shown around a caret, in characters.
const MAX_SHOWN_LINE: usize = 160;

/// One thing that is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What is wrong, in one sentence.
    pub message: String,
    /// The file, as it was asked for or imported; empty when no file is to blame.
    pub file: String,
    /// Line, counted from 1; 0 when no file is to blame.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The whole line.
    pub source_line: String,
    /// How many characters of the line are meant.
    pub width: usize,
    /// What to do about it.
    pub help: Option<String>,
    /// Another place that explains this one, such as the first of two declarations.
    pub note: Option<String>,
}

impl Diagnostic {
    pub(crate) fn at(
        message: String,
        file: String,
        line: usize,
        column: usize,
        source_line: String,
        width: usize,
    ) -> Self {
        Self {
            message,
            file,
            line,
            column,
            source_line,
            width,
            help: None,
            note: None,
        }
    }

    /// An error that no file is to blame for.
    pub fn without_place(message: String) -> Self {
        Self::at(message, String::new(), 0, 0, String::new(), 0)
    }

    /// Adds what to do about it.
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Adds what to do about it, if that is known.
    pub fn maybe_help(mut self, text: Option<String>) -> Self {
        self.help = text.or(self.help);
        self
    }

    /// Adds another place that explains this one.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = Some(text.into());
        self
    }

    /// `file:line:column`, as editors understand it.
    pub fn place(&self) -> String {
        if self.file.is_empty() {
            return String::new();
        }
        if self.line == 0 {
            return self.file.clone();
        }
        format!("{}:{}:{}", self.file, self.line, self.column)
    }

    /// The line cut to what is worth showing, and how many columns of a terminal come before the caret.
    fn excerpt(&self) -> (String, String, usize) {
        let characters: Vec<char> = self.source_line.chars().collect();
        let start = self.column.saturating_sub(1).min(characters.len());
        let from = if characters.len() <= MAX_SHOWN_LINE {
            0
        } else {
            start.saturating_sub(MAX_SHOWN_LINE / 2)
        };
        let to = characters.len().min(from + MAX_SHOWN_LINE);
        let (cut_before, cut_after) = (from > 0, to < characters.len());
        let mut shown = String::new();
        let mut under = String::new();
        if cut_before {
            shown.push_str("... ");
            under.push_str("    ");
        }
        for &character in &characters[from..start.min(to)] {
            let character = printable(character);
            shown.push(character);
            match character {
                '\t' => under.push('\t'),
                other => (0..columns(other)).for_each(|_| under.push(' ')),
            }
        }
        let marked_end = (start + self.width).min(to).max(start);
        let mut carets = 0;
        for &character in &characters[start.min(to)..marked_end] {
            let character = printable(character);
            shown.push(character);
            carets += columns(character);
        }
        shown.extend(
            characters[marked_end..to]
                .iter()
                .map(|&character| printable(character)),
        );
        if cut_after {
            shown.push_str(" ...");
        }
        (shown, under, carets.max(1))
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if !self.file.is_empty() {
            write!(f, "\n  --> {}", self.place())?;
        }
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        if self.line > 0 {
            let (shown, under, carets) = self.excerpt();
            write!(f, "\n {gutter} |")?;
            write!(f, "\n {number} | {}", shown.trim_end())?;
            write!(f, "\n {gutter} | {under}{}", "^".repeat(carets))?;
        }
        if let Some(note) = &self.note {
            write!(f, "\n {gutter} = note: {note}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n {gutter} = help: {help}")?;
        }
        Ok(())
    }
}

/// A terminal must not be steered by what a file holds.
fn printable(character: char) -> char {
    match character {
        '\t' => '\t',
        other if other.is_control() => '\u{fffd}',
        '\u{200e}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' => '\u{fffd}',
        other => other,
    }
}

/// How many columns a character takes. East Asian letters take two; that is all the precision a caret needs.
fn columns(character: char) -> usize {
    match character {
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// All that is wrong with a schema. Nothing was generated or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    uncounted: usize,
}

impl Diagnostics {
    /// Adds one. Past the limit it is only counted, and not even made, because suggestions take time.
    pub fn push_with(&mut self, make: impl FnOnce() -> Diagnostic) {
        if self.is_full() {
            self.uncounted += 1;
        } else {
            self.list.push(make());
        }
    }

    /// No more errors are kept; further ones are only counted.
    pub fn is_full(&self) -> bool {
        self.list.len() >= MAX_DIAGNOSTICS
    }

    /// In the order of files and lines, so that a person goes through a file once.
    pub fn sort_by_file(&mut self, order: impl Fn(&str) -> usize) {
        self.list.sort_by_key(|diagnostic| {
            (order(&diagnostic.file), diagnostic.line, diagnostic.column)
        });
    }

    /// The errors, at most [`MAX_DIAGNOSTICS`] of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are, those beyond the limit included.
    pub fn len(&self) -> usize {
        self.list.len() + self.uncounted
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            diagnostic.fmt(f)?;
        }
        if self.uncounted > 0 {
            write!(f, "\n\n... and {} more", self.uncounted)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The candidate most like `word`, if one is close enough to be meant.
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let limit = (word.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let distance = if candidate.to_lowercase() == lower {
                0
            } else {
                edits(&lower, &candidate.to_lowercase(), limit)?
            };
            Some((distance, candidate))
        })
        .min_by_key(|&(distance, candidate)| (distance, candidate.len()))
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be put in, left out, changed or swapped with their neighbour; none when more than `limit`.
fn edits(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (row, &left) in a.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, &right) in b.iter().enumerate() {
            let mut best = (last[column] + usize::from(left != right))
                .min(last[column + 1] + 1)
                .min(next[column] + 1);
            if row > 0 && column > 0 && left == b[column - 1] && a[row - 1] == right {
                best = best.min(before[column - 1] + 1);
            }
            next.push(best);
        }
        // Distances never shrink from one row to the next, so this can only get worse.
        if next.iter().all(|&distance| distance > limit) {
            return None;
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied().filter(|&distance| distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str, column: usize, width: usize) -> String {
        Diagnostic::at("m".into(), "f".into(), 7, column, line.into(), width).to_string()
    }

    #[test]
    fn the_caret_stands_under_what_is_meant() {
        assert_eq!(
            shown("\tfield 名前 x", 8, 2),
            "error: m\n  --> f:7:8\n   |\n 7 | \tfield 名前 x\n   | \t      ^^^^"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let text = shown(&"x".repeat(1000), 500, 3);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].starts_with(" 7 | ... xxx") && lines[3].ends_with("x ..."));
        assert!(lines[4].ends_with("^^^"), "{text}");
    }

    #[test]
    fn escape_sequences_of_a_file_do_not_reach_the_terminal() {
        assert!(!shown("a\u{1b}[31m\u{202e}b", 1, 1).contains(['\u{1b}', '\u{202e}']));
    }

    #[test]
    fn suggestions_are_close_or_absent() {
        let known = ["string", "int", "timestamp", "Message"];
        let check = |word, expected: Option<&str>| {
            assert_eq!(did_you_mean(word, known), expected, "{word}");
        };
        check("strnig", Some("string"));
        check("String", Some("string"));
        check("Int", Some("int"));
        check("messge", Some("Message"));
        check("timestmap", Some("timestamp"));
        check("colour", None);
        check("x", None);
    }

    #[test]
    fn errors_past_the_limit_are_counted_only() {
        let mut all = Diagnostics::default();
        for _ in 0..MAX_DIAGNOSTICS + 5 {
            all.push_with(|| Diagnostic::without_place("m".into()));
        }
        assert_eq!(all.iter().count(), MAX_DIAGNOSTICS);
        assert_eq!(all.len(), MAX_DIAGNOSTICS + 5);
        assert!(all.to_string().ends_with("... and 5 more"));
    }
}
