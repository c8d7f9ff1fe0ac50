//! `kumi up` with all roles: a store, membership, HTTP, a worker, a unit and a schedule, on free ports of loopback.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::store::servers::{Server, Stage, end_of_log, free_address};

/// How long a node may take until it is ready.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How often a starting node is asked whether it is ready, and how long one question may take.
const ASK_AGAIN: Duration = Duration::from_millis(2);
const ASK_LIMIT: Duration = Duration::from_secs(10);

/// A node that is ready. Dropping it kills it.
pub(super) struct Up {
    /// Its process, at the address of its store.
    pub(super) server: Server,
    pub(super) http: SocketAddr,
    /// From the start of the process until it was ready.
    pub(super) ready_within: Duration,
}

impl Up {
    /// Starts a node that keeps nothing, and waits until it is ready.
    pub(super) fn start(stage: &Stage, program: &Path) -> Result<Up> {
        let directory = stage.subdirectory("up")?;
        let (store, http) = (free_address()?, free_address()?);
        let membership = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let config = directory.join("kumi.kdl");
        let text = config_text(&directory, membership, store, http);
        fs::write(&config, text).context("cannot write the configuration")?;
        let log = directory.join("log");
        let output = fs::File::create(&log).context("cannot make a log file")?;
        let mut command = Command::new(program);
        command
            .args(["up", "--config"])
            .arg(&config)
            .env("XDG_STATE_HOME", &directory)
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("cannot share a log file")?)
            .stderr(output);
        let begun = Instant::now();
        let child = stage.spawn_server(&mut command);
        let child = child.with_context(|| format!("cannot start {command:?}"))?;
        let server = Server::adopt(child, store, "kumi");
        while begun.elapsed() < START_LIMIT {
            if get(http, "/readyz").is_ok_and(|reply| reply.starts_with("HTTP/1.1 200")) {
                return Ok(Up {
                    server,
                    http,
                    ready_within: begun.elapsed(),
                });
            }
            if let Some(status) = server.wait(Duration::ZERO)? {
                bail!(
                    "kumi up ended ({status}); the end of its log: {}",
                    end_of_log(&log)
                );
            }
            thread::sleep(ASK_AGAIN);
        }
        bail!(
            "kumi up was not ready within {} s; the end of its log: {}",
            START_LIMIT.as_secs(),
            end_of_log(&log)
        )
    }
}

fn config_text(
    directory: &Path,
    membership: SocketAddr,
    store: SocketAddr,
    http: SocketAddr,
) -> String {
    let state: PathBuf = directory.join("state");
    format!(
        r#"node "a" {{
    bind "127.0.0.1"
    port {}
    preset "local"
    state-dir {:?}
    log-level "warn"
}}
store ephemeral=#true {{
    port {}
}}
http {{
    port {}
}}
work "bench" exec="cat" concurrency=4
serve "bench.*" exec="cat"
cron "bench" "0 0 1 1 *"
"#,
        membership.port(),
        state.display().to_string(),
        store.port(),
        http.port(),
    )
}

/// The reply to a GET, whole.
pub(super) fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ASK_LIMIT)?;
    stream.set_read_timeout(Some(ASK_LIMIT))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_one_that_nodes_take() {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let text = config_text(Path::new("/tmp/a b"), at(7400), at(6379), at(7480));
        let config = kumi_node::config::NodeConfig::parse("kumi.kdl", &text);
        let config = config.unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(config.node.port, Some(7400));
        assert_eq!(config.http.port, Some(7480));
        assert_eq!(config.node.state_dir, Some("/tmp/a b/state".into()));
        assert_eq!(
            (config.work.len(), config.serve.len(), config.cron.len()),
            (1, 1, 1)
        );
    }
}
