//! The asking side of `kumi.node`: one node ([`NodeClient`]), or all nodes of a cluster ([`ClusterClient`]), from a program
//! that is no member. `kumi status` and its neighbours are made of it; [`local`] finds the nodes of this machine.

mod cluster;
pub mod local;

pub use cluster::{ClusterClient, StoreDecision};

use super::channel::{self, Drain, KumiNodeClient, Operate, Status, Stop, StoreUse, Undrain};
use crate::core::status::{NodeStatus, StatusError};
use crate::core::store_pin::StoreId;
use crate::trust::{Secret, Trust, TrustError};
use kumi_unison::{
    ClientOptions, ClientTls, ClusterKey, NetworkError, ProtocolClient, ReconnectPolicy,
    RemoteError, Shown, TlsError,
};
use std::future::Future;
use std::time::Duration;
use tokio::time::timeout;

/// How long connecting to a node may take, and then each reply to an order.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const REPLY_WITHIN: Duration = Duration::from_secs(10);

/// The longest time that a stop grants to running tasks; `schema/node.kdl` has the same.
pub const MAX_GRACE: Duration = Duration::from_secs(3_600);

/// What a client proves itself with. `Debug` shows no key.
#[derive(Clone, Debug)]
pub struct Access {
    tls: ClientTls,
    operator_key: Secret,
}

impl Access {
    /// The cluster's key. It gives the rights of the operator too.
    ///
    /// # Errors
    /// If nothing can be derived from the key.
    pub fn key(key: &ClusterKey) -> Result<Self, TrustError> {
        Ok(Self {
            tls: ClientTls::cluster(key)?,
            operator_key: Trust::from_key(key)?.operator_key().clone(),
        })
    }

    /// The operator's key, as [`Node::operator_key`](crate::Node::operator_key) has it. With it one asks and orders nodes, and
    /// nothing else: it neither joins a cluster nor opens its store.
    ///
    /// # Errors
    /// If the text is too short for a key.
    pub fn operator(key: &str) -> Result<Self, TrustError> {
        let operator_key = Secret::of_text(key.trim().to_owned());
        Ok(Self {
            tls: ClientTls::guest(&operator_key.guest_key()?)?,
            operator_key,
        })
    }
}

/// Why a node did not do what it was asked. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nothing answers at the address. Nothing was asked.
    #[error(
        "no node answers at {address}: check the address, that the node runs, and that its UDP port is open"
    )]
    Unreachable {
        /// The address that was tried.
        address: String,
        /// What happened.
        #[source]
        source: NetworkError,
    },
    /// A node answers, and has another key. Nothing was asked.
    #[error("the node at {address} does not accept this key: use the key of its cluster")]
    OtherKey {
        /// The address that was tried.
        address: String,
        /// What happened.
        #[source]
        source: NetworkError,
    },
    /// A member answers that does not offer the channel: a node that has just begun to start, or a member that
    /// `kumi cluster up` runs.
    #[error(
        "the member at {address} has no status: ask again if it has just been started; members of kumi cluster up have none"
    )]
    NoStatus {
        /// The address that was tried.
        address: String,
    },
    /// The node does not know such a member. Nothing was asked of it.
    #[error("no live member is called {name}: there is {}", .known.join(", "))]
    NoMember {
        /// The name, fit to show.
        name: String,
        /// The names of the live members.
        known: Vec<String>,
    },
    /// The node refused, and changed nothing. The text is the node's, fit to show.
    #[error("the node refuses: {0}")]
    Refused(String),
    /// The connection ended before the reply; an order may have been carried out.
    #[error("the connection to the node was lost")]
    Lost(#[source] NetworkError),
    /// The node's status cannot be read.
    #[error("the node's status cannot be read")]
    Status(#[from] StatusError),
}

impl ClientError {
    fn of_connecting(address: &str, source: NetworkError) -> Self {
        let address = address.to_owned();
        match source {
            NetworkError::ChannelNotFound { .. } => Self::NoStatus { address },
            NetworkError::Tls(ref error) if is_refusal(error) => Self::OtherKey { address, source },
            source => Self::Unreachable { address, source },
        }
    }

    fn of_asking(source: NetworkError) -> Self {
        match source {
            NetworkError::Remote(RemoteError { message, .. }) => {
                Self::Refused(Shown(&message).to_string())
            }
            source => Self::Lost(source),
        }
    }
}

/// A connection to one node. Dropping it closes it; dropping the future of a call loses only the reply.
pub struct NodeClient {
    connection: ProtocolClient,
    channel: KumiNodeClient,
    operator_key: Secret,
}

impl NodeClient {
    /// Connects to a node at `host:port`, the port being that of membership.
    ///
    /// # Errors
    /// If no node answers there, or not with this key.
    pub async fn connect(address: &str, access: &Access) -> Result<Self, ClientError> {
        let options = ClientOptions::new()
            .connect_timeout(CONNECT_WITHIN)
            .reconnect(ReconnectPolicy::never());
        let connecting = async {
            let connecting = ProtocolClient::connect_with(address, access.tls.clone(), options);
            let connection = connecting.await?;
            let channel = channel::open(&connection).await?;
            Ok((connection, channel))
        };
        let connected = timeout(CONNECT_WITHIN, connecting).await;
        let connected = connected.unwrap_or(Err(NetworkError::deadline()));
        let (connection, channel) =
            connected.map_err(|error| ClientError::of_connecting(address, error))?;
        // Nobody receives them here, and they must not fill the window.
        channel.raw_channel().discard_events();
        Ok(Self {
            connection,
            channel,
            operator_key: access.operator_key.clone(),
        })
    }

    /// The node's status.
    ///
    /// # Errors
    /// If the connection has ended, or a later version of kumi wrote the status.
    pub async fn status(&self) -> Result<NodeStatus, ClientError> {
        let document = reply(self.channel.status(&Status::default())).await?;
        Ok(NodeStatus::from_json(document.json.as_bytes())?)
    }

    /// Makes its workers take no more tasks. Returns how many run and are finished.
    ///
    /// # Errors
    /// If the node refuses, or does not reply.
    pub async fn drain(&self) -> Result<u64, ClientError> {
        self.operate().await?;
        let drained = reply(self.channel.drain(&Drain::default())).await?;
        Ok(u64::try_from(drained.running).unwrap_or(0))
    }

    /// Makes its workers take tasks again.
    ///
    /// # Errors
    /// If the node refuses, or does not reply.
    pub async fn undrain(&self) -> Result<(), ClientError> {
        self.operate().await?;
        reply(self.channel.undrain(&Undrain::default())).await
    }

    /// Asks the node to stop; running tasks may take this long, up to [`MAX_GRACE`]. It still runs when this returns: [`gone`](Self::gone) waits.
    ///
    /// # Errors
    /// If the node refuses, or does not reply.
    pub async fn stop(&self, grace: Duration) -> Result<(), ClientError> {
        self.operate().await?;
        let grace_ms = i64::try_from(grace.min(MAX_GRACE).as_millis()).unwrap_or(0);
        reply(self.channel.stop(&Stop { grace_ms })).await
    }

    /// Makes the cluster use the store of this id. Returns the id that holds at the node now.
    ///
    /// # Errors
    /// If the node refuses, or does not reply.
    pub async fn use_store(&self, id: &StoreId) -> Result<String, ClientError> {
        self.operate().await?;
        let used = reply(self.channel.store_use(&StoreUse::new(id.as_str()))).await?;
        Ok(used.pinned)
    }

    /// Waits until the node has closed the connection.
    pub async fn gone(&self) {
        self.connection.closed().await;
    }

    /// Closes the connection, and waits until that is sent.
    pub async fn close(self) {
        self.connection.close().await;
    }

    /// Gives this connection the rights of the operator.
    async fn operate(&self) -> Result<(), ClientError> {
        let key = self.operator_key.expose();
        reply(self.channel.operate(&Operate::new(key))).await
    }
}

/// Whether one side did not believe the other.
fn is_refusal(error: &TlsError) -> bool {
    matches!(
        error,
        TlsError::OtherCluster { .. } | TlsError::Refused { .. }
    )
}

async fn reply<T>(asking: impl Future<Output = Result<T, NetworkError>>) -> Result<T, ClientError> {
    let replied = timeout(REPLY_WITHIN, asking).await;
    let replied = replied.unwrap_or(Err(NetworkError::deadline()));
    replied.map_err(ClientError::of_asking)
}
