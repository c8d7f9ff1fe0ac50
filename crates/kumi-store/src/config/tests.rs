//! The directives through their door: `Config`, files, command lines and CONFIG REWRITE.

mod file;
mod reference;
mod rewrite;
mod set;

use super::{Config, ConfigError, LoadError, Origin, Source};

const CLIENT: Origin = Origin::Client { local: true };

/// The source of texts that stand in a test.
fn here() -> Source {
    Source::File("test.conf".to_owned())
}

/// Loads a text that includes nothing.
fn load(config: &mut Config, text: &str) -> Result<(), LoadError> {
    config.load_text(text.as_bytes(), &here(), &mut |_| Ok(Vec::new()))
}

fn set(config: &mut Config, name: &str, value: &str) -> Result<(), ConfigError> {
    config
        .set_many(&[(name.as_bytes(), value.as_bytes())], CLIENT)
        .map(drop)
}

fn shown(config: &Config, name: &str) -> String {
    let answer = config.get([name.as_bytes()]);
    answer
        .first()
        .map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        .unwrap_or_default()
}

#[test]
fn debug_shows_what_was_given_and_no_secret() {
    let mut config = Config::new();
    let text = "maxmemory 10mb\nrequirepass sesame\nuser ann on >sesame ~* +@all\n";
    load(&mut config, text).unwrap();
    let shown = format!("{config:?} {:?}", config.settings());
    assert!(!shown.contains("sesame"), "{shown}");
    assert!(shown.contains("maxmemory"), "{shown}");
}
