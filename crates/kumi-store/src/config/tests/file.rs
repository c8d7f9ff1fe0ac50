//! `redis.conf` and the command line.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::config::{CommandLine, INCLUDE_DEPTH_LIMIT, parse_command_line};

/// The directives a Debian `redis.conf` sets, in its order and with its values; the words around them are ours.
const LIKE_DEBIAN: &str = include_str!("like-debian.conf");

fn check_error(text: &str, line: usize, reason: &str) {
    let error = load(&mut Config::new(), text).expect_err(text);
    assert_eq!((error.line, &*error.reason), (line, reason), "{text}");
}

#[test]
fn a_file_like_debians_loads_with_one_warning_for_what_is_ignored() {
    let mut config = Config::new();
    load(&mut config, LIKE_DEBIAN).expect("Debian's directives are all known");
    assert_eq!(
        config.settings().logfile.as_deref(),
        Some(b"/var/log/redis/redis-server.log".as_slice())
    );
    assert_eq!(
        config.settings().output_limits,
        Config::new().settings().output_limits
    );
    let warned: Vec<&str> = config.warnings().map(|warning| warning.name).collect();
    assert_eq!(warned, ["daemonize"]);
}

#[test]
fn the_error_of_an_unknown_directive_names_it_and_its_line() {
    let error =
        load(&mut Config::new(), "# first\n\n  no-such-thing 1\nport 1").expect_err("unknown");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        error.to_string(),
        format!(
            "*** FATAL CONFIG FILE ERROR (kumi {version}) ***\n\
             Reading the configuration file, at line 3 of test.conf\n\
             >>> 'no-such-thing 1'\n\
             Bad directive or wrong number of arguments"
        )
    );
}

#[test]
fn wrong_lines_get_the_reasons_of_redis() {
    check_error("port 1 2", 1, "wrong number of arguments");
    check_error("\nport", 2, "wrong number of arguments");
    check_error(
        "port abc\nport \"12",
        1,
        "argument couldn't be parsed into an integer",
    );
    check_error(
        "port 1\nport \"12",
        2,
        "Unbalanced quotes in configuration line",
    );
    check_error(
        "'port' abc",
        1,
        "argument couldn't be parsed into an integer",
    );
    check_error("include", 1, "Bad directive or wrong number of arguments");
    check_error("user", 1, "Bad directive or wrong number of arguments");
    check_error(
        "user me on\nuser you on\nuser me off ~x",
        3,
        "Error in user declaration 'me': Duplicate user found. A user can only be defined once in config files",
    );
    check_error(
        "rename-command a",
        1,
        "Bad directive or wrong number of arguments",
    );
    check_error(
        "loadmodule",
        1,
        "Bad directive or wrong number of arguments",
    );
    check_error(
        "sentinel monitor x",
        1,
        "sentinel directive while not in sentinel mode",
    );
    check_error(
        "unixsocketperm 999",
        1,
        "argument couldn't be parsed as an octal number",
    );
    check_error(
        "unixsocketperm 7777",
        1,
        "argument must be between 0 and 777 inclusive",
    );
    check_error("replicaof a 70000", 1, "Invalid master port");
    check_error("slaveof a", 1, "wrong number of arguments");
    check_error("appendfilename \"\"", 1, "appendfilename can't be empty");
    check_error(
        "dbfilename a/b",
        1,
        "dbfilename can't be a path, just a filename",
    );
    check_error("notify-keyspace-events K E", 1, "wrong number of arguments");
    check_error(
        "databases 0",
        1,
        "argument must be between 1 and 2147483647 inclusive",
    );
}

#[test]
fn lines_without_a_value_of_their_own_are_refused_where_they_matter() {
    for text in ["loadmodule /tmp/x.so", "rename-command CONFIG \"\""] {
        let error = load(&mut Config::new(), text).expect_err(text);
        assert!(error.reason.contains("kumi"), "{text}: {error}");
    }
    for text in [
        "user alice on >pw ~* +@all",
        "user default off",
        "user default on nopass ~* &* +@all",
        "user default on nopass sanitize-payload allkeys allchannels allcommands",
        "list-max-ziplist-entries 512",
        "slaveof no one",
        "save",
        "save \"\"",
    ] {
        assert_eq!(load(&mut Config::new(), text), Ok(()), "{text}");
    }
}

#[test]
fn lines_of_save_add_up_and_an_empty_one_removes_all() {
    for (text, expected) in [
        ("", "3600 1 300 100 60 10000"),
        ("save 900 1", "900 1"),
        ("save 900 1\nsave 60 5 30 9", "900 1 60 5 30 9"),
        ("save \"900 1\"\nsave \"60 5 30 9\"", "900 1 60 5 30 9"),
        ("save 900 1\nsave", "900 1"),
        ("save 900 1\nsave \"\"", ""),
        ("save 900 1\nsave \"\"\nsave 5 6", "5 6"),
    ] {
        let mut config = Config::new();
        assert_eq!(load(&mut config, text), Ok(()), "{text:?}");
        assert_eq!(
            config.text("save"),
            Some(expected.as_bytes().to_vec()),
            "{text:?}"
        );
    }
}

#[test]
fn flags_of_save_add_up_too() {
    let line = parse_command_line(&["--save", "3600 1", "--save", "60 1000"]);
    let mut config = Config::new();
    let loaded = config.load_text(&line.options, &Source::CommandLine, &mut |_| Ok(Vec::new()));
    assert_eq!(loaded, Ok(()));
    assert_eq!(shown(&config, "save"), "3600 1 60 1000");
}

#[test]
fn the_name_of_a_user_has_no_spaces() {
    let reason = "Spaces not allowed in ACL usernames";
    check_error("user 'alice on +@all'", 1, reason);
    let line = parse_command_line(&["--user", "alice on >topsecret +@all"]);
    let error = Config::new()
        .load_text(&line.options, &Source::CommandLine, &mut |_| Ok(Vec::new()))
        .expect_err("a name with spaces");
    assert_eq!(error.reason, reason);
    assert_eq!(error.text, "user alice ...");
    // A flag and its value in one argument are a line.
    let line = parse_command_line(&["--user alice on +@all"]);
    let mut config = Config::new();
    let loaded = config.load_text(&line.options, &Source::CommandLine, &mut |_| Ok(Vec::new()));
    assert_eq!(loaded, Ok(()));
    assert_eq!(config.users(), [b"alice on +@all"]);
}

#[test]
fn the_name_of_a_user_is_not_empty() {
    let reason = "ACL usernames must not be empty";
    check_error("user \"\" on", 1, reason);
    check_error("port 1\nuser '' on >topsecret", 2, reason);
}

#[test]
fn the_error_of_a_user_line_shows_no_password() {
    for (text, line) in [
        ("user me on\nUser me on >topsecret", 2),
        ("user me on '>topsecret", 1),
        ("\nuser 'me on >topsecret", 2),
        ("\"user\" me on \">topsecret", 1),
    ] {
        let error = load(&mut Config::new(), text).expect_err(text);
        assert_eq!((error.line, error.text.as_str()), (line, "user me ..."));
        assert!(!error.to_string().contains("topsecret"), "{error}");
    }
}

#[test]
fn the_last_line_of_a_directive_wins_except_where_lines_add_up() {
    let mut config = Config::new();
    let text = "port 1\nPort 2\nbind 1.2.3.4\nbind 127.0.0.1 ::1\n\
                client-output-buffer-limit normal 1 2 3\nclient-output-buffer-limit \"pubsub 4 5 6\"\n\
                hash-max-ziplist-entries 9\nunixsocketperm 700\nrequirepass 'a b'";
    load(&mut config, text).expect("all known");
    assert_eq!(config.settings().port, 2);
    assert_eq!(shown(&config, "bind"), "127.0.0.1 ::1");
    assert_eq!(
        shown(&config, "client-output-buffer-limit"),
        "normal 1 2 3 slave 268435456 67108864 60 pubsub 4 5 6"
    );
    assert_eq!(shown(&config, "hash-max-listpack-entries"), "9");
    assert_eq!(config.settings().unixsocketperm, 0o700);
    assert_eq!(
        config.settings().requirepass.as_deref(),
        Some(b"a b".as_slice())
    );
    assert!(config.is_given("port") && !config.is_given("hz"));
}

/// Loads `main` with the other files at hand.
fn load_with(main: &str, files: &[(&str, &str)]) -> Result<Config, LoadError> {
    let files: HashMap<&[u8], (&str, &str)> = files
        .iter()
        .map(|file| (file.0.as_bytes(), *file))
        .collect();
    let mut config = Config::new();
    config.load_text(main.as_bytes(), &here(), &mut |path| {
        let (name, text) = files.get(path).ok_or("no such file")?;
        Ok(vec![((*name).to_owned(), text.as_bytes().to_vec())])
    })?;
    Ok(config)
}

#[test]
fn an_included_file_counts_where_its_line_stands() {
    let files = [
        ("a.conf", "port 2\ninclude b.conf\ntimeout 2"),
        ("b.conf", "timeout 1\nhz 20"),
    ];
    let config = load_with("port 1\ntimeout 9\ninclude a.conf\nhz 30", &files).expect("loads");
    let settings = config.settings();
    assert_eq!((settings.port, settings.timeout_s, settings.hz), (2, 2, 30));
}

#[test]
fn an_error_names_the_file_it_is_in() {
    let error = load_with("port 1\ninclude a.conf", &[("a.conf", "\nfoo 1")]).expect_err("foo");
    assert!(
        error
            .to_string()
            .contains("at line 2 of a.conf\n>>> 'foo 1'"),
        "{error}"
    );
    let error = load_with("port 1\ninclude gone.conf", &[]).expect_err("gone");
    assert!(
        error
            .to_string()
            .ends_with(">>> 'include gone.conf'\nno such file"),
        "{error}"
    );
}

#[test]
fn a_file_that_includes_itself_ends_in_an_error() {
    let error = load_with("include a.conf", &[("a.conf", "include a.conf")]).expect_err("endless");
    assert!(
        error.reason.contains(&INCLUDE_DEPTH_LIMIT.to_string()),
        "{error}"
    );
}

fn check_command_line(args: &[&str], file: Option<&str>, stdin: bool, options: &str) {
    let file = file.map(|file| file.as_bytes().to_vec());
    let CommandLine {
        options: parsed, ..
    } = parse_command_line(args);
    let lines = String::from_utf8_lossy(&parsed)
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect::<Vec<_>>();
    assert_eq!(lines.join("\n"), options, "{args:?}");
    assert_eq!(
        (
            parse_command_line(args).file,
            parse_command_line(args).stdin
        ),
        (file, stdin),
        "{args:?}"
    );
}

#[test]
fn command_lines_become_configuration_text() {
    check_command_line(&[], None, false, "");
    check_command_line(&["--port", "7000"], None, false, "port \"7000\"");
    check_command_line(
        &["a.conf", "--port", "7000"],
        Some("a.conf"),
        false,
        "port \"7000\"",
    );
    check_command_line(&["--port 7000", "--hz 5"], None, false, "port 7000\nhz 5");
    check_command_line(
        &["--bind", "127.0.0.1", "::1", "--save", "", "--port", "0"],
        None,
        false,
        "bind \"127.0.0.1\" \"::1\"\nsave \"\"\nport \"0\"",
    );
    check_command_line(
        &["--save", "--port", "0"],
        None,
        false,
        "save \"\"\nport \"0\"",
    );
    check_command_line(
        &["--port", "0", "--save"],
        None,
        false,
        "port \"0\"\nsave \"\"",
    );
    check_command_line(
        &["--requirepass", "--secret"],
        None,
        false,
        "requirepass \"--secret\"",
    );
    check_command_line(&["-", "--port", "0"], None, true, "port \"0\"");
    check_command_line(
        &["a.conf", "--port", "0", "-"],
        Some("a.conf"),
        true,
        "port \"0\"",
    );
    check_command_line(&["-x"], None, false, "\"-x\"");
}

#[test]
fn errors_of_the_command_line_say_so() {
    let line = parse_command_line(&["--port", "0", "--foo", "bar"]);
    let error = Config::new()
        .load_text(&line.options, &Source::CommandLine, &mut |_| Ok(Vec::new()))
        .expect_err("foo");
    let text = error.to_string();
    assert!(
        text.contains("Reading the command line, at option 2\n>>> 'foo \"bar\"'\n"),
        "{text}"
    );
}

proptest! {
    #[test]
    fn no_text_makes_loading_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Config::new().load_text(&text, &here(), &mut |_| Ok(Vec::new()));
    }

    #[test]
    fn no_value_makes_setting_panic(row in 0..crate::config::TABLE.len(), value in "[ -~]{0,30}") {
        let name = crate::config::TABLE[row].name;
        let _ = set(&mut Config::new(), name, &value);
        let _ = load(&mut Config::new(), &format!("{name} {value}"));
    }

    #[test]
    fn command_line_values_arrive_as_they_were(value in proptest::collection::vec(any::<u8>(), 0..20)) {
        let args: [&[u8]; 4] = [b"--requirepass", &value, b"--port", b"7"];
        let line = parse_command_line(&args);
        let mut config = Config::new();
        config.load_text(&line.options, &Source::CommandLine, &mut |_| Ok(Vec::new())).unwrap();
        prop_assert_eq!(config.settings().requirepass.as_deref().unwrap_or_default(), &value[..]);
        prop_assert_eq!(config.settings().port, 7);
    }
}
