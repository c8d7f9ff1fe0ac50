//! The `redis` crate: pipelines, optimistic transactions, scripts, RESP3 pub/sub, streams and scans.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use futures_util::StreamExt;
use redis::aio::ConnectionManager;
use redis::streams::{StreamReadOptions, StreamReadReply};
use redis::{AsyncCommands, Client, Commands, Script, Value};

use crate::{Seen, until};

pub async fn run(url: &str, seen: &mut Seen) -> Result<()> {
    let client = Client::open(url)?;
    let mut connection = ConnectionManager::new(client.clone()).await?;
    pipelines(&mut connection, seen).await?;
    let blocking = client.clone();
    let stock = tokio::task::spawn_blocking(move || transactions(&blocking)).await??;
    seen.note("optimistic", stock);
    scripts(&mut connection, seen).await?;
    messages(url, &mut connection, seen).await?;
    streams(&mut connection, seen).await?;
    scans(&mut connection, seen).await
}

async fn pipelines(connection: &mut ConnectionManager, seen: &mut Seen) -> Result<()> {
    let replies: (i64, String, Vec<String>, Option<f64>) = redis::pipe()
        .atomic()
        .set("a", 1)
        .ignore()
        .incr("a", 41)
        .get("a")
        .rpush("l", &["x", "y", "z"])
        .ignore()
        .lrange("l", 0, -1)
        .zadd("z", "m", 2.5)
        .ignore()
        .zscore("z", "m")
        .query_async(connection)
        .await?;
    seen.note("pipeline", replies);
    let wrong: Result<i64, _> = connection.llen("a").await;
    seen.note(
        "error",
        wrong
            .err()
            .and_then(|error| error.code().map(str::to_owned)),
    );
    let mut many = redis::pipe();
    for number in 0..5_000 {
        many.cmd("HSET")
            .arg("many")
            .arg(number)
            .arg(number * number)
            .ignore();
    }
    many.hlen("many");
    seen.note("many", many.query_async::<Vec<i64>>(connection).await?);
    Ok(())
}

/// Eight threads take from a stock under WATCH; none takes what another one has taken.
fn transactions(client: &Client) -> Result<(i64, i64)> {
    let mut connection = client.get_connection()?;
    connection.set::<_, _, ()>("stock", 60)?;
    std::thread::scope(|scope| {
        let takers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    let mut connection = client.get_connection()?;
                    for _ in 0..10 {
                        redis::transaction(&mut connection, &["stock"], |connection, pipe| {
                            let stock: i64 = connection.get("stock")?;
                            if stock == 0 {
                                pipe.incr("refused", 1);
                            } else {
                                pipe.decr("stock", 1);
                            }
                            pipe.query::<Option<Vec<i64>>>(connection)
                        })?;
                    }
                    Ok(())
                })
            })
            .collect();
        for taker in takers {
            taker.join().ok().context("a thread panicked")??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    let left = (connection.get("stock")?, connection.get("refused")?);
    ensure!(left == (0, 20), "the stock ends as {left:?}");
    Ok(left)
}

async fn scripts(connection: &mut ConnectionManager, seen: &mut Seen) -> Result<()> {
    let script = Script::new(
        "local n = redis.call('INCRBY', KEYS[1], ARGV[1]) return {n, KEYS[1], false, {1, 2.9, 'x'}}",
    );
    let call = |amount: i64| {
        let mut call = script.key("n");
        call.arg(amount);
        call
    };
    let first: Value = call(2).invoke_async(connection).await?;
    let _: () = redis::cmd("SCRIPT")
        .arg("FLUSH")
        .query_async(connection)
        .await?;
    let second: Value = call(3).invoke_async(connection).await?;
    seen.note("script", (first, second));
    let limiter = Script::new(
        "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], 60000) end \
         if n > tonumber(ARGV[1]) then return redis.error_reply('LIMIT reached ' .. n) end return n",
    );
    let mut allowed = 0;
    let mut refused = BTreeSet::new();
    for _ in 0..12 {
        match limiter
            .key("limit")
            .arg(10)
            .invoke_async::<i64>(connection)
            .await
        {
            Ok(_) => allowed += 1,
            Err(error) => {
                refused.insert(error.to_string());
            }
        }
    }
    ensure!(allowed == 10, "{allowed} calls were allowed");
    seen.note("limiter", refused.len());
    Ok(())
}

async fn messages(url: &str, connection: &mut ConnectionManager, seen: &mut Seen) -> Result<()> {
    let client = Client::open(format!("{url}?protocol=resp3"))?;
    let mut pubsub = client.get_async_pubsub().await?;
    pubsub.subscribe("news").await?;
    pubsub.psubscribe("n*").await?;
    let receivers: i64 = connection.publish("news", "hello").await?;
    let mut stream = pubsub.on_message();
    let mut heard = BTreeSet::new();
    for _ in 0..receivers {
        let message = stream.next().await.context("the subscription ended")?;
        let payload: String = message.get_payload()?;
        heard.insert((message.from_pattern(), payload));
    }
    seen.note("messages", heard);
    Ok(())
}

async fn streams(connection: &mut ConnectionManager, seen: &mut Seen) -> Result<()> {
    let _: () = connection
        .xgroup_create_mkstream("jobs", "workers", "0")
        .await?;
    for number in 1..=300 {
        let _: String = connection
            .xadd("jobs", format!("{number}-1"), &[("n", number)])
            .await?;
    }
    let mut sum = 0;
    loop {
        let options = StreamReadOptions::default()
            .group("workers", "one")
            .count(70);
        let reply: Option<StreamReadReply> = connection
            .xread_options(&["jobs"], &[">"], &options)
            .await?;
        let Some(key) = reply.and_then(|mut reply| reply.keys.pop()) else {
            break;
        };
        let mut ids = Vec::new();
        for entry in key.ids {
            sum += entry.get::<i64>("n").context("an entry without n")?;
            ids.push(entry.id);
        }
        let acknowledged: usize = connection.xack("jobs", "workers", &ids).await?;
        ensure!(
            acknowledged == ids.len(),
            "{acknowledged} of {} acknowledged",
            ids.len()
        );
    }
    ensure!(sum == 300 * 301 / 2, "the entries sum up to {sum}");
    seen.note("stream", sum);
    Ok(())
}

async fn scans(connection: &mut ConnectionManager, seen: &mut Seen) -> Result<()> {
    for number in 0..500 {
        let _: () = connection
            .set_ex(format!("scan:{number}"), number, 100)
            .await?;
    }
    let mut keys = BTreeSet::new();
    {
        let mut iterator = connection.scan_match::<_, String>("scan:*").await?;
        while let Some(key) = iterator.next_item().await {
            keys.insert(key?);
        }
    }
    ensure!(keys.len() == 500, "SCAN showed {} keys", keys.len());
    let ttl: i64 = connection.ttl("scan:1").await?;
    seen.note("scan", (keys.len(), (90..=100).contains(&ttl)));
    let _: () = connection.pexpire("scan:1", 1).await?;
    let watched = connection.clone();
    until("a key to expire", || {
        let mut connection = watched.clone();
        async move { Ok(!connection.exists::<_, bool>("scan:1").await?) }
    })
    .await
}
