//! Passive expiry, EXPIRE and TTL, with a clock that the test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mini_redis::App;
use mini_redis::clock::Clock;
use mini_redis::commands::Reply;
use mini_redis::error::CommandError;

struct Bench {
    app: App,
    time: Arc<AtomicU64>,
}

impl Bench {
    fn new() -> Bench {
        let time = Arc::new(AtomicU64::new(1_000_000));
        Bench { app: App::with_clock(Clock::manual(time.clone())), time }
    }

    fn run(&self, words: &str) -> Result<Reply, CommandError> {
        let command: Vec<Vec<u8>> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        self.app.commands.execute(&command)
    }

    fn integer(&self, words: &str) -> i64 {
        match self.run(words) {
            Ok(Reply::Integer(number)) => number,
            other => panic!("{words}: {other:?}"),
        }
    }

    fn pass_ms(&self, ms: u64) {
        self.time.fetch_add(ms, Ordering::SeqCst);
    }
}

#[test]
fn a_key_is_there_until_its_deadline_and_not_at_it() {
    let bench = Bench::new();
    bench.run("SET k v").unwrap();
    assert_eq!(bench.integer("EXPIRE k 10"), 1);
    bench.pass_ms(9_999);
    assert_eq!(bench.run("GET k"), Ok(Reply::Bulk(Some(b"v".to_vec()))));
    bench.pass_ms(1);
    assert_eq!(bench.run("GET k"), Ok(Reply::Bulk(None)));
    assert_eq!(bench.integer("DBSIZE"), 0);
}

#[test]
fn every_command_checks_for_expiry() {
    for (command, expected) in [("INCR k", 1), ("EXPIRE k 100", 0), ("EXPIRE k -1", 0), ("TTL k", -2)] {
        let bench = Bench::new();
        bench.run("SET k 41").unwrap();
        bench.run("EXPIRE k 1").unwrap();
        bench.pass_ms(1_000);
        assert_eq!(bench.integer(command), expected, "{command}");
    }
}

#[test]
fn ttl_rounds_up() {
    let bench = Bench::new();
    assert_eq!(bench.integer("TTL k"), -2);
    bench.run("SET k v").unwrap();
    assert_eq!(bench.integer("TTL k"), -1);
    bench.run("EXPIRE k 10").unwrap();
    for (pass_ms, expected) in [(0, 10), (1, 10), (998, 10), (1, 9), (1, 9), (8_998, 1)] {
        bench.pass_ms(pass_ms);
        assert_eq!(bench.integer("TTL k"), expected, "after {pass_ms} more");
    }
}

#[test]
fn incr_keeps_the_deadline_and_set_clears_it() {
    let bench = Bench::new();
    bench.run("SET k 1").unwrap();
    bench.run("EXPIRE k 10").unwrap();
    bench.run("INCR k").unwrap();
    assert_eq!(bench.integer("TTL k"), 10);
    bench.run("SET k 1").unwrap();
    assert_eq!(bench.integer("TTL k"), -1);
}

#[test]
fn expire_takes_any_number() {
    let bench = Bench::new();
    bench.run("SET k v").unwrap();
    assert_eq!(bench.integer("EXPIRE k 9223372036854775807"), 1);
    assert_eq!(bench.run("GET k"), Ok(Reply::Bulk(Some(b"v".to_vec()))));
    assert_eq!(bench.integer("EXPIRE k 0"), 1);
    assert_eq!(bench.integer("EXPIRE k -9223372036854775808"), 0);
    assert_eq!(bench.run("EXPIRE k soon"), Err(CommandError::NotAnInteger));
}

#[test]
fn a_panic_is_an_internal_error_and_the_server_goes_on() {
    let app = App::with_clock(Clock::new(|| panic!("the clock is broken")));
    let client = app.client_handler();
    let reply_to = |words: &str| {
        let command: Vec<Vec<u8>> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        client.reply_to(&command)
    };
    assert_eq!(reply_to("SET k v"), b"+OK\r\n");
    assert_eq!(reply_to("EXPIRE k 10"), b"-ERR internal error\r\n");
    assert_eq!(reply_to("GET k"), b"$1\r\nv\r\n");
}
