//! Generated TypeScript, compiled by a strict compiler and run in node against a fake transport.
//!
//! Needs node and npm; the compiler is installed once, below the build folder. Without them the test fails and says so.

use kumi_schema::Schema;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The compiler's version, so that a new one does not fail the test one morning.
const COMPILER: &str = "typescript@5.9.3";

const SCHEMA: &str = include_str!("schemas/everything.kdl");

/// Names that are words of the language.
const ODD: &str = include_str!("schemas/odd.kdl");

#[test]
fn generated_typescript_compiles_and_completes_calls() {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript");
    std::fs::create_dir_all(work.join("src")).expect("a folder below target");
    let compiler = compiler(&work);
    let schema =
        Schema::parse("everything.kdl", SCHEMA).unwrap_or_else(|errors| panic!("{errors}"));
    std::fs::write(work.join("src/everything.ts"), schema.to_typescript()).expect("it is ours");
    let odd = Schema::parse("odd.kdl", ODD).unwrap_or_else(|errors| panic!("{errors}"));
    std::fs::write(work.join("src/odd.ts"), odd.to_typescript()).expect("it is ours");
    std::fs::write(work.join("src/main.ts"), include_str!("typescript/main.ts"))
        .expect("it is ours");
    std::fs::write(work.join("tsconfig.json"), TSCONFIG).expect("it is ours");
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
    let output = run(Command::new("node").arg("out/main.js").current_dir(&work));
    assert!(
        output.status.success(),
        "it does not run:\n{}",
        text(&output)
    );
    assert!(text(&output).contains("all done"), "{}", text(&output));
}

/// As strict as the compiler can be.
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
    "target": "ES2022",
    "lib": ["ES2022", "DOM"],
    "types": [],
    "module": "ES2022",
    "moduleResolution": "bundler",
    "rootDir": "src",
    "outDir": "out"
  },
  "files": ["src/main.ts", "src/odd.ts"]
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
