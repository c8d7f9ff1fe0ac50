//! Any text as a script: it compiles or is refused with a message, and what compiles runs within its budget, its memory
//! limit and a small stack.

use kumi_lua::{Call, Error, Host, Limits, Lua};

/// Ends a script after a number of hooks.
struct Budget(u32);

impl Host for Budget {
    fn call(&mut self, _function: u32, call: &mut Call<'_>) -> Result<(), Error> {
        Err(call.error("no host functions"))
    }

    fn interrupt(&mut self) -> Result<(), String> {
        self.0 = self.0.checked_sub(1).ok_or("budget")?;
        Ok(())
    }
}

/// Runs one input.
pub fn run(source: &[u8]) {
    let mut limits = Limits::default();
    limits.memory_bytes = 32 << 20;
    limits.hook_interval = 1000;
    // The sanitizer keeps locals away from the stack, so its depth cannot be measured; the limits on levels hold.
    limits.stack_bytes = usize::MAX;
    let mut lua = Lua::redis(limits);
    match lua.load("@user_script", source) {
        Ok(script) => {
            let _ = lua.call(&mut Budget(200), &script, &[]);
            // Whatever it did, the state works.
            let check = lua
                .load("@check", b"return #tostring(1)")
                .expect("it compiles");
            assert!(lua.call(&mut Budget(10), &check, &[]).is_ok());
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
}
