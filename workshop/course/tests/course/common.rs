//! What the integration tests share: learners' folders at a stage, built; and servers of other makes.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use course::files;
use course::lang::Lang;
use course::runner::{self, Options, Outcome, Target};
use course::steps;

/// A scratch folder below the workshop's target folder. Cargo's target folder of what is built there is one for all.
pub fn scratch(name: &str) -> PathBuf {
    let path = files::workshop().join("target/ci").join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a scratch folder");
    path
}

/// The target folder of learners' folders that tests build: apart from that of a real learner's folder.
fn target() -> PathBuf {
    files::workshop().join("target/ci/target")
}

/// Two folders with one package name share a target folder only one after the other.
pub fn build_lock() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `mini` on a learner's folder.
pub fn mini(folder: &Path, arguments: &[&str]) -> Output {
    mini_command(folder).args(arguments).output().expect("mini runs")
}

/// The `mini` command on a learner's folder.
pub fn mini_command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mini"));
    command.env("MINI_DIR", folder).env("CARGO_TARGET_DIR", target()).env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// Standard output and error of a command that must succeed.
pub fn succeeded(output: Output) -> String {
    let text = text_of(&output);
    assert!(output.status.success(), "{text}");
    text
}

/// Standard output and error.
pub fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Builds the server in a learner's folder without a warning and copies it to `name` beside it.
pub fn build(folder: &Path, name: &str) -> PathBuf {
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--locked", "--bin", "mini-redis"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target())
        .output()
        .expect("cargo runs");
    let text = text_of(&built);
    assert!(built.status.success() && text.is_empty(), "{name}: {text}");
    let binary = folder.parent().expect("a parent").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    fs::copy(target().join("debug").join(format!("mini-redis{}", std::env::consts::EXE_SUFFIX)), &binary)
        .expect("the server was built");
    binary
}

/// A server of each stage, 0 to 7, built once: one folder catches up step by step, as a learner's would.
pub fn stages() -> &'static [PathBuf] {
    static STAGES: OnceLock<Vec<PathBuf>> = OnceLock::new();
    STAGES.get_or_init(|| {
        let _alone = build_lock();
        let folder = scratch("stages").join("mini");
        succeeded(mini(&folder, &["start", "--lang", "en"]));
        let mut binaries = vec![build(&folder, "stage-0")];
        for step in 1..=steps::LAST {
            let said = succeeded(mini(&folder, &["catch-up", &step.to_string(), "--yes"]));
            assert!(said.contains(&format!("src.old-{step}")), "{said}");
            assert!(folder.join(format!("src.old-{step}/main.rs")).is_file());
            binaries.push(build(&folder, &format!("stage-{step}")));
        }
        binaries
    })
}

/// Runs steps on a binary, without printing.
pub fn run(binary: &Path, arguments: &[&str], steps: Vec<u8>) -> (Outcome, Vec<String>) {
    let arguments = arguments.iter().map(|argument| argument.to_string()).collect();
    let mut lines = Vec::new();
    let options = Options { steps, seed: 1, lang: Lang::En };
    let target = Target::Binary(binary.to_path_buf(), arguments);
    let outcome = runner::run(&target, &options, |line| lines.push(line.to_string())).expect("the server starts");
    (outcome, lines)
}

/// A server of another make, on a free port; ended when dropped.
pub struct Other {
    child: Child,
    pub address: SocketAddr,
}

impl Other {
    pub fn start(program: &Path, arguments: &[&str], folder: &Path) -> Other {
        // The port is free now, and hardly anything else takes one in the next moment; if so, the start is tried again.
        for _ in 0..5 {
            let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
            let address = free.expect("a free port");
            let mut child = Command::new(program)
                .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"])
                .args(arguments)
                .current_dir(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
            let deadline = Instant::now() + Duration::from_secs(20);
            while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
                if TcpStream::connect(address).is_ok() {
                    return Other { child, address };
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("{} did not start", program.display());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
