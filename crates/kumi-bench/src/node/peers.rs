//! BullMQ beside the nodes: five workers on redis-server, with its defaults, of which one is killed with all jobs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::children::Child;
use crate::jobs::parties::{self, Party};
use crate::node::Bench;
use crate::node::nodes::{LIMIT, NODES, TAKEOVER_LIMIT};
use crate::store::servers::{Contender, Kind, find_program};

/// What a worker says when it works.
const WORKING: &str = "working";

/// Rounds of a killed worker with all jobs, each on a new redis-server: the seconds until all jobs run elsewhere.
pub(super) fn bullmq(bench: &Bench<'_>, rounds: usize) -> Result<Vec<f64>> {
    let party = parties::bullmq(&bench.args.node, &bench.progress)?;
    let hint = "install Debian's redis-server package, or name one with --redis-server";
    let redis = find_program(&bench.args.redis_server, hint)?;
    let redis = Contender::new("redis", Kind::Redis, redis);
    let mut task = bench.progress.task("bullmq", rounds);
    let mut done = Vec::new();
    for number in 0..rounds {
        task.begin(&format!("round {}", number + 1));
        done.push(round(bench, &party, &redis)?);
        task.end();
    }
    Ok(done)
}

fn round(bench: &Bench<'_>, party: &Party, redis: &Contender) -> Result<f64> {
    let server = redis.start(bench.stage, &[])?;
    let url = format!("redis://{}/", server.address());
    let (sender, lines) = channel();
    let command = |operation: &str| party.command(&url, operation, bench.tasks, bench.tasks);
    let victim = Worker::start(bench, command("hold"), 0, &sender)?;
    let mut heard = Heard::new(lines, bench.tasks);
    heard.until(LIMIT, |heard| heard.working == 1)?;
    let _producer = Worker::start(bench, command("enqueue-bulk"), NODES, &sender)?;
    heard.until(LIMIT, |heard| {
        heard.begun_by(|worker| worker == 0).is_some()
    })?;
    let mut others = Vec::new();
    for number in 1..NODES {
        others.push(Worker::start(bench, command("hold"), number, &sender)?);
    }
    heard.until(LIMIT, |heard| heard.working == NODES)?;
    let killed = Instant::now();
    drop(victim);
    heard.until(TAKEOVER_LIMIT, |heard| {
        heard.begun_by(|worker| worker != 0).is_some()
    })?;
    let last = heard.begun_by(|worker| worker != 0);
    let last = last.context("all jobs have begun")?;
    Ok((last - killed).as_secs_f64())
}

/// A client of BullMQ that has been told to begin. Dropping it kills it.
struct Worker {
    _child: Child,
}

impl Worker {
    fn start(
        bench: &Bench<'_>,
        mut command: Command,
        number: usize,
        sender: &Sender<(usize, Instant, String)>,
    ) -> Result<Worker> {
        command.stderr(Stdio::null());
        let mut child = bench
            .stage
            .spawn_client(&mut command)
            .with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("it has an output")?;
        let mut lines = BufReader::new(output).lines();
        match lines.next() {
            Some(Ok(line)) if line == "ready" => {}
            other => bail!("a client of BullMQ said {other:?}"),
        }
        let input = child.stdin.as_mut().context("it has an input")?;
        input.write_all(b"go\n").context("it ended")?;
        let sender = sender.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send((number, Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        Ok(Worker { _child: child })
    }
}

/// What workers have said.
struct Heard {
    lines: Receiver<(usize, Instant, String)>,
    jobs: usize,
    working: usize,
    /// When each job began first, by worker and job.
    begun: BTreeMap<(usize, u64), Instant>,
}

impl Heard {
    fn new(lines: Receiver<(usize, Instant, String)>, jobs: usize) -> Heard {
        Heard {
            lines,
            jobs,
            working: 0,
            begun: BTreeMap::new(),
        }
    }

    fn until(&mut self, limit: Duration, holds: impl Fn(&Heard) -> bool) -> Result<()> {
        let end = Instant::now() + limit;
        while !holds(self) {
            let left = end.saturating_duration_since(Instant::now());
            let said = self.lines.recv_timeout(left);
            let (worker, at, line) =
                said.with_context(|| format!("BullMQ was waited for {} s", limit.as_secs()))?;
            if line == WORKING {
                self.working += 1;
            } else if let Some(job) = line.strip_prefix("+ ").and_then(|job| job.parse().ok()) {
                self.begun.entry((worker, job)).or_insert(at);
            }
        }
        Ok(())
    }

    /// When the last of all jobs began on one of these workers; none while some have not.
    fn begun_by(&self, is_one: impl Fn(usize) -> bool) -> Option<Instant> {
        let mut first: BTreeMap<u64, Instant> = BTreeMap::new();
        for ((worker, job), at) in &self.begun {
            if is_one(*worker) {
                let known = first.entry(*job).or_insert(*at);
                *known = (*known).min(*at);
            }
        }
        let is_all = first.len() >= self.jobs;
        is_all.then(|| first.values().max().copied()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_jobs_have_begun_when_the_last_one_has() {
        let (_sender, lines) = channel();
        let mut heard = Heard::new(lines, 2);
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        heard.begun.insert((0, 1), now);
        heard.begun.insert((0, 2), now);
        heard.begun.insert((1, 1), now);
        assert_eq!(heard.begun_by(|worker| worker == 0), Some(now));
        assert_eq!(heard.begun_by(|worker| worker != 0), None);
        heard.begun.insert((2, 2), later);
        heard.begun.insert((3, 2), later + Duration::from_secs(1));
        assert_eq!(heard.begun_by(|worker| worker != 0), Some(later));
    }
}
