//! The host of a simulated server: a snapshot becomes a base on the simulated disk, one step of it at a time.

use super::SimulatedDisk;
use crate::files::aof::files::{AofFile, Files};
use crate::files::aof::rewrite::{Install, RewritePlan};
use kumi_store::{
    ApplyError, Config, Host, HostFacts, Now, Outputs, Piece, SnapshotEncoder, SnapshotPurpose,
    SnapshotSink, Store,
};
use std::io::{self, IoSlice, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A host with a disk and a clock that moves when it is read, so that slices end.
#[derive(Debug)]
pub(super) struct SnapshotHost {
    disk: SimulatedDisk,
    pub(super) now: Now,
    /// Where the next snapshot is written, and what follows when it is complete.
    pub(super) plan: Option<RewritePlan>,
    /// How the last snapshot ended.
    pub(super) ended: Option<io::Result<()>>,
}

impl SnapshotHost {
    pub(super) fn new(disk: &SimulatedDisk, now: Now) -> Self {
        Self {
            disk: disk.clone(),
            now,
            plan: None,
            ended: None,
        }
    }
}

impl Host for SnapshotHost {
    fn now(&mut self) -> Now {
        self.now.mono_ns += 100_000;
        self.now
    }

    fn apply_config(&mut self, _: &Config, _: &[&'static str]) -> Result<(), ApplyError> {
        Ok(())
    }

    fn rewrite_config(&mut self, _: &Config) -> Result<(), String> {
        Err("there is no configuration file".into())
    }

    fn start_snapshot(
        &mut self,
        _: &Config,
        _: SnapshotPurpose,
        encoder: SnapshotEncoder,
    ) -> io::Result<Box<dyn SnapshotSink>> {
        let plan = self.plan.take().ok_or(io::ErrorKind::NotFound)?;
        let RewritePlan {
            temporary,
            path,
            install,
            ..
        } = plan;
        Ok(Box::new(Sink {
            encoder,
            file: Appending(self.disk.create(&temporary)?),
            disk: self.disk.clone(),
            temporary,
            path,
            install: Some(install),
            step: Step::Write,
            failed: None,
        }))
    }

    fn snapshot_ended(&mut self, _: SnapshotPurpose, outcome: &io::Result<()>) {
        self.ended = Some(match outcome {
            Ok(()) => Ok(()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        });
    }

    fn facts(&mut self) -> HostFacts {
        HostFacts::default()
    }

    fn sleep(&mut self, _: Duration) {}

    fn serve_others(&mut self, _: &mut Store, _: &mut Outputs) -> bool {
        true
    }
}

/// What is done next with the file of a snapshot.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write,
    Sync,
    Prepare,
    Rename,
    SyncDirectory,
    Install,
    Done,
}

#[derive(Debug)]
struct Sink {
    encoder: SnapshotEncoder,
    file: Appending,
    disk: SimulatedDisk,
    temporary: PathBuf,
    path: PathBuf,
    install: Option<Install>,
    step: Step,
    failed: Option<io::Error>,
}

impl SnapshotSink for Sink {
    fn push(&mut self, piece: Piece) {
        let written = self.encoder.write(&piece, &mut self.file, &mut || Ok(()));
        self.failed = self.failed.take().or(written.err());
    }

    fn queued_bytes(&self) -> usize {
        0
    }

    fn keys_written(&self) -> u64 {
        0
    }

    fn end(&mut self) {
        let written = self.encoder.finish(&mut self.file);
        self.failed = self.failed.take().or(written.err());
        self.step = Step::Sync;
    }

    /// Asked once a turn: a step is done in each.
    fn outcome(&mut self) -> Option<io::Result<()>> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let (next, done) = match self.step {
            Step::Write => return None,
            Step::Sync => (Step::Prepare, self.file.0.sync()),
            Step::Prepare
                if self
                    .install
                    .as_ref()
                    .is_some_and(|install| !install.may_run().load(Ordering::Acquire)) =>
            {
                return None;
            }
            Step::Prepare => (
                Step::Rename,
                self.install.as_ref().map_or(Ok(()), Install::prepare),
            ),
            Step::Rename => (
                Step::SyncDirectory,
                self.disk.rename(&self.temporary, &self.path),
            ),
            Step::SyncDirectory => (Step::Install, self.disk.sync_directory(&self.path)),
            Step::Install => (Step::Done, self.install.take().map_or(Ok(()), Install::run)),
            Step::Done => return Some(Ok(())),
        };
        self.step = next;
        done.err().map(Err)
    }
}

/// Appends to a file.
#[derive(Debug)]
struct Appending(Arc<dyn AofFile>);

impl Write for Appending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(&mut [IoSlice::new(bytes)])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
