//! Nodes of one cluster, each a process of its own and gone with its test, and what they have said so far.

use super::process;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take before the test fails. Only a failing test ever waits that long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Clusters of five on two cores disturb each other, so they take turns.
static TURN: Mutex<()> = Mutex::new(());

pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory with a key file in it.
pub(crate) struct Keys {
    directory: TempDir,
}

impl Keys {
    pub(crate) fn new() -> Self {
        let keys = Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        };
        let file = keys.file();
        let made = Command::new(env!("CARGO_BIN_EXE_kumi"))
            .args(["cluster", "keygen"])
            .arg(&file)
            .status();
        assert!(made.expect("kumi is built").success());
        keys
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("cluster.key")
    }

    /// Runs `kumi cluster` with these words to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kumi"))
            .arg("cluster")
            .args(words)
            .env("KUMI_CLUSTER_KEY_FILE", self.file())
            .stdin(Stdio::null())
            .output()
            .expect("kumi is built")
    }

    /// Runs a command that has to succeed, and answers what it printed.
    #[track_caller]
    pub(crate) fn printed(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }
}

/// How a node is started.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    /// Words before `kumi`, such as those that enter a network namespace.
    pub(crate) wrapper: Vec<String>,
    pub(crate) bind: String,
    pub(crate) advertise: Option<String>,
    pub(crate) seeds: Vec<String>,
    /// Options that name certificates, instead of the key file.
    pub(crate) tls: Vec<String>,
    /// Words after all others.
    pub(crate) more: Vec<String>,
}

impl Plan {
    /// A node on a free port of the loopback address.
    pub(crate) fn loopback(seeds: &[String]) -> Self {
        Self {
            bind: "127.0.0.1:0".into(),
            seeds: seeds.to_vec(),
            ..Self::default()
        }
    }
}

/// What a node has said about the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) members: BTreeSet<String>,
    pub(crate) hash: String,
    /// Every status that was told, as (member, status), the oldest first.
    pub(crate) statuses: Vec<(String, String)>,
    /// Everything else that was told.
    pub(crate) others: Vec<Value>,
}

impl View {
    fn learn(&mut self, event: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event["kind"].as_str() {
            Some("topology") => {
                let members = event["members"].as_array().expect("a list of members");
                self.members = members.iter().map(text).collect();
                self.hash = text(&event["hash"]);
            }
            Some("status") => {
                let status = (text(&event["authority"]), text(&event["to"]));
                self.statuses.push(status);
            }
            _ => self.others.push(event.clone()),
        }
    }

    /// Whether this node has told of that status of that member.
    pub(crate) fn has_seen(&self, member: &str, status: &str) -> bool {
        self.statuses
            .iter()
            .any(|(who, what)| who == member && what == status)
    }

    /// What it has told of that kind.
    pub(crate) fn told(&self, kind: &str) -> Option<&Value> {
        self.others.iter().find(|event| event["kind"] == kind)
    }
}

/// A running node.
pub(crate) struct Node {
    child: Child,
    pub(crate) authority: String,
    /// Where it listens, which a proxy may stand in front of.
    pub(crate) listening: String,
    pub(crate) plan: Plan,
    /// Which start of this node it is; what earlier ones still say does not count.
    life: u64,
}

/// Nodes and their views.
pub(crate) struct Cluster {
    pub(crate) keys: Keys,
    pub(crate) nodes: Vec<Node>,
    pub(crate) views: Vec<View>,
    said: Receiver<(u64, Value)>,
    say: Sender<(u64, Value)>,
    lives: u64,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let (say, said) = channel();
        Self {
            keys: Keys::new(),
            nodes: Vec::new(),
            views: Vec::new(),
            said,
            say,
            lives: 0,
        }
    }

    /// Starts one more node, and answers its place.
    pub(crate) fn add(&mut self, plan: Plan) -> usize {
        let node = self.spawn(plan);
        self.nodes.push(node);
        self.views.push(View::default());
        self.nodes.len() - 1
    }

    /// Starts a node again, on the address it had.
    pub(crate) fn restart(&mut self, place: usize) {
        let mut plan = self.nodes[place].plan.clone();
        plan.bind = self.nodes[place].listening.clone();
        let others = (0..self.nodes.len()).filter(|other| *other != place);
        plan.seeds = others
            .map(|other| self.nodes[other].authority.clone())
            .collect();
        self.nodes[place] = self.spawn(plan);
        self.views[place] = View::default();
    }

    fn spawn(&mut self, plan: Plan) -> Node {
        let program = env!("CARGO_BIN_EXE_kumi").to_owned();
        let mut words: Vec<String> = plan.wrapper.clone();
        words.push(program);
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(["cluster", "up", "--preset", "local", "--output", "json"]);
        command.args(["--bind", &plan.bind]);
        if let Some(advertise) = &plan.advertise {
            command.args(["--advertise", advertise]);
        }
        for seed in &plan.seeds {
            command.args(["--seed", seed]);
        }
        command.args(&plan.more);
        match plan.tls.is_empty() {
            true => command.arg("--key-file").arg(self.keys.file()),
            false => command.args(&plan.tls),
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kumi is built");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let first = lines.next().and_then(Result::ok).expect("a first line");
        let started: Value = serde_json::from_str(&first).expect("JSON");
        assert_eq!(started["kind"], "started", "{first}");
        self.lives += 1;
        let (life, say) = (self.lives, self.say.clone());
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event =
                    serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                // The pipe is read on, so that the node is never held up.
                let _ = say.send((life, event));
            }
        });
        let text = |name: &str| started[name].as_str().expect("text").to_owned();
        Node {
            child,
            authority: text("node"),
            listening: text("listening"),
            plan,
            life,
        }
    }

    /// Reads what the nodes say until this holds, and answers how long that took.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&[View]) -> bool) -> Duration {
        let started = Instant::now();
        loop {
            if holds(&self.views) {
                return started.elapsed();
            }
            let left = TIMEOUT.saturating_sub(started.elapsed());
            let Ok((life, event)) = self.said.recv_timeout(left) else {
                panic!("not in time: {what}; {:#?}", self.views);
            };
            let place = self.nodes.iter().position(|node| node.life == life);
            if let Some(place) = place {
                self.views[place].learn(&event);
            }
        }
    }

    /// Waits until the nodes in these places agree that they are the cluster.
    #[track_caller]
    pub(crate) fn agree(&mut self, places: &[usize]) -> Duration {
        let members: BTreeSet<String> = places
            .iter()
            .map(|place| self.nodes[*place].authority.clone())
            .collect();
        let what = format!("nodes {places:?} agree");
        self.until(&what, |views| {
            let hash = &views[places[0]].hash;
            let same =
                |place: &usize| views[*place].members == members && views[*place].hash == *hash;
            places.iter().all(same)
        })
    }

    /// What every node answers when it is asked is what it said by itself, and the same everywhere.
    #[track_caller]
    pub(crate) fn all_tell_the_same_hash(&mut self) {
        let places: Vec<usize> = (0..self.nodes.len()).collect();
        let started = Instant::now();
        loop {
            self.agree(&places);
            let hashes: BTreeSet<String> =
                places.iter().map(|place| self.asked_hash(*place)).collect();
            if hashes.len() == 1 {
                note(&format!(
                    "all {} nodes tell the hash {hashes:?}",
                    places.len()
                ));
                return;
            }
            // A status may have changed between two questions; then they are asked again.
            assert!(started.elapsed() < TIMEOUT, "{hashes:?}");
        }
    }

    fn asked_hash(&self, place: usize) -> String {
        let view = self.asked(place);
        view["hash"].as_str().expect("a hash").to_owned()
    }

    /// The uids of all members by their authorities, as this node answers.
    pub(crate) fn asked_lives(&self, place: usize) -> BTreeMap<String, String> {
        let view = self.asked(place);
        let members = view["members"].as_array().expect("a list of members");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let lives = members
            .iter()
            .map(|member| (text(&member["authority"]), text(&member["uid"])));
        lives.collect()
    }

    fn asked(&self, place: usize) -> Value {
        let node = &self.nodes[place];
        let mut words: Vec<String> = node.plan.wrapper.clone();
        words.push(env!("CARGO_BIN_EXE_kumi").into());
        let asked = Command::new(&words[0])
            .args(&words[1..])
            .args([
                "cluster",
                "members",
                "--output",
                "json",
                "--node",
                &node.listening,
                "--key-file",
            ])
            .arg(self.keys.file())
            .output()
            .expect("kumi is built");
        assert!(asked.status.success(), "{asked:?}");
        serde_json::from_slice(&asked.stdout).expect("JSON")
    }

    /// Every place but this one.
    pub(crate) fn others(&self, place: usize) -> Vec<usize> {
        (0..self.nodes.len())
            .filter(|other| *other != place)
            .collect()
    }
}

impl Node {
    pub(crate) fn signal(&self, signal: Signal) {
        process::signal(&self.child, signal);
    }

    /// Kills it without a chance to say anything.
    pub(crate) fn kill(&mut self) {
        process::kill(&mut self.child);
    }

    /// Waits for its end, and answers the exit code; none if it was killed.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> Option<i32> {
        process::ended(&mut self.child)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Prints how long something took.
pub(crate) fn tell(what: &str, took: Duration) {
    note(&format!("{what}: {:.2} s", took.as_secs_f64()));
}

/// Prints a line that is seen whether the test passes or not: what is printed with a macro is hidden when it passes.
pub(crate) fn note(line: &str) {
    let _ = writeln!(std::io::stdout(), "  {line}");
}
