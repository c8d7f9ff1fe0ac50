//! Kumi's client: `kumi-bench jobs-client`, started by `kumi-bench jobs`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kumi_jobs::{
    Context, ENQUEUE_LIMIT, Jobs, Queue as _, RedisOptions, Retention, Task, TaskError, Worker,
};

use crate::args::JobsClientArgs;
use crate::jobs::bare::BareList;
use crate::jobs::client::{self, Mail, Party, Runs};
use crate::jobs::scripts;

const _: () = assert!(client::BULK == ENQUEUE_LIMIT, "a bulk is one script");

impl Task for Mail {
    const TYPE: &'static str = "mail";
    type Output = ();
}

async fn handle(mail: Mail, cx: Context<Arc<Runs>>) -> Result<(), TaskError> {
    cx.state().ran(&mail);
    Ok(())
}

#[derive(Clone)]
pub(super) struct Kumi(Jobs);

impl Kumi {
    pub(super) fn new(jobs: Jobs) -> Kumi {
        Kumi(jobs)
    }
}

impl Party for Kumi {
    async fn enqueue(&self, mail: Mail) -> Result<()> {
        self.0.enqueue(mail).await?;
        Ok(())
    }

    async fn enqueue_bulk(&self, mails: Vec<Mail>) -> Result<()> {
        self.0.enqueue_all(mails).await?;
        Ok(())
    }

    async fn work(&self, concurrency: usize, runs: Arc<Runs>) -> Result<()> {
        Worker::new(&self.0, runs)
            .handle(handle)
            .concurrency(concurrency)
            .run_until(std::future::pending::<()>())
            .await?;
        Ok(())
    }
}

/// Runs the client.
pub(crate) fn run(args: &JobsClientArgs) -> Result<()> {
    let mut builder = match args.on_threads {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    runtime.block_on(async {
        let retention = Retention {
            succeeded: args.keep,
            succeeded_for: Duration::from_secs(86_400),
            ..Retention::default()
        };
        if args.bare {
            let list = BareList::connect(&args.url).await?;
            return client::run(list, &args.operation, args.count, args.concurrency).await;
        }
        let options = RedisOptions::from_url(&args.url)?;
        let queue = Arc::new(options.connect().await?);
        queue.keep(retention).await?;
        if args.operation == "scripts" {
            return scripts::run(queue, &args.url, args.count).await;
        }
        let kumi = Kumi(Jobs::with_queue(queue));
        client::run(kumi, &args.operation, args.count, args.concurrency).await
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_of_the_peers_can_include_the_client() {
        let client = include_str!("client.rs");
        for name in ["kumi_", "crate::"] {
            assert!(!client.contains(name), "the peers have no {name}");
        }
    }
}
