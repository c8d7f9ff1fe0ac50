//! An agent as a worker: each step of its plan is stored, so that a failure repeats only what was not done, and its
//! progress can be read from outside.
//!
//!     cargo run -p kumi-jobs --example agent [redis://localhost/?queue=agent]

use kumi_jobs::{Context, Fixed, Jobs, Options, Task, TaskError, Worker};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[derive(Serialize, Deserialize)]
struct Research {
    question: String,
}

impl Task for Research {
    const TYPE: &'static str = "research";
    type Output = String;
    fn options() -> Options {
        Options::new().retry(Fixed(Duration::from_millis(20)))
    }
}

/// A model that is asked for money, and fails once.
#[derive(Default)]
struct Model {
    calls: AtomicU32,
}

impl Model {
    async fn ask(&self, prompt: String) -> Result<String, TaskError> {
        match self.calls.fetch_add(1, Ordering::SeqCst) {
            1 => Err(TaskError::retry("the model is overloaded")),
            _ => Ok(format!("<{prompt}>")),
        }
    }
}

async fn research(task: Research, cx: Context<Arc<Model>>) -> Result<String, TaskError> {
    let model = cx.state();
    let plan = cx
        .step("plan", model.ask(format!("plan {}", task.question)))
        .await?;
    cx.progress(50, "planned").await?;
    let draft = cx.step("draft", model.ask(format!("write {plan}"))).await?;
    cx.progress(90, "written").await?;
    Ok(draft)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let jobs = match std::env::args().nth(1) {
        Some(url) => Jobs::connect(&url).await?,
        None => Jobs::memory(),
    };
    let model = Arc::new(Model::default());
    let question = "why is the sky blue".to_owned();
    let handle = jobs.enqueue(Research { question }).await?;
    let done = async {
        let answer = handle.result().await.expect("it is answered");
        println!("{answer}");
    };
    Worker::new(&jobs, model.clone())
        .handle(research)
        .run_until(done)
        .await?;
    let calls = model.calls.load(Ordering::SeqCst);
    println!("{calls} calls to the model: the plan was made once");
    assert_eq!(calls, 3);
    Ok(())
}
