//! `test`, `hint`, `progress`, `watch` and `run`.

use std::io::ErrorKind;
use std::net::{TcpListener, ToSocketAddrs};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::arguments::Arguments;
use super::{Mini, cargo, step_argument};
use crate::files;
use crate::hints;
use crate::lang::Lang;
use crate::runner::{self, Options, Outcome, Target};
use crate::steps;

/// How many steps belong to the workshop itself; the others are for home.
const IN_CLASS: u8 = 5;

/// Runs the wire tests, or with `--unit` the unit tests.
pub(super) fn test(mini: &Mini, arguments: &mut Arguments) -> Result<bool, String> {
    let only = arguments.flag("--only");
    let unit = arguments.flag("--unit");
    let seed = match arguments.option("--seed")? {
        Some(seed) => seed.parse().map_err(|_| format!("--seed: {seed}"))?,
        None => fastrand::u64(0..1_000_000),
    };
    let against = arguments.option("--against")?;
    let last = arguments.word().map(|word| step_argument(&word, mini.lang)).transpose()?;
    arguments.end()?;
    if unit {
        return unit_tests(mini, last);
    }
    let steps: Vec<u8> = match last {
        Some(last) if only => vec![last],
        last => (1..=last.unwrap_or(steps::LAST)).collect(),
    };
    let say = |line: &str| println!("{line}");
    let outcome = match against {
        Some(address) => {
            let address = address.to_socket_addrs().map_err(|error| format!("{address}: {error}"))?.next();
            let target = Target::Running(address.ok_or("--against: no address")?);
            runner::run(&target, &Options { steps: steps.clone(), seed, lang: mini.lang }, say)?
        }
        None => match mini.run_tests(steps.clone(), seed, say)? {
            Some(outcome) => outcome,
            None => return Ok(false),
        },
    };
    match &outcome.red {
        None => {
            let next = steps.last().copied().unwrap_or(0) + 1;
            println!("{}", mini.lang.pick("All green.", "すべて成功しました。"));
            if next <= steps::LAST && last.is_some() {
                println!("{} cargo mini test {next}", mini.lang.pick("Next:", "次は:"));
            }
            Ok(true)
        }
        Some(red) => {
            let step = red.test.step;
            println!(
                "{}",
                match mini.lang {
                    Lang::En => format!("Red: step {step}. A hint: cargo mini hint {step}   (this run's seed: {seed})"),
                    Lang::Ja =>
                        format!("失敗: ステップ {step}。ヒント: cargo mini hint {step}   （この実行の seed: {seed}）"),
                }
            );
            Ok(false)
        }
    }
}

fn unit_tests(mini: &Mini, last: Option<u8>) -> Result<bool, String> {
    mini.started()?;
    let mut command = cargo(&mini.folder);
    command.args(["test", "--quiet", "--no-fail-fast"]).env("RUST_BACKTRACE", "0");
    for step in 1..=last.unwrap_or(steps::LAST) {
        let name = format!("step{step}");
        if mini.folder.join("tests").join(format!("{name}.rs")).is_file() {
            command.args(["--test", &name]);
        }
    }
    command.status().map(|status| status.success()).map_err(|error| format!("cargo: {error}"))
}

/// The next hint for the first red test of a step; without a step, of the one that the learner is at.
pub(super) fn hint(mini: &mut Mini, arguments: &mut Arguments) -> Result<bool, String> {
    let asked = arguments.word().map(|word| step_argument(&word, mini.lang)).transpose()?;
    arguments.end()?;
    let steps = asked.map_or_else(|| (1..=steps::LAST).collect(), |step| vec![step]);
    let Some(outcome) = mini.run_tests(steps, 1, |_| ())? else { return Ok(false) };
    let Some(red) = outcome.red else {
        println!(
            "{}",
            match asked {
                Some(_) => mini
                    .lang
                    .pick("This step is green: no hint needed.", "このステップは成功しています。ヒントは不要です。"),
                None => mini.lang.pick(
                    "All seven steps are green: no hint needed.",
                    "7 つのステップがすべて成功しています。ヒントは不要です。"
                ),
            }
        );
        return Ok(true);
    };
    let step = red.test.step;
    if asked.is_none() {
        println!("{} {step}: {}", mini.lang.pick("Step", "ステップ"), steps::title(step, mini.lang));
    }
    if let Some((missing, file)) = red.todo.as_ref().filter(|(missing, _)| *missing < step) {
        println!(
            "{}",
            match mini.lang {
                Lang::En => format!(
                    "Step {missing} comes first: src/{file} is not written yet. Try `cargo mini hint {missing}`."
                ),
                Lang::Ja => format!(
                    "先にステップ {missing} が必要です。src/{file} が未実装です。`cargo mini hint {missing}` を試してください。"
                ),
            }
        );
        return Ok(false);
    }
    let topic = hints::topic(step, red.test.topic, red.todo.as_ref().map(|(_, file)| file.as_str()));
    let name = format!("hint.{step}.{topic}");
    let shown: usize = mini.state.get(&name).and_then(|text| text.parse().ok()).unwrap_or(0);
    let number = (shown + 1).min(hints::COUNT);
    mini.state.set(&name, &number.to_string())?;
    let text = hints::hint(step, topic, number, mini.lang).ok_or("no such hint")?;
    println!(
        "{}: {}\n{} {number}/{}\n\n{text}",
        mini.lang.pick("The first red test", "最初に失敗したテスト"),
        red.test.title(mini.lang),
        mini.lang.pick("Hint", "ヒント"),
        hints::COUNT
    );
    if number == hints::COUNT {
        println!("\n{} cargo mini diff {step}", mini.lang.pick("Still stuck?", "それでも進まないときは:"));
    }
    Ok(true)
}

/// A bar of all steps, and what is next.
pub(super) fn progress(mini: &Mini, arguments: &mut Arguments) -> Result<bool, String> {
    arguments.end()?;
    let Some(outcome) = mini.run_tests((1..=steps::LAST).collect(), 1, |_| ())? else { return Ok(false) };
    println!("{}", bar(&outcome, mini.lang));
    Ok(true)
}

/// The bar, and below it the next thing to do.
pub(super) fn bar(outcome: &Outcome, lang: Lang) -> String {
    let mut text = String::new();
    for step in 1..=steps::LAST {
        if step == IN_CLASS + 1 {
            text.push_str(lang.pick("  for home:\n", "  自宅用:\n"));
        }
        let all = steps::of(step).len();
        let passed = outcome.passed.iter().find(|(of, _)| *of == step).map_or(0, |(_, passed)| *passed);
        let full = passed * 10 / all.max(1);
        let bar = format!("{}{}", "█".repeat(full), "░".repeat(10 - full));
        text.push_str(&format!("  {step} {bar} {passed:>2}/{all:<2} {}\n", steps::title(step, lang)));
    }
    let next = match &outcome.red {
        None => lang.pick("All seven steps are green.", "7 つのステップがすべて成功しました。").to_string(),
        Some(red) => {
            let todo = red.todo.as_ref().map(|(_, file)| format!(" (src/{file})")).unwrap_or_default();
            format!(
                "{} {} {}: {}{todo}",
                lang.pick("Next:", "次は:"),
                lang.pick("step", "ステップ"),
                red.test.step,
                red.test.title(lang)
            )
        }
    };
    text + &next
}

/// Tests again whenever a file below `src` has changed. It polls, which works on every system and network drive.
pub(super) fn watch(mini: &Mini, arguments: &mut Arguments) -> Result<bool, String> {
    let rounds: usize = match arguments.option("--rounds")? {
        Some(rounds) => rounds.parse().map_err(|_| format!("--rounds: {rounds}"))?,
        None => usize::MAX,
    };
    arguments.end()?;
    mini.started()?;
    for _ in 0..rounds {
        let tested = newest(&mini.folder.join("src"));
        println!("\n── {} ──", mini.lang.pick("testing", "テスト中"));
        let outcome = mini.run_tests((1..=steps::LAST).collect(), 1, |_| ())?;
        if let Some(outcome) = outcome {
            println!("{}", bar(&outcome, mini.lang));
            if let Some(red) = &outcome.red {
                runner::explain(red, mini.lang).iter().for_each(|line| println!("{line}"));
            }
        }
        println!(
            "{}",
            mini.lang.pick("Waiting for a save (Ctrl+C ends this).", "保存を待っています（Ctrl+C で終了）。")
        );
        while newest(&mini.folder.join("src")) == tested {
            std::thread::sleep(Duration::from_millis(300));
        }
    }
    Ok(true)
}

/// When the newest file was changed, and how many there are.
fn newest(folder: &Path) -> (Option<SystemTime>, usize) {
    let paths = files::entries(folder).unwrap_or_default();
    let changed = paths.iter().filter_map(|path| path.metadata().ok()?.modified().ok()).max();
    (changed, paths.len())
}

/// Builds and runs the learner's server in the foreground.
pub(super) fn run(mini: &Mini, arguments: &mut Arguments) -> Result<bool, String> {
    let port = arguments.option("--port")?.unwrap_or_else(|| "6379".to_string());
    let number: u16 = port.parse().map_err(|_| format!("--port: {port}"))?;
    arguments.end()?;
    if is_taken(number) {
        return Err(taken(number, mini.lang));
    }
    let Some(binary) = mini.build()? else { return Ok(false) };
    let mut command = std::process::Command::new(binary);
    command.args(["--port", &port]).env("RUST_BACKTRACE", "0");
    replace_by(command)
}

fn is_taken(port: u16) -> bool {
    let bound = TcpListener::bind(("127.0.0.1", port));
    bound.is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

/// What to do about a port that another server uses.
fn taken(port: u16, lang: Lang) -> String {
    let free = (port.saturating_add(1)..=u16::MAX).find(|port| !is_taken(*port)).unwrap_or(0);
    match lang {
        Lang::En => format!(
            "cannot listen on port {port}: another server uses it. Stop that one, or use another port:

    cargo mini run --port {free}
    redis-cli -p {free}"
        ),
        Lang::Ja => format!(
            "ポート {port} で待ち受けできません。ほかのサーバが使用中です。それを止めるか、別のポートを使ってください。

    cargo mini run --port {free}
    redis-cli -p {free}"
        ),
    }
}

/// The server takes this process's place, so that Ctrl+C and `kill` reach it.
#[cfg(unix)]
fn replace_by(mut command: std::process::Command) -> Result<bool, String> {
    use std::os::unix::process::CommandExt;
    Err(command.exec().to_string())
}

#[cfg(not(unix))]
fn replace_by(mut command: std::process::Command) -> Result<bool, String> {
    command.status().map(|status| status.success()).map_err(|error| error.to_string())
}
