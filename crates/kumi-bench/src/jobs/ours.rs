//! Kumi's client: `kumi-bench jobs-client`, started by `kumi-bench jobs`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kumi_jobs::{Context, Jobs, RedisOptions, Settings, Task, TaskError, Worker};

use crate::args::JobsClientArgs;
use crate::jobs::client::{self, Mail, Party, Runs};

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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    runtime.block_on(async {
        let settings = Settings {
            keep_succeeded: args.keep,
            keep_succeeded_for: Duration::from_secs(86_400),
            ..Settings::default()
        };
        let options = RedisOptions::from_url(&args.url)?.settings(settings);
        let jobs = Jobs::with_queue(Arc::new(options.connect().await?));
        client::run(Kumi(jobs), &args.operation, args.count, args.concurrency).await
    })
}
