//! `kumi status` and its neighbours, against nodes of this process.

use kumi_jobs::{NewTask, TaskEnvelope};
use kumi_node::config::{NodeConfig, Preset, StoreHere, StoreSection};
use kumi_node::{Builder, Node};
use kumi_unison::ClusterKey;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Far beyond what any step takes, so that a test that is stuck fails instead of hanging.
const STUCK: Duration = Duration::from_secs(60);

/// Nodes of one cluster, and the directory in which the command finds them.
struct Cluster {
    home: TempDir,
    key: PathBuf,
    runtime: Runtime,
}

impl Cluster {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let key = home.path().join("kumi.key");
        ClusterKey::create_file(&key).expect("a key");
        Self {
            home,
            key,
            runtime: runtime(),
        }
    }

    fn builder(&self, name: &str) -> Builder {
        let mut config = NodeConfig::default();
        config.node.preset = Some(Preset::Local);
        config.node.key_file = Some(self.key.clone());
        config.node.stop_within = Some(Duration::from_secs(1));
        Node::builder()
            .config(config)
            .name(name)
            .bind([127, 0, 0, 1].into())
            .ports(0, 0)
            .state_dir(self.home.path().join("kumi").join(name))
    }

    /// A node with a store.
    fn first(&self, name: &str) -> Node {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let mut here = StoreHere::default();
        here.directives.insert("port".into(), port.to_string());
        let builder = self.builder(name).store(StoreSection::Here(here));
        start(&self.runtime, builder)
    }

    /// A node that joins another.
    fn joining(&self, name: &str, first: &Node, runtime: &Runtime) -> Node {
        start(runtime, self.builder(name).join(&address(first)))
    }

    fn run(&self, args: &[&str]) -> Ran {
        run(self.home.path(), args)
    }

    /// Runs a command until its output has a text, and returns the output.
    fn until(&self, args: &[&str], text: &str) -> String {
        let begun = Instant::now();
        loop {
            let ran = self.run(args);
            if ran.code == Some(0) && ran.stdout.contains(text) {
                return ran.stdout;
            }
            assert!(begun.elapsed() < STUCK, "no {text:?} in {ran:?}");
        }
    }

    fn stop(&self, node: Node) {
        let stopped = self.runtime.block_on(node.shutdown());
        stopped.expect("stopped");
    }
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    builder.build().expect("a runtime")
}

fn start(runtime: &Runtime, builder: Builder) -> Node {
    runtime.block_on(async {
        let node = builder.start().await.expect("a node");
        node.ready().await;
        node
    })
}

fn address(node: &Node) -> String {
    let address = node.membership_address().expect("it listens");
    address.to_string()
}

#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn command(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kumi"));
    command
        .args(args)
        .env("XDG_STATE_HOME", home)
        .env_remove("KUMI_CLUSTER_KEY_FILE")
        .stdin(Stdio::null());
    command
}

fn run(home: &Path, args: &[&str]) -> Ran {
    let output = command(home, args).output().expect("kumi is built");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Checks the exit code, and that one line says each text.
#[track_caller]
fn fails(ran: &Ran, code: i32, texts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    for text in texts {
        assert!(ran.stderr.contains(text), "no {text:?} in {ran:?}");
    }
}

#[test]
fn where_no_node_runs_the_command_says_what_to_do() {
    let home = tempfile::tempdir().expect("a directory");
    let texts = ["no node runs on this machine", "kumi up", "--at HOST"];
    fails(&run(home.path(), &["status"]), 7, &texts);
    assert!(!home.path().join("kumi").exists(), "nothing is made");
    // One that ran here and was killed.
    let mut ended = Command::new("true").spawn().expect("started");
    let pid = ended.id();
    ended.wait().expect("ended");
    let record = |instance: &str, text: String| {
        let directory = home.path().join("kumi").join(instance);
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join("node.json"), text).expect("written");
    };
    let of = |name: &str, pid: u32| {
        format!(r#"{{"version":1,"name":"{name}","pid":{pid},"membership":"127.0.0.1:1"}}"#)
    };
    record("6379", of("a", pid));
    fails(&run(home.path(), &["nodes"]), 7, &texts);
    record(
        "7000",
        r#"{"version":9,"name":"b","pid":1,"membership":null}"#.into(),
    );
    fails(
        &run(home.path(), &["stop"]),
        1,
        &["node.json", "version is 9"],
    );

    // The number is another process's by now.
    let own = std::process::id();
    record("7000", of("b", own));
    fails(&run(home.path(), &["nodes"]), 7, &texts);
    // Several that run, as far as their records and locks tell.
    let locked = |instance: &str| {
        let path = home.path().join("kumi").join(instance).join("node.lock");
        let mut file = std::fs::File::create(path).expect("a file");
        write!(file, "{own}").expect("written");
        file.lock().expect("locked");
        file
    };
    record("6379", of("a", own));
    let _locks = ["6379", "7000"].map(locked);
    let ran = run(home.path(), &["status"]);
    fails(
        &ran,
        2,
        &[
            "2 nodes run",
            "--node NAME",
            "a (instance 6379), b (instance 7000)",
        ],
    );
    let ran = run(home.path(), &["status", "--node", "c"]);
    fails(
        &ran,
        7,
        &["no node called c", "a (instance 6379), b (instance 7000)"],
    );
    // Chosen by its instance; it has no key.
    let ran = run(home.path(), &["status", "--node", "7000"]);
    fails(&ran, 4, &["7000/cluster.key", "--key-file"]);
    let key = home.path().join("kumi.key");
    ClusterKey::create_file(&key).expect("a key");
    let key = key.to_str().expect("a plain path");
    let ran = run(home.path(), &["status", "--node", "b", "--key-file", key]);
    fails(&ran, 7, &["no node answers at 127.0.0.1:1", "UDP port"]);
    let ran = run(home.path(), &["status", "--at", "127.0.0.1:1"]);
    fails(&ran, 2, &["--key-file"]);
}

#[test]
fn status_shows_who_died_what_waits_and_since_when_the_store_is_away() {
    let cluster = Cluster::new();
    let doomed = runtime();
    let a = cluster.first("a");
    let b = cluster.joining("b", &a, &cluster.runtime);
    let c = cluster.joining("c", &a, &doomed);
    cluster.runtime.block_on(async {
        let mail = a.queue("mail").await.expect("a queue");
        let task = NewTask::new(TaskEnvelope::json("send", "1"));
        mail.enqueue_raw(task).await.expect("enqueued");
    });
    let text = cluster.until(&["status", "--node", "a"], "members  3 up\n");
    let store = a.store_url().expect("a store");
    let store = store.rsplit_once('@').expect("with a user").1.to_owned();
    let line = format!("\nstore  {store} on a, data set ");
    assert!(text.contains(&line), "{text}");
    assert!(text.contains("\n  mail"), "{text}");
    let nodes = cluster.run(&["nodes", "--node", "b"]).stdout;
    assert!(nodes.starts_with("members  3 up\n  NAME"), "{nodes}");
    assert_eq!(nodes.lines().count(), 5, "{nodes}");

    std::mem::forget(c);
    doomed.shutdown_background();
    let text = cluster.until(&["status", "--node", "a"], "node c died");
    assert!(text.starts_with("attention\n"), "{text}");
    assert!(text.contains("members  2 up, 1 dead\n"), "{text}");
    let waits = "  yellow  queue mail: 1 task waits, no worker asks for it\n";
    cluster.until(&["status", "--node", "a"], waits);

    cluster.stop(a);
    let away = format!("  red     store: {store} is away for ");
    let text = cluster.until(&["status", "--node", "b"], &away);
    assert!(text.contains(", away for "), "{text}");
    cluster.stop(b);
}

#[test]
fn from_another_machine_the_key_file_is_enough() {
    let cluster = Cluster::new();
    let elsewhere = tempfile::tempdir().expect("a directory");
    let a = cluster.first("a");
    let b = cluster.joining("b", &a, &cluster.runtime);
    let (at, key) = (address(&a), cluster.key.display().to_string());
    let entry = ["--at", at.as_str(), "--key-file", key.as_str()];
    let with = |args: &[&'static str]| [args, &entry].concat();
    cluster.until(&with(&["nodes"]), "members  2 up\n");
    let ran = run(elsewhere.path(), &with(&["status", "--output", "json"]));
    let status: Value = serde_json::from_str(&ran.stdout).expect("one document");
    assert_eq!(status["format"], 1);
    let names: Vec<_> = status["nodes"].as_array().expect("a list").iter().collect();
    let names: Vec<_> = names.iter().map(|node| node["name"].as_str()).collect();
    assert_eq!(names, [Some("a"), Some("b")]);

    // Each second a line, until ctrl-c.
    let mut watch = command(
        elsewhere.path(),
        &with(&["status", "--watch", "--output", "json"]),
    )
    .stdout(Stdio::piped())
    .spawn()
    .expect("kumi is built");
    let mut lines = BufReader::new(watch.stdout.take().expect("it is piped")).lines();
    let mut next = || -> u64 {
        let line = lines.next().expect("a line").expect("text");
        let status: Value = serde_json::from_str(&line).expect("one document a line");
        status["at_unix_ms"].as_u64().expect("a time")
    };
    let first = next();
    assert!(next() > first);
    let pid = i32::try_from(watch.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::INT).expect("it runs");
    assert_eq!(watch.wait().expect("it ends").code(), Some(0));

    let other = elsewhere.path().join("other.key");
    ClusterKey::create_file(&other).expect("a key");
    let other = other.to_str().expect("a plain path");
    let ran = run(
        elsewhere.path(),
        &["status", "--at", &at, "--key-file", other],
    );
    fails(&ran, 4, &["does not accept this key", &at]);
    cluster.stop(b);
    cluster.stop(a);
}

#[test]
fn nodes_are_drained_stopped_and_given_another_store_by_name() {
    let cluster = Cluster::new();
    let a = cluster.first("a");
    let b = cluster.joining("b", &a, &cluster.runtime);
    let at = address(&a);
    let key = cluster.key.display().to_string();
    let run = |args: &[&str]| {
        let entry = ["--at", at.as_str(), "--key-file", key.as_str()];
        cluster.run(&[args, &entry].concat())
    };
    let done = |ran: Ran| {
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
        ran.stdout
    };
    cluster.until(&["nodes", "--node", "a"], "members  2 up\n");
    assert_eq!(
        done(run(&["drain", "b"])),
        "b takes no more tasks; none of its tasks runs\n"
    );
    let text = cluster.until(&["nodes", "--node", "a"], "draining");
    assert!(text.contains("\n  b     draining  "), "{text}");
    // The operator's key is enough, unless others may read it.
    let operator = cluster.home.path().join("operator.key");
    let file = operator.to_str().expect("a plain path");
    std::fs::write(&operator, a.operator_key().expect("a key").expose()).expect("written");
    let undrain = ["undrain", "b", "--at", &at, "--operator-key-file", file];
    std::fs::set_permissions(&operator, Permissions::from_mode(0o644)).expect("its owner");
    fails(&cluster.run(&undrain), 4, &["mode 644", "chmod 600"]);
    std::fs::set_permissions(&operator, Permissions::from_mode(0o600)).expect("its owner");
    assert_eq!(done(cluster.run(&undrain)), "b takes tasks again\n");
    fails(
        &run(&["drain", "z"]),
        8,
        &["no live member is called z", "a, b"],
    );

    let id = cluster
        .runtime
        .block_on(a.status())
        .store
        .expect("a store")
        .id;
    let used = done(run(&["store", "use", &id]));
    assert_eq!(
        used,
        format!("the cluster uses store {id}; all members do\n")
    );
    fails(&run(&["store", "use", "zz"]), 8, &["id zz", &id, "--force"]);

    let stopping = cluster.runtime.spawn(async move {
        let grace = b.stop_requested().await;
        b.shutdown().await.expect("stopped");
        grace
    });
    assert_eq!(
        done(run(&["stop", "b", "--grace", "2s"])),
        "b has stopped\n"
    );
    let grace = cluster.runtime.block_on(stopping).expect("no panic");
    assert_eq!(grace, Duration::from_secs(2));
    cluster.until(&["nodes", "--node", "a"], "members  1 up\n");
    cluster.stop(a);
}
