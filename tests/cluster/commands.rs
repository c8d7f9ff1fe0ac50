//! What an operator types, and what comes back: tables, events, exit codes.

use super::nodes::{Cluster, Keys, Plan, TIMEOUT, tell, turn};
use super::process;
use rustix::io::ioctl_fionbio;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A node of the `local` preset that falls silent is suspected after two seconds and dead after four.
const LONGER_THAN_A_VERDICT: Duration = Duration::from_secs(5);

fn two() -> Cluster {
    let mut cluster = Cluster::new();
    let mut plan = Plan::loopback(&[]);
    cluster.add(plan.clone());
    plan.seeds = vec![cluster.nodes[0].authority.clone()];
    plan.more = ["--name", "web-1"].map(str::to_owned).to_vec();
    cluster.add(plan);
    cluster.agree(&[0, 1]);
    cluster
}

#[track_caller]
fn fails(keys: &Keys, words: &[&str], code: i32, text: &str) {
    let output = keys.run(words);
    let error = String::from_utf8_lossy(&output.stderr);
    let secret = std::fs::read_to_string(keys.file()).expect("the key file");
    assert!(!error.contains(secret.trim()), "{words:?} shows the key");
    assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
    assert!(error.contains(text), "{words:?}: no {text:?} in {error:?}");
    assert_eq!(output.stdout, b"", "{words:?}");
}

/// A process that is gone with its test, however that ends.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        process::kill(&mut self.0);
    }
}

/// `kumi cluster watch` in the background.
struct Watching {
    _process: Process,
    events: Receiver<Value>,
}

impl Watching {
    fn start(keys: &Keys, node: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kumi"))
            .args(["cluster", "watch", "--node", node])
            .env("KUMI_CLUSTER_KEY_FILE", keys.file())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("kumi is built");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let (say, events) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = say.send(serde_json::from_str(&line).expect("JSON"));
            }
        });
        Self {
            _process: Process(child),
            events,
        }
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.events.recv_timeout(TIMEOUT);
            let event = event.unwrap_or_else(|_| panic!("not in time: {what}"));
            if holds(&event) {
                return event;
            }
        }
    }
}

#[test]
fn an_operator_lists_watches_quarantines_and_sends_away() {
    let _turn = turn();
    let mut cluster = two();
    let [first, second] = [0, 1].map(|place| cluster.nodes[place].authority.clone());

    let table = cluster
        .keys
        .printed(&["members", "--output", "text", "--node", &first]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(
        lines[0].starts_with("MEMBER") && lines[0].ends_with("METADATA"),
        "{table}"
    );
    assert_eq!(lines.len(), 4, "{table}");
    assert!(
        lines[1..3]
            .iter()
            .all(|line| line.contains(" up ") && line.contains(" v0.")),
        "{table}"
    );
    assert!(lines[3].starts_with("2 members of kumi, hash "), "{table}");
    // The first has the default name, after its address; the second has the name of its option.
    let named = |name: &str| {
        lines[1..3]
            .iter()
            .filter(|line| line.contains(name))
            .count()
    };
    assert_eq!(
        named(&format!(" {}~", first.replace(':', "-"))),
        1,
        "{table}"
    );
    assert_eq!(named(" web-1~"), 1, "{table}");

    let json = cluster
        .keys
        .printed(&["members", "--output", "json", "--node", &second]);
    let view: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(view["node"], second.as_str());
    let uid = view["uid"].as_str().expect("text");
    let web = format!("web-1~{uid}");
    assert_eq!(view["name_and_life"], web.as_str());
    let mut members = view["members"].as_array().expect("a list").iter();
    assert!(
        members.any(|member| member["name_and_life"] == web.as_str()),
        "{json}"
    );
    let links = view["connections"].as_u64().expect("a number");
    assert!((1..=64).contains(&links), "{json}");

    let told = [
        "metadata",
        "--role",
        "web",
        "--meta",
        "http=10.0.0.1:80",
        "--node",
        &second,
    ];
    let said = cluster.keys.printed(&told);
    assert!(said.ends_with(" web http=10.0.0.1:80\n"), "{said}");
    let asked = ["members", "--output", "text", "--node", &first];
    let started = std::time::Instant::now();
    while !cluster
        .keys
        .printed(&asked)
        .contains(" web http=10.0.0.1:80\n")
    {
        assert!(started.elapsed() < TIMEOUT, "the first node never sees it");
    }

    let watching = Watching::start(&cluster.keys, &first);
    let view = watching.until("the first view", |event| event["kind"] == "view");
    assert_eq!(
        view["view"]["members"].as_array().map(Vec::len),
        Some(2),
        "{view}"
    );

    let told = ["metadata", "--role", "db", "--node", &second];
    cluster.keys.printed(&told);
    let event = watching.until("the other role", |event| {
        event["kind"] == "metadata" && event["roles"][0] == "db"
    });
    assert_eq!(event["authority"], second.as_str());
    assert_eq!(event["name_and_life"], web.as_str());

    let order = [
        "quarantine",
        &second,
        "--reason",
        "disk\nfails",
        "--for",
        "5m",
        "--node",
        &first,
    ];
    assert_eq!(
        cluster.keys.printed(&order),
        format!("{second} is quarantined for 5m\n")
    );
    let event = watching.until("the quarantine", |event| event["kind"] == "quarantined");
    assert_eq!(event["authority"], second.as_str());
    let reason = event["reason"].as_str().expect("text");
    assert!(reason.contains("disk\\nfails"), "escaped: {reason}");
    watching.until("its end as a member", |event| {
        event["kind"] == "status" && event["authority"] == second.as_str() && event["to"] == "dead"
    });
    cluster.agree(&[0]);
    let table = cluster
        .keys
        .printed(&["members", "--output", "text", "--node", &first]);
    assert!(
        table.contains(&format!("{second} is quarantined for another 4m")),
        "{table}"
    );

    let lift = ["quarantine", &second, "--lift", "--node", &first];
    // It may be back before the answer.
    let lifted = cluster.keys.printed(&lift);
    let says = format!("the quarantine of {second} is lifted; it ");
    assert!(lifted.starts_with(&says), "{lifted}");
    watching.until("the release", |event| event["kind"] == "released");
    cluster.agree(&[0, 1]);

    let left = cluster.keys.printed(&["leave", "--node", &second]);
    assert_eq!(left, format!("{second} has left\n"));
    UdpSocket::bind(&second).expect("its port is free");
    assert_eq!(cluster.nodes[1].ended(), Some(0));
    watching.until("the leave", |event| {
        event["kind"] == "status"
            && event["authority"] == second.as_str()
            && event["to"] == "removed"
            && event["from"] != "dead"
    });
    cluster.agree(&[0]);
}

#[test]
fn what_cannot_be_done_is_told_by_an_exit_code() {
    let _turn = turn();
    let cluster = two();
    let node = cluster.nodes[0].authority.clone();
    let (keys, others) = (&cluster.keys, Keys::new());
    let file = keys.file();
    let file = file.to_str().expect("text");

    fails(
        keys,
        &["members", "--node", "nowhere"],
        2,
        "'nowhere' is not host:port",
    );
    fails(
        keys,
        &["members", "--node", "no-such-host.invalid:7400"],
        7,
        "cannot reach a node at no-such-host.invalid:7400",
    );
    fails(
        &others,
        &["members", "--output", "text", "--node", &node],
        7,
        "cannot reach a node at",
    );
    fails(keys, &["keygen", file], 4, "exists already");
    fails(
        keys,
        &["members", "--key-file", "/no/such/key"],
        4,
        "cannot read /no/such/key",
    );
    fails(
        keys,
        &["quarantine", "two words", "--node", &node],
        2,
        "is not the name of a member",
    );
    fails(
        keys,
        &["quarantine", "10.9.9.9:1", "--for", "9999h"],
        2,
        "at most 8760h",
    );
    fails(
        keys,
        &["quarantine", "10.9.9.9:1", "--lift", "--node", &node],
        8,
        "10.9.9.9:1",
    );
    fails(keys, &["up", "--bind", "0.0.0.0:0"], 2, "advertise");
    fails(
        keys,
        &["up", "--bind", "127.0.0.1:0", "--advertise", "0.0.0.0:1"],
        2,
        "advertise",
    );
    fails(
        keys,
        &["up", "--bind", "localhost:0"],
        2,
        "expected an IP address with or without a port",
    );
    fails(keys, &["up", "--bind", &node], 3, "cannot listen on");
    fails(keys, &["up", "--name", "Web 1"], 2, "a name is 1 to 63");
    fails(
        keys,
        &["up", "--seed", "nowhere"],
        2,
        "'nowhere' is not host:port",
    );
    fails(
        keys,
        &["up", "--bind", "127.0.0.1:0", "--cluster", "two words"],
        2,
        "cluster_name",
    );
}

#[test]
fn a_node_that_is_given_an_address_without_a_port_listens_on_the_usual_one() {
    let _turn = turn();
    let mut cluster = Cluster::new();
    // Every address of 127.0.0.0/8 is loopback. These are of this process alone.
    let [.., high, low] = std::process::id().to_be_bytes();
    let ip = |last: u8| format!("127.{}.{low}.{last}", high % 128 + 64);
    let plan = |last: u8, seeds: &[String]| Plan {
        bind: ip(last),
        ..Plan::loopback(seeds)
    };
    cluster.add(plan(1, &[]));
    assert_eq!(cluster.nodes[0].authority, format!("{}:7400", ip(1)));
    assert_eq!(cluster.nodes[0].listening, format!("{}:7400", ip(1)));
    let seeds = [cluster.nodes[0].authority.clone()];
    cluster.add(plan(2, &seeds));
    cluster.until("both are members", |views| {
        views.iter().all(|view| view.members.len() == 2)
    });
}

#[test]
fn a_second_node_on_one_address_takes_it_over_and_the_first_says_so() {
    let _turn = turn();
    let mut cluster = two();
    let [first, second] = [0, 1].map(|place| cluster.nodes[place].authority.clone());
    let mut plan = Plan::loopback(&[first]);
    plan.advertise = Some(second.clone());
    let third = cluster.add(plan);
    assert_eq!(cluster.nodes[third].authority, second);
    assert_eq!(cluster.nodes[1].ended(), Some(1));
    cluster.until(
        "the first node reports that it has been superseded",
        |views| {
            let told = views[1].told("self_downed");
            told.is_some_and(|event| event["reason"] == "superseded" && event["now"].is_null())
        },
    );
    cluster.agree(&[0, third]);
}

#[test]
fn a_node_reads_its_key_file_again_at_a_signal() {
    let _turn = turn();
    let mut cluster = Cluster::new();
    cluster.add(Plan::loopback(&[]));
    let node = cluster.nodes[0].authority.clone();
    let (old, new) = (Keys::new(), Keys::new());
    let file = cluster.keys.file();
    std::fs::copy(&file, old.file()).expect("both are ours");
    let asked = ["members", "--output", "text", "--node", &node];

    // A file that is no key changes nothing.
    std::fs::write(&file, "no key\n").expect("it is ours");
    cluster.nodes[0].signal(Signal::USR1);
    cluster.until("the file is refused", |views| {
        let told = views[0].told("reload_failed");
        told.is_some_and(|event| event["reason"].to_string().contains("not a key file"))
    });
    old.printed(&asked);

    std::fs::copy(new.file(), &file).expect("both are ours");
    cluster.nodes[0].signal(Signal::USR1);
    cluster.until("the new key is in use", |views| {
        views[0].told("reloaded").is_some()
    });
    new.printed(&asked);
    fails(&old, &asked, 7, "cannot reach a node at");
    cluster.nodes[0].signal(Signal::TERM);
    assert_eq!(cluster.nodes[0].ended(), Some(0));
}

#[test]
fn a_node_that_was_started_with_nohup_stays_when_the_terminal_closes() {
    let _turn = turn();
    let mut cluster = Cluster::new();
    let mut plan = Plan::loopback(&[]);
    // What nohup does to signals, without what it does to files.
    plan.wrapper = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"]
        .map(str::to_owned)
        .to_vec();
    cluster.add(plan);
    let node = cluster.nodes[0].authority.clone();
    cluster.until("it is up", |views| views[0].has_seen(&node, "up"));
    cluster.nodes[0].signal(Signal::HUP);
    // Signals that wait are taken in the order of their numbers, so the first has been when this one is answered.
    cluster.nodes[0].signal(Signal::USR1);
    cluster.until("it reads its key again", |views| {
        views[0].told("reloaded").is_some()
    });
    let table = cluster
        .keys
        .printed(&["members", "--output", "text", "--node", &node]);
    assert!(table.contains(" up "), "{table}");
    assert!(!cluster.views[0].has_seen(&node, "leaving"));
    cluster.nodes[0].signal(Signal::TERM);
    assert_eq!(cluster.nodes[0].ended(), Some(0));
}

/// A node that joins `first`, with this for its standard output.
fn joining(keys: &Keys, first: &str, stdout: impl Into<Stdio>) -> Process {
    let child = Command::new(env!("CARGO_BIN_EXE_kumi"))
        .args([
            "cluster",
            "up",
            "--preset",
            "local",
            "--bind",
            "127.0.0.1:0",
            "--seed",
            first,
        ])
        .env("KUMI_CLUSTER_KEY_FILE", keys.file())
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .expect("kumi is built");
    Process(child)
}

/// Waits until the first node has seen another one become this.
fn other_becomes(cluster: &mut Cluster, wanted: &str) {
    let first = cluster.nodes[0].authority.clone();
    cluster.until(&format!("another node is {wanted}"), |views| {
        let mut statuses = views[0].statuses.iter();
        statuses.any(|(who, status)| *who != first && status == wanted)
    });
}

#[test]
fn a_node_whose_reader_is_gone_says_so_and_runs_on() {
    let _turn = turn();
    let mut cluster = Cluster::new();
    cluster.add(Plan::loopback(&[]));
    let first = cluster.nodes[0].authority.clone();
    let mut unread = joining(&cluster.keys, &first, Stdio::piped());
    other_becomes(&mut cluster, "up");
    drop(unread.0.stdout.take());
    // Something that it wants to tell.
    let order = ["quarantine", "10.9.9.9:1", "--node", &first];
    cluster.keys.printed(&order);
    let mut said = BufReader::new(unread.0.stderr.take().expect("it is piped")).lines();
    let line = said.next().expect("a line").expect("text");
    assert!(line.contains("the node goes on without it"), "{line}");
    let table = cluster
        .keys
        .printed(&["members", "--output", "text", "--node", &first]);
    assert!(table.contains("2 members of kumi"), "{table}");

    process::signal(&unread.0, Signal::TERM);
    assert_eq!(process::ended(&mut unread.0), Some(0));
    assert!(said.next().is_none(), "said once");
    other_becomes(&mut cluster, "removed");
}

#[test]
fn a_node_whose_reader_does_not_read_lives_on() {
    let _turn = turn();
    let mut cluster = Cluster::new();
    cluster.add(Plan::loopback(&[]));
    let first = cluster.nodes[0].authority.clone();
    // A pipe that is full already, as behind a pager, or a terminal after ctrl-s.
    let (_reader, mut full) = std::io::pipe().expect("a pipe");
    ioctl_fionbio(&full, true).expect("it is ours");
    while full.write(&[b'.'; 512]).is_ok() {}
    ioctl_fionbio(&full, false).expect("it is ours");
    let mut unread = joining(&cluster.keys, &first, full);
    other_becomes(&mut cluster, "up");
    // Longer than it takes to be given up, of which the first node would tell.
    let watched = std::time::Instant::now();
    while watched.elapsed() < LONGER_THAN_A_VERDICT {
        let table = cluster
            .keys
            .printed(&["members", "--output", "text", "--node", &first]);
        let up = table.lines().filter(|line| line.contains(" up ")).count();
        assert_eq!(up, 2, "{table}");
    }
    process::signal(&unread.0, Signal::TERM);
    assert_eq!(process::ended(&mut unread.0), Some(0));
    other_becomes(&mut cluster, "removed");
}

#[test]
fn a_node_that_leaves_before_it_has_joined_shows_no_topology() {
    let _turn = turn();
    let cluster = Cluster::new();
    let closed = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let seed = closed.local_addr().expect("bound").to_string();
    drop(closed);
    let mut alone = joining(&cluster.keys, &seed, Stdio::piped());
    let mut said = BufReader::new(alone.0.stdout.take().expect("it is piped")).lines();
    let waits = |line: std::io::Result<String>| line.expect("text").contains("waiting");
    assert!(said.by_ref().any(waits));
    process::signal(&alone.0, Signal::TERM);
    let rest: Vec<String> = said.map(|line| line.expect("text")).collect();
    assert_eq!(process::ended(&mut alone.0), Some(0));
    assert!(rest.iter().any(|line| line.contains("leaving")), "{rest:?}");
    assert!(
        !rest.iter().any(|line| line.contains("topology")),
        "{rest:?}"
    );
}

#[test]
fn who_may_not_join_is_told_why_and_waits() {
    let _turn = turn();
    let mut cluster = Cluster::new();
    cluster.add(Plan::loopback(&[]));
    let seeds = [cluster.nodes[0].authority.clone()];

    let mut other_name = Plan::loopback(&seeds);
    other_name.more = ["--cluster", "another"].map(str::to_owned).to_vec();
    cluster.add(other_name);
    cluster.until("both sides know of the other name", |views| {
        let waiting = views[1].told("waiting").map(|event| &event["seeds"][0]);
        let reason = waiting.and_then(|seed| seed["reason"].as_str());
        reason == Some("it belongs to the cluster 'kumi'")
            && views[0].told("peer_refused").is_some()
    });
    // It is in no cluster, so it shows no topology, not even one of itself.
    assert!(
        cluster.views[1].members.is_empty(),
        "{:?}",
        cluster.views[1]
    );

    // The address is kept out before anybody is there.
    let mut kept_out = Plan::loopback(&seeds);
    kept_out.bind = cluster.nodes[1].listening.clone();
    cluster.nodes[1].kill();
    let order = [
        "quarantine",
        &kept_out.bind,
        "--for",
        "24h",
        "--node",
        &seeds[0],
    ];
    let lift = ["quarantine", &kept_out.bind, "--lift", "--node", &seeds[0]];
    let said = cluster.keys.printed(&order);
    assert!(said.contains("no member has that name now"), "{said}");
    let name = &kept_out.bind;
    let expected = format!("the quarantine of {name} is lifted; it may join again\n");
    assert_eq!(cluster.keys.printed(&lift), expected);
    cluster.keys.printed(&order);
    let joiner = cluster.add(kept_out.clone());
    cluster.until("the joiner learns that it is quarantined", |views| {
        views[joiner].told("quarantined").is_some()
    });
    cluster.keys.printed(&lift);
    tell("lifted and in", cluster.agree(&[0, joiner]));
}
