//! Why a node does not start, or a request to it fails.

use crate::core::{MembershipError, MembershipRuntimeError};
use kumi_unison::{NetworkError, TlsError};
use std::io;
use std::net::SocketAddr;
use std::string::String;

/// A failure of the driver. A node that did not start has left nothing running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// Another program has the address, or it is not this machine's. The operator picks another.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The node listens on every address of the machine, so others cannot guess which one to use: the caller has to say.
    #[error(
        "{address} does not say where others reach this node: advertise an address that they can dial"
    )]
    AdvertiseNeeded {
        /// The address that was asked for, to listen on or to advertise.
        address: SocketAddr,
    },
    /// Certificates or keys cannot be used; their owner has to mend them.
    #[error("the keys cannot be used")]
    Tls(#[from] TlsError),
    /// Unison failed while starting.
    #[error("the network cannot be used")]
    Network(#[from] NetworkError),
    /// The configuration contradicts itself.
    #[error("membership does not start")]
    Runtime(#[from] MembershipRuntimeError),
    /// The core refused what was asked. Nothing was changed.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// A mistake in this program: the node's task panicked. Its sockets are closed; the others notice as they notice a
    /// crash.
    #[error("the node failed: a panic, reported where it happened")]
    Failed,
    /// The operating system gives no random numbers. Nothing of this crate runs without them.
    #[error("the operating system gives no random numbers")]
    Random(#[source] getrandom::Error),
    /// The registry that was given to the node has a channel of this name, which is the node's own: another node has the registry,
    /// or the program uses a name that begins with `cluster.`.
    #[error("the registry already has the channel {0}")]
    ChannelTaken(String),
    /// Two nodes of one in-memory network have the same authority.
    #[error("{0} is on this network already")]
    AuthorityTaken(String),
}

impl DriverError {
    /// Whether another program has the address.
    pub fn is_address_in_use(&self) -> bool {
        matches!(self, Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse)
    }
}
