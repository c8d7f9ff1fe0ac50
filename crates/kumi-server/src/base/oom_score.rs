//! `oom-score-adj`: the score by which the system chooses a process to end when memory is short.
//!
//! The score belongs to the process, so only a server that is the whole program sets it. The score that the process was
//! started with is read before the first change, and is set again by `oom-score-adj no`.

use crate::base::errors::plain;
use kumi_store::ApplyError;
use kumi_store::config::{OomScoreAdj, Settings};
use std::fs;
use std::io;

/// Where Linux keeps the score. Elsewhere there is no such file, and every change fails.
const PATH: &str = "/proc/self/oom_score_adj";
/// The scores that the system takes.
const LEAST: i32 = -1000;
const MOST: i32 = 1000;

/// Directives that change the score.
const DIRECTIVES: [&str; 2] = ["oom-score-adj", "oom-score-adj-values"];

/// The score of the process before the server changed it.
#[derive(Debug, Default)]
pub(crate) struct OomScore {
    /// None while the score is as it was.
    base: Option<i32>,
}

/// What a change that has to be taken back needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    base: Option<i32>,
    score: i32,
}

impl OomScore {
    /// Sets the score at startup. As in Redis, a server that may not do so runs without it.
    pub(crate) fn start(&mut self, settings: &Settings, owns_process: bool) {
        if settings.oom_score_adj == OomScoreAdj::No {
            return;
        }
        if !owns_process {
            tracing::warn!("'oom-score-adj' has no effect: {NOT_OURS}");
            return;
        }
        if let Err(error) = self.set(settings) {
            tracing::warn!("{error}");
        }
    }

    /// Applies a changed configuration. Returns what [`OomScore::restore`] needs, or none if nothing was set.
    pub(crate) fn apply(
        &mut self,
        settings: &Settings,
        changed: &[&'static str],
        owns_process: bool,
    ) -> Result<Option<Before>, ApplyError> {
        let Some(&directive) = changed.iter().find(|name| DIRECTIVES.contains(name)) else {
            return Ok(None);
        };
        let idle = settings.oom_score_adj == OomScoreAdj::No && self.base.is_none();
        if idle {
            return Ok(None);
        }
        let refused = |message: String| ApplyError {
            directive: directive.into(),
            message,
        };
        if !owns_process {
            return Err(refused(NOT_OURS.into()));
        }
        self.set(settings).map_err(|error| {
            tracing::warn!("{error}");
            refused("Failed to apply new oom_score_adj configuration, check server logs.".into())
        })
    }

    /// Takes a change back, for a configuration of which another part could not be applied.
    pub(crate) fn restore(&mut self, before: Before) {
        match write(before.score) {
            Ok(()) => self.base = before.base,
            Err(error) => tracing::warn!("{error}"),
        }
    }

    fn set(&mut self, settings: &Settings) -> Result<Option<Before>, String> {
        let score = read()?;
        let before = Before {
            base: self.base,
            score,
        };
        let base = self.base.unwrap_or(score);
        let [server, ..] = settings.oom_scores;
        let (wanted, base) = match settings.oom_score_adj {
            OomScoreAdj::No => (base, None),
            OomScoreAdj::Relative => (base + server, Some(base)),
            OomScoreAdj::Absolute => (server, Some(base)),
        };
        write(wanted.clamp(LEAST, MOST))?;
        self.base = base;
        Ok(Some(before))
    }
}

const NOT_OURS: &str = "the process belongs to the program that the server is a part of";

fn read() -> Result<i32, String> {
    let text = fs::read_to_string(PATH).and_then(|text| {
        let score = text.trim().parse();
        score.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    });
    text.map_err(|error| format!("Unable to read oom_score_adj: {}", plain(&error)))
}

fn write(score: i32) -> Result<(), String> {
    fs::write(PATH, format!("{score}\n"))
        .map_err(|error| format!("Unable to write oom_score_adj: {}", plain(&error)))
}
