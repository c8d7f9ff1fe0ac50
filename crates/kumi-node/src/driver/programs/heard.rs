//! For tests: a program whose output can be waited for.

use super::{Launcher, Output, Program};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Sends what it gets, notes with an exclamation mark before them.
struct Sent(mpsc::UnboundedSender<String>);

impl Output for Sent {
    fn text(&self, program: &str, text: &[u8]) {
        let _ = self
            .0
            .send(format!("{program}: {}", String::from_utf8_lossy(text)));
    }

    fn note(&self, program: &str, line: &str) {
        let _ = self.0.send(format!("!{program}: {line}"));
    }
}

/// What a program wrote, and what was said about it.
pub(super) struct Heard(mpsc::UnboundedReceiver<String>);

/// A program of the name `api`, without a shim.
pub(super) fn program(command: &str) -> (Program, Heard) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let program = Program::new("api", command, &Launcher::plain(), Arc::new(Sent(sender)));
    (program, Heard(receiver))
}

impl Heard {
    /// The next text or note.
    pub(super) async fn next(&mut self) -> String {
        let next = timeout(Duration::from_secs(30), self.0.recv()).await;
        next.expect("a line within 30 s").expect("a program")
    }

    /// Whether nothing more was written or said, after all that could do so is gone.
    pub(super) async fn is_silent(&mut self) -> bool {
        self.0.recv().await.is_none()
    }
}

/// Whether a process exists and is not only waiting to be reaped.
pub(super) fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits for the end of a process.
pub(super) async fn gone(pid: &str) {
    let gone = async {
        while is_running(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let gone = timeout(Duration::from_secs(30), gone).await;
    gone.expect("it ends within 30 s");
}
