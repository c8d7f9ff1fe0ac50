//! The memory of answers: once its requester has read it, a large one lives for two leases.

use std::time::{Duration, Instant};

use kumi_muf::Error;

use crate::support::{Place, Server, wait_until};

const MEGABYTE: usize = 1_000_000;

/// Bytes that the server uses.
fn used_memory(server: &Server) -> usize {
    let memory = server.cli(&["INFO", "memory"]);
    let line = memory
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    line.expect("a figure").trim().parse().expect("a number")
}

/// Seconds of calls: 20, unless all is tested.
fn seconds() -> u64 {
    let seconds = std::env::var("KUMI_MUF_MEMORY_SECONDS");
    seconds.map_or(9, |text| text.parse().expect("seconds"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_large_answers_is_that_of_a_few_seconds() {
    let checks = Server::each().map(|server| async move {
        let backend = server.unit("back").await;
        let large = |_| async { Ok::<_, Error>(vec![b'x'; MEGABYTE]) };
        backend.serve("a.b", large).await.expect("a service");
        let web = server.unit("web").await;
        web.request("a.b", ()).await.expect("an answer");
        let before = used_memory(&server);
        let (began, mut calls) = (Instant::now(), 0u32);
        while began.elapsed() < Duration::from_secs(seconds()) {
            web.request("a.b", ()).await.expect("an answer");
            calls += 1;
            // Sixty megabytes a second at most.
            let due = Duration::from_secs(1) * calls / 60;
            tokio::time::sleep(due.saturating_sub(began.elapsed())).await;
        }
        let per_second = calls as usize * MEGABYTE / began.elapsed().as_secs() as usize;
        let used = used_memory(&server).saturating_sub(before);
        let limit = 5 * per_second + 50 * MEGABYTE;
        println!("{calls} calls: {used} bytes used, {limit} are the limit");
        assert!(
            used < limit,
            "{used} bytes are used after {calls} calls, {limit} are the limit"
        );
        drop(server);
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_read_lives_for_two_leases_unless_it_is_small() {
    for server in Server::each() {
        let backend = server.unit("back").await;
        let sized = |request: kumi_muf::Request| async move {
            let size: usize = request.text()?.parse().expect("a number");
            match request.id().starts_with("a.bad") {
                true => Ok(Err("x".repeat(size))),
                false => Ok::<_, Error>(Ok("x".repeat(size))),
            }
        };
        let answer = move |request| async move { sized(request).await.expect("a size") };
        backend.serve("a.*", answer).await.expect("a service");
        let web = server.unit("web").await;
        let life_ms = |glob: &str| {
            let keys = server.keys(glob);
            assert_eq!(keys.len(), 1, "{keys:?}");
            let life_ms = server.cli(&["PTTL", &keys[0]]);
            server.cli(&["DEL", &keys[0]]);
            life_ms.parse::<u64>().expect("a life")
        };
        for (size, limit_ms) in [(100, 30_000), (2_000, 4_000), (200_000, 4_000)] {
            web.request("a.good", size.to_string())
                .await
                .expect("an answer");
            let failed = web.request("a.bad", size.to_string()).await;
            assert!(matches!(failed, Err(Error::Remote(_))), "{failed:?}");
            for glob in ["MUF/web/RES/*", "MUF/web/ERR/*"] {
                let mut left_ms = 0;
                // The command that cuts it is sent before its caller has it, and may still be on its way.
                if limit_ms < 30_000 {
                    wait_until("its life is cut", || {
                        let keys = server.keys(glob);
                        let left = server.cli(&["PTTL", &keys[0]]);
                        left.parse::<u64>().is_ok_and(|left| left <= limit_ms)
                    });
                }
                left_ms = left_ms.max(life_ms(glob));
                assert!(left_ms <= limit_ms, "{size}: {left_ms}");
                assert!(left_ms + 20_000 > limit_ms, "{size}: {left_ms}");
            }
        }
    }
}
