//! The staged wire tests: a table per step, in the order in which a learner turns them green.

use std::net::SocketAddr;

use crate::lang::Lang;
use crate::wire::{Client, Failure};

mod expiry;
mod keys;
mod muf;
mod ping;
mod pubsub;
mod resp;

/// A test that speaks with a server in bytes.
pub struct Test {
    /// The step it belongs to, 1 to 7.
    pub step: u8,
    /// What it is called on the command line and in snapshots.
    pub name: &'static str,
    /// The hints that help with it.
    pub topic: &'static str,
    /// True if only the course demands it: another Redis is not asked.
    pub course_only: bool,
    /// What it checks: English, Japanese.
    pub title: (&'static str, &'static str),
    /// One line that points at the likely cause: English, Japanese.
    pub nudge: (&'static str, &'static str),
    /// The test itself.
    pub run: fn(&mut Context) -> Result<(), Failure>,
}

impl Test {
    /// What it checks.
    pub fn title(&self, lang: Lang) -> &'static str {
        lang.pick(self.title.0, self.title.1)
    }

    /// One line that points at the likely cause.
    pub fn nudge(&self, lang: Lang) -> &'static str {
        lang.pick(self.nudge.0, self.nudge.1)
    }
}

/// What a test is handed.
pub struct Context {
    /// The server under test.
    pub address: SocketAddr,
    /// Makes up values; seeded.
    pub random: fastrand::Rng,
    prefix: String,
}

impl Context {
    /// A context whose keys and values follow from the seed and the test's name.
    pub fn new(address: SocketAddr, seed: u64, name: &str) -> Context {
        let mixed = name.bytes().fold(seed, |mixed, byte| mixed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        Context { address, random: fastrand::Rng::with_seed(mixed), prefix: format!("{name}-{seed}") }
    }

    /// A new connection.
    pub fn client(&self) -> Result<Client, Failure> {
        Client::connect(self.address)
    }

    /// A key that no other test uses.
    pub fn key(&self, name: &str) -> Vec<u8> {
        format!("{}-{name}", self.prefix).into_bytes()
    }
}

/// The last step.
pub const LAST: u8 = 7;

/// All tests of a step.
pub fn of(step: u8) -> &'static [Test] {
    match step {
        1 => ping::TESTS,
        2 => resp::TESTS,
        3 => keys::TESTS,
        4 => expiry::PASSIVE,
        5 => expiry::ACTIVE,
        6 => pubsub::TESTS,
        7 => muf::TESTS,
        _ => &[],
    }
}

/// What a step is about.
pub fn title(step: u8, lang: Lang) -> &'static str {
    let (en, ja) = match step {
        1 => ("TCP and PING", "TCP と PING"),
        2 => ("RESP", "RESP"),
        3 => ("GET, SET, INCR", "GET・SET・INCR"),
        4 => ("EXPIRE, TTL", "EXPIRE・TTL"),
        5 => ("active expiry", "Active expiry"),
        6 => ("Pub/Sub", "Pub/Sub"),
        7 => ("a MUF request", "MUF リクエスト"),
        _ => ("?", "?"),
    };
    lang.pick(en, ja)
}
