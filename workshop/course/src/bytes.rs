//! Bytes as learners see them in messages, and commands as bytes.

/// Bytes with the invisible ones made visible: `+PONG\r\n`. Long ones are cut in the middle.
pub fn visible(bytes: &[u8]) -> String {
    const ENDS: usize = 40;
    if bytes.len() > 3 * ENDS {
        let left_out = bytes.len() - 2 * ENDS;
        return format!("{} ... {left_out} bytes ... {}", escape(&bytes[..ENDS]), escape(&bytes[bytes.len() - ENDS..]));
    }
    escape(bytes)
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\\' => text.push_str("\\\\"),
            0x20..=0x7e => text.push(char::from(*byte)),
            other => text.push_str(&format!("\\x{other:02x}")),
        }
    }
    text
}

/// The reverse of `visible`, for bytes written in the guide.
pub fn from_visible(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        match after {
            [b'r', after @ ..] => (bytes.push(b'\r'), rest = after).1,
            [b'n', after @ ..] => (bytes.push(b'\n'), rest = after).1,
            [b'\\', after @ ..] => (bytes.push(b'\\'), rest = after).1,
            _ => bytes.push(b'\\'),
        }
    }
    bytes
}

/// A command as an array of bulk strings.
pub fn command(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend(bulk(argument));
    }
    bytes
}

/// A bulk string.
pub fn bulk(value: &[u8]) -> Vec<u8> {
    let mut bytes = format!("${}\r\n", value.len()).into_bytes();
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_bytes_are_shown() {
        assert_eq!(visible(b"+a\\\r\n\x00\xff"), "+a\\\\\\r\\n\\x00\\xff");
        assert_eq!(from_visible("+a\\\\\\r\\n"), b"+a\\\r\n");
        assert!(visible(&[b'x'; 1000]).contains("920 bytes"));
    }

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        assert_eq!(command(&[b"GET", b"k"]), b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    }
}
