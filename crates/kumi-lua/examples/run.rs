//! Runs a script file in Redis's environment and prints what it returns: `cargo run --example run -- FILE`.

use kumi_lua::{Limits, Lua, Value};

fn main() {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: run FILE");
        std::process::exit(2);
    };
    let source = std::fs::read(&path).expect("the file can be read");
    let mut lua = Lua::redis(Limits::default());
    let script = match lua.load("@user_script", &source) {
        Ok(script) => script,
        Err(error) => {
            println!("{error}");
            std::process::exit(1);
        }
    };
    match lua.call(&mut (), &script, &[]) {
        Ok(results) => {
            let results = results.to_vec();
            for value in results {
                println!("{}", show(&lua, value));
            }
        }
        Err(error) => {
            println!("error: {}", show(&lua, error.value));
            std::process::exit(1);
        }
    }
}

/// A value as text; the elements of a table as lines.
fn show(lua: &Lua, value: Value) -> String {
    match value {
        Value::Str(_) => String::from_utf8_lossy(lua.bytes(value).unwrap_or_default()).into_owned(),
        Value::Table(table) => (1..)
            .map(|index| lua.element(table, index))
            .take_while(|value| !value.is_nil())
            .map(|value| show(lua, value))
            .collect::<Vec<_>>()
            .join("\n"),
        Value::Number(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}
