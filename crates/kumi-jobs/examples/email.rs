//! E-mail with retries: the mail server is busy twice, then takes the mail.
//!
//!     cargo run -p kumi-jobs --example email [redis://localhost/?queue=mail]

use kumi_jobs::{Context, Fixed, Jobs, Options, Task, TaskError, Worker};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct SendEmail {
    to: String,
}

impl Task for SendEmail {
    const TYPE: &'static str = "send_email";
    type Output = String;
    fn options() -> Options {
        // A short delay, so that the example ends soon; the default grows from 1 s.
        Options::new()
            .time_limit(Duration::from_secs(30))
            .retry(Fixed(Duration::from_millis(50)))
    }
}

/// A mail server that is busy for the first two calls.
#[derive(Default)]
struct MailServer {
    calls: AtomicU32,
}

#[derive(Debug, thiserror::Error)]
#[error("421 too busy, try again later")]
struct Busy;

impl MailServer {
    async fn send(&self, to: &str) -> Result<String, Busy> {
        match self.calls.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Err(Busy),
            call => Ok(format!("message {call} to {to}")),
        }
    }
}

async fn send(mail: SendEmail, cx: Context<MailServer>) -> Result<String, TaskError> {
    println!("attempt {} to {}", cx.attempt(), mail.to);
    Ok(cx.state().send(&mail.to).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let jobs = match std::env::args().nth(1) {
        Some(url) => Jobs::connect(&url).await?,
        None => Jobs::memory(),
    };
    let to = "ann@example.org".to_owned();
    let handle = jobs.enqueue(SendEmail { to }).await?;
    let done = async {
        let sent = handle.result().await.expect("the third attempt succeeds");
        println!("sent: {sent}");
    };
    Worker::new(&jobs, MailServer::default())
        .handle(send)
        .run_until(done)
        .await?;
    let record = handle.status().await?.expect("it is kept");
    println!("{} after {} attempts", record.state, record.attempts);
    assert_eq!(record.attempts, 3);
    Ok(())
}
