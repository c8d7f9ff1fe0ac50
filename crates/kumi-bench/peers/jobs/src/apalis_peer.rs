//! `apalis` with `apalis-redis`.

use std::pin::Pin;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use apalis::prelude::*;
use apalis_redis::{Config, RedisStorage};

use crate::client::{Mail, Party, Runs};

type Running = Pin<Box<dyn Future<Output = Result<(), WorkerError>> + Send>>;

#[derive(Clone)]
pub(crate) struct Apalis {
    storage: RedisStorage<Mail>,
    url: String,
}

pub(crate) async fn connect(url: &str) -> Result<Apalis> {
    let connection = apalis_redis::connect(url).await?;
    Ok(Apalis {
        storage: RedisStorage::new(connection),
        url: url.to_owned(),
    })
}

impl Party for Apalis {
    async fn enqueue(&self, mail: Mail) -> Result<()> {
        self.storage
            .clone()
            .push(mail)
            .await
            .map_err(|error| anyhow!("{error}"))
    }

    async fn enqueue_bulk(&self, mails: Vec<Mail>) -> Result<()> {
        self.storage
            .clone()
            .push_bulk(mails)
            .await
            .map_err(|error| anyhow!("{error}"))
    }

    async fn work(&self, concurrency: usize, runs: Arc<Runs>) -> Result<()> {
        // One fetch takes as many tasks as run at once, instead of the default of 10.
        let config = Config::default()
            .queue(self.storage.get_config().queue.clone())
            .batch_size(concurrency);
        let connection = apalis_redis::connect(self.url.as_str()).await?;
        let storage = RedisStorage::<Mail>::new(connection).with_config(config);
        worker(storage, concurrency, runs)
            .await
            .map_err(|error| anyhow!("{error}"))
    }
}

/// A box, since the compiler cannot see through the worker's own types that its future is `Send`.
fn worker(storage: RedisStorage<Mail>, concurrency: usize, runs: Arc<Runs>) -> Running {
    let worker = WorkerBuilder::new(format!("bench-{}", std::process::id()))
        .backend(storage)
        .data(runs)
        .concurrency(concurrency)
        .parallelize(tokio::spawn)
        .build(handle);
    Box::pin(worker.run())
}

async fn handle(mail: Mail, runs: Data<Arc<Runs>>) -> Result<(), BoxDynError> {
    runs.ran(&mail);
    Ok(())
}
