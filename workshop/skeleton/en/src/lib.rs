//! A mini Redis. One file per part; the step that fills it in stands behind it.
//!
//! ```text
//! server.rs    TcpServer        1
//! client.rs    ClientHandler    1, 2, 6
//! resp.rs      RespParser       2
//! commands.rs  CommandHandler   3, 4, 6, 7
//! store.rs     DataStore        3, 4
//! expiry.rs    ExpiryManager    4, 5, 7
//! session.rs   ClientSession    6
//! pubsub.rs    PubSubManager    6, 7
//! ```
//!
//! All other files are given: clock.rs, error.rs, glob.rs, limits.rs, log.rs, main.rs, stats.rs.

// While parts are missing, names are unused. This line keeps the compiler quiet about that.
#![allow(unused)]

use std::sync::{Arc, Mutex};

pub mod client;
pub mod clock;
pub mod commands;
pub mod error;
pub mod expiry;
pub mod glob;
pub mod limits;
pub mod log;
pub mod pubsub;
pub mod resp;
pub mod server;
pub mod session;
pub mod stats;
pub mod store;

use client::ClientHandler;
use clock::Clock;
use commands::CommandHandler;
use expiry::ExpiryManager;
use pubsub::PubSubManager;
use stats::Stats;
use store::{DataStore, SharedStore};

/// All parts of the server, connected with each other.
pub struct App {
    /// The data that all connections share.
    pub store: SharedStore,
    /// The health figures.
    pub stats: Arc<Stats>,
    /// Runs commands.
    pub commands: Arc<CommandHandler>,
    expiry: Arc<ExpiryManager>,
}

impl App {
    /// A server's parts with the real clock.
    pub fn new() -> App {
        App::with_clock(Clock::system())
    }

    /// The same with a clock of your choice; the tests move time by hand.
    pub fn with_clock(clock: Clock) -> App {
        let store = Arc::new(Mutex::new(DataStore::new()));
        let stats = Arc::new(Stats::default());
        let pubsub = Arc::new(PubSubManager::default());
        let expiry = Arc::new(ExpiryManager::new(clock, stats.clone(), pubsub.clone()));
        let commands = CommandHandler::new(store.clone(), expiry.clone(), pubsub, stats.clone());
        App { store, stats, commands: Arc::new(commands), expiry }
    }

    /// What serves one connection.
    pub fn client_handler(&self) -> ClientHandler {
        ClientHandler::new(self.commands.clone(), self.stats.clone())
    }

    /// Starts the background task of step 5.
    pub fn start_active_expiry(&self) {
        tokio::spawn(self.expiry.clone().start_active_expiry(self.store.clone()));
    }
}

impl Default for App {
    fn default() -> App {
        App::new()
    }
}
