//! Workers in processes of their own, which can be killed and stopped: this test binary, started again.

use crate::work::Step;
use kumi_jobs::{Context, Jobs, Owner, TaskError, Worker};
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const URL: &str = "KUMI_JOBS_CHILD_URL";
const POINT: &str = "KUMI_JOBS_CHILD_POINT";
const OWNER: &str = "KUMI_JOBS_CHILD_OWNER";

/// Where a child's handler stops and says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Before it claims anything.
    BeforeClaim,
    /// In the handler, before its effect.
    MidHandler,
    /// After the effect, before the report.
    BeforeFinish,
    /// After the report.
    AfterFinish,
    /// In the handler, until it gets a line on its standard input; then it goes on.
    UntilTold,
}

impl Point {
    fn name(self) -> String {
        format!("{self:?}")
    }
}

/// A worker process. Killed when dropped.
pub(crate) struct Worked {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
    pub(crate) owner: Owner,
}

impl Worked {
    pub(crate) fn start(url: &str, point: Point) -> Self {
        let owner = Owner::new("child").expect("a name");
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "children::child", "--nocapture"])
            .env(URL, url)
            .env(POINT, point.name())
            .env(OWNER, owner.as_str())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Self {
            child,
            lines,
            owner,
        }
    }

    /// Reads until the child says this.
    pub(crate) fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while self.lines.read_line(&mut line).expect("text") > 0 {
            // The test harness may have written to the same line.
            if line.trim_end().ends_with(word) {
                return;
            }
            line.clear();
        }
        panic!("the child ended before it said '{word}'");
    }

    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill runs").success());
    }

    pub(crate) fn tell(&mut self) {
        use std::io::Write;
        let stdin = self.child.stdin.as_mut().expect("its input");
        stdin.write_all(b"go\n").expect("written");
    }
}

impl Drop for Worked {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn handle(step: Step, cx: Context<(String, Jobs)>) -> Result<u32, TaskError> {
    let (point, jobs) = cx.state();
    if *point == Point::MidHandler.name() {
        println!("stopped");
        std::future::pending::<()>().await;
    }
    if *point == Point::UntilTold.name() {
        println!("stopped");
        // The whole process stands still, as the test wants it.
        tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await??;
    }
    if *point == Point::BeforeFinish.name() {
        println!("stopped");
        std::future::pending::<()>().await;
    }
    if *point == Point::AfterFinish.name() {
        let (id, jobs) = (cx.id(), jobs.clone());
        tokio::spawn(async move {
            let _ = jobs.queue().done(id).await;
            println!("stopped");
        });
    }
    Ok(step.number + 1_000)
}

/// Not a test by itself: the worker that other tests start as a process.
#[test]
fn child() {
    let (Ok(url), Ok(point), Ok(owner)) = (
        std::env::var(URL),
        std::env::var(POINT),
        std::env::var(OWNER),
    ) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let jobs = Jobs::connect(&url).await.expect("a queue");
        if point == Point::BeforeClaim.name() {
            println!("stopped");
            std::future::pending::<()>().await;
        }
        let worker = Worker::new(&jobs, (point, jobs.clone()))
            .handle(handle)
            .owner(owner.parse().expect("an owner"))
            .concurrency(1)
            .lease(Duration::from_secs(2));
        let ended = worker.run_until(std::future::pending::<()>()).await;
        println!("ended: {}", ended.is_ok());
    });
}
