//! Generated TypeScript, compiled by a strict compiler and run in node against a fake transport.
//!
//! Needs node and npm; the compiler is installed once, below the build folder. Without them the test fails and says so.

use kumi_schema::{Schema, TYPESCRIPT_RUNTIME, TYPESCRIPT_RUNTIME_FILE};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The compiler's version, so that a new one does not fail the test one morning.
const COMPILER: &str = "typescript@5.9.3";

const SCHEMA: &str = include_str!("../schemas/everything.kdl");

/// Names that are words of the language.
const ODD: &str = include_str!("../schemas/odd.kdl");

/// Features that seldom meet.
const UNUSUAL: &str = include_str!("../schemas/unusual.kdl");

/// Values and who takes them. `tests/schema/tests/cases/unusual.rs` reads the same.
const VECTORS: &str = include_str!("../vectors.json");

#[test]
fn each_pattern_is_compiled_once_when_the_module_is_loaded() {
    let schema = r#"protocol "p" version="1.0.0" {
        message "M" {
            field "a" type="string" pattern="^x$"
            field "b" type="string" pattern="^x$"
            field "c" type="string" pattern="^y$"
        }
        channel "c" { event "E" { field "d" type="string" pattern="^x$" } }
    }"#;
    let schema = Schema::parse("p", schema).unwrap_or_else(|errors| panic!("{errors}"));
    let code = schema.to_typescript();
    let compiled: Vec<&str> = code
        .lines()
        .filter(|line| line.contains("RegExp"))
        .collect();
    assert_eq!(compiled.len(), 2, "{compiled:?}");
    // Not within a function.
    assert!(
        compiled.iter().all(|line| line.starts_with("const ")),
        "{compiled:?}"
    );
    let uses = code.matches("patterns: [PATTERN_0]").count();
    assert_eq!(uses, 3, "{code}");
}

#[test]
fn generated_typescript_compiles_and_completes_calls() {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript");
    std::fs::create_dir_all(work.join("src")).expect("a folder below target");
    let compiler = compiler(&work);
    for (name, text) in [("everything", SCHEMA), ("odd", ODD), ("unusual", UNUSUAL)] {
        let schema = Schema::parse(name, text).unwrap_or_else(|errors| panic!("{errors}"));
        let path = work.join("src").join(name).with_extension("ts");
        std::fs::write(path, schema.to_typescript()).expect("it is ours");
    }
    let vectors = format!("export const VECTORS: [string, string, string][] = {VECTORS};");
    for (name, text) in [
        ("main.ts", include_str!("../typescript/main.ts")),
        ("browser.ts", include_str!("../typescript/browser.ts")),
        ("vectors.ts", &vectors),
        (TYPESCRIPT_RUNTIME_FILE, TYPESCRIPT_RUNTIME),
    ] {
        std::fs::write(work.join("src").join(name), text).expect("it is ours");
    }
    std::fs::write(work.join("tsconfig.json"), TSCONFIG).expect("it is ours");
    std::fs::write(work.join("browser.json"), BROWSER).expect("it is ours");
    std::fs::write(
        work.join("package.json"),
        r#"{ "type": "module", "private": true }"#,
    )
    .expect("it is ours");

    let output = run(Command::new("node")
        .arg(&compiler)
        .args(["--project", "."])
        .current_dir(&work));
    assert!(
        output.status.success(),
        "the compiler refuses it:\n{}",
        text(&output)
    );
    // Where there is a browser's library, its signals are signals.
    let output = run(Command::new("node")
        .arg(&compiler)
        .args(["--project", "browser.json"])
        .current_dir(&work));
    assert!(
        output.status.success(),
        "the compiler refuses it in a browser:\n{}",
        text(&output)
    );
    let output = run(Command::new("node").arg("out/main.js").current_dir(&work));
    assert!(
        output.status.success(),
        "it does not run:\n{}",
        text(&output)
    );
    assert!(text(&output).contains("all done"), "{}", text(&output));
}

/// As strict as the compiler can be, and with no library but the language's own.
const TSCONFIG: &str = r#"{
  "compilerOptions": {
    "strict": true,
    "exactOptionalPropertyTypes": true,
    "noImplicitOverride": true,
    "noImplicitReturns": true,
    "noUncheckedIndexedAccess": true,
    "noUnusedLocals": true,
    "noUnusedParameters": true,
    "noPropertyAccessFromIndexSignature": true,
    "verbatimModuleSyntax": true,
    "erasableSyntaxOnly": true,
    "target": "ES2022",
    "lib": ["ES2022"],
    "types": [],
    "module": "ES2022",
    "moduleResolution": "bundler",
    "rootDir": "src",
    "outDir": "out"
  },
  "files": ["src/main.ts"]
}"#;

const BROWSER: &str = r#"{
  "extends": "./tsconfig.json",
  "compilerOptions": { "lib": ["ES2022", "DOM"], "noEmit": true },
  "files": ["src/browser.ts"]
}"#;

/// The path of the compiler, which is installed if it is not there yet.
fn compiler(work: &Path) -> PathBuf {
    let tools = work.join(COMPILER.replace('@', "-"));
    let compiler = tools.join("node_modules/typescript/bin/tsc");
    if !compiler.exists() {
        std::fs::create_dir_all(&tools).expect("a folder below target");
        let output = run(Command::new("npm")
            .args([
                "install",
                "--no-audit",
                "--no-fund",
                "--no-save",
                "--prefix",
            ])
            .arg(&tools)
            .arg(COMPILER));
        assert!(
            output.status.success(),
            "npm cannot install {COMPILER}:\n{}",
            text(&output)
        );
    }
    compiler
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| {
        panic!(
            "{:?} cannot be started ({error}); this test needs node and npm",
            command.get_program()
        )
    })
}

fn text(output: &Output) -> String {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{out}{err}")
}
