//! From text to nodes. Goes on after an error at the next line, so that one reading finds many.

use super::lexer::{
    Cursor, Word, classify, is_disallowed, is_identifier_character, is_newline, is_space,
};
use super::strings::{self, Wrong};
use super::{Document, Node, Scalar, Trivia, Value};
use crate::diagnostic::Diagnostics;
use crate::limits::MAX_BLOCK_DEPTH;
use crate::source::{FileId, Sources, Span, Spanned};

/// Reads a file. What it returns is complete only if no error was added.
pub fn parse(sources: &Sources, file: FileId, errors: &mut Diagnostics) -> Document {
    let Some(source) = sources.files().get(file.0 as usize) else {
        return Document::default();
    };
    let text = source.text.clone();
    let mut parser = Parser {
        cursor: Cursor {
            text: &text,
            at: 0,
            file,
        },
        sources,
        errors,
        stopped: false,
        uneven: false,
    };
    parser.cursor.eat("\u{feff}");
    parser.refuse_disallowed();
    let mut document = parser.nodes(0, None);
    document.is_incomplete |= parser.stopped || parser.uneven;
    document
}

struct Parser<'a, 't> {
    cursor: Cursor<'t>,
    sources: &'a Sources,
    errors: &'a mut Diagnostics,
    /// Set when reading on makes no sense: the nesting is absurd, or there are too many errors.
    stopped: bool,
    /// Braces do not match, so that nodes may be in another block than they were meant for.
    uneven: bool,
}

/// Why a node could not be read; the error has been noted.
struct Failed;

impl<'t> Parser<'_, 't> {
    fn error(&mut self, span: Span, message: impl Into<String>, help: Option<&str>) -> Failed {
        let sources = self.sources;
        self.errors.push_with(|| {
            sources
                .diagnostic(span, message)
                .maybe_help(help.map(str::to_owned))
        });
        if self.errors.is_full() {
            self.stop();
        }
        Failed
    }

    fn wrong(&mut self, wrong: Wrong) -> Failed {
        self.error(wrong.span, wrong.message, wrong.help)
    }

    fn stop(&mut self) {
        self.stopped = true;
        self.cursor.at = self.cursor.text.len();
    }

    fn refuse_disallowed(&mut self) {
        let start = self.cursor.at;
        let text = self.cursor.text;
        for (offset, character) in text[start..].char_indices() {
            if is_disallowed(character) {
                let at = start + offset;
                let span = Span::new(self.cursor.file, at, at + character.len_utf8());
                let message = format!(
                    "the character U+{:04X} may not stand in a file",
                    character as u32
                );
                self.error(span, message, Some("inside a text write it as an escape"));
                if self.stopped {
                    return;
                }
            }
        }
    }

    /// The nodes of the file, or of the block whose brace `opened` is.
    fn nodes(&mut self, depth: usize, opened: Option<Span>) -> Document {
        let mut document = Document::default();
        let mut trivia = Vec::new();
        loop {
            self.trivia(&mut trivia, depth);
            match self.cursor.peek() {
                None => {
                    if let (Some(span), false) = (opened, self.stopped) {
                        self.uneven = true;
                        self.error(span, "this block is never closed", Some("a '}' is missing"));
                    }
                    break;
                }
                Some('}') if opened.is_some() => {
                    self.cursor.bump();
                    break;
                }
                Some('}') => {
                    let span = self.cursor.span_here();
                    self.cursor.bump();
                    self.uneven = true;
                    self.error(
                        span,
                        "this '}' closes nothing",
                        Some("take it out, or find the block that was closed too early"),
                    );
                }
                Some(_) => match self.node(depth) {
                    Ok(mut node) => {
                        trivia.append(&mut node.leading);
                        node.leading = std::mem::take(&mut trivia);
                        document.nodes.push(node);
                    }
                    Err(Failed) => {
                        document.is_incomplete = true;
                        self.recover(depth);
                    }
                },
            }
        }
        while trivia.last() == Some(&Trivia::Blank) {
            trivia.pop();
        }
        document.trailing = trivia;
        document
    }

    /// Everything between two nodes.
    fn trivia(&mut self, trivia: &mut Vec<Trivia>, depth: usize) {
        let mut line_ends = 0;
        loop {
            if self.cursor.eat_newline() {
                line_ends += 1;
                if line_ends == 2 && trivia.last() != Some(&Trivia::Blank) {
                    trivia.push(Trivia::Blank);
                }
            } else if self.cursor.starts("//") {
                let comment = self.cursor.skip_line();
                trivia.push(Trivia::Comment(comment.trim_end().to_owned()));
                line_ends = 0;
            } else if self.cursor.starts("/-") {
                if let Some(text) = self.disabled_node(depth) {
                    trivia.push(Trivia::Disabled(text));
                }
                line_ends = 0;
            } else if self.cursor.peek() == Some(';') {
                self.cursor.bump();
            } else {
                let mut comments = Vec::new();
                if !self.node_space(&mut comments) {
                    return;
                }
                if !comments.is_empty() {
                    line_ends = 0;
                }
                trivia.append(&mut comments);
            }
        }
    }

    /// A node behind `/-`, read and left out.
    fn disabled_node(&mut self, depth: usize) -> Option<String> {
        let start = self.cursor.at;
        self.cursor.eat("/-");
        self.line_space();
        if self.node(depth).is_err() {
            self.recover(depth);
            return None;
        }
        let text = self.cursor.text[start..self.cursor.at].trim_end();
        Some(text.trim_end_matches(';').to_owned())
    }

    /// Spaces, comments within a line, and line ends behind a backslash. Says whether there was any.
    fn node_space(&mut self, comments: &mut Vec<Trivia>) -> bool {
        let start = self.cursor.at;
        loop {
            self.cursor.eat_while(is_space);
            if self.cursor.starts("/*") {
                self.block_comment(comments);
            } else if self.cursor.peek() == Some('\\') {
                let at = self.cursor.at;
                self.cursor.bump();
                self.cursor.eat_while(is_space);
                if self.cursor.starts("//") {
                    let comment = self.cursor.skip_line();
                    comments.push(Trivia::Comment(comment.trim_end().to_owned()));
                }
                if !self.cursor.eat_newline() && self.cursor.peek().is_some() {
                    self.cursor.at = at;
                    break;
                }
            } else {
                break;
            }
        }
        self.cursor.at > start
    }

    fn block_comment(&mut self, comments: &mut Vec<Trivia>) {
        let start = self.cursor.at;
        match self.cursor.eat_block_comment() {
            Some(comment) => comments.push(Trivia::Comment(comment.to_owned())),
            None => {
                let span = Span::new(self.cursor.file, start, start + 2);
                self.error(
                    span,
                    "this comment is never closed",
                    Some("a '*/' is missing; comments nest"),
                );
                self.stop();
            }
        }
    }

    /// What may stand between `/-` and what it takes out.
    fn line_space(&mut self) {
        let mut comments = Vec::new();
        loop {
            if self.cursor.starts("//") {
                self.cursor.skip_line();
            } else if !self.cursor.eat_newline() && !self.node_space(&mut comments) {
                return;
            }
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node, Failed> {
        let annotation = self.annotation()?;
        let mut comments = Vec::new();
        if annotation.is_some() {
            self.node_space(&mut comments);
        }
        let name = self.node_name()?;
        let mut node = Node {
            leading: Vec::new(),
            annotation,
            name,
            arguments: Vec::new(),
            properties: Vec::new(),
            children: None,
            trailing: None,
        };
        let mut spaced = self.node_space(&mut comments);
        loop {
            match self.cursor.peek() {
                None | Some('}') => break,
                Some(';') => {
                    self.cursor.bump();
                    break;
                }
                Some(character) if is_newline(character) => break,
                Some('/') if self.cursor.starts("//") => {
                    let comment = self.cursor.skip_line();
                    node.trailing = Some(comment.trim_end().to_owned());
                    break;
                }
                Some('/') if self.cursor.starts("/-") => {
                    let text = self.disabled_part(depth)?;
                    comments.extend(
                        text.lines()
                            .map(|line| Trivia::Comment(format!("// {}", line.trim()))),
                    );
                }
                Some('{') => {
                    let document = self.block(depth)?;
                    if node.children.is_some() {
                        let span = Span::new(
                            self.cursor.file,
                            self.cursor.at.saturating_sub(1),
                            self.cursor.at,
                        );
                        return Err(self.error(span, "a node has one block at most", None));
                    }
                    node.children = Some(document);
                }
                Some(_) if node.children.is_some() => {
                    let span = self.cursor.span_here();
                    return Err(self.error(
                        span,
                        "nothing may follow a block on its line",
                        Some("start a new line, or put a ';' here"),
                    ));
                }
                Some(_) if !spaced => return Err(self.no_space()),
                Some(_) => self.entry(&mut node, &mut comments)?,
            }
            spaced = self.node_space(&mut comments);
        }
        if node.trailing.is_none() {
            let at = self.cursor.at;
            self.cursor.eat_while(is_space);
            if self.cursor.starts("//") {
                let comment = self.cursor.skip_line();
                node.trailing = Some(comment.trim_end().to_owned());
            } else {
                self.cursor.at = at;
            }
        }
        node.leading = comments;
        Ok(node)
    }

    /// Two things without a space between them. Most often a quote is missing before, or the file is KDL 1.
    fn no_space(&mut self) -> Failed {
        let span = self.cursor.span_here();
        let before = &self.cursor.text[..self.cursor.at];
        let is_raw = self.cursor.rest().trim_start_matches('#').starts_with('"')
            && before.ends_with('r')
            && !before[..before.len() - 1].ends_with(is_identifier_character);
        if is_raw {
            let help = "a raw text of KDL 2 begins with '#' and no 'r': #\"...\"#";
            return self.error(span, "a text in quotes cannot stand here", Some(help));
        }
        let help = if before.ends_with('"') {
            "a text ends at its next quote; one is missing before this, or a space"
        } else {
            "values and properties stand apart"
        };
        self.error(span, "a space is missing here", Some(help))
    }

    fn node_name(&mut self) -> Result<Spanned<String>, Failed> {
        let span = self.cursor.span_here();
        match self.cursor.peek() {
            Some('{') => Err(self.error(
                span,
                "a block needs a node before it",
                Some("the name belongs on the line of its '{'"),
            )),
            Some(_) => {
                let value = self.scalar()?;
                match value.value {
                    Scalar::String(name) => Ok(Spanned::new(name, value.span)),
                    other => {
                        let message = format!("a name was expected here, not {}", other.kind());
                        Err(self.error(value.span, message, Some("put quotes around it")))
                    }
                }
            }
            None => Err(self.error(span, "the file ends where a name was expected", None)),
        }
    }

    /// `(name)` before a node or a value.
    fn annotation(&mut self) -> Result<Option<Spanned<String>>, Failed> {
        let start = self.cursor.at;
        if !self.cursor.eat("(") {
            return Ok(None);
        }
        let mut comments = Vec::new();
        self.node_space(&mut comments);
        let name = self.node_name()?;
        self.node_space(&mut comments);
        if self.cursor.eat(")") {
            return Ok(Some(Spanned::new(name.value, self.cursor.span_from(start))));
        }
        let span = self.cursor.span_from(start);
        Err(self.error(
            span,
            "this type annotation is not closed",
            Some("a ')' is missing"),
        ))
    }

    /// An argument or a property.
    fn entry(&mut self, node: &mut Node, comments: &mut Vec<Trivia>) -> Result<(), Failed> {
        if self.cursor.peek() == Some('(') {
            let value = self.value()?;
            node.arguments.push(value);
            return Ok(());
        }
        let first = self.scalar()?;
        let after_first = self.cursor.at;
        // What stands between is read again by the next step, unless this is a property.
        let errors = self.errors.len();
        let mut between = Vec::new();
        self.node_space(&mut between);
        if !self.cursor.eat("=") {
            if self.errors.len() == errors {
                self.cursor.at = after_first;
            } else {
                comments.append(&mut between);
            }
            node.arguments.push(Value {
                annotation: None,
                in_lines: self.in_lines(first.span),
                scalar: first.value,
                span: first.span,
            });
            return Ok(());
        }
        let Scalar::String(name) = first.value else {
            let message = format!(
                "a property has a name before its '=', not {}",
                first.value.kind()
            );
            return Err(self.error(first.span, message, Some("put quotes around it")));
        };
        comments.append(&mut between);
        self.node_space(comments);
        let value = self.value()?;
        node.properties
            .push((Spanned::new(name, first.span), value));
        Ok(())
    }

    fn value(&mut self) -> Result<Value, Failed> {
        let annotation = self.annotation()?;
        if annotation.is_some() {
            self.node_space(&mut Vec::new());
        }
        let scalar = self.scalar()?;
        Ok(Value {
            annotation,
            in_lines: self.in_lines(scalar.span),
            scalar: scalar.value,
            span: scalar.span,
        })
    }

    /// Whether what stands there is a text over several lines.
    fn in_lines(&self, span: Span) -> bool {
        let text = &self.cursor.text[span.start as usize..];
        text.trim_start_matches('#').starts_with("\"\"\"")
    }

    fn scalar(&mut self) -> Result<Spanned<Scalar>, Failed> {
        let start = self.cursor.at;
        let scalar = match self.cursor.peek() {
            Some('"') => strings::quoted(&mut self.cursor).map(Scalar::String),
            Some('#') => return self.keyword_or_raw(),
            Some(character) if is_identifier_character(character) => {
                let word = self.cursor.eat_while(is_identifier_character);
                let span = self.cursor.span_from(start);
                match classify(word) {
                    Word::Name => Ok(Scalar::String(word.to_owned())),
                    Word::Number(scalar) => Ok(scalar),
                    Word::Wrong(message) => Err(Wrong {
                        span,
                        message,
                        help: None,
                    }),
                }
            }
            _ => {
                let span = self.cursor.span_here();
                return Err(self.error(span, "a value was expected here", None));
            }
        };
        match scalar {
            Ok(scalar) => Ok(Spanned::new(scalar, self.cursor.span_from(start))),
            Err(problem) => Err(self.wrong(problem)),
        }
    }

    fn keyword_or_raw(&mut self) -> Result<Spanned<Scalar>, Failed> {
        let start = self.cursor.at;
        let after_hashes = self.cursor.rest().trim_start_matches('#');
        if after_hashes.starts_with('"') {
            return match strings::raw(&mut self.cursor) {
                Ok(text) => Ok(Spanned::new(
                    Scalar::String(text),
                    self.cursor.span_from(start),
                )),
                Err(problem) => Err(self.wrong(problem)),
            };
        }
        self.cursor.bump();
        let word = self.cursor.eat_while(is_identifier_character);
        let scalar = match word {
            "true" => Scalar::Bool(true),
            "false" => Scalar::Bool(false),
            "null" => Scalar::Null,
            "inf" => Scalar::Float(f64::INFINITY),
            "-inf" => Scalar::Float(f64::NEG_INFINITY),
            "nan" => Scalar::Float(f64::NAN),
            _ => {
                let span = self.cursor.span_from(start);
                return Err(self.error(
                    span,
                    "there is no such word",
                    Some("known are #true, #false, #null, #inf, #-inf and #nan"),
                ));
            }
        };
        Ok(Spanned::new(scalar, self.cursor.span_from(start)))
    }

    fn block(&mut self, depth: usize) -> Result<Document, Failed> {
        let span = self.cursor.span_here();
        if depth >= MAX_BLOCK_DEPTH {
            let message = format!("blocks nest deeper than {MAX_BLOCK_DEPTH} levels");
            let failed = self.error(span, message, None);
            self.stop();
            return Err(failed);
        }
        self.cursor.bump();
        Ok(self.nodes(depth + 1, Some(span)))
    }

    /// An argument, a property or a block behind `/-`, read and left out.
    fn disabled_part(&mut self, depth: usize) -> Result<&'t str, Failed> {
        let start = self.cursor.at;
        self.cursor.eat("/-");
        self.line_space();
        if self.cursor.peek() == Some('{') {
            self.block(depth)?;
        } else {
            let mut nowhere = Node {
                leading: Vec::new(),
                annotation: None,
                name: Spanned::new(String::new(), Span::default()),
                arguments: Vec::new(),
                properties: Vec::new(),
                children: None,
                trailing: None,
            };
            self.entry(&mut nowhere, &mut Vec::new())?;
        }
        Ok(&self.cursor.text[start..self.cursor.at])
    }

    /// After an error: to the end of the line, blocks that begin on it included.
    fn recover(&mut self, depth: usize) {
        while let Some(character) = self.cursor.peek() {
            match character {
                ';' => {
                    self.cursor.bump();
                    return;
                }
                '}' => return,
                '{' => {
                    if self.block(depth).is_err() {
                        return;
                    }
                }
                '"' => {
                    if strings::quoted(&mut self.cursor).is_err() && self.cursor.peek() == Some('"')
                    {
                        self.cursor.bump();
                    }
                }
                '/' if self.cursor.starts("//") => {
                    self.cursor.skip_line();
                }
                '/' if self.cursor.starts("/*") => self.block_comment(&mut Vec::new()),
                other if is_newline(other) => return,
                _ => {
                    self.cursor.bump();
                }
            }
        }
    }
}
