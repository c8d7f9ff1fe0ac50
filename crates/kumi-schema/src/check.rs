//! How declarations fit together: names that refer to something, constraints that make sense, code that can be
//! written.
//!
//! Each check adds its errors and goes on. Those that would only repeat an error of reading are left out when there
//! was one.

mod constraints;
mod methods;
mod names;
mod recursion;
mod types;

pub(crate) use recursion::{Circles, edges};

use crate::model::{At, Protocol};
use kumi_kdl::{Diagnostic, Diagnostics, Sources};
use std::collections::BTreeSet;

/// Checks everything. `broken`: something was not read, so that a declaration may be missing that was in fact written.
/// `unusable`: names of types that were declared, but in a way that was refused.
pub(crate) fn check(
    protocol: &mut Protocol,
    sources: &Sources,
    errors: &mut Diagnostics,
    broken: bool,
    unusable: &BTreeSet<String>,
) {
    let mut checker = Checker {
        sources,
        errors,
        unusable,
    };
    let before = checker.errors.len();
    checker.types(protocol, broken);
    let types_hold = checker.errors.len() == before;
    checker.names(protocol);
    checker.constraints(protocol);
    checker.recursion(protocol, types_hold);
    checker.channels(protocol, broken);
}

struct Checker<'c> {
    sources: &'c Sources,
    errors: &'c mut Diagnostics,
    unusable: &'c BTreeSet<String>,
}

impl Checker<'_> {
    fn error(
        &mut self,
        at: At,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let sources = self.sources;
        self.errors
            .push_with(|| more(sources.diagnostic(at.0, message)));
    }

    fn error_help(&mut self, at: At, message: impl Into<String>, help: impl Into<String>) {
        self.error(at, message, |diagnostic| diagnostic.help(help));
    }
}
