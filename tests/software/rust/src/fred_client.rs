//! `fred`: RESP3 with client-side caching, scripts and functions, transactions, a pool, streams and messages.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use fred::interfaces::TrackingInterface;
use fred::prelude::*;
use fred::types::RespVersion;
use fred::types::scripts::{Library, Script};

use crate::{Seen, until};

pub async fn run(url: &str, seen: &mut Seen) -> Result<()> {
    let mut config = Config::from_url(url)?;
    config.version = RespVersion::RESP3;
    let builder = Builder::from_config(config);
    let client = builder.build()?;
    client.init().await?;
    transactions(&client, seen).await?;
    scripts(&client, seen).await?;
    caching(&client, &builder.build()?, seen).await?;
    messages(&client, &builder.build_subscriber_client()?, seen).await?;
    let pool = builder.build_pool(4)?;
    pool.init().await?;
    work(&pool, seen).await?;
    pool.quit().await?;
    client.quit().await?;
    Ok(())
}

async fn transactions(client: &Client, seen: &mut Seen) -> Result<()> {
    let transaction = client.multi();
    let _: () = transaction.set("t", "1", None, None, false).await?;
    let _: () = transaction.incr("t").await?;
    let _: () = transaction.hset("h", [("a", "1"), ("b", "2")]).await?;
    let _: () = transaction.hgetall("h").await?;
    let replies: (String, i64, i64, std::collections::BTreeMap<String, String>) =
        transaction.exec(true).await?;
    seen.note("transaction", replies);
    let pipeline = client.pipeline();
    for number in 0..3_000 {
        let _: () = pipeline
            .zadd(
                "scores",
                None,
                None,
                false,
                false,
                (f64::from(number) / 4.0, format!("m{number}")),
            )
            .await?;
    }
    let added: Vec<i64> = pipeline.all().await?;
    ensure!(
        added.iter().sum::<i64>() == 3_000,
        "some members were not added"
    );
    let top: Vec<(String, f64)> = client
        .zrange("scores", 0, 1, None, true, None, true)
        .await?;
    seen.note("scores", top);
    Ok(())
}

async fn scripts(client: &Client, seen: &mut Seen) -> Result<()> {
    let script = Script::from_lua("return {KEYS[1], ARGV[1] + 1, redis.call('INCR', KEYS[1])}");
    script.load(client).await?;
    let first: (String, i64, i64) = script.evalsha(client, vec!["s"], vec![6]).await?;
    let _: () = client.script_flush(false).await?;
    let second: (String, i64, i64) = script
        .evalsha_with_reload(client, vec!["s"], vec![7])
        .await?;
    seen.note("script", (first, second));
    let code = "#!lua name=software\n\
        redis.register_function('add', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)\n\
        redis.register_function{function_name='peek', callback=function(keys) return redis.call('GET', keys[1]) end, \
        flags={'no-writes'}}";
    let library = Library::from_code(client, code).await?;
    let names: BTreeSet<String> = library
        .functions()
        .keys()
        .map(ToString::to_string)
        .collect();
    let functions = library.functions();
    let add = functions.get("add").context("no function is named add")?;
    let peek = functions.get("peek").context("no function is named peek")?;
    let sum: i64 = add.fcall(client, vec!["f"], vec!["5"]).await?;
    let read: String = peek
        .fcall_ro(client, vec!["f"], Vec::<String>::new())
        .await?;
    seen.note("functions", (names, sum, read));
    Ok(())
}

async fn caching(writer: &Client, reader: &Client, seen: &mut Seen) -> Result<()> {
    reader.init().await?;
    let heard = Arc::new(Mutex::new(BTreeSet::new()));
    let keys = heard.clone();
    let _task = reader.on_invalidation(move |invalidation| {
        let mut heard = keys
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        heard.extend(
            invalidation
                .keys
                .iter()
                .filter_map(|key| key.as_str().map(str::to_owned)),
        );
        Ok(())
    });
    reader
        .start_tracking(None, false, false, false, false)
        .await?;
    for number in 0..50 {
        let _: Option<String> = reader.get(format!("cached:{number}")).await?;
    }
    for number in 0..60 {
        let _: () = writer
            .set(format!("cached:{number}"), number, None, None, false)
            .await?;
    }
    until("invalidations", || {
        let count = heard
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .len();
        async move { Ok(count >= 50) }
    })
    .await?;
    reader.stop_tracking().await?;
    let heard = heard
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    ensure!(heard.len() == 50, "{} keys were invalidated", heard.len());
    seen.note("invalidated", (heard.first(), heard.last()));
    Ok(())
}

async fn messages(
    client: &Client,
    subscriber: &fred::clients::SubscriberClient,
    seen: &mut Seen,
) -> Result<()> {
    subscriber.init().await?;
    let mut inbox = subscriber.message_rx();
    subscriber.subscribe("one").await?;
    subscriber.psubscribe("o*").await?;
    // fred returns once a subscription is sent; the server answers PING after it has made both.
    let _: String = subscriber.ping(None).await?;
    let receivers: i64 = client.publish("one", "message").await?;
    let mut heard = BTreeSet::new();
    for _ in 0..receivers {
        let message = inbox.recv().await?;
        heard.insert((
            format!("{:?}", message.kind),
            message.value.convert::<String>()?,
        ));
    }
    seen.note("messages", heard);
    subscriber.quit().await?;
    Ok(())
}

/// Producers and consumers share a list over a pool; every item arrives once.
async fn work(pool: &Pool, seen: &mut Seen) -> Result<()> {
    let producers = (0..4).map(|producer| {
        let pool = pool.clone();
        tokio::spawn(async move {
            for number in 0..250 {
                let _: i64 = pool.rpush("work", producer * 250 + number).await?;
            }
            Ok::<_, Error>(())
        })
    });
    for producer in futures_util::future::join_all(producers).await {
        producer??;
    }
    let consumers = (0..4).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move {
            let mut taken = Vec::new();
            while let Some(item) = pool.lpop::<Option<u64>, _>("work", None).await? {
                taken.push(item);
            }
            Ok::<_, Error>(taken)
        })
    });
    let mut all = BTreeSet::new();
    let mut count = 0;
    for consumer in futures_util::future::join_all(consumers).await {
        let taken = consumer??;
        count += taken.len();
        all.extend(taken);
    }
    ensure!(
        count == 1_000 && all.len() == 1_000,
        "{count} items, {} different",
        all.len()
    );
    seen.note("work", (count, all.first(), all.last()));
    Ok(())
}
