//! Every stage of the course: what catch-up N gives passes steps 1 to N and fails N + 1, and says which piece is missing.

use std::thread;
use std::time::{Duration, Instant};

use crate::common::{build, build_lock, mini, run, scratch, stages, succeeded, text_of};
use course::lang::Lang;
use course::runner::explain;
use course::steps;

#[test]
fn the_committed_skeletons_are_what_the_solution_generates() {
    let output = succeeded(mini(&scratch("skeleton-check"), &["skeleton", "--check"]));
    assert_eq!(output, "");
}

#[test]
fn each_stage_passes_its_steps_and_fails_the_next_one() {
    let binaries = stages();
    thread::scope(|scope| {
        for (stage, binary) in (0u8..).zip(binaries) {
            scope.spawn(move || check_stage(stage, binary));
        }
    });
    // On the skeleton every step is red, and the first missing piece is named.
    for step in 1..=steps::LAST {
        let (outcome, lines) = run(&binaries[0], &[], vec![step]);
        let red = outcome.red.expect("the skeleton is red");
        assert_eq!(red.todo, Some((1, "server.rs".to_string())), "{lines:?}");
    }
}

fn check_stage(stage: u8, binary: &std::path::Path) {
    let started = Instant::now();
    let (outcome, lines) = run(binary, &[], (1..=steps::LAST).collect());
    let said = lines.join("\n");
    // Most of it is waiting for keys to expire, so this holds beside the other stages, too.
    assert!(outcome.red.is_some() || started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert_eq!(outcome.green_through(), stage, "stage {stage}:\n{said}");
    assert!(!said.contains("backtrace"), "{said}");
    if stage == steps::LAST {
        assert!(outcome.red.is_none(), "{said}");
        return;
    }
    let red = outcome.red.expect("the next step is red");
    assert_eq!(red.test.step, stage + 1, "stage {stage}:\n{said}");
    for lang in Lang::ALL {
        let explained = explain(&red, lang).join("\n");
        match &red.todo {
            Some((step, file)) => {
                assert_eq!(*step, stage + 1, "{explained}");
                assert!(explained.contains(&format!("src/{file}")), "{explained}");
            }
            // The code of step 1 answers PONG to everything: no todo! is reached, the nudge names the function.
            None => assert!(stage == 1 && explained.contains("parse_command"), "{explained}"),
        }
    }
}

/// The internal error of a todo! does not end the connection.
#[test]
fn a_missing_command_is_an_internal_error_and_the_connection_stays() {
    let folder = scratch("internal-error").join("mini");
    let binary = {
        let _alone = build_lock();
        succeeded(mini(&folder, &["start", "--lang", "ja", "--minutes", "60"]));
        succeeded(mini(&folder, &["catch-up", "2", "--yes"]));
        build(&folder, "stage-2")
    };
    let server = course::server::Server::start(&binary, &[]).expect("it starts");
    let mut client = course::wire::Client::connect(server.address).expect("it accepts");
    client.call(&[b"GET", b"k"], b"-ERR internal error\r\n").expect("an error");
    client.call(&[b"PING"], b"+PONG\r\n").expect("still there");
}

/// The unit tests of the skeleton compile without a warning, fail, and name the missing piece.
#[test]
fn unit_tests_of_the_skeleton_name_the_missing_piece() {
    let folder = scratch("unit").join("mini");
    let _alone = build_lock();
    succeeded(mini(&folder, &["start", "--lang", "ja"]));
    let tested = mini(&folder, &["test", "2", "--unit"]);
    let said = text_of(&tested);
    assert_eq!(tested.status.code(), Some(1), "{said}");
    for expected in ["not yet implemented: step 1: server.rs", "not yet implemented: step 2: resp.rs"] {
        assert!(said.contains(expected), "{said}");
    }
    assert!(!said.contains("warning:") && !said.contains("stack backtrace"), "{said}");
}

/// The Japanese skeleton is red in Japanese, and the commands around it work.
#[test]
fn the_commands_speak_the_learners_language() {
    let folder = scratch("japanese").join("mini");
    let _alone = build_lock();
    let started = succeeded(mini(&folder, &["start", "--lang", "ja"]));
    assert!(started.contains("雛形"), "{started}");
    let again = mini(&folder, &["start", "--lang", "ja"]);
    assert!(!again.status.success() && text_of(&again).contains("すでに存在します"));
    let tested = mini(&folder, &["test", "1"]);
    let said = text_of(&tested);
    assert_eq!(tested.status.code(), Some(1), "{said}");
    assert!(said.contains("todo! に到達しました: ステップ 1 の src/server.rs が未実装です"), "{said}");
    assert!(said.contains("ヒント: cargo mini hint 1"), "{said}");
    for number in 1..=4 {
        let hint = succeeded(mini(&folder, &["hint", "1"]));
        assert!(hint.contains(&format!("ヒント {}/3", number.min(3))), "{hint}");
        assert_eq!(hint.contains("cargo mini diff 1"), number >= 3, "{hint}");
    }
    let early = text_of(&mini(&folder, &["hint", "4"]));
    assert!(early.contains("先にステップ 1 が必要です"), "{early}");
    let progress = succeeded(mini(&folder, &["progress"]));
    assert!(progress.contains("次は: ステップ 1"), "{progress}");
    let diff = succeeded(mini(&folder, &["diff", "1"]));
    assert!(diff.contains("模範解答") && diff.contains("self.listener.accept().await?"), "{diff}");
    // Without --yes it asks, and no answer is a no.
    let asked = mini(&folder, &["catch-up", "1"]);
    assert!(!asked.status.success() && text_of(&asked).contains("何も変更していません"));
    assert!(!folder.join("src.old-1").exists());
    let last = succeeded(mini(&folder, &["catch-up", "7", "--yes"]));
    assert!(last.contains("src.old-1") && !last.contains("次は"), "{last}");
    std::fs::remove_dir_all(folder.join("src")).expect("removed");
    succeeded(mini(&folder, &["catch-up", "1", "--yes"]));
    assert!(folder.join("src/main.rs").is_file());
    let unfinished = mini(&folder, &["test", "--lang"]);
    assert!(!unfinished.status.success() && text_of(&unfinished).contains("--lang en | ja"));
    // A mistake of the learner's: cargo's error, and a line that says where to begin.
    std::fs::write(folder.join("src/server.rs"), "fn broken( {}").expect("written");
    let broken = text_of(&mini(&folder, &["test", "1"]));
    assert!(broken.contains("まだコンパイルできません"), "{broken}");
}
