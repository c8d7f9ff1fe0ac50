//! Keys: `MUF/UNIT/STATUS/ID`, read and written. A key that does not parse to exactly four levels is not one of ours.
//!
//! ```text
//! MUF/web/REQ/thumb.resize~01J…            a request of unit web, for one of the backends of thumb.resize
//! MUF/web/RES/thumb.resize~01J…            its answer (or ERR)
//! MUF/web/KEEP/thumb.resize~01J….claim     the backend that works on it (.tries: takeovers, .meta: tracing)
//! MUF/web/REQ/thumb.resize~all~01J…        a request to every backend, each of which answers at
//! MUF/web/RES/thumb.resize~all~01J….node-3
//! MUF/web/REQ/hello                        a bare ID, as a person types it
//! MUF/web/KEEP/temperature                 a kept value
//! ```
//! On a cluster the unique part is a hash tag, `thumb.resize~{01J…}`, so that all keys of a request share a slot.

use std::fmt;
use std::sync::Arc;

use super::ignored::KeyError;
use super::name::{Target, check_name};

/// The third level of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// A request.
    Req,
    /// Its answer.
    Res,
    /// Its answer, when the work failed.
    Err,
    /// A value that stays.
    Keep,
}

impl Status {
    /// As it stands in a key.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Req => "REQ",
            Status::Res => "RES",
            Status::Err => "ERR",
            Status::Keep => "KEEP",
        }
    }
}

/// A key taken apart. Borrowed: parsing a push allocates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key<'a> {
    /// Second level: the requester, or the owner of a kept value.
    pub unit: &'a str,
    /// Third level.
    pub status: Status,
    /// Fourth level.
    pub id: &'a str,
}

impl<'a> Key<'a> {
    /// Takes a key apart; `None` if it is not four levels that begin with `MUF`.
    ///
    /// ```
    /// use kumi_muf::core::{Key, Status};
    ///
    /// let key = Key::parse("MUF/web/REQ/hello").expect("four levels");
    /// assert_eq!((key.unit, key.status, key.id), ("web", Status::Req, "hello"));
    /// assert_eq!(Key::parse("MUF/web/REQ/a/b"), None);
    /// ```
    pub fn parse(text: &'a str) -> Option<Self> {
        Self::check(text).ok()
    }

    /// Takes a key apart, or says why it is none.
    pub(crate) fn check(text: &'a str) -> Result<Self, KeyError> {
        let mut levels = text.split('/');
        let [Some("MUF"), Some(unit), Some(status), Some(id), None] =
            [(); 5].map(|()| levels.next())
        else {
            return Err(KeyError::Levels);
        };
        if id.is_empty() {
            return Err(KeyError::Levels);
        }
        check_name(unit).map_err(KeyError::Unit)?;
        let status = match status {
            "REQ" => Status::Req,
            "RES" => Status::Res,
            "ERR" => Status::Err,
            "KEEP" => Status::Keep,
            _ => return Err(KeyError::Status),
        };
        Ok(Self { unit, status, id })
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MUF/{}/{}/{}", self.unit, self.status.as_str(), self.id)
    }
}

/// The text of a key.
pub fn key(unit: &str, status: Status, id: &str) -> String {
    ["MUF/", unit, "/", status.as_str(), "/", id].concat()
}

/// The backends that a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Audience {
    /// One of the backends: `service.method~unique`.
    One,
    /// All of them: `service.method~all~unique`.
    All,
    /// Backends that serve everything; the ID may be used again: `anything`.
    Bare,
}

/// The ID of a request. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId {
    text: Arc<str>,
    target_len: usize,
    audience_tag: u8,
}

impl std::hash::Hash for RequestId {
    /// The rest follows from the text.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl RequestId {
    /// An ID for one or all backends of `target`. `tagged` makes the unique part a cluster hash tag.
    pub fn new(target: &Target, to_all: bool, unique: &str, tagged: bool) -> Self {
        let (open, close) = if tagged { ("{", "}") } else { ("", "") };
        let all = if to_all { "all~" } else { "" };
        let text = [target.as_str(), "~", all, open, unique, close].concat();
        Self {
            text: text.into(),
            target_len: target.as_str().len(),
            audience_tag: 1 + u8::from(to_all),
        }
    }

    /// Reads the fourth level of a REQ key. What is neither a name nor one of the forms with a target is no ID.
    pub fn parse(text: &str) -> Option<Self> {
        let Some((target, rest)) = text.split_once('~') else {
            check_name(text).ok()?;
            return Some(Self {
                text: text.into(),
                target_len: 0,
                audience_tag: 0,
            });
        };
        Target::new(target).ok()?;
        let (to_all, unique) = match rest.strip_prefix("all~") {
            Some(unique) => (true, unique),
            None => (false, rest),
        };
        (unique_len(unique)? == unique.len()).then(|| Self {
            text: text.into(),
            target_len: target.len(),
            audience_tag: 1 + u8::from(to_all),
        })
    }

    /// Reads the fourth level of a RES or ERR key: the request, and the backend if it was asked of all.
    pub fn parse_answer(text: &str) -> Option<(Self, Option<&str>)> {
        let Some(unique_at) = text.find("~all~").map(|at| at + "~all~".len()) else {
            return Some((Self::parse(text)?, None));
        };
        let end = unique_at + unique_len(&text[unique_at..])?;
        let backend = text[end..].strip_prefix('.')?;
        check_name(backend).ok()?;
        Some((Self::parse(&text[..end])?, Some(backend)))
    }

    /// The ID as it stands in keys.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// `service.method`; none for a bare ID.
    pub fn target(&self) -> Option<&str> {
        (self.target_len > 0).then(|| &self.text[..self.target_len])
    }

    /// The backends that it is for.
    pub fn audience(&self) -> Audience {
        match self.audience_tag {
            0 => Audience::Bare,
            1 => Audience::One,
            _ => Audience::All,
        }
    }
}

/// Bytes of the unique part that `text` begins with: letters, digits, `-` and `_`, perhaps within braces.
fn unique_len(text: &str) -> Option<usize> {
    let tagged = text.starts_with('{');
    let inner = &text[usize::from(tagged)..];
    let len = inner
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        .count();
    if len == 0 || len > super::name::NAME_LIMIT_BYTES {
        return None;
    }
    match tagged {
        true => (inner.as_bytes().get(len) == Some(&b'}')).then_some(len + 2),
        false => Some(len),
    }
}

/// All keys of one request, made on demand.
#[derive(Debug, Clone, Copy)]
pub struct RequestKeys<'a> {
    /// The requester.
    pub unit: &'a str,
    /// The request.
    pub id: &'a RequestId,
}

impl RequestKeys<'_> {
    /// The request itself.
    pub fn req(&self) -> String {
        key(self.unit, Status::Req, self.id.as_str())
    }

    /// Its good answer.
    pub fn res(&self) -> String {
        key(self.unit, Status::Res, self.id.as_str())
    }

    /// Its bad answer.
    pub fn err(&self) -> String {
        key(self.unit, Status::Err, self.id.as_str())
    }

    /// The backend that works on it.
    pub fn claim(&self) -> String {
        ["MUF/", self.unit, "/KEEP/", self.id.as_str(), ".claim"].concat()
    }

    /// How often it changed hands.
    pub fn tries(&self) -> String {
        ["MUF/", self.unit, "/KEEP/", self.id.as_str(), ".tries"].concat()
    }

    /// Its tracing side key.
    pub fn meta(&self) -> String {
        ["MUF/", self.unit, "/KEEP/", self.id.as_str(), ".meta"].concat()
    }

    /// Where `backend` answers a request to all.
    pub fn answer_of(&self, status: Status, backend: &str) -> String {
        [
            "MUF/",
            self.unit,
            "/",
            status.as_str(),
            "/",
            self.id.as_str(),
            ".",
            backend,
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_four_levels_are_keys() {
        for wrong in [
            "",
            "MUF",
            "MUF/a/REQ",
            "MUF/a/REQ/",
            "MUF/a/REQ/b/c",
            "muf/a/REQ/b",
            "MUF/a/FOO/b",
            "MUF//REQ/b",
        ] {
            assert_eq!(Key::parse(wrong), None, "{wrong}");
        }
        let text = "MUF/web/KEEP/x.claim";
        assert_eq!(
            Key::parse(text).map(|key| key.to_string()).as_deref(),
            Some(text)
        );
    }

    #[test]
    fn request_ids_say_who_is_meant() {
        let check = |text: &str, expected: Option<(Option<&str>, Audience)>| {
            let id = RequestId::parse(text);
            assert_eq!(
                id.as_ref().map(|id| (id.target(), id.audience())),
                expected,
                "{text}"
            );
        };
        check("hello", Some((None, Audience::Bare)));
        check("a.b~01J", Some((Some("a.b"), Audience::One)));
        check("a.b~{01J}", Some((Some("a.b"), Audience::One)));
        check("a.b~all~01J", Some((Some("a.b"), Audience::All)));
        check("a.b~all~{01J}", Some((Some("a.b"), Audience::All)));
        for wrong in [
            "~01J",
            "a.b~",
            "a.b~{01J",
            "a.b~01J}",
            "a.b~{}",
            "a.b~x~y",
            "a b",
            "a.b~01J.x",
            "a{b}",
            "a~b",
            "a~all~01J",
            ".b~01J",
            "a.~01J",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn answers_to_all_name_their_backend() {
        let (id, backend) = RequestId::parse_answer("a.b~all~{01J}.node.3").expect("an answer");
        assert_eq!((id.as_str(), backend), ("a.b~all~{01J}", Some("node.3")));
        let (id, backend) = RequestId::parse_answer("a.b~01J").expect("an answer");
        assert_eq!((id.as_str(), backend), ("a.b~01J", None));
        assert!(RequestId::parse_answer("a.b~all~01J").is_none());
        assert!(RequestId::parse_answer("a.b~all~01J.").is_none());
    }

    #[test]
    fn made_ids_read_back() {
        let target = Target::new("a.b").expect("a target");
        for (to_all, tagged) in [(false, false), (false, true), (true, false), (true, true)] {
            let id = RequestId::new(&target, to_all, "01J", tagged);
            assert_eq!(RequestId::parse(id.as_str()), Some(id));
        }
    }

    #[test]
    fn parsing_never_panics() {
        let mut rng = fastrand::Rng::with_seed(3);
        let letters = [
            "M",
            "U",
            "F",
            "/",
            "REQ",
            "RES",
            "~",
            "all",
            "{",
            "}",
            ".",
            "é",
            "a",
            "0",
            "MUF/x/RES/",
        ];
        for _ in 0..100_000 {
            let text: String = (0..rng.usize(..9))
                .map(|_| letters[rng.usize(..letters.len())])
                .collect();
            if let Some(key) = Key::parse(&text) {
                let _ = (RequestId::parse(key.id), RequestId::parse_answer(key.id));
            }
            let _ = (RequestId::parse(&text), RequestId::parse_answer(&text));
        }
    }
}
