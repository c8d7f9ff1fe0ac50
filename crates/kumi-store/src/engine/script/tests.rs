use crate::testing::Lab;

mod functions;
mod slow;

impl Lab {
    /// Runs EVAL with a script and keys.
    fn eval(&mut self, script: &str, keys: &[&str]) -> String {
        let client = self.client;
        let count = keys.len().to_string();
        let mut words: Vec<&[u8]> = vec![b"EVAL", script.as_bytes(), count.as_bytes()];
        words.extend(keys.iter().map(|key| key.as_bytes()));
        self.send(client, &words)
    }

    #[track_caller]
    fn check_eval(&mut self, script: &str, expected: &str) {
        let found = self.eval(script, &[]);
        assert_eq!(found, expected, "{script}");
    }

    /// Checks how the line of a command in INFO ends.
    #[track_caller]
    fn check_counts(&mut self, command: &str, expected: &str) {
        let stats = self.run("INFO commandstats");
        let line = stats.lines().find(|line| line.starts_with(command));
        assert!(line.is_some_and(|line| line.ends_with(expected)), "{stats}");
    }

    fn function(&mut self, words: &[&str]) -> String {
        let client = self.client;
        let words: Vec<&[u8]> = ["FUNCTION"]
            .iter()
            .chain(words)
            .map(|word| word.as_bytes())
            .collect();
        self.send(client, &words)
    }
}

#[test]
fn values_become_replies() {
    let mut lab = Lab::new();
    for (script, expected) in [
        ("return 1", ":1\r\n"),
        ("return 3.99", ":3\r\n"),
        ("return 1e300", ":-9223372036854775808\r\n"),
        ("return 'a'", "$1\r\na\r\n"),
        ("return true", ":1\r\n"),
        ("return false", "$-1\r\n"),
        ("return nil", "$-1\r\n"),
        ("return", "$-1\r\n"),
        (
            "return {1,{2,'a'},nil,3}",
            "*2\r\n:1\r\n*2\r\n:2\r\n$1\r\na\r\n",
        ),
        ("return {ok='fine'}", "+fine\r\n"),
        ("return {err='bad\\nline'}", "-bad line\r\n"),
        ("return {double=3.5}", "$3\r\n3.5\r\n"),
        ("return {map={a=1}}", "*2\r\n$1\r\na\r\n:1\r\n"),
        ("return {set={a=true}}", "*1\r\n$1\r\na\r\n"),
        ("return {big_number='1\\n2'}", "$3\r\n1 2\r\n"),
        (
            "return {verbatim_string={string='a',format='tx'}}",
            "$1\r\na\r\n",
        ),
        ("return redis.error_reply('my')", "-ERR my\r\n"),
        ("return redis.error_reply('-CODE text')", "-CODE text\r\n"),
        ("return redis.status_reply('a\\nb')", "+a b\r\n"),
        ("return redis.status_reply('a\\0b')", "+a\r\n"),
        ("return redis.error_reply('A b\\0c')", "-A b\r\n"),
        (
            "return {{err='A b\\0c'},{ok='a\\0b'}}",
            "*2\r\n-A b\r\n+a\r\n",
        ),
        (
            "return redis.sha1hex('')",
            "$40\r\nda39a3ee5e6b4b0d3255bfef95601890afd80709\r\n",
        ),
        ("redis.setresp(3) return {true,false}", "*2\r\n:1\r\n:0\r\n"),
    ] {
        lab.check_eval(script, expected);
    }
    lab.run("HELLO 3");
    for (script, expected) in [
        ("return false", "_\r\n"),
        ("return {double=3.5}", ",3.5\r\n"),
        ("return {map={a=1}}", "%1\r\n$1\r\na\r\n:1\r\n"),
        ("return {set={a=true}}", "~1\r\n$1\r\na\r\n"),
        ("return {big_number='12'}", "(12\r\n"),
        (
            "return {verbatim_string={string='a',format='tx'}}",
            "=5\r\ntx :a\r\n",
        ),
        ("redis.setresp(3) return {true,false}", "*2\r\n#t\r\n#f\r\n"),
        ("redis.setresp(3.9) return true", "#t\r\n"),
        ("redis.setresp(2.5) return true", ":1\r\n"),
    ] {
        lab.check_eval(script, expected);
    }
}

#[test]
fn replies_become_values() {
    let mut lab = Lab::new();
    lab.run("SET a 1");
    lab.run("HSET h f v");
    for (script, expected) in [
        ("return redis.call('get','a')", "$1\r\n1\r\n"),
        ("return type(redis.call('get','none'))", "$7\r\nboolean\r\n"),
        (
            "redis.setresp(3) return type(redis.call('get','none'))",
            "$3\r\nnil\r\n",
        ),
        ("return redis.call('incr','a') + 1", ":3\r\n"),
        ("return redis.call('set','a','x').ok", "$2\r\nOK\r\n"),
        (
            "return redis.call('hgetall','h')",
            "*2\r\n$1\r\nf\r\n$1\r\nv\r\n",
        ),
        (
            "redis.setresp(3) return redis.call('hgetall','h').map.f",
            "$1\r\nv\r\n",
        ),
        (
            "return redis.pcall('incr','a').err",
            "$46\r\nERR value is not an integer or out of range\r\n",
        ),
    ] {
        let expected = expected.replace("$46", "$43");
        lab.check_eval(script, &expected);
    }
    // An integer argument is written in full, another number in its shortest form.
    lab.check_eval(
        "redis.call('set','n',2^53) return redis.call('get','n')",
        "$16\r\n9007199254740992\r\n",
    );
    lab.check_eval(
        "redis.call('set','n',1.1) return redis.call('get','n')",
        "$3\r\n1.1\r\n",
    );
}

#[test]
fn errors_name_the_script_and_the_line() {
    let mut lab = Lab::new();
    lab.run("SET a x");
    for (script, text) in [
        (
            "return redis.call('incr','a')",
            "ERR value is not an integer or out of range",
        ),
        (
            "return redis.call('nosuch')",
            "ERR Unknown Redis command called from script",
        ),
        (
            "return redis.call('get')",
            "ERR Wrong number of args calling Redis command from script",
        ),
        (
            "return redis.call('subscribe','a')",
            "ERR This Redis command is not allowed from script",
        ),
        (
            "return redis.call('CLUSTER','reset')",
            "ERR This Redis command is not allowed from script",
        ),
        (
            "return redis.call('cluster','nosuch')",
            "ERR Unknown Redis command called from script",
        ),
        (
            "return redis.call()",
            "ERR Please specify at least one argument for this redis lib call",
        ),
        (
            "return redis.call({})",
            "ERR Lua redis lib command arguments must be strings or integers",
        ),
        ("error('x')", "ERR user_script:1: x"),
        ("error({err='foo'})", "foo"),
        ("error('x\\0y')", "ERR user_script:1: x"),
        ("error({err='FOO x\\0y'})", "FOO x"),
        ("error()", "ERR nil"),
        (
            "x=1",
            "ERR user_script:1: Attempt to modify a readonly table",
        ),
        (
            "redis.call=1",
            "ERR user_script:1: Attempt to modify a readonly table",
        ),
    ] {
        let sha = String::from_utf8_lossy(&super::Sha::of(script.as_bytes()).hex()).into_owned();
        let expected = format!("-{text} script: {sha}, on @user_script:1.\r\n");
        lab.check_eval(script, &expected);
    }
    lab.check_eval(
        "retrun 1",
        "-ERR Error compiling script (new function): user_script:1: '=' expected near '1'\r\n",
    );
    lab.check(&[
        (
            "EVAL return x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "EVAL return 1",
            "-ERR Number of keys can't be greater than number of args\r\n",
        ),
        (
            "EVAL return -1",
            "-ERR Number of keys can't be negative\r\n",
        ),
        (
            "EVALSHA abc 0",
            "-NOSCRIPT No matching script. Please use EVAL.\r\n",
        ),
    ]);
}

#[test]
fn keys_and_arguments_are_globals() {
    let mut lab = Lab::new();
    let client = lab.client;
    let reply = lab.send(
        client,
        &[
            b"EVAL",
            b"return {KEYS[1],ARGV[1],#ARGV}",
            b"1",
            b"k",
            b"x",
            b"y",
        ],
    );
    assert_eq!(reply, "*3\r\n$1\r\nk\r\n$1\r\nx\r\n:2\r\n");
}

#[test]
fn a_table_in_itself_ends_at_redis_depth() {
    let mut lab = Lab::new();
    let reply = lab.eval("local t={} t[1]=t return t", &[]);
    assert_eq!(reply.matches("*1\r\n").count(), 7995);
    assert!(reply.ends_with("-ERR reached lua stack limit\r\n"));
    let reply = lab.eval("local t={map={}} t.map[1]=t return t", &[]);
    assert_eq!(reply.matches("*2\r\n").count(), 2665);
    assert_eq!(reply.matches("-ERR").count(), 2);
}

#[test]
fn a_reply_without_end_is_an_error() {
    let mut lab = Lab::new();
    lab.check_eval("return 1", ":1\r\n");
    let mut limits = kumi_lua::Limits::default();
    limits.memory_bytes = 4 << 20;
    let evaluator = lab.store.scripts.evaluator.as_mut();
    evaluator.expect("a script has run").lua.set_limits(limits);
    for script in [
        "local t={} t[1]=t t[2]=t return t",
        "local t, s = {}, ('x'):rep(10000) for i=1,1000 do t[i]=s end return t",
        "local t={map={}} t.map[1]=t t.map[2]=t return t",
    ] {
        lab.check_eval(script, "-ERR the reply of the script is too large\r\n");
    }
    // Also if the client wants no reply.
    lab.run("CLIENT REPLY OFF");
    lab.check_eval("local t={} t[1]=t t[2]=t return t", "");
    lab.run("CLIENT REPLY ON");
    lab.check_eval("return {1,2}", "*2\r\n:1\r\n:2\r\n");
}

#[test]
fn a_selected_database_is_the_scripts_own() {
    let mut lab = Lab::new();
    lab.check_eval(
        "redis.call('select',3) return redis.call('set','a','1')",
        "+OK\r\n",
    );
    lab.check(&[
        ("GET a", "$-1\r\n"),
        ("SELECT 3", "+OK\r\n"),
        ("GET a", "$1\r\n1\r\n"),
    ]);
}

#[test]
fn the_cache_keeps_loaded_scripts_and_a_bound_of_others() {
    let mut lab = Lab::new();
    let client = lab.client;
    let sha = lab.send(client, &[b"SCRIPT", b"LOAD", b"return 'kept'"]);
    let sha = sha.lines().nth(1).unwrap_or_default().to_owned();
    for number in 0..600 {
        lab.check_eval(&format!("return {number}"), &format!(":{number}\r\n"));
    }
    assert_eq!(lab.store.scripts.cached(), 501);
    assert_eq!(lab.run(&format!("EVALSHA {sha} 0")), "$4\r\nkept\r\n");
    let upper = sha.to_ascii_uppercase();
    assert_eq!(
        lab.run(&format!("SCRIPT EXISTS {upper} x")),
        "*2\r\n:1\r\n:0\r\n"
    );
    lab.check(&[
        (
            "SCRIPT FLUSH LATER",
            "-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n",
        ),
        ("SCRIPT FLUSH ASYNC", "+OK\r\n"),
        (
            "SCRIPT DEBUG YES",
            "-ERR SCRIPT DEBUG does not exist in kumi: there is no debugger for scripts\r\n",
        ),
    ]);
    assert_eq!(lab.store.scripts.cached(), 0);
    assert!(
        lab.run(&format!("EVALSHA {sha} 0"))
            .starts_with("-NOSCRIPT")
    );
}

#[test]
fn read_only_runs_write_nothing() {
    let mut lab = Lab::new();
    let client = lab.client;
    for script in [
        "return redis.call('set','a','b')",
        "return redis.call('publish','a','b')",
    ] {
        let reply = lab.send(client, &[b"EVAL_RO", script.as_bytes(), b"0"]);
        assert!(
            reply.starts_with(
                "-ERR Write commands are not allowed from read-only scripts. script: "
            ),
            "{reply}"
        );
    }
    let reply = lab.send(
        client,
        &[
            b"EVAL",
            b"#!lua flags=no-writes\nreturn redis.call('set','a','b')",
            b"0",
        ],
    );
    assert!(
        reply.starts_with("-ERR Write commands are not allowed")
            && reply.ends_with("on @user_script:2.\r\n"),
        "{reply}"
    );
    let reply = lab.send(client, &[b"EVAL_RO", b"#!lua\nreturn 1", b"0"]);
    assert_eq!(
        reply,
        "-ERR Can not execute a script with write flag using *_ro command.\r\n"
    );
}

#[test]
fn memory_is_checked_before_the_first_write() {
    let mut lab = Lab::new();
    lab.run("SET b 1");
    lab.configure("maxmemory", "1");
    lab.check_eval("return redis.call('get','a')", "$-1\r\n");
    assert!(
        lab.eval("return redis.call('set','a','1')", &[])
            .starts_with("-OOM command not allowed when used memory > 'maxmemory'. script: ")
    );
    // A script that declares its flags is refused like a command that writes.
    lab.run("CONFIG RESETSTAT");
    let refused = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    lab.check_eval("#!lua\nreturn 1", refused);
    lab.check_counts("cmdstat_eval:", "rejected_calls=1,failed_calls=0");
    let client = lab.client;
    let read_only: [&[u8]; 3] = [b"EVAL_RO", b"#!lua\nreturn 1", b"0"];
    assert_eq!(lab.send(client, &read_only), refused);
    lab.check_counts("cmdstat_eval_ro:", "rejected_calls=1,failed_calls=0");
    lab.check_eval(
        "#!lua flags=allow-oom\nreturn redis.call('set','a','1')",
        "+OK\r\n",
    );
}

#[test]
fn the_writes_of_a_script_are_one_transaction() {
    let mut lab = Lab::new();
    lab.store.listen_to_writes(true);
    lab.eval(
        "redis.call('set','a','1') redis.call('get','a') redis.call('incr','a')",
        &[],
    );
    assert_eq!(lab.writes(), ["MULTI", "set a 1", "incr a", "EXEC"]);
    lab.eval("redis.call('set','a','1')", &[]);
    assert_eq!(lab.writes(), ["set a 1"]);
    lab.eval("redis.call('set','a','1') error('x')", &[]);
    assert_eq!(lab.writes(), ["set a 1"]);
    lab.eval(
        "redis.set_repl(redis.REPL_NONE) redis.call('set','a','2')",
        &[],
    );
    assert!(lab.writes().is_empty());
    lab.run("SET a 3");
    assert_eq!(lab.writes(), ["SET a 3"]);
}

#[test]
fn waiters_are_served_after_the_script() {
    let mut lab = Lab::new();
    let waiter = lab.connect();
    assert_eq!(lab.run_as(waiter, "BLPOP l 0"), "");
    lab.check_eval(
        "redis.call('rpush','l','a') redis.call('rpush','l','b') return redis.call('llen','l')",
        ":2\r\n",
    );
    assert_eq!(lab.received(waiter), "*2\r\n$1\r\nl\r\n$1\r\na\r\n");
}

#[test]
fn a_monitor_sees_the_script_and_its_commands() {
    let mut lab = Lab::new();
    let monitor = lab.connect();
    lab.run_as(monitor, "MONITOR");
    lab.eval("return redis.call('get','a')", &[]);
    assert_eq!(
        lab.received(monitor),
        "+1700000000.000000 [0 ] \"EVAL\" \"return redis.call('get','a')\" \"0\"\r\n+1700000000.000000 [0 lua] \"get\" \"a\"\r\n"
    );
}

#[test]
fn an_error_of_a_called_command_is_counted_once() {
    let mut lab = Lab::new();
    lab.run("SET a x");
    lab.eval("return redis.call('incr','a')", &[]);
    lab.check_counts("cmdstat_incr:", "rejected_calls=0,failed_calls=1");
    // The script has failed as well, but the error is the same one.
    lab.check_counts("cmdstat_eval:", "rejected_calls=0,failed_calls=1");
    assert!(lab.run("INFO errorstats").contains("errorstat_ERR:count=1"));
    for (script, failed) in [
        ("return redis.pcall('incr','a')", 1),
        ("return redis.pcall('incr','a').err", 0),
        ("return redis.call('nosuch')", 1),
        ("error('x')", 1),
        ("return {{err='FOO x'},{err='FOO x'}}", 1),
        ("return {redis.pcall('incr','a'),{err='FOO x'}}", 2),
    ] {
        lab.run("CONFIG RESETSTAT");
        lab.eval(script, &[]);
        let expected = format!("rejected_calls=0,failed_calls={failed}");
        lab.check_counts("cmdstat_eval:", &expected);
    }
}

#[test]
fn commands_that_wait_do_not_wait_in_a_script() {
    let mut lab = Lab::new();
    for (call, reply) in [
        ("'blpop','l',0", "$-1\r\n"),
        ("'brpop','l',0", "$-1\r\n"),
        ("'blmove','l','m','left','left',0", "$-1\r\n"),
        ("'brpoplpush','l','m',0", "$-1\r\n"),
        ("'blmpop',0,1,'l','left'", "$-1\r\n"),
        ("'bzpopmin','z',0", "$-1\r\n"),
        ("'bzpopmax','z',0", "$-1\r\n"),
        ("'bzmpop',0,1,'z','min'", "$-1\r\n"),
        ("'wait',1,0", ":0\r\n"),
    ] {
        lab.check_eval(&format!("return redis.call({call})"), reply);
    }
    lab.check(&[("RPUSH l a", ":1\r\n"), ("ZADD z 1 m", ":1\r\n")]);
    lab.check_eval("return redis.call('brpop','l',0)[2]", "$1\r\na\r\n");
    lab.check_eval("return redis.call('bzpopmin','z',0)[2]", "$1\r\nm\r\n");
    let reply = lab.eval("return redis.call('waitaof',0,0,0)", &[]);
    let refused = "-ERR This Redis command is not allowed from script";
    assert!(reply.starts_with(refused), "{reply}");
}

#[test]
fn a_pause_of_writes_lets_scripts_run_that_declare_none() {
    let mut lab = Lab::new();
    let library = "#!lua name=lib\nredis.register_function{function_name='reads', callback=function() return 1 end, flags={'no-writes'}}\nredis.register_function('writes', function() return 1 end)";
    lab.function(&["LOAD", library]);
    let (reads, writes) = ("#!lua flags=no-writes\nreturn 1", "#!lua\nreturn 1");
    let sha = |lab: &mut Lab, source: &str| {
        let client = lab.client;
        let reply = lab.send(client, &[b"SCRIPT", b"LOAD", source.as_bytes()]);
        reply.lines().nth(1).unwrap_or_default().to_owned()
    };
    let (read_sha, write_sha) = (sha(&mut lab, reads), sha(&mut lab, writes));
    let undeclared = "return 1";
    lab.run("CLIENT PAUSE 100000 WRITE");
    for request in [
        ["EVAL", reads, "0"],
        ["EVAL_RO", undeclared, "0"],
        ["EVALSHA", &read_sha, "0"],
        ["EVALSHA_RO", &read_sha, "0"],
        ["FCALL", "reads", "0"],
        ["FCALL_RO", "reads", "0"],
    ] {
        let client = lab.client;
        assert_eq!(
            lab.send(client, &request.map(str::as_bytes)),
            ":1\r\n",
            "{request:?}"
        );
        lab.run("MULTI");
        lab.send(client, &request.map(str::as_bytes));
        assert_eq!(lab.run("EXEC"), "*1\r\n:1\r\n", "{request:?}");
    }
    let mut held = Vec::new();
    for request in [
        ["EVAL", undeclared, "0"],
        ["EVAL", writes, "0"],
        ["EVALSHA", &write_sha, "0"],
        ["FCALL", "writes", "0"],
        ["FCALL", "none", "0"],
    ] {
        let client = lab.connect();
        assert_eq!(
            lab.send(client, &request.map(str::as_bytes)),
            "",
            "{request:?}"
        );
        held.push(client);
    }
    lab.run("CLIENT UNPAUSE");
    lab.advance_ms(0);
    for client in held {
        assert_ne!(lab.received(client), "");
    }
}

#[test]
fn an_error_in_the_reader_of_load_is_returned() {
    let mut lab = Lab::new();
    for (script, expected) in [
        ("return {load(function() error() end)}", "*0\r\n"),
        (
            "local f, e = load(function() error('bad', 0) end) return e",
            "$3\r\nbad\r\n",
        ),
        (
            "local n = 0 for i = 1, 300 do if load(function() error('bad') end) == nil then n = n + 1 end end return n",
            ":300\r\n",
        ),
    ] {
        lab.check_eval(script, expected);
    }
}

#[test]
fn a_panic_loses_neither_scripts_nor_libraries() {
    let mut lab = Lab::new();
    lab.configure("busy-reply-threshold", "1");
    let client = lab.client;
    let code = "#!lua name=mine\nredis.register_function('seven', function() return 7 end) \
                redis.register_function('endless', function() redis.set_repl(redis.REPL_NONE) while true do end end)";
    assert_eq!(
        lab.send(client, &[b"FUNCTION", b"LOAD", code.as_bytes()]),
        "$4\r\nmine\r\n"
    );
    lab.check_eval("return 1", ":1\r\n");
    let sha = lab.send(client, &[b"SCRIPT", b"LOAD", b"return 5"]);
    let sha = sha.split("\r\n").nth(1).expect("a SHA-1").to_owned();
    for endless in ["EVAL 1 0", "FCALL endless 0"] {
        lab.host.tick_ns = 10_000_000;
        lab.host.panics = true;
        let words: Vec<&[u8]> = match endless {
            "EVAL 1 0" => vec![b"EVAL", b"redis.call('select', 3) while true do end", b"0"],
            line => line.split(' ').map(str::as_bytes).collect(),
        };
        assert_eq!(lab.send(client, &words), "-ERR internal error\r\n");
        lab.host.tick_ns = 0;
        assert!(!lab.host.panics);
        lab.check(&[
            ("FCALL seven 0", ":7\r\n"),
            (&format!("EVALSHA {sha} 0"), ":5\r\n"),
            (
                "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
                ":1\r\n",
            ),
            ("SET a 1", "+OK\r\n"),
        ]);
    }
}

#[test]
fn the_cache_has_a_bound_of_bytes() {
    let mut lab = Lab::new();
    let client = lab.client;
    let text = "x".repeat(3 << 20);
    let kept = format!("return 'kept' --{text}");
    let sha = lab.send(client, &[b"SCRIPT", b"LOAD", kept.as_bytes()]);
    let sha = sha.lines().nth(1).unwrap_or_default().to_owned();
    for number in 0..20 {
        lab.check_eval(
            &format!("return {number} --{text}"),
            &format!(":{number}\r\n"),
        );
    }
    assert_eq!(lab.store.scripts.cached(), 6);
    assert_eq!(lab.run(&format!("EVALSHA {sha} 0")), "$4\r\nkept\r\n");
    // One that is larger than the bound runs, alone.
    let large = format!("return 7 --{}", text.repeat(6));
    lab.check_eval(&large, ":7\r\n");
    assert_eq!(lab.store.scripts.cached(), 2);
}

#[test]
fn arguments_and_replies_count_as_memory() {
    let mut lab = Lab::new();
    lab.check_eval("return 1", ":1\r\n");
    let mut limits = kumi_lua::Limits::default();
    limits.memory_bytes = 32 << 20;
    let evaluator = lab.store.scripts.evaluator.as_mut();
    evaluator.expect("a script has run").lua.set_limits(limits);
    let value = "x".repeat(1 << 20);
    let client = lab.client;
    lab.send(client, &[b"SET", b"a", value.as_bytes()]);
    for script in [
        "local t = {} local s = ('x'):rep(2^20) for i = 1, 100 do t[i] = s end return redis.call('mget', unpack(t))",
        "local t = {} for i = 1, 40 do t[i] = 'a' end return redis.call('mget', unpack(t))",
        "local t = {} local s = ('x'):rep(2^20) for i = 1, 100 do t[i] = s end return redis.acl_check_cmd('mget', unpack(t))",
    ] {
        let found = lab.eval(script, &[]);
        assert!(
            found.starts_with("-ERR not enough memory script: "),
            "{script}: {found:.80}"
        );
    }
    // Replies that are garbage make room for others.
    lab.check_eval(
        "local t = {} for i = 1, 12 do t[i] = 'a' end \
         for i = 1, 8 do t = {unpack(t)} assert(#redis.call('mget', unpack(t)) == 12) end return 7",
        ":7\r\n",
    );
}

#[test]
fn texts_and_depths_are_those_of_redis() {
    let mut lab = Lab::new();
    for (script, expected) in [
        (
            "error({err=5})",
            "-5 script: 58cfd935477cdbf9342fa1cc3ec8452b6a3ddc4b, on @user_script:1.\r\n",
        ),
        ("return {err=5}", "*0\r\n"),
        ("return redis.log('1', 'text')", "$-1\r\n"),
        ("return string.gfind == string.gmatch", ":1\r\n"),
        (
            "return tostring(cmsgpack.unpack('\\207' .. ('\\255'):rep(8)))",
            "$2\r\n-1\r\n",
        ),
        (
            "local n = 0 local function f() n = n + 1 return coroutine.wrap(f)() end pcall(f) return n",
            ":199\r\n",
        ),
        (
            "local n = 0 local function f() n = n + 1 local ok, e = coroutine.resume(coroutine.create(f)) return e end return {f(), n}",
            "*2\r\n$16\r\nC stack overflow\r\n:200\r\n",
        ),
        (
            "local n = 0 local function f() n = n + 1 return pcall(f) end f() return n",
            ":199\r\n",
        ),
        (
            "local n = 0 local function f(t, k) n = n + 1 return t[k] end local t = setmetatable({}, {__index = f}) pcall(function() return t.x end) return n",
            ":197\r\n",
        ),
        (
            "local n = 0 local function f() n = n + 1 return string.gsub('a', 'a', f) end pcall(f) return n",
            ":198\r\n",
        ),
    ] {
        lab.check_eval(script, expected);
    }
}

#[test]
fn scripts_that_were_written_for_valkey_run() {
    let mut lab = Lab::new();
    lab.check_eval("return server == redis and 1", ":1\r\n");
    lab.check_eval("return server.call('set', 'k', 'v')", "+OK\r\n");
    lab.check_eval("return server.pcall('get', 'k')", "$1\r\nv\r\n");
    lab.check_eval(
        "return server.error_reply('MY error').err",
        "$8\r\nMY error\r\n",
    );
    lab.check_eval(
        "return server.sha1hex('') == redis.sha1hex('') and 1",
        ":1\r\n",
    );
    lab.check_eval("return server.SERVER_NAME", "$5\r\nredis\r\n");
    lab.check_eval(
        "return server.VALKEY_VERSION == redis.REDIS_VERSION and 1",
        ":1\r\n",
    );
    lab.check_eval(
        "return server.VALKEY_VERSION_NUM == redis.REDIS_VERSION_NUM and 1",
        ":1\r\n",
    );
    let reply = lab.eval("server.x = 1", &[]);
    assert!(
        reply.contains("Attempt to modify a readonly table"),
        "{reply}"
    );
    let library = "#!lua name=mine\n\
        local numbers = server.LOG_NOTICE + redis.LOG_NOTICE\n\
        server.register_function('f', function(keys, args) return server.call('get', keys[1]) end)\n\
        server.register_function{function_name = 'g', callback = function() return numbers end, flags = {'no-writes'}}";
    let client = lab.client;
    assert_eq!(
        lab.send(client, &[b"FUNCTION", b"LOAD", library.as_bytes()]),
        "$4\r\nmine\r\n"
    );
    lab.check(&[("FCALL f 1 k", "$1\r\nv\r\n"), ("FCALL_RO g 0", ":4\r\n")]);
    let reply = lab.send(
        client,
        &[b"FUNCTION", b"LOAD", b"#!lua name=bad\nserver.nosuch()"],
    );
    assert!(
        reply.contains("nonexistent global variable 'nosuch'"),
        "{reply}"
    );
}
