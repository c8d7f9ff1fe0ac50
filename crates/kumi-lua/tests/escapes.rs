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
    run_for(lua, 20, source)
}

fn run_for(lua: &mut Lua, hooks: u32, source: &str) -> String {
    let script = match lua.load("@user_script", source.as_bytes()) {
        Ok(script) => script,
        Err(error) => return format!("error: {error}"),
    };
    let outcome = lua.call(&mut Bounded(hooks), &script, &[]);
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
    for (source, text) in [
        (
            "return _G[{}]",
            "Second argument to luaProtectedTableError must be a string or number",
        ),
        (
            "return getmetatable(_G).__index(1)",
            "Wrong number of arguments to luaProtectedTableError",
        ),
    ] {
        let expected = format!("error: user_script:1: {text}");
        assert_eq!(run(&mut lua, source), expected);
    }
}

#[test]
fn functions_read_the_globals_that_are_in_place() {
    let mut lua = state();
    let seen = lua.string(b"second");
    lua.swap_globals();
    let globals = lua.globals();
    lua.set_field(globals, b"name", seen);
    lua.protect();
    let both = "return name, function() return string.format('%d', 7) end";
    let script = lua
        .load("@user_script", both.as_bytes())
        .expect("it compiles");
    let results = lua.call(&mut Bounded(20), &script, &[]).expect("it runs");
    let (name, inner) = (results[0], results[1]);
    assert_eq!(lua.bytes(name), Some(&b"second"[..]));
    let inner = lua.keep(inner).expect("it is a function");
    assert_eq!(
        run(&mut lua, "return string"),
        "error: user_script:1: Script attempted to access nonexistent global variable 'string'"
    );
    lua.collect();
    lua.swap_globals();
    lua.collect();
    let results = lua.call(&mut Bounded(20), &inner, &[]).expect("it runs");
    let text = results[0];
    assert_eq!(lua.bytes(text), Some(&b"7"[..]));
    assert_eq!(
        run(&mut lua, "return name"),
        "error: user_script:1: Script attempted to access nonexistent global variable 'name'"
    );
    lua.swap_globals();
    assert_eq!(run(&mut lua, "return name"), "second");
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
        "__redis__err__handler(_G)",
        "(function() __redis__err__handler(string) end)()",
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
        run(&mut lua, "return string.dump(tostring)"),
        "error: user_script:1: unable to dump given function"
    );
    assert_eq!(
        run(
            &mut lua,
            "return loadstring(string.dump(function() return 1 end))()"
        ),
        "error: user_script:1: attempt to call a nil value"
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
        // What is allocated and not used counts too, which is as much again at most.
        let bytes = lua.memory_bytes();
        assert!(bytes < 192 << 20, "after {source}: {bytes}");
        lua.collect();
        let bytes = lua.memory_bytes();
        assert!(bytes < 8 << 20, "collected after {source}: {bytes}");
    }
}

/// A state with so much memory.
fn small_state(bytes: usize) -> Lua {
    let mut limits = Limits::default();
    limits.memory_bytes = bytes;
    Lua::redis(limits)
}

#[test]
fn buffers_outside_the_heap_count_as_memory() {
    for source in [
        "local s = ('x'):rep(600000) return #s:upper()",
        "local s = ('x'):rep(600000) return #s:sub(2)",
        "local s = ('x'):rep(600000) return #s:match('x(.*)')",
        "local s = ('x'):rep(600000) return #s:gsub('^x', 'y')",
        "local s = ('x'):rep(100000) return #s:gsub('.*', ('%0'):rep(50), 1)",
        "local s = ('x'):rep(10) return #s:gsub('x', ('y'):rep(200000))",
        "local s = ('x'):rep(600000) return #cjson.encode(s)",
        "local s = ('\\1'):rep(200000) return #cjson.encode({[s] = 1})",
        "local s = '\"' .. ('x'):rep(560000) .. '\"' return #cjson.decode(s)",
        "return #cjson.decode('[' .. ('[],'):rep(50000) .. '1]')",
        "local s = ('\\0'):rep(260000) return #('%q'):format(s)",
        "local s = ('x'):rep(400000) return #('%s%s'):format(s, s)",
        "local s = ('x'):rep(400000) return #cmsgpack.pack(s, s)",
        "local s = cmsgpack.pack(('x'):rep(560000)) return #cmsgpack.unpack(s)",
        "return #cmsgpack.unpack('\\220\\255\\255' .. ('\\144'):rep(65535))",
        "local s = ('x'):rep(400000) return #struct.pack('c0c0', s, s)",
        "local s = ('x'):rep(400000) return #table.concat({s, s, s})",
        "local s = ('x'):rep(600000) return #load(function() return s end)",
        "local s = ('x'):rep(600000) local _, e = pcall(error, s) return e",
        "local s = ('x'):rep(400000) local _, e = pcall(collectgarbage, s) return e",
        "local s = ('x'):rep(400000) local _, e = pcall(cjson.encode_keep_buffer, s) return e",
        "local s = ('x'):rep(400000) local _, e = pcall(function() return _G[s] end) return e",
        "local s = ('x'):rep(400000) local _, e = pcall(assert, false, s) return e",
    ] {
        let mut lua = small_state(1 << 20);
        let found = run_for(&mut lua, 10_000, source);
        assert!(
            found.contains("not enough memory") || found.contains("attempt to get length"),
            "{source}: {found}"
        );
        assert_eq!(run_for(&mut lua, 10_000, "return 7"), "7");
    }
}

#[test]
fn buffers_of_calls_within_calls_count_together() {
    let nested = [
        "function(n, f)
            return (('ab'):gsub('.', function(c)
                if c == 'a' then return big end
                if n > 0 then f(n - 1, f) end
            end))
        end",
        "function(n, f)
            return (('ab'):gsub('.', setmetatable({a = big}, {__index = function()
                if n > 0 then f(n - 1, f) end
            end})))
        end",
        "function(n, f)
            local part = 0
            return assert(load(function()
                part = part + 1
                if part == 1 then return comment end
                if n > 0 then f(n - 1, f) end
            end))
        end",
        "function(n, f)
            return assert(load(function() if n > 0 then f(n - 1, f) end end, big))
        end",
    ];
    for function in nested {
        let source = |rest: &str| {
            format!(
                "local big, comment = ('x'):rep(1000000), '--' .. ('x'):rep(400000)
                local f = {function}
                {rest}"
            )
        };
        let mut lua = small_state(8 << 20);
        let deep = source("f(30, f) return 7");
        let found = run_for(&mut lua, 100_000, &deep);
        assert!(found.contains("not enough memory"), "{function}: {found}");
        // Nothing is counted once the calls have ended.
        let often = source(
            "for i = 1, 20 do
                assert(not pcall(f, 30, f))
                f(1, f)
            end
            return 7",
        );
        assert_eq!(run_for(&mut lua, 100_000, &often), "7", "{function}");
    }
}

#[test]
fn memory_is_collected_before_it_is_short() {
    for source in [
        "for i = 1, 100 do local s = ('x'):rep(1500000) end return 7",
        "local s = ('x'):rep(1000000) for i = 1, 100 do local t = s .. i end return 7",
        "local s = ('x'):rep(900000) for i = 1, 100 do local t = s:reverse() end return 7",
        "local s = ('x'):rep(500000) for i = 1, 100 do local t = cjson.encode({s, s}) end return 7",
        "local s = cjson.encode({('x'):rep(800000)}) for i = 1, 100 do local t = cjson.decode(s) end return 7",
        "local s = cmsgpack.pack({a = ('x'):rep(800000)}) for i = 1, 100 do local t = cmsgpack.unpack(s) end return 7",
        "local s = ('x'):rep(800000) for i = 1, 100 do local t = s:gsub('(x)(.*)', function(a, b) return b end) end return 7",
    ] {
        let mut lua = small_state(4 << 20);
        assert_eq!(run_for(&mut lua, 100_000, source), "7", "{source}");
    }
}

#[test]
fn a_decoder_keeps_its_tables_through_a_collection() {
    // The garbage before each call is freed only when the decoder runs short of memory.
    let source = "
        local part = '{\"k\":[1,{\"a\":\"' .. ('y'):rep(5000) .. '\"}]}'
        local text = '[' .. (part .. ','):rep(60) .. part .. ']'
        local packed = cmsgpack.pack(cjson.decode(text))
        collectgarbage('stop')
        for i = 1, 40 do
            local garbage = ('x'):rep(700000)
            for _, list in ipairs({cjson.decode(text), cmsgpack.unpack(packed)}) do
                assert(#list == 61)
                for _, item in ipairs(list) do
                    assert(item.k[1] == 1 and #item.k[2].a == 5000)
                end
            end
        end
        return 7";
    let mut lua = small_state(3 << 20);
    assert_eq!(run_for(&mut lua, 100_000, source), "7");
}

#[test]
fn work_on_long_strings_reaches_the_hook() {
    let prefix = "local s, t, k = ('x'):rep(4000000), ('x'):rep(3999999) .. 'y', {} \
                  local u = ('x'):rep(4000000) for i = 1, 1000000000 do ";
    for work in [
        "local a = s == t",
        "local a = s == u",
        "local a = s < t",
        "local a = rawequal(s, t)",
        "local a = k[s .. i]",
        "local a = rawget(k, s .. i)",
        "local a = s:sub(2)",
        "local a = s:reverse()",
        "local a = tonumber(s)",
        "local a = tonumber(s, 36)",
        "pcall(error, s)",
        "pcall(assert, false, s)",
        "local a = s:find('y', 1, true)",
        "local a = ('y'):find(s)",
        "local a = cjson.encode(s)",
        "local a = cmsgpack.pack(s)",
        "local a = ('%q'):format(s)",
        "collectgarbage()",
    ] {
        let source = format!("{prefix}{work} end");
        let found = run_for(&mut state(), 20, &source);
        assert_eq!(found, "error: killed", "{work}");
    }
    // Instructions without a jump backward.
    let prefix = "local s, t, i, k = ('x'):rep(4000000), ('x'):rep(3999999) .. 'y', 1, {} \
                  local u, n = ('x'):rep(4000000), (' '):rep(4000000) .. '1' ";
    for work in [
        "if s == t then end",
        "if s == u then end",
        "if s < t then end",
        "if s <= u then end",
        "local a = k[s]",
        "k[s] = 1",
        "local a = n + 1",
        "local a = -n",
        "local a = s .. t",
        "local a = s:sub(2)",
        "local a = #s < tonumber(n)",
        "for i = n, 0 do end",
    ] {
        let source = format!("{prefix}{}", format!("do {work} end ").repeat(200));
        let found = run_for(&mut state(), 100, &source);
        assert_eq!(found, "error: killed", "{work}");
    }
    let search =
        "local s, p = ('a'):rep(4000000), ('a'):rep(100000) .. 'b' return s:find(p, 1, true)";
    assert_eq!(run_for(&mut state(), 300, search), "error: killed");
}

#[test]
fn calls_that_are_not_in_a_loop_reach_the_hook() {
    // 2^18 calls, 18 deep.
    let meta = "local t t = setmetatable({n = 18}, ";
    for source in [
        format!(
            "{meta}{{__index = function(t, k)
                if k == 0 then return 0 end
                local a = t[k - 1] local b = t[k - 1] return a
            end}}) return t[18]"
        ),
        format!(
            "{meta}{{__newindex = function(t, k)
                if k == 0 then return end
                t[k - 1] = 1 t[k - 1] = 1
            end}}) t[18] = 1"
        ),
        format!(
            "{meta}{{__unm = function()
                if t.n == 0 then return 0 end
                t.n = t.n - 1 local a = -t local b = -t t.n = t.n + 1 return a
            end}}) return -t"
        ),
        format!(
            "{meta}{{__concat = function(x, n)
                if n == 0 then return 0 end
                local a = t .. (n - 1) local b = t .. (n - 1) return a
            end}}) return t .. 18"
        ),
        "local m, n = {}, 18
            local a, b = setmetatable({}, m), setmetatable({}, m)
            m.__eq = function()
                if n == 0 then return true end
                n = n - 1 local x = a == b local y = a == b n = n + 1 return x
            end
            return a == b"
            .to_owned(),
        "local m, n = {}, 18
            local a, b = setmetatable({}, m), setmetatable({}, m)
            m.__lt = function()
                if n == 0 then return true end
                n = n - 1 local x = a < b local y = a < b n = n + 1 return x
            end
            return a < b"
            .to_owned(),
        "return load(function() return ' ' end)".to_owned(),
        "return (('x'):rep(4000000):gsub('', ''))".to_owned(),
        // Many values that are returned through many functions.
        "local n, values = 15000
            values = coroutine.wrap(function(...) coroutine.yield() return ... end)
            values(unpack({}, 1, 7900))
            local function f(n) if n == 0 then return values() end return 0, f(n - 1) end
            return select('#', f(n))"
            .to_owned(),
    ] {
        let found = run_for(&mut state(), 20, &source);
        assert_eq!(found, "error: killed", "{source}");
    }
}

#[test]
fn empty_slots_of_tables_count_as_work() {
    for work in [
        "cjson.encode(t)",
        "cmsgpack.pack(t)",
        "table.maxn(t)",
        "next(t)",
        "table.foreach(t, type)",
        "(function() for k in pairs(t) do end end)()",
    ] {
        let source = format!(
            "local t = {{}}
            for i = 1, 100000 do t['k' .. i] = i end
            for k in pairs(t) do t[k] = nil end
            for i = 1, 1000 do local a = {work} end
            return 7"
        );
        let found = run_for(&mut state(), 50, &source);
        assert_eq!(found, "error: killed", "{work}");
    }
}

#[test]
fn the_search_for_the_length_of_a_sparse_table_counts_as_work() {
    for work in ["#t", "table.getn(t)"] {
        let source = format!(
            "local t = {{}}
            for i = 1, 1024 do t[i] = i end
            for i = 1, 20 do t[1025 * 2 ^ i] = i end
            t[1025] = 1
            assert(#t == 1025)
            for i = 1, 10000 do local a = {work} end
            return 7"
        );
        let found = run_for(&mut state(), 50, &source);
        assert_eq!(found, "error: killed", "{work}");
    }
}

#[test]
fn steps_of_the_collector_count_as_work() {
    let source = "local t = {}
        for i = 1, 100000 do t[i] = {} end
        for i = 1, 3000 do collectgarbage('step') end
        return 7";
    assert_eq!(run_for(&mut state(), 50, source), "error: killed");
}

#[test]
fn the_length_of_a_set_counts_as_work() {
    for pattern in [
        "'[' .. set .. ']'",
        "'[' .. set .. ']*z'",
        "'.-[' .. set .. ']'",
        "'%f[' .. set .. ']'",
        "'[' .. set .. ']-z'",
    ] {
        let source = format!(
            "local set, s = ('x'):rep(10000), ('y'):rep(100) .. ('x'):rep(100)
            for i = 1, 1000 do local a = s:find({pattern}) end
            return 7"
        );
        let found = run_for(&mut state(), 50, &source);
        assert_eq!(found, "error: killed", "{pattern}");
    }
    // Sets as scripts use them cost what they did.
    let source = "for i = 1, 1000 do local a = ('key:12'):match('^[a-z]+:([0-9]+)$') end return 7";
    assert_eq!(run_for(&mut state(), 1, source), "7");
}

#[test]
fn a_separator_is_copied_only_between_elements() {
    // Copies of the string would take minutes.
    let source = "local s = ('x'):rep(4000000)
        for i = 1, 50000 do assert(table.concat({}, s) == '' and table.concat({'a'}, s) == 'a') end
        return 7";
    assert_eq!(run_for(&mut state(), 10_000, source), "7");
}

#[test]
fn options_end_at_a_zero_byte() {
    let mut lua = state();
    for (source, expected) in [
        ("return collectgarbage('stop\\0y')", "0"),
        (
            "return select(2, pcall(collectgarbage, 'x\\0y'))",
            "bad argument #1 to '?' (invalid option 'x')",
        ),
        (
            "return select(2, pcall(cjson.encode_keep_buffer, 'x\\0y'))",
            "bad argument #1 to '?' (invalid option 'x')",
        ),
    ] {
        assert_eq!(run(&mut lua, source), expected, "{source}");
    }
}

#[test]
fn a_character_is_a_c_int() {
    let mut lua = state();
    for (number, expected) in [
        ("2^63", "|"),
        ("2^32 + 65", "|"),
        ("0/0", "|"),
        ("-191", "A|"),
        ("321", "A|"),
    ] {
        let source = format!("return ('%c|'):format({number})");
        assert_eq!(run(&mut lua, &source), expected, "{number}");
    }
}

#[test]
fn memory_of_many_objects_is_given_back() {
    const OBJECTS: usize = 200_000;
    let mut lua = state();
    run(&mut lua, "return 7");
    lua.collect();
    let before = lua.memory_bytes();
    for object in ["i .. ''", "{}", "function() return i end"] {
        let source = format!(
            "local t = {{}} for i = 1, {OBJECTS} do t[i] = {object} end
            t = nil collectgarbage() return 7"
        );
        assert_eq!(run_for(&mut lua, 10_000, &source), "7", "{object}");
        assert!(
            lua.memory_bytes() > before + OBJECTS * 16,
            "{object}: free slots are counted"
        );
        lua.collect();
        let after = lua.memory_bytes();
        assert!(after < before + (1 << 18), "{object}: {before}, {after}");
        assert_eq!(run(&mut lua, "return ('x'):rep(3) .. #{{}}"), "xxx1");
    }
}
