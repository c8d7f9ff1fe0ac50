//! The append-only file of a running server: restarts, crashes, damage, and a redis-server that takes turns with it.

mod crashes;
mod damage;

use crate::common::{Client, Process, binary, eventually};
use rustix::process::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of either kind on a directory. Killed when dropped.
struct Server {
    child: Child,
    socket: PathBuf,
    log: Vec<String>,
}

impl Server {
    fn kumi(dir: &Path, args: &[&str]) -> Self {
        Self::start(binary(), dir, args)
    }

    fn redis(dir: &Path, args: &[&str]) -> Self {
        Self::start(Command::new("redis-server"), dir, args)
    }

    fn start(command: Command, dir: &Path, args: &[&str]) -> Self {
        Self::try_start(command, dir, args).unwrap_or_else(|log| panic!("{}", log.join("\n")))
    }

    /// Starts a server, or returns what it said when it ended.
    fn try_start(mut command: Command, dir: &Path, args: &[&str]) -> Result<Self, Vec<String>> {
        let socket = dir.join("s");
        let mut child = command
            .args([
                "--port",
                "0",
                "--save",
                "",
                "--enable-debug-command",
                "yes",
                "--unixsocket",
            ])
            .arg(&socket)
            .arg("--dir")
            .arg(dir)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut log = Vec::new();
        for line in lines.by_ref() {
            let line = line.unwrap();
            let ready = line.to_lowercase().contains("ready to accept connections");
            log.push(line);
            if ready {
                // What it says later is read, so that it does not wait for room.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(Self { child, socket, log });
            }
        }
        child.wait().unwrap();
        Err(log)
    }

    fn connect(&self) -> Client<UnixStream> {
        Client::unix(&self.socket)
    }

    fn line(&self, line: &str) -> String {
        self.connect().line(line)
    }

    fn digest(&self) -> String {
        self.line("DEBUG DIGEST")
    }

    fn said(&self, text: &str) -> bool {
        self.log.iter().any(|line| line.contains(text))
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it in order.
    fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const AOF: &[&str] = &["--appendonly", "yes"];

/// The files of an append-only file whose names end so.
fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir.join("appendonlydir"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(ending))
        .collect();
    found.sort();
    found
}

/// Some of every type, different in every round.
fn write_all_types(client: &mut Client<UnixStream>, round: usize) {
    for line in [
        format!("SET s:{round} text"),
        format!("SET n:{round} {round}"),
        format!("INCR n:{round}"),
        format!("SET t:{round} x EX 10000"),
        format!("SET gone:{round} x PX 1"),
        format!("RPUSH l a{round} b c"),
        "LPOP l".into(),
        format!("HSET h f{round} v g w"),
        format!("SADD set {round} x{round}"),
        "SPOP set".into(),
        format!("ZADD z 1.5 m{round} {round} n"),
        format!("XADD x * f {round}"),
        format!("SETBIT bits {round} 1"),
        format!("PFADD hll e{round}"),
        format!("GEOADD geo 13.36 38.11 p{round}"),
        format!("EVAL return(redis.call('set','script:'..ARGV[1],ARGV[1],'ex','9999')) 0 {round}"),
        "SELECT 3".into(),
        format!("SET other:{round} 1"),
        "SELECT 0".into(),
        format!("EXPIRE h {}", 10_000 + round),
    ] {
        let reply = client.line(&line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    for line in ["MULTI", "SET a 1", "INCRBY a 5", "DEL gone", "EXEC"] {
        client.send(format!("{line}\r\n"));
    }
    for _ in 0..5 {
        let _ = client.reply();
    }
    // A key whose deadline passes between two digests would be in one of them only.
    let exists = format!("EXISTS gone:{round}");
    eventually(|| client.line(&exists), |reply| reply == "0");
}

#[test]
fn redis_and_kumi_take_turns_on_one_directory() {
    let dir = tempfile::tempdir().unwrap();
    let mut digest: Option<String> = None;
    for round in 0..8 {
        let preamble = if round % 3 == 2 { "no" } else { "yes" };
        let args = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble];
        let server = if round % 2 == 0 {
            Server::kumi(dir.path(), &args)
        } else {
            Server::redis(dir.path(), &args)
        };
        if let Some(digest) = &digest {
            assert_eq!(&server.digest(), digest, "round {round}");
        }
        let mut client = server.connect();
        write_all_types(&mut client, round);
        if round >= 4 {
            assert!(client.line("BGREWRITEAOF").starts_with("Background"));
            eventually(
                || server.line("INFO persistence"),
                |info| {
                    info.contains("aof_rewrite_in_progress:0")
                        && info.contains("aof_rewrite_scheduled:0")
                },
            );
            write_all_types(&mut client, round + 100);
        }
        digest = Some(server.digest());
        server.stop();
    }
}

#[test]
fn a_base_of_requests_is_written_while_clients_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
    let server = Server::kumi(dir.path(), &args);
    let mut client = server.connect();
    write_all_types(&mut client, 1);
    let library = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";
    assert_eq!(
        crate::common::text(&client.ask(&["FUNCTION", "LOAD", library])),
        "lib"
    );
    // A second for each key: it does not end by itself.
    assert_eq!(client.line("CONFIG SET rdb-key-save-delay 1000000"), "OK");
    assert!(client.line("BGREWRITEAOF").ends_with("started"));
    let in_progress = |info: &String| {
        let expected = ["aof_rewrite_in_progress:1\r", "aof_rewrite_scheduled:0\r"];
        expected.iter().all(|field| info.contains(field))
    };
    assert!(in_progress(&client.line("INFO persistence")));
    eventually(|| files(dir.path(), ".aof").len(), |&count| count == 4);
    assert_eq!(client.line("SET behind 1"), "OK");
    assert!(in_progress(&client.line("INFO persistence")));
    assert_eq!(
        client.line("BGREWRITEAOF"),
        "-ERR Background append only file rewriting already in progress"
    );
    assert_eq!(client.line("CONFIG SET rdb-key-save-delay 0"), "OK");
    eventually(
        || server.line("INFO persistence"),
        |info| info.contains("aof_rewrites:2\r"),
    );
    let digest = server.digest();
    server.stop();
    let base = files(dir.path(), ".base.aof").pop().unwrap();
    assert!(fs::read(base).unwrap().starts_with(b"*3\r\n$8\r\nFUNCTION"));
    let server = Server::kumi(dir.path(), &args);
    assert_eq!(server.digest(), digest);
    assert_eq!(
        (server.line("GET behind"), server.line("FCALL f 0")),
        ("1".into(), "7".into())
    );
}

#[test]
fn data_survives_a_restart_and_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), AOF);
    write_all_types(&mut server.connect(), 1);
    let digest = server.digest();
    server.kill();
    let server = Server::kumi(dir.path(), AOF);
    assert_eq!(server.digest(), digest);
    assert_eq!(server.line("DEBUG LOADAOF"), "OK");
    assert_eq!(server.digest(), digest);
    server.stop();
    let server = Server::kumi(dir.path(), AOF);
    assert_eq!(server.digest(), digest);
    let increment = files(dir.path(), ".incr.aof").pop().unwrap();
    let text = String::from_utf8_lossy(&fs::read(increment).unwrap()).into_owned();
    assert!(!text.contains("LOADAOF"), "{text}");
    assert_eq!(text.matches("#K:open:").count(), 3);
    assert_eq!(text.matches("#K:close\r\n").count(), 1);
}

#[test]
fn limits_on_clients_do_not_apply_to_an_aof_that_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), AOF);
    let script = "for i=1,40 do redis.call('set','k'..i,string.rep('x',100000)) end redis.call('set','last',1)";
    let mut client = server.connect();
    client.ask(&["EVAL", script, "0"]);
    for number in 0..100 {
        assert_eq!(client.line(&format!("SET behind:{number} 1")), "OK");
    }
    let digest = server.digest();
    server.kill();
    let lower = [
        ["--client-query-buffer-limit", "1mb"],
        ["--max-keys", "10"],
        ["--max-value-size", "1000"],
    ];
    let args = [AOF, lower.as_flattened()].concat();
    let server = Server::kumi(dir.path(), &args);
    assert_eq!(server.digest(), digest);
    assert!(!server.said("failed"), "{:?}", server.log);
    server.kill();
    let less = ["--maxmemory", "1mb", "--maxmemory-policy", "allkeys-lru"];
    let server = Server::kumi(dir.path(), &[AOF, less.as_slice()].concat());
    // Evictions begin when all is loaded, and are in the log.
    let keys = || server.line("DBSIZE").parse::<u64>().unwrap();
    eventually(keys, |&keys| keys < 141);
    server.line("CONFIG SET maxmemory 0");
    let digest = server.digest();
    server.kill();
    assert_eq!(Server::kumi(dir.path(), AOF).digest(), digest);
}

#[test]
fn a_torn_end_is_cut_off_and_damage_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), AOF);
    for number in 0..50 {
        server.line(&format!("SET k{number} {number}"));
    }
    server.kill();
    let increment = files(dir.path(), ".incr.aof").pop().unwrap();
    let good = fs::read(&increment).unwrap();
    let torn = [&good[..], b"*3\r\n$3\r\nSET\r\n$1\r\nz\r\n$1\r\n1"].concat();
    fs::write(&increment, &torn).unwrap();
    let refused = Server::try_start(
        binary(),
        dir.path(),
        &["--appendonly", "yes", "--aof-load-truncated", "no"],
    );
    let log = refused.err().unwrap().join("\n");
    assert!(log.contains(&format!("at byte {}", good.len())), "{log}");
    let server = Server::kumi(dir.path(), AOF);
    assert!(
        server.said(&format!(
            "cut off at byte {}, before its last {} bytes, which are now in ",
            good.len(),
            torn.len() - good.len()
        )),
        "{:#?}",
        server.log
    );
    let anyway = ".incr.aof loaded anyway because aof-load-truncated is enabled";
    assert!(server.said(anyway), "{:#?}", server.log);
    assert_eq!(
        (server.line("DBSIZE"), server.line("EXISTS z")),
        ("50".into(), "0".into())
    );
    server.stop();
    let mut damaged = fs::read(&increment).unwrap();
    let place = good.len() / 2;
    damaged[place] ^= 1;
    fs::write(&increment, &damaged).unwrap();
    let log = Server::try_start(binary(), dir.path(), AOF)
        .err()
        .unwrap()
        .join("\n");
    assert!(log.contains("incr.aof") && log.contains("at byte"), "{log}");
    assert_eq!(
        fs::read(&increment).unwrap(),
        damaged,
        "nothing was changed"
    );
}

#[test]
fn an_old_file_and_an_rdb_file_are_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("appendonly.aof"),
        "*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n",
    )
    .unwrap();
    let server = Server::kumi(dir.path(), AOF);
    let mut client = server.connect();
    assert_eq!(
        (client.line("SELECT 2"), client.line("GET a")),
        ("OK".into(), "1".into())
    );
    client.line("SET b 2");
    let digest = server.digest();
    server.stop();
    assert!(!dir.path().join("appendonly.aof").exists());
    assert!(dir.path().join("appendonlydir/appendonly.aof").exists());
    let redis = Server::redis(dir.path(), AOF);
    assert_eq!(redis.digest(), digest);

    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), &[]);
    write_all_types(&mut server.connect(), 1);
    assert_eq!(server.line("SAVE"), "OK");
    let digest = server.digest();
    server.kill();
    let server = Server::kumi(dir.path(), AOF);
    assert_eq!(server.digest(), digest);
    server.kill();
    fs::remove_file(dir.path().join("dump.rdb")).unwrap();
    assert_eq!(Server::kumi(dir.path(), AOF).digest(), digest);
}

#[test]
fn two_servers_do_not_share_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let first = Server::kumi(dir.path(), AOF);
    let other = ["--appendonly", "yes", "--unixsocket", "other"];
    let log = Server::try_start(binary(), dir.path(), &other)
        .err()
        .unwrap()
        .join("\n");
    assert!(
        log.contains("another server uses this append-only file"),
        "{log}"
    );
    drop(first);
    Server::kumi(dir.path(), AOF);
}

#[test]
fn two_servers_that_save_rdb_files_in_one_directory_are_warned() {
    let dir = tempfile::tempdir().unwrap();
    let text = "another server keeps its RDB file in this directory";
    let first = Server::kumi(dir.path(), &[]);
    assert!(!first.said(text));
    let socket = dir.path().join("other");
    let second = Server::kumi(dir.path(), &["--unixsocket", socket.to_str().unwrap()]);
    assert!(second.said(text), "{:#?}", second.log);
}

#[test]
fn what_a_killed_rewrite_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), AOF);
    server.line("SET a 1");
    server.kill();
    let log = dir.path().join("appendonlydir");
    let stale = log.join("temp-rewriteaof-bg-12345.aof");
    fs::write(&stale, b"REDIS0010").unwrap();
    fs::write(log.join("notes.txt"), b"mine").unwrap();
    let server = Server::kumi(dir.path(), AOF);
    assert!(!stale.exists());
    assert!(log.join("notes.txt").exists());
    assert_eq!(server.line("GET a"), "1");
}

#[test]
fn waitaof_has_the_file_synced_where_nothing_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), &["--appendonly", "yes", "--appendfsync", "no"]);
    let mut client = server.connect();
    for number in 0..3 {
        assert_eq!(client.line(&format!("SET a {number}")), "OK");
        assert_eq!(client.line("WAITAOF 1 0 0"), "1,0");
    }
}

#[test]
fn a_rewrite_waits_for_a_running_save() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(
        dir.path(),
        &["--appendonly", "yes", "--rdb-key-save-delay", "20000"],
    );
    let mut client = server.connect();
    for number in 0..50 {
        client.line(&format!("SET key:{number} 1"));
    }
    assert_eq!(client.line("BGSAVE"), "Background saving started");
    assert_eq!(
        client.line("BGREWRITEAOF"),
        "Background append only file rewriting scheduled"
    );
    assert!(client.line("INFO persistence").contains("aof_rewrites:1\r"));
    client.line("CONFIG SET rdb-key-save-delay 0");
    eventually(
        || server.line("INFO persistence"),
        |info| info.contains("aof_rewrites:2\r"),
    );
}

#[test]
fn a_rewrite_without_an_aof_waits_for_a_running_save() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), &["--rdb-key-save-delay", "20000"]);
    let mut client = server.connect();
    for number in 0..50 {
        client.line(&format!("SET key:{number} 1"));
    }
    assert_eq!(client.line("BGSAVE"), "Background saving started");
    assert_eq!(
        client.line("BGREWRITEAOF"),
        "Background append only file rewriting scheduled"
    );
    let info = client.line("INFO persistence");
    for field in ["aof_enabled:0", "aof_rewrite_scheduled:1"] {
        assert!(info.contains(field), "{field} in {info}");
    }
    client.line("CONFIG SET rdb-key-save-delay 0");
    let manifest = dir.path().join("appendonlydir/appendonly.aof.manifest");
    eventually(|| manifest.exists(), |&exists| exists);
    // The log has ended with it.
    eventually(
        || server.line("INFO persistence"),
        |info| info.contains("aof_rewrite_in_progress:0"),
    );
    assert_eq!(client.line("SET late 1"), "OK");
    assert_eq!(client.line("DEBUG LOADAOF"), "OK");
    assert_eq!(client.line("DBSIZE"), "50");
}

#[test]
fn unused_files_are_kept_as_long_as_the_configuration_says() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), &["--appendonly", "yes"]);
    let mut client = server.connect();
    let rewrite = |count: usize, client: &mut Client<UnixStream>| {
        assert!(client.line("BGREWRITEAOF").starts_with("Background"));
        let rewrites = format!("aof_rewrites:{count}\r");
        eventually(
            || client.line("INFO persistence"),
            |info| info.contains(&rewrites) && info.contains("aof_rewrite_in_progress:0"),
        );
    };
    client.line("CONFIG SET aof-disable-auto-gc yes");
    rewrite(2, &mut client);
    assert_eq!(files(dir.path(), ".base.rdb").len(), 2);
    client.line("CONFIG SET aof-disable-auto-gc no");
    assert_eq!(files(dir.path(), ".base.rdb").len(), 1);
    // What is set while a rewrite runs counts at its end.
    for number in 0..50 {
        client.line(&format!("SET key:{number} 1"));
    }
    client.line("CONFIG SET rdb-key-save-delay 20000");
    assert!(client.line("BGREWRITEAOF").starts_with("Background"));
    let info = eventually(
        || client.line("INFO persistence"),
        |info| info.contains("aof_rewrite_in_progress:1"),
    );
    assert!(info.contains("aof_rewrites:2\r"), "{info}");
    client.line("CONFIG SET aof-disable-auto-gc yes");
    eventually(
        || client.line("INFO persistence"),
        |info| info.contains("aof_rewrites:3\r"),
    );
    assert_eq!(files(dir.path(), ".base.rdb").len(), 2);
    client.line("CONFIG SET aof-disable-auto-gc no");
    assert_eq!(files(dir.path(), ".base.rdb").len(), 1);
}

#[test]
fn it_is_turned_on_and_off_at_run_time() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), &[]);
    server.line("SET a 1");
    assert_eq!(
        server.line("WAITAOF 1 0 0"),
        "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."
    );
    assert_eq!(server.line("CONFIG SET appendonly yes"), "OK");
    let mut client = server.connect();
    assert_eq!(client.line("SET b 2"), "OK");
    assert_eq!(client.line("WAITAOF 1 0 0"), "1,0");
    let info = server.line("INFO persistence");
    for field in [
        "aof_enabled:1",
        "aof_last_write_status:ok",
        "aof_rewrites:1",
        "aof_buffer_length:0",
    ] {
        assert!(info.contains(field), "{field} in {info}");
    }
    assert_eq!(client.line("CONFIG SET appendonly no"), "OK");
    assert_eq!(client.line("SET c 3"), "OK");
    assert!(server.line("INFO persistence").contains("aof_enabled:0"));
    server.kill();
    let server = Server::kumi(dir.path(), AOF);
    let found = ["a", "b", "c"].map(|key| server.line(&format!("EXISTS {key}")));
    assert_eq!(found, ["1", "1", "0"]);
}

/// Bytes of all files of the log.
fn aof_bytes(dir: &Path) -> u64 {
    let sizes = files(dir, "").into_iter();
    sizes
        .map(|path| fs::metadata(path).map_or(0, |facts| facts.len()))
        .sum()
}

#[test]
fn what_earlier_lives_wrote_counts_as_growth() {
    let dir = tempfile::tempdir().unwrap();
    let value = "x".repeat(100);
    // No life doubles the file it finds, except the first.
    for life in 0..4 {
        let args = ["--appendonly", "yes", "--auto-aof-rewrite-percentage", "0"];
        let server = Server::kumi(dir.path(), &args);
        let mut client = server.connect();
        for number in 0..100 {
            client.line(&format!("SET same {value}{life}{number}"));
        }
        server.kill();
    }
    assert!(aof_bytes(dir.path()) > 40_000);
    let args = ["--appendonly", "yes", "--auto-aof-rewrite-min-size", "16kb"];
    let server = Server::kumi(dir.path(), &args);
    eventually(|| aof_bytes(dir.path()), |&bytes| bytes < 4096);
    assert_eq!(server.line("GET same"), format!("{value}399"));
}

#[test]
fn it_is_rewritten_when_it_has_grown() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(
        dir.path(),
        &["--appendonly", "yes", "--auto-aof-rewrite-min-size", "16kb"],
    );
    let mut client = server.connect();
    let value = "x".repeat(100);
    for number in 0..2000 {
        assert_eq!(client.line(&format!("SET same {value}{number}")), "OK");
        // What is written during a rewrite counts as part of its result, as in Redis: so not all of it.
        if number % 100 == 0 {
            eventually(
                || server.line("INFO persistence"),
                |info| info.contains("aof_rewrite_in_progress:0"),
            );
        }
    }
    eventually(|| aof_bytes(dir.path()), |&bytes| bytes < 64 * 1024);
    eventually(|| files(dir.path(), ".base.rdb").len(), |&count| count == 1);
    assert!(!server.line("INFO persistence").contains("aof_rewrites:0"));
    let digest = server.digest();
    server.kill();
    assert_eq!(Server::kumi(dir.path(), AOF).digest(), digest);
}

#[test]
fn clients_get_loading_errors_while_it_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("appendonlydir")).unwrap();
    let manifest = "file appendonly.aof.1.incr.aof seq 1 type i\n";
    fs::write(
        dir.path().join("appendonlydir/appendonly.aof.manifest"),
        manifest,
    )
    .unwrap();
    let mut log = Vec::new();
    for number in 0..400_000 {
        let value = format!("value {number}");
        write!(
            log,
            "*3\r\n$3\r\nSET\r\n${}\r\nkey:{number}\r\n${}\r\n{value}\r\n",
            number.to_string().len() + 4,
            value.len()
        )
        .unwrap();
    }
    fs::write(
        dir.path().join("appendonlydir/appendonly.aof.1.incr.aof"),
        log,
    )
    .unwrap();
    let socket = dir.path().join("s");
    let mut child = binary()
        .args([
            "--port",
            "0",
            "--save",
            "",
            "--appendonly",
            "yes",
            "--unixsocket",
        ])
        .arg(&socket)
        .arg("--dir")
        .arg(dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut seen = false;
    eventually(
        || UnixStream::connect(&socket).is_ok(),
        |connected| *connected,
    );
    let mut client = Client::unix(&socket);
    loop {
        let reply = client.line("GET key:1");
        if reply == "value 1" {
            break;
        }
        assert_eq!(reply, "-LOADING Redis is loading the dataset in memory");
        let info = client.line("INFO persistence");
        seen |= info.contains("loading:1") && info.contains("loading_loaded_perc:");
    }
    assert!(seen, "loading was over before it could be seen");
    assert_eq!(client.line("DBSIZE"), "400000");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_embedded_server_keeps_nothing() {
    let process = Process::start(&[]);
    drop(process);
    let mut config = kumi_store::Config::new();
    let pair: (&[u8], &[u8]) = (b"appendonly", b"yes");
    let _ = config
        .set_many(&[pair], kumi_store::config::Origin::Startup)
        .unwrap();
    let refused = kumi_server::embedded_with(config).unwrap_err();
    assert!(refused.to_string().contains("memory only"), "{refused}");
    let server = kumi_server::embedded().unwrap();
    let mut client = Client::unix(server.path());
    assert!(
        client
            .line("CONFIG SET appendonly yes")
            .contains("Unable to turn on AOF")
    );
    assert!(client.line("BGREWRITEAOF").contains("memory only"));
}
