//! The engine inside this process, on one thread and without a socket, every call into it timed.
//!
//! This is what a process started by [`growth`](super::growth) does. It says what it found line by
//! line on standard output: `progress` now and then, `step NAME NANOSECONDS` per percentile, and
//! `long KEYS NANOSECONDS` per step of some length. It judges nothing.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use kumi_resp::OwnedArgs;
use kumi_store::{
    ApplyError, Config, Host, HostFacts, Now, Outputs, Peer, Seeds, SessionKey, Store,
};
use rustix::time::{ClockId, clock_gettime};

use crate::args::{EngineLoad, EngineRunArgs};
use crate::stats::Histogram;

/// Said this often while the keyspace grows.
pub(crate) const PROGRESS_STEPS: usize = 20;
pub(crate) const PROGRESS: &str = "progress";
/// Steps at least this long are said one by one.
pub(crate) const LONG_STEP_NS: u64 = 100_000;
/// Entries of `long` lines that are kept at most, on a machine where every step is long.
const LONG_STEPS_LIMIT: usize = 1_000_000;
pub(crate) const LONGEST: &str = "longest";
/// What is said of all steps, as percentiles.
pub(crate) const STATISTICS: [(&str, f64); 4] = [
    ("p50", 50.0),
    ("p99", 99.0),
    ("p99.99", 99.99),
    (LONGEST, 100.0),
];

/// Commands executed before output and effects are taken, as a front does after a read.
const BATCH: usize = 64;
const NEAREST_TTL_MS: u64 = 1_000_000;
const FARTHEST_TTL_MS: u64 = 2_000_000;
const SEED: u64 = 0x6b75_6d69;

/// Grows a keyspace as asked and says what it took.
pub(crate) fn run(args: &EngineRunArgs) -> Result<()> {
    // The process is to the engine what kumi-server's is.
    kumi_server::prepare_process(Config::new().settings());
    let steps = match args.load {
        EngineLoad::Empty => empty(args.keys),
        EngineLoad::Plain | EngineLoad::Ttl => grow(args.keys, args.load)?,
    };
    for (name, percent) in STATISTICS {
        println!("step {name} {}", steps.all_ns.percentile(percent));
    }
    for (keys, ns) in &steps.long_ns {
        println!("long {keys} {ns}");
    }
    Ok(())
}

/// The times of all steps.
#[derive(Default)]
struct Steps {
    all_ns: Histogram,
    /// The longest of the long steps at a number of keys.
    long_ns: BTreeMap<usize, u64>,
}

impl Steps {
    fn time(&mut self, keys: usize, step: impl FnOnce()) {
        let start = thread_cpu();
        step();
        let spent = thread_cpu().saturating_sub(start);
        let spent_ns = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        self.all_ns.record(spent_ns);
        if spent_ns >= LONG_STEP_NS && self.long_ns.len() < LONG_STEPS_LIMIT {
            let longest = self.long_ns.entry(keys).or_default();
            *longest = spent_ns.max(*longest);
        }
    }
}

/// Steps that do nothing: whatever is long here is the machine's.
fn empty(count: usize) -> Steps {
    let mut steps = Steps::default();
    for index in 0..count {
        steps.time(index, || {});
        say_progress(index + 1, count);
    }
    steps
}

fn grow(keys: usize, load: EngineLoad) -> Result<Steps> {
    let mut host = ClockHost;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut store = Store::new(Config::default(), Seeds::from_seed(SEED), host.now());
    let mut outputs = Outputs::new();
    let session = store.connect(Peer::default(), host.now());
    let mut steps = Steps::default();
    for index in 0..keys {
        let key = format!("key:{index:012}");
        let value = format!("value:{index:010}");
        let ttl_ms = random.u64(NEAREST_TTL_MS..FARTHEST_TTL_MS).to_string();
        let words = ["SET", &key, &value, "PX", &ttl_ms];
        let count = if load == EngineLoad::Ttl { 5 } else { 3 };
        let request = OwnedArgs::from_slices(&words[..count]);
        let now = host.now();
        steps.time(index, || {
            // SET neither blocks nor closes; its answer is checked with the batch.
            let _ = store.execute(session, request.as_args(), now, &mut outputs, &mut host);
        });
        if now.unix_ms() >= store.next_deadline() {
            steps.time(index, || store.poll(&mut outputs, &mut host));
        }
        if (index + 1) % BATCH == 0 || index + 1 == keys {
            take_output(&mut store, &mut outputs, session)?;
        }
        say_progress(index + 1, keys);
    }
    if load == EngineLoad::Ttl {
        check_ttl(&mut store, &mut outputs, session, &mut host)?;
    }
    // The process ends next; freeing ten million keys one by one would only take time.
    std::mem::forget(store);
    Ok(steps)
}

fn say_progress(done: usize, of: usize) {
    if done == of || done.is_multiple_of(of.div_ceil(PROGRESS_STEPS)) {
        println!("{PROGRESS}");
    }
}

/// Does what a front does after a batch, and checks that every command was answered with OK.
fn take_output(store: &mut Store, outputs: &mut Outputs, session: SessionKey) -> Result<()> {
    let list = outputs.take_ready();
    outputs.recycle_ready(list);
    let output = outputs.to_vec(session);
    if output.chunks(5).any(|reply| reply != b"+OK\r\n") {
        bail!(
            "the engine answered {}",
            String::from_utf8_lossy(&output).trim()
        );
    }
    let length = output.len();
    store.written(outputs, session, length);
    drop(store.effects());
    Ok(())
}

/// Figures with TTLs would say nothing if the keys had none.
fn check_ttl(
    store: &mut Store,
    outputs: &mut Outputs,
    session: SessionKey,
    host: &mut ClockHost,
) -> Result<()> {
    let request = OwnedArgs::from_slices(["PTTL", "key:000000000000"]);
    let _ = store.execute(session, request.as_args(), host.now(), outputs, host);
    let answer = outputs.to_vec(session);
    let answer = String::from_utf8_lossy(&answer);
    let ttl_ms = answer
        .trim()
        .strip_prefix(':')
        .and_then(|text| text.parse::<i64>().ok());
    match ttl_ms {
        Some(1..) => Ok(()),
        _ => bail!("a key set with a TTL answered PTTL with {}", answer.trim()),
    }
}

/// CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A world that has clocks and nothing else.
struct ClockHost;

impl Host for ClockHost {
    fn now(&mut self) -> Now {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mono = clock_gettime(ClockId::Monotonic);
        let mono_ns = mono
            .tv_sec
            .saturating_mul(1_000_000_000)
            .saturating_add(mono.tv_nsec);
        Now {
            unix_us: u64::try_from(unix.as_micros()).unwrap_or(u64::MAX),
            mono_ns: u64::try_from(mono_ns).unwrap_or(0),
        }
    }

    fn apply_config(&mut self, _: &Config, _: &[&'static str]) -> Result<(), ApplyError> {
        Ok(())
    }

    fn rewrite_config(&mut self, _: &Config) -> Result<(), String> {
        Err("there is no file to write to".to_owned())
    }

    fn facts(&mut self) -> HostFacts {
        HostFacts::default()
    }

    fn sleep(&mut self, _: Duration) {}

    fn serve_others(&mut self, _: &mut Store, _: &mut Outputs) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_step_is_kept_with_its_place() {
        let mut steps = Steps::default();
        steps.time(1, || {});
        steps.time(2, || {
            let start = thread_cpu();
            while thread_cpu() - start < Duration::from_millis(20) {}
        });
        assert!(steps.long_ns[&2] >= 20_000_000);
        assert_eq!(steps.all_ns.percentile(100.0), steps.long_ns[&2] as f64);
    }

    #[test]
    fn growing_takes_time() {
        let steps = grow(1000, EngineLoad::Plain).unwrap();
        assert!(steps.all_ns.percentile(50.0) > 0.0);
    }
}
