//! The least that a wake-up takes: LPUSH, BLPOP on another connection, and one more round trip there, which any queue needs
//! whose claims carry a token. What a queue takes beyond it is its own.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::jobs::client::{Mail, Party, Runs};
use crate::wire;

const LIST: &[u8] = b"bare";
/// Lines of the reply to BLPOP: the array, then the name and the task with their lengths.
const POPPED_LINES: usize = 5;

/// A list without a queue around it.
#[derive(Clone)]
pub(super) struct BareList {
    address: Arc<str>,
    pushes: Arc<Mutex<Lines>>,
}

struct Lines(BufReader<TcpStream>);

impl Lines {
    async fn connect(address: &str) -> Result<Lines> {
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Lines(BufReader::new(stream)))
    }

    /// Sends a command and returns the last line of its reply, which has so many.
    async fn call(&mut self, command: &[&[u8]], lines: usize) -> Result<String> {
        let mut bytes = Vec::new();
        wire::push_command(&mut bytes, command);
        self.0.get_mut().write_all(&bytes).await?;
        let mut line = String::new();
        for _ in 0..lines {
            line.clear();
            let read = self.0.read_line(&mut line).await?;
            anyhow::ensure!(read > 0, "the server closed the connection");
            anyhow::ensure!(!line.starts_with('-'), "the server replied {line}");
        }
        Ok(line)
    }
}

impl BareList {
    pub(super) async fn connect(url: &str) -> Result<BareList> {
        let address = url.trim_start_matches("redis://").trim_end_matches('/');
        Ok(BareList {
            address: address.into(),
            pushes: Arc::new(Mutex::new(Lines::connect(address).await?)),
        })
    }
}

impl Party for BareList {
    async fn enqueue(&self, mail: Mail) -> Result<()> {
        let task = serde_json::to_vec(&mail)?;
        let mut pushes = self.pushes.lock().await;
        pushes.call(&[b"LPUSH", LIST, &task], 1).await?;
        Ok(())
    }

    async fn enqueue_bulk(&self, mails: Vec<Mail>) -> Result<()> {
        for mail in mails {
            self.enqueue(mail).await?;
        }
        Ok(())
    }

    async fn work(&self, _: usize, runs: Arc<Runs>) -> Result<()> {
        let mut lines = Lines::connect(&self.address).await?;
        loop {
            let task = lines.call(&[b"BLPOP", LIST, b"0"], POPPED_LINES).await?;
            lines.call(&[b"EXISTS", LIST], 1).await?;
            runs.ran(&serde_json::from_str(&task)?);
        }
    }
}
