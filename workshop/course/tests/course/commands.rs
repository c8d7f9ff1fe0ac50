//! The commands that stay: `run`, `cli` and `watch`. And facts that have to stay true elsewhere.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use course::files;
use course::server::Server;

use crate::common::{mini_command, scratch, stages, succeeded};

#[test]
fn run_starts_the_server_and_says_when_the_port_is_taken() {
    let folder = scratch("run").join("mini");
    succeeded(mini_command(&folder).args(["start", "--lang", "en"]).output().expect("mini runs"));
    let mut first = mini_command(&folder)
        .args(["run", "--port", "0"])
        .env("MINI_SERVER", &stages()[7])
        .stderr(Stdio::piped())
        .spawn()
        .expect("mini runs");
    let mut line = String::new();
    BufReader::new(first.stderr.take().expect("piped")).read_line(&mut line).expect("a line");
    let port = line.trim().rsplit(':').next().expect("a port").to_string();
    let second = mini_command(&folder)
        .args(["run", "--port", &port])
        .env("MINI_SERVER", &stages()[7])
        .output()
        .expect("mini runs");
    first.kill().expect("killed");
    first.wait().expect("ended");
    assert!(line.starts_with("INFO listening on 127.0.0.1:"), "{line}");
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && said.contains(&format!("cannot listen on port {port}")), "{said}");
    assert!(said.contains("cargo mini run --port ") && said.contains("redis-cli -p "), "{said}");
    assert!(!said.contains(&format!("--port {port}\n")), "{said}");
}

#[test]
fn hint_without_a_number_is_for_the_step_the_learner_is_at() {
    let folder = scratch("hint").join("mini");
    succeeded(mini_command(&folder).args(["start", "--lang", "en"]).output().expect("mini runs"));
    let hint = |stage: usize| {
        let said = mini_command(&folder).arg("hint").env("MINI_SERVER", &stages()[stage]).output();
        succeeded(said.expect("mini runs"))
    };
    assert!(hint(2).starts_with("Step 3: "), "{}", hint(2));
    assert!(hint(2).contains("Hint 2/3"), "each call says more");
    assert!(hint(7).contains("All seven steps are green"));
}

#[test]
fn diff_is_as_wide_as_the_terminal() {
    let folder = scratch("diff").join("mini");
    succeeded(mini_command(&folder).args(["start", "--lang", "en"]).output().expect("mini runs"));
    for columns in [80, 121, 200] {
        let said = mini_command(&folder).args(["diff", "3"]).env("COLUMNS", columns.to_string()).output();
        let said = succeeded(said.expect("mini runs"));
        let widest = said.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= columns, "{widest} of {columns}");
        let middle = (columns - 3) / 2 + 1;
        let rows = said.lines().filter(|line| line.contains('┃'));
        for row in rows {
            assert_eq!(row.chars().position(|character| character == '┃'), Some(middle), "{row}");
        }
    }
    let piped = mini_command(&folder).args(["diff", "3"]).env_remove("COLUMNS").output();
    let piped = succeeded(piped.expect("mini runs"));
    assert!(piped.lines().any(|line| line.chars().count() > 121), "a file gets whole lines");
}

#[test]
fn cli_shows_replies_as_redis_cli_does() {
    let server = Server::start(&stages()[7], &[]).expect("it starts");
    let port = server.address.port().to_string();
    let folder = scratch("cli");
    let one = mini_command(&folder).args(["cli", "--port", &port, "SET", "name", "two words"]).output();
    assert_eq!(succeeded(one.expect("mini runs")), "OK\n");
    let mut typed = mini_command(&folder)
        .args(["cli", "--port", &port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("mini runs");
    let lines = "GET name\nGET none\nINCR n\nINCR name\n\nPUBLISH c 'x y'\nexit\n";
    typed.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("typed");
    let output = typed.wait_with_output().expect("ended");
    let prompt = format!("127.0.0.1:{port}> ");
    let said = String::from_utf8_lossy(&output.stdout).replace(&prompt, "");
    let error = "(error) ERR value is not an integer or out of range";
    assert_eq!(said, format!("\"two words\"\n(nil)\n(integer) 1\n{error}\n(integer) 0\n"));
}

#[test]
fn watch_tests_again_after_a_save() {
    let folder = scratch("watch").join("mini");
    succeeded(mini_command(&folder).args(["start", "--lang", "en"]).output().expect("mini runs"));
    let mut watch = mini_command(&folder)
        .args(["watch", "--rounds", "2"])
        .env("MINI_SERVER", &stages()[2])
        .stdout(Stdio::piped())
        .spawn()
        .expect("mini runs");
    let lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let (mut tested, mut bars) = (0, 0);
    for line in lines.map_while(Result::ok) {
        tested += usize::from(line.contains("testing"));
        bars += usize::from(line.contains("Next: step 3"));
        if line.starts_with("Waiting for a save") {
            let saved = folder.join(format!("src/saved{tested}.rs"));
            fs::write(saved, "// a new file counts as a save\n").expect("saved");
        }
    }
    assert!(watch.wait().expect("ended").success());
    assert_eq!((tested, bars), (2, 2));
}

#[test]
fn a_learner_depends_on_tokio_and_fastrand_only() {
    for manifest in ["course/template/Cargo.toml", "solution/Cargo.toml"] {
        let text = fs::read_to_string(files::workshop().join(manifest)).expect("the manifest");
        let part =
            text.split("[dependencies]\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("dependencies");
        let names: Vec<&str> = part.lines().filter_map(|line| line.split(" = ").next()).collect();
        assert_eq!(names, ["fastrand", "tokio"], "{manifest}");
    }
}

/// Step 7 replays the session by hand of kumi's own documentation.
#[test]
fn step_7_is_the_session_of_the_documentation() {
    let muf = fs::read_to_string(files::workshop().join("../docs/muf-protocol.md")).expect("docs/muf-protocol.md");
    let guide = fs::read_to_string(files::workshop().join("guide/en/07-muf.md")).expect("the guide");
    let shown: Vec<&str> = muf.lines().filter_map(|line| line.strip_prefix("redis-cli ")).collect();
    let session: Vec<&str> = shown.iter().map(|line| line.split("  ").next().unwrap_or(line).trim_end()).collect();
    assert_eq!(session.len(), 6, "{session:?}");
    for command in session {
        assert!(guide.contains(&format!("redis-cli {command}")), "{command}");
    }
}
