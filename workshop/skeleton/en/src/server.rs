//! TcpServer: accepts connections, starts a task for each, and closes them all at the end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;

use crate::client::ClientHandler;
use crate::log;

/// A listening socket and the tasks of all open connections.
pub struct TcpServer {
    listener: TcpListener,
    client_handler: Arc<ClientHandler>,
    connections: Mutex<JoinSet<()>>,
    stopping: Notify,
}

impl TcpServer {
    /// Given. Starts to listen; port 0 means any free port.
    pub async fn bind(address: impl ToSocketAddrs, client_handler: ClientHandler) -> io::Result<TcpServer> {
        let listener = TcpListener::bind(address).await?;
        log::info(&format!("listening on {}", listener.local_addr()?));
        let connections = Mutex::new(JoinSet::new());
        let client_handler = Arc::new(client_handler);
        Ok(TcpServer { listener, client_handler, connections, stopping: Notify::new() })
    }

    /// Given. Where the server listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Given. Accepts connections until `stop` is called or accepting fails.
    pub async fn run(&self) -> io::Result<()> {
        let mut connections = self.connections.lock().await;
        tokio::select! {
            result = self.accept_clients(&mut connections) => result,
            () = self.stopping.notified() => Ok(()),
        }
    }

    /// Given. Ends every connection's task, which closes its socket.
    pub async fn stop(&self) {
        self.stopping.notify_one();
        self.connections.lock().await.shutdown().await;
        log::info("stopped");
    }

    /// Step 1. In a loop:
    /// 1. wait for a client: `self.listener.accept().await?` gives a stream and an address;
    /// 2. clone the `Arc` of `self.client_handler`;
    /// 3. `connections.spawn(async move { ... })` a task that awaits `client_handler.serve(stream, address)`;
    /// 4. forget tasks that have ended: `while connections.try_join_next().is_some() {}`.
    async fn accept_clients(&self, connections: &mut JoinSet<()>) -> io::Result<()> {
        todo!("step 1: server.rs")
    }
}
