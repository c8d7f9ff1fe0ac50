//! A digest every weekday at nine in Tokyo: stores the schedule. Any worker of the queue enqueues its tasks from then on.
//!
//!     cargo run -p kumi-jobs --example digest [redis://localhost/?queue=digest]

use kumi_jobs::{Jobs, Task};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Digest {}

impl Task for Digest {
    const TYPE: &'static str = "digest";
    type Output = ();
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let jobs = match std::env::args().nth(1) {
        Some(url) => Jobs::connect(&url).await?,
        None => Jobs::memory(),
    };
    jobs.cron("digest", "0 9 * * MON-FRI", "Asia/Tokyo", Digest {})
        .await?;
    let (_, schedules) = jobs.queue().schedules().await?;
    for schedule in &schedules {
        println!(
            "{}: {} {}",
            schedule.name, schedule.expression, schedule.zone
        );
    }
    assert_eq!(schedules.len(), 1);
    Ok(())
}
