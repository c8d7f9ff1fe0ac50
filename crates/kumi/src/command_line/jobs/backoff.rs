//! Back-offs as they stand on the command line: `5s`, `1s..10m`, `1s..10m*4`.

use kumi_jobs::Backoff;
use kumi_node::config::backoff;

/// A back-off of a worker: for all its types, or for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypeBackoff {
    pub(super) task_type: Option<String>,
    pub(super) backoff: Backoff,
}

/// Reads `5s` or `TYPE=5s`.
pub(super) fn type_backoff(text: &str) -> Result<TypeBackoff, &'static str> {
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

    #[test]
    fn a_type_has_its_own_back_off_or_that_of_all() {
        let given = ["1s", "mail=2s", "mail=3s"].map(|text| type_backoff(text).unwrap());
        let of = |task_type: &str| of_type(&given, task_type).map(|found| found.first.as_secs());
        assert_eq!((of("mail"), of("other")), (Some(3), Some(1)));
        assert_eq!(of_type(&given[1..], "other"), None);
    }
}
