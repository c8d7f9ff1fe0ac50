//! A shell in namespaces of its own: the ports that pages name are free there, nothing it does is seen outside, and all
//! that it started ends with it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any block takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

pub(crate) struct Shell {
    child: Child,
    stdin: ChildStdin,
    /// Where it began.
    work: PathBuf,
    /// Scripts, outputs and exit marks of the blocks.
    records: PathBuf,
    blocks: usize,
}

/// What became of a block.
pub(crate) struct Ran {
    pub(crate) succeeded: bool,
    pub(crate) printed: String,
}

impl Shell {
    /// Starts a shell in `home`, which is its working directory and holds all state; `programs` come first in PATH, and
    /// `KUMI_CHECKOUT` is `checkout`.
    pub(crate) fn start(home: &Path, programs: &[&Path], checkout: &Path) -> Self {
        let work = home.join("work");
        let records = home.join("records");
        for directory in [&work, &records] {
            fs::create_dir_all(directory).expect("a temporary directory");
        }
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let inherited = std::env::split_paths(&inherited);
        let path = programs
            .iter()
            .map(|path| path.to_path_buf())
            .chain(inherited);
        let path = std::env::join_paths(path).expect("directories without colons");
        let mut child = Command::new("unshare")
            .args([
                "--map-root-user",
                "--net",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "bash",
                "-s",
            ])
            .current_dir(&work)
            .env("PATH", path)
            .env("HOME", &work)
            .env("XDG_STATE_HOME", home.join("state"))
            .env("KUMI_CHECKOUT", checkout)
            .env("TZ", "UTC")
            .env_remove("REDISCLI_AUTH")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("unshare, of util-linux, is installed");
        let stdin = child.stdin.take().expect("it was piped");
        let mut shell = Self {
            child,
            stdin,
            work,
            records,
            blocks: 0,
        };
        shell.send("ip link set lo up && set -eo pipefail && echo ready >../records/ready\n");
        let ready = shell.records.join("ready");
        assert!(
            shell.wait_for(|_| ready.exists()),
            "no shell in a network namespace: the test needs root or user namespaces, and `ip` of iproute2"
        );
        shell
    }

    /// Runs a block to its end.
    pub(crate) fn run(&mut self, code: &str) -> Ran {
        let (script, output, done) = self.block(code);
        self.send(&format!(
            ". {script} >{output} 2>&1 </dev/null; echo done >{done}\n"
        ));
        let succeeded = self.wait_for(|_| Path::new(&done).exists());
        Ran {
            succeeded,
            printed: read(&output),
        }
    }

    /// Starts a block, and waits until `ready` says that it has printed enough.
    pub(crate) fn start_block(&mut self, code: &str, ready: impl Fn(&str) -> bool) -> Ran {
        let (script, output, _) = self.block(code);
        self.send(&format!("( . {script} ) >{output} 2>&1 </dev/null &\n"));
        let succeeded = self.wait_for(|_| ready(&read(&output)));
        Ran {
            succeeded,
            printed: read(&output),
        }
    }

    /// Writes a file that can be executed into the directory in which the shell began.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.work.join(name);
        fs::write(&path, text).expect("a temporary file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
    }

    fn block(&mut self, code: &str) -> (String, String, String) {
        self.blocks += 1;
        let path = |kind: &str| {
            let path = self.records.join(format!("{}.{kind}", self.blocks));
            path.to_str().expect("a path in UTF-8").to_owned()
        };
        let (script, output, done) = (path("sh"), path("out"), path("done"));
        fs::write(&script, code).expect("a temporary file");
        (script, output, done)
    }

    fn send(&mut self, line: &str) {
        // A shell that has ended is noticed by who waits for what the line does.
        let _ = self.stdin.write_all(line.as_bytes());
        let _ = self.stdin.flush();
    }

    /// Whether `done` came true before the shell ended and before the limit.
    fn wait_for(&mut self, done: impl Fn(&Self) -> bool) -> bool {
        let started = Instant::now();
        while !done(self) {
            let ended = self.child.try_wait().expect("it is our child").is_some();
            if (ended && !done(self)) || started.elapsed() > LIMIT {
                return false;
            }
            std::thread::sleep(POLL);
        }
        true
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // unshare ends its child, the first process of the namespace, and with it everything in there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(path: &str) -> String {
    fs::read(path)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}
