//! One reader for the options of all commands: words behind the fixed arguments, each with the values that follow it.
//!
//! A command matches the words it knows and takes their values; what it does not know it refuses in its own words. So
//! the order of errors is that of the words.

use crate::base::error::CommandError;
use kumi_resp::Args;
use std::ops::Deref;

/// Goes through the arguments of a request from a position on.
#[derive(Debug)]
pub(super) struct OptionReader<'a> {
    args: Args<'a>,
    at: usize,
}

/// No option has a longer name.
const LONGEST_NAME: usize = 16;

/// An argument where an option is expected. It derefs to its lower case, or to nothing if it is longer than any option.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    /// As the client sent it.
    pub(super) sent: &'a [u8],
    folded: [u8; LONGEST_NAME],
    len: usize,
}

impl<'a> OptionReader<'a> {
    /// The options from position `first` on.
    pub(super) fn new(args: Args<'a>, first: usize) -> Self {
        Self { args, at: first }
    }

    /// The next option.
    pub(super) fn word(&mut self) -> Option<Word<'a>> {
        self.argument().map(Word::new)
    }

    /// The next argument as it was sent, if there is one.
    pub(super) fn argument(&mut self) -> Option<&'a [u8]> {
        let argument = self.args.get(self.at)?;
        self.at += 1;
        Some(argument)
    }

    /// The value of the option that was read last.
    ///
    /// # Errors
    /// A syntax error if the request ends before it.
    pub(super) fn value(&mut self) -> Result<&'a [u8], CommandError> {
        self.argument().ok_or(CommandError::SYNTAX)
    }

    /// Several values of the option that was read last.
    ///
    /// # Errors
    /// A syntax error if the request ends before the last of them.
    pub(super) fn values<const N: usize>(&mut self) -> Result<[&'a [u8]; N], CommandError> {
        let mut values = [b"".as_slice(); N];
        for value in &mut values {
            *value = self.value()?;
        }
        Ok(values)
    }

    /// Reads options without values as long as `accept` takes them; returns the position of the first other argument.
    pub(super) fn take_while(mut self, mut accept: impl FnMut(&[u8]) -> bool) -> usize {
        loop {
            let at = self.at;
            if !self.word().is_some_and(|word| accept(&word)) {
                return at;
            }
        }
    }

    /// How many arguments are left.
    pub(super) fn left(&self) -> usize {
        self.args.len().saturating_sub(self.at)
    }

    /// The position of the next argument.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Goes on from a position.
    pub(super) fn go_to(&mut self, at: usize) {
        self.at = at;
    }
}

impl<'a> Word<'a> {
    fn new(sent: &'a [u8]) -> Self {
        let mut folded = [0; LONGEST_NAME];
        let len = if sent.len() <= LONGEST_NAME {
            sent.len()
        } else {
            0
        };
        folded[..len].copy_from_slice(&sent[..len]);
        folded.make_ascii_lowercase();
        Self { sent, folded, len }
    }
}

impl Deref for Word<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.folded[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_resp::OwnedArgs;

    #[test]
    fn words_are_folded_and_values_are_not() {
        let args = OwnedArgs::from_slices(["SET", "k", "eX", "Ten", "LIMIT", "1", "2", "Nx"]);
        let mut options = OptionReader::new(args.as_args(), 2);
        let word = options.word().expect("a word");
        assert_eq!((&*word, word.sent), (b"ex".as_slice(), b"eX".as_slice()));
        assert_eq!(options.value().ok(), Some(b"Ten".as_slice()));
        assert_eq!(&*options.word().expect("a word"), b"limit");
        assert_eq!(options.values().ok(), Some([b"1".as_slice(), b"2"]));
        assert_eq!((options.position(), options.left()), (7, 1));
        assert_eq!(&*options.word().expect("a word"), b"nx");
        assert!(options.word().is_none() && options.left() == 0);
        assert_eq!(options.value(), Err(CommandError::SYNTAX));
    }

    #[test]
    fn a_word_longer_than_any_option_is_none() {
        let args = OwnedArgs::from_slices(["0123456789abcdef", "0123456789abcdefg", ""]);
        let mut options = OptionReader::new(args.as_args(), 0);
        assert_eq!(&*options.word().expect("a word"), b"0123456789abcdef");
        assert_eq!(&*options.word().expect("a word"), b"");
        assert_eq!(&*options.word().expect("a word"), b"");
    }

    #[test]
    fn leading_options_end_where_one_is_not_accepted() {
        let args = OwnedArgs::from_slices(["ZADD", "k", "NX", "ch", "1", "nx"]);
        let first =
            |args| OptionReader::new(args, 2).take_while(|word| matches!(word, b"nx" | b"ch"));
        assert_eq!(first(args.as_args()), 4);
        let short = OwnedArgs::from_slices(["ZADD", "k", "NX"]);
        assert_eq!(first(short.as_args()), 3);
    }
}
