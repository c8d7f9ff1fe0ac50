//! Child processes that never outlive the bench.
//!
//! Every child is owned by one [`Nursery`]. A [`Child`] that is dropped kills its process; a signal that ends the bench
//! kills all of them and removes the temporary directory first. Children get process groups of their own, so that
//! ctrl-c reaches the bench alone and the order of the end is ours. What this cannot catch is SIGKILL to the bench.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// How often a wait looks whether the child has ended.
const WAIT_STEP: Duration = Duration::from_millis(5);

/// Whether a signal is ending the bench.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Does not return while a signal ends the bench: what fails then, since its servers are gone, is no failure to tell.
pub(crate) fn leave_to_signal() {
    while ENDING.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// The owner of all children. Clones share one set.
#[derive(Clone)]
pub(crate) struct Nursery {
    state: Arc<Mutex<State>>,
}

struct State {
    children: BTreeMap<u64, process::Child>,
    next_id: u64,
    /// Set when a signal ends the bench: no child may be born after that.
    closed: bool,
    /// The temporary directory, removed when a signal ends the bench.
    directory: PathBuf,
}

impl Nursery {
    /// A nursery that also watches for the signals that end a program.
    pub(crate) fn new(directory: PathBuf) -> Result<Nursery> {
        let state = State {
            children: BTreeMap::new(),
            next_id: 0,
            closed: false,
            directory,
        };
        let nursery = Nursery {
            state: Arc::new(Mutex::new(state)),
        };
        let mut signals =
            Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot watch for signals")?;
        let watched = nursery.clone();
        thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                ENDING.store(true, Ordering::SeqCst);
                watched.close();
                process::exit(128 + signal);
            }
        });
        Ok(nursery)
    }

    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut state = self.lock();
        if state.closed {
            return Err(io::Error::new(
                io::ErrorKind::Interrupted,
                "the bench is ending",
            ));
        }
        let mut child = command.process_group(0).spawn()?;
        let id = state.next_id;
        state.next_id += 1;
        let handle = Child {
            nursery: self.clone(),
            id,
            pid: child.id(),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
        };
        state.children.insert(id, child);
        Ok(handle)
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        for child in state.children.values_mut() {
            end(child);
        }
        // Nothing is left to do about a directory that cannot be removed; it holds logs only.
        let _ = std::fs::remove_dir_all(&state.directory);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running child; dropping it kills the process.
pub(crate) struct Child {
    nursery: Nursery,
    id: u64,
    pid: u32,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
}

impl Child {
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// How the child ended, if it has.
    pub(crate) fn ended(&self) -> io::Result<Option<ExitStatus>> {
        match self.nursery.lock().children.get_mut(&self.id) {
            Some(child) => child.try_wait(),
            None => Ok(None),
        }
    }

    /// Waits for the child; `None` when it still runs after `limit`.
    ///
    /// It polls instead of blocking, because the signal watcher must be able to take the lock meanwhile.
    pub(crate) fn wait(&self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            if start.elapsed() >= limit {
                return Ok(None);
            }
            thread::sleep(WAIT_STEP);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let child = self.nursery.lock().children.remove(&self.id);
        if let Some(mut child) = child {
            end(&mut child);
        }
    }
}

/// Kills and reaps. SIGKILL, because no server here has anything worth saving.
fn end(child: &mut process::Child) {
    // Both fail only for a process that is already gone.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn nursery() -> Nursery {
        let state = State {
            children: BTreeMap::new(),
            next_id: 0,
            closed: false,
            directory: PathBuf::from("/nonexistent"),
        };
        Nursery {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn alive(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_dropped_child_is_gone() {
        let child = nursery().spawn(Command::new("sleep").arg("600")).unwrap();
        let pid = child.pid();
        assert!(alive(pid));
        drop(child);
        assert!(!alive(pid));
    }

    #[test]
    fn closing_ends_every_child_and_lets_none_be_born() {
        let nursery = nursery();
        let child = nursery.spawn(Command::new("sleep").arg("600")).unwrap();
        nursery.close();
        assert!(!alive(child.pid()));
        assert!(nursery.spawn(&mut Command::new("true")).is_err());
    }

    #[test]
    fn waiting_gives_up_at_its_limit() {
        let nursery = nursery();
        let child = nursery.spawn(Command::new("sleep").arg("600")).unwrap();
        assert!(child.wait(Duration::from_millis(20)).unwrap().is_none());
        let short = nursery.spawn(&mut Command::new("true")).unwrap();
        assert!(
            short
                .wait(Duration::from_secs(60))
                .unwrap()
                .unwrap()
                .success()
        );
    }
}
