//! Programs with statements: loops, closures, tables that grow and shrink, sorting, coroutines and error levels.

use crate::generate::{number, pick, string, value};
use fastrand::Rng;

pub(crate) fn programs(rng: &mut Rng) -> Vec<String> {
    (0..40)
        .map(|_| match rng.u8(..12) {
            0 | 1 => table_history(rng),
            2 => sorting(rng),
            3 => coroutine(rng),
            4 => closures(rng),
            5 => numeric_for(rng),
            6 => error_place(rng),
            7 => metamethods(rng),
            8 => constructor(rng),
            9 => random_numbers(rng),
            10 => iteration(rng),
            _ => varargs(rng),
        })
        .collect()
}

/// Keys come and go; the order of `pairs` and `#` are compared at the end.
fn table_history(rng: &mut Rng) -> String {
    let mut text = String::from("local t = {} ");
    for _ in 0..rng.usize(1..60) {
        let key = match rng.u8(..4) {
            0 => format!("'k{}'", rng.u8(..40)),
            1 => rng.u8(..40).to_string(),
            2 => format!("{}.5", rng.i8(..)),
            _ => format!("{}", rng.u8(1..12)),
        };
        let new = if rng.u8(..4) == 0 {
            "nil".to_owned()
        } else {
            rng.u8(..100).to_string()
        };
        text.push_str(&format!("t[{key}] = {new} "));
        match rng.u8(..12) {
            0 => text.push_str("table.insert(t, 'end') "),
            1 => text.push_str("table.remove(t) "),
            2 => text.push_str("table.insert(t, 1, 'first') "),
            3 => text.push_str("table.remove(t, 1) "),
            _ => {}
        }
    }
    text + "return t, #t, table.maxn(t), next(t)"
}

fn sorting(rng: &mut Rng) -> String {
    let items: Vec<String> = (0..rng.usize(..25))
        .map(|_| rng.i8(-20..20).to_string())
        .collect();
    let order = pick(
        rng,
        &[
            "",
            ", function(a, b) return a > b end",
            ", function(a, b) return a <= b end",
            ", function(a, b) return true end",
            ", function(a, b) return a % 5 < b % 5 end",
            ", function(a, b) return nil end",
            ", function(a, b) error('cmp') end",
        ],
    );
    format!(
        "local t = {{{}}} local ok, e = pcall(table.sort, t{order}) return t, ok, e",
        items.join(",")
    )
}

fn coroutine(rng: &mut Rng) -> String {
    let body = pick(
        rng,
        &[
            "local x = coroutine.yield(a + 1) return x, a",
            "for i = 1, a do coroutine.yield(i) end",
            "error('inside')",
            "error({code = 1})",
            "return coroutine.status(coroutine.running())",
            "pcall(coroutine.yield, 1) return 2",
            "local ok, e = pcall(function() return coroutine.yield(5) end) return ok, e",
            "return coroutine.yield(coroutine.yield(a))",
            "local t = setmetatable({}, {__index = function(t, k) return coroutine.yield(k) end}) return t.x",
            "return coroutine.resume(coroutine.create(function() return coroutine.yield(7), 8 end))",
            "for k in coroutine.yield do end",
            "local inner = coroutine.wrap(function() error('deep') end) inner()",
            "return unpack({1, 2, coroutine.yield(3)})",
        ],
    );
    let first = number(rng);
    let second = value(rng);
    format!(
        "local co = coroutine.create(function(a) {body} end) local r = {{}} r[1] = pack(coroutine.resume(co, {first})) \
         r[2] = pack(coroutine.resume(co, {second})) r[3] = coroutine.status(co) r[4] = pack(coroutine.resume(co, 3)) return r"
    )
}

fn closures(rng: &mut Rng) -> String {
    let n = rng.u8(1..6);
    let step = rng.i8(-3..4);
    pick(
        rng,
        &[
            "local f = {} for i = 1, N do local j = i f[i] = function() j = j + S return j end end local r = {} for i = 1, N do r[i] = f[i]() + f[i]() end return r",
            "local function mk() local c = 0 return function() c = c + S return c end, function() return c end end local a, b = mk() for i = 1, N do a() end return b()",
            "local f repeat local x = S f = function() x = x + 1 return x end until true return f(), f()",
            "local t = {} while #t < N do local n = #t t[n + 1] = function() return n * S end if n == 3 then break end end local r = {} for i, g in ipairs(t) do r[i] = g() end return r",
            "local function fact(n) if n <= 1 then return 1 end return n * fact(n - 1) end return fact(N)",
            "local function loop(n, acc) if n == 0 then return acc end return loop(n - 1, acc + S) end return loop(N * 1000, 0)",
        ],
    )
    .replace('N', &n.to_string())
    .replace('S', &step.to_string())
}

fn numeric_for(rng: &mut Rng) -> String {
    const BOUNDS: &[&str] = &[
        "0", "1", "3", "-2", "2.5", "'2'", "10", "'x'", "nil", "0.1", "(0/0)", "1e300",
    ];
    let (from, to) = (pick(rng, BOUNDS), pick(rng, &BOUNDS[..10]));
    let step = pick(rng, &["1", "-1", "0.5", "2", "'1'", "{}", "-0.25"]);
    format!(
        "local r = {{}} for i = {from}, {to}, {step} do r[#r + 1] = i if #r > 20 then break end end return r"
    )
}

fn error_place(rng: &mut Rng) -> String {
    let value = value(rng);
    pick(
        rng,
        &[
            "local function f() error('e', 2) end\nlocal function g()\nf()\nend g()",
            "local a = V\nreturn a.b.c",
            "local a = {b = V}\na.b.c = 1",
            "local a = V a()",
            "local a = {b = V} a.b()",
            "local a = {b = V} a:b()",
            "local a = V a:method(1)",
            "local a = V return a .. 'x' .. {}",
            "local a, b = V, {} return a + b",
            "local a = V return (function() return a.x.y end)()",
            "local a = V return a < 1",
            "local a = V for i = a, 2 do end",
            "local a = V return #a",
            "local a = V return -a",
            "local t = {} t[V] = 1 return t",
            "local a = V return a[1][2]",
            "return (V)()",
            "return (V).x",
            "return ('x')(V)",
            "local a = V local b = a and a.x return b.y",
            "string.rep(V)",
            "('x'):rep(V)",
            "local s = string s.rep({}, V)",
            "math.floor(V, 1)",
            "setmetatable(V, {})",
            "for k, v in V do end",
            "for k, v in pairs(V) do return k, v end",
            "local f = function() return V end f().x.y = 1",
            "ipairs(V)",
            "return unknown_global + V",
            "unknown_global = V",
            "local t = {} t.x.y.z = V",
            "return tostring(V) .. nil",
            "return not V == 1, V == V, V ~= V",
            "assert(false, V)",
            "assert(V, 'm')",
            "error(V, 0)",
            "return select('#', error and pcall(error, V, 2))",
            "xpcall(function() local x = V + nil end, function(m) error(m) end)",
            "return xpcall(function() local x = V .. {} end, function(m) return 'h:' .. tostring(m) end)",
            "rawset(_G, 'x', V)",
            "setmetatable(_G, V)",
            "string.x = V",
            "table.insert(string, V)",
            "return rawget(_G, V)",
            "return loadstring('return ' .. V)",
            "return loadstring(V)",
            "local n = 0 return load(function() n = n + 1 if n == 1 then return V end end)",
        ],
    )
    .replace('V', &value)
}

fn metamethods(rng: &mut Rng) -> String {
    const EVENTS: &[&str] = &[
        "__add",
        "__sub",
        "__mul",
        "__div",
        "__mod",
        "__pow",
        "__unm",
        "__concat",
        "__len",
        "__eq",
        "__lt",
        "__le",
        "__call",
        "__index",
        "__newindex",
        "__tostring",
        "__metatable",
    ];
    let mut meta = String::new();
    for _ in 0..rng.usize(1..4) {
        let event = pick(rng, EVENTS);
        let handler = pick(
            rng,
            &[
                "function(a, b) return 'm' end",
                "function(a, b) return type(a) .. type(b) end",
                "function(...) return select('#', ...) end",
                "{x = 'field'}",
                "function() error('meta') end",
                "'text'",
                "function(a, b) return a == b end",
            ],
        );
        meta.push_str(&format!("{event} = {handler}, "));
    }
    let other = value(rng);
    let action = pick(
        rng,
        &[
            "a + o",
            "o - a",
            "a .. o",
            "o .. a",
            "#a",
            "-a",
            "a == b",
            "a ~= b",
            "a < b",
            "a <= o",
            "a > b",
            "a(o, 1)",
            "a.x",
            "a[o]",
            "tostring(a)",
            "getmetatable(a)",
            "a % o",
            "a ^ b",
            "a * a",
            "'s' .. 1 .. a",
            "rawequal(a, b)",
            "rawget(a, 'x')",
            "a >= b",
        ],
    );
    format!(
        "local mt = {{{meta}}} local a, b, o = setmetatable({{}}, mt), setmetatable({{}}, mt), {other} \
         local ok, e = pcall(function() a.new = 1 end) return ok, e, rawget(a, 'new'), {action}"
    )
}

fn constructor(rng: &mut Rng) -> String {
    let mut fields = Vec::new();
    for _ in 0..rng.usize(..60) {
        fields.push(match rng.u8(..6) {
            0 => format!("k{} = {}", rng.u8(..30), number(rng)),
            1 => format!("[{}] = {}", rng.u8(1..20), string(rng)),
            2 => format!("['{}'] = 1", rng.u16(..200)),
            _ => rng.u8(..100).to_string(),
        });
    }
    if rng.bool() {
        fields.push("unpack({1, 2, 3})".to_owned());
    }
    format!(
        "return {{{}}}",
        fields.join(if rng.bool() { ", " } else { "; " })
    )
}

fn random_numbers(rng: &mut Rng) -> String {
    let seed = rng.i32(..);
    let args = pick(
        rng,
        &[
            "",
            "1",
            "10",
            "0",
            "5, 10",
            "-3, 3",
            "10, 1",
            "1, 2, 3",
            "2^31 - 1",
            "-2^31, 2^31 - 1",
        ],
    );
    format!(
        "math.randomseed({seed}) return math.random({args}), math.random({args}), math.random()"
    )
}

fn iteration(rng: &mut Rng) -> String {
    let pattern = pick(
        rng,
        &[
            "%a+", "(%w)(%w)", "", "()", ".", "%s*", "(a)(b)", "^h", "x*", "[", "%",
        ],
    );
    let subject = string(rng);
    pick(
        rng,
        &[
            "local r = {} for a, b in string.gmatch(SUBJECT, 'PATTERN') do r[#r + 1] = a r[#r + 1] = b end return r",
            "local r = {} for i, v in ipairs({SUBJECT, 2, nil, 4}) do r[i] = v end return r",
            "local r = {} for k, v in pairs({SUBJECT, x = 2, [10] = 3}) do r[#r + 1] = k end return r",
            "local t = {1, 2, 3, 4} for k in pairs(t) do t[k] = nil end return t, next(t)",
            "return (string.gsub(SUBJECT, 'PATTERN', '<%0>'))",
            "local r = {} for k, v in next, {10, 20, 30} do r[k] = v end return r",
        ],
    )
    .replace("SUBJECT", &subject)
    .replace("PATTERN", pattern)
}

fn varargs(rng: &mut Rng) -> String {
    let values: Vec<String> = (0..rng.usize(..5)).map(|_| value(rng)).collect();
    let body = pick(
        rng,
        &[
            "return ...",
            "return select('#', ...)",
            "return (...)",
            "local a, b = ... return b, a",
            "return {...}, ...",
            "return arg",
            "return arg and arg.n",
            "local t = {n = select('#', ...), ...} return t",
            "return select(2, ...)",
            "return ..., 1",
            "return unpack({...}, 1, select('#', ...))",
            "local function g(a, ...) return ..., a end return g(...)",
        ],
    );
    format!("return (function(...) {body} end)({})", values.join(", "))
}
