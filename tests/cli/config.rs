//! `kumi config`: check, example, show.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// `kumi config` in a directory, with another one for the user's configuration.
fn config(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kumi"))
        .arg("config")
        .args(args)
        .current_dir(directory)
        .env("XDG_CONFIG_HOME", directory.join("xdg"))
        .stdin(Stdio::null())
        .output()
        .expect("kumi is built")
}

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    directory
}

/// Standard output of a run that has to succeed.
#[track_caller]
fn printed(directory: &Path, args: &[&str]) -> String {
    let output = config(directory, args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Standard error of a run that has to fail with the code for configurations.
#[track_caller]
fn refused(directory: &Path, args: &[&str]) -> String {
    let output = config(directory, args);
    assert_eq!(output.status.code(), Some(4), "{args:?}: {output:?}");
    assert_eq!(output.stdout, b"", "{args:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn a_sound_file_is_summed_up_in_a_line() {
    let text = "node \"a\"\nwork \"resize\" exec=\"./resize\"\nrun \"api\" exec=\"./api\"\n";
    let directory = directory(&[("kumi.kdl", text)]);
    let line = "kumi.kdl: sound, 1 work, 0 serve, 1 run, 0 cron\n";
    assert_eq!(printed(directory.path(), &["check"]), line);
    assert_eq!(printed(directory.path(), &["check", "kumi.kdl"]), line);
}

#[test]
fn all_errors_are_reported_with_their_places() {
    let text = "node {\n    bnid \"::1\"\n}\nwork \"resize\"\nstore \"redis://:sesame@h\"\n";
    let directory = directory(&[("a.kdl", text)]);
    let error = refused(directory.path(), &["check", "a.kdl"]);
    assert!(
        error.starts_with("kumi: the configuration has 3 errors\n"),
        "{error}"
    );
    for text in [
        "--> a.kdl:2:5",
        "did you mean bind?",
        "--> a.kdl:4:1",
        "work needs exec",
        "url-file",
    ] {
        assert!(error.contains(text), "no {text:?} in {error}");
    }
    assert!(!error.contains("sesame"), "{error}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = directory(&[("binary.kdl", "")]);
    fs::write(directory.path().join("binary.kdl"), b"\xff").expect("a file");
    let missing = refused(directory.path(), &["check", "nowhere.kdl"]);
    assert!(
        missing.starts_with("kumi: reading nowhere.kdl: "),
        "{missing}"
    );
    assert!(refused(directory.path(), &["show", "binary.kdl"]).contains("not UTF-8"));
    assert!(refused(directory.path(), &["show", "/dev/zero"]).contains("larger than 1024 KiB"));
    let none = refused(directory.path(), &["check"]);
    assert!(none.contains("kumi config example > kumi.kdl"), "{none}");
}

#[test]
fn the_file_of_the_directory_goes_before_that_of_the_user() {
    let files = directory(&[("xdg/kumi/kumi.kdl", "node \"user\"")]);
    assert!(printed(files.path(), &["show"]).starts_with("node \"user\" {"));
    fs::write(files.path().join("kumi.kdl"), "node \"here\"").expect("a file");
    assert!(printed(files.path(), &["show"]).starts_with("node \"here\" {"));
}

#[test]
fn the_example_is_sound_and_what_is_shown_too() {
    let directory = directory(&[]);
    let example = printed(directory.path(), &["example"]);
    fs::write(directory.path().join("kumi.kdl"), &example).expect("a file");
    printed(directory.path(), &["check"]);
    let shown = printed(directory.path(), &["show"]);
    assert!(shown.contains("maxmemory \"1gb\""), "{shown}");
    fs::write(directory.path().join("shown.kdl"), &shown).expect("a file");
    assert_eq!(printed(directory.path(), &["show", "shown.kdl"]), shown);
    fs::remove_file(directory.path().join("kumi.kdl")).expect("a file");
    let defaults = printed(directory.path(), &["show"]);
    assert!(
        defaults.contains("port 7400") && defaults.contains("\nstore\n"),
        "{defaults}"
    );
}

#[test]
fn nonsense_is_a_usage_error() {
    let directory = directory(&[]);
    for args in [&[][..], &["chek"], &["check", "a", "b"]] {
        let output = config(directory.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    }
}
