//! Drives a server with generated requests and reads the CPU time it used.
//!
//! The batches of all connections are made first, then written one after the other, then all replies are read: the server
//! finds many ready sockets. A client that makes each batch when it writes it, as redis-benchmark does, is slower than a
//! fast server, and that server sleeps and wakes for every socket. Nor can redis-benchmark say "from here to here plus
//! ninety-nine", or acknowledge what it was just given.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::store::servers::Server;
use crate::wire::Connection;

/// Connections to each server. Their unread replies fit into socket buffers, so writing to all of them never deadlocks.
pub(crate) const CONNECTIONS: usize = 50;
/// Lets the server finish what it does after the last reply.
const SETTLE: Duration = Duration::from_millis(20);

/// What one run used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) cpu_us_per_request: f64,
    /// Time the server was ready but had no core, in percent of the time it ran.
    pub(crate) waited_percent: f64,
}

/// Connections to one server.
pub(crate) struct Client {
    connections: Vec<Connection>,
    /// The next batch of each.
    batches: Vec<Vec<u8>>,
}

impl Client {
    pub(crate) fn open(server: &Server) -> Result<Client> {
        let connections: Result<Vec<Connection>> = (0..CONNECTIONS)
            .map(|_| Connection::open(server.address()))
            .collect();
        Ok(Client {
            connections: connections?,
            batches: vec![Vec::new(); CONNECTIONS],
        })
    }

    /// Sends about `requests` requests, `pipeline` in each write, and says what they cost the server.
    /// `next` appends one request for a connection.
    pub(crate) fn measure(
        &mut self,
        server: &Server,
        requests: usize,
        pipeline: usize,
        next: impl FnMut(usize, &mut Vec<u8>),
    ) -> Result<Usage> {
        let before = server.cpu_time()?;
        let sent = self
            .send(requests, pipeline, next)
            .with_context(|| format!("cannot run a load against {}", server.name()))?;
        thread::sleep(SETTLE);
        let used = server.cpu_time()?.since(before);
        Ok(Usage {
            cpu_us_per_request: used.busy_ns as f64 / 1000.0 / sent as f64,
            waited_percent: used.waited_ns as f64 / used.busy_ns.max(1) as f64 * 100.0,
        })
    }

    /// Sends the requests, unmeasured, and returns how many there were: whole batches to every connection.
    pub(crate) fn send(
        &mut self,
        requests: usize,
        pipeline: usize,
        mut next: impl FnMut(usize, &mut Vec<u8>),
    ) -> Result<usize> {
        let per_round = pipeline * self.connections.len();
        let rounds = requests.div_ceil(per_round);
        for _ in 0..rounds {
            for (number, batch) in self.batches.iter_mut().enumerate() {
                batch.clear();
                for _ in 0..pipeline {
                    next(number, batch);
                }
            }
            for (connection, batch) in self.connections.iter_mut().zip(&self.batches) {
                connection.send(batch)?;
            }
            for connection in &mut self.connections {
                connection.replies(pipeline)?;
            }
        }
        Ok(rounds * per_round)
    }
}
