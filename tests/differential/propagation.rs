//! What the engine propagates is what a redis-server sends to its replica for the same commands, and replayed into an
//! empty engine it gives the same data.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use kumi_resp::{Decoder, Limits, OwnedArgs, Step};
use kumi_store::{
    ApplyError, Config, Flow, Host, HostFacts, Now, Outputs, Peer, Seeds, SessionKey, Store,
};

use crate::support::server::Server;

/// How long the reference may take for its answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The last write of every session: what comes before it is compared.
const END: &str = "SET end-of-session 1";

#[test]
fn writes_are_propagated_as_the_reference_does() {
    let sessions: &[&[&str]] = &[
        &[
            "SET a 1",
            "SET a 2 NX",
            "SET a 3 XX",
            "GETSET a 4",
            "SET a 5 GET",
            "SETNX b 1",
            "SETNX b 2",
        ],
        &[
            "SET a 1 EX 100",
            "SETEX b 100 2",
            "PSETEX c 100000 3",
            "SET d 4 KEEPTTL",
            "SET e 5 PXAT 9999999999999",
        ],
        &[
            "MSET a 1 b 2",
            "MSETNX c 3 d 4",
            "MSETNX a 1 z 1",
            "MGET a b",
        ],
        &[
            "INCR n",
            "DECRBY n 5",
            "INCRBYFLOAT f 1.5",
            "APPEND s xyz",
            "SETRANGE s 1 abc",
            "STRLEN s",
        ],
        &[
            "SET a 1",
            "EXPIRE a 100",
            "PEXPIRE a 200000 GT",
            "EXPIRE a 100 NX",
            "PERSIST a",
            "PERSIST a",
            "EXPIRE a -1",
        ],
        &[
            "SET a 1",
            "GETEX a EX 100",
            "GETEX a",
            "GETEX a PERSIST",
            "GETDEL a",
            "GETDEL a",
        ],
        &[
            "MSET a 1 b 2 c 3",
            "DEL a missing",
            "UNLINK b",
            "DEL missing",
            "RENAME c d",
            "RENAMENX d e",
            "COPY e f",
        ],
        &[
            "SET a 1",
            "COPY a b DB 1",
            "MOVE a 2",
            "SELECT 2",
            "SET x 1",
            "SELECT 0",
            "SWAPDB 0 1",
            "SET y 1",
        ],
        &[
            "MULTI",
            "SET a 1",
            "INCR n",
            "GET a",
            "EXEC",
            "MULTI",
            "SET only 1",
            "EXEC",
            "MULTI",
            "GET a",
            "EXEC",
        ],
        &[
            "MULTI", "SET a 1", "SELECT 3", "SET b 1", "EXEC", "SET c 1", "SELECT 0",
        ],
        &[
            "MULTI", "SET a 1", "DISCARD", "WATCH a", "MULTI", "SET a 2", "EXEC", "MULTI",
            "INCR s", "INCR s", "EXEC",
        ],
        &[
            "SET a 1",
            "FLUSHDB",
            "SELECT 1",
            "SET b 1",
            "FLUSHALL",
            "FLUSHDB ASYNC",
            "SELECT 0",
        ],
        &[
            "SET text hello",
            "INCR text",
            "SET a 1",
            "APPEND a 2",
            "LCS text a",
            "TOUCH a",
            "OBJECT ENCODING a",
        ],
        // What XREADGROUP leaves without NOACK differs: since 7.2.5 the position of the group is always told.
        &[
            "XADD s 1-1 f v",
            "XADD s 2-* f v g w",
            "XADD s NOMKSTREAM 3 f v",
            "XADD none NOMKSTREAM 3 f v",
            "XADD s MAXLEN 2 4-0 f v",
            "XADD s MAXLEN ~ 1 5-0 f v",
            "XADD s MINID ~ 4 6-* f v",
            "XADD s 1-1 f v",
            "XGROUP CREATE s g 0",
            "XGROUP CREATE x h $ MKSTREAM ENTRIESREAD 3",
            "XGROUP CREATECONSUMER s g c",
            "XGROUP CREATECONSUMER s g c",
            "XCLAIM s g c 0 5-0 4 1-1 FORCE TIME 5000000000000",
            "XCLAIM s g c 0 9-9 LASTID 5-0",
            "XREADGROUP GROUP g d NOACK STREAMS s >",
            "XACK s g 4-0 9-9",
            "XDEL s 5-0 9-9",
            "XAUTOCLAIM s g c 0 0",
            "XTRIM s MAXLEN ~ 9",
            "XTRIM s MAXLEN = 1",
            "XSETID s 9-9 ENTRIESADDED 20 MAXDELETEDID 6-0",
            "XGROUP SETID s g 0",
            "XGROUP DELCONSUMER s g d",
            "XGROUP DESTROY x h",
            "XREAD STREAMS s 0",
        ],
    ];
    for session in sessions {
        let lines: Vec<&str> = session.iter().copied().chain([END]).collect();
        let expected = reference(&lines);
        let mut engine = Engine::new();
        engine.store.listen_to_writes(true);
        for line in &lines {
            engine.run(line);
        }
        let writes = engine.store.take_writes();
        let propagated = requests(&writes);
        assert_eq!(shown(&propagated), shown(&expected), "after {lines:#?}");
        engine.compare_with_replay(&propagated);
    }
}

/// Requests as lines, with points in time blotted out: the two clocks differ.
fn shown(requests: &[OwnedArgs]) -> Vec<String> {
    let word = |word: &[u8]| match std::str::from_utf8(word).map(str::parse::<u64>) {
        Ok(Ok(1_000_000_000_000..)) => "<time>".to_owned(),
        _ => String::from_utf8_lossy(word).into_owned(),
    };
    let line = |args: &OwnedArgs| {
        args.as_args()
            .iter()
            .map(word)
            .collect::<Vec<_>>()
            .join(" ")
    };
    requests.iter().map(line).collect()
}

/// The whole requests at the start of a stream.
fn requests(bytes: &[u8]) -> Vec<OwnedArgs> {
    let (mut decoder, mut at, mut requests) = (Decoder::new(), 0, Vec::new());
    while let Ok(Step::Request { args, consumed }) =
        decoder.decode(&bytes[at..], &Limits::default())
    {
        requests.push(args.to_owned());
        at += consumed;
    }
    requests
}

/// What a redis-server sends to a replica for these lines.
fn reference(lines: &[&str]) -> Vec<OwnedArgs> {
    let flags = [
        "--repl-diskless-sync",
        "no",
        "--repl-ping-replica-period",
        "3600",
    ];
    let server = Server::start(&crate::reference_binary(), &flags).expect("a reference");
    let connect = || {
        let stream = UnixStream::connect(server.socket()).expect("the server listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream
    };
    let mut replica = connect();
    replica.write_all(b"SYNC\r\n").expect("SYNC is sent");
    skip_snapshot(&mut replica);
    let mut client = connect();
    for line in lines {
        client
            .write_all(format!("{line}\r\n").as_bytes())
            .expect("a request is sent");
    }
    let mut stream = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let count = replica.read(&mut chunk).expect("the stream goes on");
        assert_ne!(count, 0, "the reference closed the stream");
        stream.extend_from_slice(&chunk[..count]);
        let mut sent = requests(&stream);
        if shown(&sent).iter().any(|line| line == END) {
            sent.retain(|args| !args.as_args()[0].eq_ignore_ascii_case(b"PING"));
            return sent;
        }
    }
}

/// Reads `$<length>` and the snapshot behind it; blank lines come before while the snapshot is made.
fn skip_snapshot(replica: &mut UnixStream) {
    let mut header = Vec::new();
    while !header.ends_with(b"\n") || header == b"\n" {
        if header == b"\n" {
            header.clear();
        }
        let mut byte = [0];
        replica.read_exact(&mut byte).expect("a header");
        header.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&header).trim().to_owned();
    let len = text.strip_prefix('$').and_then(|len| len.parse().ok());
    let mut snapshot = vec![0; len.unwrap_or_else(|| panic!("not a snapshot: {text:?}"))];
    replica.read_exact(&mut snapshot).expect("the snapshot");
}

/// An engine with one client and the system's clock.
struct Engine {
    store: Store,
    outputs: Outputs,
    host: Clock,
    client: SessionKey,
}

impl Engine {
    fn new() -> Self {
        let mut host = Clock;
        let now = host.now();
        let mut store = Store::new(Config::default(), Seeds::from_seed(1), now);
        let client = store.connect(Peer::default(), now);
        Self {
            store,
            outputs: Outputs::new(),
            host,
            client,
        }
    }

    fn run(&mut self, line: &str) -> Vec<u8> {
        self.execute(&OwnedArgs::from_slices(line.split(' ')))
    }

    fn execute(&mut self, args: &OwnedArgs) -> Vec<u8> {
        let now = self.host.now();
        let (client, outputs) = (self.client, &mut self.outputs);
        let flow = self
            .store
            .execute(client, args.as_args(), now, outputs, &mut self.host);
        assert_eq!(flow, Flow::Done, "{args:?}");
        let mut reply = Vec::new();
        loop {
            let chunk = self.outputs.first_chunk(client).0.to_vec();
            if chunk.is_empty() {
                return reply;
            }
            self.store.written(&mut self.outputs, client, chunk.len());
            reply.extend(chunk);
        }
    }

    /// Replays the requests into an empty engine and compares all data.
    fn compare_with_replay(&mut self, requests: &[OwnedArgs]) {
        let mut replay = Engine::new();
        for request in requests {
            let reply = replay.execute(request);
            assert!(
                !reply.starts_with(b"-"),
                "{request:?}: {}",
                reply.escape_ascii()
            );
        }
        for db in 0..4 {
            for engine in [&mut *self, &mut replay] {
                engine.run(&format!("SELECT {db}"));
            }
            assert_eq!(self.run("DBSIZE"), replay.run("DBSIZE"), "database {db}");
            for key in [
                "a", "b", "c", "d", "e", "f", "n", "s", "x", "y", "text", "only",
            ] {
                for command in ["GET *", "PEXPIRETIME *", "XRANGE * - +", "XINFO GROUPS *"] {
                    let line = command.replace('*', key);
                    assert_eq!(
                        self.run(&line),
                        replay.run(&line),
                        "{line} in database {db}"
                    );
                }
            }
        }
    }
}

struct Clock;

impl Host for Clock {
    fn now(&mut self) -> Now {
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let unix_us = unix.map_or(0, |time| time.as_micros() as u64);
        Now {
            unix_us,
            mono_ns: unix_us * 1000,
        }
    }

    fn apply_config(&mut self, _: &Config, _: &[&'static str]) -> Result<(), ApplyError> {
        Ok(())
    }

    fn rewrite_config(&mut self, _: &Config) -> Result<(), String> {
        Ok(())
    }

    fn facts(&mut self) -> HostFacts {
        HostFacts::default()
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn serve_others(&mut self, _: &mut Store, _: &mut Outputs) -> bool {
        true
    }
}
