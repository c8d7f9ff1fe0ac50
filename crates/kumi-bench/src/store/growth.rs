//! Placeholder until the engine's API is there.
use crate::args::Plan;
use crate::progress::Progress;
use crate::report::Report;
use crate::store::servers::Stage;
use anyhow::Result;
pub(crate) fn measure(
    _stage: &Stage,
    _plan: &Plan,
    _progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    report.note("growth is not measured yet");
    Ok(())
}
