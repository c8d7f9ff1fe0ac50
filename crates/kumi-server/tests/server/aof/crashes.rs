//! Writers, and a server that is killed at random moments: what was acknowledged is there afterwards.

use super::Server;
use crate::common::{Client, TEST_TIMEOUT};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Rounds of the crash test; a soak sets more.
const CRASHES: u32 = 30;

/// A connection that writes numbers, and notes which were sent and which were acknowledged.
#[derive(Default)]
struct Writer {
    sent: AtomicU64,
    acknowledged: AtomicU64,
    /// What a crash must leave: what was acknowledged, or, if writes may have waited for an fsync, what was there when
    /// the server started.
    kept: AtomicU64,
}

impl Writer {
    fn run(&self, id: usize, socket: &Path, stop: &AtomicBool) {
        let Ok(stream) = UnixStream::connect(socket) else {
            return;
        };
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        let mut replies = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        while !stop.load(Ordering::Relaxed) {
            let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
            let (request, lines) = request(id, number);
            if stream.write_all(request.as_bytes()).is_err() {
                return;
            }
            for _ in 0..lines {
                let mut line = String::new();
                match replies.read_line(&mut line) {
                    Ok(count) if count > 0 => assert!(!line.starts_with('-'), "{line}"),
                    _ => return,
                }
            }
            self.acknowledged.store(number, Ordering::Relaxed);
        }
    }
}

/// Writes a number as a whole or not at all: by a transaction, a script, or a transaction on several types. Returns how many
/// lines its replies have, too.
fn request(id: usize, number: u64) -> (String, usize) {
    let (first, last) = (
        format!("SET a:{id} {number}\r\n"),
        format!("SET b:{id} {number}\r\n"),
    );
    match id % 3 {
        // +OK, two times +QUEUED, then an array of two.
        0 => (format!("MULTI\r\n{first}{last}EXEC\r\n"), 6),
        1 => {
            let set = |key: usize| format!("redis.call('SET', KEYS[{key}], ARGV[1])");
            let script = format!("{} {} return 1", set(1), set(2));
            let line = format!("EVAL \"{script}\" 2 a:{id} b:{id} {number}\r\n");
            (line, 1)
        }
        _ => {
            let types = format!(
                "HSET h:{id} n {number}\r\nRPUSH l:{id} {number}\r\nLTRIM l:{id} -3 -1\r\n"
            );
            (format!("MULTI\r\n{first}{types}{last}EXEC\r\n"), 12)
        }
    }
}

/// What is there of a writer's numbers; all of them are the same.
fn written(client: &mut Client<UnixStream>, id: usize, round: u32) -> u64 {
    let mut number = |line: String| -> u64 { client.line(&line).parse().unwrap_or(0) };
    let a = number(format!("GET a:{id}"));
    let mut others = vec![number(format!("GET b:{id}"))];
    if id % 3 == 2 {
        others.push(number(format!("HGET h:{id} n")));
        others.push(number(format!("LINDEX l:{id} -1")));
    }
    for other in others {
        assert_eq!(a, other, "half a change of writer {id} in round {round}");
    }
    a
}

/// With `everysec` a write that an fsync is in the way of waits in memory, so a crash may lose it. The first such fsync
/// comes this long after the start; a server that is killed before loses nothing.
const FIRST_SYNC: Duration = Duration::from_secs(1);
/// One of so many rounds lives until such an fsync has ended.
const LONG_ROUNDS: u32 = 10;

/// Kills the server when it is dropped, also by a failed assertion: the writers would write on, and be waited for.
struct KilledAtEnd<'a>(&'a Server);

impl Drop for KilledAtEnd<'_> {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0.child);
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    }
}

/// What each writer has been told so far.
fn acknowledged(writers: &[Writer]) -> Vec<u64> {
    let told = writers.iter();
    told.map(|writer| writer.acknowledged.load(Ordering::Relaxed))
        .collect()
}

/// A crash must leave these.
fn keep(writers: &[Writer], numbers: &[u64]) {
    for (writer, number) in writers.iter().zip(numbers) {
        writer.kept.store(*number, Ordering::Relaxed);
    }
}

#[test]
fn no_acknowledged_write_is_lost_when_the_server_is_killed() {
    let rounds = std::env::var("KUMI_CRASH_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let rounds: u32 = rounds.unwrap_or(CRASHES);
    let dir = tempfile::tempdir().unwrap();
    let writers: Vec<Writer> = (0..6).map(|_| Writer::default()).collect();
    let mut rng = fastrand::Rng::new();
    println!("seed {}", rng.get_seed());
    let (mut excepted, mut lost) = (0, 0);
    let mut synced = "nil".to_owned();
    for round in 0..=rounds {
        let fsync = if round % 2 == 0 { "always" } else { "everysec" };
        let is_long = round % LONG_ROUNDS == LONG_ROUNDS / 2;
        let started = Instant::now();
        let mut args = vec!["--appendonly", "yes", "--appendfsync", fsync];
        args.extend(["--auto-aof-rewrite-min-size", "32kb"]);
        if is_long {
            // A rewrite would sync the file as well.
            args.extend(["--auto-aof-rewrite-percentage", "0"]);
        }
        let server = Server::kumi(dir.path(), &args);
        let mut client = server.connect();
        assert_eq!(client.line("GET synced"), synced);
        for (id, writer) in writers.iter().enumerate() {
            let a = written(&mut client, id, round);
            let (sent, kept) = (
                writer.sent.load(Ordering::Relaxed),
                writer.kept.load(Ordering::Relaxed),
            );
            assert!(a >= kept, "round {round}: {kept} was kept, {a} is there");
            assert!(a <= sent, "round {round}: {a} is there, {sent} was sent");
            lost += writer
                .acknowledged
                .load(Ordering::Relaxed)
                .saturating_sub(a);
            writer.acknowledged.store(a, Ordering::Relaxed);
            writer.kept.store(a, Ordering::Relaxed);
        }
        if round == rounds {
            break;
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _killed = KilledAtEnd(&server);
            for (id, writer) in writers.iter().enumerate() {
                let (socket, stop) = (&server.socket, &stop);
                scope.spawn(move || writer.run(id, socket, stop));
            }
            if is_long {
                let numbers = acknowledged(&writers);
                synced = round.to_string();
                assert_eq!(client.line(&format!("SET synced {round}")), "OK");
                // This waits for the next fsync.
                assert_eq!(client.line("WAITAOF 1 0 0"), "1,0");
                keep(&writers, &numbers);
                let numbers = acknowledged(&writers);
                let info = client.line("INFO persistence");
                if info.contains("aof_buffer_length:0\r") {
                    // None of them waits in memory.
                    keep(&writers, &numbers);
                }
            }
            if rng.bool() {
                // It may be refused: a rewrite runs.
                let _ = client.line("BGSAVE");
            }
            // The moment of the crash is meant to be random.
            std::thread::sleep(Duration::from_micros(rng.u64(1_000..120_000)));
            stop.store(rng.bool(), Ordering::Relaxed);
        });
        if fsync == "everysec" && started.elapsed() >= FIRST_SYNC {
            excepted += 1;
        } else {
            keep(&writers, &acknowledged(&writers));
        }
        server.kill();
    }
    println!(
        "{rounds} crashes, {excepted} of them while an fsync may have run: {lost} writes lost there"
    );
}
