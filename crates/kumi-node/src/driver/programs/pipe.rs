//! One long-lived program that reads requests as JSON lines and writes answers as JSON lines.
//!
//! ```text
//! to it      {"id":7,"request":"a.b~01J…","method":"a.b","unit":"web","attempt":1,"payload":"text"}
//! from it    {"id":7,"payload":"text"}   {"id":7,"payload_base64":"/w=="}   {"id":7,"error":"text"}
//! ```
//! `id` is a number of ours, not the request's ID: two units may use the same bare ID at a time. A line that names a
//! request and holds nothing that can be sent is answered with an error. A line without a readable id is reported and
//! skipped; the request it was meant for ends with its time. JSON is passed on as it is written.

use super::child::LEFTOVER;
use super::launch::{Group, Watched};
use super::lines::pass_on;
use super::{Output, Program};
use base64::prelude::{BASE64_STANDARD, Engine};
use kumi_common::Shown;
use kumi_muf::{Outcome, Request};
use rustix::process::Signal;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longest line of the program, without its end: a payload of 1 MiB, with room for escapes.
const LINE_LIMIT: u64 = 8 << 20;

/// Lines on their way to the program.
const QUEUE_LIMIT: usize = 16;

/// How long the program may take to end after its input has, before it gets SIGTERM.
pub(super) const STOP_LIMIT: Duration = Duration::from_secs(5);

/// Bytes of a line that is no answer which a note shows.
const SHOWN_LIMIT: usize = 200;

/// The program, while it runs. Dropping it kills it, with everything it started.
pub(super) struct PipeProgram {
    pub(super) pipe: Arc<Pipe>,
    child: Child,
    group: Group,
    /// What kills the group when this process is killed; dropped after the group.
    _watched: Watched,
    /// Reads its output; none when that has ended.
    reader: Option<JoinHandle<()>>,
    /// Passes its standard error on; none when that has ended, or is this process's.
    errors: Option<JoinHandle<()>>,
    /// Writes its input.
    feeder: Option<JoinHandle<()>>,
}

impl PipeProgram {
    pub(super) fn start(program: &Program) -> io::Result<Self> {
        let mut command = program.prepared()?;
        if program.captures_errors {
            command.stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let stderr = child.stderr.take();
        let errors = stderr.map(|stderr| tokio::spawn(pass_on(stderr, program.clone())));
        let (lines, queue) = mpsc::channel(QUEUE_LIMIT);
        let pipe = Arc::new(Pipe::new(lines, program));
        let stdin = child.stdin.take();
        let feeder = stdin.map(|stdin| tokio::spawn(feed(stdin, queue, pipe.clone())));
        let stdout = child.stdout.take();
        let reader = tokio::spawn({
            let pipe = pipe.clone();
            async move {
                if let Some(stdout) = stdout {
                    pipe.listen(BufReader::new(stdout)).await;
                }
                pipe.end();
            }
        });
        Ok(Self {
            pipe,
            group: Group::of(&child),
            _watched: program.launcher.watch(&child),
            child,
            reader: Some(reader),
            errors,
            feeder,
        })
    }

    /// Waits until the program has ended or closed its output: no more answers will come, and requests that it has are
    /// answered with ERR. None if it only closed its output. What a program that crashed had started is killed. Nothing is
    /// lost if the future is dropped.
    pub(super) async fn ended(&mut self) -> Option<ExitStatus> {
        let status = tokio::select! {
            () = read_out(&mut self.reader) => {
                // A program that ends closes its output a moment before.
                timeout(LEFTOVER, self.child.wait()).await.ok()
            }
            status = self.child.wait() => Some(status),
        };
        if let Some(status) = &status {
            if !status.as_ref().is_ok_and(ExitStatus::success) {
                // The program's successor may need the same port.
                self.group.signal(Signal::KILL);
            }
            self.group.leave();
            self.drain().await;
        }
        self.pipe.end();
        status?.ok()
    }

    /// Ends its input and waits for its end. A program that has not ended after `input_wait` gets SIGTERM, with everything
    /// that it started, and SIGKILL after `grace`. Dropping the future kills it at once.
    pub(super) async fn stop(mut self, input_wait: Duration, grace: Duration) {
        let ending = async {
            // A program that stopped reading leaves no room for the end either.
            let _ = self.pipe.lines.send(None).await;
            let _ = self.child.wait().await;
        };
        if timeout(input_wait, ending).await.is_err() {
            self.pipe
                .note("the program did not end with its input; killing it");
            self.group.signal(Signal::TERM);
            let _ = timeout(grace, self.child.wait()).await;
            self.group.signal(Signal::KILL);
            let _ = self.child.wait().await;
        }
        self.group.leave();
        self.drain().await;
    }

    /// Reads what an ended program wrote last. A process that it left behind may keep its output open, and is not
    /// waited for.
    async fn drain(&mut self) {
        let drained = async {
            read_out(&mut self.reader).await;
            read_out(&mut self.errors).await;
        };
        if timeout(LEFTOVER, drained).await.is_err() {
            for reader in [self.reader.take(), self.errors.take()].iter().flatten() {
                reader.abort();
            }
        }
    }
}

impl Drop for PipeProgram {
    fn drop(&mut self) {
        // A process that the program left behind may keep its input and its standard error open.
        for task in [&self.feeder, &self.errors].into_iter().flatten() {
            task.abort();
        }
    }
}

/// Waits until the program's output is read to its end.
async fn read_out(reader: &mut Option<JoinHandle<()>>) {
    if let Some(handle) = reader {
        // A reader that panicked has ended too.
        let _ = handle.await;
        *reader = None;
    }
}

/// Writes lines until the end is queued, or the program has closed its input. It gets no line behind that.
async fn feed(
    mut stdin: ChildStdin,
    mut queue: mpsc::Receiver<Option<(u64, String)>>,
    pipe: Arc<Pipe>,
) {
    while let Some(Some((id, line))) = queue.recv().await {
        if !pipe.give(id) {
            continue;
        }
        if stdin.write_all(line.as_bytes()).await.is_err() {
            pipe.take_back(id);
            break;
        }
    }
    // In this order: a request is noted before its line is queued, so none is queued and missed here.
    queue.close();
    pipe.drop_unwritten();
}

/// Reads to the end of a line and keeps nothing of it.
async fn skip_line(stdout: &mut (impl AsyncBufRead + Unpin)) -> io::Result<()> {
    loop {
        let bytes = stdout.fill_buf().await?;
        let (len, found) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (bytes.len(), false),
        };
        stdout.consume(len);
        // Nothing is left to read at the end of the output.
        if found || len == 0 {
            return Ok(());
        }
    }
}

/// The way to the program and back.
pub(super) struct Pipe {
    /// Lines, each with the id of its request; none is the end.
    lines: mpsc::Sender<Option<(u64, String)>>,
    waiting: Mutex<Waiting>,
    next: AtomicU64,
    /// The program's name, and who hears of it.
    name: Arc<str>,
    output: Arc<dyn Output>,
}

/// Requests without an answer.
#[derive(Default)]
struct Waiting {
    requests: HashMap<u64, Asked>,
    ended: bool,
}

/// A request without an answer.
struct Asked {
    /// Dropped without an answer if the program does not get the request.
    answer: oneshot::Sender<Outcome>,
    /// Writing its line has begun: the program may have it.
    written: bool,
}

impl Pipe {
    fn new(lines: mpsc::Sender<Option<(u64, String)>>, program: &Program) -> Self {
        Self {
            lines,
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            name: program.name.clone(),
            output: program.output.clone(),
        }
    }

    fn note(&self, line: impl Display) {
        self.output.note(&self.name, &line.to_string());
    }

    /// Hands a request over and waits for its answer. None if the program has ended, or closed its input, before it had
    /// the request. Dropping the future closes the request: an answer that comes later is reported.
    pub(super) async fn answer(&self, request: &Request) -> Option<Outcome> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let answer = self.expect(id)?;
        let _open = Open { pipe: self, id };
        self.lines.send(Some((id, line(id, request)))).await.ok()?;
        answer.await.ok()
    }

    fn expect(&self, id: u64) -> Option<oneshot::Receiver<Outcome>> {
        let mut waiting = self.waiting();
        if waiting.ended {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let asked = Asked {
            answer: sender,
            written: false,
        };
        waiting.requests.insert(id, asked);
        Some(receiver)
    }

    /// Notes that the line of a request is about to be written. False if the request is not open any more.
    fn give(&self, id: u64) -> bool {
        match self.waiting().requests.get_mut(&id) {
            Some(asked) => {
                asked.written = true;
                true
            }
            None => false,
        }
    }

    /// For a request whose line was not written to its newline: the program does not have it.
    fn take_back(&self, id: u64) {
        self.waiting().requests.remove(&id);
    }

    /// For requests whose lines will not be written.
    fn drop_unwritten(&self) {
        self.waiting().requests.retain(|_, asked| asked.written);
    }

    async fn listen(&self, mut stdout: impl AsyncBufRead + Unpin) {
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = (&mut stdout).take(LINE_LIMIT + 1);
            match limited.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) if line.len() as u64 > LINE_LIMIT && !line.ends_with(b"\n") => {
                    self.refuse_long(&line);
                    if skip_line(&mut stdout).await.is_err() {
                        return;
                    }
                }
                Ok(_) if line.trim_ascii().is_empty() => {}
                Ok(_) => self.take(&line),
            }
        }
    }

    fn take(&self, line: &[u8]) {
        match outcome(line) {
            Ok((id, outcome)) => self.close(id, outcome),
            Err(reason) => {
                let shown = Shown {
                    bytes: &line[..line.len().min(SHOWN_LIMIT)],
                    limit_chars: SHOWN_LIMIT,
                };
                self.note(format_args!(
                    "the program wrote a line that is no answer ({reason}): {shown}"
                ));
            }
        }
    }

    /// Answers for a line of which only the beginning was read.
    fn refuse_long(&self, beginning: &[u8]) {
        let reason = format!("wrote a line of more than {LINE_LIMIT} bytes");
        match leading_id(beginning) {
            Some(id) => self.close(id, bad(&reason)),
            None => self.note(format_args!(
                "the program {reason}, which does not begin with an id"
            )),
        }
    }

    fn close(&self, id: u64, outcome: Outcome) {
        match self.waiting().requests.remove(&id) {
            // The request may have been given up this very moment.
            Some(asked) => drop(asked.answer.send(outcome)),
            None => self.note(format_args!("the program answered {id}, which is not open")),
        }
    }

    /// Answers the requests that the program has with ERR. It gets no other.
    fn end(&self) {
        let mut waiting = self.waiting();
        waiting.ended = true;
        for (_, asked) in waiting.requests.drain() {
            if asked.written {
                // The request may have been given up this very moment.
                let _ = asked.answer.send(gone());
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request on the list. Dropping it takes it off.
struct Open<'a> {
    pipe: &'a Pipe,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.pipe.waiting().requests.remove(&self.id);
    }
}

/// The answer to a request whose program has ended. It may have run.
pub(super) fn gone() -> Outcome {
    bad("has ended")
}

fn line(id: u64, request: &Request) -> String {
    let mut object = Map::new();
    object.insert("id".into(), id.into());
    object.insert("request".into(), request.id().into());
    object.insert("method".into(), request.target().into());
    object.insert("unit".into(), request.unit().into());
    object.insert("attempt".into(), request.attempt().into());
    let payload = request.payload();
    match str::from_utf8(payload) {
        Ok(text) => object.insert("payload".into(), text.into()),
        Err(_) => object.insert(
            "payload_base64".into(),
            BASE64_STANDARD.encode(payload).into(),
        ),
    };
    format!("{}\n", Value::from(object))
}

/// Reads which request a line is about and what it answers, or says why it is about none. A request that a line names
/// in any way is open, so its caller has to get an answer, also if the line is wrong.
fn outcome(line: &[u8]) -> Result<(u64, Outcome), &'static str> {
    let text = String::from_utf8_lossy(line);
    let is_text = matches!(text, Cow::Borrowed(_));
    let (id, answer) = match serde_json::from_str::<HashMap<String, &RawValue>>(&text) {
        Ok(object) => {
            let id = object.get("id").ok_or("no id")?.get();
            let number = number_in(id).ok_or("an id that is no number")?;
            let answer = match id.parse::<u64>() {
                _ if !is_text => Err("wrote a line that is not UTF-8"),
                Err(_) => Err("answered with an id that is not the number it was given"),
                Ok(_) => answer_in(&object),
            };
            (number, answer)
        }
        Err(_) => {
            let id = leading_id(line).ok_or("not a JSON object")?;
            (id, Err("wrote a line that is not a JSON object"))
        }
    };
    Ok((id, answer.unwrap_or_else(bad)))
}

fn bad(reason: &str) -> Outcome {
    Outcome::Bad(format!("the backend's program {reason}").into())
}

/// Null is as good as absent, except for a payload: that may be any JSON.
fn answer_in(object: &HashMap<String, &RawValue>) -> Result<Outcome, &'static str> {
    let field = |name| object.get(name).map(|value| value.get());
    let set = |name| field(name).filter(|value| *value != "null");
    if let Some(error) = set("error") {
        Ok(Outcome::Bad(text(error)?.into()))
    } else if let Some(payload) = set("payload_base64") {
        let bytes = serde_json::from_str::<Cow<str>>(payload).ok();
        let bytes = bytes.and_then(|text| BASE64_STANDARD.decode(&*text).ok());
        let bytes = bytes.ok_or("answered with a payload_base64 that is not Base64")?;
        Ok(Outcome::Good(bytes.into()))
    } else if let Some(payload) = field("payload") {
        Ok(Outcome::Good(text(payload)?.into()))
    } else {
        Err("answered with neither payload nor error")
    }
}

/// What a string says, and anything else as it is written: every digit, and keys in their order.
fn text(value: &str) -> Result<String, &'static str> {
    match value.starts_with('"') {
        true => serde_json::from_str(value)
            .map_err(|_| "answered with a string that is not Unicode text"),
        false => Ok(value.to_owned()),
    }
}

/// The id that is meant by a JSON value: some languages write 7 as "7" or 7.0.
fn number_in(value: &str) -> Option<u64> {
    let value = value.trim_matches('"');
    let value = value.strip_suffix(".0").unwrap_or(value);
    value.parse().ok()
}

/// The id of a line that begins with one, whatever follows it.
fn leading_id(line: &[u8]) -> Option<u64> {
    let rest = line.trim_ascii_start().strip_prefix(b"{")?;
    let rest = rest.trim_ascii_start().strip_prefix(b"\"id\"")?;
    let rest = rest.trim_ascii_start().strip_prefix(b":")?;
    let rest = rest.trim_ascii_start();
    let end = rest.iter().position(|byte| matches!(byte, b',' | b'}'))?;
    number_in(str::from_utf8(rest[..end].trim_ascii_end()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::programs::heard::program;

    /// The way to a program that is not running.
    fn pipe() -> (Pipe, mpsc::Receiver<Option<(u64, String)>>) {
        let (lines, queue) = mpsc::channel(QUEUE_LIMIT);
        (Pipe::new(lines, &program("true").0), queue)
    }

    #[test]
    fn lines_become_answers() {
        let check = |line: &str, expected| assert_eq!(outcome(line.as_bytes()), expected, "{line}");
        let good = |bytes: &'static [u8]| Ok((7, Outcome::Good(bytes.into())));
        check(r#"{"id":7,"payload":"text"}"#, good(b"text"));
        check(r#"{"id":7,"payload":"\u00e9\n"}"#, good("é\n".as_bytes()));
        check(r#"{"id":7,"payload_base64":"/w=="}"#, good(b"\xff"));
        check(r#"{"id":7,"payload_base64":"\/w=="}"#, good(b"\xff"));
        let no = Outcome::Bad("no".into());
        check(r#"{"id":7,"error":"no"}"#, Ok((7, no.clone())));
        check(r#"{"payload":null,"error":"no","id":7}"#, Ok((7, no)));
        check(r#"{"payload":"x"}"#, Err("no id"));
        check(r#"{"id":[7]}"#, Err("an id that is no number"));
        check("[]", Err("not a JSON object"));
    }

    #[test]
    fn null_counts_as_absent() {
        let check = |line: &str, payload: &'static str| {
            let good = Outcome::Good(payload.into());
            assert_eq!(outcome(line.as_bytes()), Ok((7, good)), "{line}");
        };
        check(r#"{"id":7,"payload":"ok","error":null}"#, "ok");
        check(r#"{"id":7,"payload":"ok","payload_base64":null}"#, "ok");
        // A payload may be any JSON.
        check(r#"{"id":7,"payload":null,"error":null}"#, "null");
    }

    #[test]
    fn json_is_answered_as_it_is_written() {
        for json in [
            "12345678901234567890123",
            "0.10000000000000000001",
            "1e400",
            r#"{"b":1, "a":[2,  3],"b":2}"#,
            "true",
        ] {
            let line = format!("{{\"id\":7,\"payload\": {json} }}\n");
            let good = Outcome::Good(json.into());
            assert_eq!(outcome(line.as_bytes()), Ok((7, good)), "{json}");
        }
    }

    #[test]
    fn a_line_that_names_a_request_and_cannot_be_sent_is_an_error() {
        let check = |line: &[u8], reason: &str| {
            let expected = Ok((7, bad(reason)));
            assert_eq!(outcome(line), expected, "{}", line.escape_ascii());
        };
        check(br#"{"id":7}"#, "answered with neither payload nor error");
        for payload in ["\"?\"", "7"] {
            let line = format!(r#"{{"id":7,"payload_base64":{payload}}}"#);
            check(
                line.as_bytes(),
                "answered with a payload_base64 that is not Base64",
            );
        }
        let not_text = "wrote a line that is not UTF-8";
        check(b"{\"id\":7,\"payload\":\"\xff\"}", not_text);
        check(b"{\"payload\":\"\xff\",\"id\":7}", not_text);
        for name in ["payload", "error"] {
            let line = format!(r#"{{"id":7,"{name}":"\ud800"}}"#);
            check(
                line.as_bytes(),
                "answered with a string that is not Unicode text",
            );
        }
        for id in ["\"7\"", "7.0"] {
            let line = format!(r#"{{"id":{id},"payload":"x"}}"#);
            check(
                line.as_bytes(),
                "answered with an id that is not the number it was given",
            );
        }
        let no_object = "wrote a line that is not a JSON object";
        check(b" { \"id\" : 7 , \"payload\":\"x", no_object);
        check(b"{\"id\":\"7\",\"payload\":\xff", no_object);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_costs_only_its_own_request() {
        let (pipe, _queue) = pipe();
        let long = pipe.expect(1).expect("it has not ended");
        let next = pipe.expect(2).expect("it has not ended");
        let filling = "x".repeat(3 * LINE_LIMIT as usize);
        let output = format!(
            "{{\"id\":1,\"payload\":\"{filling}\"}}\n{filling}\n{{\"id\":2,\"payload\":\"ok\"}}\n"
        );
        pipe.listen(output.as_bytes()).await;
        let expected = bad("wrote a line of more than 8388608 bytes");
        assert_eq!(long.await, Ok(expected));
        assert_eq!(next.await, Ok(Outcome::Good("ok".into())));
    }

    #[tokio::test]
    async fn only_requests_that_were_written_end_with_the_program() {
        let (pipe, _queue) = pipe();
        let [written, cut, queued] = [1, 2, 3].map(|id| pipe.expect(id).expect("it has not ended"));
        assert!(pipe.give(1) && pipe.give(2));
        pipe.take_back(2);
        pipe.end();
        assert_eq!(written.await, Ok(gone()));
        assert!(cut.await.is_err() && queued.await.is_err());
        assert!(!pipe.give(3) && pipe.expect(4).is_none());
    }

    #[tokio::test]
    async fn a_program_that_closed_its_input_still_answers_what_it_has() {
        let (pipe, _queue) = pipe();
        let written = pipe.expect(1).expect("it has not ended");
        let queued = pipe.expect(2).expect("it has not ended");
        assert!(pipe.give(1));
        pipe.drop_unwritten();
        assert!(queued.await.is_err());
        pipe.listen(&b"{\"id\":1,\"payload\":\"ok\"}\n"[..]).await;
        assert_eq!(written.await, Ok(Outcome::Good("ok".into())));
    }

    #[tokio::test]
    async fn a_line_of_the_limit_is_read() {
        let (pipe, _queue) = pipe();
        let answer = pipe.expect(1).expect("it has not ended");
        let frame = r#"{"id":1,"payload":""}"#.len();
        let payload = "x".repeat(LINE_LIMIT as usize - frame);
        let output = format!("{{\"id\":1,\"payload\":\"{payload}\"}}\n");
        pipe.listen(output.as_bytes()).await;
        assert_eq!(answer.await, Ok(Outcome::Good(payload.into())));
    }
}
