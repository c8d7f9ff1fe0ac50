//! Given, for step 6. Patterns: `*` (anything), `?` (one byte), `[abc]` (one of these).

/// True if `text` fits `pattern`.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on when a later part does not fit: behind the last `*`, one byte of text further.
    let mut retry = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            retry = Some((p, t + 1));
        } else if let Some(length) = text.get(t).and_then(|byte| one(&pattern[p..], *byte)) {
            p += length;
            t += 1;
        } else if p == pattern.len() && t == text.len() {
            return true;
        } else {
            match retry {
                Some((behind, next)) if next <= text.len() => {
                    p = behind;
                    t = next;
                    retry = Some((behind, next + 1));
                }
                _ => return false,
            }
        }
    }
}

/// If the first element of the pattern fits the byte, how long that element is.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern.first()? {
        b'?' => Some(1),
        b'[' => {
            let end = pattern.iter().position(|byte| *byte == b']')?;
            pattern[1..end].contains(&byte).then_some(end + 1)
        }
        literal => (*literal == byte).then_some(1),
    }
}
