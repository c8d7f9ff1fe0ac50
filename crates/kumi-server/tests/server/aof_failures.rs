//! The append-only file when something goes wrong around it: a missing manifest, a stop too early, a disk that is full.

use crate::common::{Client, Process, binary, eventually, free_port, request, run_to_end, text};
use rustix::process::Signal;
use std::fs;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const READY: &str = "Ready to accept connections unix";

fn start(program: Command, dir: &Path, args: &[&str]) -> Process {
    let home = TempDir::new().unwrap();
    let socket = home.path().join("s");
    let mut all = vec!["--port", "0", "--save", "", "--enable-debug-command", "yes"];
    all.extend(["--unixsocket", socket.to_str().unwrap()]);
    all.extend(["--dir", dir.to_str().unwrap()]);
    all.extend(args);
    Process::start_program(program, home, &all, READY)
}

fn kumi(dir: &Path, args: &[&str]) -> Process {
    start(binary(), dir, args)
}

fn stop(mut server: Process) {
    server.signal(Signal::TERM);
    assert!(server.wait().success());
}

fn wait_for(client: &mut Client<UnixStream>, field: &str) {
    eventually(
        || rested(client, "INFO persistence"),
        |info| info.contains(field),
    );
}

/// The reply to a line. The server does nothing for a moment before, so that the thread of a snapshot, whose priority is
/// lower, gets on.
fn rested(client: &mut Client<UnixStream>, line: &str) -> String {
    assert_eq!(client.line("DEBUG SLEEP 0.005"), "OK");
    client.line(line)
}

/// What is in the directory of the append-only file, by name.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(dir.join("appendonlydir")).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_server_does_not_start_without_the_manifest_of_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("SET a 1"), "OK");
    stop(server);
    let log = dir.path().join("appendonlydir");
    let manifest = log.join("appendonly.aof.manifest");
    let kept = fs::read(&manifest).unwrap();
    fs::remove_file(&manifest).unwrap();
    let before = contents(dir.path());
    let dir_arg = dir.path().to_str().unwrap();
    let socket = dir.path().join("s");
    let args = ["--port", "0", "--unixsocket", socket.to_str().unwrap()];
    let more = ["--dir", dir_arg, "--appendonly", "yes"];
    let (code, output, _) = run_to_end(&[args, more].concat());
    assert_ne!(code, Some(0));
    for text in [
        log.to_str().unwrap(),
        "appendonly.aof.1.base.rdb, appendonly.aof.1.incr.aof",
        "Restore the manifest, or move these files",
    ] {
        assert!(output.contains(text), "{text} in {output}");
    }
    // Neither does CONFIG SET overwrite them.
    let server = kumi(dir.path(), &[]);
    let mut client = server.connect();
    let refused = client.line("CONFIG SET appendonly yes");
    assert!(refused.contains("Unable to turn on AOF"), "{refused}");
    assert!(client.line("BGREWRITEAOF").contains("is missing"));
    assert!(client.line("DEBUG LOADAOF").starts_with('-'));
    drop(server);
    assert_eq!(contents(dir.path()), before);
    fs::write(&manifest, kept).unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("GET a"), "1");
}

#[test]
fn files_are_refused_in_the_words_of_redis() {
    const INCREMENT: &str = "appendonly.aof.1.incr.aof";
    const NAMED: &str = "file appendonly.aof.1.incr.aof seq 1 type i\n";
    let good = request(&["SET", "a", "1"]);
    let torn = [&good[..], &request(&["SET", "b", "1"])[..20]].concat();
    let unfinished = [
        &good[..],
        &request(&["MULTI"]),
        &request(&["SET", "b", "1"]),
    ]
    .concat();
    let bad = [&good[..], b"!!!", &good].concat();
    let unknown = [&good[..], &request(&["BLA", "a"]), &good].concat();
    let truncated = "Unexpected end of file reading the append only file";
    let format = "Bad file format reading the append only file";
    let name = "Unknown command 'BLA' reading the append only file";
    let missing = "appendonly.aof.2.incr.aof cannot be loaded: the manifest names this file, and it cannot be read: No such file or directory";
    let two = format!("{NAMED}file appendonly.aof.2.incr.aof seq 2 type i\n");
    for (manifest, increment, reason) in [
        (Some(NAMED), &torn, truncated),
        (Some(NAMED), &unfinished, truncated),
        (Some(NAMED), &bad, format),
        (Some(NAMED), &unknown, name),
        (Some(two.as_str()), &good, missing),
        (Some(""), &good, "Found an empty AOF manifest"),
        // Redis would start with no data beside it.
        (
            None,
            &good,
            "the manifest appendonly.aof.manifest is missing",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("appendonlydir");
        fs::create_dir(&log).unwrap();
        if let Some(manifest) = manifest {
            fs::write(log.join("appendonly.aof.manifest"), manifest).unwrap();
        }
        fs::write(log.join(INCREMENT), increment).unwrap();
        let mut args = vec!["--port", "0", "--unixsocket", "s", "--appendonly", "yes"];
        args.extend(["--dir", dir.path().to_str().unwrap()]);
        args.extend(["--aof-load-truncated", "no"]);
        let (code, output, _) = run_to_end(&args);
        assert_eq!(code, Some(1), "{output}");
        let last = output.lines().last().unwrap();
        assert!(last.contains("Fatal error loading the DB"), "{last}");
        assert!(last.contains(reason), "{reason}: {last}");
        let of_manifest = output.contains("# *** FATAL AOF MANIFEST FILE ERROR ***");
        assert_eq!(of_manifest, manifest == Some(""), "{reason}: {output}");
    }
}

/// A server that writes the first base of its log, with so many keys and a delay of microseconds after each.
fn begin_first_base(dir: &Path, keys: usize, delay: &str) -> (Process, Client<UnixStream>) {
    let server = kumi(dir, &["--rdb-key-save-delay", delay]);
    let mut client = server.connect();
    for number in 0..keys {
        client.line(&format!("SET key:{number} 1"));
    }
    assert_eq!(client.line("CONFIG SET appendonly yes"), "OK");
    (server, client)
}

#[test]
fn a_stop_waits_for_the_first_base() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, mut client) = begin_first_base(dir.path(), 60, "50000");
    let refused = "-ERR Errors trying to SHUTDOWN. Check logs.";
    assert_eq!(client.line("SHUTDOWN"), refused);
    assert_eq!(client.line("SHUTDOWN NOSAVE"), refused);
    assert_eq!(client.line("SHUTDOWN NOW"), refused);
    server.wait_for_log("Writing initial AOF, can't exit.");
    server.signal(Signal::TERM);
    server.wait_for_log("Errors trying to shut down the server.");
    assert_eq!(client.line("SET late 1"), "OK");
    wait_for(&mut client, "aof_rewrite_in_progress:0");
    stop(server);
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("DBSIZE"), "61");
}

#[test]
fn a_forced_stop_does_not_wait_for_the_first_base() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, mut client) = begin_first_base(dir.path(), 100, "100000");
    client.send("SHUTDOWN FORCE\r\n");
    server.wait_for_log("Writing initial AOF. Exit anyway.");
    assert!(server.wait().success());
    // What it left is no append-only file, and the next server can start.
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("DBSIZE"), "0");
}

#[test]
fn a_rewrite_that_cannot_begin_refuses_no_write() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    let mut client = server.connect();
    assert_eq!(client.line("SET a 1"), "OK");
    // The name of the next increment is taken.
    let taken = dir.path().join("appendonlydir/appendonly.aof.2.incr.aof");
    fs::create_dir(&taken).unwrap();
    assert!(client.line("BGREWRITEAOF").starts_with("Background"));
    wait_for(&mut client, "aof_last_bgrewrite_status:err");
    assert_eq!(client.line("SET a 2"), "OK");
    assert!(
        client
            .line("INFO persistence")
            .contains("aof_last_write_status:ok")
    );
    drop(server);
    fs::remove_dir(&taken).unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("GET a"), "2");
}

#[test]
fn an_aof_that_cannot_begin_is_not_turned_on() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("appendonlydir"), "a file").unwrap();
    let server = kumi(dir.path(), &[]);
    let mut client = server.connect();
    let port = free_port();
    let refused = client.line(&format!("CONFIG SET port {port} appendonly yes"));
    assert!(refused.contains("Unable to turn on AOF"), "{refused}");
    assert_eq!(client.line("CONFIG GET port"), "port,0");
    assert_eq!(client.line("CONFIG GET appendonly"), "appendonly,no");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert_eq!(client.line("SET a 1"), "OK");
    // The other way round: a port that is in use.
    fs::remove_file(dir.path().join("appendonlydir")).unwrap();
    let used = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = used.local_addr().unwrap().port();
    let refused = client.line(&format!(
        "CONFIG SET appendonly yes bind 127.0.0.1 port {port}"
    ));
    assert!(refused.contains("Unable to listen"), "{refused}");
    assert_eq!(client.line("CONFIG GET appendonly"), "appendonly,no");
    assert!(client.line("INFO persistence").contains("aof_enabled:0"));
    let another = kumi(dir.path(), &["--appendonly", "yes"]);
    drop(another);
    assert_eq!(client.line("CONFIG SET appendonly yes"), "OK");
}

/// A server whose files may not be longer than 128 blocks of 512 or 1024 bytes. The system reports it as an error of the
/// write, as it does for a disk that is full.
fn limited() -> Command {
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -S -f 128; exec \"$0\" \"$@\""])
        .arg(binary().get_program())
        .env_remove("NOTIFY_SOCKET");
    limited
}

/// Sets keys, numbered from 0, until a reply is not OK; returns how many were set.
fn fill_disk(client: &mut Client<UnixStream>) -> usize {
    let value = "x".repeat(10_000);
    let fails = |number: &usize| {
        client.send(request(&["SET", &format!("key:{number}"), &value]));
        let reply = client.try_reply();
        reply.is_none_or(|reply| text(&reply) != "OK")
    };
    (0..50).find(fails).expect("the disk is full before")
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_refuses_writes_until_there_is_room_again() {
    use rustix::process::{Pid, Resource, getrlimit, prlimit};
    const REFUSED: &str = "-MISCONF Errors writing to the AOF file: File too large";
    for fsync in ["everysec", "no"] {
        let dir = tempfile::tempdir().unwrap();
        // The base is as long as the data then, and cannot be written either.
        let mut args = vec!["--appendonly", "yes", "--rdbcompression", "no"];
        args.extend(["--appendfsync", fsync]);
        let server = start(limited(), dir.path(), &args);
        let mut client = server.connect();
        let set = fill_disk(&mut client);
        assert!(set > 3, "{set}");
        let size = set.to_string();
        for line in ["SET a 1", "DEL key:0", "INCR n", "PING"] {
            assert_eq!(client.line(line), REFUSED, "{line}");
        }
        let script = ["EVAL", "return redis.call('SET','a','1')", "0"];
        assert!(text(&client.ask(&script)).starts_with(REFUSED));
        // Reads go on.
        assert_eq!(client.line("STRLEN key:0"), "10000");
        assert_eq!(client.line("DBSIZE"), size);
        let script = ["EVAL", "return redis.call('EXISTS','key:0')", "0"];
        assert_eq!(text(&client.ask(&script)), "1");
        wait_for(&mut client, "aof_last_write_status:err");
        wait_for(&mut client, "aof_last_bgrewrite_status:err");
        let pid = Pid::from_child(&server.child);
        prlimit(Some(pid), Resource::Fsize, getrlimit(Resource::Fsize)).unwrap();
        eventually(
            || rested(&mut client, "SET late 1"),
            |reply| {
                assert!(reply == "OK" || reply == REFUSED, "{reply}");
                reply == "OK"
            },
        );
        let info = client.line("INFO persistence");
        for field in ["aof_last_write_status:ok", "aof_last_bgrewrite_status:ok"] {
            assert!(info.contains(field), "{field} in {info}");
        }
        let digest = client.line("DEBUG DIGEST");
        drop(server);
        // All that was replied to is there, also the write whose append failed.
        let server = kumi(dir.path(), &["--appendonly", "yes"]);
        let mut client = server.connect();
        assert_eq!(client.line("DBSIZE"), (set + 1).to_string());
        assert_eq!(client.line("DEBUG DIGEST"), digest);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_stop_writes_what_a_failed_file_lacks() {
    use rustix::process::{Pid, Resource, getrlimit, prlimit};
    for has_room in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let args = ["--appendonly", "yes", "--rdbcompression", "no"];
        let mut server = start(limited(), dir.path(), &args);
        let mut client = server.connect();
        let set = fill_disk(&mut client);
        // The next try is seconds away.
        eventually(
            || rested(&mut client, "INFO persistence"),
            |info| {
                let failures = info.split("aof_rewrites_consecutive_failures:").nth(1);
                let failures = failures.and_then(|rest| rest.split('\r').next());
                failures.is_some_and(|count| count.parse::<u32>().unwrap() >= 2)
            },
        );
        let digest = client.line("DEBUG DIGEST");
        if has_room {
            let pid = Pid::from_child(&server.child);
            prlimit(Some(pid), Resource::Fsize, getrlimit(Resource::Fsize)).unwrap();
        }
        server.signal(Signal::TERM);
        assert_eq!(server.wait().success(), has_room, "{:#?}", server.log);
        let said = server.log.join("\n");
        assert!(said.contains("a new base is written before the end"));
        if has_room {
            let server = kumi(dir.path(), &["--appendonly", "yes"]);
            let mut client = server.connect();
            assert_eq!(client.line("DBSIZE"), set.to_string());
            assert_eq!(client.line("DEBUG DIGEST"), digest);
        }
    }
}

#[test]
fn an_aof_of_more_databases_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes", "--databases", "32"]);
    let mut client = server.connect();
    for line in ["SET a 0", "SELECT 20", "SET a 1"] {
        assert_eq!(client.line(line), "OK");
    }
    stop(server);
    let before = contents(dir.path());
    let mut args = vec!["--port", "0", "--unixsocket", "s", "--appendonly", "yes"];
    args.extend(["--dir", dir.path().to_str().unwrap()]);
    let (code, output, _) = run_to_end(&args);
    assert_eq!(code, Some(1), "{output}");
    let reason = "the database does not exist, there are 16 (directive 'databases')";
    assert!(output.contains(reason), "{output}");
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn no_save_begins_before_a_rewrite_that_was_announced() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    let mut client = server.connect();
    client.send("SET a 1\r\nBGREWRITEAOF\r\nBGSAVE\r\nBGSAVE SCHEDULE\r\n");
    client.expect("+OK\r\n+Background append only file rewriting started\r\n");
    let refused = text(&client.try_reply().unwrap());
    assert!(
        refused.contains("Another child process is active"),
        "{refused}"
    );
    client.expect("+Background saving scheduled\r\n");
    wait_for(&mut client, "aof_rewrites:1\r");
    wait_for(&mut client, "rdb_saves:1\r");
}

#[test]
fn always_ends_without_a_reply_when_the_disk_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = start(limited(), dir.path(), &args);
    let mut client = server.connect();
    let mut reader = server.connect();
    assert_eq!(reader.line("PING"), "PONG");
    let set = fill_disk(&mut client);
    assert!(set > 3, "{set}");
    // Neither the writer nor another client got a reply, not even an error.
    assert_eq!(client.read_to_end(), b"");
    assert_eq!(reader.read_to_end(), b"");
    assert_eq!(server.wait().code(), Some(1));
    let said = server.log.join("\n");
    assert!(
        said.contains("Can't recover from AOF write error when the AOF fsync policy is 'always'"),
        "{said}"
    );
    let server = kumi(dir.path(), &args);
    let mut client = server.connect();
    assert_eq!(client.line("DBSIZE"), set.to_string());
    assert_eq!(client.line("SET a 1"), "OK");
}

#[test]
fn a_full_disk_fails_the_rewrite_of_a_server_without_an_aof() {
    for fsync in ["always", "everysec"] {
        let dir = tempfile::tempdir().unwrap();
        let args = ["--appendfsync", fsync, "--rdb-key-save-delay", "100000"];
        let server = start(limited(), dir.path(), &args);
        let mut client = server.connect();
        for number in 0..100 {
            client.line(&format!("SET key:{number} 1"));
        }
        assert!(client.line("BGREWRITEAOF").starts_with("Background"));
        let temporary = dir.path().join("appendonlydir/temp-appendonly.aof.incr");
        // The increment is made before the snapshot begins.
        wait_for(&mut client, "aof_current_rewrite_time_sec:0");
        assert!(temporary.exists());
        let info = client.line("INFO persistence");
        for field in ["aof_enabled:0", "aof_rewrite_in_progress:1"] {
            assert!(info.contains(field), "{field} in {info}");
        }
        let long = "x".repeat(200 * 1024);
        assert_eq!(client.line(&format!("SET long {long}")), "OK");
        assert_eq!(client.line("SET a 1"), "OK");
        wait_for(&mut client, "aof_rewrite_in_progress:0");
        assert!(
            !dir.path()
                .join("appendonlydir/appendonly.aof.manifest")
                .exists()
        );
        assert_eq!(client.line("GET a"), "1");
    }
}

#[test]
fn an_old_file_stays_when_an_aof_begins_at_run_time() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &[]);
    let mut client = server.connect();
    let old = dir.path().join("appendonly.aof");
    fs::write(&old, "*1\r\n$4\r\nPING\r\n").unwrap();
    assert_eq!(client.line("CONFIG SET appendonly yes"), "OK");
    wait_for(&mut client, "aof_rewrites:1\r");
    assert!(old.exists());
    assert_eq!(client.line("SET a 1"), "OK");
    stop(server);
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("GET a"), "1");
    assert!(old.exists());
}

#[test]
fn what_a_rewrite_without_an_aof_wrote_can_be_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &[]);
    let mut client = server.connect();
    assert!(client.line("DEBUG LOADAOF").starts_with('-'));
    assert_eq!(client.line("SET a 1"), "OK");
    assert!(client.line("BGREWRITEAOF").starts_with("Background"));
    // There is a base, and no increment, as in Redis.
    let names = |base: u64, increment: u64| {
        let base = format!("file appendonly.aof.{base}.base.rdb seq {base} type b\n");
        match increment {
            0 => base,
            seq => format!("{base}file appendonly.aof.{seq}.incr.aof seq {seq} type i\n"),
        }
    };
    let manifest = dir.path().join("appendonlydir/appendonly.aof.manifest");
    let named = || fs::read_to_string(&manifest).unwrap_or_default();
    eventually(named, |text| *text == names(1, 0));
    let log = dir.path().join("appendonlydir");
    let files = || fs::read_dir(&log).unwrap().count();
    eventually(files, |&count| count == 2);
    assert_eq!(client.line("SET a 2"), "OK");
    assert_eq!(client.line("DEBUG LOADAOF"), "OK");
    assert_eq!(client.line("GET a"), "1");
    assert_eq!(client.line("SET a 3"), "OK");
    for (line, expected) in [
        ("CONFIG SET appendonly yes", names(2, 1)),
        ("BGREWRITEAOF", names(3, 2)),
        ("CONFIG SET appendonly no", names(3, 2)),
        ("BGREWRITEAOF", names(4, 0)),
        ("CONFIG SET appendonly yes", names(5, 3)),
    ] {
        assert!(!client.line(line).starts_with('-'), "{line}");
        eventually(named, |text| *text == expected);
        wait_for(&mut client, "aof_rewrite_in_progress:0");
    }
    // INFO counts over all of them.
    wait_for(&mut client, "aof_rewrites:5\r");
    assert_eq!(client.line("SET a 4"), "OK");
    drop(server);
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("GET a"), "4");
}

#[test]
fn files_with_many_databases_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes", "--databases", "2000"]);
    let mut client = server.connect();
    for line in ["SELECT 1999", "SET a 1", "SAVE"] {
        assert_eq!(client.line(line), "OK");
    }
    stop(server);
    let checked = kumi_server::check_aof(&dir.path().join("appendonlydir"), false).unwrap();
    assert!(checked.valid, "{checked:?}");
    let checked = kumi_server::check_rdb(&dir.path().join("dump.rdb")).unwrap();
    assert!(checked.valid, "{checked:?}");
}
