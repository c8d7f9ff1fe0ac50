//! Names: what units, services and kept values may be called, and which requests a backend answers.
//!
//! A name stands in a key that people read and that servers match with globs, so everything that means something to
//! either is refused: `/ * ? [ ] \ { } ~`, whitespace and control characters. This module knows nothing of keys.

use std::fmt;
use std::sync::Arc;

/// The longest name, in bytes. Keys of such names are still readable.
pub const NAME_LIMIT_BYTES: usize = 200;

/// Why a name was refused. The caller's fault; nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// It is empty.
    #[error("a name must not be empty")]
    Empty,
    /// More than [`NAME_LIMIT_BYTES`].
    #[error("a name has at most {NAME_LIMIT_BYTES} bytes")]
    TooLong,
    /// One of the characters that keys and globs give a meaning to.
    #[error("{0:?} is not allowed in a name")]
    Character(char),
    /// A call names a service and a method, with a dot between them.
    #[error("{0:?} is not of the form service.method")]
    NotServiceMethod(String),
    /// It has a prefix or a suffix that the protocol itself uses in KEEP.
    #[error("{0:?} is reserved in KEEP (names that begin with _ or end in .claim, .tries, .meta)")]
    Reserved(String),
    /// A pattern of kept values is a glob for the unit, a slash, and a glob for the name.
    #[error("{0:?} is not of the form unit/name, with * and ? as wildcards")]
    NotWatchPattern(String),
}

/// Checks that `text` may stand in a key.
pub fn check_name(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > NAME_LIMIT_BYTES {
        return Err(NameError::TooLong);
    }
    match text.chars().find(|&c| is_refused(c)) {
        Some(c) => Err(NameError::Character(c)),
        None => Ok(()),
    }
}

fn is_refused(c: char) -> bool {
    matches!(c, '/' | '*' | '?' | '[' | ']' | '\\' | '{' | '}' | '~')
        || c.is_whitespace()
        || c.is_control()
}

/// Whether a KEEP name is reserved for the protocol, and hidden from watchers.
pub fn is_reserved_keep(name: &str) -> bool {
    name.starts_with('_')
        || [".claim", ".tries", ".meta"]
            .iter()
            .any(|ending| name.ends_with(ending))
}

/// The name of a unit. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitName(Arc<str>);

impl UnitName {
    /// Takes `text` if it is a name.
    pub fn new(text: &str) -> Result<Self, NameError> {
        check_name(text)?;
        Ok(Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a call asks for: `service.method`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target(Arc<str>);

impl Target {
    /// Takes `text` if it is a name with a dot inside.
    pub fn new(text: &str) -> Result<Self, NameError> {
        check_name(text)?;
        match text.rsplit_once('.') {
            Some((service, method)) if !service.is_empty() && !method.is_empty() => {
                Ok(Self(text.into()))
            }
            _ => Err(NameError::NotServiceMethod(text.into())),
        }
    }

    /// The target as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which requests a backend answers.
///
/// ```
/// use kumi_muf::core::Pattern;
///
/// let thumbs: Pattern = "thumb.*".parse()?;
/// assert!(thumbs.matches(Some("thumb.resize")));
/// assert!(!thumbs.matches(Some("thumbs.resize")));
/// assert!(!thumbs.matches(None), "a bare ID reaches catch-all backends only");
/// # Ok::<(), kumi_muf::core::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pattern {
    /// `*`: every request, bare IDs too.
    All,
    /// `service.*`: every method of a service.
    Service(String),
    /// `service.method`.
    Method(String),
}

impl Pattern {
    /// Whether a request for `target` (none: a bare ID) is for this backend.
    pub fn matches(&self, target: Option<&str>) -> bool {
        match (self, target) {
            (Pattern::All, _) => true,
            (_, None) => false,
            (Pattern::Service(service), Some(target)) => target
                .strip_prefix(service.as_str())
                .is_some_and(|rest| rest.starts_with('.')),
            (Pattern::Method(method), Some(target)) => method == target,
        }
    }

    /// The server-side glob over IDs. It may match more than [`Pattern::matches`], never less.
    pub fn id_glob(&self) -> String {
        match self {
            Pattern::All => "*".into(),
            Pattern::Service(service) => format!("{service}.*~*"),
            Pattern::Method(method) => format!("{method}~*"),
        }
    }

    /// Narrower patterns come first when several services of one unit match.
    pub fn precision(&self) -> u8 {
        match self {
            Pattern::All => 0,
            Pattern::Service(_) => 1,
            Pattern::Method(_) => 2,
        }
    }
}

impl std::str::FromStr for Pattern {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text == "*" {
            return Ok(Pattern::All);
        }
        if let Some(service) = text.strip_suffix(".*") {
            check_name(service)?;
            return Ok(Pattern::Service(service.into()));
        }
        Target::new(text).map(|target| Pattern::Method(target.as_str().into()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::All => f.write_str("*"),
            Pattern::Service(service) => write!(f, "{service}.*"),
            Pattern::Method(method) => f.write_str(method),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_refuse_what_keys_and_globs_give_a_meaning_to() {
        for c in [
            '/', '*', '?', '[', ']', '\\', '{', '}', '~', ' ', '\t', '\n', '\u{7f}', '\u{3000}',
        ] {
            assert_eq!(
                check_name(&format!("a{c}b")),
                Err(NameError::Character(c)),
                "{c:?}"
            );
        }
        assert_eq!(check_name(""), Err(NameError::Empty));
        assert_eq!(
            check_name(&"x".repeat(NAME_LIMIT_BYTES + 1)),
            Err(NameError::TooLong)
        );
        for fine in ["web", "web-1", "温度計", "a.b.c", "A_b", "x:y"] {
            assert_eq!(check_name(fine), Ok(()), "{fine}");
        }
    }

    #[test]
    fn a_target_has_a_service_and_a_method() {
        assert!(Target::new("thumb.resize").is_ok());
        for wrong in ["thumb", ".resize", "thumb."] {
            assert!(
                matches!(Target::new(wrong), Err(NameError::NotServiceMethod(_))),
                "{wrong}"
            );
        }
    }

    #[test]
    fn patterns_match_services_methods_or_everything() {
        let check = |pattern: &str, target: Option<&str>, expected: bool| {
            let pattern: Pattern = pattern.parse().expect("a pattern");
            assert_eq!(pattern.matches(target), expected, "{pattern} {target:?}");
        };
        check("*", None, true);
        check("*", Some("a.b"), true);
        check("a.*", Some("a.b"), true);
        check("a.*", Some("ab.b"), false);
        check("a.*", None, false);
        check("a.b", Some("a.b"), true);
        check("a.b", Some("a.bc"), false);
        assert!("a*".parse::<Pattern>().is_err());
        assert!("a".parse::<Pattern>().is_err());
    }

    #[test]
    fn the_protocols_own_keep_names_are_reserved() {
        for name in ["_info", "x.claim", "x.tries", "x.meta"] {
            assert!(is_reserved_keep(name), "{name}");
        }
        assert!(!is_reserved_keep("claim"));
    }
}
