//! The words requests are made of: keys that collide, values at the edges of what is a number, and strange bytes.
//!
//! Nothing here knows a command. The pools are small on purpose: commands find each other's keys.

use super::Generator;
use crate::command::Arg;
use crate::rng::Rng;

const KEYS: &[&[u8]] = &[b"a", b"b", b"c", b"key:1", b"key:2", b"{t}x"];
/// The keys that the commands of one type prefer.
const TYPED_KEYS: &[&[u8]] = &[b"h1", b"s1", b"s2", b"z1", b"l1", b"g1"];
/// The same in sequences with a waiting theme.
const WAITING_KEYS: &[&[u8]] = &[b"x1", b"x1", b"x2", b"z1", b"l1"];
const RARE_KEYS: &[&[u8]] = &[
    b"",
    b"\x00\xff\r\n",
    b"with space",
    b"*",
    b"missing",
    b"k\xc3\xa9y",
];

const WORDS: &[&[u8]] = &[
    b"hello",
    b"world",
    b"x",
    b"ohmytext",
    b"mynewtext",
    b"foobar",
    b"barfoo",
];
const RARE_WORDS: &[&[u8]] = &[b"", b"\x00", b"a\r\nb", b"\xff\xfe", b"nx", b"-", b" "];

const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "5",
    "10",
    "42",
    "100",
    "-7",
    "9999",
    "10000",
    "123456789",
];
const EDGE_INTEGERS: &[&str] = &[
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775806",
    "-9223372036854775807",
    "4294967296",
    "2147483647",
    "2147483648",
    "-2147483649",
];
const BAD_INTEGERS: &[&str] = &[
    "9223372036854775808",
    "-9223372036854775809",
    "99999999999999999999999",
    "",
    "abc",
    "1.5",
    " 1",
    "1 ",
    "+1",
    "01",
    "-0",
    "0x10",
    "1e3",
    "--1",
];

const FLOATS: &[&str] = &[
    "1.5",
    "-2.25",
    "0.1",
    "3",
    "1e3",
    "5.0e-2",
    "0",
    "-0.0",
    "1000000000000",
    "3.14159265358979",
    "0.000000001",
    "1e17",
    "12345678901234567890",
];
const EDGE_FLOATS: &[&str] = &[
    "inf", "-inf", "nan", "1e400", "-1e400", "1e308", "1e4931", "0x1p4", "infinity", "1e-4950",
    "+2.5", ".5", "5.",
];
const BAD_FLOATS: &[&str] = &["abc", "", " 1.5", "1.5 ", "1,5", "1.5.5", "e5", "--1"];

/// Classes of keyspace events; `m` and `n` are not part of `A`.
const NOTIFY: &[&str] = &[
    "KEA", "KEA", "KEAm", "KEAn", "KEAmn", "KEAmn", "KA", "EA", "K$", "Eg", "Kgx", "KEm", "KEn",
    "KE$gx", "KE", "A", "", "Kh", "Es", "Kz", "El",
];

pub(super) fn notify_flags(rng: &mut Rng) -> String {
    rng.pick(NOTIFY).to_string()
}

impl Generator<'_> {
    pub(super) fn key(&mut self) -> Arg {
        let pool = match self.rng.below(100) {
            0..8 => RARE_KEYS,
            8..24 if self.waiting => WAITING_KEYS,
            8..24 => TYPED_KEYS,
            _ => KEYS,
        };
        Arg::from(self.rng.pick(pool))
    }

    /// So many keys as make an interesting request, with repetitions.
    pub(super) fn keys(&mut self, most: usize) -> Vec<Arg> {
        (0..self.rng.between(1, most)).map(|_| self.key()).collect()
    }

    pub(super) fn value(&mut self) -> Arg {
        match self.rng.below(100) {
            0..35 => Arg::from(self.rng.pick(WORDS)),
            35..45 => Arg::from(self.rng.pick(RARE_WORDS)),
            45..65 => Arg::from(self.rng.pick(INTEGERS)),
            65..72 => Arg::from(self.rng.pick(EDGE_INTEGERS)),
            72..80 => Arg::from(self.rng.pick(FLOATS)),
            80..85 => Arg::from(self.rng.pick(BAD_INTEGERS)),
            85..95 => {
                // 44 and 45 bytes lie on the two sides of what Redis embeds.
                let length = [20, 21, 43, 44, 45, 64, 300][self.rng.below(7)];
                Arg::Bytes(self.bytes(length))
            }
            _ => {
                let length = self.rng.between(1000, 40_000);
                Arg::Bytes(vec![b'v'; length])
            }
        }
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let alphabet: &[u8] = if self.rng.percent(30) {
            b"\x00\x01\xff\r\n"
        } else {
            b"abc"
        };
        (0..length)
            .map(|_| alphabet[self.rng.below(alphabet.len())])
            .collect()
    }

    /// Mostly a number, sometimes at the edge, sometimes none.
    pub(super) fn integer(&mut self) -> Arg {
        let pool = match self.rng.below(100) {
            0..75 => INTEGERS,
            75..88 => EDGE_INTEGERS,
            _ => BAD_INTEGERS,
        };
        Arg::from(self.rng.pick(pool))
    }

    pub(super) fn float(&mut self) -> Arg {
        let pool = match self.rng.below(100) {
            0..75 => FLOATS,
            75..90 => EDGE_FLOATS,
            _ => BAD_FLOATS,
        };
        Arg::from(self.rng.pick(pool))
    }

    /// An index into a string, often negative or beyond its end.
    pub(super) fn index(&mut self) -> Arg {
        if self.rng.percent(12) {
            return self.integer();
        }
        Arg::from(self.rng.between(0, 24) as i64 - 12)
    }

    pub(super) fn database(&mut self) -> Arg {
        match self.rng.below(100) {
            0..80 => Arg::from(self.rng.below(3) as i64),
            80..90 => Arg::from(self.rng.pick(&["15", "16", "-1", "9", "2147483648"])),
            _ => self.integer(),
        }
    }

    /// A token in capitals, small letters or both.
    pub(super) fn word(&mut self, token: &str) -> Arg {
        let cased = match self.rng.below(10) {
            0..6 => token.to_string(),
            6..9 => token.to_ascii_lowercase(),
            _ => token
                .chars()
                .enumerate()
                .map(|(index, letter)| {
                    if index.is_multiple_of(2) {
                        letter.to_ascii_lowercase()
                    } else {
                        letter
                    }
                })
                .collect(),
        };
        Arg::Bytes(cased.into_bytes())
    }

    /// One of the tokens.
    pub(super) fn one_of(&mut self, tokens: &[&str]) -> Arg {
        let token = self.rng.pick(tokens);
        self.word(token)
    }

    /// Adds the token this often.
    pub(super) fn maybe(&mut self, percent: usize, token: &str, args: &mut Vec<Arg>) {
        if self.rng.percent(percent) {
            let word = self.word(token);
            args.push(word);
        }
    }

    /// A pattern for keys, channels and directives.
    pub(super) fn glob(&mut self) -> Arg {
        const GLOBS: &[&[u8]] = &[
            b"*",
            b"k*",
            b"key:?",
            b"[ab]",
            b"[^a]",
            b"[a-c]",
            b"a",
            b"*:1",
            b"\\*",
            b"key:[1-2]",
            b"",
            b"[",
            b"[]",
            b"a*b*",
            b"**",
            b"h[e-h]llo",
            b"nomatch*",
            b"\\",
            b"[^",
            b"[a-",
            b"?",
            b"??",
        ];
        Arg::from(self.rng.pick(GLOBS))
    }

    /// Seconds or milliseconds for a deadline so far away that it cannot pass during the run, or nonsense.
    ///
    /// No two of a sequence are alike: whether a second EXPIRE with the same lifetime is later than the first (GT, LT)
    /// would depend on the millisecond it reaches a server in.
    pub(super) fn lifetime(&mut self) -> Arg {
        const GOOD: &[i64] = &[100_000, 250_000, 1_000_000, 86_400_000, 4_000_000_000];
        const STEP: i64 = 7_000;
        const BAD: &[&str] = &[
            "0",
            "-1",
            "-1000",
            "abc",
            "",
            "1.5",
            "9223372036854775807",
            "9223372036854775",
            "-9223372036854775808",
            "9223370000000000000",
            "99999999999999999999",
            "-9223372036854775",
        ];
        if self.rng.percent(80) {
            self.lifetimes += 1;
            let lifetime = GOOD[self.rng.below(GOOD.len())];
            return Arg::from(lifetime + i64::from(self.lifetimes) * STEP);
        }
        Arg::from(self.rng.pick(BAD))
    }

    /// A point in time, mostly ahead.
    pub(super) fn point(&mut self, millis: bool) -> Arg {
        let scale = if millis { 1000 } else { 1 };
        let make = if millis {
            Arg::UnixMillis
        } else {
            Arg::UnixSeconds
        };
        match self.rng.below(100) {
            0..70 => make([5_000, 10_000, 86_400][self.rng.below(3)] * scale),
            70..80 => make(-5_000 * scale),
            80..85 => Arg::from(self.rng.pick(&["1", "100"])),
            _ => self.lifetime_nonsense(),
        }
    }

    fn lifetime_nonsense(&mut self) -> Arg {
        Arg::from(self.rng.pick(&[
            "0",
            "-1",
            "abc",
            "",
            "9223372036854775807",
            "9223372036854775",
            "-9223372036854775808",
            "9223372036854776",
        ]))
    }

    /// Something that fits nowhere in particular.
    pub(super) fn strange(&mut self) -> Arg {
        match self.rng.below(4) {
            0 => Arg::from(self.rng.pick(RARE_WORDS)),
            1 => Arg::from(self.rng.pick(BAD_INTEGERS)),
            2 => self.integer(),
            _ => self.one_of(&[
                "NX", "XX", "GET", "EX", "KEEPTTL", "COUNT", "DB", "FOO", "ASYNC",
            ]),
        }
    }

    pub(super) fn channel(&mut self) -> Arg {
        const CHANNELS: &[&[u8]] = &[
            b"news",
            b"news.art",
            b"chat",
            b"",
            b"\x00bin",
            b"__keyevent@0__:set",
        ];
        Arg::from(self.rng.pick(CHANNELS))
    }

    pub(super) fn channels(&mut self) -> Vec<Arg> {
        let most = if self.queueing[self.client] { 1 } else { 3 };
        (0..self.rng.between(1, most))
            .map(|_| self.channel())
            .collect()
    }

    /// One of the sequence's clients.
    pub(super) fn client_id(&mut self) -> Arg {
        Arg::ClientId(self.rng.below(self.clients))
    }

    /// Whether the client has probably begun a transaction.
    pub(super) fn is_queueing(&self) -> bool {
        self.queueing[self.client]
    }
}
