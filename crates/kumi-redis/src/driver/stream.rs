//! A connected socket of any kind: TCP, Unix, and TLS where it is built in; and why there is none.

use std::io;

use redis::{ErrorKind, RedisError};
use tokio::io::{AsyncRead, AsyncWrite};

/// A connected socket of any kind.
pub type Stream = Box<dyn Socket>;

/// What a socket can do.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// Why there is no connection.
pub(super) enum Failed {
    /// The server's certificate is not trusted, for this reason.
    #[cfg(feature = "tls")]
    Certificate(String),
    /// The server does not have the database that the URL names.
    Database(RedisError),
    Other(RedisError),
}

impl From<RedisError> for Failed {
    fn from(error: RedisError) -> Self {
        Self::Other(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Other(error.into())
    }
}

/// The error of an address, or of what was given with it, that cannot be used.
pub(super) fn unusable(why: &'static str) -> RedisError {
    (ErrorKind::InvalidClientConfig, why).into()
}
