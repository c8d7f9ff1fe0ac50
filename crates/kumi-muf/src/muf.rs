//! [`Muf`]: the handle of a connected unit.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use crate::core::{
    CallError, Command, INFO_LIMIT_BYTES, KeepPattern, Key, Reply, Served, Settings, Status,
    Target, UnitName, check_name, key,
};
use crate::discovery::Info;
use crate::driver::{Message, StartWatch, Stats, Wires, Withdrawal};
use crate::handler::{IntoAnswer, Request};
use crate::keep::{Keep, KeepWatch, user_keep_name};
use crate::request::{Call, Gather};
use crate::serve::Serve;
use crate::tap::{TAP_LIMIT, Tap};
use crate::{Answer, Builder, Connection, ConnectionChanges, Error, IntoPayload, Json};

/// Events that a watcher may be behind before it gets a gap.
const WATCH_LIMIT: usize = 1_024;

/// How long a command of a handle (not a call) is repeated while the server is away.
pub(crate) const SERVER_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(50);

/// A connected unit. Cheap to clone; the connection ends with the last clone.
///
/// ```no_run
/// # async fn example() -> Result<(), kumi_muf::Error> {
/// use kumi_muf::{Json, Muf, Request};
///
/// let backend = Muf::connect("redis://127.0.0.1:6379", "thumbs").await?;
/// let service = backend
///     .serve("thumb.*", |request: Request| async move {
///         let name = request.text()?.to_owned();
///         Ok::<_, kumi_muf::Error>(format!("thumbnail of {name}"))
///     })
///     .concurrency(8)
///     .await?;
///
/// let web = Muf::connect("redis://127.0.0.1:6379", "web").await?;
/// let answer = web.request("thumb.resize", "cat.png").await?;
/// assert_eq!(answer.text()?, "thumbnail of cat.png");
///
/// service.drain().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Muf {
    inner: Arc<Inner>,
}

struct Inner {
    unit: UnitName,
    wires: Wires,
    settings: Settings,
    tickets: AtomicU64,
}

impl Muf {
    /// Connects `unit` to the server at `url` (`redis://`, `rediss://` with the feature `tls`, `unix://`), with the
    /// defaults of [`Builder`]. A server that is part of a cluster is recognised; the URL may name any of its nodes.
    pub async fn connect(url: &str, unit: &str) -> Result<Self, Error> {
        Self::builder(url, unit).connect().await
    }

    /// Connects with other times and limits.
    pub fn builder(url: &str, unit: &str) -> Builder {
        Builder::new(url, unit)
    }

    pub(crate) fn new(unit: UnitName, wires: Wires, settings: Settings) -> Self {
        Self {
            inner: Arc::new(Inner {
                unit,
                wires,
                settings,
                tickets: AtomicU64::new(0),
            }),
        }
    }

    /// This unit's name.
    pub fn unit(&self) -> &str {
        self.inner.unit.as_str()
    }

    /// The server of the URL: `host:port`, or the path of a Unix socket.
    pub fn server(&self) -> &str {
        &self.inner.wires.server
    }

    /// The state of the connection to the server.
    pub fn connection(&self) -> Connection {
        self.inner.wires.connection.borrow().clone()
    }

    /// Follows the state of the connection: the state now is the first that it returns.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) {
    /// let mut changes = muf.connection_changes();
    /// while let Some(state) = changes.next().await {
    ///     println!("ready: {}", state.is_connected());
    /// }
    /// # }
    /// ```
    pub fn connection_changes(&self) -> ConnectionChanges {
        ConnectionChanges::new(self.inner.wires.connection.clone())
    }

    /// Waits until this unit is closed, by any of its handles. Nothing is lost if the future is dropped.
    pub async fn closed(&self) {
        self.inner.wires.messages.closed().await;
    }

    /// Whether the server sends no events, so that this unit polls.
    pub fn is_polling(&self) -> bool {
        self.inner.settings.poll_ms.is_some()
    }

    /// Calls one of the backends of `service.method`. Exactly one result comes: its answer, or an error that says what
    /// happened.
    pub fn request(&self, target: &str, payload: impl IntoPayload) -> Call {
        Call {
            muf: self.clone(),
            target: Target::new(target).map_err(Error::from),
            payload: payload.into_payload(),
            ttl: None,
            timeout: None,
            traceparent: None,
        }
    }

    /// Calls one of the backends of `service.method` with a value as JSON, and reads the answer as JSON. For other times
    /// than the defaults, `request(target, Json(value))` has methods, and its answer `json()`.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// let sum: i64 = muf.request_json("sum.add", &[1, 2, 3]).await?;
    /// assert_eq!(sum, 6);
    /// # Ok(()) }
    /// ```
    pub async fn request_json<In, Out>(&self, target: &str, value: &In) -> Result<Out, Error>
    where
        In: Serialize + ?Sized,
        Out: DeserializeOwned,
    {
        self.request(target, Json(value)).await?.json()
    }

    /// Calls all backends of `service.method`, and collects their answers.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// use std::time::Duration;
    ///
    /// let answers = muf.gather("cache.size", "").quiet(Duration::from_millis(200)).await?;
    /// for answer in &answers {
    ///     println!("{}: {:?}", answer.backend, answer.result);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn gather(&self, target: &str, payload: impl IntoPayload) -> Gather {
        Gather {
            muf: self.clone(),
            target: Target::new(target).map_err(Error::from),
            payload: payload.into_payload(),
            timeout: Duration::from_secs(2),
            ttl: None,
            traceparent: None,
            count: None,
            quiet: None,
        }
    }

    /// Serves requests: `service.method`, `service.*`, or `*` for everything, bare IDs too.
    ///
    /// A panic, and an error that the handler returns, become ERR.
    pub fn serve<F, Work>(&self, pattern: &str, handler: F) -> Serve
    where
        F: Fn(Request) -> Work + Send + Sync + 'static,
        Work: Future<Output: IntoAnswer> + Send + 'static,
    {
        Serve::plain(self.clone(), pattern, handler)
    }

    /// Serves with state that all handlers share.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// let counter = AtomicU64::new(0);
    /// muf.serve_with("count.next", counter, |counter, _request| async move {
    ///     Ok::<_, kumi_muf::Error>(counter.fetch_add(1, Ordering::Relaxed).to_string())
    /// })
    /// .await?;
    /// # Ok(()) }
    /// ```
    pub fn serve_with<S, F, Work>(&self, pattern: &str, state: S, handler: F) -> Serve
    where
        S: Send + Sync + 'static,
        F: Fn(Arc<S>, Request) -> Work + Send + Sync + 'static,
        Work: Future<Output: IntoAnswer> + Send + 'static,
    {
        let state = Arc::new(state);
        Serve::plain(self.clone(), pattern, move |request| {
            handler(state.clone(), request)
        })
    }

    /// Serves JSON: the handler gets a value and returns one. What cannot be read is answered with ERR.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// muf.serve_json("sum.add", |numbers: Vec<i64>| async move {
    ///     Ok::<i64, String>(numbers.iter().sum())
    /// })
    /// .await?;
    /// # Ok(()) }
    /// ```
    pub fn serve_json<In, Out, E, F, Work>(&self, pattern: &str, handler: F) -> Serve
    where
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        E: Display + Send + 'static,
        F: Fn(In) -> Work + Send + Sync + 'static,
        Work: Future<Output = Result<Out, E>> + Send + 'static,
    {
        Serve::json(self.clone(), pattern, move |_, input| handler(input))
    }

    /// Serves JSON with state that all handlers share. The handler also gets the request, which has the calling unit, the
    /// attempt and, where both sides trace, the caller's deadline.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// use std::sync::atomic::{AtomicI64, Ordering};
    ///
    /// muf.serve_json_with("sum.add", AtomicI64::new(0), |sum, request, number: i64| async move {
    ///     match request.attempt() {
    ///         1 => Ok(sum.fetch_add(number, Ordering::Relaxed) + number),
    ///         _ => Err("it may have been added already"),
    ///     }
    /// })
    /// .await?;
    /// # Ok(()) }
    /// ```
    pub fn serve_json_with<S, In, Out, E, F, Work>(
        &self,
        pattern: &str,
        state: S,
        handler: F,
    ) -> Serve
    where
        S: Send + Sync + 'static,
        In: DeserializeOwned + Send + 'static,
        Out: Serialize + Send + 'static,
        E: Display + Send + 'static,
        F: Fn(Arc<S>, Request, In) -> Work + Send + Sync + 'static,
        Work: Future<Output = Result<Out, E>> + Send + 'static,
    {
        let state = Arc::new(state);
        Serve::json(self.clone(), pattern, move |request, input| {
            handler(state.clone(), request, input)
        })
    }

    /// Keeps a value under this unit's name: for the default TTL, another, or for ever; or refreshed while this process runs.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// muf.keep("temperature", "21.5").await?;
    /// let status = muf.keep("status", "ready").ttl(std::time::Duration::from_secs(6)).owned().await?;
    /// status.set("busy").await?;
    /// assert_eq!(muf.read_keep(muf.unit(), "temperature").await?.expect("kept").text()?, "21.5");
    /// # Ok(()) }
    /// ```
    pub fn keep(&self, id: &str, value: impl IntoPayload) -> Keep {
        Keep {
            muf: self.clone(),
            id: user_keep_name(id),
            value: value.into_payload(),
            ttl_ms: self.inner.settings.keep_ttl_ms,
        }
    }

    /// Reads a kept value of any unit. One over this unit's limit of payloads is not read.
    pub async fn read_keep(&self, unit: &str, id: &str) -> Result<Option<Answer>, Error> {
        check_name(unit)?;
        check_name(id)?;
        let limit_bytes = self.payload_limit_bytes();
        let value = self.read_value(key(unit, Status::Keep, id), limit_bytes);
        match value.await? {
            Some(value) if value.len() > limit_bytes => Err(Error::TooLargeToRead { limit_bytes }),
            value => Ok(value.map(Answer::from)),
        }
    }

    /// Ends a kept value of this unit. Nothing is deleted: it gets a millisecond to live, and watchers see it expire. False
    /// if there was none. One that is owned is written again by its handle.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// muf.keep("temperature", "21.5").await?;
    /// assert!(muf.end_keep("temperature").await?);
    /// # Ok(()) }
    /// ```
    pub async fn end_keep(&self, id: &str) -> Result<bool, Error> {
        let id = user_keep_name(id)?;
        let end = Command::Expire {
            key: key(self.unit(), Status::Keep, &id),
            ttl_ms: 1,
        };
        let replies = self.run(vec![end]).await?;
        Ok(replies.first().is_some_and(|reply| reply.number() == 1))
    }

    /// Watches kept values: `unit/name`, both with `*` and `?` as wildcards.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// use kumi_muf::KeepEvent;
    ///
    /// let mut watch = muf.watch_keep("sensor-*/temperature").await?;
    /// while let Some(event) = watch.next().await {
    ///     match event {
    ///         KeepEvent::Value { unit, value, .. } => println!("{unit}: {value:?}"),
    ///         KeepEvent::Deleted { unit, .. } | KeepEvent::Expired { unit, .. } => println!("{unit}: gone"),
    ///         KeepEvent::Gap => println!("something may have been missed"),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn watch_keep(&self, pattern: &str) -> Result<KeepWatch, Error> {
        let pattern: KeepPattern = pattern.parse()?;
        let (sender, events) = mpsc::channel(WATCH_LIMIT);
        let (reply, begun) = oneshot::channel();
        self.send(Message::Watch(StartWatch {
            pattern,
            events: sender,
            reply,
        }))
        .await?;
        let id = begun.await.map_err(|_| Error::Closed)??;
        Ok(KeepWatch {
            muf: self.clone(),
            id,
            events,
        })
    }

    /// The units that run, by name: those that refreshed their entry within three heartbeats.
    ///
    /// The first call searches the keyspace, and takes as long as that does; after that this unit keeps itself
    /// informed by the server's events, and a call costs a ping. Where the server sends no events, each call is a
    /// search. A search that does not go on for 5 s is [`Error::Disconnected`] or [`Error::SearchUnfinished`]. Dropping
    /// the future ends the search, unless another call waits for it.
    pub async fn units(&self) -> Result<Vec<Info>, Error> {
        if self.is_polling() {
            return self.search_units().await;
        }
        let until = Instant::now() + SERVER_TIMEOUT;
        loop {
            // What was written before the call is in the list.
            let (reply, passed) = oneshot::channel();
            self.send(Message::Barrier(reply)).await?;
            match passed.await.map_err(|_| Error::Closed)? {
                Ok(()) => break,
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => sleep(RETRY).await,
            }
        }
        // Dropped after the receiver of the list, so that the driver sees that no caller waits.
        let _listing = Listing(self.wires());
        let (reply, mut units) = oneshot::channel();
        self.send(Message::Units(reply)).await?;
        let mut before = self.units_progress().await?;
        loop {
            if let Ok(units) = timeout(SERVER_TIMEOUT, &mut units).await {
                return units.map_err(|_| Error::Closed)?;
            }
            let now = self.units_progress().await?;
            if now == before {
                return Err(match self.connection() {
                    Connection::Connected => Error::search_unfinished(self.server()),
                    _ => self.disconnected(),
                });
            }
            before = now;
        }
    }

    /// How far the list of units has come.
    async fn units_progress(&self) -> Result<u64, Error> {
        let (reply, progress) = oneshot::channel();
        self.send(Message::UnitsProgress(reply)).await?;
        progress.await.map_err(|_| Error::Closed)
    }

    /// How long ago each of these units refreshed its entry, in their order. None for a unit that is gone, or that does
    /// not state the TTL of its entry. Costs a command per unit, in one pipeline.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// let units = muf.units().await?;
    /// for (info, seen) in units.iter().zip(muf.last_seen(&units).await?) {
    ///     println!("{} was last seen {seen:?} ago", info.unit);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn last_seen(&self, units: &[Info]) -> Result<Vec<Option<Duration>>, Error> {
        if units.is_empty() {
            return Ok(Vec::new());
        }
        let entry = |info: &Info| Command::TimeToLive(key(&info.unit, Status::Keep, "_info"));
        let replies = self.run(units.iter().map(entry).collect()).await?;
        let ago = |(info, reply): (&Info, Reply)| {
            let left_ms = u64::try_from(reply.number()).ok()?;
            let ttl_ms = Some(info.ttl_ms).filter(|ttl_ms| *ttl_ms > 0)?;
            Some(Duration::from_millis(ttl_ms.saturating_sub(left_ms)))
        };
        Ok(units.iter().zip(replies).map(ago).collect())
    }

    /// What each of these units has served, by all processes of its name, those that ended included; in their order. Numbers are
    /// written at every heartbeat, and forgotten a week after the last request. Costs 13 commands per unit, in one
    /// pipeline.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// let served = muf.served(&["thumbs"]).await?;
    /// println!("{} requests, {:?} at most for 99% of them", served[0].requests(), served[0].quantile(0.99));
    /// # Ok(()) }
    /// ```
    pub async fn served(&self, units: &[&str]) -> Result<Vec<Served>, Error> {
        for unit in units {
            check_name(unit)?;
        }
        if units.is_empty() {
            return Ok(Vec::new());
        }
        let commands = units.iter().flat_map(|unit| Served::read(unit)).collect();
        let replies = self.run(commands).await?;
        Ok(replies.chunks(Served::COMMANDS).map(Served::of).collect())
    }

    async fn search_units(&self) -> Result<Vec<Info>, Error> {
        let keys = self.search("MUF/*/KEEP/_info").await?;
        let infos = keys.into_iter().filter_map(|text| {
            let unit = Key::parse(&text).filter(|key| key.id == "_info")?.unit;
            let unit = unit.to_owned();
            Some(async move {
                // What is cut off at the limit is not JSON, and is ignored.
                let value = self.read_value(text, INFO_LIMIT_BYTES).await?;
                Ok::<_, Error>(value.and_then(|value| Info::read(&unit, &value)))
            })
        });
        // Side by side, so that they share their round trips.
        let mut units = Vec::new();
        for info in join_all(infos).await {
            units.extend(info?);
        }
        Ok(units)
    }

    /// Shows the requests, claims and answers of all units from now on.
    ///
    /// ```no_run
    /// # async fn example(muf: kumi_muf::Muf) -> Result<(), kumi_muf::Error> {
    /// use kumi_muf::Traffic;
    ///
    /// let mut tap = muf.tap().await?;
    /// while let Some(traffic) = tap.next().await {
    ///     if let Traffic::Key(seen) = traffic? {
    ///         println!("{} {} {}: {:?}", seen.unit, seen.status.as_str(), seen.id, seen.value);
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn tap(&self) -> Result<Tap, Error> {
        if self.is_polling() {
            // Nothing would ever be seen.
            return Err(Error::notifications(self.server(), "K$x"));
        }
        let (events, seen) = mpsc::channel(TAP_LIMIT);
        let (reply, begun) = oneshot::channel();
        self.send(Message::Tap { events, reply }).await?;
        begun.await.map_err(|_| Error::Closed)??;
        Ok(Tap::new(self.clone(), seen))
    }

    /// What this unit did so far.
    pub async fn stats(&self) -> Result<Stats, Error> {
        let (reply, stats) = oneshot::channel();
        self.send(Message::Stats(reply)).await?;
        stats.await.map_err(|_| Error::Closed)
    }

    /// Drains all services, then disconnects. Calls that wait fail with [`Error::Closed`].
    ///
    /// If the future is dropped, closing goes on.
    pub async fn close(self) -> Result<(), Error> {
        let (reply, closed) = oneshot::channel();
        self.send(Message::Close(reply)).await?;
        closed.await.map_err(|_| Error::Closed)
    }

    pub(crate) fn wires(&self) -> Wires {
        self.inner.wires.clone()
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.inner.tickets.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) async fn send(&self, message: Message) -> Result<(), Error> {
        self.inner
            .wires
            .messages
            .send(message)
            .await
            .map_err(|_| Error::Closed)
    }

    pub(crate) fn checked(&self, payload: Bytes) -> Result<Bytes, Error> {
        let limit_bytes = self.inner.settings.payload_limit_bytes;
        match payload.len() {
            size_bytes if size_bytes > limit_bytes => Err(Error::TooLarge {
                size_bytes,
                limit_bytes,
            }),
            _ => Ok(payload),
        }
    }

    /// Finds all keys that match, or says why not.
    async fn search(&self, pattern: &str) -> Result<Vec<String>, Error> {
        let until = Instant::now() + SERVER_TIMEOUT;
        loop {
            let (reply, found) = oneshot::channel();
            let pattern = pattern.to_owned();
            self.send(Message::Search { pattern, reply }).await?;
            match found.await.map_err(|_| Error::Closed)? {
                Err(Error::Disconnected { .. }) if Instant::now() < until => sleep(RETRY).await,
                found => return found,
            }
        }
    }

    /// Runs commands that may be repeated, until they are answered or [`SERVER_TIMEOUT`] has passed.
    pub(crate) async fn run(&self, commands: Vec<Command>) -> Result<Vec<Reply>, Error> {
        let until = Instant::now() + SERVER_TIMEOUT;
        loop {
            let (reply, ran) = oneshot::channel();
            self.send(Message::Run {
                commands: commands.clone(),
                reply,
            })
            .await?;
            match ran.await.map_err(|_| Error::Closed)? {
                Ok(replies) => match replies.iter().find_map(Reply::refusal) {
                    Some(reason) => return Err(Error::refused(self.server(), reason.to_owned())),
                    None => return Ok(replies),
                },
                Err(_) if Instant::now() >= until => {
                    return Err(self.disconnected());
                }
                Err(_) => sleep(RETRY).await,
            }
        }
    }

    /// What a key holds, up to one byte more than the limit; none if it is not there. A large value is read once more, on
    /// the connection for those: other commands do not wait for it.
    pub(crate) async fn read_value(
        &self,
        key: String,
        limit_bytes: usize,
    ) -> Result<Option<Bytes>, Error> {
        let inline_bytes = limit_bytes.min(self.inner.settings.inline_limit_bytes);
        let value = self.read_beginning(key.clone(), inline_bytes).await?;
        match value {
            Some(value) if value.len() > inline_bytes && limit_bytes > inline_bytes => {
                self.read_beginning(key, limit_bytes).await
            }
            value => Ok(value),
        }
    }

    async fn read_beginning(
        &self,
        key: String,
        limit_bytes: usize,
    ) -> Result<Option<Bytes>, Error> {
        let read = Command::Read {
            key: key.clone(),
            limit_bytes,
        };
        // What is empty was there before and after it was read: it has neither just come nor just gone.
        let before = Command::Present(vec![key.clone()]);
        let commands = vec![before, read, Command::Present(vec![key])];
        match <[Reply; 3]>::try_from(self.run(commands).await?) {
            Ok([before, value, after]) => Ok(value.into_held(before.has(0) && after.has(0))),
            Err(_) => Ok(None),
        }
    }

    /// The error of what could not be done because the server is away.
    pub(crate) fn disconnected(&self) -> Error {
        Error::disconnected(self.server(), self.connection().reason())
    }

    /// The error of a call of this unit.
    pub(crate) fn call_error(&self, error: CallError) -> Error {
        Error::of_call(error, self.server(), self.connection().reason())
    }

    /// Largest payload, both ways.
    pub(crate) fn payload_limit_bytes(&self) -> usize {
        self.inner.settings.payload_limit_bytes
    }
}

/// A list of units that is waited for.
struct Listing(Wires);

impl Drop for Listing {
    fn drop(&mut self) {
        // A driver that is gone has nothing to forget.
        let _ = self.0.back.send(Withdrawal::Units);
    }
}
