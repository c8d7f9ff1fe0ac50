//! Ways out of the sandbox that Redis's advisories describe, and inputs made to exhaust a server: each ends in an error
//! or in a bounded result, and the state runs scripts afterwards.

use kumi_lua::{Host, Limits, Lua, Value};

/// Ends a script after a number of hooks, as a server with `SCRIPT KILL` would.
struct Bounded(u32);

impl Host for Bounded {
    fn call(&mut self, _: u32, call: &mut kumi_lua::Call<'_>) -> Result<(), kumi_lua::Error> {
        Err(call.error("no host functions here"))
    }

    fn interrupt(&mut self) -> Result<(), String> {
        self.0 = self.0.checked_sub(1).ok_or("killed")?;
        Ok(())
    }
}

fn state() -> Lua {
    let mut limits = Limits::default();
    limits.memory_bytes = 64 << 20;
    Lua::redis(limits)
}

/// The first result, or `error: ` and the message.
fn run(lua: &mut Lua, source: &str) -> String {
    let script = match lua.load("@user_script", source.as_bytes()) {
        Ok(script) => script,
        Err(error) => return format!("error: {error}"),
    };
    let outcome = lua.call(&mut Bounded(20), &script, &[]);
    let (value, prefix) = match outcome {
        Ok(results) => (results.first().copied().unwrap_or_default(), ""),
        Err(error) => (error.value, "error: "),
    };
    let text = match value {
        Value::Str(_) => String::from_utf8_lossy(lua.bytes(value).unwrap_or_default()).into_owned(),
        Value::Number(n) => n.to_string(),
        other => format!("{other:?}"),
    };
    lua.release(script);
    format!("{prefix}{text}")
}

#[test]
fn nothing_outside_the_allowed_globals_is_there() {
    let mut lua = state();
    for name in [
        "os", "io", "debug", "package", "require", "dofile", "loadfile", "print", "getfenv",
        "setfenv", "newproxy", "module", "server",
    ] {
        let expected = format!(
            "error: user_script:1: Script attempted to access nonexistent global variable '{name}'"
        );
        assert_eq!(run(&mut lua, &format!("return {name}.x")), expected);
    }
}

#[test]
fn shared_tables_and_metatables_cannot_be_changed() {
    const READONLY: &str = "Attempt to modify a readonly table";
    let mut lua = state();
    for source in [
        "x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "setmetatable(_G, {})",
        "setmetatable(_G, nil)",
        "getmetatable(_G).__index = nil",
        "getmetatable('').__index = function() return 1 end",
        "getmetatable('').__add = 1",
        "rawset(getmetatable(''), '__index', nil)",
        "string.rep = nil",
        "table.insert(string, 1)",
        "table.sort(setmetatable(string, {}))",
        "cjson.decode = nil",
        "bit.band = 1",
        "table.remove(table, 1) table.concat = 1",
        "setmetatable(string, {__index = {}})",
        "setfenv = nil",
        "loadstring('y = 2')()",
        "coroutine.wrap(function() z = 1 end)()",
        "for k in pairs(math) do math[k] = nil end",
    ] {
        let result = run(&mut lua, source);
        assert!(result.contains(READONLY), "{source}: {result}");
    }
    // What one script did is not seen by the next.
    assert_eq!(run(&mut lua, "return ('x'):rep(3)"), "xxx");
}

#[test]
fn bytecode_does_not_enter_or_leave() {
    let mut lua = state();
    assert_eq!(
        run(
            &mut lua,
            "local f, e = loadstring('\\27Lua\\81\\0\\1\\4\\8\\4\\8\\0') return e"
        ),
        "[string \"\u{1b}LuaQ\"]:1: unexpected symbol near 'char(27)'"
    );
    assert_eq!(
        run(&mut lua, "return string.dump(function() end)"),
        "error: user_script:1: unable to dump given function"
    );
    let through_load = "local s = '\\27Lua' local f, e = load(function() local r = s s = nil return r end) return f and 'in' or 'out'";
    assert_eq!(run(&mut lua, through_load), "out");
}

#[test]
fn resources_are_bounded() {
    let mut lua = state();
    for source in [
        // CVE-2025-49844: the name of a chunk collected while its source is parsed.
        "for i = 1, 200 do local n = ('x'):rep(i) .. i local f, e = loadstring('return ' .. ('('):rep(i % 150), n) collectgarbage() end return 'ok'",
        // CVE-2025-46817: the number of values unpack and others handle.
        "return unpack({}, 1, 2147483647)",
        "return unpack({}, -2147483648, 2147483647)",
        "return unpack({}, 0, 2147483647)",
        "return string.byte(('x'):rep(100000), 1, -1)",
        "return select('#', string.byte(('x'):rep(9000), 1, 9000))",
        // CVE-2025-46818: metatables of basic types.
        "getmetatable('').__index = nil",
        // CVE-2025-46819: long brackets at the end of a source.
        "return loadstring('return [' .. ('='):rep(1000000))",
        "return loadstring('--[' .. ('='):rep(100000))",
        "return loadstring('return [==[' .. (']'):rep(100000))",
        // CVE-2024-31449: bit.tohex with the smallest integer.
        "return bit.tohex(65535, -2147483648)",
        // CVE-2024-46981 and others: collection while values are only held by the library.
        "local t = {} for i = 1, 1000 do t[i] = {i} end table.sort(t, function(a, b) collectgarbage() for j = 1, 9 do t[j] = {j} end return a[1] > b[1] end)",
        "local s = ('ab'):rep(100) return (s:gsub('a', function() collectgarbage() return ('x'):rep(20) end))",
        // Struct, cmsgpack and cjson with sizes that overflow.
        "return struct.pack('c2147483647', 'x')",
        "return struct.unpack('c2147483647', 'x')",
        "return struct.unpack('bc0', '\\255x')",
        "return struct.pack('>I99999999999999999999', 1)",
        "return struct.unpack('!8i8', 'x', 9223372036854775807)",
        "return struct.size(('c2147483647'):rep(1000))",
        "return cmsgpack.unpack('\\221\\255\\255\\255\\255')",
        "return cmsgpack.unpack('\\223\\255\\255\\255\\255')",
        "return cmsgpack.unpack('\\219\\255\\255\\255\\255')",
        "return cmsgpack.unpack(('\\145'):rep(1000000))",
        "return cmsgpack.unpack_limit('\\1', 2147483648, 4294967295)",
        "local t = {} t[1] = t return #cmsgpack.pack(t)",
        "cjson.encode_max_depth(2147483647) local t = {} t[1] = t return cjson.encode(t)",
        "cjson.decode_max_depth(2147483647) return cjson.decode(('['):rep(1000000))",
        "return cjson.encode({[2147483647] = 1})",
        // Recursion and patterns.
        "local function f(...) return f(1, ...) end f()",
        "local function f() return 1 + f() end f()",
        "return string.find(('a'):rep(300000), ('a?'):rep(300000))",
        "return string.find(('a'):rep(3000), ('(a*'):rep(32) .. (')'):rep(32) .. 'b')",
        "return string.find(('a'):rep(100000), ('.-'):rep(100) .. 'b')",
        "return string.match(('x'):rep(1000000), '(.-)(.-)(.-)%1%2y')",
        "return ('x'):rep(2147483647)",
        "local s = 'x' for i = 1, 100 do s = s .. s end",
        "return string.format('%99.99f', 1e308):rep(1000000)",
        "return (('x'):rep(100000):gsub('x', ('y'):rep(100000)))",
        "local t = {} for i = 1, 100 do t[i] = ('x'):rep(1000000) end return table.concat(t)",
        "return table.insert({}, -2147483648, 1)",
        "return table.concat({}, ('x'):rep(100), 1, 2147483647)",
        "local t = setmetatable({}, {__index = function(t, i) return i end}) return unpack(t, 1, 7990)",
        "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x",
        "local a, b = {}, {} setmetatable(a, {__index = b}) setmetatable(b, {__index = a}) return a.x",
        "local co co = coroutine.wrap(function() co() end) co()",
        "local function f() coroutine.wrap(f)() end f()",
        "return tostring(setmetatable({}, {__tostring = function(t) return tostring(t) end}))",
        "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
        "while true do local f = loadstring('return function() return {} end') f()() end",
        "local t = {} for i = 1, 1e9 do t['k' .. i] = i end",
        "return loadstring(('local a = 1 '):rep(300))",
        "return loadstring('return ' .. ('-'):rep(100000) .. '1')",
        "return loadstring('return ' .. ('{'):rep(100000))",
        "return loadstring('a' .. ('.a'):rep(100000) .. ' = 1')",
        "return loadstring(('a,'):rep(100000) .. 'a = 1')",
        "return loadstring('return ' .. ('a..'):rep(300) .. 'a')",
        "return loadstring('return function(' .. ('a,'):rep(300) .. 'a) end')",
        "xpcall(function() error('x') end, function() error('y') end) return 'ok'",
    ] {
        println!("{source}");
        run(&mut lua, source);
        assert_eq!(run(&mut lua, "return 1 + 1"), "2", "after {source}");
        assert!(
            lua.memory_bytes() < 128 << 20,
            "after {source}: {}",
            lua.memory_bytes()
        );
    }
}
