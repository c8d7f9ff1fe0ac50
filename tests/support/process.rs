//! The programs that tests start: signals for them, and their ends.

use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;
use std::time::{Duration, Instant};

/// More than any program needs to end.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs and is ours");
}

/// Kills it without a chance to say anything.
pub(crate) fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits for its end, and answers the exit code; none if it was killed.
#[track_caller]
pub(crate) fn ended(child: &mut Child) -> Option<i32> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            return status.code();
        }
        assert!(started.elapsed() < TIMEOUT, "still running");
        // There is no portable way to wait for a child with a limit; nothing depends on how long this takes.
        std::thread::sleep(Duration::from_millis(5));
    }
}
