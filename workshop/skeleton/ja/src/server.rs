//! TcpServer: 接続を受け入れ、接続ごとにタスクを起動し、終了時にすべての接続をクローズします。

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;

use crate::client::ClientHandler;
use crate::log;

/// 待ち受けソケットと、開いているすべての接続のタスクです。
pub struct TcpServer {
    listener: TcpListener,
    client_handler: Arc<ClientHandler>,
    connections: Mutex<JoinSet<()>>,
    stopping: Notify,
}

impl TcpServer {
    /// 実装済み。待ち受けを開始します。ポート 0 は空いているポートを意味します。
    pub async fn bind(address: impl ToSocketAddrs, client_handler: ClientHandler) -> io::Result<TcpServer> {
        let listener = TcpListener::bind(address).await?;
        log::info(&format!("listening on {}", listener.local_addr()?));
        let connections = Mutex::new(JoinSet::new());
        let client_handler = Arc::new(client_handler);
        Ok(TcpServer { listener, client_handler, connections, stopping: Notify::new() })
    }

    /// 実装済み。待ち受けアドレス。
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// 実装済み。`stop` が呼ばれるかエラーになるまで、接続を受け入れ続けます。
    pub async fn run(&self) -> io::Result<()> {
        let mut connections = self.connections.lock().await;
        tokio::select! {
            result = self.accept_clients(&mut connections) => result,
            () = self.stopping.notified() => Ok(()),
        }
    }

    /// 実装済み。全接続のタスクを終了し、ソケットをクローズします。
    pub async fn stop(&self) {
        self.stopping.notify_one();
        self.connections.lock().await.shutdown().await;
        log::info("stopped");
    }

    /// ステップ 1。次の処理を繰り返します。
    /// 1. クライアントを待つ: `self.listener.accept().await?` でストリームとアドレスを受け取る。
    /// 2. `self.client_handler` の `Arc` を clone する。
    /// 3. `connections.spawn(async move { ... })` でタスクを起動し、その中で `client_handler.serve(stream, address)` を await する。
    /// 4. 終わったタスクを片付ける: `while connections.try_join_next().is_some() {}`。
    async fn accept_clients(&self, connections: &mut JoinSet<()>) -> io::Result<()> {
        todo!("step 1: server.rs")
    }
}
