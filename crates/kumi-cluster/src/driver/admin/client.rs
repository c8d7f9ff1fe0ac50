//! The asking side of `cluster.admin`: what `kumi cluster` is made of.

use super::types::{MetadataOrder, QuarantineOrder, ReleaseOrder};
use super::{ADMIN_CHANNEL, AdminEvent, ClusterView, codes, methods};
use crate::driver::quic::{QuicConnection, Security};
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use futures_util::Stream;
use kumi_unison::{ChannelOptions, EventReceiver, NetworkError, RemoteError, Shown, UnisonChannel};
use std::string::{String, ToString};
use std::time::Duration;

/// How long connecting to a node may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a request to a node's admin channel failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// No node answers there, or not with this cluster's key. Nothing was asked.
    #[error("cannot reach a node at {node}")]
    Unreachable {
        /// The address that was tried.
        node: String,
        /// What happened.
        #[source]
        source: NetworkError,
    },
    /// No member of that name is known to the node. Nothing was changed. The text is the node's, escaped and cut.
    #[error("{0}")]
    UnknownMember(String),
    /// The node refused. Nothing was changed. The text is the node's, escaped and cut.
    #[error("the node refuses: {0}")]
    Refused(String),
    /// The connection ended before the answer; whether it was done is not known.
    #[error("the connection to the node was lost")]
    Lost(#[source] NetworkError),
}

impl AdminError {
    fn of(error: NetworkError) -> Self {
        match error {
            NetworkError::Remote(RemoteError { code, message, .. }) => match code.as_str() {
                codes::UNKNOWN_MEMBER => Self::UnknownMember(Shown(&message).to_string()),
                _ => Self::Refused(Shown(&message).to_string()),
            },
            error => Self::Lost(error),
        }
    }
}

/// A connection to one node's admin channel. Dropping it closes it.
#[derive(Debug)]
pub struct AdminClient {
    channel: UnisonChannel,
    connection: QuicConnection,
}

impl AdminClient {
    /// Connects to `host:port`.
    pub async fn connect(node: &str, security: &Security) -> Result<Self, AdminError> {
        let connecting = async {
            let connection = QuicConnection::open(node, security).await?;
            let channel = connection
                .channel(ADMIN_CHANNEL, ChannelOptions::new())
                .await?;
            Ok((channel, connection))
        };
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        let connected = connected.unwrap_or(Err(NetworkError::deadline()));
        let (channel, connection) = connected.map_err(|source| AdminError::Unreachable {
            node: node.into(),
            source,
        })?;
        Ok(Self {
            channel,
            connection,
        })
    }

    /// The cluster as the node sees it.
    pub async fn members(&self) -> Result<ClusterView, AdminError> {
        self.request(methods::MEMBERS, &()).await
    }

    /// Asks the node to leave. It is still there when this returns; [`gone`](Self::gone) waits for its end.
    pub async fn leave(&self) -> Result<(), AdminError> {
        let _: serde_json::Value = self.request(methods::LEAVE, &()).await?;
        Ok(())
    }

    /// Keeps an authority out of the cluster for a while.
    pub async fn quarantine(
        &self,
        authority: &str,
        reason: &str,
        ttl: Duration,
    ) -> Result<(), AdminError> {
        let order = QuarantineOrder {
            authority: authority.into(),
            reason: reason.into(),
            for_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
        };
        let _: serde_json::Value = self.request(methods::QUARANTINE, &order).await?;
        Ok(())
    }

    /// Lets an authority in again.
    pub async fn release(&self, authority: &str) -> Result<(), AdminError> {
        let order = ReleaseOrder {
            authority: authority.into(),
        };
        let _: serde_json::Value = self.request(methods::RELEASE, &order).await?;
        Ok(())
    }

    /// Replaces the roles and services in the node's metadata; its version stays.
    pub async fn set_metadata(
        &self,
        roles: &[String],
        services: &[(String, String)],
    ) -> Result<(), AdminError> {
        let order = MetadataOrder {
            roles: roles.into(),
            services: services.into(),
        };
        let _: serde_json::Value = self.request(methods::METADATA, &order).await?;
        Ok(())
    }

    /// The cluster now, and everything that happens from now on.
    pub async fn watch(self) -> Result<AdminWatch, AdminError> {
        // Before the request, so that no event comes while nothing takes it.
        let events = self.channel.events(methods::EVENT);
        let first = self.request(methods::WATCH, &()).await?;
        Ok(AdminWatch {
            first,
            events,
            _client: self,
        })
    }

    /// Closes the connection, and waits until the node has received that. Dropping does the same without waiting.
    pub async fn close(self) {
        self.connection.close().await;
    }

    /// Waits until the node has closed the connection.
    pub async fn gone(&self) {
        self.channel.closed().await;
    }

    async fn request<Q: serde::Serialize + Sync, A: serde::de::DeserializeOwned>(
        &self,
        method: &str,
        question: &Q,
    ) -> Result<A, AdminError> {
        let asked = self.channel.request_json(method, question).await;
        asked.map_err(AdminError::of)
    }
}

/// Events of a cluster, as one node sees them, also as a [`Stream`]. Dropping it ends the watch.
#[derive(Debug)]
pub struct AdminWatch {
    first: ClusterView,
    events: EventReceiver,
    /// Keeps the connection.
    _client: AdminClient,
}

impl AdminWatch {
    /// The cluster when the watch began.
    pub fn first(&self) -> &ClusterView {
        &self.first
    }

    /// Waits for the next event; `None` when the node has ended. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<AdminEvent>, AdminError> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx))
            .await
            .transpose()
    }
}

impl Stream for AdminWatch {
    type Item = Result<AdminEvent, AdminError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.get_mut().events).poll_next(cx);
        next.map(|next| {
            next.map(|received| match received {
                Ok(message) => {
                    let event = serde_json::from_slice(&message.payload);
                    Ok(event.unwrap_or(AdminEvent::Other))
                }
                Err(error) => Err(AdminError::of(error)),
            })
        })
    }
}
