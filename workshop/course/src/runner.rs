//! Runs wire tests of some steps against one server and tells what happened.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::lang::Lang;
use crate::server::Server;
use crate::steps::{self, Context, Test};
use crate::wire::{Ending, Failure};

/// The first step whose code takes a lock.
const FIRST_LOCK_STEP: u8 = 3;

/// The server under test.
pub enum Target {
    /// A binary that is started for each step, with these arguments before `--port 0`.
    Binary(PathBuf, Vec<String>),
    /// A server that runs already, of whatever make. What only the course demands is skipped.
    Running(SocketAddr),
}

/// How to run.
pub struct Options {
    /// Steps to run, in order.
    pub steps: Vec<u8>,
    /// Makes the random values.
    pub seed: u64,
    /// The language of what is printed.
    pub lang: Lang,
}

/// The first test that failed, and why.
pub struct Red {
    /// The test.
    pub test: &'static Test,
    /// What was seen.
    pub failure: Failure,
    /// The missing piece that the server's log named: step and file.
    pub todo: Option<(u8, String)>,
    /// The log line of a panic that is not a `todo!`: its text, file and line.
    pub panic: Option<String>,
    /// The last log line, if the server ended.
    pub ended: Option<String>,
}

/// What a run found.
pub struct Outcome {
    /// Tests passed, per step from 1 on.
    pub passed: Vec<(u8, usize)>,
    /// The first failure; the run stops there.
    pub red: Option<Red>,
}

impl Outcome {
    /// The last step of an unbroken row of green steps, from the first one that was run.
    pub fn green_through(&self) -> u8 {
        let complete = |(step, passed): &&(u8, usize)| *passed == steps::of(*step).len();
        let red = self.red.as_ref().map(|red| red.test.step);
        self.passed.iter().filter(complete).map(|(step, _)| *step).filter(|step| Some(*step) != red).max().unwrap_or(0)
    }
}

/// Runs the tests until one fails; `say` gets every line for the learner.
pub fn run(target: &Target, options: &Options, mut say: impl FnMut(&str)) -> Result<Outcome, String> {
    let mut outcome = Outcome { passed: Vec::new(), red: None };
    for step in &options.steps {
        say(&format!("{} {step}: {}", options.lang.pick("Step", "ステップ"), steps::title(*step, options.lang)));
        let mut server = match target {
            Target::Binary(binary, arguments) => {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                Some(Server::start(binary, &arguments).map_err(|last_line| not_started(&last_line, options.lang))?)
            }
            Target::Running(_) => None,
        };
        let address = match (&server, target) {
            (Some(server), _) => server.address,
            (None, Target::Running(address)) => *address,
            (None, Target::Binary(..)) => return Err("no server".to_string()),
        };
        let mut passed = 0;
        for test in steps::of(*step) {
            if test.course_only && matches!(target, Target::Running(_)) {
                say(&format!(
                    "  - {} {}",
                    test.title(options.lang),
                    options.lang.pick("(course only: skipped)", "（この教材だけの要件: 省略）")
                ));
                passed += 1;
                continue;
            }
            let log_start = server.as_ref().map_or(0, |server| server.log().len());
            let mut context = Context::new(address, options.seed, test.name);
            match (test.run)(&mut context) {
                Ok(()) => {
                    say(&format!("  ✓ {}", test.title(options.lang)));
                    passed += 1;
                }
                Err(failure) => {
                    let todo =
                        server.as_ref().and_then(|server| server.todo_since(log_start.saturating_sub(2), test.step));
                    let panic = server.as_ref().and_then(|server| panic_in(&server.log()[log_start..]));
                    let ended = server.as_mut().and_then(|server| (!server.is_running()).then_some(server));
                    let ended = ended.map(|server| server.log().last().cloned().unwrap_or_default());
                    let red = Red { test, failure, todo, panic, ended };
                    explain(&red, options.lang).iter().for_each(|line| say(line));
                    outcome.red = Some(red);
                    break;
                }
            }
        }
        outcome.passed.push((*step, passed));
        if outcome.red.is_some() {
            break;
        }
    }
    Ok(outcome)
}

/// A red test in words: what was sent, expected and seen, and where to look.
pub fn explain(red: &Red, lang: Lang) -> Vec<String> {
    let mut lines = vec![format!("  ✗ {}  [{}]", red.test.title(lang), red.test.name)];
    if let Some((step, file)) = &red.todo {
        lines.push(match lang {
            Lang::En => format!("      a todo! was reached: step {step}, src/{file} is not written yet"),
            Lang::Ja => format!("      todo! に到達しました: ステップ {step} の src/{file} が未実装です"),
        });
    } else if let Some(line) = &red.panic {
        lines.push(match lang {
            Lang::En => format!("      the server's code panicked: {line}"),
            Lang::Ja => format!("      サーバのコードがパニックしました: {line}"),
        });
    } else if let Some(line) = &red.ended {
        lines.push(match lang {
            Lang::En => format!("      the server ended; the last line of its log: {line}"),
            Lang::Ja => format!("      サーバが終了しました。ログの最後の行: {line}"),
        });
    }
    let known = red.todo.is_some() || red.panic.is_some() || red.ended.is_some();
    lines.extend(red.failure.lines(lang).into_iter().map(|line| format!("      {line}")));
    lines.push(format!("      → {}", red.test.nudge(lang)));
    if red.failure.ending == Ending::Silence && red.test.step >= FIRST_LOCK_STEP && !known {
        lines.push(format!(
            "      → {}",
            lang.pick(
                "No reply at all? Perhaps a lock is taken twice: a second `self.store()` waits for ever while the first guard lives.",
                "応答がまったくないときは、ロックの二重取得を疑ってください。最初のガードが生きているあいだに `self.store()` をもう一度呼ぶと、永久に待ちます。",
            )
        ));
    }
    lines
}

/// The first panic in a learner's file: `ERROR text (src/FILE:LINE)`, as log.rs writes it, without `ERROR`. A `todo!` is
/// told in another way.
fn panic_in(log: &[String]) -> Option<String> {
    let mut lines = log.iter().filter_map(|line| line.strip_prefix("ERROR "));
    let panic = lines.find(|line| line.contains(" (src") && !line.contains("not yet implemented"))?;
    Some(panic.to_string())
}

/// The error if the server under test ended, or did not listen in time.
fn not_started(last_line: &str, lang: Lang) -> String {
    match lang {
        Lang::En => format!("the server did not start to listen; the last line of its log: {last_line}"),
        Lang::Ja => format!("サーバが待ち受けを開始しませんでした。ログの最後の行: {last_line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_with_its_file_and_line() {
        let log = ["INFO listening on 127.0.0.1:1", "ERROR not yet implemented: step 5: expiry.rs (src/expiry.rs:64)"];
        let mut log = log.map(str::to_string).to_vec();
        assert_eq!(panic_in(&log), None);
        log.push("ERROR index out of bounds (src/commands.rs:85)".to_string());
        let panic = panic_in(&log);
        assert_eq!(panic.as_deref(), Some("index out of bounds (src/commands.rs:85)"));
        let failure = Failure {
            sent: Vec::new(),
            expected: crate::wire::Expected::Bytes(b"+OK\r\n".to_vec()),
            got: b"-ERR internal error\r\n".to_vec(),
            ending: crate::wire::Ending::Different,
        };
        let red = Red { test: &steps::of(3)[0], failure, todo: None, panic, ended: None };
        for (lang, start) in [(Lang::En, "panicked: index"), (Lang::Ja, "パニックしました: index")] {
            assert!(explain(&red, lang)[1].contains(start), "{:?}", explain(&red, lang));
        }
    }
}
