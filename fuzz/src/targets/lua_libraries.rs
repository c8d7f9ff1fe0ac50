//! Any bytes for the libraries that read binary or text formats: cjson, cmsgpack, struct and patterns. The first byte
//! chooses the library; what was read is written again.

use kumi_lua::{Limits, Lua};

const PROGRAMS: [&[u8]; 4] = [
    b"local s = ... local v = cjson.decode(s) pcall(cjson.decode, cjson.encode(v))",
    b"local s = ... cmsgpack.pack(cmsgpack.unpack(s)) cmsgpack.unpack_one(s, 1)",
    b"local s = ... local n = #s / 2 - #s / 2 % 1 local f, d = s:sub(1, n), s:sub(n + 1) pcall(struct.size, f) \
      pcall(struct.pack, f, 1, d, -2, d) struct.unpack(f, d)",
    b"local s = ... local n = #s / 2 - #s / 2 % 1 local p, d = s:sub(1, n), s:sub(n + 1, n + 40) pcall(string.format, p, d, 1, d) \
      pcall(string.gsub, d, p, '%0%1') string.find(d, p)",
];

struct Budget(u32);

impl kumi_lua::Host for Budget {
    fn call(
        &mut self,
        _function: u32,
        call: &mut kumi_lua::Call<'_>,
    ) -> Result<(), kumi_lua::Error> {
        Err(call.error("no host functions"))
    }

    fn interrupt(&mut self) -> Result<(), String> {
        self.0 = self.0.checked_sub(1).ok_or("budget")?;
        Ok(())
    }
}

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let mut limits = Limits::default();
    limits.memory_bytes = 32 << 20;
    limits.hook_interval = 1000;
    // The sanitizer keeps locals away from the stack, so its depth cannot be measured; the limits on levels hold.
    limits.stack_bytes = usize::MAX;
    let mut lua = Lua::redis(limits);
    let program = PROGRAMS[*first as usize % PROGRAMS.len()];
    let script = lua.load("@user_script", program).expect("it compiles");
    let input = lua.string(rest);
    let _ = lua.call(&mut Budget(100), &script, &[input]);
}
