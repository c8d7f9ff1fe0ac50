//! A search that takes longer than the time in which a unit expects progress, and goes on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use kumi_muf::{Error, Muf};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{UnixListener, UnixStream};

use crate::support::{Place, Server};

/// How long `units` waits for a search that does not go on.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(5);
/// SCAN looks at 1,000 keys each time.
const STEPS: u32 = 12;
/// How much later a step of a search reaches the server.
const DELAY: Duration = Duration::from_millis(600);

/// A path to the server on which each step of a search is late.
struct SlowPath {
    task: tokio::task::JoinHandle<()>,
    dir: tempfile::TempDir,
}

impl SlowPath {
    fn to(server: &Server, delay: Duration) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let listener = UnixListener::bind(dir.path().join("s")).expect("a socket");
        let target = PathBuf::from(server.url().trim_start_matches("unix://"));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let target = target.clone();
                tokio::spawn(async move {
                    if let Ok(server) = UnixStream::connect(target).await {
                        carry(client, server, delay).await;
                    }
                });
            }
        });
        Self { task, dir }
    }

    fn url(&self) -> String {
        format!("unix://{}", self.dir.path().join("s").display())
    }
}

impl Drop for SlowPath {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Whether this is a SCAN, and not the one that asks only whether SCAN is permitted.
fn is_search(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    text.contains("SCAN") && !text.contains("kumi:none")
}

async fn carry(client: UnixStream, server: UnixStream, delay: Duration) {
    let (mut requests, mut to_client) = client.into_split();
    let (mut replies, mut to_server) = server.into_split();
    let forward = async {
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = requests.read(&mut bytes).await {
            if is_search(&bytes[..count]) {
                tokio::time::sleep(delay).await;
            }
            if to_server.write_all(&bytes[..count]).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = forward => {}
        _ = copy(&mut replies, &mut to_client) => {}
    }
}

fn fill(server: &Server) {
    let keys = (STEPS * 1_000).to_string();
    let script = "for i = 1, tonumber(ARGV[1]) do redis.call('SET', 'k' .. i, '') end";
    server.cli(&["EVAL", script, "0", &keys]);
    assert_eq!(server.cli(&["DBSIZE"]), keys);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_search_for_units_is_waited_for_while_it_goes_on() {
    let each = Server::each().map(|server| async move {
        fill(&server);
        let _other = server.unit("other").await;
        let path = SlowPath::to(&server, DELAY);
        let web = Muf::builder(&path.url(), "web").connect().await;
        let web = web.expect("a connection");
        let began = Instant::now();
        let units = web.units().await.expect("units");
        assert!(
            began.elapsed() > PROGRESS_TIMEOUT,
            "the search was not slow"
        );
        let names: Vec<&str> = units.iter().map(|it| it.unit.as_str()).collect();
        assert_eq!(names, ["other", "web"]);
    });
    futures_util::future::join_all(each).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_stands_still_is_an_error() {
    let server = Server::each().next().expect("a server");
    fill(&server);
    let path = SlowPath::to(&server, PROGRESS_TIMEOUT * 4);
    let web = Muf::builder(&path.url(), "web").connect().await;
    let listed = web.expect("a connection").units().await;
    let error = listed.expect_err("no list");
    assert!(
        matches!(
            error,
            Error::SearchUnfinished { .. } | Error::Disconnected { .. }
        ),
        "{error}"
    );
}
