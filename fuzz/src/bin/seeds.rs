//! Writes the first inputs and the dictionary of a target: `seeds TARGET CORPUS-FOLDER DICTIONARY-FILE`.
//!
//! They are made, not stored: they follow the tables of the code they are for.

use kumi_cluster::core::{
    Authority, GossipOutbound, LocalNode, MemberMetadata, MembershipRuntime,
    MembershipRuntimeConfig, TimerInstant,
};
use kumi_fuzz::{unison, vocabulary};
use kumi_resp::{OwnedArgs, encode};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Scenes between clients, a request a line.
const SCRIPTS: &[&str] = &[
    "SET a 1\nINCR a\nINCRBYFLOAT a 0.5\nAPPEND a x\nSETRANGE a 3 yy\nGETRANGE a 0 -1\nSTRLEN a\nOBJECT ENCODING a\n",
    "SET a hello EX 10\nTTL a\nGETEX a PX 100\n@wait 99\nGET a\n@wait 2\nGET a\nEXISTS a\nDBSIZE\n",
    "MSET a 1 b 2 c 3\nMGET a b c d\nRENAME a b\nCOPY b c REPLACE\nMOVE c 1\nSWAPDB 0 1\nSELECT 1\nKEYS *\nFLUSHALL\n",
    "WATCH a\n@client 1\nSET a 2\n@client 0\nMULTI\nSET a 3\nGET a\nEXEC\nMULTI\nINCR a\nINCR b\nEXEC\nDISCARD\n",
    "SUBSCRIBE news\nPSUBSCRIBE __key*__:*\n@client 1\nPUBLISH news hello\nSET a 1 PX 5\n@wait 10\nPUBSUB NUMPAT\n\
     PUBSUB CHANNELS *\n@client 0\nUNSUBSCRIBE\nPUNSUBSCRIBE\nPING\n",
    "HELLO 3\nSUBSCRIBE a\nSSUBSCRIBE s\nPING\nCLIENT LIST\nCONFIG GET m*\nCOMMAND DOCS get\nRESET\nHELLO 2\n",
    "CLIENT PAUSE 100 WRITE\n@client 1\nSET a 1\n@client 2\nGET a\nCLIENT UNPAUSE\n@wait 200\n",
    "MONITOR\n@client 1\nSET a \"x y\\n\"\nAUTH x\nCLIENT KILL TYPE normal\n@client 2\nCLIENT ID\n",
    "CONFIG SET maxmemory 100 requirepass x\nAUTH x\nSET a 1\nCONFIG SET max-keys 1\nCONFIG RESETSTAT\nINFO everything\n",
    "SET a ohmytext\nSET b mynewtext\nLCS a b\nLCS a b IDX MINMATCHLEN 4 WITHMATCHLEN\nLCS a b LEN\n",
    "SCAN 0 MATCH a* COUNT 100 TYPE string\nRANDOMKEY\nTOUCH a b\nUNLINK a\nDEBUG OBJECT a\nMEMORY USAGE a\n",
    "EXPIRE a 10 NX\nPEXPIREAT a 1700000001000 GT\nEXPIREAT a 1 LT\nPERSIST a\nEXPIRETIME a\nSET a 1 KEEPTTL GET\n",
    "SLOWLOG GET 10\nLATENCY HISTOGRAM set\nLATENCY LATEST\nMEMORY STATS\nWAIT 1 50\n@wait 60\nROLE\nTIME\nLASTSAVE\n",
    "CLIENT REPLY SKIP\nSET a 1\nCLIENT REPLY OFF\nGET a\nCLIENT REPLY ON\nCLIENT SETNAME x\nCLIENT INFO\nQUIT\nPING\n",
];

const REPLIES: &[&str] = &[
    "\0+OK\r\n-ERR text\r\n:-12\r\n$3\r\nabc\r\n$-1\r\n*-1\r\n",
    "\0*2\r\n*1\r\n:1\r\n*0\r\n",
    "\0_\r\n#t\r\n,1.5\r\n,inf\r\n,nan\r\n(123456789012345678901234567890\r\n!3\r\nERR\r\n=7\r\ntxt:abc\r\n",
    "\0%1\r\n+a\r\n:1\r\n~2\r\n:1\r\n:2\r\n>2\r\n+message\r\n+x\r\n|1\r\n+ttl\r\n:3600\r\n$1\r\nx\r\n",
    "\u{1}*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n",
];

const MANIFESTS: &[&str] = &[
    "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n",
    "# comment\nfile \"a b\\x01\" seq 2 type h\nfile 'c' seq 3 type i startoffset 5\n",
];

const CONFIGS: &[&str] = &[
    "# comment\nport 7000\nbind 127.0.0.1 -::1\nsave 900 1 300 10\n\nsave 60 10000\nmaxmemory 1gb\n",
    "client-output-buffer-limit normal 0 0 0\nclient-output-buffer-limit pubsub 32mb 8mb 60\n",
    "notify-keyspace-events \"KEA\"\nrequirepass \"a b\\x00\"\nlogfile ''\nunixsocketperm 700\n",
    "include other\ntimeout 30\ninclude self\n",
    "oom-score-adj-values 0 200 800\nlatency-tracking-info-percentiles 50 99 99.9\n",
    "user default on nopass ~* &* +@all\nsave \"\"\nreplicaof no one\n",
];

const SCHEMAS: &[&str] = &[
    include_str!("../../../crates/kumi-schema/tests/schemas/everything.kdl"),
    "import \"types.kdl\"\nprotocol \"p\" version=\"1.0.0\" { channel \"c\" { event \"E\" { field \"u\" type=\"User\" } } }",
    "import \"self.kdl\"\nimport \"root.kdl\"\nimport \"none.kdl\"\nprotocol \"p\" version=\"1\"",
    "/- off { x }\na 1 /-2 \\\n \"\"\"\n  t\n  \"\"\" #\"r\"# { b; c /* d */ }",
    "protocol \"p\" version=\"1.0.0\" { service \"S\" { method \"m\" { request { field \"a\" type=\"int\" }; response { } } } }",
];

/// Values that other servers dumped, one a line.
const DUMPS: &[&str] = &[
    include_str!("../../../tests/fixtures/redis-6.2/dumps.jsonl"),
    include_str!("../../../tests/fixtures/redis-7.2/dumps.jsonl"),
];

const LUA: &[&str] = &[
    "local t = {} for i = 1, 10 do t[i] = i * 2 end table.sort(t, function(a, b) return a > b end) return #t, t[1]",
    "local f = loadstring('return ...') return pcall(f, 1, nil, ('x'):rep(3)), select('#', unpack({1, 2}))",
    "local co = coroutine.wrap(function(a) while true do a = coroutine.yield(a .. 'x') end end) return co('a'), co('b')",
    "return setmetatable({}, {__index = function(t, k) return k end, __call = function(s, ...) return ... end})(1, 2)",
    "return ('a,b,c'):gsub('(%w),?', '%1-'), string.format('%5.2f %q %d', 1.5, 'x', 3), ('x'):find('%f[%w]()')",
    "return cjson.encode(cjson.decode('[1,{\"a\":null}]')), cmsgpack.unpack(cmsgpack.pack({1, 'x'})), struct.pack('>I4s', 7, 'y')",
    "local a = {} a.b = {c = 1} repeat local x = a.b.c a.b.c = x + 1 until x > 5 return a.b.c % 3 ^ 2 .. [[t]]",
];

const LUA_INPUTS: &[&str] = &[
    "0{\"a\":[1,2.5e3,true,null,\"\\u00e9\"]}",
    "1\u{1}a\u{7f}",
    "2>i4<h!4sc0bdf 0123456789abcdef",
    "3(%a+)=(.-);%d*$%5.2f%s a=1;b=22;",
];

fn lua_words() -> Vec<String> {
    "and break do else elseif end false for function if in local nil not or repeat return then true until while string table math \
     cjson cmsgpack struct bit coroutine pcall error select unpack setmetatable __index loadstring tostring .. == ~= <= >= ... %a %b() %f["
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// The first bytes of serialised values: their types, and lengths in several forms.
fn type_words() -> Vec<String> {
    let types = (0..=21u8).map(|kind| char::from(kind).to_string());
    types
        .chain(["@\u{1}".to_owned(), "\u{1}a".to_owned()])
        .collect()
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, corpus, dictionary] = &*args else {
        eprintln!("usage: seeds TARGET CORPUS-FOLDER DICTIONARY-FILE");
        std::process::exit(2);
    };
    let (seeds, words) = match &**target {
        "request_decoder" => (requests(), protocol_words()),
        "reply_decoder" => (bytes(REPLIES), protocol_words()),
        "command_stream" => (scripts(), command_words()),
        "config_file" => (bytes(CONFIGS), directive_words()),
        "unison_frame" => (unison::streams(), unison::words()),
        "unison_packet" => (unison::packets(), unison::words()),
        "unison_message" => (unison::archives(), unison::words()),
        "cluster_envelope" => (envelopes(), cluster_words()),
        "schema_parser" => (bytes(SCHEMAS), schema_words()),
        "lua_script" => (bytes(LUA), lua_words()),
        "lua_libraries" => (bytes(LUA_INPUTS), lua_words()),
        "dump_payload" => (dumped_values(), type_words()),
        "lzf" => (dumped_values(), type_words()),
        "rdb_file" => (files(), type_words()),
        "aof_loader" => (logs(), log_words()),
        "aof_manifest" => (bytes(MANIFESTS), manifest_words()),
        other => {
            eprintln!("seeds: no target '{other}'");
            std::process::exit(2);
        }
    };
    fs::create_dir_all(corpus)?;
    for (index, seed) in seeds.iter().enumerate() {
        fs::write(Path::new(corpus).join(format!("seed-{index:03}")), seed)?;
    }
    let lines: String = words
        .iter()
        .map(|word| format!("\"{}\"\n", escaped(word)))
        .collect();
    fs::write(dictionary, lines)
}

/// The scenes as increments of another server, and as one of this server with a group each.
fn logs() -> Vec<Vec<u8>> {
    let plain: Vec<Vec<u8>> = SCRIPTS.iter().map(|script| as_arrays(script)).collect();
    let guarded = plain.iter().map(|body| {
        let crc = kumi_store::crc64::checksum(body);
        let mark = format!("#K:{}:{crc:016x}\r\n#K:close\r\n", body.len());
        [b"#K:open\r\n", &**body, mark.as_bytes()].concat()
    });
    plain.iter().cloned().chain(guarded).collect()
}

fn log_words() -> Vec<String> {
    let marks = [
        "#K:open\r\n",
        "#K:close\r\n",
        "#K:sync:1\r\n",
        "#TS:1\r\n",
        "MULTI",
        "EXEC",
    ];
    let marks = marks.map(str::to_owned).into_iter();
    marks.chain(protocol_words()).collect()
}

fn manifest_words() -> Vec<String> {
    [
        "file ", " seq ", " type ", "b\n", "i\n", "h\n", "#", "\"", "\\x",
    ]
    .map(str::to_owned)
    .into()
}

fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Each dumped value as the only key of a file without a checksum, plain and with a deadline.
fn files() -> Vec<Vec<u8>> {
    let file = |before: &[u8], value: &[u8]| {
        // The first byte is the type, which stands before the key.
        let (kind, body) = value.split_at(value.len().min(1));
        [
            b"REDIS0010\xfe\x00",
            before,
            kind,
            b"\x01k",
            body,
            b"\xff\0\0\0\0\0\0\0\0",
        ]
        .concat()
    };
    let values = dumped_values();
    let plain = values.iter().map(|value| file(b"", value));
    let deadline = b"\xfc\x00\x00\x00\x00\x00\x00\x00\x7f\xf8\x05";
    let with_deadline = values.iter().map(|value| file(deadline, value));
    let library = b"REDIS0010\xf5\x0e#!lua name=lib\xfa\x01a\x01b\xff\0\0\0\0\0\0\0\0".to_vec();
    plain.chain(with_deadline).chain([library]).collect()
}

/// Every scene as inline requests and as arrays.
fn scripts() -> Vec<Vec<u8>> {
    let mut seeds = bytes(SCRIPTS);
    seeds.extend(SCRIPTS.iter().map(|script| as_arrays(script)));
    seeds
}

/// The same behind the two bytes with which that target chooses limits and cuts.
fn requests() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (index, script) in scripts().into_iter().enumerate() {
        seeds.push([&[index as u8, 1], &*script].concat());
    }
    seeds
}

fn as_arrays(script: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for line in script.lines() {
        let args = OwnedArgs::from_slices(line.split(' '));
        encode::array(&mut out, args.as_args().len());
        args.as_args()
            .iter()
            .for_each(|arg| encode::bulk(&mut out, arg));
    }
    out
}

fn protocol_words() -> Vec<String> {
    let words = [
        "\r\n",
        "*1\r\n",
        "$1\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "%1\r\n",
        "|1\r\n",
        "2147483648",
        "\\x",
        "\"",
    ];
    words.map(str::to_owned).into()
}

fn command_words() -> Vec<String> {
    let vocabulary = vocabulary();
    let commands = vocabulary
        .commands
        .iter()
        .map(|(name, _)| format!("\n{name} "));
    commands
        .chain(vocabulary.tokens.iter().map(|token| format!(" {token} ")))
        .collect()
}

fn directive_words() -> Vec<String> {
    let names = vocabulary()
        .directives
        .iter()
        .map(|name| format!("\n{name} "));
    names
        .chain(["yes", "no", "include self", "1gb", "\"\""].map(str::to_owned))
        .collect()
}

/// What a few nodes really say to each other, and to the node of the target, while one of them comes and goes.
fn envelopes() -> Vec<Vec<u8>> {
    let authorities = ["own:1", "b:1", "c:1"].map(|name| Authority::new(name).expect("valid"));
    let node = |index: usize, now| {
        let node = LocalNode {
            authority: authorities[index].clone(),
            metadata: MemberMetadata::build("1", &["seed"], &[]).expect("short"),
            unix_ms: 1_700_000_000_000,
            uid: None,
        };
        MembershipRuntime::new(MembershipRuntimeConfig::local(), node, index as u64, now)
            .expect("valid")
    };
    let mut now = TimerInstant::from_millis(1);
    let mut nodes: Vec<MembershipRuntime> = (0..3).map(|index| node(index, now)).collect();
    for node in &mut nodes {
        node.start_member(&authorities[..1], now)
            .expect("stopped before");
    }
    let mut heard: Vec<Vec<u8>> = Vec::new();
    let mut said: Vec<u8> = Vec::new();
    for step in 0..400 {
        now = now + Duration::from_millis(40);
        match step {
            100 => drop(nodes[1].quarantine(&authorities[2], "seed", Duration::from_secs(5), now)),
            200 => drop(nodes[1].stop()),
            300 => drop(nodes[2].leave(now)),
            _ => {}
        }
        for from in 0..3 {
            let sent: Vec<GossipOutbound> = nodes[from].poll(now).gossip_outbound;
            for outbound in sent {
                let Some(to) = authorities
                    .iter()
                    .position(|authority| *authority == outbound.to)
                else {
                    continue;
                };
                let _ = nodes[to].handle_message(&authorities[from], &outbound.bytes, now);
                let len = u16::try_from(outbound.bytes.len()).unwrap_or(u16::MAX);
                let framed = [&len.to_le_bytes()[..], &[1], &*outbound.bytes].concat();
                if to == 0 && said.len() < 4000 {
                    said.extend_from_slice(&framed);
                }
                if heard.len() < 200 {
                    heard.push(framed);
                }
            }
        }
    }
    heard.push(said);
    heard
}

fn cluster_words() -> Vec<String> {
    ["own:1", "b:1", "c:1", "kumi", "peer:1"]
        .map(str::to_owned)
        .into()
}

/// The words of the language, and the marks of KDL.
fn schema_words() -> Vec<String> {
    let words = "protocol channel request event returns message enum typedef field value values import service method \
                 response send recv description namespace version= from= lifetime= delivery= type= item_type= required= \
                 default= min= max= min_length= max_length= pattern= idempotent= open= #true #null #inf \" #\" /- /* */ // \
                 \"string\" \"int\" \"array\" \"map\" \"json\" \"client\" \"either\"";
    let more = ["\"\"\"\n", "\\\n"];
    words
        .split_whitespace()
        .chain(more)
        .map(str::to_owned)
        .collect()
}

fn escaped(word: &str) -> String {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", byte as char),
        0x20..=0x7e => (byte as char).to_string(),
        other => format!("\\x{other:02X}"),
    };
    word.bytes().map(escape).collect()
}

/// The recorded values that a target can take whole, without their footers.
fn dumped_values() -> Vec<Vec<u8>> {
    const FOOTER: usize = 10;
    const MARK: &str = "\"dump\": \"";
    let lines = DUMPS.iter().flat_map(|dumps| dumps.lines());
    lines
        .filter_map(|line| {
            let hex = line.split_once(MARK)?.1.split('"').next()?;
            let bytes: Vec<u8> = hex
                .as_bytes()
                .chunks(2)
                .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
                .collect();
            let value = bytes.get(..bytes.len().checked_sub(FOOTER)?)?;
            (value.len() <= 4096).then(|| value.to_vec())
        })
        .collect()
}
