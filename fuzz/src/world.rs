//! Several clients around one store, and a second store that hears of every write.

use crate::frames::is_resp2;
use crate::host::FuzzHost;
use kumi_resp::{
    Args, Decoder, Frame, Limits, OwnedArgs, ProtocolError, ReplyLimits, Step, decode_reply,
};
use kumi_store::config::{Config, Source};
use kumi_store::{Effect, Flow, Now, Outputs, Peer, Seeds, SessionKey, Store};
use std::time::Duration;

const CLIENTS: usize = 4;

/// Small databases and values: an input of a few kilobytes must not be able to ask for gigabytes.
const CONFIG: &[u8] =
    b"proto-max-bulk-len 1mb\nmaxmemory 64mb\ndatabases 4\nenable-debug-command yes\n\
                        notify-keyspace-events KEA\nlatency-monitor-threshold 1\n";

/// After this many turns of expiry without an end, the store is not making progress.
const MAX_POLLS: usize = 10_000;

/// A place a client sits at. When its session ends, the next client takes it.
#[derive(Debug)]
struct Seat {
    key: SessionKey,
    blocked: bool,
    /// Said HELLO at least once, so RESP3 may come.
    said_hello: bool,
}

/// Who answers to whom.
#[derive(Debug)]
pub struct World {
    store: Store,
    outputs: Outputs,
    host: FuzzHost,
    seats: Vec<Seat>,
    current: usize,
    /// Asks what the store holds, at the end. It may have been killed by then.
    clerk: SessionKey,
    /// Replays write records. Its clock stands still, so that keys leave it only when a record says so.
    mirror: Store,
    mirror_outputs: Outputs,
    mirror_host: FuzzHost,
    mirror_session: SessionKey,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// A store with nothing in it and all clients connected.
    pub fn new() -> Self {
        let mut host = FuzzHost::new();
        let mut mirror_host = FuzzHost::new();
        mirror_host.runs = false;
        let mut store = Store::new(config(), Seeds::from_seed(7), host.now);
        let mut mirror = Store::new(config(), Seeds::from_seed(8), host.now);
        store.listen_to_writes(true);
        let clerk = store.connect(Peer::default(), host.now);
        let seats = (0..CLIENTS)
            .map(|_| Seat::new(&mut store, &mut host))
            .collect();
        Self {
            mirror_session: mirror.connect(Peer::default(), mirror_host.now),
            store,
            outputs: Outputs::new(),
            host,
            seats,
            current: 0,
            clerk,
            mirror,
            mirror_outputs: Outputs::new(),
            mirror_host,
        }
    }

    /// Executes a request of the current client, or what an `@` word asks for.
    pub fn request(&mut self, args: Args<'_>) {
        let number = || std::str::from_utf8(args.get(1)?).ok()?.parse::<u64>().ok();
        match &args[0] {
            b"@client" => self.current = number().unwrap_or(0) as usize % CLIENTS,
            b"@wait" => {
                self.host.wait(Duration::from_millis(number().unwrap_or(1)));
                self.catch_up();
            }
            b"@hangup" => self.replace(self.current),
            _ => self.execute(args),
        }
        self.settle();
    }

    /// The current client sent something that is no request.
    pub fn protocol_error(&mut self, error: &ProtocolError) {
        let key = self.seats[self.current].key;
        self.store.protocol_error(&mut self.outputs, key, error);
        self.settle();
        self.replace(self.current);
    }

    fn execute(&mut self, args: Args<'_>) {
        let now = self.now();
        let seat = &mut self.seats[self.current];
        if seat.blocked {
            return;
        }
        seat.said_hello |= args[0].eq_ignore_ascii_case(b"hello");
        let outputs = &mut self.outputs;
        match self
            .store
            .execute(seat.key, args, now, outputs, &mut self.host)
        {
            Flow::Done => {}
            Flow::Blocked => seat.blocked = true,
            Flow::Close => {
                self.settle();
                self.replace(self.current);
            }
        }
    }

    fn now(&mut self) -> Now {
        kumi_store::Host::now(&mut self.host)
    }

    /// Does all that is due.
    fn catch_up(&mut self) {
        for _ in 0..MAX_POLLS {
            if self.store.next_deadline() > self.host.now.unix_ms() {
                return;
            }
            self.store.poll(&mut self.outputs, &mut self.host);
            self.settle();
        }
        panic!("after {MAX_POLLS} polls something is still due");
    }

    /// Reads all output, carries out all effects and replays all writes.
    fn settle(&mut self) {
        loop {
            let listed = self.outputs.take_ready();
            let effects = self.store.effects();
            if listed.is_empty() && effects.is_empty() {
                break;
            }
            for key in listed {
                let seat = self.seats.iter().find(|seat| seat.key == key);
                let resp3 = seat.is_none_or(|seat| seat.said_hello);
                take_output(&mut self.store, &mut self.outputs, key, resp3);
            }
            effects
                .into_iter()
                .for_each(|effect| self.carry_out(effect));
        }
        self.replay();
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Resume(key) => {
                if let Some(seat) = self.seats.iter_mut().find(|seat| seat.key == key) {
                    seat.blocked = false;
                }
            }
            Effect::Close(key) | Effect::CloseAfterFlush(key) => {
                match self.seats.iter().position(|seat| seat.key == key) {
                    Some(index) => self.replace(index),
                    None => self.store.disconnect(key),
                }
            }
            // A store that was asked to shut down goes on here: the front would stop calling it.
            _ => {}
        }
    }

    /// Ends a client's session and seats another one.
    fn replace(&mut self, index: usize) {
        self.store.disconnect(self.seats[index].key);
        self.seats[index] = Seat::new(&mut self.store, &mut self.host);
    }

    fn replay(&mut self) {
        let writes = self.store.take_writes();
        let (mut decoder, mut at) = (Decoder::new(), 0);
        while at < writes.len() {
            let step = decoder.decode(&writes[at..], &Limits::default());
            let Ok(Step::Request { args, consumed }) = step else {
                panic!("the propagated writes end in the middle of a request");
            };
            at += consumed;
            self.ask_mirror(&args.to_owned());
        }
    }

    fn ask_mirror(&mut self, args: &OwnedArgs) -> Vec<Frame> {
        let now = self.mirror_host.now;
        let (session, host) = (self.mirror_session, &mut self.mirror_host);
        let outputs = &mut self.mirror_outputs;
        let flow = self
            .mirror
            .execute(session, args.as_args(), now, outputs, host);
        assert_eq!(flow, Flow::Done, "replaying {args:?}");
        self.mirror.effects();
        let frames = take_output(&mut self.mirror, &mut self.mirror_outputs, session, false);
        for frame in &frames {
            assert!(
                !matches!(frame, Frame::Error(_)),
                "replaying {args:?} gave {frame:?}"
            );
        }
        frames
    }

    /// Asks the store something as the clerk; nothing if the clerk was killed.
    pub fn ask(&mut self, words: &[&[u8]]) -> Option<Frame> {
        let args = OwnedArgs::from_slices(words);
        let now = self.host.now;
        let (outputs, host) = (&mut self.outputs, &mut self.host);
        match self
            .store
            .execute(self.clerk, args.as_args(), now, outputs, host)
        {
            Flow::Done => take_output(&mut self.store, outputs, self.clerk, false).pop(),
            Flow::Blocked | Flow::Close => None,
        }
    }

    /// Compares what the store and its mirror hold, and ends every session.
    pub fn finish(mut self) {
        self.catch_up();
        self.host.runs = false;
        if self.ask(&[b"CLIENT", b"UNPAUSE"]) == Some(Frame::Simple(b"OK".to_vec())) {
            self.settle();
            let mut ask = |words: &[&[u8]]| self.ask(words).map(|frame| vec![frame]);
            let held = inventory(&mut ask);
            self.settle();
            let mut ask_mirror =
                |words: &[&[u8]]| Some(self.ask_mirror(&OwnedArgs::from_slices(words)));
            let mirrored = inventory(&mut ask_mirror);
            if held.is_some() {
                assert_eq!(
                    held, mirrored,
                    "the write records do not replay to the same data"
                );
            }
        }
        for seat in &self.seats {
            self.store.disconnect(seat.key);
        }
        self.store.disconnect(self.clerk);
        assert_eq!(self.store.session_count(), 0);
    }
}

impl Seat {
    fn new(store: &mut Store, host: &mut FuzzHost) -> Self {
        Self {
            key: store.connect(Peer::default(), host.now),
            blocked: false,
            said_hello: false,
        }
    }
}

fn config() -> Config {
    let mut config = Config::new();
    let mut read = |_: &[u8]| Err("nothing to include".to_owned());
    if let Err(error) = config.load_text(CONFIG, &Source::File("fuzz".to_owned()), &mut read) {
        panic!("{error}");
    }
    config
}

/// Takes what waits for a session, which has to be whole frames.
fn take_output(
    store: &mut Store,
    outputs: &mut Outputs,
    key: SessionKey,
    resp3: bool,
) -> Vec<Frame> {
    let output = outputs.to_vec(key);
    store.written(outputs, key, output.len());
    let mut frames = Vec::new();
    let mut rest = &*output;
    while !rest.is_empty() {
        match decode_reply(rest, &ReplyLimits::default()) {
            Ok(Some((frame, consumed))) => {
                assert!(
                    resp3 || is_resp2(&frame),
                    "RESP3 for a RESP2 client: {frame:?}"
                );
                assert!(!is_internal_error(&frame), "a command panicked");
                frames.push(frame);
                rest = &rest[consumed..];
            }
            other => panic!("{:?} is {other:?}", String::from_utf8_lossy(rest)),
        }
    }
    frames
}

fn is_internal_error(frame: &Frame) -> bool {
    match frame {
        Frame::Error(text) => text == b"ERR internal error",
        Frame::Array(elements) => elements.iter().any(is_internal_error),
        _ => false,
    }
}

/// A key with its database, value and deadline.
type Held = (String, Frame, Vec<Frame>);

/// Everything a store holds, by asking it.
fn inventory(ask: &mut dyn FnMut(&[&[u8]]) -> Option<Vec<Frame>>) -> Option<Vec<Held>> {
    let mut held = Vec::new();
    for db in ["0", "1", "2", "3"] {
        ask(&[b"SELECT", db.as_bytes()])?;
        let mut keys = match ask(&[b"KEYS", b"*"])?.pop() {
            Some(Frame::Array(keys)) => keys,
            _ => return None,
        };
        keys.sort_by_key(|key| format!("{key:?}"));
        for key in keys {
            let Frame::Bulk(name) = &key else {
                panic!("KEYS answered {key:?}");
            };
            let mut facts = value(ask, name)?;
            facts.extend(ask(&[b"PEXPIRETIME", name])?);
            held.push((db.to_owned(), key, facts));
        }
    }
    Some(held)
}

/// The value of a key, whatever its type, in an order that does not depend on its history.
fn value(ask: &mut dyn FnMut(&[&[u8]]) -> Option<Vec<Frame>>, name: &[u8]) -> Option<Vec<Frame>> {
    let kind = ask(&[b"TYPE", name])?;
    let (words, group): (&[&[u8]], usize) = match kind.as_slice() {
        [Frame::Simple(kind)] => match kind.as_slice() {
            b"list" => (&[b"LRANGE", name, b"0", b"-1"], 0),
            b"set" => (&[b"SMEMBERS", name], 1),
            b"hash" => (&[b"HGETALL", name], 2),
            b"zset" => (&[b"ZRANGE", name, b"0", b"-1", b"WITHSCORES"], 0),
            b"stream" => {
                let mut frames = ask(&[b"XRANGE", name, b"-", b"+"])?;
                frames.extend(ask(&[b"XINFO", b"GROUPS", name])?);
                return Some(frames);
            }
            _ => (&[b"GET", name], 0),
        },
        _ => return Some(kind),
    };
    let mut frames = ask(words)?;
    if group > 0 {
        for frame in &mut frames {
            if let Frame::Array(items) = frame {
                let mut groups: Vec<Vec<Frame>> =
                    items.chunks(group).map(<[Frame]>::to_vec).collect();
                groups.sort_by_key(|group| format!("{group:?}"));
                *items = groups.concat();
            }
        }
    }
    Some(frames)
}
