//! The arguments that the commands of hashes, sets, sorted sets and lists share.

use super::Generator;
use crate::command::Arg;

/// Members and fields: few, so that commands find each other's.
const ELEMENTS: &[&[u8]] = &[
    b"a", b"b", b"c", b"d", b"e", b"1", b"2", b"3", b"-7", b"100", b"one", b"two",
];

impl Generator<'_> {
    /// A key of the type's own, so that most commands meet their type; sometimes any key.
    pub(super) fn collection_key(&mut self, own: &[&[u8]]) -> Arg {
        if self.rng.percent(85) {
            Arg::from(self.rng.pick(own))
        } else {
            self.key()
        }
    }

    /// A field of a hash, a member of a set, or an element of a list.
    pub(super) fn element(&mut self) -> Arg {
        if self.rng.percent(85) {
            Arg::from(self.rng.pick(ELEMENTS))
        } else {
            self.value()
        }
    }

    pub(super) fn elements(&mut self, most: usize) -> Vec<Arg> {
        (0..self.rng.between(1, most))
            .map(|_| self.element())
            .collect()
    }

    /// A number of elements that a command returns or removes.
    pub(super) fn count(&mut self) -> Arg {
        match self.rng.below(10) {
            0..7 => Arg::from(self.rng.pick(&["1", "2", "3", "5", "100"])),
            7 => Arg::from(self.rng.pick(&["0", "-1", "-2", "-9223372036854775808"])),
            _ => self.integer(),
        }
    }

    /// The arguments of HRANDFIELD and ZRANDMEMBER.
    pub(super) fn random_elements(&mut self, key: Arg, with: &str) -> Vec<Arg> {
        let mut args = vec![key];
        if self.rng.percent(80) {
            args.push(match self.rng.below(3) {
                0 => Arg::from(
                    self.rng
                        .pick(&["-1", "-3", "-20", "0", "-9223372036854775808"]),
                ),
                _ => self.count(),
            });
            self.maybe(50, with, &mut args);
            self.maybe(4, "FOO", &mut args);
        }
        args
    }

    /// The arguments of HSCAN, SSCAN and ZSCAN.
    pub(super) fn element_scan(&mut self, key: Arg) -> Vec<Arg> {
        let mut args = vec![key];
        args.push(if self.rng.percent(93) {
            Arg::from("0")
        } else {
            Arg::from(
                self.rng
                    .pick(&["abc", "", "99999999999999999999999", "1.5"]),
            )
        });
        for _ in 0..self.rng.below(3) {
            match self.rng.below(10) {
                0..5 => {
                    args.push(self.word("MATCH"));
                    args.push(self.glob());
                }
                5..9 => {
                    args.push(self.word("COUNT"));
                    args.push(Arg::from(
                        self.rng
                            .pick(&["1", "2", "10", "1000", "0", "-1", "abc", ""]),
                    ));
                }
                _ => args.push(self.one_of(&["FOO", "TYPE", "COUNT", "NOVALUES"])),
            }
        }
        args
    }
}
