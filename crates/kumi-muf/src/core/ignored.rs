//! Keys below `MUF/` that are outside the protocol's grammar: for which reason, and which of them were reported.
//!
//! A key outside the grammar cannot be answered: a name with a `/` would have another number of levels, one with a `*` would
//! be a pattern, one with a space cannot be typed as one word. Such keys are left as they are. A tap shows each of them, and
//! a backend reports the first one of each unit.

use std::collections::{HashSet, VecDeque};

use super::key::{Key, RequestId, Status};
use super::name::NameError;
use super::output::Output;

/// Units whose first ignored key is reported; ignored keys of further units are not.
const UNIT_LIMIT: usize = 1_000;

/// Why a key is ignored. The fault of the program that wrote it; the key stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// More levels, or fewer, or an empty ID.
    #[error("a key has exactly four levels, MUF/UNIT/STATUS/ID")]
    Levels,
    /// The third level is another word.
    #[error("the third level is none of REQ, RES, ERR and KEEP")]
    Status,
    /// The second level is not a name.
    #[error("the unit's name cannot be used: {0}")]
    Unit(NameError),
    /// The fourth level is none of the three forms.
    #[error(
        "the ID is neither service.method~unique (letters, digits, - and _), nor service.method~all~unique, nor a name"
    )]
    Id,
    /// The key is not text.
    #[error("the key is not UTF-8")]
    NotText,
}

/// Why no unit takes part in what happens to a key below `MUF/`; none if one may, and for kept values.
///
/// ```
/// use kumi_muf::core::why_ignored;
///
/// assert_eq!(why_ignored("MUF/web/REQ/a.b~01J"), None);
/// assert!(why_ignored("MUF/web/REQ/a.b~01J:7").is_some());
/// ```
pub fn why_ignored(text: &str) -> Option<KeyError> {
    let key = match Key::check(text) {
        Ok(key) => key,
        Err(error) => return Some(error),
    };
    let is_id = match key.status {
        Status::Req => RequestId::parse(key.id).is_some(),
        Status::Res | Status::Err => RequestId::parse_answer(key.id).is_some(),
        Status::Keep => true,
    };
    (!is_id).then_some(KeyError::Id)
}

/// The units whose first ignored request was reported.
#[derive(Debug, Default)]
pub(crate) struct Ignored {
    units: HashSet<String>,
}

impl Ignored {
    /// Reports a request that is ignored, if it is the first one of its unit.
    pub(crate) fn see(&mut self, text: &str, reason: KeyError, out: &mut VecDeque<Output>) {
        let unit = text.split('/').nth(1).unwrap_or_default();
        if self.units.len() >= UNIT_LIMIT || self.units.contains(unit) {
            return;
        }
        self.units.insert(unit.to_owned());
        let key = text.to_owned();
        out.push_back(Output::Ignored { key, reason });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mistake_is_named() {
        let check = |text: &str, expected: Option<KeyError>| {
            assert_eq!(why_ignored(text), expected, "{text}");
        };
        check("MUF/web/REQ/hello", None);
        check("MUF/web/RES/a.b~all~01J.back", None);
        check("MUF/web/KEEP/any thing", None);
        check("MUF/web/REQ/a/b", Some(KeyError::Levels));
        check("MUF/web/REQ", Some(KeyError::Levels));
        check("MUF/web/ASK/a", Some(KeyError::Status));
        let space = KeyError::Unit(NameError::Character(' '));
        check("MUF/my web/REQ/a", Some(space));
        check("MUF/web/REQ/a b", Some(KeyError::Id));
        check("MUF/web/REQ/a.b~1.5", Some(KeyError::Id));
        check("MUF/web/ERR/a~b", Some(KeyError::Id));
    }

    #[test]
    fn one_key_of_each_unit_is_reported_and_units_are_bounded() {
        let (mut ignored, mut out) = (Ignored::default(), VecDeque::new());
        for unit in 0..2 * UNIT_LIMIT {
            for _ in 0..2 {
                ignored.see(&format!("MUF/u{unit}/REQ/a b"), KeyError::Id, &mut out);
            }
        }
        assert_eq!(out.len(), UNIT_LIMIT);
    }
}
