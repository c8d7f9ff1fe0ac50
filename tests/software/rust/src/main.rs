//! Programs of Rust clients: `kumi-software NAME URL`. Each checks its outcome and prints one line that must be the same
//! on kumi-server and on redis-server.

mod fred_client;
mod pools;
mod redis_client;

use anyhow::{Context, Result, bail};
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How long a program waits for something that another connection causes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What a program saw, in order.
#[derive(Default)]
struct Seen(Vec<String>);

impl Seen {
    fn note(&mut self, name: &str, value: impl Debug) {
        self.0.push(format!("{name}={value:?}"));
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let name = words.next().context("takes NAME URL")?;
    let url = words.next().context("takes NAME URL")?;
    let mut seen = Seen::default();
    match name.as_str() {
        "redis" => redis_client::run(&url, &mut seen).await?,
        "fred" => fred_client::run(&url, &mut seen).await?,
        "bb8" => pools::bb8(&url, &mut seen).await?,
        "deadpool" => pools::deadpool(&url, &mut seen).await?,
        _ => bail!("no program is named {name}"),
    }
    println!("{}", seen.0.join(" "));
    Ok(())
}

/// Repeats a check until it holds.
async fn until<F: Future<Output = Result<bool>>>(
    what: &str,
    mut holds: impl FnMut() -> F,
) -> Result<()> {
    let end = Instant::now() + TIMEOUT;
    while !holds().await? {
        if Instant::now() > end {
            bail!("waited too long for {what}");
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}
