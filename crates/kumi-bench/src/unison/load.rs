//! One run of one contestant: a server on its thread and core, callers on this one, some calls to warm up, and then
//! calls that are timed.
//!
//! Also compiled into the program that measures the peers, so that all contestants run under the same code. Payloads
//! are random, since a protocol that compresses would otherwise be measured at something else.

use std::fs;
use std::future::Future;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use rustix::thread::{CpuSet, Pid, sched_setaffinity};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// How long calls are made before they count.
const WARM_UP: Duration = Duration::from_millis(300);
/// Different payloads, used in turn.
const PAYLOADS: usize = 16;

/// What is asked of a contestant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) size: usize,
    pub(crate) in_flight: usize,
    pub(crate) period: Duration,
}

/// What a run gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) calls_per_second: f64,
    pub(crate) server_us: f64,
    pub(crate) client_us: f64,
}

/// One of the calls in flight: makes a call, waits for its answer, and starts again.
pub(crate) trait Caller: Send + 'static {
    /// One call; fails unless the payload comes back whole.
    fn call(&mut self, payload: Bytes) -> impl Future<Output = Result<()>> + Send;
}

/// Fails unless an answer is what was sent.
pub(crate) fn expect_same(sent: &[u8], answer: &[u8]) -> Result<()> {
    if sent != answer {
        bail!("an answer was not what was sent");
    }
    Ok(())
}

/// Which cores the two sides run on; empty lists leave it to the system.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sides {
    pub(crate) server: Vec<usize>,
    pub(crate) client: Vec<usize>,
}

/// A server on a thread, core and runtime of its own, until this is dropped.
pub(crate) struct ServerThread {
    thread_id: Pid,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl ServerThread {
    /// Starts the server, which says through the first channel how it is reached and runs until the second is closed.
    pub(crate) fn start<T, F>(
        sides: &Sides,
        server: impl FnOnce(oneshot::Sender<T>, oneshot::Receiver<()>) -> F + Send + 'static,
    ) -> Result<(ServerThread, T)>
    where
        T: Send + 'static,
        F: Future<Output = Result<()>>,
    {
        let (ready, is_ready) = oneshot::channel();
        let (told, thread_id) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let cpus = sides.server.clone();
        let thread = thread::spawn(move || {
            pin(&cpus)?;
            // The receiver is gone when the starter has failed.
            let _ = told.send(rustix::thread::gettid());
            runtime()?.block_on(server(ready, stopped))
        });
        let mut started = ServerThread {
            thread_id: thread_id
                .blocking_recv()
                .context("the server's thread ended at once")?,
            stop: Some(stop),
            thread: Some(thread),
        };
        match is_ready.blocking_recv() {
            Ok(how) => Ok((started, how)),
            Err(_) => Err(match started.join() {
                Err(error) => error.context("the server did not start"),
                Ok(()) => anyhow::anyhow!("the server ended before it was ready"),
            }),
        }
    }

    fn join(&mut self) -> Result<()> {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => bail!("the server panicked"),
            None => Ok(()),
        }
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        if let Err(error) = self.join() {
            eprintln!("a measured server failed: {error:#}");
        }
    }
}

/// The runtime each side has.
pub(crate) fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")
}

/// Moves the calling thread to these cores.
pub(crate) fn pin(cpus: &[usize]) -> Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).context("cannot choose a core")
}

/// Keeps all callers calling, first to warm up and then for the load's period.
pub(crate) async fn measure<C: Caller>(
    server: Option<&ServerThread>,
    callers: Vec<C>,
    load: Load,
) -> Result<Outcome> {
    let client_thread = rustix::thread::gettid();
    let (callers, _) = call_for(callers, load.size, WARM_UP).await?;
    let read = || -> Result<(Instant, u64, u64)> {
        let server_ns = server.map_or(Ok(0), |server| cpu_ns(server.thread_id))?;
        Ok((Instant::now(), server_ns, cpu_ns(client_thread)?))
    };
    let before = read()?;
    let (_, mut latencies_us) = call_for(callers, load.size, load.period).await?;
    let after = read()?;
    if latencies_us.is_empty() {
        bail!("no call was answered");
    }
    latencies_us.sort_by(f64::total_cmp);
    let calls = latencies_us.len() as f64;
    let per_call_us = |earlier: u64, later: u64| later.saturating_sub(earlier) as f64 / 1e3 / calls;
    Ok(Outcome {
        p50_us: percentile(&latencies_us, 50.0),
        p99_us: percentile(&latencies_us, 99.0),
        calls_per_second: calls / (after.0 - before.0).as_secs_f64(),
        server_us: per_call_us(before.1, after.1),
        client_us: per_call_us(before.2, after.2),
    })
}

/// Calls for a while; returns the callers for more, and how long each call took, in microseconds.
async fn call_for<C: Caller>(
    callers: Vec<C>,
    size: usize,
    period: Duration,
) -> Result<(Vec<C>, Vec<f64>)> {
    let end = Instant::now() + period;
    let mut calling = JoinSet::new();
    for (number, mut caller) in callers.into_iter().enumerate() {
        let payloads = payloads(size, number as u64);
        calling.spawn(async move {
            let mut latencies_us = Vec::new();
            let mut begun = Instant::now();
            for payload in payloads.iter().cycle() {
                if begun >= end {
                    break;
                }
                caller.call(payload.clone()).await?;
                let answered = Instant::now();
                latencies_us.push((answered - begun).as_secs_f64() * 1e6);
                begun = answered;
            }
            anyhow::Ok((caller, latencies_us))
        });
    }
    let (mut callers, mut all) = (Vec::new(), Vec::new());
    while let Some(outcome) = calling.join_next().await {
        let (caller, latencies_us) = outcome.context("a caller panicked")??;
        callers.push(caller);
        all.extend(latencies_us);
    }
    Ok((callers, all))
}

/// Random bytes, the same in every run.
pub(crate) fn payloads(size: usize, seed: u64) -> Vec<Bytes> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..PAYLOADS)
        .map(|_| {
            let mut payload = vec![0; size];
            random.fill(&mut payload);
            payload.into()
        })
        .collect()
}

/// The smallest value that at least `percent` percent of the sorted values do not exceed (nearest rank).
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// What a thread of this process has used so far.
fn cpu_ns(thread: Pid) -> Result<u64> {
    let path = format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero());
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    text.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .with_context(|| format!("{path} has an unknown shape"))
}
