//! ミニ Redis です。1 ファイルに 1 部品。右の数字は、そのファイルを実装するステップです。
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
//! そのほかのファイルは実装済みです: clock.rs, error.rs, glob.rs, limits.rs, log.rs, main.rs, stats.rs.

// 未実装の部分があるあいだは未使用の名前が残ります。この行はその警告を抑えます。
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

/// サーバの全部品を互いに接続したものです。
pub struct App {
    /// すべての接続が共有するデータです。
    pub store: SharedStore,
    /// ヘルスモニタリングの数値です。
    pub stats: Arc<Stats>,
    /// コマンドを実行します。
    pub commands: Arc<CommandHandler>,
    expiry: Arc<ExpiryManager>,
}

impl App {
    /// 実際の時計を使う構成です。
    pub fn new() -> App {
        App::with_clock(Clock::system())
    }

    /// 時計を選べる構成です。テストでは時刻を手で進めます。
    pub fn with_clock(clock: Clock) -> App {
        let store = Arc::new(Mutex::new(DataStore::new()));
        let stats = Arc::new(Stats::default());
        let pubsub = Arc::new(PubSubManager::default());
        let expiry = Arc::new(ExpiryManager::new(clock, stats.clone(), pubsub.clone()));
        let commands = CommandHandler::new(store.clone(), expiry.clone(), pubsub, stats.clone());
        App { store, stats, commands: Arc::new(commands), expiry }
    }

    /// 1 つの接続を担当する部品です。
    pub fn client_handler(&self) -> ClientHandler {
        ClientHandler::new(self.commands.clone(), self.stats.clone())
    }

    /// ステップ 5 のバックグラウンドタスクを起動します。
    pub fn start_active_expiry(&self) {
        tokio::spawn(self.expiry.clone().start_active_expiry(self.store.clone()));
    }
}

impl Default for App {
    fn default() -> App {
        App::new()
    }
}
