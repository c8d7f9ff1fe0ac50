//! ClientHandler: talks with one client, from its first byte to its last.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use crate::commands::{CommandHandler, Reply};
use crate::error::{CommandError, RespError};
use crate::log;
use crate::resp::{self, RespParser};
use crate::session::ClientSession;
use crate::stats::Stats;

/// Serves connections. It has no state of its own for any of them.
pub struct ClientHandler {
    commands: Arc<CommandHandler>,
    stats: Arc<Stats>,
    next_id: AtomicU64,
}

impl ClientHandler {
    /// Given.
    pub fn new(commands: Arc<CommandHandler>, stats: Arc<Stats>) -> ClientHandler {
        ClientHandler { commands, stats, next_id: AtomicU64::new(1) }
    }

    /// Given. Counts and logs the connection around `handle`.
    pub async fn serve(&self, stream: TcpStream, address: SocketAddr) {
        log::info(&format!("{address} connected"));
        let _open = OpenConnection::count(&self.stats);
        // Send every reply at once: the system would wait up to 40 ms to put two of them into one packet.
        let _ = stream.set_nodelay(true);
        match self.handle(stream).await {
            Ok(()) => log::info(&format!("{address} disconnected")),
            Err(error) => log::warning(&format!("{address} closed: {error}")),
        }
    }

    /// Step 1. Answer `+PONG\r\n` to whatever arrives:
    /// 1. `let mut stream = stream;`, and a buffer: `let mut buffer = [0; 1024];`. Then in a loop:
    ///    `stream.read(&mut buffer).await?` gives the number of bytes;
    /// 2. 0 bytes mean that the client closed the connection: return `Ok(())`;
    /// 3. otherwise `stream.write_all(b"+PONG\r\n").await?`, and begin again.
    ///
    /// Step 2 replaces all of it:
    /// 1. split: `let (reader, mut writer) = stream.into_split();`, and wrap the reader in `BufReader::new`;
    /// 2. in a loop, `match RespParser::parse_command(&mut reader).await`;
    /// 3. `Ok(Some(command))`: write `self.reply_to(&command)`; `Ok(None)`: return `Ok(())`;
    /// 4. `Err(error)`: write `resp::encode_error(&error.to_string())`, then return the error.
    ///
    /// Step 6 replaces it again, with a session and two parts that run side by side in `tokio::join!`:
    /// 1. `ClientSession::new(id)` gives a session and the receiving end of its message queue; the id is
    ///    `self.next_id.fetch_add(1, Ordering::Relaxed)`;
    /// 2. one part takes bytes from the queue (`recv().await`) and writes them, until there is `None`;
    /// 3. the other awaits `self.handle_commands(...)`, then calls `self.commands.forget(&mut session)`. It owns the
    ///    session (`async move`), so that the queue ends with it.
    async fn handle(&self, stream: TcpStream) -> Result<(), RespError> {
        todo!("step 1: client.rs")
    }

    /// Given, for step 6. Reads commands until QUIT or the end; every reply goes into the session's message queue.
    async fn handle_commands(
        &self,
        reader: &mut BufReader<OwnedReadHalf>,
        session: &mut ClientSession,
    ) -> Result<(), RespError> {
        loop {
            match RespParser::parse_command(reader).await {
                Ok(Some(command)) => {
                    for reply in self.replies_to(session, &command) {
                        session.send(reply).await?;
                    }
                    if command.first().is_some_and(|name| name.eq_ignore_ascii_case(b"QUIT")) {
                        return Ok(());
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    session.send(resp::encode_error(&error.to_string())).await?;
                    return Err(error);
                }
            }
        }
    }

    /// Given. Executes one command; the result is what to write to the client.
    pub fn reply_to(&self, command: &[Vec<u8>]) -> Vec<u8> {
        self.caught(|| self.commands.execute(command).map(|reply| vec![reply])).concat()
    }

    /// Given, for step 6. The same for a command that may subscribe: it can have several replies.
    fn replies_to(&self, session: &mut ClientSession, command: &[Vec<u8>]) -> Vec<Vec<u8>> {
        self.caught(|| self.commands.execute_in_session(session, command))
    }

    /// Given. Encodes the replies. An error, even a panic, is a reply too: the connection stays open.
    fn caught(&self, execute: impl FnOnce() -> Result<Vec<Reply>, CommandError>) -> Vec<Vec<u8>> {
        self.stats.commands.fetch_add(1, Ordering::Relaxed);
        let encoded = catch_unwind(AssertUnwindSafe(|| match execute() {
            Ok(replies) => replies.iter().map(resp::encode_reply).collect(),
            Err(error) => {
                log::warning(&format!("command failed: {error}"));
                vec![resp::encode_error(&error.to_string())]
            }
        }));
        encoded.unwrap_or_else(|_| vec![resp::encode_error("internal error")])
    }
}

/// Given. Counts a connection for as long as it lives, however it ends.
struct OpenConnection<'a>(&'a Stats);

impl OpenConnection<'_> {
    fn count(stats: &Stats) -> OpenConnection<'_> {
        stats.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(stats)
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
