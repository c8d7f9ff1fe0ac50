//! A deterministic simulator: many nodes, one network that misbehaves on order, virtual time.
//!
//! It is for tests and measurements, behind the feature `simulation`, and needs `std`. Every message is encoded by its
//! sender and decoded by its receiver, and a run is a function of its seed. It knows nothing about how the
//! core works: it calls what a driver calls.

mod checker;
mod coverage;
mod host;
mod network;
mod promise;
mod queue;
mod rng;
mod truth;
mod watch;
mod world;

pub use checker::{Checker, TopologyFacts};
pub use coverage::Coverage;
pub use host::{Host, HostClock, INBOX_LIMIT};
pub use network::{
    Arrivals, Carriage, LinkProfile, Network, PACKET_OVERHEAD_BYTES, PACKET_PAYLOAD_BYTES, Traffic,
};
pub use promise::{Promise, Violation};
pub use queue::EventQueue;
pub use rng::SimRng;
pub use truth::Truth;
pub use watch::Watch;
pub use world::{World, WorldSpec, authority, subject_of};
