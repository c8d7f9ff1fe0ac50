//! Running a server: from a configuration and its listeners to the end of the last connection.

use crate::front::Front;
use crate::listen::Listeners;
use crate::shutdown::Shutdown;
use kumi_store::{Config, Store};
use std::io;
use std::path::PathBuf;

/// What a server is started with.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Every directive.
    pub config: Config,
    /// The file the directives came from, which CONFIG REWRITE writes to.
    pub file: Option<PathBuf>,
}

impl From<Config> for ServerConfig {
    fn from(config: Config) -> Self {
        Self { config, file: None }
    }
}

/// Why a server could not start or go on. The data it held is gone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The system refused something the loop cannot do without.
    #[error("the event loop failed")]
    Loop(#[from] io::Error),
}

/// Serves until it is asked to stop, on the calling thread.
///
/// # Errors
/// The event loop could not be set up or failed.
pub fn run(
    config: impl Into<ServerConfig>,
    listeners: Listeners,
    shutdown: &Shutdown,
) -> Result<(), ServerError> {
    let config = config.into();
    let mut front = Front::new(&config, listeners, shutdown.clone())?;
    let now = front.clock.read();
    let mut store = Store::new(config.config, fastrand::Rng::new(), now);
    let result = serve(&mut front, &mut store);
    shutdown.attach(None);
    result
}

fn serve(front: &mut Front, store: &mut Store) -> Result<(), ServerError> {
    while !front.shutdown.is_requested() && front.shutdown_request.is_none() {
        let patience = front.patience(store);
        front.turn(store, patience)?;
    }
    Ok(())
}
