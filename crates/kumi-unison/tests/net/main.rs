//! Unison over real QUIC on loopback: channels, trust, lost connections, bad networks and hostile peers.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step of a test is a failed test"
)]

mod channels;
mod control;
mod datagrams;
mod endings;
mod events;
mod flood;
mod hostile;
mod lab;
mod legacy;
mod limits;
mod log;
mod network;
mod proxy;
mod raw;
mod reconnect;
mod tls;
