//! Sources with tokens removed, doubled or exchanged: messages of the lexer and the parser.

use crate::generate::pick;
use fastrand::Rng;

const SOURCES: &[&str] = &[
    "local a , b = 1 , 'x' if a == 1 then b = b .. 'y' elseif not a then b = nil else return a end return b",
    "for i = 1 , 10 , 2 do local x = i * 2 if x > 5 then break end end",
    "for k , v in pairs ( t ) do print ( k , v ) end",
    "function a . b . c : d ( x , ... ) return ... , x end",
    "local function f ( ) while true do repeat local y = 1 until y end end",
    "t = { 1 , 2 ; x = 3 , [ 'y' ] = 4 , f ( ) } t . x , t [ 1 ] = t . y , # t",
    "return function ( ... ) local a = { ... } return a [ 1 ] and a [ 2 ] or - a [ 3 ] ^ 2 end",
    "x = 1.5e3 + 0x1F - .5 * 3 % 2 / 7 ^ 2 y = 'a\\65\\n' z = [[ long ]] w = [==[ a ]] ]==]",
    "f 'str' f { 1 } f ( 1 , 2 ) : g ( ) . h [ 1 ] = nil",
    "do local a <= b end goto x a ~= b",
    "-- comment\nreturn 1 --[[ block\n comment ]] + 2",
    "if a then return end do return 1 end",
];

const EXTRA: &[&str] = &[
    "(", ")", "{", "}", "[", "]", "=", "==", "~", "~=", "..", "...", ",", ";", ":", ".", "+",
    "end", "do", "then", "function", "local", "return", "break", "nil", "1e", "3x", "0x", "\"",
    "'", "[[", "[=", "]]", "@", "$", "!", "\\", "&", "1..2", "'\\300'", "\n", "a b", "for", "in",
    "until", "not", "and", "-", "#", "\u{1}", "'a\nb'", "--[[", "1.2.3", "é",
];

/// A long bracket that no generated source closes.
fn quoted(source: &str) -> String {
    let mut text = String::from("'");
    for byte in source.bytes() {
        match byte {
            b'\'' | b'\\' => {
                text.push('\\');
                text.push(byte as char);
            }
            b' '..=b'~' => text.push(byte as char),
            _ => text.push_str(&format!("\\{byte:03}")),
        }
    }
    text.push('\'');
    text
}

pub(crate) fn broken_sources(rng: &mut Rng) -> Vec<String> {
    (0..60)
        .map(|_| {
            let mut tokens: Vec<&str> = pick(rng, SOURCES).split(' ').collect();
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(..tokens.len());
                match rng.u8(..5) {
                    0 => {
                        tokens.remove(at);
                    }
                    1 => tokens.insert(at, tokens[at]),
                    2 => {
                        let other = rng.usize(..tokens.len());
                        tokens.swap(at, other);
                    }
                    3 => tokens.truncate(at + 1),
                    _ => tokens.insert(at, pick(rng, EXTRA)),
                }
                if tokens.is_empty() {
                    tokens.push("x");
                }
            }
            let separator = if rng.u8(..4) == 0 { "\n" } else { " " };
            let source = quoted(&tokens.join(separator));
            let name = pick(
                rng,
                &[
                    "",
                    ", '@file'",
                    ", '=name'",
                    ", 'plain name'",
                    ", '@' .. ('long'):rep(30)",
                    ", ('x'):rep(100)",
                ],
            );
            format!("local f, e = loadstring({source}{name}) return type(f), e")
        })
        .collect()
}
