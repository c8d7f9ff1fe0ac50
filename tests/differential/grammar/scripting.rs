//! The rows of the script commands, and the Lua programs that EVAL runs.
//!
//! A program calls commands that the other families' rows write, returns values of every kind, or fails. The answers of
//! the commands it calls are compared through it byte for byte, so a command whose answer has a rule of its own is not
//! called.

use super::{FAMILIES, Generator, Row, Weights, is_safe, row};
use crate::command::{Arg, Delivery, Request, Step};
use crate::shapes;

pub(super) const ROWS: &[Row] = &[
    row("EVAL", &[], eval).weight(120),
    row("EVAL_RO", &[], eval),
    row("EVALSHA", &[], evalsha).weight(15),
    row("EVALSHA_RO", &[], evalsha),
    row("SCRIPT LOAD", &[], |generator| {
        let (source, _) = generator.known_script();
        vec![Arg::from(source)]
    })
    .weight(15),
    row("SCRIPT EXISTS", &[], |generator| {
        let shas = (0..generator.rng.between(1, 3)).map(|_| generator.sha());
        shas.collect()
    }),
    row("SCRIPT FLUSH", &["ASYNC", "SYNC"], |generator| {
        let mut args = Vec::new();
        generator.maybe(30, "ASYNC", &mut args);
        generator.maybe(30, "SYNC", &mut args);
        args
    })
    .weight(4),
    row("FUNCTION LOAD", &["REPLACE"], |generator| {
        let mut args = Vec::new();
        generator.maybe(70, "REPLACE", &mut args);
        args.push(generator.library());
        args
    })
    .weight(30),
    row("FCALL", &[], fcall).weight(30),
    row("FCALL_RO", &[], fcall),
    row("FUNCTION DELETE", &[], |generator| {
        vec![Arg::from(generator.rng.pick(&["one", "two", "three", ""]))]
    }),
    row("FUNCTION LIST", &["LIBRARYNAME", "WITHCODE"], |generator| {
        let mut args = Vec::new();
        if generator.rng.percent(40) {
            args.push(generator.word("LIBRARYNAME"));
            args.push(Arg::from(generator.rng.pick(&["*", "one", "T*", "x"])));
        }
        generator.maybe(40, "WITHCODE", &mut args);
        generator.maybe(5, "FOO", &mut args);
        args
    }),
    row("FUNCTION STATS", &[], |_| vec![]).weight(4),
    row("FUNCTION KILL", &[], |_| vec![]).weight(2),
    row(
        "FUNCTION RESTORE",
        &["FLUSH", "APPEND", "REPLACE"],
        |generator| {
            let mut args = vec![Arg::from(generator.rng.pick(&["", "x", "0123456789abc"]))];
            if generator.rng.percent(80) {
                args.push(generator.one_of(&["FLUSH", "APPEND", "REPLACE", "FOO"]));
            }
            args
        },
    )
    .weight(4),
    row("SCRIPT KILL", &[], |_| vec![]).weight(2),
    row("SCRIPT HELP", &[], |_| vec![]).weight(2),
];

/// Scripts with their SHA-1: a test that computed them would need the function it tests.
const KNOWN: &[(&str, &str)] = &[
    ("return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"),
    (
        "return redis.call('get',KEYS[1])",
        "fd758d1589d044dd850a6f05d52f2eefd27f033f",
    ),
    (
        "return {KEYS,ARGV}",
        "667538fc7bc1737be485fe688c8f39e7ddc79782",
    ),
    ("return x", "03c387736bb5cc009ff35151572cee04677aa374"),
];

/// Which families the commands a program calls come from.
const CALLED: &[&str] = &["strings", "keys", "hashes", "sets", "lists"];

/// Scripts whose first line says what they are.
const HEADS: &[&str] = &[
    "#!lua\n",
    "#!lua flags=no-writes\n",
    "#!lua flags=allow-oom,allow-stale\n",
    "#!lua flags=\n",
    "#!lua flags=nonsense\n",
    "#!lua name=x\n",
    "#!perl\n",
    "#!\n",
    "#!lua 'x\n",
    "#!lua",
];

/// Programs about errors and the functions of the `redis` table.
const FIXED: &[&str] = &[
    "error('text')",
    "error({err='CODE text'})",
    "error('text', 0)",
    "error()",
    "return nosuch",
    "nosuch = 1",
    "redis.call = 1",
    "return redis.nosuch",
    "return redis.nosuch()",
    "retrun 1",
    "return 'open",
    "local x = nil return x.y",
    "return 1 < 'x'",
    "return redis.call()",
    "return redis.pcall()",
    "return redis.call({})",
    "return redis.call('get', nil)",
    "return redis.call('nosuch', 'a')",
    "return redis.pcall('nosuch')",
    "return redis.call('get')",
    "return redis.call('subscribe', 'a')",
    "return redis.call('multi')",
    "return redis.call('eval', 'return 1', 0)",
    "return redis.call('select', 2)",
    "return redis.call('ping')",
    "return redis.call('echo', 17)",
    "return redis.call('publish', 'news', 'from a script')",
    "redis.call('select', 1) return redis.call('set', 'a', 'in one')",
    "return redis.error_reply('one')",
    "return redis.error_reply('two words')",
    "return redis.error_reply('-CODE words')",
    "return redis.error_reply({})",
    "return redis.status_reply('fine')",
    "return redis.status_reply()",
    "return redis.sha1hex('')",
    "return redis.sha1hex(17)",
    "return redis.sha1hex()",
    "return redis.setresp(4)",
    "return redis.setresp()",
    "return redis.set_repl(redis.REPL_ALL)",
    "return redis.set_repl(9)",
    "return redis.set_repl()",
    "return redis.log(1)",
    "return redis.log('a', 'b')",
    "return redis.log(17, 'b')",
    "return redis.log(redis.LOG_DEBUG, 'b')",
    "return redis.acl_check_cmd('get', 'a')",
    "return redis.acl_check_cmd('nosuch')",
    "return redis.acl_check_cmd()",
    "return redis.replicate_commands()",
    "return redis.breakpoint()",
    "return redis.debug('a')",
    "return {redis.LOG_WARNING, redis.REPL_ALL, redis.REPL_SLAVE, redis.REPL_NONE}",
    "return {pcall(redis.call, 'incr')}",
    "return {pcall(error, {err='E x'})}",
    "local ok, e = pcall(redis.call, 'nosuch') return {tostring(ok), type(e), tostring(e)}",
    "return cjson.encode({1, 2, {a='b'}})",
    "return cjson.decode('[1,\"a\",null,true]')",
    "return cmsgpack.unpack(cmsgpack.pack({1, 'a'}))",
    "return struct.pack('>I2', 258)",
    "return bit.tohex(255)",
    "return {#KEYS, #ARGV, KEYS[1], ARGV[1]}",
    "return redis.call(unpack(ARGV))",
    "KEYS[1] = 'x' return KEYS[1]",
    "local t = {} t[1] = t return #t",
    "return coroutine.wrap(function() return redis.call('get', 'a') end)()",
    "for i = 1, 20 do redis.call('rpush', 'l1', i) end return redis.call('lrange', 'l1', 0, -1)",
    "return {type(math.random(100)), math.max(3, 5)}",
];

/// A step of EVAL or SCRIPT.
pub(super) fn steps(generator: &mut Generator<'_>, steps: &mut Vec<Step>) {
    let requests = (0..generator.rng.between(1, 3))
        .map(|_| generator.script_request())
        .collect();
    steps.push(generator.run(requests, Delivery::OneByOne));
}

fn eval(generator: &mut Generator<'_>) -> Vec<Arg> {
    let program = generator.program();
    let mut args = vec![Arg::Bytes(program)];
    generator.script_arguments(&mut args);
    args
}

fn fcall(generator: &mut Generator<'_>) -> Vec<Arg> {
    let names = ["f", "F", "g", "h", "nosuch", ""];
    let mut args = vec![Arg::from(generator.rng.pick(&names))];
    generator.script_arguments(&mut args);
    args
}

fn evalsha(generator: &mut Generator<'_>) -> Vec<Arg> {
    let mut args = vec![generator.sha()];
    generator.script_arguments(&mut args);
    args
}

impl Generator<'_> {
    fn script_request(&mut self) -> Request {
        loop {
            let total: usize = ROWS.iter().map(|row| row.weight).sum();
            let mut ticket = self.rng.below(total);
            let row = ROWS.iter().find(|row| {
                let found = ticket < row.weight;
                ticket = ticket.saturating_sub(row.weight);
                found
            });
            let request = self.write(row.unwrap_or(&ROWS[0]));
            let request = if self.rng.percent(4) {
                self.damage(request)
            } else {
                request
            };
            if is_safe(&request) {
                return request;
            }
        }
    }

    /// A library with one function, so that the order of functions does not show.
    fn library(&mut self) -> Arg {
        let heads = ["#!lua name=one\n", "#!lua name=two\n", "#!LUA name=three\n"];
        let bad_heads = [
            "#!lua\n",
            "#!lua name=a-b\n",
            "#!lua name=a name=b\n",
            "#!lua foo=a name=b\n",
            "#!perl name=a\n",
            "#!lua name=one",
            "return 1",
            "#!lua name='\n",
        ];
        let mut code = Vec::new();
        let head = match self.rng.below(8) {
            0 => self.rng.pick(&bad_heads),
            _ => self.rng.pick(&heads),
        };
        code.extend_from_slice(head.as_bytes());
        let name = self.rng.pick(&["f", "g", "h", "G"]);
        match self.rng.below(20) {
            0..8 => {
                code.extend_from_slice(
                    format!("redis.register_function('{name}', function(keys, args)\n").as_bytes(),
                );
                self.calls(&mut code);
                code.extend_from_slice(b" end)");
            }
            8..14 => {
                let flags = self.rng.pick(&["'no-writes'", "'allow-oom','allow-stale'", "", "'x'", "1"]);
                code.extend_from_slice(
                    format!("redis.register_function{{function_name='{name}', description='d', flags={{{flags}}}, callback=function(keys, args)\n").as_bytes(),
                );
                self.calls(&mut code);
                code.extend_from_slice(b" end}");
            }
            _ => code.extend_from_slice(
                self.rng
                    .pick(&[
                        "return 1",
                        "retrun 1",
                        "x = 1",
                        "return x",
                        "redis.call('get', 'a')",
                        "redis.register_function()",
                        "redis.register_function('f')",
                        "redis.register_function('f', 1)",
                        "redis.register_function({}, 1)",
                        "redis.register_function('a-b', function() end)",
                        "redis.register_function{}",
                        "redis.register_function{function_name='f'}",
                        "redis.register_function{callback=function() end}",
                        "redis.register_function{function_name='f', callback=1}",
                        "redis.register_function{function_name='f', callback=function() end, flags=1}",
                        "redis.register_function{function_name='f', callback=function() end, foo=1}",
                        "redis.register_function('f', function() end) redis.register_function('f', function() end)",
                        "local n = 0 redis.register_function('f', function() n = n + 1 return n end)",
                        "redis.register_function('f', function(keys, args) return {keys, args} end)",
                        "redis.register_function('f', function() return KEYS end)",
                        "redis.register_function('f', function() x = 1 end)",
                    ])
                    .as_bytes(),
            ),
        }
        Arg::Bytes(code)
    }

    fn known_script(&mut self) -> (&'static str, &'static str) {
        KNOWN[self.rng.below(KNOWN.len())]
    }

    fn sha(&mut self) -> Arg {
        let (_, sha) = self.known_script();
        match self.rng.below(10) {
            0 => Arg::from(
                self.rng
                    .pick(&["", "abc", "ffffffffffffffffffffffffffffffffffffffff"]),
            ),
            1 => Arg::Bytes(sha.to_ascii_uppercase().into_bytes()),
            _ => Arg::from(sha),
        }
    }

    /// The number of keys, keys and arguments.
    fn script_arguments(&mut self, args: &mut Vec<Arg>) {
        let keys = self.rng.below(3);
        let number = match self.rng.below(25) {
            0 => self.integer(),
            _ => Arg::from(keys as i64),
        };
        args.push(number);
        for _ in 0..keys {
            args.push(self.key());
        }
        for _ in 0..self.rng.below(3) {
            args.push(self.value());
        }
    }

    fn program(&mut self) -> Vec<u8> {
        let mut program = Vec::new();
        if self.rng.percent(10) {
            program.extend_from_slice(self.rng.pick(HEADS).as_bytes());
        }
        match self.rng.below(100) {
            0..20 => program.extend_from_slice(self.rng.pick(FIXED).as_bytes()),
            20..35 => {
                program.extend_from_slice(b"return ");
                self.lua_value(0, &mut program);
            }
            _ => self.calls(&mut program),
        }
        program
    }

    /// Some calls, and what comes of the last.
    fn calls(&mut self, program: &mut Vec<u8>) {
        if self.rng.percent(15) {
            program.extend_from_slice(b"redis.setresp(3) ");
        }
        for _ in 0..self.rng.below(3) {
            self.call("redis.pcall", program);
            program.push(b' ');
        }
        match self.rng.below(10) {
            0..5 => {
                program.extend_from_slice(b"return ");
                self.call("redis.call", program);
            }
            5..7 => {
                program.extend_from_slice(b"return ");
                self.call("redis.pcall", program);
            }
            7 => {
                program.extend_from_slice(b"local r = ");
                self.call("redis.pcall", program);
                program.extend_from_slice(
                    b" return {type(r), tostring(type(r) == 'table' and r.err)}",
                );
            }
            8 => {
                program.extend_from_slice(b"local r = ");
                self.call("redis.call", program);
                program.extend_from_slice(b" return {r, type(r), 'end'}");
            }
            _ => {
                program.extend_from_slice(b"\n");
                self.call("redis.call", program);
                program.extend_from_slice(b"\nerror('after')");
            }
        }
    }

    fn call(&mut self, function: &str, program: &mut Vec<u8>) {
        let request = self.called();
        program.extend_from_slice(function.as_bytes());
        program.push(b'(');
        for (index, arg) in request.args.iter().enumerate() {
            if index > 0 {
                program.push(b',');
            }
            let Arg::Bytes(bytes) = arg else { continue };
            let number = std::str::from_utf8(bytes).ok().filter(|text| {
                let value = text.parse::<i32>();
                value.is_ok_and(|value| value.to_string() == *text)
            });
            match number {
                Some(number) if index > 0 && self.rng.percent(30) => {
                    program.extend_from_slice(number.as_bytes());
                }
                _ => quote(bytes, program),
            }
        }
        program.push(b')');
    }

    /// A request whose answer is compared byte for byte.
    fn called(&mut self) -> Request {
        let weights: Weights = std::array::from_fn(|family| {
            let name = FAMILIES.get(family).map_or("", |(name, _)| name);
            usize::from(CALLED.contains(&name))
        });
        loop {
            let row = self.draw(&weights);
            let request = self.write(row);
            let request = if self.rng.percent(5) {
                self.damage(request)
            } else {
                request
            };
            let plain = request
                .args
                .iter()
                .all(|arg| matches!(arg, Arg::Bytes(bytes) if bytes.len() < 1000));
            if plain
                && shapes::rule(&request).is_none()
                && is_safe(&request)
                && self.is_tellable(&request)
            {
                self.note(&request);
                return request;
            }
        }
    }

    fn lua_value(&mut self, depth: usize, out: &mut Vec<u8>) {
        let kinds = if depth > 3 { 8 } else { 17 };
        match self.rng.below(kinds) {
            0 => out.extend_from_slice(b"nil"),
            1 => out.extend_from_slice(b"true"),
            2 => out.extend_from_slice(b"false"),
            3 | 4 => {
                let numbers = [
                    "0", "1", "-1", "3.99", "-3.99", "1e15", "2^53", "1e300", "-1e300", "0/0",
                    "1/0", "2^63", "-0",
                ];
                out.extend_from_slice(self.rng.pick(&numbers).as_bytes());
            }
            5..8 => {
                if let Arg::Bytes(bytes) = self.value() {
                    quote(&bytes[..bytes.len().min(60)], out);
                }
            }
            8..12 => {
                out.push(b'{');
                for _ in 0..self.rng.below(4) {
                    self.lua_value(depth + 1, out);
                    out.push(b',');
                }
                out.push(b'}');
            }
            tagged => {
                let names = ["ok", "err", "double", "map", "set", "big_number"];
                let name = names[(tagged + self.rng.below(6)) % 6];
                out.extend_from_slice(format!("{{{name}=").as_bytes());
                match (name, self.rng.percent(85)) {
                    ("ok" | "err" | "big_number", true) => {
                        out.extend_from_slice(
                            self.rng.pick(&["'A b'", "'12'", "'x\\ny'"]).as_bytes(),
                        );
                    }
                    ("double", true) => {
                        out.extend_from_slice(
                            self.rng.pick(&["1.5", "-2", "1/0", "1e100"]).as_bytes(),
                        );
                    }
                    ("map" | "set", true) => {
                        out.extend_from_slice(b"{a=");
                        self.lua_value(depth + 1, out);
                        out.extend_from_slice(b"}");
                    }
                    _ => self.lua_value(depth + 1, out),
                }
                out.push(b'}');
            }
        }
    }
}

/// A Lua string literal of any bytes.
fn quote(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b" :*-_.{}".contains(&byte) {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("\\{byte:03}").as_bytes());
        }
    }
    out.push(b'\'');
}
