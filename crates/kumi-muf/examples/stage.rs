//! Two frontends call, three backends answer, and one of them is killed on stage. No caller notices more than a pause.
//!
//!     redis-server --port 6379 &            # or kumi-server
//!     cargo run -p kumi-muf --example stage -- redis://127.0.0.1:6379
//!
//! While it runs, `redis-cli --scan --pattern 'MUF/*'` shows everything there is.

use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kumi_muf::{Error, Muf, Request};

/// What each backend says it needs for a picture. Long enough to be killed in the middle of one.
const WORK: Duration = Duration::from_millis(120);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().or_else(|| std::env::var("KUMI_URL").ok());
    let url = url.unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    match arguments.next() {
        Some(name) => backend(&url, &name).await,
        None => stage(&url).await,
    }
}

/// One backend, a process of its own. It runs until it is killed.
async fn backend(url: &str, name: &str) -> Result<(), Error> {
    let muf = Muf::connect(url, name).await?;
    let signature = muf.unit().to_owned();
    let resize = move |request: Request| {
        let signature = signature.clone();
        async move {
            tokio::time::sleep(WORK).await;
            let picture = request.text()?.to_owned();
            Ok::<_, Error>(format!(
                "{picture} by {signature}, attempt {}",
                request.attempt()
            ))
        }
    };
    muf.serve("thumb.resize", resize).concurrency(4).await?;
    std::future::pending().await
}

async fn stage(url: &str) -> Result<(), Error> {
    let mut backends = ["thumb-1", "thumb-2", "thumb-3"].map(|name| start(url, name));
    let watcher = Muf::connect(url, "stage").await?;
    while watcher
        .units()
        .await?
        .iter()
        .filter(|info| !info.services.is_empty())
        .count()
        < 3
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for info in watcher.units().await? {
        println!("{:8} serves {:?}", info.unit, info.services);
    }

    let (stop, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let mut callers = tokio::task::JoinSet::new();
    for frontend in ["web-1", "web-2"] {
        let muf = Muf::connect(url, frontend).await?;
        for caller in 0..4 {
            callers.spawn(call(muf.clone(), caller, stop.clone(), answered.clone()));
        }
    }
    while answered.load(Ordering::Relaxed) < 40 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("thumb-2 is killed, with pictures in its hands");
    kill(&mut backends[1]);
    let before = answered.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(4)).await;
    stop.store(true, Ordering::Relaxed);

    let (mut failed, mut slowest) = (0, Duration::ZERO);
    for (errors, longest) in callers.join_all().await {
        failed += errors;
        slowest = slowest.max(longest);
    }
    let answers = answered.load(Ordering::Relaxed);
    println!(
        "{answers} answers ({before} before the death), {failed} callers without one, the slowest took {slowest:.1?}"
    );
    backends.iter_mut().for_each(kill);
    assert_eq!(failed, 0, "every call was answered");
    Ok(())
}

/// Calls until the curtain falls: how often it got no answer, and its longest wait.
async fn call(
    muf: Muf,
    caller: u32,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
) -> (u32, Duration) {
    let (mut errors, mut longest) = (0, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        match muf
            .request("thumb.resize", format!("picture {caller}"))
            .await
        {
            Ok(answer) => {
                answered.fetch_add(1, Ordering::Relaxed);
                if began.elapsed() > Duration::from_secs(1) {
                    println!(
                        "{} waited {:.1?}: {:?}",
                        muf.unit(),
                        began.elapsed(),
                        answer.text()
                    );
                }
            }
            Err(error) => {
                println!("{} got no answer: {error}", muf.unit());
                errors += 1;
            }
        }
        longest = longest.max(began.elapsed());
    }
    (errors, longest)
}

fn start(url: &str, name: &str) -> Child {
    let program = std::env::current_exe().expect("this program has a path");
    Command::new(program)
        .args([url, name])
        .spawn()
        .expect("a backend starts")
}

fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
