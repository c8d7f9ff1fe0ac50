//! `oxana`, which deletes a job when it succeeds.

use std::sync::Arc;

use anyhow::Result;
use oxana::{Job, JobContext, Queue, QueueConcurrency, QueueConfig, QueueKind, Storage};

use crate::client::{Mail, Party, Runs};

impl Job for Mail {}

struct Mails;

impl Queue for Mails {
    fn to_config() -> QueueConfig {
        QueueConfig {
            kind: QueueKind::Static {
                key: "mail".to_owned(),
            },
            concurrency: QueueConcurrency::Fixed(1),
            throttle: None,
        }
    }
}

#[derive(Clone)]
struct Shared(Arc<Runs>);

struct MailWorker(Shared);

impl oxana::FromContext<Shared> for MailWorker {
    fn from_context(context: &Shared) -> Self {
        Self(context.clone())
    }
}

#[async_trait::async_trait]
impl oxana::Worker<Mail> for MailWorker {
    type Error = std::convert::Infallible;

    async fn process(&self, mail: Mail, _: &JobContext) -> Result<(), Self::Error> {
        self.0.0.ran(&mail);
        Ok(())
    }
}

#[derive(Clone)]
pub(crate) struct Oxana(Storage);

pub(crate) fn connect(url: &str) -> Result<Oxana> {
    // As many connections as its own benchmark has for the largest concurrency here.
    let storage = Storage::builder().max_pool_size(128);
    Ok(Oxana(storage.build_from_redis_url(url)?))
}

impl Party for Oxana {
    async fn enqueue(&self, mail: Mail) -> Result<()> {
        self.0.enqueue(Mails, mail).await?;
        Ok(())
    }

    async fn enqueue_bulk(&self, mails: Vec<Mail>) -> Result<()> {
        self.0.enqueue_list(Mails, mails).await?;
        Ok(())
    }

    async fn work(&self, concurrency: usize, runs: Arc<Runs>) -> Result<()> {
        self.0
            .runtime(Shared(runs))
            .queue_with_concurrency::<Mails>(concurrency)
            .worker::<MailWorker, Mail>()
            .run()
            .await?;
        Ok(())
    }
}
