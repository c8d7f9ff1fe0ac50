//! How a task uses a node whose connections it does not own: by sending remote calls to their owner.
//!
//! Searching, setting flags, subscribing and pinging take their turn among the pipelines, on the same two
//! connections. A remote call whose node is lost fails; it is never sent to another connection of that node.

use redis::{Cmd, RedisResult, Value, cmd};
use tokio::sync::{mpsc, oneshot};

use super::exchange::{Exchange, broken};
use crate::core::slots::Address;

/// Remote calls that wait for the owner of the connections. Later ones wait for room.
pub(super) const REMOTE_CALL_LIMIT: usize = 256;

/// Which of a node's two connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Commands,
    Pushes,
}

/// Packed commands for one connection of one node.
pub(super) struct RemoteCall {
    pub(super) address: Address,
    pub(super) generation: u64,
    pub(super) side: Side,
    pub(super) packed: Vec<u8>,
    /// How many replies they will have.
    pub(super) count: usize,
    pub(super) reply: oneshot::Sender<Vec<Value>>,
}

/// A handle to a node, for tasks.
#[derive(Clone)]
pub struct Remote {
    pub(super) address: Address,
    pub(super) generation: u64,
    pub(super) remote_calls: mpsc::Sender<RemoteCall>,
}

impl Remote {
    async fn send(&self, side: Side, packed: Vec<u8>, count: usize) -> RedisResult<Vec<Value>> {
        let (reply, replies) = oneshot::channel();
        let remote_call = self.call(side, packed, count, reply);
        self.remote_calls
            .send(remote_call)
            .await
            .map_err(|_| broken())?;
        replies.await.map_err(|_| broken())
    }

    /// Subscribes to one more pattern over channels.
    pub(super) async fn psubscribe(&self, pattern: &str) -> RedisResult<()> {
        self.confirmed(cmd("PSUBSCRIBE").arg(pattern)).await
    }

    /// The call that unsubscribes from a pattern, for the owner of the connections. Its confirmation is not waited for.
    pub(super) fn punsubscribe(&self, pattern: &str) -> RemoteCall {
        let packed = cmd("PUNSUBSCRIBE").arg(pattern).get_packed_command();
        self.call(Side::Pushes, packed, 1, oneshot::channel().0)
    }

    fn call(
        &self,
        side: Side,
        packed: Vec<u8>,
        count: usize,
        reply: oneshot::Sender<Vec<Value>>,
    ) -> RemoteCall {
        RemoteCall {
            address: self.address.clone(),
            generation: self.generation,
            side,
            packed,
            count,
            reply,
        }
    }

    /// Whether both connections answer.
    pub async fn answers(&mut self) -> bool {
        let pushes = self.confirmed(&cmd("PING")).await;
        pushes.is_ok() && self.query::<()>(&cmd("PING")).await.is_ok()
    }

    /// Sends a command on the connection for pushes, and waits for its confirmation.
    async fn confirmed(&self, command: &Cmd) -> RedisResult<()> {
        let packed = command.get_packed_command();
        let replies = self.send(Side::Pushes, packed, 1).await?;
        replies
            .into_iter()
            .try_for_each(|value| value.extract_error().map(|_| ()))
    }
}

impl Exchange for Remote {
    async fn exchange(&mut self, packed: Vec<u8>, count: usize) -> RedisResult<Vec<Value>> {
        self.send(Side::Commands, packed, count).await
    }
}
