use crate::engine::session::Peer;
use crate::engine::store::{Effect, Flow, HostUser};
use crate::testing::{Lab, command_index};

impl Lab {
    /// A connection that is this user's.
    fn login(&mut self, user: &str, rules: &str) -> crate::base::ids::SessionKey {
        let created = self.run(&format!("ACL SETUSER {user} on nopass {rules}"));
        assert_eq!(created, "+OK\r\n", "{rules}");
        let client = self.connect();
        let entered = self.run_as(client, &format!("AUTH {user} any"));
        assert_eq!(entered, "+OK\r\n");
        client
    }

    /// Compares what ACL DRYRUN answers for a user.
    #[track_caller]
    fn check_user(&mut self, rules: &str, lines: &[(&str, bool)]) {
        self.run("ACL SETUSER u reset");
        let created = self.run(&format!("ACL SETUSER u {rules}"));
        assert_eq!(created, "+OK\r\n", "{rules}");
        for (line, allowed) in lines {
            let reply = self.run(&format!("ACL DRYRUN u {line}"));
            assert_eq!(reply == "+OK\r\n", *allowed, "{rules}: {line}: {reply}");
        }
    }
}

#[test]
fn the_default_user_may_do_everything() {
    Lab::new().check(&[
        ("ACL WHOAMI", "$7\r\ndefault\r\n"),
        ("ACL USERS", "*1\r\n$7\r\ndefault\r\n"),
        (
            "ACL LIST",
            "*1\r\n$51\r\nuser default on nopass sanitize-payload ~* &* +@all\r\n",
        ),
        ("ACL GETUSER nosuch", "$-1\r\n"),
        (
            "ACL DELUSER default",
            "-ERR The 'default' user cannot be removed\r\n",
        ),
    ]);
}

#[test]
fn commands_are_allowed_by_name_category_and_subcommand() {
    let mut lab = Lab::new();
    lab.check_user("~* +get", &[("GET a", true), ("SET a 1", false)]);
    lab.check_user(
        "~* +@read -mget",
        &[("GET a", true), ("MGET a", false), ("SET a 1", false)],
    );
    lab.check_user(
        "~* +@all -@dangerous +keys",
        &[("KEYS a", true), ("FLUSHALL", false), ("SET a 1", true)],
    );
    lab.check_user(
        "~* +config|get",
        &[("CONFIG GET a", true), ("CONFIG SET a b", false)],
    );
    lab.check_user(
        "~* +config -config|set",
        &[("config get a", true), ("CONFIG set a b", false)],
    );
    lab.check_user("+select|1", &[("SELECT 1", true), ("SELECT 2", false)]);
    lab.check_user("+@all -@all", &[("PING", false), ("AUTH a b", true)]);
}

#[test]
fn rules_may_name_commands_that_are_not_built() {
    let mut lab = Lab::new();
    for rule in [
        "+readonly",
        "+psync",
        "+replconf",
        "-cluster",
        "-migrate",
        "-module",
        "+cluster|slots",
        "+CLUSTER|Info",
        "+readonly|x",
    ] {
        let reply = lab.run(&format!("ACL SETUSER u {rule}"));
        assert_eq!(reply, "+OK\r\n", "{rule}");
    }
    let shown = lab.run("ACL LIST");
    let rules = "-@all +readonly +psync +replconf -cluster -migrate -module +cluster|slots +cluster|info +readonly|x";
    assert!(shown.contains(rules), "{shown}");
    for (rule, text) in [
        ("+nosuch", "Unknown command or category name in ACL"),
        ("+cluster|nosuch", "Unknown command or category name in ACL"),
        ("-readonly|x", "Unknown command or category name in ACL"),
        (
            "-cluster|slots|x",
            "Unknown command or category name in ACL",
        ),
        (
            "+cluster|slots|x",
            "Allowing first-arg of a subcommand is not supported",
        ),
    ] {
        let reply = lab.run(&format!("ACL SETUSER u {rule}"));
        assert!(reply.contains(text), "{rule}: {reply}");
    }
    // They take no right away.
    lab.check_user(
        "~* +@all -cluster",
        &[("GET a", true), ("CONFIG GET a", true)],
    );
}

#[test]
fn keys_are_allowed_by_pattern_and_access() {
    let mut lab = Lab::new();
    lab.check_user(
        "~a* %R~r* %W~w* +@all",
        &[
            ("GET a1", true),
            ("GET x", false),
            ("GET r1", true),
            ("SET r1 1", false),
            ("SET w1 1", true),
            ("GET w1", false),
            ("GETSET w1 1", false),
            ("SET w1 1 GET", false),
            ("SET a1 1 GET", true),
            ("COPY r1 w1", true),
            ("COPY w1 r1", false),
            ("MGET a1 r1 x", false),
            ("EVAL return 1 x", false),
            ("EVAL return 0 x", true),
        ],
    );
    let client = lab.client;
    let reply = lab.send(
        client,
        &[b"ACL", b"DRYRUN", b"u", b"EVAL", b"return 1", b"1", b"x"],
    );
    assert_eq!(
        reply,
        "$52\r\nUser u has no permissions to access the 'x' key\r\n".replace("$52", "$47")
    );
}

#[test]
fn destinations_among_options_are_checked() {
    Lab::new().check_user(
        "~a* +@all",
        &[
            ("SORT a1", true),
            ("SORT a1 STORE a2", true),
            ("SORT a1 STORE x", false),
            ("GEORADIUS a1 1 1 1 m STORE x", false),
            ("GEORADIUS a1 1 1 1 m STOREDIST a2", true),
            ("GEORADIUSBYMEMBER a1 m 1 m STORE x", false),
            ("GEORADIUSBYMEMBER a1 m 1 m COUNT 1 STOREDIST x", false),
            ("GEORADIUSBYMEMBER a1 m 1 m STORE a2", true),
        ],
    );
    // A member of that name is none.
    Lab::new().check_user(
        "%R~a* +@all",
        &[
            ("GEORADIUSBYMEMBER a1 store 5 km", true),
            ("GEORADIUSBYMEMBER_RO a1 storedist 5 km", true),
            ("GEORADIUSBYMEMBER a1 store 5 km STORE a2", false),
        ],
    );
}

#[test]
fn patterns_of_sort_need_permission_to_read_every_key() {
    let mut lab = Lab::new();
    lab.run("RPUSH a1 2 1");
    let denied = |option: &str| {
        format!("-ERR {option} option of SORT denied due to insufficient ACL permissions.\r\n")
    };
    let limited = lab.login("limited", "~a* +@all");
    assert_eq!(lab.run_as(limited, "SORT a1 BY x*"), denied("BY"));
    assert_eq!(lab.run_as(limited, "SORT_RO a1 GET x*"), denied("GET"));
    assert_eq!(lab.run_as(limited, "SORT a1 GET #"), denied("GET"));
    let reply = "*2\r\n$1\r\n2\r\n$1\r\n1\r\n";
    assert_eq!(lab.run_as(limited, "SORT a1 BY nosort"), reply);
    let script = b"return redis.call('sort', 'a1', 'by', 'x*')";
    let from_script = lab.send(limited, &[b"EVAL", script, b"0"]);
    assert!(from_script.starts_with("-ERR BY option"), "{from_script}");
    let reader = lab.login("reader", "~a* +@all (%R~* +@read +@all)");
    assert_eq!(lab.run_as(reader, "SORT_RO a1 BY x* DESC"), reply);
}

#[test]
fn channels_are_allowed_by_pattern() {
    Lab::new().check_user(
        "+@all resetchannels &c*",
        &[
            ("PUBLISH c1 x", true),
            ("PUBLISH d1 x", false),
            ("SUBSCRIBE c1 d1", false),
            ("PSUBSCRIBE c*", true),
            ("PSUBSCRIBE c1*", false),
            ("UNSUBSCRIBE d1", true),
        ],
    );
}

#[test]
fn any_selector_may_allow_a_request_but_only_as_a_whole() {
    let mut lab = Lab::new();
    lab.check_user(
        "+get ~a (+set ~b) (%R~c +@read)",
        &[
            ("GET a", true),
            ("SET b 1", true),
            ("SET a 1", false),
            ("GET b", false),
            ("MGET c", true),
            ("MGET a", false),
        ],
    );
    assert!(lab.run("ACL LIST").contains(
        "user u off sanitize-payload ~a resetchannels -@all +get (~b resetchannels -@all +set) (%R~c resetchannels -@all +@read)\r\n"
    ));
    assert_eq!(
        lab.run("ACL SETUSER u (+get"),
        "-ERR Unmatched parenthesis in acl selector starting at '(+get'.\r\n"
    );
    assert_eq!(
        lab.run("ACL SETUSER u (+get +set"),
        "-ERR Unmatched parenthesis in acl selector starting at '(+get'.\r\n"
    );
}

#[test]
fn a_wrong_rule_changes_nothing() {
    let mut lab = Lab::new();
    lab.run("ACL SETUSER u on >pw ~a +get");
    let before = lab.run("ACL GETUSER u");
    let long = "0".repeat(63);
    for (rule, reason) in [
        ("foo", "Syntax error"),
        ("+nosuch", "Unknown command or category name in ACL"),
        ("+@nosuch", "Unknown command or category name in ACL"),
        ("+config|nosuch", "Unknown command or category name in ACL"),
        (
            "+config|get|x",
            "Allowing first-arg of a subcommand is not supported",
        ),
        ("+config|", "Syntax error"),
        ("+get|", "Syntax error"),
        ("-get|", "Unknown command or category name in ACL"),
        ("-config|get|x", "Unknown command or category name in ACL"),
        ("%X~a", "Syntax error"),
        ("%~a", "Syntax error"),
        (
            "<nopw",
            "The password you are trying to remove from the user does not exist",
        ),
        (
            &format!("#{long}"),
            "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters",
        ),
        ("(on)", "Syntax error"),
    ] {
        let reply = lab.run(&format!("ACL SETUSER u off {rule}"));
        assert_eq!(
            reply,
            format!("-ERR Error in ACL SETUSER modifier '{rule}': {reason}\r\n")
        );
    }
    assert_eq!(lab.run("ACL GETUSER u"), before);
}

#[test]
fn a_denied_request_is_answered_logged_and_counted() {
    let mut lab = Lab::new();
    let user = lab.login("u", "~a +get +multi +exec +eval &c +publish");
    for (line, text) in [
        (
            "SET a 1",
            "User u has no permissions to run the 'set' command",
        ),
        (
            "CONFIG GET a",
            "User u has no permissions to run the 'config|get' command",
        ),
        ("GET b", "No permissions to access a key"),
        ("PUBLISH d x", "No permissions to access a channel"),
    ] {
        assert_eq!(lab.run_as(user, line), format!("-NOPERM {text}\r\n"));
    }
    assert_eq!(lab.run_as(user, "GET a"), "$-1\r\n");
    lab.run_as(user, "MULTI");
    assert!(lab.run_as(user, "GET b").starts_with("-NOPERM"));
    assert!(lab.run_as(user, "EXEC").starts_with("-EXECABORT"));
    let reply = lab.send(user, &[b"EVAL", b"return redis.call('get','b')", b"0"]);
    assert!(
        reply.starts_with("-ERR ACL failure in script: No permissions to access a key script: "),
        "{reply}"
    );
    let reply = lab.send(
        user,
        &[
            b"EVAL",
            b"return {redis.acl_check_cmd('get','a'), redis.acl_check_cmd('get','b')}",
            b"0",
        ],
    );
    assert_eq!(reply, "*2\r\n:1\r\n$-1\r\n");
    assert!(lab.run_as(user, "AUTH u2 x").starts_with("-WRONGPASS"));
    let log = lab.run("ACL LOG");
    for words in [
        "$4\r\nauth",
        "$3\r\nlua",
        "$5\r\nmulti",
        "$8\r\ntoplevel",
        "$7\r\nchannel",
        "user=u ",
    ] {
        assert!(log.contains(words), "{words} in {log}");
    }
    let stats = lab.run("INFO stats");
    for field in [
        "acl_access_denied_auth:1",
        "acl_access_denied_cmd:2",
        "acl_access_denied_key:3",
        "acl_access_denied_channel:1",
    ] {
        assert!(stats.contains(field), "{field} in {stats}");
    }
    lab.check(&[("ACL LOG RESET", "+OK\r\n"), ("ACL LOG", "*0\r\n")]);
}

#[test]
fn rules_that_change_count_for_queued_commands() {
    let mut lab = Lab::new();
    let user = lab.login("u", "~* +@all");
    lab.run_as(user, "MULTI");
    lab.run_as(user, "SET a 1");
    lab.run("ACL SETUSER u -set");
    assert_eq!(
        lab.run_as(user, "EXEC"),
        "*1\r\n-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to execute the command or subcommand\r\n"
    );
    lab.check(&[("GET a", "$-1\r\n")]);
}

#[test]
fn passwords_are_hashes_and_requirepass_is_the_default_users() {
    let mut lab = Lab::new();
    lab.run("ACL SETUSER u on >one >two +@all");
    let other = lab.connect();
    for (line, ok) in [
        ("AUTH u one", true),
        ("AUTH u two", true),
        ("AUTH u three", false),
        ("AUTH nosuch one", false),
    ] {
        assert_eq!(lab.run_as(other, line) == "+OK\r\n", ok, "{line}");
    }
    assert!(!lab.run("ACL GETUSER u").contains("one"));
    lab.run("ACL SETUSER u off");
    assert!(lab.run_as(other, "AUTH u one").starts_with("-WRONGPASS"));
    lab.run("CONFIG SET requirepass secret");
    let stranger = lab.connect();
    assert_eq!(
        lab.run_as(stranger, "GET a"),
        "-NOAUTH Authentication required.\r\n"
    );
    assert_eq!(lab.run_as(stranger, "AUTH secret"), "+OK\r\n");
    assert_eq!(lab.run_as(stranger, "GET a"), "$-1\r\n");
    lab.run("CONFIG SET requirepass \"\"");
    assert!(
        lab.run("ACL LIST")
            .contains("user default on nopass sanitize-payload ~* &* +@all")
    );
    // A default user that is off asks everybody to authenticate.
    lab.run("ACL SETUSER default off");
    let stranger = lab.connect();
    assert_eq!(
        lab.run_as(stranger, "PING"),
        "-NOAUTH Authentication required.\r\n"
    );
}

#[test]
fn sessions_of_a_deleted_user_are_closed() {
    let mut lab = Lab::new();
    let user = lab.login("u", "~* &* +@all");
    lab.effects();
    assert_eq!(lab.run("ACL DELUSER u nosuch"), ":1\r\n");
    let closed = lab.effects();
    assert!(
        matches!(closed[..], [Effect::Close(key)] if key == user),
        "{closed:?}"
    );
    // One that deletes its own user gets its reply first.
    let own = lab.login("v", "~* &* +@all");
    assert_eq!(lab.run_as(own, "ACL DELUSER v"), ":1\r\n");
    assert_eq!(lab.last_flow, Flow::Close);
}

#[test]
fn a_transaction_that_deletes_its_user_gets_no_other_users_rights() {
    for delete in ["ACL DELUSER v", "ACL LOAD"] {
        let mut lab = Lab::new();
        lab.configure("aclfile", "users.acl");
        // Loaded, `w` gets the place of `v`.
        lab.host.acl_file = b"user w on nopass ~* +@all".to_vec();
        let own = lab.login("v", "+acl +multi +exec +get ~*");
        for line in ["MULTI", delete, "ACL SETUSER w on nopass ~* +@all", "GET x"] {
            lab.run_as(own, line);
        }
        let replies = lab.run_as(own, "EXEC");
        assert_eq!(replies.matches("-NOPERM").count(), 2, "{delete}: {replies}");
        assert_eq!(lab.last_flow, Flow::Close, "{delete}");
    }
}

#[test]
fn a_load_closes_the_connections_of_all_users_but_the_default_one() {
    let mut lab = Lab::new();
    lab.configure("aclfile", "users.acl");
    let same = lab.login("same", "~* &* +@all");
    let gone = lab.login("gone", "~* &* +@all");
    lab.host.acl_file = b"user same on nopass ~* &* +@all".to_vec();
    lab.effects();
    assert_eq!(lab.run("ACL LOAD"), "+OK\r\n");
    assert_eq!(lab.last_flow, Flow::Done);
    let closed = lab.effects();
    let is_closed = |wanted| {
        closed
            .iter()
            .any(|effect| matches!(effect, Effect::Close(key) if *key == wanted))
    };
    assert!(is_closed(same) && is_closed(gone), "{closed:?}");
    assert_eq!(closed.len(), 2, "{closed:?}");
}

#[test]
fn a_subscriber_is_closed_when_it_loses_its_channel() {
    let mut lab = Lab::new();
    let user = lab.login("u", "&a &b +@all");
    lab.run_as(user, "SUBSCRIBE a");
    lab.effects();
    lab.run("ACL SETUSER u ~x");
    assert!(lab.effects().is_empty());
    lab.run("ACL SETUSER u resetchannels &b");
    assert!(matches!(lab.effects()[..], [Effect::Close(key)] if key == user));
}

#[test]
fn users_come_from_lines_and_go_back_to_them() {
    let mut lab = Lab::new();
    lab.store.config.set_users(vec![
        b"u on nopass ~a* +get (+set ~b)".to_vec(),
        b"v off ~a\"b ~'".to_vec(),
        b"default off nopass +@all ~*".to_vec(),
    ]);
    lab.store.load_users(&mut lab.host).expect("valid users");
    let lines: Vec<String> = lab
        .store
        .acl
        .config_lines()
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    assert_eq!(
        lines,
        [
            "default off nopass sanitize-payload ~* resetchannels +@all",
            "u on nopass sanitize-payload ~a* resetchannels -@all +get (~b resetchannels -@all +set)",
            "v off sanitize-payload ~a\"b ~' resetchannels -@all",
        ]
    );
    let text = lab.store.acl.file_text();
    let users =
        super::parse(b"f", &text, &lab.store.index, false).expect("what was written is read");
    assert_eq!(
        users.iter().map(super::User::describe).collect::<Vec<_>>(),
        lab.store.acl.lines()
    );
    for (text, error) in [
        (
            "usr u",
            "f:1 should start with user keyword followed by the username. ",
        ),
        (
            "\nuser",
            "f:2 should start with user keyword followed by the username. ",
        ),
        (
            "user u +nosuch",
            "f:1: Error in applying operation '+nosuch': Unknown command or category name in ACL. ",
        ),
        (
            "user u\n\nuser u",
            "WARNING: Duplicate user 'u' found on line 3. ",
        ),
        // Also behind one whose rules are wrong.
        (
            "user u x\nuser u",
            "f:1: Syntax error. WARNING: Duplicate user 'u' found on line 2. ",
        ),
        // What stands behind the blank may be a password.
        (
            "user bob\t>topsecret on",
            "'f:1: username 'bob' contains invalid characters. ",
        ),
        (
            "user bob\0 on",
            "'f:1: username 'bob' contains invalid characters. ",
        ),
        (
            "user u on\nuser bob on <topsecret",
            "f:2: The password you are trying to remove from the user does not exist. ",
        ),
        ("user bob on topsecret", "f:1: Syntax error. "),
        (
            "user bob (+get >topsecret",
            "f:1: Unmatched parenthesis in selector definition. ",
        ),
        (
            "user bob (+nosuch >topsecret)",
            "f:1: Error in applying operation '(...)': Unknown command or category name in ACL. ",
        ),
        // All unknown commands, and the first of the other reasons.
        (
            "user bob +nosuch <topsecret topsecret -@none ~x",
            "f:1: Error in applying operation '+nosuch': Unknown command or category name in ACL. \
             f:1: The password you are trying to remove from the user does not exist. \
             f:1: Error in applying operation '-@none': Unknown command or category name in ACL. ",
        ),
    ] {
        let found = super::parse(b"f", text.as_bytes(), &lab.store.index, false);
        assert_eq!(found.map(|_| ()), Err(error.to_owned()));
    }
    for (line, error) in [
        (
            "u +nosuch",
            "user 'u': Error in applying operation '+nosuch': Unknown command or category name in ACL",
        ),
        (
            "u on <topsecret",
            "user 'u': The password you are trying to remove from the user does not exist",
        ),
    ] {
        lab.store.config.set_users(vec![line.into()]);
        let loaded = lab.store.load_users(&mut lab.host);
        let error = format!("{error}. Critical error while loading ACLs. Exiting.");
        assert_eq!(loaded, Err(error));
    }
}

#[test]
fn blanks_around_the_rules_of_a_file_do_not_count() {
    let mut lab = Lab::new();
    let text = b"user bob on\t >pw\t \t ~*\r +@all\t\r\n";
    let users = super::parse(b"f", text, &lab.store.index, false).expect("valid users");
    let [bob] = &users[..] else {
        panic!("one user: {users:?}");
    };
    assert!(bob.enabled && bob.has_password(b"pw") && !bob.has_password(b"pw\t"));
    // A `user` line of the configuration is taken apart before, and its words are as they are.
    lab.store
        .config
        .set_users(vec![b"amy on >pw\t ~* +@all".to_vec()]);
    lab.store.load_users(&mut lab.host).expect("valid users");
    let acl = &lab.store.acl;
    assert!(acl.authenticate(b"amy", b"pw\t").is_some());
    assert!(acl.authenticate(b"amy", b"pw").is_none());
}

#[test]
fn an_error_at_the_start_says_whether_the_acl_file_is_wrong() {
    let mut lab = Lab::new();
    lab.configure("aclfile", "users.acl");
    lab.host.acl_file = b"user bob on <topsecret".to_vec();
    assert_eq!(
        lab.store.load_users(&mut lab.host),
        Err("Aborting Redis startup because of ACL errors: users.acl:1: The password you are trying to remove from the user does not exist. ".to_owned())
    );
}

#[test]
fn a_load_that_fails_shows_no_password() {
    let mut lab = Lab::new();
    lab.configure("aclfile", "users.acl");
    lab.host.acl_file = b"user bob on <topsecret".to_vec();
    assert_eq!(
        lab.run("ACL LOAD"),
        "-ERR users.acl:1: The password you are trying to remove from the user does not exist. WARNING: ACL errors detected, no change to the previously active ACL rules was performed\r\n"
    );
}

#[test]
fn a_user_who_may_do_everything_is_not_checked() {
    let mut lab = Lab::new();
    let unrestricted = |lab: &Lab, name: &[u8]| {
        let id = lab.store.acl.find(name).expect("a user");
        !lab.store.acl.is_restricted(id)
    };
    assert!(unrestricted(&lab, b"default"));
    lab.run("ACL SETUSER u ~* &* +@all");
    assert!(unrestricted(&lab, b"u"));
    lab.run("ACL SETUSER u -get");
    assert!(!unrestricted(&lab, b"u"));
}

#[test]
fn no_command_of_constant_time_names_keys_in_its_options() {
    use crate::engine::command::flag;
    use crate::engine::key_spec::key;
    let index = command_index();
    for (_, indexed) in index.iter() {
        let row = indexed.row;
        let incomplete = row
            .keys
            .iter()
            .any(|spec| spec.flags & key::INCOMPLETE != 0);
        let in_options = incomplete || row.destinations.is_some();
        assert!(!(in_options && row.has(flag::BRIEF)), "{}", row.name);
        assert!(!incomplete, "{}: the ACL does not see all keys", row.name);
    }
}

#[test]
fn patterns_match_keys_that_begin_like_them() {
    Lab::new().check_user(
        "~app:* ~exact ~a?c* +@all",
        &[
            ("GET app:1", true),
            ("GET app:", true),
            ("GET app", false),
            ("GET exact", true),
            ("GET exactly", false),
            ("GET abcd", true),
            ("GET ac", false),
        ],
    );
}

#[test]
fn every_row_of_the_command_table_has_a_bit() {
    let index = command_index();
    assert!(index.len() <= 64 * super::user::COMMAND_WORDS);
}

#[test]
fn a_compiled_pattern_matches_what_the_glob_matches() {
    use super::user::{KeyPattern, Prefixes, READ, head};
    let mut random = fastrand::Rng::with_seed(1);
    let (mut matched, mut by_prefixes) = (0, 0);
    for _ in 0..200_000 {
        let text = |random: &mut fastrand::Rng, alphabet: &[u8]| -> Vec<u8> {
            let length = random.usize(..12);
            let picked = (0..length).map(|_| alphabet[random.usize(..alphabet.len())]);
            picked.collect()
        };
        let mut pattern = text(&mut random, b"aaaaa\0\0*?");
        if random.bool() {
            pattern.push(b'*');
        }
        let name = text(&mut random, b"aaaaa\0");
        let expected = crate::base::glob::matches(&pattern, &name, false);
        let compiled = KeyPattern::new(READ, &pattern);
        let found = compiled.matches(&name, head(&name));
        assert_eq!(found, expected, "pattern {pattern:?}, name {name:?}");
        // A long prefix or another pattern is not among them.
        let prefixes = Prefixes::of(&[compiled]);
        let by_prefix = prefixes.allow(&name, head(&name), READ);
        assert!(!by_prefix || expected, "pattern {pattern:?}, name {name:?}");
        by_prefixes += usize::from(by_prefix);
        matched += usize::from(found);
    }
    assert!(matched > 1_000, "the texts hardly ever match: {matched}");
    assert!(by_prefixes > 1_000, "hardly any by prefix: {by_prefixes}");
}

#[test]
fn the_check_of_a_single_key_allows_nothing_the_full_check_denies() {
    use kumi_resp::OwnedArgs;
    let mut lab = Lab::new();
    let mut allowed = 0;
    for rules in [
        "~app:* +@all",
        "%R~app:* +@all",
        "%W~app:* +@all",
        "%R~app:* %W~* +@all",
        "~* -@all +@read resetchannels",
        "~app:* -@all +get +set",
    ] {
        lab.run(&format!("ACL SETUSER u reset on nopass {rules}"));
        let store = &lab.store;
        let user = store.acl.find(b"u").and_then(|id| store.acl.get(id));
        let user = user.expect("a user");
        for (id, indexed) in store.index.iter() {
            let Some(wanted) = indexed.single_key else {
                continue;
            };
            for key in ["app:1", "other"] {
                let request = [indexed.row.name, key, "1", "GET", "STORE", "other"];
                for len in 1..=request.len() {
                    let request = OwnedArgs::from_slices(&request[..len]);
                    let args = request.as_args();
                    if user.allows_single_key(id, wanted, args) {
                        allowed += 1;
                        let full = user.check(id, indexed.row, args);
                        assert_eq!(full, Ok(()), "{rules}: {}", indexed.row.name);
                    }
                }
            }
        }
    }
    assert!(allowed > 1_000, "the check hardly ever allows: {allowed}");
}

#[test]
fn a_bitfield_that_only_reads_needs_only_to_read() {
    Lab::new().check_user(
        "%R~r* %W~w* +@all",
        &[
            ("BITFIELD r", true),
            ("BITFIELD r GET u8 0", true),
            ("BITFIELD r OVERFLOW SAT GET u8 0 GET u8 8", true),
            ("BITFIELD r GET u8 0 SET u8 0 1", false),
            ("BITFIELD r INCRBY u8 0 1", false),
            ("BITFIELD r GET u8", false),
            ("BITFIELD r NONSENSE", false),
            ("BITFIELD w GET u8 0", false),
            ("BITFIELD w SET u8 0 1", false),
            ("BITFIELD_RO r GET u8 0", true),
        ],
    );
}

#[test]
fn odd_modifiers_are_read_as_redis_reads_them() {
    Lab::new().check(&[
        ("ACL SETUSER u \"\"", "+OK\r\n"),
        ("ACL SETUSER u %R", "+OK\r\n"),
        (
            "ACL LIST",
            "*2\r\n$51\r\nuser default on nopass sanitize-payload ~* &* +@all\r\n$51\r\nuser u off sanitize-payload %R~ resetchannels -@all\r\n",
        ),
        (
            "ACL SETUSER u %",
            "-ERR Error in ACL SETUSER modifier '%': Syntax error\r\n",
        ),
        (
            "ACL SETUSER u +config|get|x",
            "-ERR Error in ACL SETUSER modifier '+config|get|x': Allowing first-arg of a subcommand is not supported\r\n",
        ),
        (
            "ACL SETUSER u +config|nosuch|x",
            "-ERR Error in ACL SETUSER modifier '+config|nosuch|x': Unknown command or category name in ACL\r\n",
        ),
    ]);
}

/// A lab with the user `kumi-node` of the program around the server, and a session of that user.
fn with_host_user() -> (Lab, crate::base::ids::SessionKey) {
    let mut lab = Lab::new();
    let users = [HostUser::new("kumi-node", "on >secret ~* &* +@all -acl")];
    lab.store.set_host_users(&users).expect("a valid user");
    let client = lab.connect();
    assert_eq!(lab.run_as(client, "AUTH kumi-node secret"), "+OK\r\n");
    lab.effects();
    (lab, client)
}

#[test]
fn a_user_of_the_program_is_not_changed_by_commands() {
    let (mut lab, client) = with_host_user();
    lab.run("ACL SETUSER other on nopass +@all");
    let before = lab.run("ACL LIST");
    assert!(before.contains("user kumi-node on"), "{before}");
    let refused = "-ERR the user 'kumi-node' belongs to the program that runs this server\r\n";
    lab.check(&[
        ("ACL SETUSER kumi-node off", refused),
        ("ACL SETUSER kumi-node", refused),
        ("ACL DELUSER other kumi-node", refused),
    ]);
    assert_eq!(lab.run("ACL LIST"), before);
    assert!(lab.effects().is_empty());
    assert!(lab.run_as(client, "ACL WHOAMI").starts_with("-NOPERM"));
    assert_eq!(lab.run_as(client, "PING"), "+PONG\r\n");
    // Another name that begins in the same way is anybody's.
    assert_eq!(lab.run("ACL SETUSER kumi-mine on"), "+OK\r\n");
    assert_eq!(lab.run("ACL DELUSER kumi-mine other"), ":2\r\n");
}

#[test]
fn a_user_of_the_program_survives_a_load_and_is_in_no_file() {
    let (mut lab, client) = with_host_user();
    lab.configure("aclfile", "users.acl");
    let other = lab.login("other", "~* &* +@all");
    lab.effects();
    lab.host.acl_file = b"user other on nopass ~* &* +@all".to_vec();
    assert_eq!(lab.run("ACL LOAD"), "+OK\r\n");
    let closed = lab.effects();
    assert!(
        matches!(closed[..], [Effect::Close(key)] if key == other),
        "{closed:?}"
    );
    assert_eq!(lab.run_as(client, "PING"), "+PONG\r\n");
    let text = String::from_utf8(lab.store.acl.file_text()).expect("text");
    assert!(
        text.contains("user other") && !text.contains("kumi-node"),
        "{text}"
    );
    let lines = lab.store.acl.config_lines().concat();
    assert!(!String::from_utf8_lossy(&lines).contains("kumi-node"));
    // A file that has it is refused, and changes nothing.
    lab.host.acl_file = b"user kumi-node on nopass +@all".to_vec();
    assert_eq!(
        lab.run("ACL LOAD"),
        "-ERR users.acl: the user 'kumi-node' belongs to the program that runs this server. WARNING: ACL errors detected, no change to the previously active ACL rules was performed\r\n"
    );
    let again = lab.connect();
    assert_eq!(lab.run_as(again, "AUTH kumi-node secret"), "+OK\r\n");
}

#[test]
fn a_server_with_users_of_the_program_alone_writes_no_user_lines() {
    let (lab, _) = with_host_user();
    assert!(lab.store.acl.config_lines().is_empty());
}

#[test]
fn a_user_of_the_program_that_changes_loses_its_sessions() {
    let (mut lab, client) = with_host_user();
    let same = [HostUser::new("kumi-node", "on >secret ~* &* +@all -acl")];
    lab.store.set_host_users(&same).expect("valid");
    assert!(lab.effects().is_empty(), "nothing has changed");
    let changed = [
        HostUser::new("kumi-node", "on >other ~* &* +@all -acl"),
        HostUser::new("kumi-app", "on >third ~* +get"),
    ];
    lab.store.set_host_users(&changed).expect("valid");
    let closed = lab.effects();
    assert!(
        matches!(closed[..], [Effect::Close(key)] if key == client),
        "{closed:?}"
    );
    assert!(lab.run_as(client, "GET a").starts_with("-NOPERM"));
    let names = |lab: &mut Lab| lab.run("ACL USERS");
    assert!(names(&mut lab).contains("kumi-app"));
    lab.store.set_host_users(&changed[..1]).expect("valid");
    assert!(!names(&mut lab).contains("kumi-app"));
    // Names of others and wrong rules are refused as a whole.
    lab.run("ACL SETUSER kumi-mine on");
    for (wrong, reason) in [
        (HostUser::new("node", "on"), "are called kumi-"),
        (HostUser::new("kumi-a b", "on"), "are called kumi-"),
        (HostUser::new("kumi-mine", "on"), "belongs to the program"),
        (HostUser::new("kumi-x", "on +nosuch"), "+nosuch"),
    ] {
        let users = [HostUser::new("kumi-y", "on"), wrong];
        let refused = lab.store.set_host_users(&users).unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
    assert!(!names(&mut lab).contains("kumi-y"));
    let shown = format!("{changed:?}");
    assert!(!shown.contains("other"), "rules hold passwords: {shown}");
}

#[test]
fn where_only_named_users_log_in_the_default_user_is_off() {
    let mut lab = Lab::new();
    lab.run("ACL SETUSER u on >pw ~* &* +@all");
    let now = lab.host.now;
    let peer = Peer {
        named_users_only: true,
        ..Peer::default()
    };
    let client = lab.store.connect(peer, now);
    let no_auth = "-NOAUTH Authentication required.\r\n";
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    for set_password in [false, true] {
        if set_password {
            lab.run("CONFIG SET requirepass pw");
        }
        for (line, reply) in [
            ("GET a", no_auth),
            ("AUTH pw", wrong),
            ("AUTH default pw", wrong),
            ("HELLO 3 AUTH default pw", wrong),
        ] {
            assert_eq!(lab.run_as(client, line), reply, "{line}");
        }
        assert!(lab.run_as(client, "HELLO 3").starts_with("-NOAUTH HELLO"));
    }
    assert_eq!(lab.run_as(client, "AUTH u pw"), "+OK\r\n");
    assert_eq!(lab.run_as(client, "GET a"), "$-1\r\n");
    // It is nobody again afterwards, also if the default user needs no password.
    lab.send(client, &[b"CONFIG", b"SET", b"requirepass", b""]);
    assert_eq!(lab.run_as(client, "RESET"), "+RESET\r\n");
    assert_eq!(lab.run_as(client, "GET a"), no_auth);
    // Elsewhere nothing has changed.
    let elsewhere = lab.connect();
    assert_eq!(lab.run_as(elsewhere, "GET a"), "$-1\r\n");
}
