//! Back-offs as they stand on the command line: `5s`, `1s..10m`, `1s..10m*4`.

use crate::command_line::duration::duration;
use kumi_jobs::Backoff;

/// How much a delay grows per attempt where the text does not say.
const FACTOR: u32 = 2;

/// What every help text says about a back-off.
pub(super) const WRONG: &str =
    "expected a time such as 5s, or two and perhaps a factor: 1s..10m or 1s..10m*4";

/// Reads a back-off.
pub(super) fn backoff(text: &str) -> Result<Backoff, String> {
    let wrong = |_| WRONG.to_owned();
    let Some((first, rest)) = text.split_once("..") else {
        let first = duration(text).map_err(wrong)?;
        return Ok(Backoff {
            first,
            cap: first,
            factor: 1,
        });
    };
    let (cap, factor) = match rest.split_once('*') {
        None => (rest, FACTOR),
        Some((cap, factor)) => (cap, factor.parse().map_err(|_| WRONG.to_owned())?),
    };
    let backoff = Backoff {
        first: duration(first).map_err(wrong)?,
        cap: duration(cap).map_err(wrong)?,
        factor,
    };
    match backoff.factor > 0 && backoff.first <= backoff.cap {
        true => Ok(backoff),
        false => Err(WRONG.into()),
    }
}

/// A back-off of a worker: for all its types, or for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypeBackoff {
    pub(super) task_type: Option<String>,
    pub(super) backoff: Backoff,
}

/// Reads `5s` or `TYPE=5s`.
pub(super) fn type_backoff(text: &str) -> Result<TypeBackoff, String> {
    let (task_type, text) = match text.split_once('=') {
        Some((task_type, text)) => (Some(task_type.to_owned()), text),
        None => (None, text),
    };
    Ok(TypeBackoff {
        task_type,
        backoff: backoff(text)?,
    })
}

/// The back-off of a type: its own, or that of all.
pub(super) fn of_type(backoffs: &[TypeBackoff], task_type: &str) -> Option<Backoff> {
    let named = |backoff: &&TypeBackoff| backoff.task_type.as_deref() == Some(task_type);
    let found = backoffs.iter().rfind(named);
    let found = found.or_else(|| backoffs.iter().rfind(|backoff| backoff.task_type.is_none()));
    found.map(|found| found.backoff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn back_offs_are_read() {
        let check = |text: &str, first_ms: u64, cap_ms: u64, factor: u32| {
            let expected = Backoff {
                first: Duration::from_millis(first_ms),
                cap: Duration::from_millis(cap_ms),
                factor,
            };
            assert_eq!(backoff(text), Ok(expected), "{text}");
        };
        check("5s", 5_000, 5_000, 1);
        check("500ms..2m", 500, 120_000, 2);
        check("1s..1h*4", 1_000, 3_600_000, 4);
        for wrong in [
            "", "soon", "5s..", "..5s", "5s..1s", "1s..2s*0", "1s..2s*x", "0s",
        ] {
            assert!(backoff(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_type_has_its_own_back_off_or_that_of_all() {
        let given = ["1s", "mail=2s", "mail=3s"].map(|text| type_backoff(text).unwrap());
        let of = |task_type: &str| of_type(&given, task_type).map(|found| found.first.as_secs());
        assert_eq!((of("mail"), of("other")), (Some(3), Some(1)));
        assert_eq!(of_type(&given[1..], "other"), None);
    }
}
