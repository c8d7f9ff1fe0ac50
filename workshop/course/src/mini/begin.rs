//! `setup`, `start`, and `skeleton`, which writes or checks the committed skeletons.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::arguments::Arguments;
use super::{Mini, cargo};
use crate::files;
use crate::generate::Stage;
use crate::lang::Lang;

/// Checks Rust, linker and port, fetches and builds. What is missing is named, with what to do about it.
pub(super) fn setup(mini: &Mini, arguments: &mut Arguments) -> Result<bool, String> {
    arguments.end()?;
    let lang = mini.lang;
    let say = |ok: bool, en: &str, ja: &str| println!("{} {}", if ok { "✓" } else { "✗" }, lang.pick(en, ja));
    let version = version_of("rustc");
    let new_enough = version.as_deref().and_then(minor).is_some_and(|minor| minor >= 90);
    let shown = version.unwrap_or_default();
    say(new_enough, &format!("Rust 1.90 or later: {shown}"), &format!("Rust 1.90 以降: {shown}"));
    if !new_enough {
        println!("  {}", lang.pick("run `rustup update stable`", "`rustup update stable` を実行してください"));
        return Ok(false);
    }
    // This very program was linked here, so there is a linker.
    say(true, "a linker (this tool was built with it)", "リンカ（このツール自身がビルドできました）");
    let free = TcpListener::bind(("127.0.0.1", 6379)).is_ok();
    say(
        free,
        if free { "port 6379 is free" } else { "port 6379 is in use" },
        if free { "ポート 6379 は空いています" } else { "ポート 6379 は使用中です" },
    );
    if !free {
        println!(
            "  {}",
            lang.pick(
                "stop the other server, or use `cargo mini run --port 6380` and `redis-cli -p 6380`",
                "ほかのサーバを止めるか、`cargo mini run --port 6380` と `redis-cli -p 6380` を使ってください"
            )
        );
    }
    let cli = version_of("redis-cli").is_some();
    say(
        cli,
        if cli { "redis-cli" } else { "no redis-cli: use `cargo mini cli` instead" },
        if cli {
            "redis-cli"
        } else {
            "redis-cli がありません。代わりに `cargo mini cli` を使ってください"
        },
    );
    println!(
        "- {}",
        lang.pick("fetching and building: about a minute the first time", "取得とビルド: 初回は 1 分ほどかかります")
    );
    let scratch = scratch_package()?;
    let host = host().ok_or("rustc -vV names no host")?;
    for arguments in [&["fetch", "--target", &host][..], &["build", "--quiet"], &["test", "--quiet", "--no-run"]] {
        let mut command = cargo(&scratch);
        // A fetch may use the network; everything after it must work without.
        command.args(arguments).arg("--locked").stdout(Stdio::null()).stderr(Stdio::inherit());
        if arguments[0] != "fetch" {
            command.arg("--offline");
        }
        if !command.status().map_err(|error| format!("cargo: {error}"))?.success() {
            let what = arguments.join(" ");
            say(false, &format!("cargo {what} failed"), &format!("cargo {what} が失敗しました"));
            return Ok(false);
        }
    }
    say(true, "everything is fetched and built", "必要なものをすべて取得し、ビルドしました");
    println!("{}", lang.pick("Next: cargo mini start", "次は: cargo mini start --lang ja"));
    Ok(true)
}

/// A package with the learner's dependencies and a name of its own: what cargo builds of it is not mistaken for the
/// learner's server, which shares the target folder.
fn scratch_package() -> Result<PathBuf, String> {
    let scratch = files::workshop().join("target/setup");
    let own_name = |text: String| text.replace("name = \"mini-redis\"", "name = \"mini-redis-setup\"");
    let template = files::workshop().join("course/template");
    let package = [
        ("Cargo.toml".to_string(), own_name(files::read(&template.join("Cargo.toml"))?)),
        ("Cargo.lock".to_string(), own_name(files::read(&template.join("Cargo.lock"))?)),
        ("src/main.rs".to_string(), "fn main() {}\n".to_string()),
    ];
    files::write(&scratch, &package)?;
    Ok(scratch)
}

fn version_of(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// The platform that is built for: only its crates are fetched.
fn host() -> Option<String> {
    let output = Command::new("rustc").arg("-vV").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| Some(line.strip_prefix("host: ")?.to_string()))
}

/// The 90 of `rustc 1.90.0 (...)`; a later major version counts as new enough.
fn minor(version: &str) -> Option<u32> {
    let mut numbers = version.split_whitespace().nth(1)?.split('.');
    match numbers.next()?.parse::<u32>().ok()? {
        1 => numbers.next()?.parse().ok(),
        0 => Some(0),
        _ => Some(u32::MAX),
    }
}

/// Copies a skeleton to the learner's folder.
pub(super) fn start(mini: &mut Mini, arguments: &mut Arguments) -> Result<bool, String> {
    let minutes = arguments.option("--minutes")?.unwrap_or_else(|| "90".to_string());
    arguments.end()?;
    if !["90", "60"].contains(&minutes.as_str()) {
        return Err("--minutes 90 | 60".to_string());
    }
    if mini.folder.exists() {
        let place = mini.folder.display();
        return Err(match mini.lang {
            Lang::En => format!("{place} exists already; rename it if you want to begin again"),
            Lang::Ja => format!("{place} はすでに存在します。最初からやり直すときは名前を変えてください"),
        });
    }
    let stage = Stage { step: 0, lang: mini.lang, short: minutes == "60" };
    files::write(&mini.folder, &files::all(stage)?)?;
    mini.state.set("lang", mini.lang.code())?;
    mini.state.set("minutes", &minutes)?;
    println!(
        "{}",
        mini.lang.pick(
            "✓ The skeleton is in workshop/mini. Open that folder in your editor, and there:

    cd mini
    cargo mini test 1

The guide: workshop/guide/en/01-tcp.md",
            "✓ 雛形を workshop/mini にコピーしました。このフォルダをエディタで開き、そこで次を実行してください。

    cd mini
    cargo mini test 1

ガイド: workshop/guide/ja/01-tcp.md"
        )
    );
    Ok(true)
}

/// `skeleton --write` writes `skeleton/{en,ja}` again; `skeleton --check` fails if they are not what would be written.
pub(super) fn skeleton(arguments: &mut Arguments) -> Result<bool, String> {
    let write = arguments.flag("--write");
    let check = arguments.flag("--check");
    arguments.end()?;
    if write == check {
        return Err("skeleton --write | --check".to_string());
    }
    let mut same = true;
    for lang in Lang::ALL {
        let folder = files::workshop().join("skeleton").join(lang.code());
        let wanted = files::all(Stage { step: 0, lang, short: false })?;
        if write {
            let _ = fs::remove_dir_all(&folder);
            files::write(&folder, &wanted)?;
            continue;
        }
        for (name, text) in &wanted {
            if fs::read_to_string(folder.join(name)).ok().as_deref() != Some(text) {
                println!("skeleton/{}/{name} is not what the solution generates", lang.code());
                same = false;
            }
        }
        for part in ["src", "tests"] {
            for path in files::entries(&folder.join(part))? {
                let name = format!("{part}/{}", path.file_name().unwrap_or_default().to_string_lossy());
                if !wanted.iter().any(|(wanted, _)| *wanted == name) {
                    println!("skeleton/{}/{name} is not generated any more", lang.code());
                    same = false;
                }
            }
        }
    }
    Ok(same)
}
