//! The real redis-server that tests of this crate compare with: Debian's package, or the binary that
//! `REDIS_SERVER_BIN` names. It runs on a private Unix socket and is killed when dropped.

pub(crate) mod payload;

use crate::support::client::Client;
use crate::support::frame::Frame;
use crate::support::server::Server;
use std::path::PathBuf;
use std::time::Duration;

/// More than any command of a test takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A running redis-server and one connection to it.
pub(crate) struct Reference {
    client: Client,
    _server: Server,
}

impl Reference {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts it with more flags.
    pub(crate) fn start_with(flags: &[&str]) -> Self {
        let binary = std::env::var_os("REDIS_SERVER_BIN")
            .map_or_else(|| PathBuf::from("/usr/bin/redis-server"), PathBuf::from);
        let mut all = vec!["--enable-debug-command", "yes"];
        all.extend_from_slice(flags);
        let server = Server::start(&binary, &all).expect("Debian's redis-server is installed");
        let client = server.connect(TEST_TIMEOUT).expect("it is ready");
        Self {
            client,
            _server: server,
        }
    }

    /// The reply to one command.
    #[track_caller]
    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Frame {
        self.client.call(args).expect("the reference answers").frame
    }

    /// A reply that has to be a string.
    #[track_caller]
    pub(crate) fn text<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Vec<u8> {
        let frame = self.call(args);
        match frame.text() {
            Some(text) => text.to_vec(),
            None => panic!("{frame:?} is not a string"),
        }
    }

    /// A reply that has to be a number.
    #[track_caller]
    pub(crate) fn number<A: AsRef<[u8]>>(&mut self, args: &[A]) -> i64 {
        match self.call(args) {
            Frame::Integer(number) => number,
            other => panic!("{other:?} is not a number"),
        }
    }
}
