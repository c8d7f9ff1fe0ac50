//! Runs the Lua program on standard input as often as the argument says, in the Lua that was built in, and prints
//! `outcome RESULT MICROSECONDS`: the number it returns, and the CPU time of one run.

use std::io::Read;

use anyhow::{Context, Result};
use mlua::{Function, Lua};

fn main() -> Result<()> {
    let repeats: u32 = std::env::args()
        .nth(1)
        .context("takes REPEATS")?
        .parse()
        .context("REPEATS is not a number")?;
    let mut source = String::new();
    std::io::stdin().read_to_string(&mut source)?;
    let lua = Lua::new();
    #[cfg(feature = "luau")]
    lua.sandbox(true).map_err(failed)?;
    let program: Function = lua.load(source).into_function().map_err(failed)?;
    let mut result: f64 = program.call(()).map_err(failed)?;
    let before = cpu_us()?;
    for _ in 0..repeats {
        result = program.call(()).map_err(failed)?;
    }
    let used = cpu_us()? - before;
    println!("outcome {result} {}", used / f64::from(repeats));
    Ok(())
}

/// mlua's errors are not `Send`.
fn failed(error: mlua::Error) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

/// CPU time of this thread so far, in microseconds.
fn cpu_us() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let busy = text.split_whitespace().next().context("no CPU time")?;
    Ok(busy.parse::<f64>()? / 1000.0)
}
