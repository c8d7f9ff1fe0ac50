//! The parts of a measurement, one after the other: a part that fails leaves the others their figures.

use std::fmt::Debug;

use anyhow::{Result, bail};

use crate::progress::Progress;
use crate::report::Report;

/// Measures each of `parts` by `measure`, notes in the report which ones failed and why, and prints the end of the
/// report. An error if any part failed.
pub(crate) fn measure_parts<P: Copy + Debug>(
    parts: impl IntoIterator<Item = P>,
    progress: &Progress,
    mut report: Report,
    mut measure: impl FnMut(P, &mut Report) -> Result<()>,
) -> Result<()> {
    let mut failed = 0;
    for part in parts {
        if let Err(error) = measure(part, &mut report) {
            failed += 1;
            progress.line(&format!("{part:?} failed: {error:#}"));
            report.note(format!("{part:?} was not measured: {error:#}"));
        }
    }
    report.end();
    if failed > 0 {
        bail!("{failed} of the measurements failed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_fails_does_not_keep_the_next_from_being_measured() {
        let mut measured = Vec::new();
        let outcome = measure_parts(
            [1, 2, 3],
            &Progress::new(),
            Report::default(),
            |part, _: &mut Report| {
                measured.push(part);
                match part {
                    2 => bail!("no server"),
                    _ => Ok(()),
                }
            },
        );
        assert_eq!(measured, [1, 2, 3]);
        let error = outcome.unwrap_err().to_string();
        assert_eq!(error, "1 of the measurements failed");
    }

    #[test]
    fn parts_without_failure_succeed() {
        let outcome = measure_parts([1, 2], &Progress::new(), Report::default(), |_, _| Ok(()));
        assert!(outcome.is_ok());
    }
}
