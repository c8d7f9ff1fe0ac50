//! Sending a command and waiting for its reply, on a connection that a task has for itself or on a node that it was lent.

use std::future::Future;
use std::io;

use redis::{Cmd, FromRedisValue, RedisError, RedisResult, Value, from_redis_value};

/// See the module.
pub(super) trait Exchange: Send {
    /// Sends packed commands and waits for as many replies, errors of the server included.
    fn exchange(
        &mut self,
        packed: Vec<u8>,
        count: usize,
    ) -> impl Future<Output = RedisResult<Vec<Value>>> + Send;

    /// Sends a command. An error of the server is an error.
    fn query<R: FromRedisValue>(
        &mut self,
        command: &Cmd,
    ) -> impl Future<Output = RedisResult<R>> + Send {
        let packed = command.get_packed_command();
        async move {
            let reply = self.exchange(packed, 1).await?.pop();
            Ok(from_redis_value(
                reply.ok_or_else(broken)?.extract_error()?,
            )?)
        }
    }
}

/// The connection is gone.
pub(super) fn broken() -> RedisError {
    io::Error::from(io::ErrorKind::BrokenPipe).into()
}
