//! `serve --pipe`: one long-lived program that reads requests as JSON lines and writes answers as JSON lines.
//!
//! ```text
//! to it      {"id":7,"request":"a.b~01J…","method":"a.b","unit":"web","attempt":1,"payload":"text"}
//! from it    {"id":7,"payload":"text"}   {"id":7,"payload_base64":"/w=="}   {"id":7,"error":"text"}
//! ```
//! `id` is a number of ours, not the request's ID: two units may use the same bare ID at a time. A line that cannot be
//! read is told on standard error and skipped; a request whose answer never comes is the program's fault, and its caller
//! gets a timeout.

use super::failure::Failure;
use super::{base64, exec, terminal};
use kumi_muf::{Outcome, Request};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longest line of the program: a payload of 1 MiB, with room for escapes.
const LINE_LIMIT: u64 = 8 << 20;

/// Lines on their way to the program.
const QUEUE_LIMIT: usize = 16;

/// How long the program may take to end after its input has.
const FAREWELL: Duration = Duration::from_secs(5);

/// The program, while it runs. Dropping it kills it.
pub(super) struct Program {
    pub(super) pipe: Arc<Pipe>,
    child: Child,
    reader: JoinHandle<()>,
}

impl Program {
    pub(super) fn start(command: &str) -> Result<Self, Failure> {
        let mut child = exec::shell(command)
            .spawn()
            .map_err(|error| Failure::io("starting sh", error))?;
        let (lines, queue) = mpsc::channel(QUEUE_LIMIT);
        let pipe = Arc::new(Pipe {
            lines,
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
        });
        if let Some(stdin) = child.stdin.take() {
            tokio::spawn(feed(stdin, queue));
        }
        let stdout = child.stdout.take();
        let reader = tokio::spawn({
            let pipe = pipe.clone();
            async move {
                if let Some(stdout) = stdout {
                    pipe.listen(stdout).await;
                }
                pipe.end();
            }
        });
        Ok(Self {
            pipe,
            child,
            reader,
        })
    }

    /// Waits until the program has closed its output, which is its end as far as answers go.
    pub(super) async fn ended(&mut self) {
        // A reader that panicked has ended too.
        let _ = (&mut self.reader).await;
    }

    /// Ends its input and waits for its end, but not for ever.
    pub(super) async fn stop(mut self) {
        let _ = self.pipe.lines.send(None).await;
        if timeout(FAREWELL, self.child.wait()).await.is_err() {
            eprintln!("kumi: the program did not end with its input; killing it");
        }
    }
}

/// Writes lines until it is told to end, or the program does not listen any more.
async fn feed(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Option<String>>) {
    while let Some(Some(line)) = queue.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
}

/// The way to the program and back.
pub(super) struct Pipe {
    /// Lines; none is the end.
    lines: mpsc::Sender<Option<String>>,
    waiting: Mutex<Waiting>,
    next: AtomicU64,
}

/// Requests without an answer.
#[derive(Default)]
struct Waiting {
    answers: HashMap<u64, oneshot::Sender<Outcome>>,
    ended: bool,
}

impl Pipe {
    /// Hands a request over and waits for its answer.
    pub(super) async fn answer(&self, request: &Request) -> Outcome {
        let gone = || Outcome::Bad("the backend's program has ended".into());
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(answer) = self.expect(id) else {
            return gone();
        };
        if self.lines.send(Some(line(id, request))).await.is_err() {
            self.waiting().answers.remove(&id);
            return gone();
        }
        answer.await.unwrap_or_else(|_| gone())
    }

    fn expect(&self, id: u64) -> Option<oneshot::Receiver<Outcome>> {
        let mut waiting = self.waiting();
        if waiting.ended {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        waiting.answers.insert(id, sender);
        Some(receiver)
    }

    async fn listen(&self, stdout: ChildStdout) {
        let mut stdout = BufReader::new(stdout);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = (&mut stdout).take(LINE_LIMIT);
            match limited.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) if line.len() as u64 == LINE_LIMIT => {
                    eprintln!("kumi: the program wrote a line of more than {LINE_LIMIT} bytes");
                    return;
                }
                Ok(_) if line.trim_ascii().is_empty() => {}
                Ok(_) => self.take(&line),
            }
        }
    }

    fn take(&self, line: &[u8]) {
        match outcome(line) {
            Ok((id, outcome)) => match self.waiting().answers.remove(&id) {
                // The handler may have been dropped meanwhile.
                Some(answer) => drop(answer.send(outcome)),
                None => eprintln!("kumi: the program answered {id}, which is not open"),
            },
            Err(reason) => eprintln!(
                "kumi: the program wrote a line that is no answer ({reason}): {}",
                terminal::quoted(&line[..line.len().min(200)])
            ),
        }
    }

    /// Whoever waits now waits in vain.
    fn end(&self) {
        let mut waiting = self.waiting();
        waiting.ended = true;
        waiting.answers.clear();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(id: u64, request: &Request) -> String {
    let mut object = Map::new();
    object.insert("id".into(), id.into());
    object.insert("request".into(), request.id().into());
    object.insert("method".into(), request.target().into());
    object.insert("unit".into(), request.unit().into());
    object.insert("attempt".into(), request.attempt().into());
    terminal::put(&mut object, "payload", request.payload());
    format!("{}\n", Value::from(object))
}

/// Reads an answer, or says why it is none.
fn outcome(line: &[u8]) -> Result<(u64, Outcome), &'static str> {
    let object: Map<String, Value> =
        serde_json::from_slice(line).map_err(|_| "not a JSON object")?;
    let id = object.get("id").and_then(Value::as_u64).ok_or("no id")?;
    let outcome = if let Some(error) = object.get("error") {
        Outcome::Bad(text(error).into())
    } else if let Some(payload) = object.get("payload_base64") {
        let bytes = payload.as_str().and_then(base64::decode);
        Outcome::Good(bytes.ok_or("payload_base64 is not Base64")?.into())
    } else if let Some(payload) = object.get("payload") {
        Outcome::Good(text(payload).into())
    } else {
        return Err("neither payload nor error");
    };
    Ok((id, outcome))
}

/// A string as it is, anything else as JSON.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_answers() {
        let check = |line: &str, expected| assert_eq!(outcome(line.as_bytes()), expected, "{line}");
        let good = |bytes: &'static [u8]| Ok((7, Outcome::Good(bytes.into())));
        check(r#"{"id":7,"payload":"text"}"#, good(b"text"));
        check(r#"{"id":7,"payload":[1, 2]}"#, good(b"[1,2]"));
        check(r#"{"id":7,"payload_base64":"/w=="}"#, good(b"\xff"));
        check(
            r#"{"id":7,"error":"no"}"#,
            Ok((7, Outcome::Bad("no".into()))),
        );
        check(r#"{"id":7}"#, Err("neither payload nor error"));
        check(r#"{"payload":"x"}"#, Err("no id"));
        check("[]", Err("not a JSON object"));
        check(
            r#"{"id":7,"payload_base64":"?"}"#,
            Err("payload_base64 is not Base64"),
        );
    }
}
