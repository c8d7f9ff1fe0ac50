//! `serve --pipe`: one long-lived program that reads requests as JSON lines and writes answers as JSON lines.
//!
//! ```text
//! to it      {"id":7,"request":"a.b~01J…","method":"a.b","unit":"web","attempt":1,"payload":"text"}
//! from it    {"id":7,"payload":"text"}   {"id":7,"payload_base64":"/w=="}   {"id":7,"error":"text"}
//! ```
//! `id` is a number of ours, not the request's ID: two units may use the same bare ID at a time. A line with an `id` and
//! nothing that can be sent becomes an error that says so. A line that is about no request is told on standard error and
//! skipped; the request it was meant for ends with its time.

use super::failure::Failure;
use super::group::Group;
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

/// The program, while it runs. Dropping it kills it, with everything it started.
pub(super) struct Program {
    pub(super) pipe: Arc<Pipe>,
    child: Child,
    group: Group,
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
            group: Group::of(&child),
            child,
            reader,
        })
    }

    /// Waits until the program has ended or closed its output: no more answers will come. Whoever waits for one then
    /// waits in vain.
    pub(super) async fn ended(&mut self) {
        tokio::select! {
            // A reader that panicked has ended too.
            _ = &mut self.reader => {}
            _ = self.child.wait() => {
                self.group.leave();
                // Its last words are on their way, unless it left something behind that keeps its output open.
                if timeout(exec::LEFTOVER, &mut self.reader).await.is_err() {
                    self.reader.abort();
                }
            }
        }
        self.pipe.end();
    }

    /// Ends its input and waits for its end, but not for ever.
    pub(super) async fn stop(mut self) {
        let _ = self.pipe.lines.send(None).await;
        match timeout(FAREWELL, self.child.wait()).await {
            Ok(_) => self.group.leave(),
            Err(_) => eprintln!("kumi: the program did not end with its input; killing it"),
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
    /// Hands a request over and waits for its answer. Dropping the future closes the request: an answer that comes
    /// all the same is told as one to nothing.
    pub(super) async fn answer(&self, request: &Request) -> Outcome {
        let gone = || Outcome::Bad("the backend's program has ended".into());
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(answer) = self.expect(id) else {
            return gone();
        };
        let _open = Open { pipe: self, id };
        if self.lines.send(Some(line(id, request))).await.is_err() {
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
                // The request may have been given up this very moment.
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

/// A request that the program has. Dropping it takes it off the list.
struct Open<'a> {
    pipe: &'a Pipe,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.pipe.waiting().answers.remove(&self.id);
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

/// Reads which request a line is about and what it answers, or says why it is about none.
fn outcome(line: &[u8]) -> Result<(u64, Outcome), &'static str> {
    let object: Map<String, Value> =
        serde_json::from_slice(line).map_err(|_| "not a JSON object")?;
    let id = object.get("id").and_then(Value::as_u64).ok_or("no id")?;
    // The request is open whatever else the line says, so its caller has to hear of it.
    let outcome = answer_in(&object)
        .unwrap_or_else(|reason| Outcome::Bad(format!("the backend's program {reason}").into()));
    Ok((id, outcome))
}

fn answer_in(object: &Map<String, Value>) -> Result<Outcome, &'static str> {
    if let Some(error) = object.get("error") {
        Ok(Outcome::Bad(text(error).into()))
    } else if let Some(payload) = object.get("payload_base64") {
        let bytes = payload.as_str().and_then(base64::decode);
        let bytes = bytes.ok_or("answered with a payload_base64 that is not Base64")?;
        Ok(Outcome::Good(bytes.into()))
    } else if let Some(payload) = object.get("payload") {
        Ok(Outcome::Good(text(payload).into()))
    } else {
        Err("answered with neither payload nor error")
    }
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
        check(r#"{"payload":"x"}"#, Err("no id"));
        check("[]", Err("not a JSON object"));
    }

    #[test]
    fn a_line_about_a_request_that_answers_nothing_is_an_error() {
        let check = |line: &str, reason: &str| {
            let text = format!("the backend's program answered with {reason}");
            let expected = Ok((7, Outcome::Bad(text.into())));
            assert_eq!(outcome(line.as_bytes()), expected, "{line}");
        };
        check(r#"{"id":7}"#, "neither payload nor error");
        for payload in ["\"?\"", "null", "7"] {
            check(
                &format!(r#"{{"id":7,"payload_base64":{payload}}}"#),
                "a payload_base64 that is not Base64",
            );
        }
    }
}
