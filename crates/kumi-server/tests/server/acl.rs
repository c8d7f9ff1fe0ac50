//! Users through a running server: ways around their rules, and the files they are kept in.

use crate::common::{Client, Process, run_to_end, text};
use std::os::unix::net::UnixStream;
use std::path::Path;

#[test]
fn rules_cannot_be_bypassed() {
    let process = Process::start(&[]);
    let mut admin = process.connect();
    let rules = "ACL SETUSER limited on >secret ~app:* +get +set +eval +eval_ro +fcall +multi +exec +config|get +sort +client|id";
    assert_eq!(admin.line(rules), "OK");
    assert_eq!(admin.line("SET other 1"), "OK");
    let function = "#!lua name=lib\nredis.register_function('f', function() return redis.call('get', 'other') end)";
    assert_eq!(text(&admin.ask(&["FUNCTION", "LOAD", function])), "lib");
    let mut client = process.connect();
    assert_eq!(client.line("AUTH limited secret"), "OK");
    assert_eq!(client.line("SET app:1 x"), "OK");
    let denied: &[&[&str]] = &[
        // Other keys, also by an option, and other commands on the same data.
        &["GET", "other"],
        &["SORT", "app:list", "STORE", "other"],
        &["MGET", "app:1"],
        &["GETRANGE", "app:1", "0", "1"],
        &["SUBSTR", "app:1", "0", "1"],
        // A subcommand that was not given, in any case.
        &["CONFIG", "SET", "maxmemory", "1"],
        &["cOnFiG", "sEt", "maxmemory", "1"],
        &["CONFIG", "REWRITE"],
        &["CLIENT", "KILL", "TYPE", "normal"],
        &["CLIENT", "TRACKING", "ON"],
        &["ACL", "SETUSER", "limited", "+@all"],
        &["ACL", "WHOAMI"],
        &["DEBUG", "SLEEP", "0"],
        &["SCRIPT", "FLUSH"],
        &["FUNCTION", "FLUSH"],
        &["EVALSHA", "0000000000000000000000000000000000000000", "0"],
        &["EVAL", "return 1", "1", "other"],
    ];
    for request in denied {
        let answer = text(&client.ask(request));
        assert!(answer.starts_with("-NOPERM"), "{request:?}: {answer}");
    }
    for option in ["BY", "GET"] {
        let answer = text(&client.ask(&["SORT", "app:list", option, "other:*"]));
        assert!(answer.contains("insufficient ACL permissions"), "{answer}");
    }
    let unknown = text(&client.ask(&["config|set", "maxmemory", "1"]));
    assert!(unknown.starts_with("-ERR unknown command"), "{unknown}");
    let scripts = [
        "return redis.call('get', 'other')",
        "return redis.call('set', 'other', 'x')",
        "return redis.call('GeT', 'other')",
        "return redis.call('config', 'set', 'maxmemory', '1')",
        "return redis.pcall('acl', 'setuser', 'limited', '+@all')",
        "return redis.pcall('mget', 'app:1')",
        "local ok, e = pcall(redis.call, 'get', 'other') if ok then return 'read it' end error(e)",
    ];
    for script in scripts {
        for command in ["EVAL", "EVAL_RO"] {
            let answer = text(&client.ask(&[command, script, "0"]));
            assert!(answer.starts_with('-'), "{command} {script}: {answer}");
        }
    }
    let answer = text(&client.ask(&["FCALL", "f", "0"]));
    assert!(
        answer.starts_with("-ERR ACL failure in script: "),
        "{answer}"
    );
    // Inside a transaction.
    assert_eq!(client.line("MULTI"), "OK");
    assert!(client.line("GET other").starts_with("-NOPERM"));
    assert!(client.line("CONFIG SET maxmemory 1").starts_with("-NOPERM"));
    assert!(client.line("EXEC").starts_with("-EXECABORT"));
    // Rules that change between queueing and EXEC.
    assert_eq!(client.line("MULTI"), "OK");
    assert_eq!(client.line("SET app:1 y"), "QUEUED");
    assert_eq!(admin.line("ACL SETUSER limited -set"), "OK");
    let answer = client.line("EXEC");
    assert!(answer.contains("-NOPERM ACLs rules changed"), "{answer}");
    assert_eq!(admin.line("GET app:1"), "x");
    assert_eq!(admin.line("GET other"), "1");
    assert_eq!(
        text(&admin.ask(&["CONFIG", "GET", "maxmemory"])),
        "maxmemory,0"
    );
}

const READY: &str = "Ready to accept connections unix";

/// A server with its socket and files in `dir`, which outlives the process.
fn start(dir: &Path, args: &[&str]) -> (Process, Client<UnixStream>) {
    let socket = dir.join("s");
    let _ = std::fs::remove_file(&socket);
    let path = socket.to_str().expect("the path is text");
    let home = dir.to_str().expect("the path is text");
    let own = ["--port", "0", "--unixsocket", path, "--dir", home];
    let all = [args, &own[..]].concat();
    let own = tempfile::tempdir().expect("a folder can be made");
    let process = Process::start_in(own, &all, READY);
    let client = Client::unix(&socket);
    (process, client)
}

fn stop(mut process: Process) {
    process.signal(rustix::process::Signal::TERM);
    assert!(process.wait().success());
}

#[test]
fn users_live_in_the_acl_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("users.acl");
    let users = "user default on nopass ~* &* +@all\nuser alice on >one ~a:* +get\n";
    std::fs::write(&file, users).unwrap();
    let args = ["--aclfile", file.to_str().unwrap()];
    let (process, mut admin) = start(dir.path(), &args);
    let connect = || Client::unix(&dir.path().join("s"));
    assert_eq!(connect().line("AUTH alice one"), "OK");
    let rules = "ACL SETUSER bob on >two ~b:* %R~shared:* +@read";
    assert_eq!(admin.line(rules), "OK");
    assert_eq!(admin.line("ACL SAVE"), "OK");
    let saved = std::fs::read_to_string(&file).unwrap();
    assert!(saved.contains("user bob on "), "{saved}");
    assert!(!saved.contains("two"), "passwords are hashed: {saved}");
    // ACL LOAD removes what the file does not have, and closes its connections.
    assert_eq!(admin.line("ACL SETUSER carol on nopass +@all ~*"), "OK");
    let mut carol = connect();
    assert_eq!(carol.line("AUTH carol x"), "OK");
    assert_eq!(admin.line("ACL LOAD"), "OK");
    assert_eq!(carol.read_to_end(), b"");
    assert_eq!(admin.line("ACL USERS"), "alice,bob,default");
    // It closes the connections of all users but the default one, changed or not.
    let (mut alice, mut bob) = (connect(), connect());
    assert_eq!(alice.line("AUTH alice one"), "OK");
    assert_eq!(bob.line("AUTH bob two"), "OK");
    assert_eq!(admin.line("ACL SETUSER alice +set"), "OK");
    assert_eq!(admin.line("ACL LOAD"), "OK");
    assert_eq!(alice.read_to_end(), b"");
    assert_eq!(bob.read_to_end(), b"");
    assert_eq!(admin.line("ACL WHOAMI"), "default");
    // A wrong file changes nothing.
    std::fs::write(&file, [users, "user broken +@nonsense\n"].concat()).unwrap();
    let answer = admin.line("ACL LOAD");
    assert!(answer.starts_with("-ERR "), "{answer}");
    assert_eq!(admin.line("ACL USERS"), "alice,bob,default");
    // What was saved is there after a restart.
    std::fs::write(&file, &saved).unwrap();
    stop(process);
    let (process, mut bob) = start(dir.path(), &args);
    assert_eq!(bob.line("AUTH bob two"), "OK");
    assert_eq!(bob.line("GET shared:1"), "nil");
    assert!(bob.line("SET b:1 x").starts_with("-NOPERM"));
    stop(process);
}

#[test]
fn a_wrong_acl_file_ends_the_start_in_the_words_of_redis() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("users.acl");
    std::fs::write(&file, "user broken +@nonsense\n").unwrap();
    let path = file.to_str().unwrap();
    let (code, log, _) = run_to_end(&["--port", "0", "--unixsocket", "s", "--aclfile", path]);
    assert_eq!(code, Some(1), "{log}");
    let expected = format!("# Aborting Redis startup because of ACL errors: {path}:1: ");
    assert!(log.contains(&expected), "{log}");
}

#[test]
fn a_wrong_user_line_ends_the_start_in_the_words_of_redis() {
    let (code, log, _) = run_to_end(&[
        "--port",
        "0",
        "--unixsocket",
        "s",
        "--user",
        "broken",
        "+@nonsense",
    ]);
    assert_eq!(code, Some(1), "{log}");
    let expected = "name in ACL. Critical error while loading ACLs. Exiting.";
    assert!(log.contains(expected), "{log}");
    assert!(!log.contains("Aborting Redis startup"), "{log}");
}

#[test]
fn config_rewrite_keeps_users() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kumi.conf");
    std::fs::write(&file, "hz 20\nuser alice on >one ~a:* +get\n").unwrap();
    let path = file.to_str().unwrap();
    let (process, mut admin) = start(dir.path(), &[path]);
    assert_eq!(admin.line("ACL SETUSER bob on >two ~b:* +set"), "OK");
    assert_eq!(admin.line("ACL SETUSER alice +strlen"), "OK");
    assert!(
        admin.line("ACL SAVE").starts_with("-ERR "),
        "there is no ACL file"
    );
    assert_eq!(admin.line("CONFIG REWRITE"), "OK");
    let users = admin.line("ACL LIST");
    stop(process);
    let (process, mut admin) = start(dir.path(), &[path]);
    assert_eq!(admin.line("ACL LIST"), users);
    assert_eq!(admin.line("AUTH bob two"), "OK");
    assert_eq!(admin.line("SET b:1 x"), "OK");
    assert!(admin.line("SET a:1 x").starts_with("-NOPERM"));
    stop(process);
}
