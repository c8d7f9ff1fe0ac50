//! What connections are made of: QUIC between processes, memory within one.

use super::error::DriverError;
use super::memory::{MemoryLine, MemoryNetwork};
use super::quic::{QuicConnection, QuicListener, Security};
use super::resolve;
use crate::Authority;
use kumi_unison::{ChannelOptions, ChannelRegistry, NetworkError, UnisonChannel};
use std::boxed::Box;
use std::net::SocketAddr;
use std::string::ToString;
use std::sync::{Arc, OnceLock};
use std::vec::Vec;

/// How one node reaches others.
#[derive(Debug)]
pub struct Transport(Kind);

#[derive(Debug)]
enum Kind {
    Quic(Box<Quic>),
    Memory(MemoryNetwork),
}

#[derive(Debug)]
struct Quic {
    security: Security,
    /// Set once the node listens.
    listener: OnceLock<QuicListener>,
}

impl Transport {
    /// QUIC, with peers that this decision about trust lets in.
    pub fn quic(security: Security) -> Self {
        let listener = OnceLock::new();
        Self(Kind::Quic(Box::new(Quic { security, listener })))
    }

    /// A network within this process, for tests and for several nodes in one program.
    pub fn memory(network: &MemoryNetwork) -> Self {
        Self(Kind::Memory(network.clone()))
    }

    /// Begins to listen. The answer is the address that others can be given, unless one was named.
    pub(super) fn listen(
        &self,
        bind: SocketAddr,
        advertise: Option<&Authority>,
        registry: &ChannelRegistry,
    ) -> Result<Authority, DriverError> {
        match &self.0 {
            Kind::Quic(quic) => {
                let Quic { security, listener } = &**quic;
                let opened = QuicListener::open(bind, security, registry)?;
                let address = opened.local_addr();
                let _ = listener.set(opened);
                match advertise {
                    Some(authority) => Ok(authority.clone()),
                    None if address.ip().is_unspecified() => {
                        Err(DriverError::AdvertiseNeeded { address })
                    }
                    None => Ok(Authority::new(&address.to_string())?),
                }
            }
            Kind::Memory(network) => {
                let authority = match advertise {
                    Some(authority) => authority.clone(),
                    None => Authority::new(&bind.to_string())?,
                };
                network.join(&authority, registry)?;
                Ok(authority)
            }
        }
    }

    /// Where this node listens, if it does so on a socket.
    pub(super) fn local_addr(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Quic(quic) => quic.listener.get().map(QuicListener::local_addr),
            Kind::Memory(_) => None,
        }
    }

    /// Connects to a peer and prepares the connection. A name with several addresses is tried address by address.
    pub(super) async fn dial<T, F>(
        &self,
        own: &Authority,
        to: &Authority,
        prepare: impl Fn(Connection) -> F,
    ) -> Result<T, NetworkError>
    where
        F: Future<Output = Result<T, NetworkError>>,
    {
        match &self.0 {
            Kind::Quic(quic) => {
                let Quic { security, listener } = &**quic;
                let Some(listener) = listener.get() else {
                    return Err(NetworkError::Closed);
                };
                let targets = match security.by_address() {
                    true => resolve::addresses(to)
                        .await?
                        .iter()
                        .map(SocketAddr::to_string)
                        .collect(),
                    false => Vec::from([to.to_string()]),
                };
                let mut last = NetworkError::Connect("the name has no address".into());
                for target in targets {
                    let connected = listener.connect(&target, security).await;
                    let prepared = match connected {
                        Ok(connection) => prepare(Connection(Line::Quic(connection))).await,
                        Err(error) => Err(error),
                    };
                    match prepared {
                        Ok(prepared) => return Ok(prepared),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Kind::Memory(network) => {
                let line = network.connect(own, to)?;
                prepare(Connection(Line::Memory(line))).await
            }
        }
    }

    /// Stops listening and ends what came in, without waiting.
    pub(super) fn close_now(&self, own: &Authority) {
        match &self.0 {
            Kind::Quic(quic) => {
                if let Some(listener) = quic.listener.get() {
                    listener.close_now();
                }
            }
            Kind::Memory(network) => network.leave(own),
        }
    }

    /// Stops listening and ends what came in.
    pub(super) async fn shut(&self, own: &Authority) {
        match &self.0 {
            Kind::Quic(quic) => {
                if let Some(listener) = quic.listener.get() {
                    listener.shut().await;
                }
            }
            Kind::Memory(network) => network.leave(own),
        }
    }
}

/// One connection that this node made.
#[derive(Debug)]
pub(super) struct Connection(Line);

#[derive(Debug)]
enum Line {
    Quic(QuicConnection),
    Memory(Arc<MemoryLine>),
}

impl Connection {
    pub(super) async fn open(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> Result<UnisonChannel, NetworkError> {
        match &self.0 {
            Line::Quic(connection) => connection.channel(name, options).await,
            Line::Memory(line) => line.channel(name, options).await,
        }
    }

    /// Ends it and everything on it.
    pub(super) async fn close(&self) {
        match &self.0 {
            Line::Quic(connection) => connection.close().await,
            Line::Memory(line) => line.close(),
        }
    }
}
