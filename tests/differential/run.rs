//! Runs a sequence on both servers, step by step, and stops at the first difference.
//!
//! Both servers get a step before either's answers are read, so they work at the same time. After each step the
//! subscriber's events, and the messages of every client that is subscribed to anything, are fenced and compared too.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::command::{Context, Delivery, Request, Sequence, Step};
use crate::compare::{Difference, compare, is_scanning};
use crate::coverage::Coverage;
use crate::known_differences;
use crate::session::{Item, Session};
use crate::support::client::{Client, encode};
use crate::support::frame::{Frame, Reply};
use crate::support::server::Server;

/// How long an answer may take before the server counts as stuck.
const TIMEOUT: Duration = Duration::from_secs(8);

/// Flags that both servers are started with.
pub(crate) const FLAGS: &[&str] = &["--enable-debug-command", "yes", "--hz", "500"];

/// Directives that sequences change, and what each sequence begins with.
const BASELINE: &[(&str, &str)] = &[
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("maxmemory-samples", "5"),
    ("slowlog-log-slower-than", "10000"),
    ("slowlog-max-len", "128"),
    ("latency-monitor-threshold", "0"),
    ("timeout", "0"),
    ("tcp-keepalive", "300"),
    ("hz", "500"),
    ("proto-max-bulk-len", "512mb"),
    ("client-query-buffer-limit", "1gb"),
    (
        "client-output-buffer-limit",
        "normal 0 0 0 replica 256mb 64mb 60 pubsub 32mb 8mb 60",
    ),
    ("requirepass", ""),
    ("lazyfree-lazy-expire", "no"),
    ("lazyfree-lazy-user-del", "no"),
    ("lazyfree-lazy-user-flush", "no"),
    ("activerehashing", "yes"),
    ("list-max-listpack-size", "-2"),
    ("hash-max-listpack-entries", "512"),
    ("hash-max-listpack-value", "64"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("set-max-intset-entries", "512"),
    ("stream-node-max-bytes", "4096"),
    ("stream-node-max-entries", "100"),
    ("lfu-log-factor", "10"),
    ("loglevel", "notice"),
    ("maxclients", "10000"),
    ("min-replicas-max-lag", "10"),
];

/// One of the two servers.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    binary: PathBuf,
    /// Flags that this side alone has.
    flags: Vec<&'static str>,
    pub(crate) server: Server,
    control: Client,
    /// Whether it is Redis 7.0, as the reference is, and shows 7.0's behaviour where 7.2 differs.
    pub(crate) is_7_0: bool,
}

/// The reference and the server under test.
pub(crate) struct Pair {
    pub(crate) reference: Side,
    pub(crate) tested: Side,
}

/// How a sequence ended.
pub(crate) enum Outcome {
    Same,
    Differs(Mismatch),
    /// A known difference of the versions left the servers in different states.
    PartedWays,
    /// The reference itself did not answer: the sequence asks for something a test cannot ask.
    Invalid(String),
}

/// The first difference a sequence came upon.
#[derive(Clone, Debug)]
pub(crate) struct Mismatch {
    /// Which step showed it; the number of steps when the end did.
    pub(crate) step: usize,
    pub(crate) difference: Difference,
    pub(crate) tested_log: String,
}

impl Side {
    pub(crate) fn start(name: &'static str, binary: &Path) -> Result<Side, String> {
        Side::start_with(name, binary, &[])
    }

    fn start_with(
        name: &'static str,
        binary: &Path,
        more: &[&'static str],
    ) -> Result<Side, String> {
        let flags = [FLAGS, more].concat();
        let server = Server::start(binary, &flags)?;
        let mut control = server.connect(TIMEOUT)?;
        let hello = control
            .call(&["HELLO", "2"])
            .map_err(|silence| format!("{name} does not answer HELLO: {silence:?}"))?;
        let is_7_0 = hello.raw.windows(4).any(|window| window == b"7.0.");
        Ok(Side {
            name,
            binary: binary.to_path_buf(),
            flags: more.to_vec(),
            server,
            control,
            is_7_0,
        })
    }

    /// Sends commands of the test's own and insists on answers that are no errors.
    pub(crate) fn order(&mut self, orders: &[Vec<&str>]) -> Result<Vec<Reply>, String> {
        let packet: Vec<u8> = orders.iter().flat_map(|order| encode(order)).collect();
        let failed = |order: &[&str], what: String| format!("{} to {:?}", what, order.join(" "));
        if let Err(silence) = self.control.send(&packet) {
            return Err(failed(&orders[0], format!("{}: {silence:?}", self.name)));
        }
        // All answers are read before the first refusal is told, or the next order would get a stale one.
        let answers: Vec<_> = orders.iter().map(|_| self.control.reply()).collect();
        let mut replies = Vec::new();
        for (order, answer) in orders.iter().zip(answers) {
            let reply =
                answer.map_err(|silence| failed(order, format!("{}: {silence:?}", self.name)))?;
            if let Some(error) = reply.frame.error() {
                let error = String::from_utf8_lossy(error);
                return Err(failed(order, format!("{} answers {error:?}", self.name)));
            }
            replies.push(reply);
        }
        Ok(replies)
    }

    /// The server's clock.
    fn millis(&mut self) -> Result<u64, String> {
        let replies = self.order(&[vec!["TIME"]])?;
        let parts: Vec<u64> = replies[0]
            .frame
            .items()
            .unwrap_or_default()
            .iter()
            .filter_map(|part| std::str::from_utf8(part.text()?).ok()?.parse().ok())
            .collect();
        match parts.as_slice() {
            [seconds, micros] => Ok(seconds * 1000 + micros / 1000),
            _ => Err(format!("{} answers TIME oddly", self.name)),
        }
    }

    /// Waits until the last command of a client is this one.
    fn await_command(&mut self, id: &str, command: &str) -> Result<(), String> {
        let wanted = format!(" cmd={command} ");
        let until = Instant::now() + TIMEOUT;
        while Instant::now() < until {
            let replies = self.order(&[vec!["CLIENT", "LIST", "ID", id]])?;
            let line = String::from_utf8_lossy(replies[0].frame.text().unwrap_or_default());
            if line.is_empty() || line.contains(&wanted) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Err(format!("{} does not execute {command}", self.name))
    }

    fn is_alive(&mut self) -> bool {
        self.order(&[vec!["PING"]]).is_ok()
    }

    fn restart(&mut self) -> Result<(), String> {
        *self = Side::start_with(self.name, &self.binary, &self.flags)?;
        Ok(())
    }

    /// The state every sequence begins with.
    fn prepare(&mut self, sequence: &Sequence) -> Result<(), String> {
        let mut config = vec!["CONFIG", "SET", "notify-keyspace-events", &sequence.notify];
        for (name, value) in BASELINE {
            config.extend([*name, *value]);
        }
        let active = if sequence.active_expiry { "1" } else { "0" };
        self.order(&[
            vec!["CLIENT", "UNPAUSE"],
            config,
            vec!["FLUSHALL"],
            vec!["DEBUG", "SET-ACTIVE-EXPIRE", active],
        ])?;
        Ok(())
    }
}

impl Pair {
    pub(crate) fn start(reference: &Path, tested: &Path) -> Result<Pair, String> {
        Pair::start_with(reference, tested, &[])
    }

    /// With flags that only the server under test gets.
    pub(crate) fn start_with(
        reference: &Path,
        tested: &Path,
        flags: &[&'static str],
    ) -> Result<Pair, String> {
        Ok(Pair {
            reference: Side::start("redis", reference)?,
            tested: Side::start_with("kumi", tested, flags)?,
        })
    }

    /// Starts both anew. Their statistics are compared, too, and after a difference those have drifted apart.
    pub(crate) fn restart(&mut self) -> Result<(), String> {
        self.reference.restart()?;
        self.tested.restart()
    }

    /// Runs a sequence; an error means that the test's own machinery does not work.
    pub(crate) fn run(
        &mut self,
        sequence: &Sequence,
        coverage: &mut Coverage,
    ) -> Result<Outcome, String> {
        if !self.reference.is_alive() || !self.tested.is_alive() {
            self.restart()?;
        }
        let start_millis = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_err(|error| error.to_string())?
            .as_millis() as i64;
        let mut reference = Stage::open(&mut self.reference, sequence, start_millis)?;
        let mut tested = Stage::open(&mut self.tested, sequence, start_millis)?;

        sequence
            .protocols
            .iter()
            .for_each(|protocol| coverage.went(if *protocol == 3 { "RESP3" } else { "RESP2" }));
        for (index, step) in sequence.steps.iter().enumerate() {
            for part in parts(step) {
                reference.begin(&part)?;
                tested.begin(&part)?;
                let expected = reference.end(&part)?;
                let found = tested.end(&part)?;
                if let Some(reason) = unusable(&expected) {
                    return Ok(Outcome::Invalid(format!("in step {}, {reason}", index + 1)));
                }
                coverage.went(way(&part));
                part.requests()
                    .iter()
                    .for_each(|request| coverage.sent(request));
                for seen in &expected {
                    seen.items.iter().for_each(|item| coverage.saw(item));
                }
                if let Some(mut difference) = first_difference(&expected, &found) {
                    if part_ways(&expected, &found) {
                        return Ok(Outcome::PartedWays);
                    }
                    // Which command an event differs for tells bugs apart; the event alone does not.
                    if difference.signature.starts_with("event")
                        && let Some(request) = part.requests().first()
                    {
                        difference.signature =
                            format!("{} {}", request.word(0), difference.signature);
                    }
                    let tested_log = tested.side.server.log_tail();
                    return Ok(Outcome::Differs(Mismatch {
                        step: index,
                        difference,
                        tested_log,
                    }));
                }
            }
        }

        let expected = reference.finish();
        let found = tested.finish();
        if let Some(reason) = unusable(&expected) {
            return Ok(Outcome::Invalid(reason));
        }
        match first_difference(&expected, &found) {
            Some(difference) => Ok(Outcome::Differs(Mismatch {
                step: sequence.steps.len(),
                difference,
                tested_log: tested.side.server.log_tail(),
            })),
            None => Ok(Outcome::Same),
        }
    }
}

/// What one connection showed in one step.
struct Seen {
    /// Who it was, for the report.
    who: String,
    items: Vec<Item>,
}

/// The first difference between what the connections of two servers saw.
fn first_difference(expected: &[Seen], found: &[Seen]) -> Option<Difference> {
    let scanning = expected
        .iter()
        .flat_map(|seen| &seen.items)
        .any(is_scanning);
    expected.iter().zip(found).find_map(|(expected, found)| {
        compare(&expected.items, &found.items, scanning).map(|mut difference| {
            difference.place = format!("{}: {}", expected.who, difference.place);
            difference
        })
    })
}

/// Whether a known difference of the versions explains whatever is different.
fn part_ways(expected: &[Seen], found: &[Seen]) -> bool {
    let items = |seen: &'_ Seen| seen.items.clone();
    expected
        .iter()
        .flat_map(items)
        .zip(found.iter().flat_map(items))
        .any(|(expected, found)| known_differences::parts_ways(&expected, &found))
}

/// Why the reference's part cannot be a measure, if it cannot.
fn unusable(seen: &[Seen]) -> Option<String> {
    seen.iter().find_map(|seen| {
        seen.items.iter().find_map(|item| match item {
            Item::Broken(reason) => Some(format!("{} got {reason}", seen.who)),
            _ => None,
        })
    })
}

/// What kind of step this is, for the coverage.
fn way(step: &Step) -> &'static str {
    match step {
        Step::Run { delivery, .. } => match delivery {
            Delivery::OneByOne => "one by one",
            Delivery::OnePacket => "one packet",
            Delivery::Pieces(_) => "pieces",
        },
        Step::Raw { closes: false, .. } => "inline",
        Step::Raw { closes: true, .. } => "broken frame",
        Step::Send { .. } | Step::Collect { .. } | Step::AwaitExecuted { .. } => "answer later",
        Step::PassTime { .. } => "deadline passes",
        Step::AwaitExpired { .. } => "key leaves by itself",
    }
}

/// Requests that wait for each other's answers are steps of their own.
fn parts(step: &Step) -> Vec<Step> {
    match step {
        Step::Run {
            client,
            requests,
            delivery: Delivery::OneByOne,
        } => requests
            .iter()
            .map(|request| Step::Run {
                client: *client,
                requests: vec![request.clone()],
                delivery: Delivery::OneByOne,
            })
            .collect(),
        _ => vec![step.clone()],
    }
}

/// One server during one sequence.
struct Stage<'a> {
    side: &'a mut Side,
    protocols: Vec<u8>,
    sessions: Vec<Session>,
    subscriber: Session,
    /// Whether a client of the sequence uses client-side caching.
    tracking: bool,
    /// Whether keys leave by themselves, that is at a moment of the server's own.
    active_expiry: bool,
    /// Expired keys that were announced before a step waited for them.
    announced: Vec<Item>,
    context: Context,
}

impl<'a> Stage<'a> {
    fn open(
        side: &'a mut Side,
        sequence: &Sequence,
        start_millis: i64,
    ) -> Result<Stage<'a>, String> {
        side.prepare(sequence)?;
        let context = Context {
            client_ids: Vec::new(),
            address: format!("{}:0", side.server.socket().display()),
            start_millis,
        };
        let (mut client, _) = connect(side, sequence.subscriber)?;
        call(&mut client, side.name, &["PSUBSCRIBE", "__key*@*__:*"])?;
        let mut stage = Stage {
            side,
            protocols: sequence.protocols.clone(),
            sessions: Vec::new(),
            subscriber: Session::new(client, false),
            tracking: sequence.uses_tracking(),
            active_expiry: sequence.active_expiry,
            announced: Vec::new(),
            context,
        };
        for &protocol in &sequence.protocols {
            let (client, id) = connect(stage.side, protocol)?;
            let session = Session::new(client, stage.tracking);
            stage.sessions.push(session);
            stage.context.client_ids.push(id);
        }
        Ok(stage)
    }

    /// A client that the server has closed comes back as a new one.
    fn reopen(&mut self, client: usize) -> Result<(), String> {
        if self.sessions[client].is_closed() {
            let (connection, id) = connect(self.side, self.protocols[client])?;
            self.sessions[client] = Session::new(connection, self.tracking);
            self.context.client_ids[client] = id;
        }
        Ok(())
    }

    /// The half of a step that does not wait for this server.
    fn begin(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Run {
                client,
                requests,
                delivery,
            } => {
                self.reopen(*client)?;
                let packet = self.packet(requests);
                let pieces: Vec<&[u8]> = match delivery {
                    Delivery::Pieces(size) => packet.chunks((*size).max(1)).collect(),
                    _ => vec![&packet],
                };
                self.sessions[*client].send(&pieces, requests);
            }
            Step::Send { client, requests } => {
                self.reopen(*client)?;
                let packet = self.packet(requests);
                self.sessions[*client].send(&[&packet], requests);
            }
            Step::Raw {
                client,
                bytes,
                requests,
                ..
            } => {
                self.reopen(*client)?;
                self.sessions[*client].send(&[bytes], requests);
            }
            Step::Collect { .. }
            | Step::PassTime { .. }
            | Step::AwaitExecuted { .. }
            | Step::AwaitExpired { .. } => {}
        }
        Ok(())
    }

    /// The half that does, and what every connection saw.
    fn end(&mut self, step: &Step) -> Result<Vec<Seen>, String> {
        let mut acting = None;
        let mut items = Vec::new();
        let mut events = Vec::new();
        match step {
            Step::Run { client, .. } | Step::Collect { client } => {
                items = self.sessions[*client].collect(&self.context);
                acting = Some(*client);
            }
            Step::Raw { client, closes, .. } => {
                items = self.sessions[*client].collect(&self.context);
                if *closes {
                    items.extend(self.sessions[*client].collect_to_end());
                }
                acting = Some(*client);
            }
            Step::Send { .. } => return Ok(Vec::new()),
            Step::PassTime { millis } => {
                let until = self.side.millis()? + millis;
                while self.side.millis()? <= until {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            Step::AwaitExecuted { client, command } => {
                let id = self.context.client_ids[*client].to_string();
                self.side.await_command(&id, command)?;
            }
            Step::AwaitExpired { key } => {
                events = std::mem::take(&mut self.announced);
                while !self.subscriber.is_closed()
                    && !events.iter().any(|event| announces_expiry(event, key))
                {
                    self.subscriber.next_message(&mut events);
                }
            }
        }
        if let Some(client) = acting {
            // Of several requests in one packet nobody can tell which one 7.0's messages belong to, so those behind a
            // packet are compared without their place among the answers.
            // A client whose answer was due later may have heard messages before it.
            let late = matches!(step, Step::Collect { .. });
            if self.side.is_7_0 || late || step.requests().len() > 1 {
                items = known_differences::self_messages_behind_the_answer(items);
            }
            if !self.side.is_7_0 && self.sessions[client].messages_inside_replies() > 0 {
                items.push(Item::Broken(
                    "a message was written into the middle of a reply".into(),
                ));
            }
        }
        let mut seen = Vec::new();
        for (client, session) in self.sessions.iter_mut().enumerate() {
            let mut items = if acting == Some(client) {
                std::mem::take(&mut items)
            } else {
                Vec::new()
            };
            if session.hears_messages() {
                items.extend(session.fence());
            }
            if !items.is_empty() || acting == Some(client) {
                seen.push(Seen {
                    who: format!("client {client}"),
                    items,
                });
            } else {
                seen.push(Seen {
                    who: format!("client {client}"),
                    items: Vec::new(),
                });
            }
        }
        events.extend(self.subscriber.fence());
        // A key may be past its deadline before the answer to its own SET is read, and which server removes it first is
        // chance. What says so is compared in the step that waits for it.
        if self.active_expiry && !matches!(step, Step::AwaitExpired { .. }) {
            let (early, here) = events.into_iter().partition(tells_of_expiry);
            events = here;
            self.announced.extend::<Vec<Item>>(early);
        }
        seen.push(Seen {
            who: "the subscriber to keyspace events".into(),
            items: events,
        });
        Ok(seen)
    }

    fn finish(&mut self) -> Vec<Seen> {
        let mut seen: Vec<Seen> = self
            .sessions
            .iter_mut()
            .enumerate()
            .map(|(client, session)| Seen {
                who: format!("client {client} at its end"),
                items: session.finish(),
            })
            .collect();
        seen.push(Seen {
            who: "the subscriber to keyspace events at its end".into(),
            items: std::mem::take(&mut self.announced),
        });
        seen
    }

    fn packet(&self, requests: &[Request]) -> Vec<u8> {
        requests
            .iter()
            .flat_map(|request| request.encode(&self.context))
            .collect()
    }
}

/// A connection that speaks this protocol, and the server's id of it.
fn connect(side: &Side, protocol: u8) -> Result<(Client, i64), String> {
    let mut client = side.server.connect(TIMEOUT)?;
    if protocol == 3 {
        call(&mut client, side.name, &["HELLO", "3"])?;
    }
    let id = call(&mut client, side.name, &["CLIENT", "ID"])?;
    match id.frame {
        Frame::Integer(id) => Ok((client, id)),
        // A password set by the sequence itself stands between a client that comes back and its id.
        _ => Ok((client, 0)),
    }
}

fn call(client: &mut Client, name: &str, args: &[&str]) -> Result<Reply, String> {
    client
        .call(args)
        .map_err(|silence| format!("{name} does not answer {}: {silence:?}", args.join(" ")))
}

/// The channel and the payload of a message.
fn message(item: &Item) -> Option<(&[u8], &[u8])> {
    let Item::Message(reply) = item else {
        return None;
    };
    let [.., channel, payload] = reply.frame.items()? else {
        return None;
    };
    Some((channel.text()?, payload.text()?))
}

/// Whether this is the second of the two messages about an expired key.
fn announces_expiry(item: &Item, key: &[u8]) -> bool {
    message(item)
        .is_some_and(|(channel, payload)| channel.ends_with(b"__:expired") && payload == key)
}

/// Whether this is either of the two.
fn tells_of_expiry(item: &Item) -> bool {
    message(item).is_some_and(|(channel, payload)| {
        channel.ends_with(b"__:expired")
            || (channel.starts_with(b"__keyspace@") && payload == b"expired")
    })
}
