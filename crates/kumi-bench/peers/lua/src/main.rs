//! Runs the Lua program on standard input as often as the argument says, in the Lua that was built in, and prints
//! `outcome RESULT MICROSECONDS`: the number it returns, and the CPU time of one run.

use std::io::Read;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let repeats: u32 = std::env::args()
        .nth(1)
        .context("takes REPEATS")?
        .parse()
        .context("REPEATS is not a number")?;
    let mut source = String::new();
    std::io::stdin().read_to_string(&mut source)?;
    let mut run = interpreter::load(&source)?;
    let mut result = run()?;
    let before = cpu_us()?;
    for _ in 0..repeats {
        result = run()?;
    }
    let used = cpu_us()? - before;
    println!("outcome {result} {}", used / f64::from(repeats));
    Ok(())
}

#[cfg(any(feature = "luau", feature = "lua51"))]
mod interpreter {
    use anyhow::{Result, anyhow};
    use mlua::{Function, Lua};

    /// A function that runs the program and returns its number.
    pub(crate) fn load(source: &str) -> Result<impl FnMut() -> Result<f64>> {
        // mlua's errors are not `Send`.
        let failed = |error: mlua::Error| anyhow!("{error}");
        let lua = Lua::new();
        #[cfg(feature = "luau")]
        lua.sandbox(true).map_err(failed)?;
        let program: Function = lua.load(source).into_function().map_err(failed)?;
        // The state must outlive the function.
        Ok(move || {
            let _state = &lua;
            program.call(()).map_err(failed)
        })
    }
}

#[cfg(feature = "luna")]
mod interpreter {
    use anyhow::{Result, anyhow, bail};
    use luna_core::runtime::Value;
    use luna_core::version::LuaVersion;
    use luna_core::vm::Vm;

    /// As large as kumi-lua's.
    const MEMORY_BYTES: usize = 1 << 30;

    /// A function that runs the program and returns its number.
    pub(crate) fn load(source: &str) -> Result<impl FnMut() -> Result<f64>> {
        let mut vm = Vm::sandbox(LuaVersion::Lua51)
            .open_base()
            .open_math()
            .open_string()
            .open_table()
            .with_instr_budget(i64::MAX)
            .with_memory_cap(MEMORY_BYTES)
            .build();
        let loaded = vm.load(source.as_bytes(), b"=program");
        let program = Value::Closure(loaded.map_err(|error| anyhow!("{error}"))?);
        // A root of the collector: the machine does not know of values that the host holds.
        vm.set_global("program", program)
            .map_err(|error| anyhow!("{error:?}"))?;
        Ok(move || {
            let results = vm.call_value(program, &[]);
            match results.map_err(|error| anyhow!("{error}"))?.first() {
                Some(Value::Float(number)) => Ok(*number),
                Some(Value::Int(number)) => Ok(*number as f64),
                other => bail!("the program returned {other:?}"),
            }
        })
    }
}

/// CPU time of this thread so far, in microseconds.
fn cpu_us() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let busy = text.split_whitespace().next().context("no CPU time")?;
    Ok(busy.parse::<f64>()? / 1000.0)
}
