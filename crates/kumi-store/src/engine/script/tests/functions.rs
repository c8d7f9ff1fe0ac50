//! Libraries of functions: FUNCTION and FCALL.

use crate::testing::Lab;

const LIBRARY: &str = "#!lua name=lib\n\
    local calls = 0\n\
    redis.register_function('count', function(keys, args) calls = calls + 1 return calls end)\n\
    redis.register_function{function_name='read', flags={'no-writes'}, description='Reads.',\n\
    callback=function(keys, args) return {keys[1], args[1], redis.call('get', keys[1])} end}\n\
    redis.register_function('write', function(keys) return redis.call('set', keys[1], 'x') end)\n\
    redis.register_function('loop', function() while true do end end)\n\
    redis.register_function('late', function() redis.register_function('x', function() end) end)";

#[test]
fn functions_of_a_library_are_called_by_name() {
    let mut lab = Lab::new();
    assert_eq!(lab.run("FCALL count 0"), "-ERR Function not found\r\n");
    assert_eq!(lab.function(&["LOAD", LIBRARY]), "$3\r\nlib\r\n");
    lab.check(&[
        ("FCALL count 0", ":1\r\n"),
        ("FCALL COUNT 0", ":2\r\n"),
        ("SET k v", "+OK\r\n"),
        ("FCALL_RO read 1 k a", "*3\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\nv\r\n"),
        ("FCALL write 1 k", "+OK\r\n"),
        ("FCALL_RO write 1 k", "-ERR Can not execute a script with write flag using *_ro command.\r\n"),
        ("FCALL count x", "-ERR Bad number of keys provided\r\n"),
        ("FCALL count 2 a", "-ERR Number of keys can't be greater than number of args\r\n"),
        ("FCALL late 0", "-ERR user_function:8: attempt to call field 'register_function' (a nil value) script: late, on @user_function:8.\r\n"),
        ("FUNCTION DELETE lib", "+OK\r\n"),
        ("FUNCTION DELETE lib", "-ERR Library not found\r\n"),
        ("FCALL count 0", "-ERR Function not found\r\n"),
    ]);
}

#[test]
fn a_library_that_fails_leaves_everything_as_it_was() {
    let mut lab = Lab::new();
    lab.function(&["LOAD", LIBRARY]);
    for (code, text) in [
        (LIBRARY, "Library 'lib' already exists"),
        ("return 1", "Missing library metadata"),
        ("#!lua name=a", "Invalid library metadata"),
        ("#!lua\n", "Library name was not given"),
        (
            "#!lua name=a-b\n",
            "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
        ),
        ("#!perl name=a\n", "Engine 'perl' not found"),
        (
            "#!lua name=a foo=b\n",
            "Invalid metadata value given: foo=b",
        ),
        (
            "#!lua name=a\nretrun 1",
            "Error compiling function: user_function:2: '=' expected near '1'",
        ),
        ("#!lua name=a\nreturn 1", "No functions registered"),
        (
            "#!lua name=a\nx = 1",
            "Error registering functions: ERR user_function:2: Attempt to modify a readonly table",
        ),
        (
            "#!lua name=a\nredis.call('get', 'a')",
            "Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable 'call'",
        ),
        (
            "#!lua name=a\nmath.random()",
            "Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable 'math'",
        ),
        (
            "#!lua name=a\nredis.redis.call('ping')",
            "Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable 'redis'",
        ),
        (
            "#!lua name=a\nredis.x = 1",
            "Error registering functions: ERR user_function:2: Attempt to modify a readonly table",
        ),
        (
            "#!lua name=a\nredis.register_function{function_name='f', callback=function() end, 1}",
            "Error registering functions: ERR unknown argument given to redis.register_function",
        ),
        ("#!lua name=a\0b\n", "Invalid library metadata"),
        (
            "#!lua name=a\nredis.register_function('COUNT', function() end)",
            "Function COUNT already exists",
        ),
        (
            "#!lua name=a\nredis.register_function('f', 1)",
            "Error registering functions: ERR second argument to redis.register_function must be a function",
        ),
        (
            "#!lua name=a\nredis.register_function{function_name='f', callback=function() end, flags={'x'}}",
            "Error registering functions: ERR unknown flag given",
        ),
        (
            "#!lua name=a\nredis.register_function('f', function() end) redis.register_function('F', function() end)",
            "Error registering functions: ERR Function already exists in the library",
        ),
    ] {
        assert_eq!(
            lab.function(&["LOAD", code]),
            format!("-ERR {text}\r\n"),
            "{code}"
        );
    }
    // Code that never ends is stopped; every reading of the clock is a tenth of a second later.
    lab.host.tick_ns = 100_000_000;
    let reply = lab.function(&["LOAD", "#!lua name=a\nwhile true do end"]);
    assert_eq!(
        reply,
        "-ERR Error registering functions: ERR FUNCTION LOAD timeout\r\n"
    );
    assert_eq!(lab.store.scripts.library_counts(), (1, 5));
    assert_eq!(lab.run("FCALL count 0"), ":1\r\n");
}

#[test]
fn a_library_of_a_file_may_take_long() {
    let mut lab = Lab::new();
    // Every reading of the clock is a tenth of a second later.
    lab.host.tick_ns = 100_000_000;
    let slow = "#!lua name=slow\nfor i = 1, 2000000 do end\n\
        redis.register_function('f', function() return 1 end)";
    let timeout = "-ERR Error registering functions: ERR FUNCTION LOAD timeout\r\n";
    assert_eq!(lab.function(&["LOAD", slow]), timeout);
    let loaded = lab
        .store
        .load_libraries(&[slow.as_bytes().into()], false, &mut lab.host);
    assert!(loaded.is_ok(), "{loaded:?}");
    assert_eq!(lab.run("FCALL f 0"), ":1\r\n");
}

#[test]
fn the_table_of_loading_stays_what_it_is() {
    let mut lab = Lab::new();
    let library = "#!lua name=lib\n\
        local lib = redis\n\
        local function add(name, callback) lib.register_function(name, callback) end\n\
        redis.log(redis.LOG_DEBUG, 'loading')\n\
        add('late', function() add('x', function() end) end)\n\
        add('call', function() return lib.call('ping') end)\n\
        add('change', function() lib.redis = redis end)\n\
        add('both', function() return {redis.call('ping').ok, math.floor(1.5), tostring(redis.register_function)} end)";
    assert_eq!(lab.function(&["LOAD", library]), "$3\r\nlib\r\n");
    lab.check(&[
        ("FCALL late 0", "-ERR redis.register_function can only be called on FUNCTION LOAD command script: late, on @user_function:3.\r\n"),
        ("FCALL call 0", "-ERR user_function:6: Script attempted to access nonexistent global variable 'call' script: call, on @user_function:6.\r\n"),
        ("FCALL change 0", "-ERR user_function:7: Attempt to modify a readonly table script: change, on @user_function:7.\r\n"),
        ("FCALL both 0", "*3\r\n$4\r\nPONG\r\n:1\r\n$3\r\nnil\r\n"),
    ]);
}

#[test]
fn libraries_come_back_from_a_dump() {
    let mut lab = Lab::new();
    let client = lab.client;
    lab.function(&["LOAD", LIBRARY]);
    lab.store.listen_to_writes(true);
    let mut payload = Vec::new();
    lab.store
        .scripts
        .libraries
        .as_ref()
        .expect("a library is loaded")
        .dump(&mut payload);
    crate::data::rdb::seal(&mut payload);
    let restore = |lab: &mut Lab, policy: &[u8]| {
        lab.send(client, &[b"FUNCTION", b"RESTORE", &payload, policy])
    };
    assert_eq!(
        restore(&mut lab, b"APPEND"),
        "-ERR Library lib already exists\r\n"
    );
    assert_eq!(restore(&mut lab, b"REPLACE"), "+OK\r\n");
    assert_eq!(lab.run("FUNCTION FLUSH"), "+OK\r\n");
    assert_eq!(restore(&mut lab, b"FLUSH"), "+OK\r\n");
    assert_eq!(lab.writes().len(), 3);
    lab.check(&[
        ("FCALL count 0", ":1\r\n"),
        (
            "FUNCTION RESTORE x",
            "-ERR DUMP payload version or checksum are wrong\r\n",
        ),
        (
            "FUNCTION RESTORE x KEEP",
            "-ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.\r\n",
        ),
    ]);
}

#[test]
fn a_long_function_is_shown_and_killed() {
    let mut lab = Lab::new();
    lab.function(&["LOAD", LIBRARY]);
    lab.configure("busy-reply-threshold", "1");
    lab.host.tick_ns = 100_000;
    let other = lab.connect();
    lab.host.meanwhile = vec![
        (other, "GET a"),
        (other, "FUNCTION STATS"),
        (other, "SCRIPT KILL"),
        (other, "FUNCTION KILL"),
    ];
    let reply = lab.run("FCALL loop 0");
    assert!(
        reply.starts_with(
            "-ERR Script killed by user with FUNCTION KILL... script: loop, on @user_function:"
        ),
        "{reply}"
    );
    let busy = "-BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.\r\n";
    let running = "*6\r\n$4\r\nname\r\n$4\r\nloop\r\n$7\r\ncommand\r\n*3\r\n$5\r\nFCALL\r\n$4\r\nloop\r\n$1\r\n0\r\n$11\r\nduration_ms\r\n:11\r\n";
    let replies = lab.received(other);
    assert!(
        replies.starts_with(&format!("{busy}*4\r\n$14\r\nrunning_script\r\n{running}")),
        "{replies}"
    );
    let counts = "$15\r\nlibraries_count\r\n:1\r\n$15\r\nfunctions_count\r\n:5\r\n";
    let rest = format!("{counts}{busy}+OK\r\n");
    assert!(replies.ends_with(&rest), "{replies}");
    // They are counted once, also afterwards and when they are gone.
    assert_eq!(lab.store.scripts.library_counts(), (1, 5));
    lab.run("FUNCTION FLUSH");
    assert_eq!(lab.store.scripts.library_counts(), (0, 0));
}

#[test]
fn scripts_and_functions_see_their_own_counts() {
    const INFO: &str = "local info = redis.call('info', 'memory') \
        return {info:match('number_of_cached_scripts:(%d+)'), info:match('number_of_functions:(%d+)'), \
        info:match('number_of_libraries:(%d+)')}";
    let mut lab = Lab::new();
    let expected = "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n";
    let library = format!("#!lua name=lib\nredis.register_function('f', function() {INFO} end)");
    lab.function(&["LOAD", &library]);
    lab.run("SCRIPT FLUSH");
    lab.check_eval(INFO, expected);
    assert_eq!(lab.run("FCALL f 0"), expected);
    lab.run("SCRIPT FLUSH");
    assert_eq!(lab.store.scripts.cached(), 0);
}
