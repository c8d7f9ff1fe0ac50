//! A UDP proxy in front of each node, which drops packets between nodes that are not in the same part.
//!
//! Nodes advertise the proxy's sockets, so everything between two nodes passes here. A node dials from the socket it
//! listens on, so a packet's source tells who sent it. An operator's packets, which belong to no node, always pass.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a waiting thread looks whether it has to end.
const LOOK: Duration = Duration::from_millis(100);

/// More than any packet of a node on loopback.
const PACKET_BYTES: usize = 64 * 1024;

pub(crate) struct Proxy {
    shared: Arc<Shared>,
    fronts: Vec<SocketAddr>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    stop: AtomicBool,
    forwarded: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Where the node behind each front listens, and sends from.
    nodes: HashMap<usize, SocketAddr>,
    /// Which part each node is in; everybody in one when it is empty.
    parts: Vec<u32>,
}

impl Proxy {
    pub(crate) fn new(nodes: usize) -> Self {
        let shared: Arc<Shared> = Arc::default();
        let fronts = (0..nodes).map(|place| {
            let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
            let address = front.local_addr().expect("it is bound");
            let shared = shared.clone();
            std::thread::spawn(move || forward(&shared, place, &Arc::new(front)));
            address
        });
        Self {
            fronts: fronts.collect(),
            shared,
        }
    }

    /// The address that a node advertises.
    pub(crate) fn front(&self, place: usize) -> SocketAddr {
        self.fronts[place]
    }

    /// Says who stands behind a front.
    pub(crate) fn connect(&self, place: usize, address: SocketAddr) {
        self.shared.state().nodes.insert(place, address);
    }

    /// Puts each node into a part; packets between parts are dropped from now on.
    pub(crate) fn divide(&self, parts: &[u32]) {
        self.shared.state().parts = parts.to_vec();
    }

    /// Lets everything pass again.
    pub(crate) fn heal(&self) {
        self.shared.state().parts.clear();
    }

    /// Packets that passed, and packets that did not.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.shared.forwarded), read(&self.shared.dropped))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether a packet between this address and a node passes, and counts it.
    fn passes(&self, address: SocketAddr, place: usize) -> bool {
        let state = self.state();
        let other = state.nodes.iter().find(|(_, node)| **node == address);
        let part = |place: usize| state.parts.get(place).copied().unwrap_or(0);
        let passes = other.is_none_or(|(other, _)| part(*other) == part(place));
        let counter = if passes {
            &self.forwarded
        } else {
            &self.dropped
        };
        counter.fetch_add(1, Ordering::Relaxed);
        passes
    }
}

/// What comes to a front goes to its node, from a socket per sender; that socket's answers go back.
fn forward(shared: &Arc<Shared>, place: usize, front: &Arc<UdpSocket>) {
    front.set_read_timeout(Some(LOOK)).expect("not zero");
    let mut backs: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    let mut packet = vec![0; PACKET_BYTES];
    while !shared.stopped() {
        let Ok((len, from)) = front.recv_from(&mut packet) else {
            continue;
        };
        let node = shared.state().nodes.get(&place).copied();
        let Some(node) = node else {
            continue;
        };
        let back = backs.entry(from).or_insert_with(|| {
            let back = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
            let (shared, front, back_again) = (shared.clone(), front.clone(), back.clone());
            std::thread::spawn(move || answer(&shared, place, &front, &back_again, from));
            back
        });
        if shared.passes(from, place) {
            // A node that is gone for a moment loses packets, as it would without us.
            let _ = back.send_to(&packet[..len], node);
        }
    }
}

fn answer(shared: &Shared, place: usize, front: &UdpSocket, back: &UdpSocket, to: SocketAddr) {
    back.set_read_timeout(Some(LOOK)).expect("not zero");
    let mut packet = vec![0; PACKET_BYTES];
    while !shared.stopped() {
        if let Ok(len) = back.recv(&mut packet)
            && shared.passes(to, place)
        {
            let _ = front.send_to(&packet[..len], to);
        }
    }
}
