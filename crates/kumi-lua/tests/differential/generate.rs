//! Expressions and library calls.

use fastrand::Rng;

pub(crate) fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(..from.len())]
}

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-2",
    "0.5",
    "-0.5",
    "1.5",
    "10",
    "7",
    "100",
    "255",
    "256",
    "1e15",
    "1e14",
    "123456789012345",
    "2^53",
    "2^31",
    "2^32",
    "-2^31",
    "2^63",
    "-2^63",
    "1e300",
    "1e-300",
    "0.1",
    "1/3",
    "1e100",
    "(0/0)",
    "(1/0)",
    "(-1/0)",
    "0x10",
    "3.14159",
    "-7.25",
    "5",
    "4",
    "8",
    "16",
    "1e16",
    "99999999999999",
    "0.00001",
    "5e-324",
];

const STRINGS: &[&str] = &[
    "''",
    "'a'",
    "'abc'",
    "'hello world'",
    "'10'",
    "' 10 '",
    "'0x1F'",
    "'1e2'",
    "'-3.5'",
    "'abc123'",
    "'inf'",
    "'nan'",
    "'\\0'",
    "'a\\0b'",
    "'%d'",
    "'x=1, y=2'",
    "'THE (quick) fox'",
    "'  trim  '",
    "'a,b,,c'",
    "'\\n\\t\\r'",
    "'\"quoted\\\\\"'",
    "'aaaa'",
    "'0'",
    "'1.'",
    "'.5'",
    "'1e'",
    "'0x'",
    "'\\255\\128'",
    "('x'):rep(50)",
    "'key'",
    "'[[]]'",
    "'/path/'",
];

const OTHERS: &[&str] = &[
    "nil",
    "true",
    "false",
    "{}",
    "{1,2,3}",
    "{a=1,b=2}",
    "{1,nil,3}",
    "{[1]='a',[2]='b',[4]='d'}",
    "{{}}",
    "tostring",
    "function() return 1 end",
    "{n=3,'x'}",
    "cjson.null",
    "{1.5,2.5}",
    "{10,9,8,7,6,5,4,3,2,1}",
    "{'b','a','c'}",
    "setmetatable({},{__index=function(t,k) return k end})",
    "{[0]=0,1}",
    "{x={y={z=1}}}",
];

pub(crate) fn number(rng: &mut Rng) -> String {
    pick(rng, NUMBERS).to_owned()
}

pub(crate) fn string(rng: &mut Rng) -> String {
    pick(rng, STRINGS).to_owned()
}

pub(crate) fn value(rng: &mut Rng) -> String {
    match rng.u8(..10) {
        0..=3 => number(rng),
        4..=7 => string(rng),
        _ => pick(rng, OTHERS).to_owned(),
    }
}

const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or",
];

fn expression(rng: &mut Rng, depth: usize) -> String {
    if depth == 0 || rng.u8(..5) == 0 {
        return match rng.u8(..8) {
            0 => "a".to_owned(),
            1 => "b.x".to_owned(),
            2 => "b.y.z".to_owned(),
            3 => "up".to_owned(),
            4 => "b[1]".to_owned(),
            _ => value(rng),
        };
    }
    match rng.u8(..8) {
        0 => format!("(-{})", expression(rng, depth - 1)),
        1 => format!("(not {})", expression(rng, depth - 1)),
        2 => format!("#({})", expression(rng, depth - 1)),
        _ => {
            let left = expression(rng, depth - 1);
            let right = expression(rng, depth - 1);
            format!("({left} {} {right})", pick(rng, OPERATORS))
        }
    }
}

pub(crate) fn expressions(rng: &mut Rng) -> Vec<String> {
    (0..60)
        .map(|_| {
            let a = value(rng);
            let up = value(rng);
            let x = value(rng);
            let depth = rng.usize(1..4);
            let e = expression(rng, depth);
            format!("local up = {up} return (function() local a, b = {a}, {{x = {x}, 5}} return {e} end)()")
        })
        .collect()
}

/// Library functions with the kinds of their arguments: s string, n number, v any, t table, p pattern, f format.
const CALLS: &[(&str, &str)] = &[
    ("tostring", "v"),
    ("tonumber", "s"),
    ("tonumber", "sn"),
    ("tonumber", "v"),
    ("type", "v"),
    ("select", "nvvv"),
    ("select", "'vv"),
    ("rawequal", "vv"),
    ("rawget", "tv"),
    ("next", "t"),
    ("next", "tv"),
    ("unpack", "t"),
    ("unpack", "tnn"),
    ("assert", "v"),
    ("assert", "vs"),
    ("error", "v"),
    ("error", "vn"),
    ("pcall", "v"),
    ("pcall", "vv"),
    ("xpcall", "vv"),
    ("ipairs", "v"),
    ("pairs", "v"),
    ("getmetatable", "v"),
    ("setmetatable", "tv"),
    ("setmetatable", "vv"),
    ("loadstring", "v"),
    ("string.byte", "snn"),
    ("string.byte", "s"),
    ("string.char", "nn"),
    ("string.find", "sp"),
    ("string.find", "spn"),
    ("string.find", "spnv"),
    ("string.match", "sp"),
    ("string.match", "spn"),
    ("string.gsub", "sps"),
    ("string.gsub", "spr"),
    ("string.gsub", "spv"),
    ("string.gsub", "sprn"),
    ("string.len", "v"),
    ("string.lower", "s"),
    ("string.upper", "s"),
    ("string.reverse", "v"),
    ("string.sub", "snn"),
    ("string.sub", "sn"),
    ("string.sub", "v"),
    ("string.rep", "sm"),
    ("string.format", "fv"),
    ("string.format", "fvv"),
    ("string.format", "fnn"),
    ("string.format", "fs"),
    ("string.gmatch", "sv"),
    ("table.concat", "t"),
    ("table.concat", "ts"),
    ("table.concat", "tsmm"),
    ("table.insert", "tv"),
    ("table.insert", "tmv"),
    ("table.insert", "tmvv"),
    ("table.remove", "t"),
    ("table.remove", "tm"),
    ("table.getn", "v"),
    ("table.maxn", "t"),
    ("table.sort", "t"),
    ("table.sort", "tv"),
    ("table.foreach", "tv"),
    ("table.foreachi", "tv"),
    ("table.setn", "tn"),
    ("math.floor", "n"),
    ("math.ceil", "n"),
    ("math.abs", "v"),
    ("math.fmod", "nn"),
    ("math.modf", "n"),
    ("math.max", "nnn"),
    ("math.min", "nnv"),
    ("math.sqrt", "n"),
    ("math.pow", "nn"),
    ("math.frexp", "n"),
    ("math.ldexp", "nm"),
    ("math.exp", "n"),
    ("math.log", "n"),
    ("math.log10", "n"),
    ("math.sin", "n"),
    ("math.atan2", "nn"),
    ("math.deg", "n"),
    ("math.rad", "n"),
    ("math.tanh", "n"),
    ("math.mod", "nn"),
    ("bit.band", "nn"),
    ("bit.bor", "nnn"),
    ("bit.bxor", "nv"),
    ("bit.bnot", "n"),
    ("bit.lshift", "nn"),
    ("bit.rshift", "nn"),
    ("bit.arshift", "nn"),
    ("bit.rol", "nn"),
    ("bit.ror", "nn"),
    ("bit.bswap", "n"),
    ("bit.tobit", "v"),
    ("bit.tohex", "nn"),
    ("cjson.encode", "v"),
    ("cjson.encode", "t"),
    ("cjson.decode", "j"),
    ("cjson.decode", "v"),
    ("cjson.encode", "vv"),
    ("cmsgpack.pack", "v"),
    ("cmsgpack.pack", "tnv"),
    ("cmsgpack.unpack", "s"),
    ("cmsgpack.unpack", "b"),
    ("cmsgpack.unpack_one", "bm"),
    ("cmsgpack.unpack_limit", "bmm"),
    ("struct.pack", "qnnn"),
    ("struct.pack", "qsn"),
    ("struct.pack", "qv"),
    ("struct.unpack", "qb"),
    ("struct.unpack", "qbm"),
    ("struct.size", "q"),
    ("coroutine.create", "v"),
    ("coroutine.wrap", "v"),
    ("coroutine.resume", "v"),
    ("coroutine.status", "v"),
    ("coroutine.running", ""),
    ("coroutine.yield", "v"),
    ("nosuch.function", "v"),
    ("string.nosuch", "v"),
];

fn argument(rng: &mut Rng, kind: char) -> String {
    // Now and then an argument of the wrong kind. Counts and places stay small: redis-server has no limits.
    if rng.u8(..12) == 0 {
        return if kind == 'm' {
            pick(rng, OTHERS).to_owned()
        } else {
            value(rng)
        };
    }
    match kind {
        's' => string(rng),
        'n' => number(rng),
        'm' => pick(rng, &["-1", "0", "1", "2", "3", "5", "10", "-3"]).to_owned(),
        't' => pick(rng, &OTHERS[3..]).to_owned(),
        'p' => pattern(rng),
        'r' => replacement(rng),
        'f' => format_string(rng),
        'j' => json(rng),
        'b' => packed(rng),
        'q' => struct_format(rng),
        '\'' => "'#'".to_owned(),
        _ => value(rng),
    }
}

fn pattern(rng: &mut Rng) -> String {
    const PIECES: &[&str] = &[
        "a", "b", ".", "%a", "%d", "%s", "%w", "%p", "%A", "%S", "[abc]", "[^abc]", "[a-z]",
        "[%w_]", "(%a+)", "(.-)", "()", "^", "$", "%b()", "%f[%w]", "%%", "%1", "(a*)", "%x", "-",
        "*", "+", "?", "(", ")", "[", "]", "%", ",", "%z", "[%]]", "[]]", "[^%s]", "[%a-z]", "x=",
        "%c", "%u", "%l", " ", "o",
    ];
    let count = rng.usize(1..5);
    let mut text = String::new();
    for _ in 0..count {
        text.push_str(pick(rng, PIECES));
        if rng.bool() {
            text.push_str(pick(rng, &["*", "+", "-", "?", ""]));
        }
    }
    format!("'{text}'")
}

fn replacement(rng: &mut Rng) -> String {
    pick(
        rng,
        &[
            "'<%0>'",
            "'%1'",
            "'%2'",
            "'%%'",
            "'x'",
            "function(a, b) return b end",
            "{a='A', b=1}",
            "function(s) return s:upper() end",
            "function() return false end",
            "function() return {} end",
            "'%'",
            "function() error('in gsub') end",
            "'%9'",
        ],
    )
    .to_owned()
}

fn format_string(rng: &mut Rng) -> String {
    let mut text = String::from("%");
    for _ in 0..rng.usize(..3) {
        text.push_str(pick(rng, &["-", "+", " ", "#", "0"]));
    }
    text.push_str(pick(rng, &["", "", "5", "12", "1", "123"]));
    text.push_str(pick(rng, &["", "", ".0", ".3", ".", ".10"]));
    text.push_str(pick(
        rng,
        &[
            "d", "i", "u", "x", "X", "o", "c", "s", "q", "e", "E", "f", "g", "G", "%", "y", "",
        ],
    ));
    format!("'<{text}> %s'")
}

fn json(rng: &mut Rng) -> String {
    const PIECES: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"\\u00e9\"",
        "1",
        "-2.5e3",
        "true",
        "false",
        "null",
        " ",
        "\"x\\ny\"",
        "nul",
        "01",
        "\"\\ud83d\\ude00\"",
        "\"\\q\"",
        "nan",
        "-inf",
        "0x1f",
        "\"open",
        "+1",
        "{\"k\":1}",
        "[1,2,3]",
        "{\"a\":[{\"b\":null}]}",
        "1e5",
    ];
    let text: String = match rng.u8(..4) {
        0 => pick(
            rng,
            &[
                "{\"a\":1,\"b\":[1,2,{\"c\":null}]}",
                "[[],{},\"\",0.1,-1e-7]",
                "\"text\"",
                "[1,2,3,4,5]",
            ],
        )
        .to_owned(),
        _ => (0..rng.usize(1..7)).map(|_| pick(rng, PIECES)).collect(),
    };
    format!("[=[{text}]=]")
}

fn packed(rng: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..rng.usize(1..12) {
        let byte = if rng.bool() {
            [
                0xc0u8, 0xc2, 0xc3, 0xca, 0xcb, 0xcc, 0xcd, 0xd0, 0xd1, 0xd2, 0xd9, 0x91, 0x92,
                0x81, 0xa1, 0xa2, 0xdc, 0xde, 0xc1, 0xff,
            ][rng.usize(..20)]
        } else {
            rng.u8(..8)
        };
        text.push_str(&format!("\\{byte:03}"));
    }
    format!("'{text}'")
}

fn struct_format(rng: &mut Rng) -> String {
    const PIECES: &[&str] = &[
        "b", "B", "h", "H", "l", "L", "T", "i", "I", "i2", "i3", "I8", "f", "d", "s", "c1", "c0",
        "c3", "x", ">", "<", "!", "!4", "!2", " ", "z", "!3", "i40", "i0",
    ];
    let text: String = (0..rng.usize(1..5)).map(|_| pick(rng, PIECES)).collect();
    format!("'{text}'")
}

pub(crate) fn calls(rng: &mut Rng) -> Vec<String> {
    (0..60)
        .map(|_| {
            let (name, kinds) = CALLS[rng.usize(..CALLS.len())];
            let mut args: Vec<String> = kinds.chars().map(|kind| argument(rng, kind)).collect();
            if rng.u8(..15) == 0 {
                args.pop();
            }
            let args = args.join(", ");
            match rng.u8(..4) {
                0 => format!("local r = pack({name}({args})) return r"),
                1 if kinds.starts_with('s') && name.starts_with("string.") => {
                    let method = &name["string.".len()..];
                    let (first, rest) = args.split_once(", ").unwrap_or((&args, ""));
                    format!("return ({first}):{method}({rest})")
                }
                2 => format!(
                    "return pcall({name}{}{args})",
                    if args.is_empty() { "" } else { ", " }
                ),
                _ => format!("return {name}({args})"),
            }
        })
        .collect()
}
