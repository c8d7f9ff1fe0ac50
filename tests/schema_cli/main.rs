//! `kumi schema` as a person or a CI job meets it: through the built binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const CHAT: &str = r#"// A chat.
protocol "chat" version="1.2.0" {
    channel "rooms" from="client" {
        request "Join" idempotent=#true {
            field "room" type="string" required=#true max_length=64
            returns "Joined" {
                field "members" type="array" item_type="string"
            }
        }
        event "Posted" {
            field "text" type="string" required=#true
        }
    }
}
"#;

/// A folder with files in it, and the command run there.
struct Desk {
    folder: TempDir,
}

impl Desk {
    fn with(files: &[(&str, &str)]) -> Desk {
        let folder = tempfile::tempdir().expect("a temporary directory");
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).expect("it is ours");
        }
        Desk { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn kumi(&self, args: &[&str]) -> Ended {
        self.kumi_with(args, "")
    }

    fn kumi_with(&self, args: &[&str], input: &str) -> Ended {
        use std::io::Write;
        let mut child = Command::new(env!("CARGO_BIN_EXE_kumi"))
            .arg("schema")
            .args(args)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        Ended(child.wait_with_output().expect("it ends"))
    }
}

struct Ended(Output);

impl Ended {
    fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    fn err(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    #[track_caller]
    fn code(self, expected: i32) -> Self {
        assert_eq!(
            self.0.status.code(),
            Some(expected),
            "{}{}",
            self.out(),
            self.err()
        );
        self
    }
}

#[test]
fn check_names_sound_schemas_and_shows_errors() {
    let desk = Desk::with(&[
        ("chat.kdl", CHAT),
        (
            "bad.kdl",
            &CHAT.replace("\"string\" required", "\"strin\" required"),
        ),
    ]);
    let ended = desk.kumi(&["check", "chat.kdl"]).code(0);
    assert!(
        ended
            .out()
            .starts_with("chat.kdl: protocol chat 1.2.0, 1 channel, hash "),
        "{}",
        ended.out()
    );
    assert_eq!(
        desk.kumi(&["check", "--quiet", "chat.kdl"]).code(0).out(),
        ""
    );
    let ended = desk.kumi(&["check", "bad.kdl", "chat.kdl"]).code(3);
    assert!(
        ended.out().starts_with("chat.kdl: "),
        "the others are looked at too"
    );
    let expected = r#"error: there is no type "strin"
  --> bad.kdl:5:31
   |
 5 |             field "room" type="strin" required=#true max_length=64
   |                               ^^^^^^^
   = help: did you mean "string"?
"#;
    assert!(ended.err().starts_with(expected), "{}", ended.err());
    let ended = desk.kumi(&["check", "none.kdl"]).code(1);
    assert!(
        ended.err().starts_with("kumi: reading none.kdl: "),
        "{}",
        ended.err()
    );
    desk.kumi(&["check"]).code(2);
}

#[test]
fn a_file_that_is_no_schema_at_all_cannot_be_read() {
    let desk = Desk::with(&[("large.kdl", &"// x\n".repeat(300_000))]);
    std::fs::write(desk.path("bytes.kdl"), b"protocol \"\xff\"").expect("it is ours");
    for (file, why) in [
        ("large.kdl", "it is larger than 1024 KiB"),
        ("bytes.kdl", "it is not UTF-8 text"),
    ] {
        for args in [
            &["check", file][..],
            &["fmt", file],
            &["doc", file],
            &["diff", file, file],
            &["gen", file, "--lang", "rust"],
        ] {
            let ended = desk.kumi(args).code(1);
            assert_eq!(ended.err(), format!("kumi: reading {file}: {why}\n"));
        }
    }
}

/// What the commands of the page print is compared by the test of all shell blocks.
#[test]
fn the_schema_of_the_tour_is_formatted() {
    let tour = include_str!("../../docs/schema.md");
    let (_, rest) = tour
        .split_once("```kdl file=chat.kdl\n")
        .expect("the schema");
    let (schema, _) = rest.split_once("```").expect("its end");
    let desk = Desk::with(&[("chat.kdl", schema)]);
    desk.kumi(&["check", "chat.kdl"]).code(0);
    desk.kumi(&["fmt", "--check", "chat.kdl"]).code(0);
}

#[test]
fn imports_are_found_beside_the_schema() {
    let desk = Desk::with(&[(
        "common.kdl",
        "message \"User\" { field \"name\" type=\"string\" }",
    )]);
    std::fs::create_dir(desk.path("sub")).expect("it is ours");
    let text = CHAT
        .replace("protocol", "import \"../common.kdl\"\nprotocol")
        .replace("\"text\" type=\"string\"", "\"by\" type=\"User\"");
    std::fs::write(desk.path("sub/chat.kdl"), text).expect("it is ours");
    desk.kumi(&["check", "sub/chat.kdl"]).code(0);
}

#[test]
fn fmt_rewrites_files_and_check_only_looks() {
    let ugly = CHAT
        .replace("    ", " ")
        .replace(" idempotent=#true", "   idempotent=#true /* yes */");
    let desk = Desk::with(&[("chat.kdl", &ugly), ("good.kdl", CHAT)]);
    assert_eq!(
        desk.kumi(&["fmt", "--check", "chat.kdl", "good.kdl"])
            .code(4)
            .out(),
        "chat.kdl\n"
    );
    assert_eq!(desk.read("chat.kdl"), ugly, "looking changes nothing");
    desk.kumi(&["fmt", "chat.kdl", "good.kdl"]).code(0);
    assert_eq!(
        desk.read("chat.kdl"),
        CHAT.replace("        request", "        /* yes */\n        request")
    );
    desk.kumi(&["fmt", "--check", "chat.kdl"]).code(0);
    assert_eq!(
        desk.kumi_with(&["fmt", "-"], &ugly).code(0).out(),
        desk.read("chat.kdl")
    );
    let ended = desk.kumi_with(&["fmt", "-"], "a {").code(3);
    assert!(
        ended.err().contains("--> standard input:1:3"),
        "{}",
        ended.err()
    );
}

#[test]
fn diff_fails_when_something_breaks_unannounced() {
    let desk = Desk::with(&[
        ("old.kdl", CHAT),
        (
            "safe.kdl",
            &CHAT
                .replace(
                    "event \"Posted\" {",
                    "event \"Posted\" {\n field \"at\" type=\"timestamp\"",
                )
                .replace("1.2.0", "1.3.0"),
        ),
        (
            "broken.kdl",
            &CHAT.replace("max_length=64", "max_length=10"),
        ),
        (
            "major.kdl",
            &CHAT
                .replace("max_length=64", "max_length=10")
                .replace("1.2.0", "2.0.0"),
        ),
    ]);
    assert_eq!(
        desk.kumi(&["diff", "old.kdl", "old.kdl"]).code(0).out(),
        "0 breaking, 0 safe (both 1.2.0)\n"
    );
    assert_eq!(
        desk.kumi(&["diff", "old.kdl", "safe.kdl"]).code(0).out(),
        "safe: channel rooms, event Posted, field at: it is new\n0 breaking, 1 safe (1.2.0 -> 1.3.0)\n"
    );
    assert_eq!(
        desk.kumi(&["diff", "old.kdl", "broken.kdl"]).code(5).out(),
        "breaking: channel rooms, request Join, field room: its max_length is narrower\n1 breaking, 0 safe (both 1.2.0)\n"
    );
    desk.kumi(&["diff", "old.kdl", "major.kdl"]).code(0);
    desk.kumi(&["diff", "--strict", "old.kdl", "major.kdl"])
        .code(5);
    desk.kumi(&["diff", "old.kdl", "none.kdl"]).code(1);
    desk.kumi(&["diff", "old.kdl"]).code(2);
}

#[test]
fn doc_writes_a_page() {
    let desk = Desk::with(&[("chat.kdl", CHAT)]);
    let page = desk.kumi(&["doc", "chat.kdl"]).code(0).out();
    assert!(
        page.starts_with("# chat\n") && page.contains("#### Request `Join`"),
        "{page}"
    );
    desk.kumi(&["doc", "chat.kdl", "--out", "chat.md"]).code(0);
    assert_eq!(desk.read("chat.md"), page);
}

#[test]
fn gen_writes_both_languages_and_check_compares() {
    let desk = Desk::with(&[("chat.kdl", CHAT)]);
    let rust = desk
        .kumi(&["gen", "chat.kdl", "--lang", "rust"])
        .code(0)
        .out();
    assert!(rust.contains("pub struct ChatChannels"), "{rust}");
    assert!(rust.starts_with("// @generated "), "{rust}");
    // Another layout of the same code is no change.
    std::fs::write(desk.path("chat.rs"), rust.replace("\n    ", "\n  ")).expect("it is ours");
    let words = [
        "gen", "chat.kdl", "-l", "rust", "--out", "chat.rs", "--check",
    ];
    desk.kumi(&words).code(0);
    std::fs::write(desk.path("chat.rs"), rust.replacen("pub fn", "fn", 1)).expect("it is ours");
    desk.kumi(&words).code(4);
    assert!(rust.contains("use ::kumi_unison as unison;"), "{rust}");
    let other = desk
        .kumi(&[
            "gen",
            "chat.kdl",
            "--lang",
            "rust",
            "--runtime",
            "crate::net",
        ])
        .code(0)
        .out();
    assert!(
        other.contains("use crate::net as unison;") && !other.contains("kumi_unison"),
        "{other}"
    );
    desk.kumi(&["gen", "chat.kdl", "-l", "rust", "--runtime", "not a path"])
        .code(2);
    desk.kumi(&["gen", "chat.kdl", "-l", "ts", "--out", "."])
        .code(0);
    let typescript = desk.read("chat.ts");
    assert!(
        typescript.contains("export class ChatClient"),
        "{typescript}"
    );
    desk.kumi(&["gen", "chat.kdl", "-l", "ts", "--out", "chat.ts", "--check"])
        .code(0);
    std::fs::write(desk.path("chat.ts"), "old").expect("it is ours");
    let ended = desk
        .kumi(&["gen", "chat.kdl", "-l", "ts", "--out", "chat.ts", "--check"])
        .code(4);
    assert!(
        ended.err().contains("chat.ts is not what chat.kdl gives"),
        "{}",
        ended.err()
    );
    assert_eq!(desk.read("chat.ts"), "old");
    // What the module imports is written beside it, and compared too.
    assert!(typescript.contains("from \"./kumi-unison.js\";"));
    assert!(
        desk.read("kumi-unison.ts")
            .contains("export class EventStream")
    );
    desk.kumi(&["gen", "chat.kdl", "-l", "ts", "--out", "."])
        .code(0);
    std::fs::write(desk.path("kumi-unison.ts"), "old").expect("it is ours");
    let ended = desk.kumi(&["gen", "chat.kdl", "-l", "ts", "--out", ".", "--check"]);
    assert!(
        ended.code(4).err().contains("kumi-unison.ts is not what"),
        "the runtime has changed"
    );
    let ended = desk.kumi(&["gen", "chat.kdl", "-l", "ts", "--out", "kumi-unison.ts"]);
    assert!(ended.code(2).err().contains("generated modules import"));
    desk.kumi(&["gen", "chat.kdl", "-l", "cobol"]).code(2);
    // A folder by its last character.
    let folder = ["gen", "chat.kdl", "-l", "ts", "--out", "web/src/"];
    desk.kumi(&[&folder[..], &["--check"]].concat()).code(4);
    desk.kumi(&folder).code(0);
    desk.kumi(&[&folder[..], &["--check"]].concat()).code(0);
    desk.kumi(&[
        "gen",
        "chat.kdl",
        "-l",
        "ts",
        "--out",
        "web/src/chat.ts",
        "--check",
    ])
    .code(0);
    desk.kumi(&["gen", "chat.kdl", "-l", "ts", "--out", "no/such/folder.ts"])
        .code(1);
}

#[test]
fn two_versions_of_a_schema_become_two_files() {
    let desk = Desk::with(&[("chat.v1.kdl", CHAT), ("chat.v2.kdl", CHAT)]);
    for name in ["chat.v1", "chat.v2"] {
        let file = format!("{name}.kdl");
        desk.kumi(&["gen", &file, "-l", "ts", "--out", "."]).code(0);
        assert!(desk.read(&format!("{name}.ts")).contains("ChatClient"));
    }
}

#[test]
fn a_file_that_would_stay_the_same_is_not_touched() {
    let desk = Desk::with(&[("chat.kdl", CHAT)]);
    let modified = |path: &Path| {
        std::fs::metadata(path)
            .and_then(|metadata| metadata.modified())
            .expect("it is there")
    };
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    let file = std::fs::File::options()
        .write(true)
        .open(desk.path("chat.kdl"))
        .expect("it is ours");
    file.set_modified(old).expect("it is ours");
    drop(file);
    desk.kumi(&["fmt", "chat.kdl"]).code(0);
    assert_eq!(modified(&desk.path("chat.kdl")), old);
}

#[test]
fn help_tells_of_every_command_and_the_exit_codes() {
    let desk = Desk::with(&[]);
    let help = desk.kumi(&["--help"]).code(0).out();
    for word in ["check", "gen", "fmt", "diff", "doc", "Exit codes:"] {
        assert!(help.contains(word), "{word} is missing in:\n{help}");
    }
    assert!(
        desk.kumi(&["diff", "--help"])
            .code(0)
            .out()
            .contains("major version")
    );
}
