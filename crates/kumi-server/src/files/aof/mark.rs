//! Comment lines that guard an append-only file. Redis skips lines that begin with `#`.
//!
//! ```text
//! #K:open:89abcdef01234567    a server begins to write here; the seed of the checksums
//! #K:sync:1234                everything before byte 1234 of the file is synced
//! #K:boot:<32 digits>         the boot of the system that it was written in
//! #K:fsync:everysec           the `appendfsync` of what follows
//! *3 ...                      requests
//! #K:87:0123456789abcdef      the end of a group: its length, and the CRC-64 of its bytes
//! #K:close                    the server ended here
//! ```
//!
//! A group is what is written at once. It begins behind the mark of the group before, or behind `#K:open`, and may begin
//! with a line `#K:sync`, lines `#K:boot` and `#K:fsync`, and a line `#TS` with the time. It holds whole requests, and whole
//! transactions. The first group behind `#K:open` has the boot and the `appendfsync`, a later one has the `appendfsync` when
//! that has changed.
//!
//! The seed is random and stays the same in a file: a value that a client stores cannot look like a group of the file.
//! `#K:open` without a seed is read as well.

use crate::base::random;
use kumi_store::config::Fsync;
use kumi_store::crc64;
use std::io;

/// How a file without a seed is opened.
#[cfg(test)]
pub(crate) const OPEN: &[u8] = b"#K:open\r\n";
pub(crate) const CLOSE: &[u8] = b"#K:close\r\n";
/// More than what a server writes at once when it opens a file, in bytes.
pub(crate) const OPEN_BYTES: usize = 256;
/// The longest line that a mark can be, in bytes.
pub(crate) const MAX_LEN: usize = 64;

/// The names of `appendfsync`.
const FSYNC_NAMES: [(Fsync, &str); 3] = [
    (Fsync::Always, "always"),
    (Fsync::EverySecond, "everysec"),
    (Fsync::No, "no"),
];

/// A comment line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A server begins to write; the seed, 0 for none.
    Open(u64),
    Close,
    /// Everything before this position of the file was synced.
    Sync(u64),
    /// The boot of the system in which the server writes.
    Boot(u128),
    /// When what follows is synced.
    Fsync(Fsync),
    /// The end of a group of this length and checksum.
    Group {
        len: u64,
        crc: u64,
    },
    /// Any other comment, also one that only looks like a mark.
    Comment,
}

impl Line {
    /// Reads a line, which begins with `#` and ends with a line feed.
    pub(crate) fn parse(line: &[u8]) -> Self {
        Self::parse_mark(line).unwrap_or(Line::Comment)
    }

    fn parse_mark(line: &[u8]) -> Option<Self> {
        let mark = line.strip_prefix(b"#K:")?.strip_suffix(b"\r\n")?;
        match mark {
            b"open" => return Some(Line::Open(0)),
            b"close" => return Some(Line::Close),
            _ => {}
        }
        if let Some(position) = mark.strip_prefix(b"sync:") {
            return decimal(position).map(Line::Sync);
        }
        if let Some(seed) = mark.strip_prefix(b"open:") {
            return hexadecimal(seed).map(Line::Open);
        }
        if let Some(boot) = mark.strip_prefix(b"boot:") {
            let (high, low) = boot.split_at_checked(16)?;
            let (high, low) = (hexadecimal(high)?, hexadecimal(low)?);
            return Some(Line::Boot(u128::from(high) << 64 | u128::from(low)));
        }
        if let Some(name) = mark.strip_prefix(b"fsync:") {
            let known = FSYNC_NAMES.iter().find(|known| known.1.as_bytes() == name);
            return known.map(|&(fsync, _)| Line::Fsync(fsync));
        }
        let colon = mark.iter().position(|&byte| byte == b':')?;
        let (len, crc) = (decimal(&mark[..colon])?, &mark[colon + 1..]);
        let crc = hexadecimal(crc)?;
        Some(Line::Group { len, crc })
    }
}

/// Whether this is a part of the line that opens a file, cut off at its end.
pub(crate) fn is_start_of_open(bytes: &[u8]) -> bool {
    const HEAD: &[u8] = b"#K:open:";
    let digits = bytes.strip_prefix(HEAD).map(<[u8]>::trim_ascii_end);
    HEAD.starts_with(bytes) || digits.is_some_and(|digits| digits.iter().all(is_hexadecimal))
}

fn is_hexadecimal(byte: &u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(byte)
}

/// Reads 16 lower-case digits.
fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.len() != 16 || !digits.iter().all(is_hexadecimal) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A random seed; never 0.
pub(crate) fn new_seed() -> io::Result<u64> {
    Ok(random::number()?.max(1))
}

/// Appends the line that opens a file.
pub(crate) fn open_line(out: &mut Vec<u8>, seed: u64) {
    let _ = io_write(out, format_args!("#K:open:{seed:016x}\r\n"));
}

/// Appends the end of a group that consists of these two pieces.
#[cfg(test)]
pub(crate) fn end_group(out: &mut Vec<u8>, seed: u64, pieces: [&[u8]; 2]) {
    end_pieces(out, seed, pieces.into_iter());
}

/// Appends the end of a group that consists of these pieces.
pub(crate) fn end_pieces<'a>(out: &mut Vec<u8>, seed: u64, pieces: impl Iterator<Item = &'a [u8]>) {
    let (len, crc) = pieces.fold((0, seed), |(len, crc), piece| {
        (len + piece.len(), crc64::update(crc, piece))
    });
    // Writing to a vector cannot fail.
    let _ = io_write(out, format_args!("#K:{len}:{crc:016x}\r\n"));
}

/// Appends the line that says how far the file is synced.
pub(crate) fn sync_line(out: &mut Vec<u8>, position: u64) {
    let _ = io_write(out, format_args!("#K:sync:{position}\r\n"));
}

/// Appends the line that names the boot of the system.
pub(crate) fn boot_line(out: &mut Vec<u8>, boot: u128) {
    let _ = io_write(out, format_args!("#K:boot:{boot:032x}\r\n"));
}

/// Appends the line that says when what follows is synced.
pub(crate) fn fsync_line(out: &mut Vec<u8>, fsync: Fsync) {
    let names = FSYNC_NAMES.iter().filter(|known| known.0 == fsync);
    for (_, name) in names {
        let _ = io_write(out, format_args!("#K:fsync:{name}\r\n"));
    }
}

/// Appends the line with the time, as Redis writes it.
pub(crate) fn time_line(out: &mut Vec<u8>, unix_s: u64) {
    let _ = io_write(out, format_args!("#TS:{unix_s}\r\n"));
}

fn io_write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) -> io::Result<()> {
    io::Write::write_fmt(out, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let mut out = Vec::new();
        end_group(&mut out, 0, [b"12345", b"6789"]);
        assert_eq!(out, b"#K:9:e9c6d914c4b8d9ca\r\n");
        let crc = 0xe9c6_d914_c4b8_d9ca;
        assert_eq!(Line::parse(&out), Line::Group { len: 9, crc });
        out.clear();
        sync_line(&mut out, u64::MAX);
        assert_eq!(Line::parse(&out), Line::Sync(u64::MAX));
        assert!(out.len() < MAX_LEN);
        assert_eq!(Line::parse(OPEN), Line::Open(0));
        out.clear();
        open_line(&mut out, 0x1234);
        assert_eq!(out, b"#K:open:0000000000001234\r\n");
        assert_eq!(Line::parse(&out), Line::Open(0x1234));
        assert_eq!(Line::parse(CLOSE), Line::Close);
        for fsync in [Fsync::Always, Fsync::EverySecond, Fsync::No] {
            out.clear();
            fsync_line(&mut out, fsync);
            assert_eq!(Line::parse(&out), Line::Fsync(fsync));
        }
        for boot in [0, 7, u128::MAX, 7 << 64] {
            out.clear();
            boot_line(&mut out, boot);
            assert_eq!(Line::parse(&out), Line::Boot(boot));
            assert!(out.len() < MAX_LEN);
        }
        for other in [
            "#TS:1\r\n",
            "#K:open\n",
            "#K:9:e9\r\n",
            "#K:-1:e9c6d914c4b8d9ca\r\n",
            "#K:sync:\r\n",
            "#K:open:1234\r\n",
            "#K:boot:1234\r\n",
            "#K:fsync:never\r\n",
            "#\n",
        ] {
            assert_eq!(Line::parse(other.as_bytes()), Line::Comment, "{other}");
        }
    }
}
