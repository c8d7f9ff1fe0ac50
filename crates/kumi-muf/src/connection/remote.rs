//! How a task uses a node whose connections it does not own: by sending remote calls to their owner.
//!
//! Searching, setting flags, subscribing and pinging take their turn among the pipelines, on the same two
//! connections. A remote call whose node is lost fails; it is never sent to another connection of that node.

use redis::aio::ConnectionLike;
use redis::{Cmd, Pipeline, RedisFuture, RedisResult, Value, cmd};
use tokio::sync::{mpsc, oneshot};

use super::pipe::broken;
use super::topology::Address;

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
pub(crate) struct Remote {
    pub(super) address: Address,
    pub(super) generation: u64,
    pub(super) remote_calls: mpsc::Sender<RemoteCall>,
    pub(super) db: i64,
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
    pub(crate) async fn ping(&mut self) -> RedisResult<()> {
        self.confirmed(&cmd("PING")).await?;
        cmd("PING").query_async::<()>(self).await
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

impl ConnectionLike for Remote {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let packed = cmd.get_packed_command();
            let mut replies = self.send(Side::Commands, packed, 1).await?;
            replies.pop().ok_or_else(broken)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            let packed = pipeline.get_packed_pipeline();
            let mut replies = self.send(Side::Commands, packed, offset + count).await?;
            Ok(replies.split_off(offset))
        })
    }

    fn get_db(&self) -> i64 {
        self.db
    }
}
