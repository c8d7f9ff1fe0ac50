//! Small programs and what they return, through the public interface.

use kumi_lua::{Call, Error, Host, Limits, Lua, ScriptError, Value};

/// Runs a script in Redis's environment; its first result as text, or the error's message after `error: `.
fn run(source: &str) -> String {
    let mut lua = Lua::redis(Limits::default());
    run_in(&mut lua, &mut (), source)
}

fn run_in(lua: &mut Lua, host: &mut dyn Host, source: &str) -> String {
    let script = match lua.load("@user_script", source.as_bytes()) {
        Ok(script) => script,
        Err(error) => return format!("error: {error}"),
    };
    let (value, prefix) = match lua.call(host, &script, &[]) {
        Ok(results) => (results.first().copied().unwrap_or_default(), ""),
        Err(ScriptError { value, .. }) => (value, "error: "),
    };
    let text = match value {
        Value::Str(_) => String::from_utf8_lossy(lua.bytes(value).unwrap_or_default()).into_owned(),
        Value::Number(n) => n.to_string(),
        other => format!("{other:?}"),
    };
    lua.release(script);
    format!("{prefix}{text}")
}

fn check(source: &str, expected: &str) {
    assert_eq!(run(source), expected, "{source}");
}

#[test]
fn names_longer_than_interned_strings_are_found() {
    let name = "aLocalFunctionWhoseNameIsLongerThanFortyCharacters";
    assert!(name.len() > 40);
    for source in [
        "local NAME = 7 return NAME",
        "local function NAME(n) if n == 0 then return 7 end return NAME(n - 1) end return NAME(3)",
        "local NAME = 7 local function f() return NAME end return f()",
        "local NAME = 1 do local NAME = 7 return NAME end",
        "local t = {NAME = 7} return t.NAME",
        "local t = {} t['NAME'] = 7 return t.NAME",
        "local t = {} function t:NAME() return 7 end return t:NAME()",
        "for NAME = 7, 7 do return NAME end",
    ] {
        check(&source.replace("NAME", name), "7");
    }
}

#[test]
fn expressions_and_statements() {
    check("return 1 + 2 * 3 ^ 2", "19");
    check("local a, b = 1 return a, b", "1");
    check("local t = {1, 2, x = 3} return #t + t.x", "5");
    check(
        "local s = 0 for i = 10, 1, -3 do s = s + i end return s",
        "22",
    );
    check(
        "local i = 0 repeat local j = i i = i + 1 until j == 4 return i",
        "5",
    );
    check(
        "local i = 0 while true do i = i + 1 if i > 9 then break end end return i",
        "10",
    );
    check(
        "return (function(...) return select('#', ...) end)(1, nil, nil)",
        "3",
    );
    check(
        "local function f(...) return arg.n end return f(1, 2, 3)",
        "3",
    );
    check("local a = {} a.x, a.y = 1, 2 return a.x .. a.y", "12");
    check("return not nil and 'yes' or 'no'", "yes");
    check(
        "local f = {} for i = 1, 3 do f[i] = function() i = i + 1 return i end end f[1]() return f[1]() + f[2]()",
        "6",
    );
    check("return 0x10 .. 1e3 .. .5", "1610000.5");
}

#[test]
fn errors_name_variables_and_lines() {
    check(
        "local t = {}\nreturn t.x.y",
        "error: user_script:2: attempt to index field 'x' (a nil value)",
    );
    check(
        "return nope()",
        "error: user_script:1: Script attempted to access nonexistent global variable 'nope'",
    );
    check(
        "local s = 'a' s:nope()",
        "error: user_script:1: attempt to call method 'nope' (a nil value)",
    );
    check(
        "x = 1",
        "error: user_script:1: Attempt to modify a readonly table",
    );
    check(
        "return {} < {}",
        "error: user_script:1: attempt to compare two table values",
    );
    check(
        "return 1 .. {}",
        "error: user_script:1: attempt to concatenate a table value",
    );
    check(
        "string.rep()",
        "error: user_script:1: bad argument #1 to 'rep' (string expected, got no value)",
    );
    check(
        "for i = 1",
        "error: user_script:1: ',' expected near '<eof>'",
    );
    check(
        "x = = 1",
        "error: user_script:1: unexpected symbol near '='",
    );
    check(
        "local function f() return f() + 1 end return f()",
        "error: user_script:1: stack overflow",
    );
}

#[test]
fn metatables_and_coroutines() {
    check(
        "return setmetatable({}, {__index = function(_, k) return k .. '!' end}).x",
        "x!",
    );
    check(
        "return #setmetatable({1}, {__len = function() return 9 end})",
        "1",
    );
    check(
        "return tostring(setmetatable({}, {__tostring = function() return 'T' end}))",
        "T",
    );
    check(
        "local co = coroutine.wrap(function(a) while true do a = coroutine.yield(a * 2) end end) co(1) return co(21)",
        "42",
    );
    check(
        "return coroutine.resume(coroutine.create(function() error('x') end)) and 'ok' or 'failed'",
        "failed",
    );
    check(
        "local co co = coroutine.create(function() return coroutine.status(co) end) local _, s = coroutine.resume(co) return s .. coroutine.status(co)",
        "runningdead",
    );
}

#[test]
fn environments_of_functions_can_be_changed_where_the_library_has_it() {
    let mut lua = Lua::new(Limits::default());
    let source = "local function f() return x end setfenv(f, {x = 7}) return f() + (getfenv(f).x)";
    assert_eq!(run_in(&mut lua, &mut (), source), "14");
    assert_eq!(run_in(&mut lua, &mut (), "y = 5 return y"), "5");
}

/// Counts its calls and ends scripts after some hooks.
struct Counting {
    calls: usize,
    hooks_left: usize,
}

impl Host for Counting {
    fn call(&mut self, function: u32, call: &mut Call<'_>) -> Result<(), Error> {
        self.calls += 1;
        match function {
            0 => {
                let joined: Vec<u8> = (0..call.len())
                    .filter_map(|at| call.arg_bytes(at))
                    .flatten()
                    .copied()
                    .collect();
                call.push_bytes(&joined);
                Ok(())
            }
            1 => {
                let table = call.table(0, 1);
                let text = call.string(b"ERR from the host");
                call.set_field(table, b"err", text);
                Err(call.raise(Value::Table(table)))
            }
            _ => Err(call.error("bad call")),
        }
    }

    fn interrupt(&mut self) -> Result<(), String> {
        self.hooks_left = self.hooks_left.checked_sub(1).ok_or("killed")?;
        Ok(())
    }
}

fn with_host() -> (Lua, Counting) {
    let mut lua = Lua::redis_unprotected(Limits::default());
    let table = lua.table(0, 3);
    for (number, name) in ["join", "fail", "bad"].iter().enumerate() {
        let function = lua.host_function(number as u32);
        lua.set_field(table, name.as_bytes(), function);
    }
    let globals = lua.globals();
    lua.set_field(globals, b"redis", Value::Table(table));
    lua.protect();
    (
        lua,
        Counting {
            calls: 0,
            hooks_left: 5,
        },
    )
}

#[test]
fn host_functions_take_strings_and_raise_tables() {
    let (mut lua, mut host) = with_host();
    assert_eq!(
        run_in(&mut lua, &mut host, "return redis.join('a', 'b', 'c')"),
        "abc"
    );
    let source = "local ok, e = pcall(redis.fail) return e";
    assert_eq!(run_in(&mut lua, &mut host, source), "ERR from the host");
    assert_eq!(
        run_in(&mut lua, &mut host, "\nredis.bad()"),
        "error: user_script:2: bad call"
    );
    assert_eq!(
        run_in(&mut lua, &mut host, "redis.x = 1"),
        "error: user_script:1: Attempt to modify a readonly table"
    );
    assert_eq!(host.calls, 3);
}

#[test]
fn an_interrupt_is_not_caught() {
    for source in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function f() return f() end f()",
        "local s = ('a'):rep(5000) return s:find(('a-'):rep(30) .. 'b')",
        "local t = {} for i = 1, 100000 do t[i] = i end while true do table.sort(t, function(a, b) return a > b end) end",
        "coroutine.wrap(function() while true do end end)()",
        "while true do xpcall(function() error('x') end, function() while true do end end) end",
        "while true do cjson.decode(cjson.encode({1, 2, {3}})) end",
        "local s = ('x'):rep(100000) while true do s:rep(100) end",
    ] {
        let (mut lua, mut host) = with_host();
        let script = lua
            .load("@user_script", source.as_bytes())
            .expect("it compiles");
        let error = lua
            .call(&mut host, &script, &[])
            .expect_err("it never ends by itself");
        assert_eq!(error.interrupted.as_deref(), Some("killed"), "{source}");
    }
}

/// Counts how often it is asked, and never ends a script.
#[derive(Default)]
struct Patient {
    interrupts: usize,
}

impl Host for Patient {
    fn call(&mut self, _: u32, call: &mut Call<'_>) -> Result<(), Error> {
        Err(call.error("no such host function"))
    }

    fn interrupt(&mut self) -> Result<(), String> {
        self.interrupts += 1;
        Ok(())
    }
}

#[test]
fn the_compiler_and_straight_code_ask_the_host_as_often_as_loops_do() {
    let mut limits = Limits::default();
    limits.hook_interval = 10_000;
    let mut lua = Lua::redis(limits);
    for (source, least) in [
        // The compiler: many tokens, one long token of each kind, and lists of jumps that are walked again and again.
        ("loadstring(('x = 1 '):rep(1e5))", 50),
        ("loadstring('--[[' .. ('x'):rep(1e6) .. ']]')", 50),
        ("loadstring('--' .. ('x'):rep(1e6))", 50),
        ("loadstring(' return [[' .. ('x'):rep(1e6) .. ']]')", 50),
        ("loadstring('return \"' .. ('x'):rep(1e6) .. '\"')", 50),
        ("loadstring('return 1' .. ('0'):rep(1e6))", 50),
        ("loadstring((' '):rep(1e6))", 50),
        (
            "loadstring('if x then ' .. ('elseif x then '):rep(3000) .. 'end')",
            300,
        ),
        (
            "loadstring('while x do ' .. ('if x then break end '):rep(3000) .. 'end')",
            300,
        ),
        // The run loop: instructions without a jump or a call, in one long function, and in short ones that are called,
        // fail, or are left for ever.
        (
            "local f = loadstring('local x ' .. ('x = {} '):rep(1e5)) for i = 1, 20 do f() end",
            250,
        ),
        (
            "local f = loadstring('local x ' .. ('x = 1 '):rep(1e4)) for i = 1, 200 do f() end",
            150,
        ),
        (
            "local f = loadstring('local x ' .. ('x = 1 '):rep(1e4) .. 'x()') for i = 1, 200 do pcall(f) end",
            150,
        ),
        (
            "local f = loadstring('local x ' .. ('x = 1 '):rep(1e4) .. 'x()') for i = 1, 200 do coroutine.resume(coroutine.create(f)) end",
            150,
        ),
        (
            "local f = loadstring('local x ' .. ('x = 1 '):rep(1e4) .. 'coroutine.yield()') for i = 1, 200 do coroutine.wrap(f)() end",
            150,
        ),
    ] {
        let mut host = Patient::default();
        let script = lua
            .load("@user_script", source.as_bytes())
            .expect("it compiles");
        lua.call(&mut host, &script, &[]).expect("it ends");
        assert!(
            host.interrupts >= least,
            "{} times: {source}",
            host.interrupts
        );
        lua.release(script);
    }
}

#[test]
fn the_host_ends_a_compilation() {
    let (mut lua, mut host) = with_host();
    let source = "x = 1 ".repeat(1 << 20);
    let error = lua
        .load_for(&mut host, "@user_script", source.as_bytes())
        .expect_err("it was ended");
    assert_eq!(error.message, b"killed");
    let source = "pcall(loadstring, ('x = 1 '):rep(1e6))";
    let script = lua
        .load("@user_script", source.as_bytes())
        .expect("it compiles");
    let error = lua.call(&mut host, &script, &[]).expect_err("it was ended");
    assert_eq!(error.interrupted.as_deref(), Some("killed"));
    assert_eq!(
        run_in(&mut lua, &mut (), "return loadstring('return 7')()"),
        "7"
    );
}

#[test]
fn the_memory_limit_raises_an_error_and_garbage_does_not_count() {
    let mut limits = Limits::default();
    limits.memory_bytes = 4 << 20;
    let mut lua = Lua::redis(limits);
    for source in [
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local s = 'x' while true do s = s .. s end",
        "return ('x'):rep(1e8)",
        "local t = {} while true do t = {t} end",
        "local t = {} for i = 1, 1e9 do t[i .. ''] = i end",
    ] {
        assert_eq!(
            run_in(&mut lua, &mut (), source),
            "error: not enough memory",
            "{source}"
        );
    }
    let garbage =
        "local s = 0 for i = 1, 200000 do local t = {i, tostring(i)} s = s + #t end return s";
    assert_eq!(run_in(&mut lua, &mut (), garbage), "400000");
}

/// Objects of every kind come and go while the collector works in small steps; what is reachable keeps its contents.
#[test]
fn the_collector_frees_garbage_and_nothing_else() {
    let source = r"
        local live, bad = {}, 0
        local function make(i)
            local up = i .. 'u'
            return {
                id = i, s = 'str' .. i, f = function() return up .. i end, sub = {tostring(i), {i}},
                co = coroutine.wrap(function() local x = i while true do x = x + 1 coroutine.yield(x .. '') end end),
            }
        end
        local function check(o)
            if o.s ~= 'str' .. o.id or o.f() ~= o.id .. 'u' .. o.id or o.sub[1] ~= tostring(o.id) or o.sub[2][1] ~= o.id
                or tonumber(o.co()) <= o.id then bad = bad + 1 end
        end
        for r = 1, 20 do
            for i = 1, 400 do
                local k = (i * 7 + r * 13) % 500
                live[k] = make(k)
                if i % 3 == 0 then live[(k * 3) % 500] = nil end
                if i % 5 == 0 then collectgarbage('step') end
                if live[(i * 11) % 500] then check(live[(i * 11) % 500]) end
            end
            if r % 5 == 0 then collectgarbage() end
        end
        for _, o in pairs(live) do check(o) end
        collectgarbage()
        local before = collectgarbage('count')
        live = nil
        collectgarbage()
        return bad .. (collectgarbage('count') < before / 4 and ' freed' or ' kept')";
    check(source, "0 freed");
}

#[test]
fn a_state_moves_between_threads_and_works_on_a_small_stack() {
    let lua = Lua::redis(Limits::default());
    let deep = [
        "local n = 0 local function f() n = n + 1 pcall(f) end f() return n > 50 and 'ok' or n",
        "local t = setmetatable({}, {__index = function(t, k) return t[k] end}) return pcall(function() return t.x end) and 'no' or 'ok'",
        "local function f() return coroutine.wrap(f)() end return pcall(f) and 'no' or 'ok'",
        "return loadstring('return ' .. ('('):rep(190) .. '1' .. (')'):rep(190)) and 'ok' or 'ok'",
        "return loadstring(('do '):rep(1000)) and 'no' or 'ok'",
        "return loadstring('x = ' .. ('{'):rep(1000)) and 'no' or 'ok'",
        "return loadstring('return ' .. ('function() return '):rep(500)) and 'no' or 'ok'",
        "local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function(a, b) return pcall(string.gsub, 'x', 'x', function() return 'y' end) and a < b end) return 'ok'",
        "local t = {} for i = 1, 900 do t = {t} end return #cjson.encode(t) > 0 and 'ok'",
        "return (cjson.decode(('['):rep(900) .. (']'):rep(900))) and 'ok'",
        "return pcall(cmsgpack.unpack, ('\\145'):rep(100000)) and 'no' or 'ok'",
        "return string.find(('a'):rep(300000), ('a?'):rep(300000)) and 'ok'",
        "local s = 'x' for i = 1, 300 do s = setmetatable({}, {__tostring = function() return tostring(s) end}) end return pcall(tostring, s) and 'no' or 'ok'",
    ];
    let handle = std::thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(move || {
            let mut lua = lua;
            for source in deep {
                assert_eq!(run_in(&mut lua, &mut (), source), "ok", "{source}");
            }
        })
        .expect("the thread starts");
    handle.join().expect("no script exhausts the stack");
}
