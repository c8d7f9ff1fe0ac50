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

/// A pattern with more stars than this in front of its last element matches nothing, as in Redis.
const MAX_STARS: usize = 1000;

/// Whether `pattern` matches all of `text`. `nocase` treats ASCII letters of either case alike.
pub fn matches(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    matches_here(pattern, text, nocase)
}

/// How many bytes at the beginning of a pattern stand for themselves.
pub(crate) fn literal_prefix(pattern: &[u8]) -> usize {
    let special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    pattern.iter().position(special).unwrap_or(pattern.len())
}

/// [`matches`] with case, for a pattern whose [`literal_prefix`] is known: most texts fail at it.
pub(crate) fn matches_from(pattern: &[u8], literal: usize, text: &[u8]) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (prefix, rest) = pattern.split_at(literal);
    text.strip_prefix(prefix)
        .is_some_and(|text| matches_here(rest, text, false))
}

fn matches_here(pattern: &[u8], text: &[u8], nocase: bool) -> bool {
    let mut rest = pattern;
    let mut text = text;
    // Where to go on if the pattern fails: the pattern after the last star, and the text that star has not taken.
    let mut retry: Option<(&[u8], &[u8])> = None;
    // Stars side by side count as one.
    let mut stars = 0;
    loop {
        if let [b'*', ..] = rest {
            let Some(end) = rest.iter().position(|&byte| byte != b'*') else {
                return true;
            };
            stars += 1;
            if stars > MAX_STARS {
                return false;
            }
            rest = &rest[end..];
            retry = Some((rest, text));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &[u8], matching: &[&[u8]], others: &[&[u8]]) {
        check_with(false, pattern, matching, others);
    }

    #[track_caller]
    fn check_nocase(pattern: &[u8], matching: &[&[u8]], others: &[&[u8]]) {
        check_with(true, pattern, matching, others);
    }

    #[track_caller]
    fn check_with(nocase: bool, pattern: &[u8], matching: &[&[u8]], others: &[&[u8]]) {
        let expected = matching
            .iter()
            .map(|text| (text, true))
            .chain(others.iter().map(|text| (text, false)));
        for (text, expected) in expected {
            let (shown_pattern, shown_text) = (pattern.escape_ascii(), text.escape_ascii());
            assert_eq!(
                matches(pattern, text, nocase),
                expected,
                "pattern {shown_pattern}, text {shown_text}"
            );
            if !nocase {
                assert_eq!(
                    matches_from(pattern, literal_prefix(pattern), text),
                    expected,
                    "by prefix: pattern {shown_pattern}, text {shown_text}"
                );
            }
        }
    }

    #[test]
    fn literals_match_themselves_only() {
        check(b"", &[b""], &[b"a"]);
        check(b"abc", &[b"abc"], &[b"", b"ab", b"abcd", b"ABC", b"xabc"]);
    }

    #[test]
    fn a_star_takes_any_bytes_but_nothing_matches_the_empty_text() {
        check(b"*", &[b"a", b"abc", b"\x00\xff"], &[b""]);
        check(b"**", &[b"a"], &[b""]);
        check(b"user:*", &[b"user:", b"user:1"], &[b"user", b"xuser:1"]);
        check(b"a***", &[b"a", b"abc"], &[b"", b"ba"]);
        check(b"*a", &[b"a", b"ba", b"aaa"], &[b"", b"ab"]);
        check(
            b"a*b*c",
            &[b"abc", b"aabbcc", b"abcbc", b"axbxc"],
            &[b"ab", b"acb", b"abcd"],
        );
        check(
            b"*ab*ab",
            &[b"abab", b"xabxabab"],
            &[b"ab", b"aab", b"abba"],
        );
        check(b"*?*?*", &[b"ab", b"abc"], &[b"a", b""]);
    }

    #[test]
    fn a_question_mark_takes_exactly_one_byte() {
        check(
            b"h?llo",
            &[b"hello", b"hallo", b"h\xffllo", b"h?llo"],
            &[b"hllo", b"heello"],
        );
        check(b"?", &[b"a"], &[b"", b"ab", "\u{e9}".as_bytes()]);
    }

    #[test]
    fn a_class_takes_one_of_its_bytes() {
        check(
            b"h[ae]llo",
            &[b"hello", b"hallo"],
            &[b"hillo", b"hllo", b"haello"],
        );
        check(b"h[^e]llo", &[b"hallo", b"h^llo"], &[b"hello", b"hllo"]);
        check(b"[a^]", &[b"a", b"^"], &[b"b"]);
        check(b"[a-c]", &[b"a", b"b", b"c"], &[b"d", b"-", b"A"]);
        check(b"[c-a]", &[b"a", b"b", b"c"], &[b"d", b"-"]);
        check(b"[a-c0-2x]", &[b"b", b"1", b"x"], &[b"3", b"-"]);
        check(b"[*?]", &[b"*", b"?"], &[b"a"]);
        check(b"x[]a", &[], &[b"xa", b"x]a", b"x[]a"]);
        check(b"[^]", &[b"a", b"]", b"^"], &[b"", b"ab"]);
    }

    #[test]
    fn a_dash_that_bounds_no_range_is_a_byte_like_any_other() {
        check(b"[-a]", &[b"-", b"a"], &[b"b"]);
        check(b"[a\\-z]", &[b"a", b"-", b"z"], &[b"b", b"\\"]);
        // The closing bracket is taken as the end of the range, and so the class is never closed.
        check(
            b"[a-]",
            &[b"^", b"_", b"]", b"a", b"`"],
            &[b"-", b"b", b"a]"],
        );
        check(b"[a-]]", &[b"^", b"a"], &[b"-]", b"b"]);
        check(b"[a-", &[b"a", b"-"], &[b"b"]);
    }

    #[test]
    fn an_unclosed_class_ends_with_the_pattern() {
        check(b"[abc", &[b"a", b"c"], &[b"d", b"[abc"]);
        check(b"[", &[], &[b"[", b"a", b""]);
        check(b"[^", &[b"a", b"^"], &[b"", b"ab"]);
        check(b"x[^a", &[b"xb"], &[b"xa", b"x"]);
        check(b"*[a", &[b"a", b"ba"], &[b"ab"]);
        check(b"[\\", &[b"\\"], &[b"a"]);
    }

    #[test]
    fn a_backslash_takes_the_meaning_from_the_next_byte() {
        check(b"\\*", &[b"*"], &[b"a", b"\\*"]);
        check(b"\\?a", &[b"?a"], &[b"ba"]);
        check(b"\\[a]", &[b"[a]"], &[b"a"]);
        check(b"\\\\", &[b"\\"], &[b"\\\\"]);
        check(b"a\\", &[b"a\\"], &[b"a"]);
        check(b"[\\]a]", &[b"]", b"a"], &[b"\\"]);
        check(b"[^\\]]", &[b"a", b"\\"], &[b"]"]);
        check(b"*\\*", &[b"*", b"a*"], &[b"a", b"*a"]);
    }

    #[test]
    fn ranges_compare_signed_bytes() {
        check(
            b"[\x80-\x01]",
            &[b"\x80", b"\xff", b"\x00", b"\x01"],
            &[b"\x02", b"\x7f"],
        );
        check(
            b"[a-\xff]",
            &[b"\xff", b"\x00", b"Z", b"a"],
            &[b"b", b"\xfe", b"\x80"],
        );
    }

    #[test]
    fn nocase_folds_letters_but_not_escapes_in_a_class() {
        check_nocase(
            b"MAXmemory*",
            &[b"maxmemory", b"MaxMemory-policy"],
            &[b"maxmem"],
        );
        check_nocase(b"[A-C]x", &[b"ax", b"BX", b"cX"], &[b"dx"]);
        check_nocase(b"[abc]", &[b"A", b"b"], &[b"D"]);
        check_nocase(b"\\A", &[b"a", b"A"], &[b"b"]);
        check_nocase(b"[\\A]", &[b"A"], &[b"a"]);
        // Ordered as Z before a, and then folded to z before a, which holds nothing.
        check_nocase(b"[Z-a]", &[], &[b"a", b"z", b"Z", b"A", b"m"]);
    }

    #[test]
    fn a_hostile_pattern_costs_no_more_than_the_product_of_the_lengths() {
        let text = vec![b'a'; 20_000];
        let pattern = [b"*a".repeat(999), b"*b".to_vec()].concat();
        assert!(!matches(&pattern, &text, false));
        let pattern = [b"a*".repeat(1_000), b"a".to_vec()].concat();
        assert!(matches(&pattern, &text, false));
    }

    #[test]
    fn a_pattern_with_too_many_stars_matches_nothing() {
        let text = vec![b'a'; 20_000];
        assert!(matches(&b"*?".repeat(1_000), &text, false));
        assert!(matches(&b"**?*".repeat(1_000), &text, false));
        assert!(!matches(&b"*?".repeat(1_001), &text, false));
        assert!(!matches(&b"*?".repeat(20_000), &text, false));
    }
}
