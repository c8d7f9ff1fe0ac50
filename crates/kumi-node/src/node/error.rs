//! What goes wrong with a node.

use crate::driver::state_dir::StateError;
use crate::driver::{CertificateError, JoinError, KeyError, StoreError};
use crate::http::HttpError;
use kumi_cluster::DriverError;
use kumi_jobs::QueueError;
use std::path::PathBuf;

/// Why a node did not start, or what it could not do. After a failed start nothing of it runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// Something that the builder was given cannot be used; the caller's mistake.
    #[error("{0}")]
    Invalid(String),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is no key, or it cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is no certificate for the node's addresses.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The store did not start.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The node has no place in its cluster.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// HTTP cannot listen.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// A port of HTTP is taken. The text says what to do.
    #[error("{0}")]
    HttpPortTaken(String),
    /// A file that the configuration names cannot be read.
    #[error("{} cannot be read", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The unit of the node cannot be connected.
    #[error("the node's unit cannot be connected")]
    Muf(#[from] kumi_muf::Error),
    /// A queue cannot be connected.
    #[error("the queue cannot be connected")]
    Jobs(#[from] QueueError),
    /// The node could not tell the others that it leaves. They notice its end.
    #[error("the node could not leave its cluster")]
    Leave(#[source] DriverError),
    /// A part of the node panicked while it ran, which is a mistake in kumi. The node has stopped in order.
    #[error("a part of the node failed: {0}; the log says where")]
    PartFailed(String),
    /// The store could not save its data, or had failed before.
    #[error("the store ended badly")]
    StoreEnd(#[source] kumi_server::ServerError),
}
