//! Glob patterns as KEYS, SCAN, PSUBSCRIBE and CONFIG GET take them.
//!
//! ```text
//!   *        any bytes, also none            ?        any one byte
//!   [abc]    one of these                    [^abc]   one byte that is none of these
//!   [a-z]    one of a range, in either order \x       x itself
//! ```
//!
//! The odd corners are Redis's, because patterns in the field rely on whatever they did there: a class that is never
//! closed reaches to the end of the pattern, `]` ends a range before it ends a class, the bounds of a range compare
//! as signed bytes, an escaped byte in a class ignores `nocase`, and no pattern but the empty one matches the empty
//! text (commands that take `*` to mean everything ask for that before they ask here).
//!
//! Matching neither allocates nor recurses. A later `*` makes every earlier one final, so one place to go back to is
//! enough, and the work is bounded by the product of both lengths.

#![allow(dead_code)]

/// Whether `pattern` matches all of `text`. `nocase` treats ASCII letters of either case alike.
pub(crate) fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let mut rest = pattern;
    let mut text = text;
    // Where to go on if the pattern fails: the pattern after the last star, and the text that star has not taken.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', after @ ..] = rest {
            if after.iter().all(|&byte| byte == b'*') {
                return true;
            }
            rest = after;
            retry = Some((after, text));
            continue;
        }
        let Some((&byte, after_byte)) = text.split_first() else {
            if rest.is_empty() {
                return true;
            }
            // What is left of the pattern wants more bytes than the text has, and going back would only leave the
            // pattern after the star fewer bytes than it has just used up.
            return false;
        };
        match step(rest, byte, nocase) {
            Some(after) => {
                rest = after;
                text = after_byte;
            }
            None => {
                let Some((after_star, [_, shorter @ ..])) = retry else {
                    return false;
                };
                rest = after_star;
                text = shorter;
                retry = Some((after_star, shorter));
            }
        }
    }
}

/// Matches one byte against the first element of a pattern that does not begin with a star. Gives the pattern after
/// that element, or nothing if the byte does not match.
fn step(pattern: &[u8], byte: u8, nocase: bool) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', class @ ..] => {
            let (matched, rest) = match_class(class, byte, nocase);
            matched.then_some(rest)
        }
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => {
            same(*literal, byte, nocase).then_some(rest)
        }
    }
}

/// Matches a byte against what follows a `[`. Gives the pattern after the class as well.
fn match_class(class: &[u8], byte: u8, nocase: bool) -> (bool, &[u8]) {
    let (negated, mut rest) = match class {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [] => return (found != negated, rest),
            [b'\\', literal, after @ ..] => {
                found |= *literal == byte;
                after
            }
            [b']', after @ ..] => return (found != negated, after),
            [start, b'-', end, after @ ..] => {
                found |= in_range(*start, *end, byte, nocase);
                after
            }
            [literal, after @ ..] => {
                found |= same(*literal, byte, nocase);
                after
            }
        }
    }
}

fn in_range(start: u8, end: u8, byte: u8, nocase: bool) -> bool {
    let (start, end) = if start.cast_signed() > end.cast_signed() {
        (end, start)
    } else {
        (start, end)
    };
    // The case is folded after the bounds are ordered, so a range like [Z-a] is empty when case is ignored.
    let fold = |byte: u8| {
        if nocase {
            byte.to_ascii_lowercase()
        } else {
            byte
        }
        .cast_signed()
    };
    (fold(start)..=fold(end)).contains(&fold(byte))
}

fn same(left: u8, right: u8, nocase: bool) -> bool {
    left == right || (nocase && left.eq_ignore_ascii_case(&right))
}
