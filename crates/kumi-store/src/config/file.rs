//! The syntax of `redis.conf` and of `redis-server`'s command line: parses text into lines, and loads lines into a
//! [`Config`].
//!
//! It opens no file. The host resolves the globs of an `include` and reads the files, which are loaded before the next
//! line, because a later line replaces an earlier one.

use std::borrow::Cow;
use std::fmt;

use super::{Changes, Config, TABLE, find, words};

/// The deepest nesting of included files. It ends a file that includes itself.
pub const INCLUDE_DEPTH_LIMIT: usize = 16;

/// Where configuration text came from, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file of this name.
    File(String),
    /// Standard input.
    Stdin,
    /// `--directive value` flags.
    CommandLine,
}

/// A line that is neither blank nor a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line's number, from 1.
    pub number: usize,
    /// The text of the line, without spaces at its ends.
    pub text: Vec<u8>,
    /// Its words, quotes resolved. There is at least one.
    pub words: Vec<Vec<u8>>,
}

/// The result of loading a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loaded {
    /// A directive was set.
    Set,
    /// Another file is to be loaded now. The path may hold glob characters.
    Include(Vec<u8>),
    /// The line has no effect: it asks for the state that is given.
    Nothing,
}

/// A line that cannot be loaded: the operator's mistake, or a directive that kumi rejects. The line changed nothing;
/// the lines before it stay loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct LoadError {
    /// Where the line stands.
    pub source_name: Source,
    /// From 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// What is wrong with it.
    pub reason: Cow<'static, str>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "*** FATAL CONFIG FILE ERROR (kumi {}) ***",
            env!("CARGO_PKG_VERSION")
        )?;
        match &self.source_name {
            Source::File(name) => {
                writeln!(
                    f,
                    "Reading the configuration file, at line {} of {name}",
                    self.line
                )?;
            }
            Source::Stdin => writeln!(
                f,
                "Reading the configuration from standard input, at line {}",
                self.line
            )?,
            Source::CommandLine => {
                writeln!(f, "Reading the command line, at option {}", self.line)?
            }
        }
        write!(f, ">>> '{}'\n{}", self.text, self.reason)
    }
}

impl Line {
    /// The error of a line that cannot be loaded, also for a host that could not do what the line asks.
    pub fn error(&self, source: &Source, reason: impl Into<Cow<'static, str>>) -> LoadError {
        LoadError {
            source_name: source.clone(),
            line: self.number,
            text: self.shown(),
            reason: reason.into(),
        }
    }

    /// The text for an error: of a `user` line only its name, because the rules hold passwords.
    fn shown(&self) -> String {
        let is_blank = |byte: &u8| byte.is_ascii_whitespace();
        // A line with unbalanced quotes has no words.
        let bare = |piece: &[u8]| -> Vec<u8> {
            let bytes = piece.iter().filter(|byte| !b"'\"".contains(byte));
            bytes.copied().collect()
        };
        let pieces = self.text.split(is_blank).filter(|piece| !piece.is_empty());
        let pieces: Vec<Vec<u8>> = pieces.take(2).map(bare).collect();
        let words = match self.words.as_slice() {
            [] => pieces.as_slice(),
            words => words,
        };
        match words {
            [directive, name, ..] if directive.eq_ignore_ascii_case(b"user") => {
                let name = name.split(is_blank).next().unwrap_or_default();
                format!("user {} ...", String::from_utf8_lossy(name))
            }
            _ => String::from_utf8_lossy(&self.text).into_owned(),
        }
    }
}

/// The lines of a text without blank lines and comments, parsed one by one, so that the first mistake is the one
/// reported.
pub fn parse_text<'t>(
    text: &'t [u8],
    source: &'t Source,
) -> impl Iterator<Item = Result<Line, LoadError>> + 't {
    let lines = text
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .enumerate();
    let telling = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with(b"#"));
    telling.map(|(index, text)| {
        let line = Line {
            number: index + 1,
            text: text.to_vec(),
            words: Vec::new(),
        };
        match words::split(text) {
            Some(words) => Ok(Line { words, ..line }),
            None => Err(line.error(source, "Unbalanced quotes in configuration line")),
        }
    })
}

/// The parsed arguments of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The configuration file, when the first argument is not a flag.
    pub file: Option<Vec<u8>>,
    /// A lone `-` came first or last: more configuration is to be read from standard input, after the file.
    pub stdin: bool,
    /// The flags as configuration text, to be loaded last.
    pub options: Vec<u8>,
}

/// Turns `[file] [-] --directive value ...` (without the program's name) into configuration text.
///
/// A flag and its value may share one argument (`"--port 7000"`), a value right behind its flag may begin with `--`,
/// and `--save` alone means `save ""`. Flags that are not directives (`--version`, `--help`) are the caller's.
pub fn parse_command_line(args: &[impl AsRef<[u8]>]) -> CommandLine {
    let mut parsed = CommandLine::default();
    let mut args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
    if args.first().is_some_and(|first| !first.starts_with(b"-")) {
        parsed.file = Some(args.remove(0).to_vec());
    } else if args.first() == Some(&b"-".as_slice()) {
        parsed.stdin = true;
        args.remove(0);
    }
    if args.last() == Some(&b"-".as_slice()) {
        parsed.stdin = true;
        args.pop();
    }
    let mut wants_value = false;
    for (index, arg) in args.iter().enumerate() {
        let Some(flag) = arg.strip_prefix(b"--").filter(|_| !wants_value) else {
            words::quote(&mut parsed.options, arg);
            parsed.options.push(b' ');
            wants_value = false;
            continue;
        };
        if !parsed.options.is_empty() {
            parsed.options.push(b'\n');
        }
        parsed.options.extend(flag);
        parsed.options.push(b' ');
        let alone = words::split(flag).is_some_and(|words| words.len() == 1);
        let followed_by_flag = args
            .get(index + 1)
            .is_none_or(|next| next.starts_with(b"--"));
        if alone && followed_by_flag && flag.trim_ascii().eq_ignore_ascii_case(b"save") {
            // `--save` without a value means no save points.
            parsed.options.extend(b"\"\"");
        } else {
            wants_value = alone;
        }
    }
    parsed
}

/// Reads the files an `include` names, in order, each with its name and text, or returns why it cannot.
pub type ReadInclude<'r> = dyn FnMut(&[u8]) -> Result<Vec<(String, Vec<u8>)>, String> + 'r;

impl Config {
    /// Loads a text and the files it includes, in the order of the lines.
    ///
    /// `read` is called for each `include`. After an error, the lines before the wrong one stay loaded, so a host that
    /// continues uses a new [`Config`].
    ///
    /// ```
    /// use kumi_store::config::{Config, Source};
    ///
    /// let mut config = Config::new();
    /// let source = Source::File("kumi.conf".to_owned());
    /// let mut read = |path: &[u8]| match path {
    ///     b"more.conf" => Ok(vec![("more.conf".to_owned(), b"timeout 30".to_vec())]),
    ///     _ => Err("No such file or directory".to_owned()),
    /// };
    /// config.load_text(b"port 7000\ninclude more.conf", &source, &mut read)?;
    /// assert_eq!((config.settings().port, config.settings().timeout_s), (7000, 30));
    /// # Ok::<(), kumi_store::config::LoadError>(())
    /// ```
    pub fn load_text(
        &mut self,
        text: &[u8],
        source: &Source,
        read: &mut ReadInclude<'_>,
    ) -> Result<(), LoadError> {
        self.load_nested(text, source, read, 0)
    }

    fn load_nested(
        &mut self,
        text: &[u8],
        source: &Source,
        read: &mut ReadInclude<'_>,
        depth: usize,
    ) -> Result<(), LoadError> {
        for line in parse_text(text, source) {
            let line = line?;
            let Loaded::Include(path) = self.load(&line, source)? else {
                continue;
            };
            if depth == INCLUDE_DEPTH_LIMIT {
                let reason =
                    format!("files include one another more than {INCLUDE_DEPTH_LIMIT} deep");
                return Err(line.error(source, reason));
            }
            for (name, text) in read(&path).map_err(|reason| line.error(source, reason))? {
                self.load_nested(&text, &Source::File(name), read, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Loads one line. The last line of a directive is the one that counts, except for `save`.
    pub fn load(&mut self, line: &Line, source: &Source) -> Result<Loaded, LoadError> {
        let wrong = |reason: Cow<'static, str>| line.error(source, reason);
        let Some((name, values)) = line.words.split_first() else {
            return Ok(Loaded::Nothing);
        };
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        if name.eq_ignore_ascii_case(b"user")
            && let Some(user) = values.first()
        {
            let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
            if user.iter().any(is_blank) {
                return Err(wrong("Spaces not allowed in ACL usernames".into()));
            }
            if user.is_empty() {
                return Err(wrong("ACL usernames must not be empty".into()));
            }
            // A name or rule has no blanks and is not empty, so the words make the line again.
            let line = values.join(&b' ');
            let words = line.split(|&byte| byte == b' ');
            let words: Vec<&[u8]> = words.filter(|word| !word.is_empty()).collect();
            let user = words.first().copied().unwrap_or_default();
            let name_of = |line: &[u8]| line.split(|&byte| byte == b' ').next() == Some(user);
            if self.users.iter().any(|line| name_of(line)) {
                let user = String::from_utf8_lossy(user);
                return Err(wrong(
                    format!("Error in user declaration '{user}': Duplicate user found. A user can only be defined once in config files").into(),
                ));
            }
            self.users.push(words.join(&b' '));
            return Ok(Loaded::Set);
        }
        let Some((row, _)) = find(name) else {
            return load_valueless(name, &values).map_err(|reason| wrong(reason.into()));
        };
        // Further lines of `save` add points, except an empty one, which removes all.
        let points = (TABLE[row].name == "save" && self.given[row] && values != [b""])
            .then(|| TABLE[row].kind.text(&self.values[row]));
        let before = points
            .iter()
            .flat_map(|text| text.split(|&byte| byte == b' '));
        let before = before.filter(|word| !word.is_empty());
        let words = TABLE[row]
            .kind
            .words(values)
            .ok_or_else(|| wrong("wrong number of arguments".into()))?;
        let values: Vec<&[u8]> = before.chain(words).collect();
        self.assign(row, &values, &mut Changes::default())
            .map_err(wrong)?;
        self.given[row] = true;
        Ok(Loaded::Set)
    }
}

/// The directives that have no value to keep, so no row in the table.
fn load_valueless(name: &[u8], values: &[&[u8]]) -> Result<Loaded, &'static str> {
    match (name.to_ascii_lowercase().as_slice(), values) {
        (b"include", [path]) => Ok(Loaded::Include(path.to_vec())),
        // Redis has removed these directives and ignores them.
        (b"list-max-ziplist-entries" | b"list-max-ziplist-value", [_]) => Ok(Loaded::Nothing),
        (b"rename-command", [_, _]) => Err(
            "kumi does not rename commands yet: the command you want out of reach would stay within it",
        ),
        (b"loadmodule", [_, ..]) => {
            Err("kumi loads no modules: commands of this one would be missing")
        }
        (b"sentinel", _) => Err("sentinel directive while not in sentinel mode"),
        _ => Err("Bad directive or wrong number of arguments"),
    }
}
