//! A node that the measurements start, stop and ask: `kumi-bench node-run`.
//!
//! It is a node of the library with handlers of its own, and not `kumi up` with commands: a task is then a future instead of
//! three processes, so that a hundred of them begin at once on two cores, and the node says on its output when each one began.
//!
//! ```text
//! input, a line each     output
//! drain, undrain         = ok
//! releases on|off        = ok
//! enqueue FIRST COUNT    = ok                 tasks that end with `finish`
//! mail COUNT             = ok                 tasks that end at once
//! finish                 = ok
//! totals                 = SUCCEEDED RUNNING
//! members                = COUNT
//! load TASKS CALLS       = ok                 a background load, each so many a second
//! unload                 = ENQUEUED ANSWERED FAILED SLOWEST_MS
//! stop                   = ok                 and the process ends
//!                        + NUMBER             a task began
//! ```

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kumi_jobs::{
    CancellationToken, Context, Jobs, NewTask, Task, TaskEnvelope, TaskError, TaskState,
};
use kumi_node::config::{NodeConfig, Preset, StoreHere, StoreSection};
use kumi_node::{Builder, Node};
use kumi_unison::ClusterKey;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tracing_subscriber::filter::LevelFilter;

use crate::jobs::client::Mail;
use crate::node::options::{NetworkPreset, NodeRunArgs};

/// The key of all clusters that are measured: no secret, and on this machine only.
const KEY: [u8; 32] = *b"kumi-bench node: not a real key.";

/// What requests are sent to.
const TARGET: &str = "bench.echo";

/// How long a call may take.
const CALL_DEADLINE: Duration = Duration::from_secs(10);

/// How long a task of the load runs.
const LOAD_TASK: Duration = Duration::from_millis(20);

/// The number of the first task of the load. Tasks below it end with `finish`.
const FIRST_OF_LOAD: u64 = 1 << 32;

/// How long running tasks may go on when the node stops.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// The pause after an enqueue that failed; it is repeated until it is acknowledged.
const RETRY: Duration = Duration::from_millis(100);

/// How long a repeated enqueue, a question or the end of a load may take.
const GIVE_UP: Duration = Duration::from_secs(120);

/// Commands that wait to be carried out.
const MAX_COMMANDS: usize = 16;

/// A task that says when it began, and holds on.
#[derive(Debug, Serialize, Deserialize)]
struct Hold {
    number: u64,
}

impl Task for Hold {
    const TYPE: &'static str = "hold";
    type Output = String;
}

/// Runs the node until it is told to stop, or until its input ends.
pub(crate) fn run(args: &NodeRunArgs) -> Result<()> {
    // A line per task would be measured too.
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    let commands = commands();
    runtime.block_on(serve(args, commands))
}

/// The lines of standard input.
fn commands() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(MAX_COMMANDS);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Nobody reads the output of a node whose bench has ended; its input ends too.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

async fn serve(args: &NodeRunArgs, mut commands: mpsc::Receiver<String>) -> Result<()> {
    let finish = watch::Sender::new(0);
    let node = builder(args, &finish)?.start().await?;
    node.ready().await;
    let membership = node.membership_address().context("it listens")?;
    say(&format!("= {membership}"));
    let mut load: Option<Load> = None;
    while let Some(line) = commands.recv().await {
        let mut words = line.split(' ');
        let command = words.next().unwrap_or_default();
        let mut number = || -> Result<u64> {
            let word = words.next().with_context(|| format!("{line}: a number"))?;
            word.parse().with_context(|| format!("{line}: {word}"))
        };
        let reply = match command {
            "drain" | "undrain" => {
                node.drain(command == "drain");
                "ok".to_owned()
            }
            "releases" => {
                let jobs = node.jobs().await?;
                jobs.queue().set_releases(line.ends_with("on")).await?;
                "ok".to_owned()
            }
            "enqueue" => {
                let (first, count) = (number()?, number()?);
                let jobs = node.jobs().await?;
                let tasks = (first..first + count).map(|number| Hold { number });
                jobs.enqueue_all(tasks).await?;
                "ok".to_owned()
            }
            "mail" => {
                let jobs = node.jobs().await?;
                jobs.enqueue_all((0..number()? as usize).map(Mail::new))
                    .await?;
                "ok".to_owned()
            }
            "finish" => {
                finish.send_modify(|times| *times += 1);
                "ok".to_owned()
            }
            "totals" => totals(&node).await?,
            "members" => node.members().members.len().to_string(),
            "load" => {
                load = Some(Load::start(&node, number()?, number()?).await?);
                "ok".to_owned()
            }
            "unload" => {
                let load = load.take().context("there is a load")?;
                load.end().await?
            }
            "stop" => {
                node.shutdown().await?;
                say("= ok");
                return Ok(());
            }
            _ => bail!("no command is named {command}"),
        };
        say(&format!("= {reply}"));
    }
    Ok(())
}

fn builder(args: &NodeRunArgs, finish: &watch::Sender<u64>) -> Result<Builder> {
    let mut config = NodeConfig::default();
    config.node.preset = Some(match args.preset {
        NetworkPreset::Local => Preset::Local,
        NetworkPreset::Lan => Preset::Lan,
    });
    config.node.stop_within = Some(STOP_WITHIN);
    let mut builder = Node::builder()
        .config(config)
        .name(&args.name)
        .bind(args.bind)
        .ports(args.port, 0)
        .key(ClusterKey::from_secret(&KEY).context("a key")?)
        .state_dir(&args.state_dir);
    if let Some(seed) = &args.join {
        builder = builder.join(seed);
    }
    builder = builder.store(match args.store_port {
        Some(port) => {
            let mut here = StoreHere::default();
            here.directives.insert("port".into(), port.to_string());
            let always = ("appendfsync".into(), "always".into());
            here.directives.extend([always]);
            StoreSection::Here(here)
        }
        None => StoreSection::Off,
    });
    if args.works {
        let (name, finish) = (args.name.clone(), finish.clone());
        builder = builder
            .handle(move |task: Hold, _: Context<()>| {
                say(&format!("+ {}", task.number));
                hold(task, name.clone(), finish.subscribe())
            })
            .handle(|_: Mail, _: Context<()>| async { Ok::<_, TaskError>(()) })
            .serve(TARGET, |request: kumi_muf::Request| async move {
                Ok::<_, kumi_muf::Error>(request.payload().clone())
            });
    }
    Ok(builder)
}

/// Holds until the next `finish`, or for a moment in a task of the load.
async fn hold(
    task: Hold,
    name: String,
    mut finish: watch::Receiver<u64>,
) -> Result<String, TaskError> {
    if task.number >= FIRST_OF_LOAD {
        sleep(LOAD_TASK).await;
    } else {
        // The sender lives as long as the node.
        let _ = finish.changed().await;
    }
    Ok(name)
}

/// What the queue has counted, asked until the store replies.
async fn totals(node: &Node) -> Result<String> {
    let begun = Instant::now();
    loop {
        let counted = async {
            let jobs = node.jobs().await?;
            let succeeded = jobs.queue().load().await?.totals.succeeded;
            let running = jobs.counts_by_state().await?.of(TaskState::Running);
            Ok(format!("{succeeded} {running}"))
        };
        match counted.await {
            Err(_) if begun.elapsed() < GIVE_UP => sleep(RETRY).await,
            counted => return counted,
        }
    }
}

/// Tasks and calls in the background.
struct Load {
    stop: CancellationToken,
    counts: Arc<Counts>,
    making: JoinSet<Result<()>>,
}

#[derive(Default)]
struct Counts {
    enqueued: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    slowest_ms: AtomicU64,
}

impl Load {
    async fn start(node: &Node, tasks_a_second: u64, calls_a_second: u64) -> Result<Load> {
        let stop = CancellationToken::new();
        let counts: Arc<Counts> = Arc::default();
        let mut making = JoinSet::new();
        if tasks_a_second > 0 {
            let jobs = node.jobs().await?;
            let (stopped, counts) = (stop.clone(), counts.clone());
            let number = AtomicU64::new(FIRST_OF_LOAD);
            making.spawn(repeat(tasks_a_second, stopped, move || {
                let number = number.fetch_add(1, Ordering::Relaxed);
                enqueue(jobs.clone(), number, counts.clone())
            }));
        }
        if calls_a_second > 0 {
            let muf = node.muf().await?;
            let (stopped, counts) = (stop.clone(), counts.clone());
            making.spawn(repeat(calls_a_second, stopped, move || {
                call(muf.clone(), counts.clone())
            }));
        }
        Ok(Load {
            stop,
            counts,
            making,
        })
    }

    /// Waits until everything that was begun has ended.
    async fn end(mut self) -> Result<String> {
        self.stop.cancel();
        while let Some(made) = timeout(GIVE_UP, self.making.join_next()).await? {
            made??;
        }
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts {
            enqueued,
            answered,
            failed,
            slowest_ms,
        } = &*self.counts;
        Ok(format!(
            "{} {} {} {}",
            read(enqueued),
            read(answered),
            read(failed),
            read(slowest_ms)
        ))
    }
}

/// Begins something so often a second until the stop, and waits for all of it.
async fn repeat<Work>(
    times_a_second: u64,
    stop: CancellationToken,
    begin: impl Fn() -> Work,
) -> Result<()>
where
    Work: Future<Output = Result<()>> + Send + 'static,
{
    let mut ticks = interval(Duration::from_secs(1) / times_a_second as u32);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut begun = JoinSet::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                begun.spawn(begin());
            }
            Some(ended) = begun.join_next() => ended??,
            () = stop.cancelled() => break,
        }
    }
    while let Some(ended) = begun.join_next().await {
        ended??;
    }
    Ok(())
}

/// Enqueues a task until that is acknowledged. The id is the same each time, so that it is one task.
async fn enqueue(jobs: Jobs, number: u64, counts: Arc<Counts>) -> Result<()> {
    let envelope = TaskEnvelope::json(Hold::TYPE, format!("{{\"number\":{number}}}"));
    let task = NewTask::new(envelope);
    let begun = Instant::now();
    loop {
        match jobs.enqueue_raw(task.clone()).await {
            Ok(_) => {
                counts.enqueued.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
            Err(error) if begun.elapsed() > GIVE_UP => return Err(error.into()),
            Err(_) => sleep(RETRY).await,
        }
    }
}

async fn call(muf: kumi_muf::Muf, counts: Arc<Counts>) -> Result<()> {
    let begun = Instant::now();
    let call = muf.request(TARGET, "x").timeout(CALL_DEADLINE);
    let answer = call.ttl(CALL_DEADLINE).await;
    let took_ms = begun.elapsed().as_millis() as u64;
    counts.slowest_ms.fetch_max(took_ms, Ordering::Relaxed);
    match answer {
        Ok(_) => counts.answered.fetch_add(1, Ordering::Relaxed),
        Err(error) => {
            eprintln!("a call failed after {took_ms} ms: {error}");
            counts.failed.fetch_add(1, Ordering::Relaxed)
        }
    };
    Ok(())
}
