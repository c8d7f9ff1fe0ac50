//! The bench through its command line, with a real redis-server on both sides and little data.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step of a test is a failed test"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn bench(temporary: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kumi-bench"));
    command
        .arg("store")
        .args(["--kumi-server", "redis-server"])
        // A test must not install one.
        .args(["--valkey-server", "/nowhere/valkey-server"])
        .args(args)
        .env("TMPDIR", temporary);
    command
}

/// Processes whose command line names this directory: each server does, as its working directory.
fn processes_in(directory: &Path) -> Vec<String> {
    let needle = directory.to_string_lossy().into_owned();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&needle))
        .collect()
}

#[test]
fn a_small_run_of_scripts_prints_its_figures() {
    let temporary = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kumi-bench"))
        .arg("scripts")
        .args(["--kumi-server", "redis-server", "--runs", "1"])
        .args(["--valkey-server", "/nowhere/valkey-server", "--no-peers"])
        .args(["--seconds", "0.05", "--pipelines", "16", "--jobs", "200"])
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    for name in [
        "scripts.get.p16.cpu_us",
        "scripts.fcall.p16.cpu_us",
        "scripts.limiter.p16.cpu_us",
        "scripts.loop.p16.cpu_us",
        "acl.get.p16.cpu_us",
        "acl.set.p16.cpu_us",
        "queues.kumi-jobs.server_us",
        "lua.patterns.cpu_us",
        "lua.json.cpu_us",
    ] {
        let start = format!("figure name={name} server=kumi value=");
        assert!(text.contains(&start), "{start} is missing in:\n{text}");
    }
    assert_eq!(processes_in(temporary.path()), Vec::<String>::new());
}

#[test]
fn a_small_run_prints_a_line_per_figure_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let args = "--only workloads,memory --keys 2000 --runs 1 --seconds 0.1 --pipelines 16";
    let output = bench(temporary.path(), &args.split(' ').collect::<Vec<_>>())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let figures: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("figure "))
        .collect();
    for name in [
        "store.set.p16.throughput",
        "store.get.p16.cpu_us",
        "store.mget.p16.above_floor_us",
        "store.incr.p16.throughput",
        "store.set_ex.p16.cpu_us",
        "store.memory.plain",
        "store.memory.random_ttl",
    ] {
        for server in ["kumi", "redis"] {
            let start = format!("figure name={name} server={server} value=");
            assert!(
                figures.iter().any(|line| line.starts_with(&start)),
                "no {start} in {text}"
            );
        }
    }
    assert!(
        text.contains("figure name=store.mset.p16.cpu_us server=floor value="),
        "{text}"
    );
    assert!(text.contains("valkey was not measured: /nowhere/valkey-server"));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(processes_in(temporary.path()), Vec::<String>::new());
}

#[test]
fn two_builds_are_compared_without_peers() {
    let temporary = tempfile::tempdir().unwrap();
    let args =
        "--only workloads --keys 2000 --runs 1 --seconds 0.1 --pipelines 16 --against redis-server";
    let output = bench(temporary.path(), &args.split(' ').collect::<Vec<_>>())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let first = text.lines().next().unwrap();
    let start = "figure name=store.set.p16.throughput server=kumi value=";
    assert!(first.starts_with(start), "{text}");
    assert!(text.contains("server=before value="), "{text}");
    let mean = "geometric mean of kumi/before in 6 rows of us/op: ";
    assert!(text.contains(mean), "{text}");
    assert!(!text.contains("server=redis"), "{text}");
}

#[test]
fn two_builds_are_compared_by_their_types() {
    let temporary = tempfile::tempdir().unwrap();
    let args = "types --kumi-server redis-server --against redis-server --runs 1 --requests 800 --keys 200 \
                --elements 1000 --only commands --types list --pipelines 16";
    let output = Command::new(env!("CARGO_BIN_EXE_kumi-bench"))
        .args(args.split_whitespace())
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let figures = text.lines().filter(|line| line.starts_with("figure name="));
    let (ours, others): (Vec<&str>, Vec<&str>) =
        figures.partition(|line| line.contains(" server=kumi "));
    assert_eq!((ours.len(), others.len()), (6, 6), "{text}");
    for line in ours {
        assert!(line.contains(" ratio_vs_before="), "{line}");
    }
    for line in others {
        assert!(line.contains(" server=before "), "{line}");
    }
    let mean = "geometric mean of kumi/before in 6 rows of us/op: ";
    assert!(text.contains(mean), "{text}");
}

#[test]
fn a_small_run_of_types_prints_a_line_per_figure_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let args = "types --kumi-server redis-server --valkey-server /nowhere/valkey-server --runs 1 --requests 800 \
                --keys 200 --elements 1000 --members 1000 --rows p16,five,memory.large,129";
    let output = Command::new(env!("CARGO_BIN_EXE_kumi-bench"))
        .args(args.split_whitespace())
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    for name in [
        "types.lpush.small.p16",
        "types.lrange.large.p16",
        "types.hgetall.small.p16",
        "types.zpopmin.large.p16",
        "types.xreadgroup.small.p16",
        "types.xreadgroup.large.p16",
        "types.memory.five.hash_long",
        "types.memory.large.pending",
        "types.memory.zset.129.long4096",
    ] {
        for server in ["kumi", "redis"] {
            let start = format!("figure name={name} server={server} value=");
            assert!(text.contains(&start), "no {start} in {text}");
        }
    }
    assert!(!text.contains(".p1 "), "{text}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(processes_in(temporary.path()), Vec::<String>::new());
}

#[test]
fn a_signal_ends_the_servers_too() {
    let temporary = tempfile::tempdir().unwrap();
    let mut bench = bench(temporary.path(), &["--only", "idle"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(bench.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("idle 1/")));
    let start = Instant::now();
    // Looked at once: the bench ends this server by itself before it starts the next one.
    while processes_in(temporary.path()).is_empty() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "no server was started"
        );
        std::thread::yield_now();
    }
    let terminate = Command::new("kill")
        .arg(bench.id().to_string())
        .status()
        .unwrap();
    assert!(terminate.success());
    let status = bench.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(143), None));
    assert_eq!(processes_in(temporary.path()), Vec::<String>::new());
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn a_missing_program_is_named_with_what_to_install() {
    let temporary = tempfile::tempdir().unwrap();
    let check = |args: &[&str], expected: &str| {
        let output = bench(temporary.path(), args).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && text.contains(expected),
            "{text}"
        );
    };
    check(
        &["--redis-server", "/nowhere/redis-server"],
        "redis-server package",
    );
    check(
        &[
            "--only",
            "workloads",
            "--redis-benchmark",
            "/nowhere/redis-benchmark",
        ],
        "redis-tools package",
    );
}

#[test]
fn a_small_cluster_run_prints_a_line_per_figure_and_a_verdict() {
    let output = Command::new(env!("CARGO_BIN_EXE_kumi-bench"))
        .args(["cluster", "--quick", "--nodes", "24", "--no-peers"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let figures = [
        ("cluster.join_storm", "kumi"),
        ("cluster.join_sizes", "kumi"),
        ("cluster.crash_dead", "kumi"),
        ("cluster.calm_bytes", "kumi"),
        ("cluster.calm_cpu", "kumi"),
        ("cluster.resident", "kumi"),
        ("cluster.loss10.false_deaths", "kumi"),
        ("cluster.loss80.false_deaths", "kumi"),
        ("cluster.flip_flop.other_deaths", "kumi"),
        ("cluster.flip_flop.rejoin", "kumi"),
    ];
    for (name, server) in figures {
        let start = format!("figure name={name} server={server} value=");
        assert!(
            text.lines().any(|line| line.starts_with(&start)),
            "no {start} in {text}"
        );
    }
    assert!(text.contains(" goal=<=10 met=yes"), "{text}");
}

#[test]
fn a_small_jobs_run_prints_a_line_per_figure_and_leaves_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let args =
        "jobs --no-peers --tasks 300 --memory-tasks 2000 --runs 1 --only drain,enqueue,memory";
    let output = Command::new(env!("CARGO_BIN_EXE_kumi-bench"))
        .args(args.split(' '))
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    for name in [
        "jobs.keep.c10.throughput",
        "jobs.keep.c100.server_us",
        "jobs.keep.c10.sent",
        "jobs.keep.c10.inside",
        "jobs.aof.keep.c100.client_us",
        "jobs.enqueue-one.throughput",
        "jobs.aof.enqueue-bulk.server_us",
        "jobs.redis_bytes",
        "jobs.memory.throughput",
        "jobs.memory.bytes",
    ] {
        let start = format!("figure name={name} server=kumi value=");
        assert!(
            text.lines().any(|line| line.starts_with(&start)),
            "no {start} in {text}"
        );
    }
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(processes_in(temporary.path()), Vec::<String>::new());
}

#[test]
fn a_small_run_of_durability_prints_a_line_per_figure() {
    let temporary = tempfile::tempdir().unwrap();
    let args = "durability --keys 3000 --connections 4 --seconds 0.1 --sync-ms 10 --no-pin";
    let output = Command::new(env!("CARGO_BIN_EXE_kumi-bench"))
        .args(args.split(' '))
        .args(["--kumi-server", "redis-server"])
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    for name in [
        "durability.bgsave.probe_p999",
        "durability.bgsave.extra_memory",
        "durability.bgsave.kept",
        "durability.load.seconds",
        "durability.log.everysec.cpu_us",
        "durability.log.always.throughput",
        "durability.slow_disk.bgsave.longest_wait",
        "durability.slow_disk.rewrite.longest_wait",
    ] {
        for server in ["kumi", "redis"] {
            let start = format!("figure name={name} server={server} value=");
            assert!(text.contains(&start), "no {start} in {text}");
        }
    }
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert_eq!(processes_in(temporary.path()), Vec::<String>::new());
}

/// How many rounds nodes are killed and restarted in; `test.sh --full` sets it.
const NODE_ROUNDS: &str = "KUMI_NODE_ROUNDS";

/// Seconds that a lease holds at least after the death of its node.
const LEASE_HOLDS: f64 = 13.0;

#[test]
fn nodes_lose_no_task_when_one_is_killed_stopped_restarted_or_cut_off() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kumi-bench"));
    command
        .args(["node", "--no-peers"])
        .args(["--only", "kill,restart,pause,store,rolling,partition"])
        .env("TMPDIR", temporary.path());
    match std::env::var(NODE_ROUNDS) {
        Ok(rounds) => command.args(["--runs", &rounds]),
        Err(_) => command.arg("--quick"),
    };
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{errors}\n{text}");
    println!("{text}");
    let figures: BTreeMap<&str, f64> = text.lines().filter_map(figure_of_kumi).collect();
    let figure = |name: &str| {
        let value = figures.get(name);
        *value.unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    for none in [
        "kill.local.lost",
        "kill.lan.lost",
        "restart.local.lost",
        "restart.lan.lost",
        "pause.stale_accepted",
        "pause.reported_twice",
        "store.lost",
        "rolling.calls_failed",
        "rolling.tasks_lost",
    ] {
        assert_eq!(figure(&format!("node.{none}")), 0.0, "{none} in {text}");
    }
    // Membership gave the tasks back, and not the end of the lease. How soon it does is for a machine at rest to say.
    for early in ["kill.local", "kill.lan", "restart.local", "restart.lan"] {
        let slowest = figure(&format!("node.{early}.slowest"));
        assert!(slowest < LEASE_HOLDS, "{early} took {slowest} s: {text}");
    }
    if !text.contains("partition was not measured") {
        assert_eq!(figure("node.partition.stale_accepted"), 0.0, "{text}");
        assert_eq!(figure("node.partition.reported_twice"), 0.0, "{text}");
    }
    assert_eq!(processes_in(temporary.path()), Vec::<String>::new());
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}

/// The name and the value of a figure line of kumi's.
fn figure_of_kumi(line: &str) -> Option<(&str, f64)> {
    let (name, rest) = line.strip_prefix("figure name=")?.split_once(' ')?;
    let value = rest.strip_prefix("server=kumi value=")?.split(' ').next()?;
    Some((name, value.parse().ok()?))
}
