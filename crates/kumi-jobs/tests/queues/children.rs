//! Workers and kumi-servers in processes of their own, which can be killed and stopped: this test binary, started again.

use crate::work::Step;
use kumi_jobs::{Context, Jobs, Owner, TaskError, Worker};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;
use tokio::task::JoinHandle;

const URL: &str = "KUMI_JOBS_CHILD_URL";
const POINT: &str = "KUMI_JOBS_CHILD_POINT";
const OWNER: &str = "KUMI_JOBS_CHILD_OWNER";
const SERVER: &str = "KUMI_JOBS_CHILD_SERVER";

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
    /// In the handler of task 0, until it gets a line on its standard input; then it goes on. Other tasks say `next`.
    UntilTold,
    /// In the handler, until its worker reads on its standard input that it has to end.
    Deaf,
    /// Nowhere: it works.
    Never,
}

impl Point {
    const ALL: [Self; 7] = [
        Self::BeforeClaim,
        Self::MidHandler,
        Self::BeforeFinish,
        Self::AfterFinish,
        Self::UntilTold,
        Self::Deaf,
        Self::Never,
    ];

    fn name(self) -> String {
        format!("{self:?}")
    }

    fn from_name(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|point| point.name() == name);
        found.expect("the parent names a point")
    }
}

/// A worker process. Killed when dropped.
pub(crate) struct Worked {
    pub(crate) child: Child,
    lines: BufReader<ChildStdout>,
    pub(crate) owner: Owner,
    /// Whether it has said that a handler took effect.
    pub(crate) took_effect: bool,
}

/// This program, to run one of the functions below.
fn this(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", test, "--nocapture"]);
    command
}

/// A kumi-server with these arguments. It ends with its standard input.
pub(crate) fn server(arguments: &[&str]) -> Command {
    let mut command = this("children::kumi_server");
    command.env(SERVER, arguments.join("\n"));
    command
}

impl Worked {
    pub(crate) fn start(url: &str, point: Point) -> Self {
        Self::with_environment(url, point, &[])
    }

    pub(crate) fn with_environment(url: &str, point: Point, variables: &[(&str, &str)]) -> Self {
        let owner = Owner::new("child").expect("a name");
        let mut child = this("children::child")
            .env(URL, url)
            .env(POINT, point.name())
            .env(OWNER, owner.as_str())
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let lines = BufReader::new(child.stdout.take().expect("its output"));
        Self {
            child,
            lines,
            owner,
            took_effect: false,
        }
    }

    /// Reads until the child says this.
    pub(crate) fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while self.lines.read_line(&mut line).expect("text") > 0 {
            // The test harness may have written to the same line.
            self.took_effect |= line.trim_end().ends_with("effect");
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

async fn handle(step: Step, cx: Context<(Point, Jobs)>) -> Result<u32, TaskError> {
    let (point, jobs) = cx.state();
    if *point == Point::UntilTold && step.number > 0 {
        println!("next");
        return Ok(step.number);
    }
    match point {
        Point::MidHandler | Point::Deaf => stop().await,
        Point::UntilTold => {
            println!("stopped");
            // The whole process stands still, as the test wants it.
            told().await??;
        }
        _ => {}
    }
    println!("effect");
    match point {
        Point::BeforeFinish => stop().await,
        Point::AfterFinish => {
            let (id, jobs) = (cx.id(), jobs.clone());
            tokio::spawn(async move {
                let _ = jobs.queue().done(id).await;
                println!("stopped");
            });
        }
        _ => {}
    }
    Ok(step.number + 1_000)
}

/// A line on standard input.
fn told() -> JoinHandle<std::io::Result<usize>> {
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()))
}

/// Says that the worker has reached its point, and waits to be killed.
async fn stop() {
    println!("stopped");
    std::future::pending().await
}

/// Not a test by itself: the kumi-server that other tests start as a process.
#[test]
fn kumi_server() {
    let Ok(arguments) = std::env::var(SERVER) else {
        return;
    };
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let ended = kumi_server::main_from_args(arguments.split('\n').map(Into::into));
    std::process::exit(i32::from(ended != ExitCode::SUCCESS));
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
    let point = Point::from_name(&point);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let jobs = Jobs::connect(&url).await.expect("a queue");
        if point == Point::BeforeClaim {
            stop().await;
        }
        let worker = Worker::new(&jobs, (point, jobs.clone()))
            .handle(handle)
            .owner(owner.parse().expect("an owner"))
            .concurrency(1)
            .shutdown_within(Duration::from_millis(200))
            .lease(Duration::from_secs(2));
        let stop = async {
            match point {
                Point::Deaf => drop(told().await),
                _ => std::future::pending().await,
            }
        };
        let ended = worker.run_until(stop).await;
        println!("ended: {}", ended.is_ok());
    });
}
