//! `bullmq-official`, BullMQ's own port to Rust, with the same scripts and keys as on node.

use std::sync::Arc;

use anyhow::Result;
use bullmq::options::RedisConnectionOptions;
use bullmq::{BulkJob, Job, Queue, QueueOptions, Worker, WorkerOptions};

use crate::client::{Mail, Party, Runs};

const NAME: &str = "mail";

#[derive(Clone)]
pub(crate) struct BullMq {
    queue: Arc<Queue>,
    url: String,
}

pub(crate) async fn connect(url: &str) -> Result<BullMq> {
    let connection = RedisConnectionOptions::new().url(url);
    let options = QueueOptions::new().connection(connection);
    Ok(BullMq {
        queue: Arc::new(Queue::with_options(NAME, options).await?),
        url: url.to_owned(),
    })
}

impl Party for BullMq {
    async fn enqueue(&self, mail: Mail) -> Result<()> {
        self.queue.add(NAME, mail).await?;
        Ok(())
    }

    async fn enqueue_bulk(&self, mails: Vec<Mail>) -> Result<()> {
        let jobs = mails
            .into_iter()
            .map(|mail| BulkJob::new(NAME, mail))
            .collect();
        self.queue.add_bulk(jobs).await?;
        Ok(())
    }

    async fn work(&self, concurrency: usize, runs: Arc<Runs>) -> Result<()> {
        let handle = move |job: Job, _| {
            let runs = runs.clone();
            async move {
                let mail: Mail = serde_json::from_value(job.data().clone())
                    .map_err(|error| bullmq::Error::InvalidConfig(error.to_string()))?;
                runs.ran(&mail);
                Ok(serde_json::Value::Null)
            }
        };
        let connection = RedisConnectionOptions::new().url(&self.url);
        let options = WorkerOptions::new()
            .connection(connection)
            .concurrency(concurrency);
        // It runs by itself, for as long as this is kept.
        let _worker = Worker::with_options(NAME, handle, options).await?;
        std::future::pending().await
    }
}
