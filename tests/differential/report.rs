//! Collects mismatches, one per probable bug, and fails the test with all of them.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::command::Sequence;
use crate::run::{Mismatch, Pair};
use crate::shrink::shrink;

/// After so many distinct mismatches a run stops, unless told to go on.
const ENOUGH: usize = 12;
const ENOUGH_WHEN_GOING_ON: usize = 200;

#[derive(Default)]
pub(crate) struct Findings {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    signatures: BTreeSet<String>,
    reports: Vec<String>,
    given_up: bool,
}

impl Findings {
    /// Shrinks and keeps a mismatch, unless one like it is known already.
    pub(crate) fn add(
        &self,
        pair: &mut Pair,
        sequence: &Sequence,
        seed: Option<u64>,
        mismatch: &Mismatch,
    ) {
        let signature = mismatch.difference.signature.clone();
        if !self.lock().signatures.insert(signature.clone()) {
            return;
        }
        if let Err(reason) = pair.restart() {
            self.give_up(reason);
            return;
        }
        // Shrinking may take long, and what it began with is lost if the run is stopped meanwhile.
        println!(
            "{}: a difference [{signature}] is being shrunk",
            sequence.name
        );
        let (sequence, mismatch) = shrink(pair, sequence, mismatch);
        let report = describe(&sequence, seed, &mismatch);
        println!("{report}");
        self.lock().reports.push(report);
    }

    /// Keeps a failure that is no mismatch.
    pub(crate) fn add_failure(&self, report: String) {
        println!("{report}");
        self.lock().reports.push(report);
    }

    /// Keeps a failure after which there is no use in going on.
    pub(crate) fn give_up(&self, report: String) {
        self.add_failure(report);
        self.lock().given_up = true;
    }

    pub(crate) fn are_enough(&self) -> bool {
        let enough = if std::env::var_os("KUMI_DIFF_KEEP_GOING").is_some() {
            ENOUGH_WHEN_GOING_ON
        } else {
            ENOUGH
        };
        let inner = self.lock();
        inner.given_up || inner.reports.len() >= enough
    }

    /// Fails the test if there is anything to fail it with.
    pub(crate) fn conclude(self) {
        let reports = self.inner.into_inner().expect("no holder panics").reports;
        assert!(
            reports.is_empty(),
            "{} difference(s) from the reference:\n\n{}",
            reports.len(),
            reports.join("\n")
        );
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder panics")
    }
}

fn describe(sequence: &Sequence, seed: Option<u64>, mismatch: &Mismatch) -> String {
    let difference = &mismatch.difference;
    let replay = match seed {
        Some(seed) => format!(
            "KUMI_DIFF_SEED={seed} cargo test -p kumi-server --test differential generated -- --nocapture"
        ),
        None => "cargo test -p kumi-server --test differential generated -- --nocapture".into(),
    };
    let log = if difference.tested.contains("closed") || difference.tested.contains("no answer") {
        format!("  kumi's log:\n{}", mismatch.tested_log)
    } else {
        String::new()
    };
    format!(
        "--- {} [{}]\n{}  at {}\n    redis: {}\n    kumi:  {}\n    ({})\n{log}  replay: {replay}\n",
        sequence.name,
        difference.signature,
        sequence.describe(),
        difference.place,
        difference.reference,
        difference.tested,
        difference.reason,
    )
}
