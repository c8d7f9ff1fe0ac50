//! Runs the example: in one process, and as a server with two guests in processes of their own.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const CHAT: &str = env!("CARGO_BIN_EXE_chat");

#[test]
fn the_demonstration_shows_requests_events_and_a_return() {
    let output = Command::new(CHAT).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let expected = "\
ann is in, with ann
bob is in, with ann, bob
ann was heard by 2
ann hears that bob came
ann hears ann: hello
bob hears ann: hello
bob cannot say nothing: invalid message: text: it is shorter than 1
";
    assert!(text.starts_with(expected), "{text}");
    // From here two guests talk at the same time, so the order of their lines is open.
    for line in [
        "bob is connected again; lines may be missing",
        "bob is in, with ann, bob",
        "ann hears that bob came",
        "2 hear ann: welcome back",
    ] {
        let rest = &text[expected.len()..];
        assert!(rest.contains(line), "no {line:?} in {rest}");
    }
}

#[test]
fn what_goes_wrong_is_said_in_words() {
    let join = ["join", "127.0.0.1:1", "no-fingerprint", "ann"];
    let output = Command::new(CHAT).args(join).output().expect("it starts");
    assert!(!output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(
        text.starts_with("chat: ") && text.contains("fingerprint"),
        "{text}"
    );
}

/// A process whose output is read line by line, and which does not outlive the test.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(words: &[&str]) -> Process {
        let mut child = Command::new(CHAT)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Process {
            child,
            input,
            output,
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it is text");
        line.trim_end().to_owned()
    }

    fn say(&mut self, text: &str) {
        let input = self.input.as_mut().expect("not ended");
        writeln!(input, "{text}").expect("it listens");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn guests_in_other_processes_hear_each_other() {
    let mut server = Process::start(&["serve", "127.0.0.1:0"]);
    let line = server.line();
    let said = line.strip_prefix("listening on ").expect("an address");
    let (address, fingerprint) = said.split_once(", fingerprint ").expect("a fingerprint");
    let mut ann = Process::start(&["join", address, fingerprint, "ann"]);
    assert_eq!(ann.line(), "ann is in, with ann");
    let mut bob = Process::start(&["join", address, fingerprint, "bob"]);
    assert_eq!(bob.line(), "bob is in, with ann, bob");
    assert_eq!(ann.line(), "ann hears that bob came");
    bob.say("good morning");
    assert_eq!(ann.line(), "bob: good morning");
    assert_eq!(bob.line(), "bob: good morning");
    ann.say("");
    assert!(ann.line().contains("shorter than 1"));
    // At the end of its input a guest leaves.
    bob.input = None;
    assert!(bob.child.wait().expect("it ends").success());
    ann.say("gone already?");
    assert_eq!(ann.line(), "ann: gone already?");
    // A wrong fingerprint is no way in.
    let wrong = "00".repeat(32);
    let mut eve = Process::start(&["join", address, &wrong, "eve"]);
    assert!(!eve.child.wait().expect("it ends").success());
}
