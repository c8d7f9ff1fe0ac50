//! Any text as a configuration file: it is loaded or refused with a line that exists, and what was loaded survives
//! being written and read again.

use kumi_store::config::{Config, LoadError, Source, rewrite};

const NAME: &str = "fuzz.conf";

/// Runs one input.
pub fn run(text: &[u8]) {
    let mut config = Config::new();
    if let Err(error) = load(&mut config, text) {
        let lines = text.split(|&byte| byte == b'\n').count();
        let here = error.source_name == Source::File(NAME.to_owned());
        assert!(
            !here || (1..=lines).contains(&error.line),
            "line {} of {lines}",
            error.line
        );
        assert!(!error.to_string().is_empty());
        return;
    }
    config
        .warnings()
        .for_each(|warning| drop(warning.to_string()));

    let rewritten = rewrite(text, &config);
    let mut again = Config::new();
    if let Err(error) = load(&mut again, &rewritten) {
        panic!("a rewritten file is refused: {error}");
    }
    let all: [&[u8]; 1] = [b"*"];
    assert_eq!(config.get(all), again.get(all));
    assert_eq!(
        rewritten,
        rewrite(&rewritten, &again),
        "rewriting changes what it wrote"
    );
}

/// Includes find a file that includes itself, or nothing.
fn load(config: &mut Config, text: &[u8]) -> Result<(), LoadError> {
    let mut read = |path: &[u8]| match path {
        b"self" => Ok(vec![("self".to_owned(), b"port 1\ninclude self".to_vec())]),
        b"other" => Ok(vec![("other".to_owned(), b"timeout 7".to_vec())]),
        _ => Err("No such file or directory".to_owned()),
    };
    config.load_text(text, &Source::File(NAME.to_owned()), &mut read)
}
