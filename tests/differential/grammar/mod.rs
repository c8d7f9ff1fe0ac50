//! The grammar of generated requests: one row per command with every option token it takes, and the shared parts.
//!
//! The rows of a family are in its own file. A row's function writes valid and invalid requests alike; on top of that,
//! [`Generator::request`] damages some of them blindly (an argument dropped, doubled, moved or replaced), which is how
//! wrong arities and wrong orders come about for every command. Requests that would harm the test itself, such as a
//! real SHUTDOWN, are kept out by [`is_safe`].

mod bitmaps;
mod blocking;
mod collections;
mod connection;
mod expiry;
mod geo;
mod hashes;
mod hyperloglog;
mod keys;
mod lists;
mod protocol;
mod pubsub;
mod safety;
mod scripting;
mod serialised;
mod server;
mod sets;
mod sorted_sets;
mod sorting;
mod streams;
mod strings;
mod tracking;
mod transactions;
mod vocabulary;

use crate::command::{Arg, Delivery, Request, Sequence, Step};
use crate::known_differences as known;
use crate::rng::Rng;

pub(crate) use safety::is_safe;

/// One command of the grammar.
pub(crate) struct Row {
    /// The command, with its subcommand if it has one, in capitals.
    pub(crate) name: &'static str,
    /// Every option token the command knows; each must be sent at least once in a full run.
    pub(crate) tokens: &'static [&'static str],
    /// How often it is drawn, relative to the others of its family.
    pub(crate) weight: usize,
    /// Writes the arguments behind the name.
    pub(crate) write: fn(&mut Generator<'_>) -> Vec<Arg>,
}

/// A row whose command is drawn as often as most.
const fn row(
    name: &'static str,
    tokens: &'static [&'static str],
    write: fn(&mut Generator<'_>) -> Vec<Arg>,
) -> Row {
    Row {
        name,
        tokens,
        weight: 10,
        write,
    }
}

impl Row {
    const fn weight(mut self, weight: usize) -> Row {
        self.weight = weight;
        self
    }
}

/// The families, in the order of the documentation.
pub(crate) const FAMILIES: &[(&str, &[Row])] = &[
    ("connection", connection::ROWS),
    ("strings", strings::ROWS),
    ("keys", keys::ROWS),
    ("pubsub", pubsub::ROWS),
    ("transactions", transactions::ROWS),
    ("server", server::ROWS),
    ("hashes", hashes::ROWS),
    ("sets", sets::ROWS),
    ("sorted sets", sorted_sets::ROWS),
    ("lists", lists::ROWS),
    ("serialised values", serialised::ROWS),
    ("geo", geo::ROWS),
    ("sorting", sorting::ROWS),
    ("streams", streams::ROWS),
    ("blocking", blocking::ROWS),
    // Drawn by steps of their own, so they come last and have no weight.
    ("scripting", scripting::ROWS),
    ("tracking", tracking::ROWS),
];

/// The position of the streams in [`FAMILIES`].
const STREAMS: usize = 13;
/// The position of SORT in [`FAMILIES`].
const SORTING: usize = 12;

/// A weight for each family but the last two, in the order of [`FAMILIES`].
type Weights = [usize; FAMILIES.len() - 2];

/// All rows.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().flat_map(|(_, rows)| rows.iter())
}

/// The row a request belongs to: the longest name that its first words spell.
pub(crate) fn row_of(request: &Request) -> Option<&'static Row> {
    rows()
        .filter(|row| {
            row.name
                .split(' ')
                .enumerate()
                .all(|(index, word)| request.word(index) == word.to_ascii_lowercase())
        })
        .max_by_key(|row| row.name.len())
}

/// Whether a command, spelled as COMMAND LIST spells it, is in the grammar.
pub(crate) fn has_command(name: &str) -> bool {
    let name = name.replace('|', " ").to_ascii_uppercase();
    rows().any(|row| row.name == name || row.name.split(' ').next() == Some(name.as_str()))
}

/// What a sequence is mostly about.
const THEMES: &[Weights] = &[
    // connection, strings, keys, pubsub, transactions, server, hashes, sets, sorted sets, lists, serialised values,
    // geo, sorting, streams, blocking
    [2, 50, 40, 2, 3, 3, 1, 1, 1, 1, 2, 1, 1, 0, 0],
    [2, 30, 60, 2, 3, 3, 1, 1, 1, 1, 2, 1, 2, 0, 0],
    [5, 20, 15, 55, 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [3, 30, 20, 3, 32, 2, 3, 3, 3, 3, 3, 2, 3, 0, 0],
    [30, 20, 15, 10, 5, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [5, 15, 15, 5, 5, 55, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [15, 20, 20, 15, 15, 15, 2, 2, 2, 2, 2, 2, 2, 0, 0],
    [1, 4, 15, 1, 2, 1, 80, 0, 0, 0, 5, 0, 3, 0, 0],
    [1, 4, 15, 1, 2, 1, 0, 80, 0, 0, 5, 0, 3, 0, 0],
    [1, 4, 15, 1, 2, 1, 0, 0, 90, 0, 5, 0, 3, 0, 0],
    [1, 4, 15, 1, 2, 1, 0, 0, 0, 80, 5, 0, 3, 0, 0],
    [1, 10, 30, 1, 2, 1, 20, 20, 20, 20, 30, 10, 10, 0, 0],
    [1, 4, 15, 1, 2, 1, 0, 0, 5, 0, 2, 80, 3, 0, 0],
    [1, 10, 20, 1, 2, 1, 4, 10, 10, 10, 2, 0, 80, 0, 0],
];

/// Themes of streams, and of clients that wait.
const WAITING_THEMES: &[Weights] = &[
    [1, 4, 12, 1, 2, 1, 0, 0, 0, 0, 4, 0, 0, 80, 1],
    [1, 4, 12, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 80, 1],
    [1, 4, 15, 1, 2, 1, 0, 0, 20, 20, 0, 0, 0, 20, 20],
    [3, 10, 15, 3, 10, 3, 5, 5, 5, 5, 5, 0, 0, 20, 5],
];

/// Themes of client-side caching.
const TRACKING_THEMES: &[Weights] = &[
    [0, 40, 40, 3, 5, 0, 3, 3, 3, 3, 2, 1, 0, 0, 0],
    [0, 10, 20, 3, 15, 0, 15, 15, 15, 15, 0, 0, 0, 0, 0],
];

/// Whether the sequence of a seed is about client-side caching.
fn has_tracking_theme(seed: u64) -> bool {
    (7701..8101).contains(&seed) || seed > 8100 && seed % 8 == 4
}

/// Whether the sequence of a seed has a waiting theme. The first seeds have none: what they draw, and so what they
/// reach, was settled before there were such themes.
fn has_waiting_theme(seed: u64) -> bool {
    (6501..7701).contains(&seed) || seed > 8100 && !seed.is_multiple_of(4)
}

/// How many of a hundred requests are damaged blindly.
const DAMAGED_PERCENT: usize = 6;

/// The state of writing one sequence.
pub(crate) struct Generator<'a> {
    pub(crate) rng: &'a mut Rng,
    /// How many clients the sequence has.
    clients: usize,
    /// Which client the request is for.
    client: usize,
    /// Whether that client has probably begun a transaction.
    queueing: Vec<bool>,
    /// Whether it is probably subscribed to something, and restricted by that.
    subscribed: Vec<bool>,
    protocols: Vec<u8>,
    /// Whether keys past their deadline may be about, which RANDOMKEY removes at random.
    expiring: bool,
    /// Whether new-key events may be on.
    new_key_events: bool,
    /// Whether a password may have been set. A client without it may have a kilobyte of answers waiting, no more, so
    /// what it gets to a packet of requests depends on when the server writes.
    password: bool,
    /// Whether the seed is none of the fixed ones: what those draw, and so what they reach, is settled.
    fresh: bool,
    /// Whether the last limit on memory leaves none. Requests that deny when out of memory fail then, the creation of a
    /// consumer among them, and only 7.2 creates a consumer that claims or reads nothing.
    memory_limited: bool,
    /// How many lifetimes were handed out.
    lifetimes: u32,
    /// Whether the reference may remember a number that was out of range.
    range_error: bool,
    /// Whether a sorted set may hold a score that 7.0 writes differently.
    odd_scores: bool,
    /// Keys of SETBIT and BITFIELD, whose encoding is not compared. Redis makes the string raw before it finds that no
    /// bit changes; here a command that changes nothing leaves the string as it is.
    bitmaps: Vec<Arg>,
    /// The milliseconds of the last id that was written for an entry.
    stream_ms: u64,
    /// Whether the sequence has a waiting theme.
    waiting: bool,
    /// Whether it is about client-side caching.
    tracking: bool,
}

/// Writes the sequence that belongs to a seed.
pub(crate) fn sequence(seed: u64) -> Sequence {
    let mut rng = Rng::new(seed);
    let clients = rng.between(2, 3);
    let protocols = match rng.below(5) {
        0 | 1 => vec![2; clients],
        2 | 3 => vec![3; clients],
        _ => (0..clients)
            .map(|client| if client == 0 { 3 } else { 2 })
            .collect(),
    };
    let mut notify = vocabulary::notify_flags(&mut rng);
    let subscriber = *protocols.last().unwrap_or(&2);
    let length = rng.between(8, 48);
    let waiting = has_waiting_theme(seed);
    let tracking = has_tracking_theme(seed);
    let themes = match (waiting, tracking) {
        (true, _) => WAITING_THEMES,
        (_, true) => TRACKING_THEMES,
        _ => THEMES,
    };
    let weights = themes[rng.below(themes.len())];
    if waiting && rng.percent(25) {
        notify = rng.pick(&["Kt", "Et", "KEtlzg"]).to_string();
    }
    let mut generator = Generator {
        rng: &mut rng,
        clients,
        client: 0,
        queueing: vec![false; clients],
        subscribed: vec![false; clients],
        protocols: protocols.clone(),
        expiring: false,
        new_key_events: notify.contains('n'),
        password: false,
        fresh: seed >= crate::FIXED_SEEDS.end,
        memory_limited: false,
        lifetimes: 0,
        range_error: false,
        odd_scores: false,
        bitmaps: Vec::new(),
        stream_ms: 1,
        waiting,
        tracking,
    };
    let mut steps = Vec::new();
    if weights[SORTING] > 0 {
        sorting::steps(&mut generator, &mut steps);
    }
    while steps.len() < length {
        generator.client = generator.rng.below(clients);
        generator.steps(&weights, &mut steps);
    }
    streams::with_consumers(&mut steps);
    Sequence {
        name: format!("seed {seed}"),
        protocols,
        subscriber,
        notify,
        active_expiry: false,
        steps,
    }
}

/// Whether requests in one packet are so many bytes that Redis reads them in several turns of its event loop.
fn takes_several_reads(requests: &[Request]) -> bool {
    const ONE_READ: usize = 16_000;
    /// The frame of an argument, and an id or address that is filled in later.
    const AROUND: usize = 32;
    let size = |arg: &Arg| match arg {
        Arg::Bytes(bytes) => bytes.len() + AROUND,
        _ => AROUND,
    };
    let bytes: usize = requests
        .iter()
        .flat_map(|request| request.args.iter().map(size))
        .sum();
    bytes > ONE_READ
}

/// Whether a client is killed behind so many bytes that Redis writes what it has for that client before it has read the
/// request.
fn kills_between_reads(requests: &[Request]) -> bool {
    takes_several_reads(requests)
        && requests
            .iter()
            .any(|request| request.word(0) == "client" && request.word(1) == "kill")
}

impl Generator<'_> {
    fn steps(&mut self, weights: &Weights, steps: &mut Vec<Step>) {
        let number = self.rng.below(100);
        if self.tracking && (34..70).contains(&number) && !self.queueing[self.client] {
            return tracking::steps(self, steps);
        }
        match number {
            0..2 if !self.queueing[self.client] => expiry::steps(self, steps),
            2..4 if !self.queueing[self.client] => {
                steps.push(protocol::step(self));
            }
            4..14 => {
                // A transaction is more interesting whole than as the accident of MULTI and EXEC drawn apart.
                transactions::steps(self, weights, steps);
            }
            14..16 => sets::steps(self, steps),
            27..34 if weights[STREAMS] > 10 && !self.queueing[self.client] => {
                streams::steps(self, steps);
            }
            34..40 if self.waiting => blocking::steps(self, steps),
            // What a script reads is tracked since 7.2 only.
            95.. if !self.queueing[self.client] && !self.waiting && !self.tracking => {
                scripting::steps(self, steps);
            }
            16..27 if !self.password => {
                let requests: Vec<Request> = (0..self.rng.between(2, 8))
                    .map(|_| self.request(weights))
                    .collect();
                let delivery = if self.rng.percent(30) {
                    Delivery::Pieces(self.rng.between(1, 40))
                } else {
                    Delivery::OnePacket
                };
                // Broadcasts hold what changed in one turn of the event loop, so a packet must not be split over several.
                let delivery = if self.tracking {
                    Delivery::OnePacket
                } else {
                    delivery
                };
                let delivery = if self.password || kills_between_reads(&requests) {
                    Delivery::OneByOne
                } else {
                    delivery
                };
                steps.push(self.run(requests, delivery));
            }
            _ => {
                let request = self.request(weights);
                steps.push(self.run(vec![request], Delivery::OneByOne));
            }
        }
    }

    fn run(&self, requests: Vec<Request>, delivery: Delivery) -> Step {
        // Broadcasts hold what changed in one turn of the event loop, and where a turn ends is the server's own affair.
        let delivery = match self.tracking && takes_several_reads(&requests) {
            true => Delivery::OneByOne,
            false => delivery,
        };
        Step::Run {
            client: self.client,
            requests,
            delivery,
        }
    }

    /// One request, valid or not.
    fn request(&mut self, weights: &Weights) -> Request {
        // A client that subscribed in RESP2 is good for little else; it finds its way back soon.
        if self.subscribed[self.client] && self.protocols[self.client] == 2 && self.rng.percent(20)
        {
            self.subscribed[self.client] = false;
            return Request::new(["RESET"]);
        }
        if self.queueing[self.client] && self.rng.percent(10) {
            self.queueing[self.client] = false;
            return Request::new(["EXEC"]);
        }
        loop {
            let row = self.draw(weights);
            let request = self.write(row);
            let mut request = if self.rng.percent(DAMAGED_PERCENT) {
                self.damage(request)
            } else {
                request
            };
            if (self.expiring || self.queueing[self.client]) && row.name == "SCAN" {
                // SCAN expires what it meets, so it has to meet everything. A queued one may meet keys whose deadline
                // is set before EXEC.
                request.args.extend([Arg::from("COUNT"), Arg::from("1000")]);
            }
            if is_safe(&request) && self.is_tellable(&request) {
                self.note(&request);
                return request;
            }
        }
    }

    /// Whether what the request does can be told from its answer, and is the same on both servers.
    fn is_tellable(&self, request: &Request) -> bool {
        let name = request.word(0);
        // Ids and addresses differ between the servers, so they stand only where no error repeats them.
        let misplaced = request.args.iter().enumerate().any(|(index, arg)| {
            let before = request.word(index.saturating_sub(1));
            match arg {
                Arg::ClientId(_) => {
                    let unblocks = request.word(1) == "unblock" && index == 2;
                    !unblocks && !matches!(before.as_str(), "id" | "redirect")
                }
                Arg::SocketAddress => before != "addr" && before != "laddr",
                _ => false,
            }
        });
        // An id written out may be anybody's on one server and nobody's on the other.
        let literal_id = name == "client"
            && (2..request.args.len()).any(|index| {
                let number = request.word(index).parse::<i64>();
                matches!(request.word(1).as_str(), "list" | "kill" | "tracking")
                    && number.is_ok_and(|id| (1..100_000_000).contains(&id))
            });
        let encoding = matches!(
            (name.as_str(), request.word(1).as_str()),
            ("object", "encoding") | ("debug", "object")
        );
        if encoding
            && request
                .args
                .get(2)
                .is_some_and(|key| self.bitmaps.contains(key))
        {
            return false;
        }
        if self.fresh
            && self.memory_limited
            && matches!(name.as_str(), "xclaim" | "xautoclaim" | "xreadgroup")
        {
            return false;
        }
        // Redis reads hexadecimal timeouts too, of which no short one is drawn.
        let is_hexadecimal = |index| request.word(index).starts_with("0x");
        let blocks = name.starts_with("bl") || name.starts_with("br") || name.starts_with("bz");
        if self.fresh && blocks && (1..request.args.len()).any(is_hexadecimal) {
            return false;
        }
        if self.range_error && matches!(name.as_str(), "sort" | "sort_ro") {
            return false;
        }
        if self.odd_scores && name == "debug" && request.word(1).starts_with("digest") {
            return false;
        }
        if misplaced || literal_id || known::is_bound_to_a_version(request) {
            return false;
        }
        // What is queued runs later, when a key may have expired meanwhile.
        let late = self.queueing[self.client];
        let odd = (self.expiring || late) && known::is_odd_about_expired_keys(request)
            || late && matches!(name.as_str(), "debug" | "memory");
        let broken = self.queueing[self.client] && known::breaks_the_frame_of_exec(request);
        let lossy = self.new_key_events && known::may_lose_new_key_events(request);
        !odd && !broken && !lossy
    }

    fn draw(&mut self, weights: &Weights) -> &'static Row {
        let total: usize = weights.iter().sum();
        let mut ticket = self.rng.below(total);
        let mut rows = FAMILIES[0].1;
        for (family, &weight) in FAMILIES.iter().zip(weights) {
            if ticket < weight {
                rows = family.1;
                break;
            }
            ticket -= weight;
        }
        let total: usize = rows.iter().map(|row| row.weight).sum();
        let mut ticket = self.rng.below(total);
        for row in rows {
            if ticket < row.weight {
                return row;
            }
            ticket -= row.weight;
        }
        &rows[0]
    }

    /// A request of this row, in varying case.
    fn write(&mut self, row: &Row) -> Request {
        let mut args: Vec<Arg> = row.name.split(' ').map(|word| self.word(word)).collect();
        args.extend((row.write)(self));
        Request { args }
    }

    fn damage(&mut self, mut request: Request) -> Request {
        let args = &mut request.args;
        let behind = args.len() - 1;
        match self.rng.below(6) {
            0 if behind > 0 => {
                args.remove(1 + self.rng.below(behind));
            }
            1 if behind > 0 => {
                let doubled = args[1 + self.rng.below(behind)].clone();
                args.push(doubled);
            }
            2 if behind > 1 => {
                let (one, other) = (1 + self.rng.below(behind), 1 + self.rng.below(behind));
                args.swap(one, other);
            }
            3 if behind > 0 => {
                let index = 1 + self.rng.below(behind);
                args[index] = self.strange();
            }
            4 => args.truncate(1 + self.rng.below(behind + 1)),
            _ => {
                let strange = self.strange();
                args.push(strange);
            }
        }
        request
    }

    /// Keeps the guess about the client's state up to date.
    fn note(&mut self, request: &Request) {
        // A point in the past makes a key that is past its deadline from the start.
        self.expiring |= (0..request.args.len())
            .any(|index| matches!(request.word(index).as_str(), "exat" | "pxat"));
        self.new_key_events |=
            request.word(2) == "notify-keyspace-events" && request.word(3).contains('n');
        self.password |= request.word(1) == "set"
            && (2..request.args.len()).any(|index| request.word(index) == "requirepass");
        if request.word(0) == "config" && request.word(1) == "set" {
            let limits = (2..request.args.len()).filter(|&at| request.word(at) == "maxmemory");
            for at in limits {
                self.memory_limited = request.word(at + 1) != "0";
            }
        }
        self.range_error |= known::leaves_a_range_error(request);
        self.odd_scores |= known::may_store_odd_scores(request);
        if matches!(request.word(0).as_str(), "setbit" | "bitfield") {
            self.bitmaps.extend(request.args.get(1).cloned());
        }
        match request.word(0).as_str() {
            "multi" => self.queueing[self.client] = true,
            "exec" | "discard" => self.queueing[self.client] = false,
            "reset" => {
                self.queueing[self.client] = false;
                self.subscribed[self.client] = false;
                self.protocols[self.client] = 2;
            }
            "hello" if request.word(1) == "3" => self.protocols[self.client] = 3,
            "hello" if request.word(1) == "2" => self.protocols[self.client] = 2,
            "subscribe" | "psubscribe" | "ssubscribe" => self.subscribed[self.client] = true,
            _ => {}
        }
    }
}
