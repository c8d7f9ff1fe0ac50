//! What the tests of a running server share: a server process, a plain client, a free port.
//!
//! Nothing here waits by sleeping. A client's read has a generous time limit, which only a failing
//! test reaches.

use kumi_resp::{Frame, ReplyLimits, decode_reply};
use std::fmt::Debug;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A test that waits this long has failed.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The built `kumi-server`.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kumi-server"));
    // A supervisor of the tests is not one of the server.
    command.stdin(Stdio::null()).env_remove("NOTIFY_SOCKET");
    command
}

/// Runs `kumi-server` in an empty directory until it ends by itself: exit code, standard output, standard error.
pub(crate) fn run_to_end(args: &[&str]) -> (Option<i32>, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let output = binary().args(args).current_dir(dir.path()).output();
    let output = output.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A server process with a directory of its own. Killed when dropped.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) dir: TempDir,
    /// Log lines up to the one that says that it is ready.
    pub(crate) log: Vec<String>,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts one that listens on a Unix socket only, and waits until it is ready.
    pub(crate) fn start(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let mut all = vec!["--port", "0", "--unixsocket", socket.to_str().unwrap()];
        all.extend(args);
        Self::start_in(dir, &all, "Ready to accept connections unix")
    }

    /// Starts one with exactly these arguments and waits for a line of its log.
    pub(crate) fn start_in(dir: TempDir, args: &[&str], until: &str) -> Self {
        Self::start_program(binary(), dir, args, until)
    }

    /// The same of any server that writes its log to its standard output.
    pub(crate) fn start_program(
        mut program: Command,
        dir: TempDir,
        args: &[&str],
        until: &str,
    ) -> Self {
        let mut child = program
            .args(args)
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self {
            child,
            dir,
            log: Vec::new(),
            output,
        };
        process.wait_for_log(until);
        process
    }

    /// Reads the log until a line contains `text`.
    #[track_caller]
    pub(crate) fn wait_for_log(&mut self, text: &str) {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                panic!("the log ended before {text:?}: {:#?}", self.log);
            }
            self.log.push(line.trim_end().to_owned());
            if line.contains(text) {
                return;
            }
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    pub(crate) fn connect(&self) -> Client<UnixStream> {
        Client::unix(&self.socket())
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for the end; what is left of the log is kept.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        self.log.extend(rest.lines().map(str::to_owned));
        self.child.wait().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A blocking client that speaks just enough RESP.
pub(crate) struct Client<S> {
    pub(crate) stream: S,
    received: Vec<u8>,
}

impl Client<UnixStream> {
    pub(crate) fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self::new(stream)
    }
}

impl Client<TcpStream> {
    pub(crate) fn tcp(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        Self::new(stream)
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            received: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends one request and reads one reply.
    pub(crate) fn ask(&mut self, words: &[&str]) -> Frame {
        self.send(request(words));
        self.reply()
    }

    /// As `ask`, for words without blanks, answering text.
    pub(crate) fn line(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        text(&self.ask(&words))
    }

    #[track_caller]
    pub(crate) fn reply(&mut self) -> Frame {
        let reply = self.try_reply();
        reply.expect("the connection goes on until the reply")
    }

    /// The next reply; none if the connection ends before it.
    #[track_caller]
    pub(crate) fn try_reply(&mut self) -> Option<Frame> {
        let limits = ReplyLimits::default();
        loop {
            if let Some((frame, used)) = decode_reply(&self.received, &limits).unwrap() {
                self.received.drain(..used);
                return Some(frame);
            }
            if self.fill() == 0 {
                return None;
            }
        }
    }

    /// Reads exactly these bytes.
    #[track_caller]
    pub(crate) fn expect(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        while self.received.len() < bytes.len() && self.fill() > 0 {}
        let end = bytes.len().min(self.received.len());
        assert_bytes(&self.received[..end], bytes);
        self.received.drain(..end);
    }

    /// Reads until the server closes.
    pub(crate) fn read_to_end(&mut self) -> Vec<u8> {
        while self.fill() > 0 {}
        std::mem::take(&mut self.received)
    }

    /// The number of bytes received; 0 when the server has closed the connection.
    fn fill(&mut self) -> usize {
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(count) => {
                self.received.extend_from_slice(&buffer[..count]);
                count
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("reading failed: {error}"),
        }
    }
}

/// Compares without printing megabytes.
#[track_caller]
fn assert_bytes(got: &[u8], wanted: &[u8]) {
    if got != wanted {
        let at = got.iter().zip(wanted).take_while(|(a, b)| a == b).count();
        let show = |bytes: &[u8]| {
            let end = bytes.len().min(at + 100);
            String::from_utf8_lossy(&bytes[at..end]).into_owned()
        };
        panic!(
            "differs at {at}: got {:?}, wanted {:?}",
            show(got),
            show(wanted)
        );
    }
}

/// A request as clients send it.
pub(crate) fn request<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// A reply as text: strings as they are, arrays with commas, errors with a dash.
pub(crate) fn text(frame: &Frame) -> String {
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match frame {
        Frame::Simple(bytes) | Frame::Bulk(bytes) => string(bytes),
        Frame::Error(bytes) => format!("-{}", string(bytes)),
        Frame::Integer(number) => number.to_string(),
        Frame::Array(frames) | Frame::Push(frames) | Frame::Set(frames) => {
            let parts: Vec<String> = frames.iter().map(text).collect();
            parts.join(",")
        }
        Frame::Verbatim { text, .. } => string(text),
        frame if frame.is_null() => "nil".into(),
        frame => format!("{frame:?}"),
    }
}

/// Something that holds after a bounded number of tries, each of which waits for an answer.
#[track_caller]
pub(crate) fn eventually<T: Debug>(mut look: impl FnMut() -> T, holds: impl Fn(&T) -> bool) -> T {
    let start = std::time::Instant::now();
    loop {
        let seen = look();
        if holds(&seen) {
            return seen;
        }
        assert!(start.elapsed() < TEST_TIMEOUT, "still {seen:?}");
        std::thread::yield_now();
    }
}

/// Runs `test`, which has this name, with an address of this machine that is not of the loopback interface: a connection to
/// it counts as one from outside. A machine that is cut off gets such an address in a network namespace, or on `lo`.
pub(crate) fn with_outward_address(name: &str, test: impl FnOnce(IpAddr)) {
    const GIVEN: &str = "KUMI_TEST_OUTWARD";
    /// Set aside for documentation: no machine has it.
    const ADDRESS: &str = "192.0.2.77";
    if let Ok(given) = std::env::var(GIVEN) {
        return test(given.parse().expect("an address"));
    }
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let outward = probe
        .connect("203.0.113.1:9")
        .and_then(|()| probe.local_addr());
    if let Ok(outward) = outward
        && !outward.ip().is_loopback()
        && !outward.ip().is_unspecified()
    {
        return test(outward.ip());
    }
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "ip link set lo up && ip addr add {ADDRESS}/32 dev lo && exec \"$0\" --exact {name} --nocapture"
    );
    let in_namespace = Command::new("unshare")
        .args(["--map-root-user", "--net", "sh", "-c", &script])
        .arg(program)
        .env(GIVEN, ADDRESS)
        .output();
    let reason = match in_namespace {
        Ok(output) => {
            let out = String::from_utf8_lossy(&output.stdout).into_owned();
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            if out.contains("running 1 test") {
                assert!(output.status.success(), "{out}{err}");
                return;
            }
            err
        }
        Err(error) => error.to_string(),
    };
    let on_loopback = |change: &str| {
        let commands = [("ip", None), ("sudo", Some(["-n", "ip"]))];
        commands.iter().any(|(program, first)| {
            let mut command = Command::new(program);
            command.args(first.iter().flatten());
            command.args(["addr", change, &format!("{ADDRESS}/32"), "dev", "lo"]);
            command.output().is_ok_and(|output| output.status.success())
        })
    };
    assert!(
        on_loopback("add"),
        "this machine has no address but the loopback's, and neither a network namespace nor `ip addr add` gives it \
         one: {reason}"
    );
    let outcome = catch_unwind(AssertUnwindSafe(|| test(ADDRESS.parse().unwrap())));
    on_loopback("del");
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}
