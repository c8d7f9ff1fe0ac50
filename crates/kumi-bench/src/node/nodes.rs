//! The nodes of one measurement: processes of `kumi-bench node-run`, and what they have said.
//!
//! A node that is started again gets the arguments that it had, as a service does: the first one joins nobody, and the others join
//! the first one. Ports stay the same.

use std::collections::{BTreeSet, VecDeque};
use std::env;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::children::Child;
use crate::node::options::NetworkPreset;
use crate::procfs::{self, CpuTime};
use crate::store::servers::{Stage, end_of_log, free_address};

/// How long anything may take that has no time of its own: nodes that are not there by then are a failed measurement.
pub(super) const LIMIT: Duration = Duration::from_secs(90);

/// How often members are asked whether they agree.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long tasks may take to run elsewhere: far beyond a lease, and beyond BullMQ's two intervals.
pub(super) const TAKEOVER_LIMIT: Duration = Duration::from_secs(150);

/// Nodes that run tasks in most measurements, and the one among them with the store.
pub(super) const NODES: usize = 5;
pub(super) const STORE: usize = 0;

/// What all nodes of a measurement have in common, and how many there are.
pub(super) struct Plan {
    pub(super) preset: NetworkPreset,
    /// Nodes that run tasks. The first one has the store.
    pub(super) nodes: usize,
    /// One more node that runs none, and is left alone.
    pub(super) has_client: bool,
    pub(super) places: Places,
}

/// Where nodes are.
pub(super) enum Places {
    Loopback,
    /// Each in a network namespace with an address of its own.
    Namespaces(Vec<(String, IpAddr)>),
}

impl Places {
    fn address(&self, node: usize) -> IpAddr {
        match self {
            Places::Loopback => Ipv4Addr::LOCALHOST.into(),
            Places::Namespaces(places) => places[node].1,
        }
    }

    /// The command that starts this program in the node's place.
    fn command(&self, node: usize) -> Result<Command> {
        let program = env::current_exe().context("cannot find this program's own path")?;
        Ok(match self {
            Places::Loopback => Command::new(program),
            Places::Namespaces(places) => {
                let mut command = Command::new("ip");
                command
                    .args(["netns", "exec", &places[node].0])
                    .arg(program);
                command
            }
        })
    }
}

/// The nodes. Dropping them kills the processes.
pub(super) struct Nodes<'a> {
    stage: &'a Stage,
    plan: Plan,
    directory: PathBuf,
    /// UDP ports of membership, by node.
    ports: Vec<u16>,
    store_port: u16,
    processes: Vec<Option<Process>>,
    sender: Sender<Said>,
    said: Receiver<Said>,
    replies: Vec<VecDeque<String>>,
    /// All tasks that began, in the order in which this program heard of them.
    pub(super) begun: Vec<Begun>,
    starts: usize,
    next_task: u64,
}

struct Process {
    child: Child,
    start: usize,
}

/// A line of a node.
struct Said {
    node: usize,
    start: usize,
    at: Instant,
    line: String,
}

/// A task that began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) task: u64,
    pub(super) node: usize,
    /// The start of the process: another one after a restart.
    pub(super) start: usize,
    pub(super) at: Instant,
}

/// What the queue has counted: tasks that have succeeded since it exists, and tasks that run now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    pub(super) succeeded: u64,
    pub(super) running: u64,
}

impl<'a> Nodes<'a> {
    /// Starts all nodes, and waits until all of them know each other.
    pub(super) fn start(stage: &'a Stage, plan: Plan) -> Result<Nodes<'a>> {
        let (sender, said) = channel();
        let all = plan.nodes + usize::from(plan.has_client);
        let mut nodes = Nodes {
            stage,
            directory: stage.subdirectory("nodes")?,
            ports: free_udp_ports(all)?,
            store_port: free_address()?.port(),
            processes: (0..all).map(|_| None).collect(),
            sender,
            said,
            replies: vec![VecDeque::new(); all],
            begun: Vec::new(),
            starts: 0,
            next_task: 1,
            plan,
        };
        for node in 0..all {
            nodes.start_node(node)?;
        }
        nodes.agree(all)?;
        Ok(nodes)
    }

    /// How many nodes there are, the client included.
    pub(super) fn len(&self) -> usize {
        self.processes.len()
    }

    /// Those that run tasks.
    pub(super) fn workers(&self) -> std::ops::Range<usize> {
        0..self.plan.nodes
    }

    /// Starts a node and waits until it is ready.
    pub(super) fn start_node(&mut self, node: usize) -> Result<()> {
        self.spawn(node)?;
        self.started(node)
    }

    /// Starts the process of a node.
    pub(super) fn spawn(&mut self, node: usize) -> Result<()> {
        let name = name(node);
        let mut command = self.plan.places.command(node)?;
        let address = self.plan.places.address(node);
        command
            .args(["node-run", "--name", &name, "--state-dir"])
            .arg(self.directory.join(&name))
            .args(["--preset", self.plan.preset.name()])
            .args(["--bind", &address.to_string()])
            .args(["--port", &self.ports[node].to_string()]);
        if node == STORE {
            command.args(["--store-port", &self.store_port.to_string()]);
        } else {
            let seed = SocketAddr::new(self.plan.places.address(STORE), self.ports[STORE]);
            command.args(["--join", &seed.to_string()]);
        }
        if node < self.plan.nodes {
            command.arg("--works");
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log(node))
            .context("cannot make a log file")?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        let spawned = match node {
            STORE => self.stage.spawn_server(&mut command),
            _ => self.stage.spawn_client(&mut command),
        };
        let mut child = spawned.with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("a node has an output")?;
        self.starts += 1;
        let (start, sender) = (self.starts, self.sender.clone());
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let at = Instant::now();
                let said = Said {
                    node,
                    start,
                    at,
                    line,
                };
                if sender.send(said).is_err() {
                    return;
                }
            }
        });
        self.replies[node].clear();
        self.processes[node] = Some(Process { child, start });
        Ok(())
    }

    /// Waits until a node that was spawned is ready.
    pub(super) fn started(&mut self, node: usize) -> Result<()> {
        self.reply(node).map(drop)
    }

    /// Kills a node: it says nothing to anybody. The time is that of the signal.
    pub(super) fn kill(&mut self, node: usize) -> Instant {
        let at = Instant::now();
        self.processes[node] = None;
        at
    }

    /// Stops a node in order, and waits for the end of its process.
    pub(super) fn stop(&mut self, node: usize) -> Result<()> {
        self.ask(node, "stop")?;
        let process = self.processes[node].take().context("it runs")?;
        match process.child.wait(LIMIT)? {
            Some(status) if status.success() => Ok(()),
            ended => bail!("{} ended badly: {ended:?}{}", name(node), self.end_of(node)),
        }
    }

    pub(super) fn signal(&self, node: usize, signal: Signal) -> Result<()> {
        let pid = self.pid(node)?;
        let pid = Pid::from_raw(pid as i32).context("a process has an id")?;
        kill_process(pid, signal).context("cannot send a signal")
    }

    fn pid(&self, node: usize) -> Result<u32> {
        Ok(self.process(node)?.child.pid())
    }

    fn process(&self, node: usize) -> Result<&Process> {
        self.processes[node].as_ref().context("the node runs")
    }

    /// The present start of a node's process.
    pub(super) fn start_of(&self, node: usize) -> Result<usize> {
        Ok(self.process(node)?.start)
    }

    /// Resident memory in bytes.
    pub(super) fn resident_bytes(&self, node: usize) -> Result<u64> {
        procfs::resident_bytes(self.pid(node)?)
    }

    pub(super) fn descriptors(&self, node: usize) -> Result<usize> {
        procfs::descriptors(self.pid(node)?)
    }

    pub(super) fn cpu_time(&self, node: usize) -> Result<CpuTime> {
        CpuTime::of(self.pid(node)?)
    }

    /// Sends a command to a node, and waits for its reply.
    pub(super) fn ask(&mut self, node: usize, command: &str) -> Result<String> {
        self.tell(node, command)?;
        let replied = self.reply(node);
        replied.with_context(|| format!("{} was told: {command}", name(node)))
    }

    /// Sends a command to a node.
    pub(super) fn tell(&mut self, node: usize, command: &str) -> Result<()> {
        let process = self.processes[node].as_mut().context("the node runs")?;
        let input = process
            .child
            .stdin
            .as_mut()
            .context("a node has an input")?;
        writeln!(input, "{command}").with_context(|| format!("{} has ended", name(node)))
    }

    /// The reply to a command that was sent.
    pub(super) fn reply(&mut self, node: usize) -> Result<String> {
        self.wait(LIMIT, "a reply", |nodes| !nodes.replies[node].is_empty())
            .with_context(|| format!("{} does not reply{}", name(node), self.end_of(node)))?;
        let reply = self.replies[node].pop_front();
        reply.context("there is a reply")
    }

    /// Listens to all nodes until something holds.
    pub(super) fn wait(
        &mut self,
        limit: Duration,
        what: &str,
        mut holds: impl FnMut(&mut Nodes<'a>) -> bool,
    ) -> Result<()> {
        let end = Instant::now() + limit;
        while !holds(self) {
            let left = end.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(said) => self.hear(said),
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{what} did not come within {} s", limit.as_secs())
                }
                // This program holds a sender itself.
                Err(RecvTimeoutError::Disconnected) => bail!("all nodes are gone"),
            }
        }
        Ok(())
    }

    /// Listens to all nodes for a while.
    pub(super) fn listen(&mut self, period: Duration) {
        let end = Instant::now() + period;
        while let Ok(said) = self
            .said
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            self.hear(said);
        }
    }

    fn hear(&mut self, said: Said) {
        let Said {
            node,
            start,
            at,
            line,
        } = said;
        if let Some(reply) = line.strip_prefix("= ") {
            // What a killed process replied is nobody's reply.
            let is_current = |process: &Process| process.start == start;
            if self.processes[node].as_ref().is_some_and(is_current) {
                self.replies[node].push_back(reply.to_owned());
            }
        } else if let Some(task) = line.strip_prefix("+ ").and_then(|task| task.parse().ok()) {
            self.begun.push(Begun {
                task,
                node,
                start,
                at,
            });
        }
    }

    /// Waits until all nodes that run see so many members.
    pub(super) fn agree(&mut self, members: usize) -> Result<()> {
        let members = members.to_string();
        let end = Instant::now() + LIMIT;
        for node in 0..self.len() {
            if self.processes[node].is_none() {
                continue;
            }
            loop {
                let seen = self.ask(node, "members")?;
                if seen == members {
                    break;
                }
                if Instant::now() >= end {
                    let log = self.end_of(node);
                    bail!("{} sees {seen} members and not {members}{log}", name(node));
                }
                self.listen(LOOK_AGAIN);
            }
        }
        Ok(())
    }

    pub(super) fn totals(&mut self, node: usize) -> Result<Totals> {
        let reply = self.ask(node, "totals")?;
        let [succeeded, running] = numbers(&reply)?;
        Ok(Totals { succeeded, running })
    }

    /// Waits until so many tasks have succeeded in all, by the count of the queue. Returns how many have at the end of the time.
    pub(super) fn until_succeeded(&mut self, node: usize, wanted: u64) -> Result<u64> {
        let end = Instant::now() + LIMIT;
        loop {
            let succeeded = self.totals(node)?.succeeded;
            if succeeded >= wanted || Instant::now() >= end {
                return Ok(succeeded);
            }
            self.listen(LOOK_AGAIN);
        }
    }

    /// Lets one node have so many running tasks, by stopping the claims of the others until it has them. Returns the tasks.
    pub(super) fn fill(&mut self, node: usize, tasks: usize) -> Result<BTreeSet<u64>> {
        let others: Vec<usize> = self.workers().filter(|other| *other != node).collect();
        for other in &others {
            self.ask(*other, "drain")?;
        }
        // Earlier tasks are of no interest any more.
        self.begun.clear();
        let (first, start) = (self.next_task, self.start_of(node)?);
        let own = |nodes: &Nodes<'a>| -> BTreeSet<u64> {
            let is_own = |begun: &&Begun| begun.task >= first && begun.start == start;
            let own = nodes.begun.iter().filter(is_own);
            own.map(|begun| begun.task).collect()
        };
        // A claim of another node may have been on its way when it was told to stop; its tasks are made up for.
        loop {
            let missing = tasks.saturating_sub(own(self).len());
            if missing == 0 {
                break;
            }
            let next = self.next_task;
            self.ask(STORE, &format!("enqueue {next} {missing}"))?;
            self.next_task += missing as u64;
            let wanted = (self.next_task - first) as usize;
            self.wait(LIMIT, "the start of all tasks", |nodes| {
                let new = nodes.begun.iter().filter(|begun| begun.task >= first);
                let new: BTreeSet<u64> = new.map(|begun| begun.task).collect();
                new.len() >= wanted
            })?;
        }
        for other in &others {
            self.ask(*other, "undrain")?;
        }
        Ok(own(self))
    }

    /// Waits until all of these tasks have begun in other processes than that one, and says when the last of them did.
    pub(super) fn begun_elsewhere(
        &mut self,
        tasks: &BTreeSet<u64>,
        start: usize,
        limit: Duration,
    ) -> Result<Instant> {
        let mut last = None;
        self.wait(limit, "the start of all tasks elsewhere", |nodes| {
            let elsewhere = nodes.begun.iter();
            let elsewhere =
                elsewhere.filter(|begun| begun.start != start && tasks.contains(&begun.task));
            last = elsewhere.clone().map(|begun| begun.at).max();
            let distinct: BTreeSet<u64> = elsewhere.map(|begun| begun.task).collect();
            distinct.len() == tasks.len()
        })?;
        last.context("there are tasks")
    }

    /// Lets all tasks end that run, on all nodes.
    pub(super) fn finish(&mut self) -> Result<()> {
        for node in self.workers() {
            self.ask(node, "finish")?;
        }
        Ok(())
    }

    fn log(&self, node: usize) -> PathBuf {
        self.directory.join(format!("{}.log", name(node)))
    }

    /// The end of a node's log, for an error.
    fn end_of(&self, node: usize) -> String {
        format!("; the end of its log: {}", end_of_log(&self.log(node)))
    }
}

/// The numbers of a reply.
pub(super) fn numbers<const N: usize>(reply: &str) -> Result<[u64; N]> {
    let numbers: Result<Vec<u64>, _> = reply.split(' ').map(str::parse).collect();
    let numbers = numbers.with_context(|| format!("numbers, and not {reply}"))?;
    let count = numbers.len();
    let exact = numbers.try_into().ok();
    exact.with_context(|| format!("{N} numbers, and not {count}"))
}

fn name(node: usize) -> String {
    format!("node-{node}")
}

/// UDP ports that were free a moment ago, all different.
fn free_udp_ports(count: usize) -> Result<Vec<u16>> {
    let sockets: std::io::Result<Vec<UdpSocket>> = (0..count)
        .map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect();
    let sockets = sockets.context("cannot find free ports")?;
    let ports = sockets.iter().map(|socket| Ok(socket.local_addr()?.port()));
    ports.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_as_many_numbers_as_were_asked_for() {
        assert_eq!(numbers::<3>("1 2 3").ok(), Some([1, 2, 3]));
        assert!(numbers::<2>("1 2 3").is_err());
        assert!(numbers::<1>("ok").is_err());
    }

    #[test]
    fn free_ports_are_different() {
        let ports: BTreeSet<u16> = free_udp_ports(5).unwrap().into_iter().collect();
        assert_eq!(ports.len(), 5);
    }
}
