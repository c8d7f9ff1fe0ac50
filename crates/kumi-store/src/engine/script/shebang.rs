//! The first line of a script or library, `#!lua name=lib flags=no-writes`: its engine and options.

use crate::config::split_words;

/// What a script promises or needs. Bits of [`ScriptFlags`].
pub(crate) mod script_flag {
    /// It writes nothing.
    pub(crate) const NO_WRITES: u8 = 1 << 0;
    /// It may run, and call commands that use memory, when memory is short.
    pub(crate) const ALLOW_OOM: u8 = 1 << 1;
    /// It may run on a replica without its master.
    pub(crate) const ALLOW_STALE: u8 = 1 << 2;
    /// It does not run in a cluster.
    pub(crate) const NO_CLUSTER: u8 = 1 << 3;
    /// Its keys may be in several slots.
    pub(crate) const ALLOW_CROSS_SLOT_KEYS: u8 = 1 << 4;
    /// EVAL without a first line of this kind: commands are checked one by one.
    pub(crate) const UNDECLARED: u8 = 1 << 5;

    /// Names, in the order FUNCTION LIST shows them.
    pub(crate) const NAMES: [(u8, &str); 5] = [
        (NO_WRITES, "no-writes"),
        (ALLOW_OOM, "allow-oom"),
        (ALLOW_STALE, "allow-stale"),
        (NO_CLUSTER, "no-cluster"),
        (ALLOW_CROSS_SLOT_KEYS, "allow-cross-slot-keys"),
    ];

    /// The bit of a name.
    pub(crate) fn named(name: &[u8]) -> Option<u8> {
        let found = NAMES.iter().find(|(_, known)| known.as_bytes() == name);
        found.map(|&(bit, _)| bit)
    }
}

/// Bits of [`script_flag`].
pub(crate) type ScriptFlags = u8;

/// The flags of an EVAL script, and how many bytes at its start are not Lua. The line's end stays, so that Lua counts
/// lines from the first.
///
/// # Errors
/// The text EVAL answers.
pub(crate) fn of_script(source: &[u8]) -> Result<(ScriptFlags, usize), Vec<u8>> {
    if !source.starts_with(b"#!") {
        return Ok((script_flag::UNDECLARED, 0));
    }
    let end = line_end(source).ok_or_else(|| b"ERR Invalid script shebang".to_vec())?;
    let words = split_words(&source[..end]).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| b"ERR Invalid engine in script shebang".to_vec())?;
    if words[0] != b"#!lua" {
        return Err(with(
            b"ERR Unexpected engine in script shebang: ",
            &words[0],
        ));
    }
    let mut flags = 0;
    for word in &words[1..] {
        let Some(names) = word.strip_prefix(b"flags=") else {
            return Err(with(b"ERR Unknown lua shebang option: ", word));
        };
        if names.is_empty() {
            continue;
        }
        for name in names.split(|&byte| byte == b',') {
            flags |= script_flag::named(name)
                .ok_or_else(|| with(b"ERR Unexpected flag in script shebang: ", name))?;
        }
    }
    Ok((flags, end))
}

/// The name of a library, and how many bytes at its start are not Lua.
///
/// # Errors
/// The text FUNCTION LOAD answers.
pub(crate) fn of_library(code: &[u8]) -> Result<(Vec<u8>, usize), Vec<u8>> {
    if !code.starts_with(b"#!") {
        return Err(b"ERR Missing library metadata".to_vec());
    }
    let words = line_end(code).and_then(|end| Some((end, split_words(&code[..end])?)));
    let Some((end, words)) = words.filter(|(_, words)| !words.is_empty()) else {
        return Err(b"ERR Invalid library metadata".to_vec());
    };
    let mut name = None;
    for word in &words[1..] {
        let Some(given) = word.strip_prefix(b"name=") else {
            return Err(with(b"ERR Invalid metadata value given: ", word));
        };
        if name.replace(given.to_vec()).is_some() {
            return Err(
                b"ERR Invalid metadata value, name argument was given multiple times".to_vec(),
            );
        }
    }
    let name = name.ok_or_else(|| b"ERR Library name was not given".to_vec())?;
    let engine = &words[0][2..];
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err([b"ERR Engine '", engine, b"' not found"].concat());
    }
    Ok((name, end))
}

/// The end of the first line, if no NUL comes before it.
fn line_end(code: &[u8]) -> Option<usize> {
    let end = code.iter().position(|byte| b"\n\0".contains(byte))?;
    (code[end] == b'\n').then_some(end)
}

fn with(text: &[u8], word: &[u8]) -> Vec<u8> {
    [text, word].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: Result<(ScriptFlags, usize), &str>) {
        let found = of_script(source.as_bytes());
        let found = found.map_err(|text| String::from_utf8_lossy(&text).into_owned());
        assert_eq!(found, expected.map_err(str::to_owned), "{source:?}");
    }

    #[test]
    fn flags_come_from_the_first_line() {
        check("return 1", Ok((script_flag::UNDECLARED, 0)));
        check("#!lua\nreturn 1", Ok((0, 5)));
        check("#!lua flags=\nreturn 1", Ok((0, 12)));
        check(
            "#!lua flags=no-writes,allow-stale\n",
            Ok((script_flag::NO_WRITES | script_flag::ALLOW_STALE, 33)),
        );
        check("#!lua", Err("ERR Invalid script shebang"));
        check("#!lua\0\n", Err("ERR Invalid script shebang"));
        check("#!lua 'a\n", Err("ERR Invalid engine in script shebang"));
        check(
            "#!perl\n",
            Err("ERR Unexpected engine in script shebang: #!perl"),
        );
        check(
            "#!lua foo=1\n",
            Err("ERR Unknown lua shebang option: foo=1"),
        );
        check(
            "#!lua flags=no-writes,,allow-oom\n",
            Err("ERR Unexpected flag in script shebang: "),
        );
        check(
            "#!lua flags=no\n",
            Err("ERR Unexpected flag in script shebang: no"),
        );
    }
}
