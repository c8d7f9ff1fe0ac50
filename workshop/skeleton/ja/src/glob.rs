//! 実装済み（ステップ 6 用）。パターン: `*`（任意の列）、`?`（任意の 1 バイト）、`[abc]`（いずれか 1 つ）。

/// `text` が `pattern` に一致すれば true。
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // 後の部分が一致しなかったときの再開位置です。最後の `*` の直後と、1 バイト先のテキスト。
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

/// パターンの先頭要素がバイトに一致すれば、その要素の長さを返します。
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
