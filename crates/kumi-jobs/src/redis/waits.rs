//! What blocks: a worker's wait, a producer's wait for a result, a subscription. Each has connections of its own, so that
//! it never stands in the way of a script.

use super::connect::unless_full;
use super::link::{Link, Repeat};
use super::{Shared, codec, text};
use crate::core::{Owner, TaskId, TaskState, Timestamp};
use crate::error::QueueError;
use crate::queue::{Events, Notice, Signal, TaskEvent};
use ::redis::{Cmd, Pipeline, Value, cmd};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// Enqueues that wait for replicas at once, each on a connection of its own.
const PRODUCERS_LIMIT: usize = 32;

/// Signals taken at once.
const SIGNALS_LIMIT: usize = 100;

/// How much longer than asked a blocking command may take before its connection is given up.
const MARGIN: Duration = Duration::from_secs(3);

/// How long one blocking read of a listener takes at most.
const READ: Duration = Duration::from_secs(5);

/// How long a producer that waits for a result relies on being told, before it looks itself.
const LOOK: Duration = Duration::from_secs(30);

/// How long the scripts report moves after a subscriber last asked for it.
const LISTENING: Duration = Duration::from_secs(15);

/// Moves that a subscriber may be behind before it slows the reading down.
const EVENTS_BUFFER: usize = 4_096;

pub(super) struct Waits {
    /// Connections that no wait uses now.
    idle: Mutex<Vec<Link>>,
    /// Connections on which no call waits for replicas now.
    confirming: Mutex<Vec<Link>>,
    /// Bounds the enqueues that wait for replicas. Turns are not counted: a worker has one in flight.
    pub(super) producers: Semaphore,
    results: Mutex<Results>,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            idle: Mutex::default(),
            confirming: Mutex::default(),
            producers: Semaphore::new(PRODUCERS_LIMIT),
            results: Mutex::default(),
        }
    }
}

/// Producers of this process that wait for results.
#[derive(Default)]
struct Results {
    waiting: HashMap<TaskId, Vec<oneshot::Sender<()>>>,
    /// The name under which this process receives results, while a listener runs.
    name: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Sends commands whose last one waits for replicas. A connection executes nothing else meanwhile, so the call has one
    /// of its own, apart from heartbeats and other workers' turns.
    pub(super) async fn confirm(
        &self,
        commands: &Pipeline,
        repeat: Repeat,
    ) -> Result<Vec<Value>, QueueError> {
        let link = lock(&self.waits.confirming).pop();
        let link = link.unwrap_or_else(|| self.link.another());
        let done = link.pipeline(commands, repeat).await;
        lock(&self.waits.confirming).push(link);
        done
    }

    /// Waits on the markers of some types and the signals of an owner.
    pub(super) async fn wait(
        &self,
        owner: &Owner,
        types: Vec<Arc<str>>,
        at_most: Duration,
    ) -> Result<Vec<Signal>, QueueError> {
        let link = lock(&self.waits.idle).pop();
        let link = link.unwrap_or_else(|| self.link.for_blocking());
        let control = self.key(&format!("ctl:{owner}"));
        let mut pop = cmd("BLPOP");
        pop.arg(&control);
        for task_type in &types {
            pop.arg(self.key(&format!("wake:{task_type}")));
        }
        // Zero would be for ever.
        pop.arg(at_most.as_secs_f64().max(0.001));
        let popped = blocking(link.call(&pop, Repeat::No), at_most, &link).await?;
        let mut signals = Vec::new();
        if popped != Value::Nil {
            let mut parts = codec::array(popped)?.into_iter();
            let (key, value) = (parts.next(), parts.next());
            if key.map(codec::string).transpose()?.as_deref() == Some(&control) {
                signals.extend(value.map(signal).transpose()?);
                let mut more = cmd("LPOP");
                more.arg(&control).arg(SIGNALS_LIMIT);
                let more = blocking(link.call(&more, Repeat::No), Duration::ZERO, &link).await;
                match more {
                    Ok(Value::Array(values)) => {
                        for value in values {
                            signals.push(signal(value)?);
                        }
                    }
                    // Nothing more was taken. What was taken before is not lost.
                    Ok(_) | Err(QueueError::Server(_)) => {}
                    // More may have been taken. The worker asks what it holds, which says what is to be cancelled.
                    Err(error) => return Err(error),
                }
            } else {
                signals.push(Signal::Ready);
            }
        }
        lock(&self.waits.idle).push(link);
        Ok(signals)
    }

    /// Ends a wait. On a full server the wait goes on until its time is up.
    pub(super) async fn poke(&self, owner: &Owner) -> Result<(), QueueError> {
        let control = self.key(&format!("ctl:{owner}"));
        let mut pipeline = ::redis::pipe();
        pipeline.cmd("RPUSH").arg(&control).arg("p");
        pipeline.cmd("EXPIRE").arg(&control).arg(60);
        unless_full(self.link.pipeline(&pipeline, Repeat::Yes).await)?;
        Ok(())
    }
}

/// Bounds a blocking command on our side too: a server that vanished never answers.
async fn blocking(
    call: impl Future<Output = Result<Value, QueueError>>,
    at_most: Duration,
    link: &Link,
) -> Result<Value, QueueError> {
    match timeout(at_most + MARGIN, call).await {
        Ok(done) => done,
        Err(_) => {
            link.disconnect();
            let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
            Err(link.broken(error.into()))
        }
    }
}

fn signal(value: Value) -> Result<Signal, QueueError> {
    let value = codec::string(value)?;
    match value.split_at_checked(1) {
        Some(("p", _)) => Ok(Signal::Poke),
        Some(("c", id)) => match id.parse() {
            Ok(id) => Ok(Signal::Cancel(id)),
            Err(_) => Err(QueueError::Protocol(format!("the signal '{value}'"))),
        },
        _ => Err(QueueError::Protocol(format!("the signal '{value}'"))),
    }
}

/// Waits until a task is done or unknown.
pub(super) async fn done(shared: &Arc<Shared>, id: TaskId) -> Result<(), QueueError> {
    loop {
        let (sender, receiver) = oneshot::channel();
        let name = {
            let mut results = lock(&shared.waits.results);
            results.waiting.entry(id).or_default().push(sender);
            results
                .name
                .get_or_insert_with(|| {
                    let name = format!("client-{:016x}", crate::random::u64());
                    tokio::spawn(listen(
                        Arc::downgrade(shared),
                        shared.link.for_blocking(),
                        shared.key(&format!("ctl:{name}")),
                    ));
                    name
                })
                .clone()
        };
        // Registered here before it is registered there, so that being told is not missed.
        let watched = shared
            .admin("watch", [codec::id_text(id), text(name)])
            .await?;
        if codec::integer(&watched)? != 2 {
            return Ok(());
        }
        // Told, or time to look: the listener's connection may have broken just then.
        let _ = timeout(LOOK, receiver).await;
    }
}

/// Tells the producers of this process which tasks are done. Ends when the queue is gone or nothing is waited for.
async fn listen(shared: Weak<Shared>, link: Link, control: String) {
    let mut pop = cmd("BLPOP");
    pop.arg(&control).arg(READ.as_secs_f64());
    loop {
        let popped = blocking(link.call(&pop, Repeat::No), READ, &link).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let failed = popped.is_err();
        let told = popped.ok().and_then(|value| codec::array(value).ok());
        let told = told.and_then(|mut parts| codec::string(parts.pop()?).ok());
        let id = told.and_then(|told| told.strip_prefix('d')?.parse::<TaskId>().ok());
        {
            let mut results = lock(&shared.waits.results);
            let waiters = id.and_then(|id| results.waiting.remove(&id));
            for waiter in waiters.into_iter().flatten() {
                // A producer that gave up waiting needs no word.
                let _ = waiter.send(());
            }
            results.waiting.retain(|_, waiters| {
                waiters.retain(|waiter| !waiter.is_closed());
                !waiters.is_empty()
            });
            if results.waiting.is_empty() {
                results.name = None;
                return;
            }
        }
        drop(shared);
        if failed {
            sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Subscribes to the moves of all tasks.
pub(super) async fn subscribe(shared: &Arc<Shared>) -> Result<Events, QueueError> {
    let last = announce(shared).await?;
    let (sender, receiver) = mpsc::channel(EVENTS_BUFFER);
    let link = shared.link.for_blocking();
    tokio::spawn(follow(Arc::downgrade(shared), link, last, sender));
    Ok(Events(receiver))
}

/// Asks the scripts to report moves for a while. Answers the newest number: of the last move that was reported, or one
/// without a move if moves were not reported until now.
async fn announce(shared: &Shared) -> Result<i64, QueueError> {
    let newest = shared.admin("listen", [text(LISTENING.as_millis())]).await;
    codec::integer(&newest?)
}

async fn follow(shared: Weak<Shared>, link: Link, mut last: i64, sender: mpsc::Sender<Notice>) {
    loop {
        let begun = {
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if sender.is_closed() {
                return;
            }
            begin_read(&shared, last).await
        };
        let read = match begun {
            Ok((read, newest)) => {
                if newest < last {
                    last = newest;
                    if sender.send(Notice::Gap).await.is_err() {
                        return;
                    }
                }
                blocking(link.call(&read, Repeat::No), READ, &link)
                    .await
                    .map(|value| (value, newest))
            }
            Err(error) => Err(error),
        };
        let notices = read.and_then(|(value, newest)| notices(value, &mut last, newest));
        match notices {
            Ok(notices) => {
                for notice in notices {
                    if sender.send(notice).await.is_err() {
                        return;
                    }
                }
            }
            Err(_) => {
                if sender.send(Notice::Gap).await.is_err() {
                    return;
                }
                sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// The command that reads what comes after the last move that was read, and the newest number. A server that lost its
/// data goes on above all earlier numbers, or below the last one if its clock was set back.
async fn begin_read(shared: &Shared, last: i64) -> Result<(Cmd, i64), QueueError> {
    let newest = announce(shared).await?;
    Ok((read_events(shared, newest.min(last)), newest))
}

fn read_events(shared: &Shared, last: i64) -> Cmd {
    let mut read = cmd("XREAD");
    read.arg("COUNT")
        .arg(500)
        .arg("BLOCK")
        .arg((READ - Duration::from_secs(1)).as_millis() as u64)
        .arg("STREAMS")
        .arg(shared.key("events"))
        .arg(format!("{last}-0"));
    read
}

/// The moves of a reply to XREAD. A number without an entry is a gap. `newest` was the newest number before the read.
fn notices(value: Value, last: &mut i64, newest: i64) -> Result<Vec<Notice>, QueueError> {
    let mut found = Vec::new();
    if value == Value::Nil {
        if newest > *last {
            *last = newest;
            found.push(Notice::Gap);
        }
        return Ok(found);
    }
    for (_, entries) in codec::pairs(flatten(value)?)? {
        for entry in codec::array(entries)? {
            let mut parts = codec::array(entry)?.into_iter();
            let id = codec::string(parts.next().unwrap_or(Value::Nil))?;
            let number = id.split('-').next().and_then(|number| number.parse().ok());
            let number: i64 =
                number.ok_or_else(|| QueueError::Protocol(format!("the entry {id}")))?;
            if number != *last + 1 {
                found.push(Notice::Gap);
            }
            *last = number;
            found.push(Notice::Moved(event(parts.next().unwrap_or(Value::Nil))?));
        }
    }
    Ok(found)
}

/// XREAD answers an array of pairs, which RESP2 does not flatten; in RESP3 a map.
fn flatten(value: Value) -> Result<Value, QueueError> {
    if let Value::Map(_) = value {
        return Ok(value);
    }
    let mut flat = Vec::new();
    for stream in codec::array(value)? {
        flat.extend(codec::array(stream)?);
    }
    Ok(Value::Array(flat))
}

fn event(fields: Value) -> Result<TaskEvent, QueueError> {
    let mut named = HashMap::new();
    for (name, value) in codec::pairs(fields)? {
        named.insert(codec::string(name)?, codec::string(value)?);
    }
    let field = |name: &str| named.get(name).map(String::as_str).unwrap_or_default();
    let bad = || QueueError::Protocol(format!("the event {named:?}"));
    let state = |name: &str| field(name).chars().next().and_then(TaskState::from_letter);
    Ok(TaskEvent {
        id: field("i").parse().map_err(|_| bad())?,
        task_type: field("y").into(),
        from: state("f"),
        to: state("t").ok_or_else(bad)?,
        attempts: field("a").parse().map_err(|_| bad())?,
        at: Timestamp::from_ms(field("u").parse().map_err(|_| bad())?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: i64) -> Value {
        let text = |text: &str| Value::BulkString(text.into());
        let id = TaskId::random().to_string();
        let fields = ["i", &id, "y", "a", "f", "", "t", "q", "a", "0", "u", "1"].map(text);
        Value::Array(vec![
            text(&format!("{number}-0")),
            Value::Array(fields.to_vec()),
        ])
    }

    fn reply(numbers: &[i64]) -> Value {
        let entries = numbers.iter().copied().map(entry).collect();
        let stream = vec![Value::BulkString("events".into()), Value::Array(entries)];
        Value::Array(vec![Value::Array(stream)])
    }

    #[test]
    fn a_number_without_a_move_is_a_gap() {
        let check = |reply: Value, newest: i64, expected: &str, then: i64| {
            let mut last = 5;
            let found = notices(reply, &mut last, newest).unwrap();
            let letters = found.iter().map(|notice| match notice {
                Notice::Moved(_) => 'm',
                Notice::Gap => 'g',
            });
            assert_eq!(letters.collect::<String>(), expected);
            assert_eq!(last, then);
        };
        check(Value::Nil, 5, "", 5);
        check(Value::Nil, 6, "g", 6);
        check(reply(&[6, 7]), 7, "mm", 7);
        check(reply(&[6, 8]), 7, "mgm", 8);
        check(reply(&[7]), 6, "gm", 7);
    }
}
