//! What connections are made of: QUIC between processes, memory within one.

use super::error::DriverError;
use super::memory::{MemoryLine, MemoryNetwork};
use super::quic::{QuicConnection, QuicListener, Security, host_of};
use super::resolve::{self, Resolver};
use crate::core::Authority;
use kumi_unison::driver::Traffic;
use kumi_unison::{
    ChannelOptions, ChannelRegistry, ConnectionContext, NetworkError, ServerIdentity, UnisonChannel,
};
use std::boxed::Box;
use std::net::SocketAddr;
use std::string::ToString;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    /// Replaced when certificates are.
    security: Mutex<Security>,
    resolver: Resolver,
    /// Set once the node listens.
    listener: OnceLock<QuicListener>,
    /// The addresses that lead back here, as far as they are known.
    own: Mutex<Vec<SocketAddr>>,
}

impl Quic {
    fn security(&self) -> Security {
        let security = self.security.lock();
        security.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn own(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport {
    /// QUIC, with peers that this decision about trust lets in.
    pub fn quic(security: Security) -> Self {
        Self::resolving(security, Resolver::default())
    }

    /// QUIC, with names that lead where this resolver says.
    pub(super) fn resolving(security: Security, resolver: Resolver) -> Self {
        Self(Kind::Quic(Box::new(Quic {
            security: Mutex::new(security),
            resolver,
            listener: OnceLock::new(),
            own: Mutex::default(),
        })))
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
                let opened = QuicListener::open(bind, advertise, &quic.security(), registry)?;
                let address = opened.local_addr();
                let _ = quic.listener.set(opened);
                match advertise {
                    Some(authority) => match authority.as_str().parse::<SocketAddr>() {
                        // No node can be reached at an unspecified address.
                        Ok(address) if address.ip().is_unspecified() => {
                            Err(DriverError::AdvertiseNeeded { address })
                        }
                        _ => Ok(authority.clone()),
                    },
                    None if address.ip().is_unspecified() => {
                        Err(DriverError::AdvertiseNeeded { address })
                    }
                    None => Ok(Authority::new(&address.to_string())?),
                }
            }
            Kind::Memory(network) => {
                let authority = match advertise {
                    Some(authority) => authority.clone(),
                    None => Authority::new(&network.free_address(bind).to_string())?,
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

    /// What went through the node's socket, if it has one.
    pub(super) fn traffic(&self) -> Option<Traffic> {
        match &self.0 {
            Kind::Quic(quic) => quic.listener.get().and_then(QuicListener::traffic),
            Kind::Memory(_) => None,
        }
    }

    /// The seeds as the core needs them, from what the operator calls them.
    pub(super) async fn known_seeds(&self, seeds: &[Authority], own: &Authority) -> Vec<Authority> {
        match &self.0 {
            Kind::Quic(quic) => {
                let addresses =
                    resolve::own_addresses(&quic.resolver, own, self.local_addr()).await;
                *quic.own() = addresses.clone();
                resolve::known_seeds(&quic.resolver, seeds, own, &addresses).await
            }
            Kind::Memory(_) => seeds.to_vec(),
        }
    }

    /// Connects to a peer and prepares the connection. A name with several addresses is tried address by address, and
    /// a first attempt to reach it may begin elsewhere than later ones. `None` means that the name leads only to
    /// members that are known.
    pub(super) async fn dial<T, F>(
        &self,
        own: &Authority,
        to: &Authority,
        known: &[SocketAddr],
        is_first_attempt: bool,
        prepare: impl Fn(Connection) -> F,
    ) -> Result<Option<T>, NetworkError>
    where
        F: Future<Output = Result<T, NetworkError>>,
    {
        match &self.0 {
            Kind::Quic(quic) => {
                let Some(listener) = quic.listener.get() else {
                    return Err(NetworkError::closed());
                };
                let mut found = quic.resolver.addresses(to).await?;
                resolve::drop_other_loopback(&mut found, listener.local_addr());
                let mut last = match found.is_empty() {
                    true => NetworkError::Connect("the name has no address".into()),
                    false => leads_back(),
                };
                let is_name = found.len() != 1 || found[0].to_string() != to.as_str();
                let known = if is_name { known } else { &[] };
                let leads_on = found.iter().any(|address| known.contains(address));
                // Without a seed the order is still one of the permitted ones.
                let mut random = fastrand::Rng::with_seed(getrandom::u64().unwrap_or_default());
                let own = quic.own().clone();
                let order = resolve::in_order(found, &own, known, is_first_attempt, &mut random);
                if order.is_empty() && leads_on {
                    return Ok(None);
                }
                let security = quic.security();
                for address in order {
                    let connected = listener.connect(host_of(to), address, &security);
                    let prepared = match connected.await {
                        Ok(connection) => prepare(Connection(Line::Quic(connection))).await,
                        Err(error) => Err(error),
                    };
                    match prepared {
                        Ok(prepared) => return Ok(Some(prepared)),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Kind::Memory(network) => {
                let line = network.connect(own, to)?;
                let prepared = prepare(Connection(Line::Memory(line))).await?;
                Ok(Some(prepared))
            }
        }
    }

    /// Connects to the node's own authority, wherever that leads now, and prepares the connection. `prepare` fails for a
    /// connection that leads back to this node.
    pub(super) async fn dial_own<T, F>(
        &self,
        own: &Authority,
        prepare: impl Fn(Connection) -> F,
    ) -> Result<T, NetworkError>
    where
        F: Future<Output = Result<T, NetworkError>>,
    {
        let Kind::Quic(quic) = &self.0 else {
            return Err(leads_back());
        };
        let Some(listener) = quic.listener.get() else {
            return Err(NetworkError::closed());
        };
        let security = quic.security();
        let mut last = leads_back();
        for address in quic.resolver.addresses(own).await? {
            let connected = listener.connect(host_of(own), address, &security);
            let prepared = match connected.await {
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

    /// Whether peers prove by a certificate which node they are.
    pub(super) fn checks_identity(&self) -> bool {
        match &self.0 {
            Kind::Quic(quic) => quic.security().checks_identity(),
            Kind::Memory(_) => false,
        }
    }

    /// Replaces certificates and keys. Connections that are open stay as they are.
    pub(super) async fn set_security(&self, security: Security) -> Result<(), NetworkError> {
        let Kind::Quic(quic) = &self.0 else {
            return Ok(());
        };
        let Some(listener) = quic.listener.get() else {
            return Err(NetworkError::closed());
        };
        listener.set_security(&security).await?;
        *quic.security.lock().unwrap_or_else(PoisonError::into_inner) = security;
        Ok(())
    }

    /// Whether a peer may introduce itself by this authority. `peer` is `None` for a connection that has ended.
    pub(super) fn proves(&self, peer: Option<&ConnectionContext>, authority: &Authority) -> bool {
        match &self.0 {
            Kind::Quic(quic) => quic.security().proves(peer, authority),
            Kind::Memory(_) => true,
        }
    }

    /// Whether a peer that connected may call `cluster.admin`.
    pub(super) fn is_operator(&self, peer: &ConnectionContext) -> bool {
        match &self.0 {
            Kind::Quic(quic) => quic.security().is_operator(peer),
            Kind::Memory(_) => true,
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

/// The error of a connection to this node itself.
pub(super) fn leads_back() -> NetworkError {
    NetworkError::Connect("the address leads back to this node".into())
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

    /// The identity of the server.
    pub(super) fn identity(&self) -> ServerIdentity {
        match &self.0 {
            Line::Quic(connection) => connection.identity(),
            Line::Memory(line) => line.identity(),
        }
    }

    /// Its state, where the peer shows certificates.
    pub(super) fn context(&self) -> Option<Arc<ConnectionContext>> {
        match &self.0 {
            Line::Quic(connection) => connection.context(),
            Line::Memory(_) => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_for_hosts_without_ports_and_brackets() {
        for (authority, host) in [
            ("node.example:7400", "node.example"),
            ("10.0.0.1:7400", "10.0.0.1"),
            ("[fe80::1%2]:7400", "fe80::1"),
        ] {
            let authority = Authority::new(authority).expect("a name");
            assert_eq!(host_of(&authority), host);
        }
    }
}
