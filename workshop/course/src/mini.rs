//! The `mini` command: what each of its subcommands does.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::files;
use crate::lang::Lang;
use crate::runner::{self, Options, Outcome, Target};
use crate::state::State;
use crate::steps;

mod arguments;
mod begin;
mod catch_up;
mod cli;
mod compare;
mod help;
mod learn;

use arguments::Arguments;

/// Runs a subcommand. False: something is red, or the learner said no.
pub fn main(arguments: &[String]) -> Result<bool, String> {
    let folder = files::learner();
    let state = State::load(&folder);
    let mut arguments = Arguments::new(arguments);
    let lang = match arguments.option("--lang") {
        Ok(Some(code)) => Lang::from_code(&code).ok_or("--lang en | ja")?,
        Ok(None) => state.lang(),
        Err(_) => return Err("--lang en | ja".to_string()),
    };
    let mut mini = Mini { folder, state, lang };
    let Some(command) = arguments.word() else {
        println!("{}", help::text(lang));
        return Ok(true);
    };
    let result = match command.as_str() {
        "setup" => begin::setup(&mini, &mut arguments),
        "start" => begin::start(&mut mini, &mut arguments),
        "test" => learn::test(&mini, &mut arguments),
        "hint" => learn::hint(&mut mini, &mut arguments),
        "progress" => learn::progress(&mini, &mut arguments),
        "watch" => learn::watch(&mini, &mut arguments),
        "catch-up" => catch_up::catch_up(&mini, &mut arguments),
        "diff" => compare::diff(&mini, &mut arguments),
        "run" => learn::run(&mini, &mut arguments),
        "cli" => cli::cli(&mini, &mut arguments),
        "skeleton" => begin::skeleton(&mut arguments),
        "help" | "--help" | "-h" => {
            println!("{}", help::text(lang));
            Ok(true)
        }
        other => Err(format!("{}: {other}\n\n{}", lang.pick("unknown command", "未知のコマンド"), help::text(lang))),
    };
    result.map_err(|error| if error == arguments::USAGE { help::text(lang) } else { error })
}

/// What every subcommand needs.
struct Mini {
    /// The learner's folder.
    folder: PathBuf,
    state: State,
    lang: Lang,
}

impl Mini {
    fn started(&self) -> Result<(), String> {
        if self.folder.join("Cargo.toml").is_file() {
            return Ok(());
        }
        Err(self
            .lang
            .pick(
                "there is no mini folder yet: run `cargo mini start` first",
                "mini フォルダがまだありません。先に `cargo mini start` を実行してください",
            )
            .to_string())
    }

    /// Builds the learner's server. False if it does not compile: cargo has said why.
    fn build(&self) -> Result<Option<PathBuf>, String> {
        self.started()?;
        // For the tests of this tool: a server that is built already.
        if let Some(server) = std::env::var_os("MINI_SERVER") {
            return Ok(Some(PathBuf::from(server)));
        }
        let built = cargo(&self.folder)
            .args(["build", "--quiet", "--bin", "mini-redis", "--message-format=json-render-diagnostics"])
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        if !built.status.success() {
            println!(
                "{}",
                self.lang.pick(
                    "✗ It does not compile yet. Begin with the first error above.",
                    "✗ まだコンパイルできません。上の最初のエラーから直してください。"
                )
            );
            return Ok(None);
        }
        let messages = String::from_utf8_lossy(&built.stdout);
        let path = messages.lines().filter_map(|line| line.split("\"executable\":\"").nth(1)).next_back();
        let path = path.and_then(|rest| rest.split('"').next()).map(|path| path.replace("\\\\", "\\"));
        path.map(|path| Some(PathBuf::from(path))).ok_or_else(|| "cargo named no executable".to_string())
    }

    /// Runs the tests of some steps on the learner's server.
    fn run_tests(&self, steps: Vec<u8>, seed: u64, say: impl FnMut(&str)) -> Result<Option<Outcome>, String> {
        let Some(binary) = self.build()? else { return Ok(None) };
        let target = Target::Binary(binary, Vec::new());
        runner::run(&target, &Options { steps, seed, lang: self.lang }, say).map(Some)
    }
}

/// Cargo, in a folder. The variables that an outer cargo set are not handed on.
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(folder).stdin(Stdio::null());
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    command
}

fn step_argument(text: &str, lang: Lang) -> Result<u8, String> {
    let step = text.parse().ok().filter(|step| (1..=steps::LAST).contains(step));
    step.ok_or_else(|| format!("{}: {text}", lang.pick("not a step from 1 to 7", "ステップは 1 から 7 です")))
}
