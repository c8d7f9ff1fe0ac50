//! Long and hostile scripts, through a running server.

use crate::common::{Process, request, text};
use std::sync::atomic::{AtomicBool, Ordering};

/// Has another client kill whatever script runs, until `work` is done.
fn with_killer<T: Send>(process: &Process, work: impl FnOnce() -> T + Send) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = work();
            done.store(true, Ordering::SeqCst);
            result
        });
        let mut killer = process.connect();
        while !done.load(Ordering::SeqCst) && !worker.is_finished() {
            let answer = killer.line("SCRIPT KILL");
            assert!(answer == "OK" || answer.starts_with("-NOTBUSY"), "{answer}");
        }
        worker.join().expect("the work is done")
    })
}

#[test]
fn replies_before_a_long_script_are_not_held_back() {
    let process = Process::start(&["--busy-reply-threshold", "50"]);
    let (mut client, mut other) = (process.connect(), process.connect());
    let long = "local i = 0 while true do i = i + 1 end";
    let pipeline = [
        request(&["SET", "a", "1"]),
        request(&["GET", "a"]),
        request(&["EVAL", long, "0"]),
        request(&["GET", "a"]),
    ];
    client.send(pipeline.concat());
    // They arrive although the script has not ended, and will not end by itself.
    assert_eq!(text(&client.reply()), "OK");
    assert_eq!(text(&client.reply()), "1");
    crate::common::eventually(|| other.line("GET a"), |answer| answer.starts_with("-BUSY"));
    assert_eq!(other.line("SCRIPT KILL"), "OK");
    let killed = text(&client.reply());
    assert!(killed.contains("Script killed by user"), "{killed}");
    assert_eq!(text(&client.reply()), "1");
    assert_eq!(other.line("GET a"), "1");
}

#[test]
fn a_client_that_leaves_while_its_script_runs_does_no_harm() {
    let process = Process::start(&["--busy-reply-threshold", "50"]);
    let mut other = process.connect();
    for _ in 0..3 {
        let mut leaver = process.connect();
        let script = "while true do redis.call('get', 'a') end";
        leaver.send(request(&["EVAL", script, "0"]));
        crate::common::eventually(|| other.line("PING"), |answer| answer.starts_with("-BUSY"));
        drop(leaver);
        assert_eq!(other.line("SCRIPT KILL"), "OK");
        crate::common::eventually(|| other.line("PING"), |answer| answer == "PONG");
    }
    let list = crate::common::eventually(
        || other.line("CLIENT LIST"),
        |list| list.trim_end().lines().count() == 1,
    );
    assert!(list.contains("cmd=client|list"), "{list}");
}

/// Ways out of the sandbox, and ways to use up time, memory or the stack. Each gets an error.
const HOSTILE: &[&str] = &[
    // What is not there.
    "return os.execute('id')",
    "return os.getenv('HOME')",
    "return io.open('/etc/passwd')",
    "return require('os')",
    "return package.loadlib('libc.so.6', 'system')",
    "return debug.getinfo(1)",
    "return dofile('/etc/passwd')",
    "return loadfile('/etc/passwd')()",
    "return module('x')",
    // Bytecode.
    "return loadstring('\\27Lua\\81\\0\\1\\4\\8\\4\\8\\0')()",
    "return load(function() return nil end, '\\27Lua')() .. ''",
    // Changing what other scripts see.
    "x = 1",
    "_G.x = 1 return 1",
    "rawset(_G, 'x', 1) return 1",
    "setmetatable(_G, {}) return 1",
    "redis.call = nil return 1",
    "redis.extra = 1 return 1",
    "string.rep = nil return 1",
    "table.insert(string, 1) return 1",
    "getmetatable('').__index = function() return 1 end return 1",
    "getmetatable(_G).__index = nil return 1",
    "getmetatable('').__gc = 1 return 1",
    "cjson.decode = nil return 1",
    "setfenv(0, {}) return redis.call('ping')",
    "setfenv(1, {}) return redis.call('ping')",
    "getfenv(0).x = 1 return 1",
    // The stack.
    "local function f() return 1 + f() end return f()",
    "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k] end return t.x",
    "local s = ('('):rep(100000) return loadstring('return ' .. s)()",
    "return string.rep('(', 10000) .. nil",
    "local t = {} for i = 1, 1e5 do t = {t} end return cjson.encode(t)",
    "local t = {} t[1] = t return cjson.encode(t)",
    "local f f = function() return pcall(f) end f() error('no end')",
    "local function f(...) return f(1, ...) end return f()",
    "local co co = coroutine.wrap(function() return coroutine.wrap(co)() end) return co()",
    // Memory.
    "return #string.rep('x', 2^31 - 1)",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end",
    "return unpack({}, 0, 1e8)",
    "return table.concat(setmetatable({}, {}), 'x', 1, 1e9)",
    "return string.format('%99999d', 1)",
    // Time.
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "return string.find(('a'):rep(50), ('a*'):rep(30) .. 'b') .. ''",
    "return string.find(('a'):rep(300000), ('a?'):rep(300000)) .. nil",
    "return (('x'):rep(1e6):gsub('.', function(c) while true do end end))",
    "table.sort({3, 2, 1, 4, 5}, function() while true do end end)",
    // Libraries with sizes of their own.
    "return cjson.decode(('['):rep(100000))",
    "return cjson.decode('[1' .. (',1'):rep(10))",
    "return cmsgpack.unpack(('\\145'):rep(100000))",
    "return cmsgpack.unpack('\\221\\255\\255\\255\\255')",
    "return cmsgpack.unpack('\\219\\255\\255\\255\\255x')",
    "return struct.pack('>I2147483648', 1)",
    "return struct.unpack('I99', ('x'):rep(200))",
    "return struct.unpack('c2147483647', 'x')",
    "return struct.unpack('i4', 'xxxx', 1e9)",
    "return struct.pack('!3i4', 1)",
];

#[test]
fn hostile_scripts_get_errors_and_the_server_lives() {
    let process = Process::start(&["--busy-reply-threshold", "300"]);
    for script in HOSTILE {
        let answer = with_killer(&process, || {
            let mut client = process.connect();
            text(&client.ask(&["EVAL", script, "0"]))
        });
        assert!(answer.starts_with('-'), "{script}: {answer:.200}");
        assert!(!answer.contains("internal error"), "{script}: {answer}");
        let mut client = process.connect();
        let sound =
            "return {redis.call('ping')['ok'], #string.rep('x', 3), type(_G), tostring(x == nil)}";
        let sound = client.ask(&["EVAL", &sound.replace("tostring(x == nil)", "'ok'"), "0"]);
        assert_eq!(text(&sound), "PONG,3,table,ok", "after {script}");
    }
    let status = format!("/proc/{}/status", process.child.id());
    let status = std::fs::read_to_string(status).expect("the server lives");
    let peak = status.lines().find(|line| line.starts_with("VmHWM:"));
    let peak_kb: u64 = peak
        .and_then(|line| line.split_whitespace().nth(1))
        .and_then(|number| number.parse().ok())
        .expect("a number of kilobytes");
    assert!(peak_kb < 3_000_000, "{peak_kb} kB at its peak");
}

#[test]
fn a_pattern_made_to_be_exponential_is_matched_in_bounded_time() {
    let process = Process::start(&[]);
    let mut client = process.connect();
    let key = "a".repeat(300);
    let pattern = format!("{}b", "a*".repeat(60));
    assert_eq!(
        client.ask(&["SET", &key, "1"]),
        client.ask(&["SET", &key, "1"])
    );
    assert_eq!(text(&client.ask(&["KEYS", &pattern])), "");
    let mut scan = client.ask(&["SCAN", "0", "MATCH", &pattern]);
    assert_eq!(text(&scan), "0,");
    scan = client.ask(&["PSUBSCRIBE", &pattern]);
    assert!(text(&scan).starts_with("psubscribe"));
    assert_eq!(text(&process.connect().ask(&["PUBLISH", &key, "x"])), "0");
    client.ask(&["PUNSUBSCRIBE"]);
    assert_eq!(client.line("PING"), "PONG");
}
