//! The simulated network as chitchat's transport.
//!
//! Every message goes through chitchat's own codec. That is not public, but its in-process transport uses it, so each
//! socket here has one of those to itself, through which a message goes before it is sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use chitchat::ChitchatEnvelope;
use chitchat::transport::{ChannelTransport, RecvOutcome, SendOutcome, Socket, Transport};
use kumi_cluster::sim::{Carriage, LinkProfile, Network, SimRng, Traffic};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Packets that wait for one node.
const INBOX: usize = 4096;
const PORT: u16 = 7000;

/// The network, as all sockets share it.
#[derive(Clone)]
pub(crate) struct Wire {
    inner: Arc<Mutex<WireInner>>,
    begin: Instant,
}

struct WireInner {
    network: Network,
    inboxes: Vec<Option<mpsc::Sender<RecvOutcome>>>,
}

impl Wire {
    pub(crate) fn new(nodes: usize, seed: u64) -> Wire {
        let network = Network::new(nodes, LinkProfile::LAN, SimRng::new(seed));
        let inner = WireInner {
            network,
            inboxes: vec![None; nodes],
        };
        Wire {
            inner: Arc::new(Mutex::new(inner)),
            begin: Instant::now(),
        }
    }

    /// What was sent so far.
    pub(crate) fn totals(&self) -> Traffic {
        self.with(|inner| inner.network.totals())
    }

    fn with<T>(&self, call: impl FnOnce(&mut WireInner) -> T) -> T {
        // A panic elsewhere ends the measurement anyway; the counters are still what they were.
        call(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The address of a place in the network.
pub(crate) fn address(place: usize) -> SocketAddr {
    let [.., high, low] = (place as u32).to_be_bytes();
    SocketAddr::from(([10, 0, high, low], PORT))
}

fn place_of(address: SocketAddr) -> Result<usize> {
    let SocketAddr::V4(address) = address else {
        anyhow::bail!("only IPv4 addresses are simulated");
    };
    let [_, _, high, low] = address.ip().octets();
    Ok(usize::from(u16::from_be_bytes([high, low])))
}

#[async_trait]
impl Transport for Wire {
    async fn open(&self, listen_addr: SocketAddr) -> Result<Box<dyn Socket>> {
        let place = place_of(listen_addr)?;
        let (sender, inbox) = mpsc::channel(INBOX);
        let codec = ChannelTransport::default().open(listen_addr).await?;
        self.with(|inner| inner.inboxes[place] = Some(sender));
        Ok(Box::new(WireSocket {
            wire: self.clone(),
            place,
            codec,
            inbox,
        }))
    }
}

struct WireSocket {
    wire: Wire,
    place: usize,
    codec: Box<dyn Socket>,
    inbox: mpsc::Receiver<RecvOutcome>,
}

#[async_trait]
impl Socket for WireSocket {
    fn local_addr(&self) -> Result<SocketAddr> {
        Ok(address(self.place))
    }

    async fn send(&mut self, to: SocketAddr, envelope: ChitchatEnvelope) -> Result<SendOutcome> {
        self.codec.send(address(self.place), envelope).await?;
        let decoded = self.codec.recv().await?;
        let num_bytes_sent = decoded.num_bytes_received;
        let (from, to) = (self.place, place_of(to)?);
        let now_us = self.wire.begin.elapsed().as_micros() as u64;
        let (arrivals, inbox) = self.wire.with(|inner| {
            let arrivals = inner
                .network
                .send(from, to, num_bytes_sent, Carriage::Datagram, now_us);
            (arrivals, inner.inboxes.get(to).cloned().flatten())
        });
        if let (Some(at_us), Some(inbox)) = (arrivals.first_us, inbox) {
            let at = self.wire.begin + Duration::from_micros(at_us);
            tokio::spawn(async move {
                sleep_until(at).await;
                // A full or closed inbox loses the packet, as a socket does.
                let _ = inbox.try_send(decoded);
            });
        }
        Ok(SendOutcome { num_bytes_sent })
    }

    async fn recv(&mut self) -> Result<RecvOutcome> {
        self.inbox.recv().await.context("the network is gone")
    }
}

impl Drop for WireSocket {
    fn drop(&mut self) {
        let place = self.place;
        self.wire.with(|inner| inner.inboxes[place] = None);
    }
}
