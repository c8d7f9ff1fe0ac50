//! The client of one Rust peer of `kumi-bench jobs`. Takes: peer, Redis URL, operation, tasks, concurrency.
//!
//! The peers are used as their own documentation has it. Those that keep a task's status keep it for all tasks.

#[cfg(feature = "apalis")]
mod apalis_peer;
#[cfg(feature = "bullmq")]
mod bullmq_peer;
#[path = "../../../src/jobs/client.rs"]
mod client;
#[cfg(feature = "oxana")]
mod oxana_peer;

use anyhow::{Context, Result, bail};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [peer, url, operation, count, concurrency] = &words[..] else {
        bail!("takes PEER URL OPERATION TASKS CONCURRENCY");
    };
    let count = count.parse().context("TASKS is not a number")?;
    let concurrency = concurrency.parse().context("CONCURRENCY is not a number")?;
    match peer.as_str() {
        #[cfg(feature = "apalis")]
        "apalis" => {
            client::run(
                apalis_peer::connect(url).await?,
                operation,
                count,
                concurrency,
            )
            .await
        }
        #[cfg(feature = "bullmq")]
        "bullmq-rs" => {
            client::run(
                bullmq_peer::connect(url).await?,
                operation,
                count,
                concurrency,
            )
            .await
        }
        #[cfg(feature = "oxana")]
        "oxana" => client::run(oxana_peer::connect(url)?, operation, count, concurrency).await,
        _ => bail!("no peer is named {peer}"),
    }
}
