//! SIGHUP, the end of a terminal, for commands that run until they are stopped.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for SIGHUP; `None` where it was ignored when the process was started, as with nohup. Listening would undo that.
pub(super) fn listen() -> io::Result<Option<Signal>> {
    match is_ignored() {
        true => Ok(None),
        false => signal(SignalKind::hangup()).map(Some),
    }
}

/// Waits for SIGHUP, or for ever where it is ignored.
pub(super) async fn received(hangup: &mut Option<Signal>) {
    match hangup {
        Some(hangup) => drop(hangup.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether SIGHUP is ignored. Where there is no /proc to ask, it is not.
fn is_ignored() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| has_hangup_ignored(&status))
}

fn has_hangup_ignored(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is number 1, the lowest bit.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_seen() {
        let check = |mask, expected| {
            let status = format!("Name:\tkumi\nSigBlk:\tffff\nSigIgn:\t{mask}\nSigCgt:\t1\n");
            assert_eq!(has_hangup_ignored(&status), expected, "{mask}");
        };
        check("0000000000001000", false);
        check("0000000000001001", true);
        check("?", false);
        assert!(!has_hangup_ignored(""));
    }
}
