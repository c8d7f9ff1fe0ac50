//! The directives through the door: `Config`, files and command lines.

use super::*;

#[test]
fn every_row_reads_its_default_and_prints_it_back() {
    for (directive, value) in TABLE.iter().zip(&Config::new().values) {
        let text = directive.kind.text(value);
        let words = directive.kind.split(&text);
        if directive.name == "replicaof" {
            // Shown as nothing and written as "no one", as in Redis.
            continue;
        }
        let again = directive.parse(&words, &directive.default_value());
        assert_eq!(again.as_ref(), Ok(value), "{}", directive.name);
    }
}
