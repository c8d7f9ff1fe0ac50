//! `bb8` and `deadpool` over the `redis` crate: many tasks share few connections, take a lock by script, and count.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use redis::aio::ConnectionLike;
use redis::{AsyncCommands, Script};

use crate::Seen;

const CONNECTIONS: u32 = 5;
const TASKS: i64 = 40;
const ROUNDS: i64 = 5;

/// Tasks inside the section that the lock protects.
static INSIDE: AtomicI64 = AtomicI64::new(0);

pub async fn bb8(url: &str, seen: &mut Seen) -> Result<()> {
    let manager = bb8_redis::RedisConnectionManager::new(url)?;
    let pool = bb8_redis::bb8::Pool::builder()
        .max_size(CONNECTIONS)
        .build(manager)
        .await?;
    let tasks = (0..TASKS).map(|task| {
        let pool = pool.clone();
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                let mut connection = pool.get().await?;
                exchange(&mut *connection, task, round).await?;
            }
            anyhow::Ok(())
        })
    });
    for task in futures_util::future::join_all(tasks).await {
        task??;
    }
    ensure!(
        pool.state().connections <= CONNECTIONS,
        "too many connections"
    );
    let mut connection = pool.get().await?;
    outcome(&mut *connection, seen).await
}

pub async fn deadpool(url: &str, seen: &mut Seen) -> Result<()> {
    let pool = deadpool_redis::Config::from_url(url)
        .builder()?
        .max_size(CONNECTIONS as usize)
        .runtime(deadpool_redis::Runtime::Tokio1)
        .build()?;
    let tasks = (0..TASKS).map(|task| {
        let pool = pool.clone();
        tokio::spawn(async move {
            for round in 0..ROUNDS {
                let mut connection = pool.get().await?;
                exchange(&mut connection, task, round).await?;
            }
            anyhow::Ok(())
        })
    });
    for task in futures_util::future::join_all(tasks).await {
        task??;
    }
    ensure!(
        pool.status().size <= CONNECTIONS as usize,
        "too many connections"
    );
    let mut connection = pool.get().await?;
    outcome(&mut connection, seen).await
}

/// One round of a task: counts by pipeline, then changes a total under a lock, reading and writing it in two steps.
async fn exchange<C>(connection: &mut C, task: i64, round: i64) -> Result<()>
where
    C: ConnectionLike + Send + Sync,
{
    let (count,): (i64,) = redis::pipe()
        .atomic()
        .hincr("counts", task, 1)
        .query_async(connection)
        .await?;
    ensure!(count == round + 1, "task {task} counts {count}");
    let owner = format!("{task}:{round}");
    loop {
        let taken: Option<String> = redis::cmd("SET")
            .arg(&["lock", &owner, "NX", "PX", "30000"])
            .query_async(connection)
            .await?;
        if taken.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    ensure!(
        INSIDE.fetch_add(1, Ordering::SeqCst) == 0,
        "two tasks hold the lock"
    );
    let total: Option<i64> = connection.get("total").await?;
    let _: () = connection.set("total", total.unwrap_or(0) + task).await?;
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    let released: i64 = Script::new(
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
    )
    .key("lock")
    .arg(&owner)
    .invoke_async(connection)
    .await?;
    ensure!(released == 1, "the lock of {owner} was lost");
    Ok(())
}

async fn outcome<C>(connection: &mut C, seen: &mut Seen) -> Result<()>
where
    C: ConnectionLike + Send + Sync,
{
    let total: i64 = connection.get("total").await?;
    ensure!(
        total == TASKS * (TASKS - 1) / 2 * ROUNDS,
        "the total is {total}"
    );
    let tasks: i64 = connection.hlen("counts").await?;
    let counts: Vec<i64> = connection.hvals("counts").await?;
    seen.note("total", total);
    seen.note(
        "tasks",
        (
            tasks,
            counts.first().context("no counts")?,
            counts.iter().sum::<i64>(),
        ),
    );
    Ok(())
}
