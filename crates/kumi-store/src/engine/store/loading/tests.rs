//! What clients see while a data set is loaded, and what an AOF leaves.

use super::*;
use crate::testing::Lab;

fn request(line: &str) -> Vec<u8> {
    let words: Vec<&str> = line.split(' ').collect();
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

fn replay(lab: &mut Lab, lines: &[&str]) -> Result<(), ReplayError> {
    let bytes: Vec<u8> = lines.iter().flat_map(|line| request(line)).collect();
    lab.store.replay(&bytes, &mut lab.outputs, &mut lab.host)
}

#[test]
fn an_aof_with_a_database_that_does_not_exist_is_refused() {
    for line in ["SELECT 16", "SWAPDB 0 16"] {
        let mut lab = Lab::new();
        lab.store.begin_loading(100, true);
        let error = replay(&mut lab, &["SET a 0", line, "SET a 1"]).unwrap_err();
        assert_eq!(error.at, request("SET a 0").len(), "{line}");
        assert!(error.reason.contains("there are 16"), "{}", error.reason);
    }
}

#[test]
fn clients_get_loading_errors_meanwhile() {
    let mut lab = Lab::new();
    lab.run("SET a 1");
    lab.store.begin_loading(100, true);
    lab.check(&[
        (
            "GET a",
            "-LOADING Redis is loading the dataset in memory\r\n",
        ),
        (
            "PING",
            "-LOADING Redis is loading the dataset in memory\r\n",
        ),
        (
            "CONFIG SET hz 20 AppendOnly yes",
            "-LOADING Redis is loading the dataset in memory\r\n",
        ),
        ("CONFIG SET hz 20", "+OK\r\n"),
    ]);
    replay(&mut lab, &["SET a 2", "SELECT 1", "SET b 3"]).unwrap();
    lab.store.note_loaded(50);
    let info = lab.run("INFO persistence");
    for line in [
        "loading:1",
        "loading_total_bytes:100",
        "loading_loaded_bytes:50",
    ] {
        assert!(info.contains(line), "{line} in {info}");
    }
    assert_eq!(lab.store.end_loading(&mut lab.outputs), 0);
    lab.check(&[
        ("GET a", "$1\r\n2\r\n"),
        ("SELECT 1", "+OK\r\n"),
        ("GET b", "$1\r\n3\r\n"),
    ]);
    assert!(lab.run("INFO persistence").contains("loading:0\r\n"));
    assert!(!lab.run("INFO commandstats").contains("cmdstat_set:calls=3"));
}

#[test]
fn nothing_expires_while_an_aof_is_replayed() {
    let mut lab = Lab::new();
    lab.store.begin_loading(1, true);
    let past = (lab.host.now.unix_ms() - 5000).to_string();
    let lines = [
        format!("SET a 1 PXAT {past}"),
        "APPEND a 2".to_owned(),
        "SET b 1".to_owned(),
        format!("PEXPIREAT b {past}"),
        "INCR b".to_owned(),
        "PERSIST b".to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    replay(&mut lab, &lines).unwrap();
    lab.advance_ms(1000);
    assert_eq!(lab.store.keyspace.total_keys(), 2);
    lab.store.end_loading(&mut lab.outputs);
    lab.check(&[("GET b", "$1\r\n2\r\n"), ("GET a", "$-1\r\n")]);
}

#[test]
fn half_a_transaction_is_dropped() {
    let mut lab = Lab::new();
    lab.store.begin_loading(1, true);
    replay(&mut lab, &["MULTI", "SET a 1", "EXEC", "MULTI", "SET a 2"]).unwrap();
    lab.store.end_loading(&mut lab.outputs);
    lab.check(&[("GET a", "$1\r\n1\r\n")]);
}

#[test]
fn a_request_that_is_no_command_is_an_error_with_its_place() {
    let mut lab = Lab::new();
    lab.store.begin_loading(1, true);
    let error = replay(&mut lab, &["SET a 1", "NOSUCH a"]).unwrap_err();
    assert_eq!(error.at, request("SET a 1").len());
    let reason = "Unknown command 'NOSUCH' reading the append only file";
    assert_eq!(error.reason, reason);
    let error = replay(&mut lab, &["GET"]).unwrap_err();
    assert!(error.reason.contains("wrong number"), "{error}");
    lab.store.end_loading(&mut lab.outputs);
}

#[test]
fn long_requests_and_failed_ones_are_replayed() {
    let mut lab = Lab::new();
    lab.store.begin_loading(1, true);
    let long = format!("SET a {}", "x".repeat(200_000));
    let many = format!("RPUSH l {}", ["y"; 300].join(" "));
    replay(&mut lab, &[&long, "SET b 1", &many, "INCR a"]).unwrap();
    assert_eq!(lab.store.end_loading(&mut lab.outputs), 1);
    lab.check(&[("STRLEN a", ":200000\r\n"), ("LLEN l", ":300\r\n")]);
}

/// Loads an AOF into a store that is configured so.
fn load(directives: &[(&str, &str)], aof: &[u8]) -> Lab {
    let mut lab = Lab::new();
    for (name, value) in directives {
        lab.configure(name, value);
    }
    lab.store.begin_loading(1, true);
    let replayed = lab.store.replay(aof, &mut lab.outputs, &mut lab.host);
    assert_eq!(replayed, Ok(()));
    assert_eq!(
        lab.store.end_loading(&mut lab.outputs),
        0,
        "failed commands"
    );
    lab
}

fn requests(lines: impl IntoIterator<Item = String>) -> Vec<u8> {
    lines.into_iter().flat_map(|line| request(&line)).collect()
}

/// A transaction that sets so many keys to values of so many bytes.
fn transaction(keys: usize, bytes: usize) -> Vec<u8> {
    let value = "x".repeat(bytes);
    let sets = (0..keys).map(|key| format!("SET k{key} {value}"));
    let lines = std::iter::once("MULTI".to_owned()).chain(sets);
    requests(lines.chain(["EXEC".to_owned(), "SET behind 1".to_owned()]))
}

#[test]
fn a_transaction_above_the_query_buffer_limit_is_replayed() {
    for bytes in [60_000, 100_000] {
        let aof = transaction(40, bytes);
        let lab = load(&[("client-query-buffer-limit", "1mb")], &aof);
        assert_eq!(lab.store.keyspace.total_keys(), 41);
        assert_eq!(lab.store.telemetry.stats.query_limit_disconnections, 0);
    }
}

#[test]
fn a_session_that_is_closed_ends_the_replay() {
    let long = format!("SET a {}", "x".repeat(200_000));
    for behind in ["SET a 1", &long] {
        let mut lab = Lab::new();
        lab.store.begin_loading(1, true);
        let error = replay(&mut lab, &["SET b 1", "QUIT"]).unwrap_err();
        assert_eq!(error.at, request("SET b 1").len());
        assert!(error.reason.contains("closed"), "{error}");
        assert!(replay(&mut lab, &[behind]).is_err(), "and stays closed");
        lab.store.end_loading(&mut lab.outputs);
    }
}

#[test]
fn the_session_of_a_replay_is_no_client() {
    let mut lab = Lab::new();
    lab.store.begin_loading(1, true);
    replay(&mut lab, &["MULTI", "SET a 1"]).unwrap();
    assert!(lab.run("INFO clients").contains("connected_clients:1\r\n"));
    assert_eq!(lab.store.session_count(), 1);
    let list = lab.run("CLIENT LIST");
    let listed = list.lines().filter(|line| line.starts_with("id="));
    assert_eq!(listed.count(), 1, "{list}");
    lab.check(&[("CLIENT KILL TYPE normal", ":0\r\n")]);
    for id in 1..5 {
        lab.run(&format!("CLIENT KILL ID {id} SKIPME yes"));
    }
    replay(&mut lab, &["EXEC"]).unwrap();
    lab.store.end_loading(&mut lab.outputs);
    lab.check(&[("GET a", "$1\r\n1\r\n")]);
    assert_eq!(lab.store.session_count(), 1);
}

#[test]
fn the_memory_of_a_replay_evicts_no_client() {
    let mut lab = Lab::new();
    lab.configure("maxmemory-clients", "128kb");
    lab.configure("timeout", "1");
    lab.store.begin_loading(1, true);
    let aof = transaction(40, 10_000);
    let middle = aof.len() - request("EXEC").len() - request("SET behind 1").len();
    let (queued, rest) = aof.split_at(middle);
    let replay = |lab: &mut Lab, bytes| {
        lab.store
            .replay(bytes, &mut lab.outputs, &mut lab.host)
            .unwrap();
    };
    replay(&mut lab, queued);
    lab.run("CLIENT NO-TOUCH on");
    lab.advance_ms(5_000);
    replay(&mut lab, rest);
    lab.store.end_loading(&mut lab.outputs);
    assert_eq!(lab.store.telemetry.stats.evicted_clients, 0);
    assert_eq!(lab.store.keyspace.total_keys(), 41);
}

#[test]
fn no_key_is_evicted_before_loading_is_over() {
    let lines = (0..500).map(|key| format!("SET k{key} {}", "x".repeat(1000)));
    let aof = requests(lines);
    let mut lab = Lab::new();
    lab.configure("maxmemory", "200kb");
    lab.configure("maxmemory-policy", "allkeys-lru");
    lab.store.begin_loading(1, true);
    let replayed = lab.store.replay(&aof, &mut lab.outputs, &mut lab.host);
    assert_eq!(replayed, Ok(()));
    lab.run("INFO");
    lab.advance_ms(1000);
    assert_eq!(lab.store.keyspace.total_keys(), 500);
    lab.store.end_loading(&mut lab.outputs);
    lab.store.listen_to_writes(true);
    lab.run("INFO");
    lab.advance_ms(1000);
    assert!(lab.store.keyspace.total_keys() < 200);
    let evicted = 500 - lab.store.keyspace.total_keys();
    let writes = lab.writes();
    let deleted = writes.iter().filter(|line| line.starts_with("DEL "));
    assert_eq!(deleted.count(), evicted, "evictions are in the aof");
}

#[test]
fn limits_that_were_lowered_leave_nothing_of_an_aof_out() {
    let keys = requests((0..1000).map(|key| format!("SET k{key} 1")));
    let mut lab = load(&[("max-keys", "100")], &keys);
    assert_eq!(lab.store.keyspace.total_keys(), 1000);
    assert!(lab.run("SET new 1").contains("max-keys"));

    let values = requests((0..100).map(|key| format!("SET k{key} {}", "x".repeat(2000))));
    let mut lab = load(&[("max-value-size", "1000")], &values);
    assert_eq!(lab.store.keyspace.total_keys(), 100);
    assert!(
        lab.run(&format!("SET new {}", "x".repeat(2000)))
            .contains("max-value-size")
    );

    let piece = "x".repeat(1_000_000);
    let aof = requests([
        format!("APPEND a {piece}"),
        format!("APPEND a {piece}"),
        format!("SETRANGE b 2000000 {piece}"),
        "SETBIT c 24000000 1".to_owned(),
        "BITFIELD d SET u8 24000000 1".to_owned(),
    ]);
    let mut lab = load(&[("proto-max-bulk-len", "1mb")], &aof);
    lab.check(&[
        ("STRLEN a", ":2000000\r\n"),
        ("STRLEN b", ":3000000\r\n"),
        ("STRLEN c", ":3000001\r\n"),
        ("STRLEN d", ":3000001\r\n"),
    ]);
    assert!(lab.run("APPEND a x").contains("proto-max-bulk-len"));
}

#[test]
fn an_rdb_file_is_loaded_under_lowered_limits_too() {
    let mut lab = Lab::new();
    for key in 0..20 {
        lab.run(&format!("SET k{key} {}", "x".repeat(2000)));
    }
    let mut file = Vec::new();
    lab.store.save_rdb(&mut file).unwrap();
    let mut lab = Lab::new();
    lab.configure("max-keys", "10");
    lab.configure("max-value-size", "1000");
    let loaded = lab.store.load_rdb(file.as_slice(), |_| {}).unwrap();
    assert_eq!(loaded.keys, 20);
    assert!(lab.run("SET new 1").contains("max-keys"));
}

#[test]
fn an_aof_is_replayed_with_all_permissions() {
    let mut lab = Lab::new();
    lab.check(&[("ACL SETUSER default reset on nopass +acl +info", "+OK\r\n")]);
    lab.store.begin_loading(1, true);
    let script = "redis.call('set','b',1);redis.call('set','c',1)";
    let eval = format!("EVAL {script} 0");
    let lines = ["MULTI", "SET a 1", "EXEC", &eval];
    replay(&mut lab, &lines).unwrap();
    assert_eq!(lab.store.end_loading(&mut lab.outputs), 0);
    assert_eq!(lab.store.keyspace.total_keys(), 3);
    assert!(lab.run("SET d 1").starts_with("-NOPERM"));
}

#[test]
fn a_replayed_script_is_never_out_of_memory() {
    let script = "redis.call('set',KEYS[1],ARGV[1])";
    let lines = (0..400).map(|key| format!("EVAL {script} 1 k{key} {}", "x".repeat(1000)));
    let mut lab = load(&[("maxmemory", "200kb")], &requests(lines));
    assert_eq!(lab.store.keyspace.total_keys(), 400);
    assert!(lab.run("SET new 1").starts_with("-OOM"));
}
