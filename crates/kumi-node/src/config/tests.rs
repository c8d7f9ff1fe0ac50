//! Files as people write them: what is read, what is refused and where, and what two files differ in.

use super::*;

fn read(text: &str) -> NodeConfig {
    NodeConfig::parse("kumi.kdl", text).unwrap_or_else(|errors| panic!("{text}\n{errors}"))
}

/// Checks that a file has one error, at this line and column, with these words in it.
#[track_caller]
fn refuses(text: &str, place: &str, words: &[&str]) {
    let errors = NodeConfig::parse("kumi.kdl", text).expect_err(text);
    let shown = errors.to_string();
    assert_eq!(errors.len(), 1, "{shown}");
    let at = errors.iter().next().map(Diagnostic::place);
    assert_eq!(at, Some(format!("kumi.kdl:{place}")), "{shown}");
    for word in words {
        assert!(shown.contains(word), "no {word:?} in {shown}");
    }
}

/// One of everything.
const FULL: &str = r#"
node "a" {
    bind "10.0.0.1" "::1"
    port 7401
    advertise "node-a.example"
    join "10.0.0.2" "node-c:7402"
    key-file "kumi.key"
    preset "local"
    state-dir "state"
    log-level "debug"
    stop-within "45s"
}
store ephemeral=#true {
    maxmemory "1gb"
    maxclients 500
    appendonly #true
    save 900 1
    requirepass-file "password"
}
http #true {
    bind "127.0.0.1"
    port 7481
    allow-host "status.example" "kumi"
    token-file "token"
}
work "resize" exec="./resize \"x\"" concurrency=4 queue="images" lease="30s" backoff="1s..10m*4" time-limit="90s" kill-after="7s" dir="work" env-file="work.env" {
    env LEVEL="debug" EMPTY=""
}
work "resize" exec="./other"
serve "thumb.*" pipe="./thumbs" unit="thumbs" concurrency=8 handler-timeout="10s"
serve "text.upper" exec="tr a-z A-Z"
run "api" exec="./api" restart="on-failure" stop-grace="20s"
cron "digest" "0 9 * * MON-FRI" zone="Asia/Tokyo" type="mail.digest" payload="{\"n\": 1}" queue="mail" priority="low" max-attempts=3
cron "tidy" "*/5 * * * *"
"#;

#[test]
fn every_name_is_read() {
    let config = read(FULL);
    let node = &config.node;
    assert_eq!(node.name.as_ref().map(Name::as_str), Some("a"));
    assert_eq!(
        node.bind,
        [
            "10.0.0.1".parse::<IpAddr>().unwrap(),
            "::1".parse().unwrap()
        ]
    );
    assert_eq!(node.port, Some(7401));
    assert_eq!(node.advertise.as_deref(), Some("node-a.example"));
    let seeds: Vec<&str> = node.join.iter().map(Authority::as_str).collect();
    assert_eq!(seeds, ["10.0.0.2:7400", "node-c:7402"]);
    assert_eq!(node.key_file, Some("kumi.key".into()));
    assert_eq!(
        (node.preset, node.log_level),
        (Some(Preset::Local), Some(LogLevel::Debug))
    );
    assert_eq!(node.state_dir, Some("state".into()));
    assert_eq!(node.stop_within, Some(Duration::from_secs(45)));
    let StoreSection::Here(store) = &config.store else {
        panic!("{:?}", config.store);
    };
    assert_eq!(store.ephemeral, Some(true));
    let directives = [
        ("appendonly", "yes"),
        ("maxclients", "500"),
        ("maxmemory", "1gb"),
        ("save", "900 1"),
    ];
    assert_eq!(
        store.directives,
        directives
            .map(|(name, value)| (name.into(), value.into()))
            .into()
    );
    assert_eq!(
        store.secret_files,
        [("requirepass".into(), "password".into())].into()
    );
    assert_eq!((config.http.on, config.http.port), (Some(true), Some(7481)));
    assert_eq!(config.http.allow_hosts, ["status.example", "kumi"]);
    assert_eq!(config.http.token_file, Some("token".into()));
    let work = &config.work[0];
    assert_eq!(
        (&*work.task_type, &*work.exec, work.concurrency),
        ("resize", "./resize \"x\"", 4)
    );
    assert_eq!(work.queue.as_deref(), Some("images"));
    assert_eq!(work.lease, Duration::from_secs(30));
    assert_eq!(work.backoff, backoff("1s..10m*4").ok());
    assert_eq!(work.time_limit, Some(Duration::from_secs(90)));
    assert_eq!(work.kill_after, Duration::from_secs(7));
    assert_eq!(work.surroundings.dir, Some("work".into()));
    assert_eq!(work.surroundings.env_file, Some("work.env".into()));
    assert_eq!(work.surroundings.env["LEVEL"], "debug");
    assert_eq!(
        (config.work[1].concurrency, config.work[1].lease),
        (1, kumi_jobs::LEASE)
    );
    assert_eq!(
        config.serve[0].command,
        ServeCommand::Pipe("./thumbs".into())
    );
    assert_eq!(
        (config.serve[0].concurrency, config.serve[1].concurrency),
        (8, 16)
    );
    assert_eq!(
        config.serve[1].command,
        ServeCommand::Exec("tr a-z A-Z".into())
    );
    assert_eq!(config.serve[1].handler_timeout, Duration::from_secs(300));
    assert_eq!(config.run[0].restart, Restart::OnFailure);
    assert_eq!(config.run[0].stop_grace, Duration::from_secs(20));
    let cron = &config.cron[0];
    assert_eq!(
        (&*cron.task_type, &*cron.payload, cron.max_attempts),
        ("mail.digest", "{\"n\": 1}", 3)
    );
    assert_eq!((&*cron.zone, cron.priority), ("Asia/Tokyo", Priority::Low));
    let schedule = cron.schedule();
    // 9 o'clock in Tokyo is midnight in UTC; 1970 began on a Thursday.
    let (thursday, friday) = (Timestamp::from_ms(1), 86_400_000);
    assert_eq!(
        schedule.next_slot(thursday).map(Timestamp::as_ms),
        Some(friday)
    );
    assert_eq!(&schedule.envelope.payload[..], b"{\"n\": 1}");
    let cron = &config.cron[1];
    assert_eq!(
        (&*cron.task_type, &*cron.payload, &*cron.zone),
        ("tidy", "null", "UTC")
    );
}

/// `FULL` has each name of the table, so that a row of the table without a reader, or the reverse, is found.
#[test]
fn the_table_names_what_is_read() {
    let certificates =
        "node { tls-cert-file \"c\"; tls-key-file \"k\"; tls-ca-file \"a\" }\nstore url-file=\"u\"";
    read(certificates);
    for setting in SETTINGS {
        let written = match setting.place {
            Place::Argument => continue,
            Place::Property => format!(" {}=", setting.name),
            Place::Child => format!(" {} ", setting.name),
        };
        let is_read = FULL.contains(&written) || certificates.contains(&written);
        assert!(is_read, "{} {}", setting.section, setting.name);
    }
}

#[test]
fn an_empty_file_is_a_node_with_defaults() {
    let config = read("").with_defaults();
    assert_eq!(config.store, StoreSection::Here(StoreHere::default()));
    assert_eq!(
        (config.node.port, config.http.port),
        (Some(7400), Some(7480))
    );
    assert!(config.node.bind.iter().all(IpAddr::is_loopback));
    let joined = read("node { join \"10.0.0.1\" }").with_defaults();
    assert_eq!(joined.store, StoreSection::Off);
    assert_eq!(joined.node.bind, [] as [IpAddr; 0]);
}

#[test]
fn the_store_is_here_outside_or_off() {
    let store = |text: &str| read(text).store;
    assert_eq!(store("store"), StoreSection::Here(StoreHere::default()));
    assert_eq!(store("store #false"), StoreSection::Off);
    let url = "redis://10.0.0.9:6379/2";
    let outside = StoreSection::Outside(StoreUrl::Plain(url.into()));
    assert_eq!(store(&format!("store {url:?}")), outside);
    let file = StoreSection::Outside(StoreUrl::File("store.url".into()));
    assert_eq!(store("store url-file=\"store.url\""), file);
    store("store \"rediss://h/2?cacert=/nowhere/ca.pem&queue=mail\"");
    refuses("store \"redis://h?quue=mail\"", "1:7", &["quue"]);
    refuses("store \"http://h\"", "1:7", &["URL", "docs/url.md"]);
    refuses(
        "store \"redis://h\" { port 1 }",
        "1:1",
        &["that this node runs"],
    );
    refuses("store \"redis://h\" url-file=\"f\"", "1:28", &["two URLs"]);
}

#[test]
fn an_unknown_name_is_an_error_with_its_place_and_what_was_meant() {
    refuses("wrk \"a\" exec=\"b\"", "1:1", &["did you mean work?"]);
    refuses(
        "node {\n    bnid \"::1\"\n}",
        "2:5",
        &["did you mean bind?"],
    );
    refuses(
        "work \"a\" exec=\"b\" concurency=4",
        "1:19",
        &["did you mean concurrency?"],
    );
    refuses(
        "store {\n    maxmemry \"1gb\"\n}",
        "2:5",
        &["did you mean maxmemory?"],
    );
    refuses(
        "http { colour \"red\" }",
        "1:8",
        &["known here: bind, port, allow-host"],
    );
    refuses(
        "run \"a\" exec=\"b\" { evn A=\"b\" }",
        "1:20",
        &["did you mean env?"],
    );
    refuses(
        "node { preset \"lam\" }",
        "1:15",
        &["did you mean \"lan\"?"],
    );
    refuses(
        "volume \"x\"",
        "1:1",
        &["known here: node, store, http, work, serve, run, cron"],
    );
    refuses("node name=\"a\"", "1:6", &["has no property"]);
}

#[test]
fn values_are_checked_where_they_stand() {
    refuses("node \"A b\"", "1:6", &["lower-case letters"]);
    refuses("node { bind \"localhost\" }", "1:13", &["an IP address"]);
    refuses("node { port 0 }", "1:13", &["from 1 to 65535"]);
    refuses("node { port \"7400\" }", "1:13", &["without quotes"]);
    refuses("node { bind }", "1:8", &["needs a value"]);
    refuses("node { port 1 2 }", "1:15", &["one value"]);
    refuses(
        "node { advertise \"127.0.0.1\" }",
        "1:18",
        &["no other machine"],
    );
    refuses("node { tls-cert-file \"c\" }", "1:1", &["three files"]);
    refuses(
        "store { maxmemory \"plenty\" }",
        "1:19",
        &["maxmemory cannot have this value"],
    );
    refuses(
        "store { appendfsync \"sometimes\" }",
        "1:21",
        &["appendfsync"],
    );
    refuses("store { bind \"::1\" }", "1:9", &["in the block of node"]);
    refuses("http \"on\"", "1:6", &["#true or #false"]);
    refuses("work \"a b\" exec=\"c\"", "1:6", &["no white space"]);
    refuses("work \"a\"", "1:1", &["needs exec"]);
    refuses("work exec=\"a\"", "1:1", &["needs a type"]);
    refuses("work \"a\" exec=\"\"", "1:15", &["empty"]);
    refuses(
        "work \"a\" exec=\"b\" lease=\"1s\"",
        "1:25",
        &["at least 2s"],
    );
    refuses(
        "work \"a\" exec=\"b\" backoff=\"soon\"",
        "1:27",
        &["1s..10m*4"],
    );
    refuses(
        "work \"a\" exec=\"b\" concurrency=0",
        "1:31",
        &["from 1 to 10000"],
    );
    refuses(
        "work \"a\" exec=\"b\" queue=\"c d\"",
        "1:25",
        &["queue's name"],
    );
    refuses("serve \"thumb\" exec=\"a\"", "1:7", &["service.method"]);
    refuses("serve \"a.b\"", "1:1", &["needs exec or pipe"]);
    refuses("serve \"a.b\" exec=\"c\" pipe=\"d\"", "1:1", &["not both"]);
    refuses(
        "run \"api\" exec=\"a\" { env KUMI_URL=\"x\" }",
        "1:26",
        &["the node sets it"],
    );
    refuses("cron \"a\"", "1:1", &["a name and an expression"]);
    refuses("cron \"a\" \"0 25 * * *\"", "1:10", &["\"25\" is no hour"]);
    refuses(
        "cron \"a\" \"0 9 * * *\" zone=\"Asia/Tokio\"",
        "1:27",
        &["not a time zone"],
    );
    refuses("cron \"a\" \"0 9 * * *\" payload=\"{\"", "1:30", &["JSON"]);
    refuses("(u8)node \"a\"", "1:1", &["annotations"]);
}

#[test]
fn nothing_is_there_twice() {
    refuses(
        "node \"a\"\nnode \"b\"",
        "2:1",
        &["node is there twice", "kumi.kdl:1:1"],
    );
    refuses(
        "work \"a\" exec=\"b\"\nwork \"a\" exec=\"c\"",
        "2:1",
        &["work \"a\" is there twice"],
    );
    refuses("store { port 1; port 2 }", "1:17", &["given twice"]);
    refuses(
        "store { slave-priority 1; replica-priority 2 }",
        "1:27",
        &["given twice"],
    );
    refuses("run \"a\" exec=\"b\" exec=\"c\"", "1:18", &["given twice"]);
    let many: String = (0..=MAX_ENTRIES)
        .map(|n| format!("run \"r{n}\" exec=\"x\"\n"))
        .collect();
    refuses(&many, "257:1", &["at most 256 run entries"]);
}

#[test]
fn all_errors_are_reported_at_once_in_the_order_of_the_file() {
    let text = "run \"A\" exec=\"x\"\nnode { port 0; bnid \"x\" }\nwork \"a\"\nstore {";
    let errors = NodeConfig::parse("kumi.kdl", text).unwrap_err();
    let places: Vec<String> = errors.iter().map(Diagnostic::place).collect();
    let expected = ["1:5", "2:13", "2:16", "3:1", "4:7"];
    assert_eq!(places, expected.map(|place| format!("kumi.kdl:{place}")));
    let many = "nothing\n".repeat(60);
    let errors = NodeConfig::parse("kumi.kdl", &many).unwrap_err();
    assert_eq!((errors.len(), errors.iter().count()), (60, 50));
}

#[test]
fn no_beginning_or_end_of_a_file_panics() {
    for at in (0..FULL.len()).filter(|&at| FULL.is_char_boundary(at)) {
        let _ = NodeConfig::parse("kumi.kdl", &FULL[..at]);
        let _ = NodeConfig::parse("kumi.kdl", &FULL[at..]);
    }
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let text = format!("// {}", "x".repeat(MAX_FILE_BYTES));
    let errors = NodeConfig::parse("kumi.kdl", &text).unwrap_err();
    assert!(
        errors
            .to_string()
            .contains("kumi.kdl is larger than 1024 KiB"),
        "{errors}"
    );
}

#[test]
fn secrets_are_refused_and_not_shown() {
    let check = |text: &str, advice: &str| {
        let errors = NodeConfig::parse("kumi.kdl", text)
            .expect_err(text)
            .to_string();
        assert!(errors.contains(advice), "{errors}");
        assert!(!errors.contains("sesame"), "{errors}");
    };
    check("store \"redis://:sesame@h\"", "url-file=\"FILE\"");
    check("store \"redis://ann:sesame@h\"", "url-file=\"FILE\"");
    check(
        "store { requirepass \"sesame\" }",
        "requirepass-file \"FILE\"",
    );
    check(
        "store { masterauth \"sesame\" }",
        "masterauth-file \"FILE\"",
    );
    check("store { tls-key-file-pass \"sesame\" }", "decrypt the key");
    check(
        "run \"api\" exec=\"./api --password=sesame\"",
        "env-file=\"FILE\"",
    );
    check(
        "run \"api\" exec=\"./api\" { env DB_PASSWORD=\"sesame\" }",
        "env-file=\"FILE\"",
    );
    check(
        "run \"api\" exec=\"./api\" { env DB=\"pg://a:sesame@h/d\" }",
        "into a file",
    );
    // Another error on the line of a secret shows the line.
    check("store \"redis://:sesame@h\" colour=1", "no property");
    check("store \"redis://:sesame@h", "kumi.kdl:1");
}

#[track_caller]
fn laid_over(file: NodeConfig, flags: NodeConfig) -> NodeConfig {
    NodeConfig::merge(file, flags).unwrap()
}

#[test]
fn a_flag_of_an_own_store_does_not_replace_a_store_elsewhere() {
    let check = |file: &str, flags: &str, words: &[&str]| {
        let error = NodeConfig::merge(read(file), read(flags)).expect_err(file);
        let shown = error.to_string();
        for word in words {
            assert!(shown.contains(word), "no {word:?} in {shown}");
        }
        assert!(!shown.contains("sesame"), "{shown}");
    };
    let directive = "store { maxmemory \"1gb\" }";
    let outside = "store \"redis://outside\"";
    check(outside, directive, &["maxmemory", "redis://outside"]);
    check("store #false", directive, &["maxmemory", "store #false"]);
    check(outside, "store ephemeral=#true", &["ephemeral", "outside"]);
    let by_file = "store { requirepass-file \"p\" }";
    check("store url-file=\"u\"", by_file, &["requirepass", "\"u\""]);
    // Where the file does not say, or the flags name the store themselves, there is nothing to contradict.
    for (file, flags) in [("", directive), (outside, "store"), (directive, outside)] {
        assert_eq!(laid_over(read(file), read(flags)), read(flags));
    }
}

#[test]
fn a_flag_wins_over_ephemeral() {
    for (file, flag, expected) in [
        ("#true", "#false", false),
        ("#false", "#true", true),
        ("#true", "#true", true),
    ] {
        let [file, flags] = [file, flag].map(|word| read(&format!("store ephemeral={word}")));
        let StoreSection::Here(store) = laid_over(file, flags).store else {
            panic!("a store of this node");
        };
        assert_eq!(store.ephemeral, Some(expected));
    }
}

#[test]
fn the_default_queue_is_one_with_and_without_its_name() {
    refuses(
        "work \"a\" exec=\"b\"\nwork \"a\" exec=\"c\" queue=\"default\"",
        "2:1",
        &["work \"a\" is there twice"],
    );
    refuses(
        "cron \"a\" \"* * * * *\"\ncron \"a\" \"* * * * *\" queue=\"default\"",
        "2:1",
        &["cron \"a\" is there twice"],
    );
    let (unnamed, named) = (
        "work \"a\" exec=\"b\"",
        "work \"a\" exec=\"b\" queue=\"default\"",
    );
    assert_eq!(changes(unnamed, named), (Vec::new(), Vec::new()));
    // A flag may name it too.
    let mut flags = read("work \"a\" exec=\"c\"");
    flags.work[0].queue = Some("default".into());
    let merged = laid_over(read(unnamed), flags);
    assert_eq!(merged.work.len(), 1);
    assert_eq!(merged.work[0].exec, "c");
}

#[test]
fn flags_win() {
    let file = read(FULL);
    let mut flags = NodeConfig::default();
    assert_eq!(laid_over(file.clone(), flags.clone()), file);
    flags.node.name = Name::new("b").ok();
    flags.node.bind = vec!["10.0.0.9".parse().unwrap()];
    flags.http.port = Some(1);
    flags.store = read("store { maxmemory \"2gb\"; port 7000 }").store;
    flags.run = read("run \"api\" exec=\"./new\"\nrun \"more\" exec=\"./more\"").run;
    let merged = laid_over(file.clone(), flags);
    assert_eq!(merged.node.name.as_ref().map(Name::as_str), Some("b"));
    assert_eq!(merged.node.bind, ["10.0.0.9".parse::<IpAddr>().unwrap()]);
    assert_eq!(merged.node.join, file.node.join);
    assert_eq!(
        (merged.http.port, &merged.http.allow_hosts),
        (Some(1), &file.http.allow_hosts)
    );
    let StoreSection::Here(store) = &merged.store else {
        panic!("{:?}", merged.store);
    };
    assert_eq!(
        (
            &*store.directives["maxmemory"],
            &*store.directives["maxclients"]
        ),
        ("2gb", "500")
    );
    assert_eq!(store.ephemeral, Some(true));
    assert!(store.directives.contains_key("port"));
    let runs: Vec<&str> = merged.run.iter().map(|run| &*run.exec).collect();
    assert_eq!(runs, ["./new", "./more"]);
    assert_eq!(merged.work, file.work);
    let mut flags = read("store \"redis://h\"");
    flags.node.certificates =
        read("node { tls-cert-file \"c\"; tls-key-file \"k\"; tls-ca-file \"a\" }")
            .node
            .certificates;
    let merged = laid_over(file, flags.clone());
    assert_eq!(merged.store, flags.store);
    assert_eq!(
        (merged.node.key_file, merged.node.certificates),
        (None, flags.node.certificates)
    );
}

#[test]
fn paths_are_relative_to_the_directory_of_the_file() {
    let mut config = read(FULL);
    config.resolve(Path::new("/etc/kumi"));
    assert_eq!(config.node.key_file, Some("/etc/kumi/kumi.key".into()));
    assert_eq!(
        config.work[0].surroundings.dir,
        Some("/etc/kumi/work".into())
    );
    assert_eq!(config.work[1].surroundings.dir, Some("/etc/kumi".into()));
    assert_eq!(config.run[0].surroundings.dir, Some("/etc/kumi".into()));
    let mut outside = read("store url-file=\"/run/url\"\nrun \"a\" exec=\"b\" env-file=\"e\"");
    outside.resolve(Path::new("/etc/kumi"));
    assert_eq!(
        outside.store,
        StoreSection::Outside(StoreUrl::File("/run/url".into()))
    );
    assert_eq!(
        outside.run[0].surroundings.env_file,
        Some("/etc/kumi/e".into())
    );
}

#[test]
fn paths_of_directives_and_of_urls_are_relative_to_the_directory_of_the_file_too() {
    let text = "store {
        dir \"data\"
        aclfile \"users.acl\"
        logfile \"\"
        pidfile \"/run/kumi.pid\"
        unixsocket \"kumi.sock\"
        tls-cert-file \"tls/c.pem\"
        dbfilename \"dump.rdb\"
    }";
    let mut config = read(text);
    config.resolve(Path::new("/etc/ku mi"));
    let StoreSection::Here(store) = &config.store else {
        panic!("{:?}", config.store);
    };
    let expected = [
        ("aclfile", "/etc/ku mi/users.acl"),
        ("dbfilename", "dump.rdb"),
        ("dir", "/etc/ku mi/data"),
        ("logfile", ""),
        ("pidfile", "/run/kumi.pid"),
        ("tls-cert-file", "/etc/ku mi/tls/c.pem"),
        ("unixsocket", "/etc/ku mi/kumi.sock"),
    ];
    let expected = expected.map(|(name, value)| (name.into(), value.into()));
    assert_eq!(store.directives, BTreeMap::from(expected));
    let check = |url: &str, expected: &str| {
        let mut config = read(&format!("store {url:?}"));
        config.resolve(Path::new("/etc/ku mi"));
        let expected = StoreUrl::Plain(expected.to_owned());
        assert_eq!(config.store, StoreSection::Outside(expected));
    };
    check("redis://h:1/2", "redis://h:1/2");
    check("redis://h?queue=key", "redis://h?queue=key");
    check(
        "rediss://h?cacert=ca.pem&queue=a&cert=/c.pem&key=k%20x.pem",
        "rediss://h?cacert=/etc/ku%20mi/ca.pem&queue=a&cert=/c.pem&key=/etc/ku%20mi/k%20x.pem",
    );
    check("rediss://h?cacert=%2Fca.pem", "rediss://h?cacert=%2Fca.pem");
}

/// A directive whose value is a file or a directory is either resolved or one of those that are known not to be.
#[test]
fn every_directive_that_names_a_file_is_known() {
    let names = kumi_store::config::TABLE.iter().map(|row| row.name);
    let is_path = |name: &&str| {
        let ends = ["file", "dir", "socket"];
        ends.iter().any(|end| name.ends_with(end))
    };
    let unresolved: Vec<&str> = names
        .filter(is_path)
        .filter(|name| !PATH_DIRECTIVES.contains(name))
        .collect();
    assert_eq!(unresolved, ["cluster-config-file"]);
    for name in PATH_DIRECTIVES {
        assert!(kumi_store::config::TABLE.iter().any(|row| row.name == name));
    }
}

#[test]
fn what_is_shown_is_read_as_the_same_configuration() {
    let certificates = "node { tls-cert-file \"c\"; tls-key-file \"k\"; tls-ca-file \"a\" }";
    let odd = "work \"a\" exec=\"printf 'a\\\\n\\\"\\t\\u{1}\\u{85}é'\"";
    for text in [
        FULL,
        "",
        "store #false",
        "store \"redis://h/2\"",
        "store ephemeral=#false",
        "work \"a\" exec=\"b\" queue=\"default\"",
        "store url-file=\"a b\"",
        "http #false",
        certificates,
        odd,
        NodeConfig::example(),
    ] {
        let config = read(text);
        let shown = config.show();
        assert_eq!(read(&shown), config.with_defaults(), "{shown}");
    }
}

#[test]
fn secrets_of_flags_are_not_shown() {
    let mut config = NodeConfig::default();
    let secrets = BTreeMap::from([("requirepass".to_owned(), "sesame".to_owned())]);
    config.store = StoreSection::Here(StoreHere {
        directives: secrets,
        ..StoreHere::default()
    });
    for shown in [config.show(), format!("{config:?}")] {
        assert!(
            !shown.contains("sesame") && shown.contains("requirepass"),
            "{shown}"
        );
    }
    read(&config.show());
    config.store = StoreSection::Outside(StoreUrl::Plain("redis://ann:sesame@h:1".into()));
    for shown in [config.show(), format!("{config:?}")] {
        assert!(
            !shown.contains("sesame") && shown.contains("redis://h:1"),
            "{shown}"
        );
    }
}

#[test]
fn the_example_has_one_of_each_section() {
    let example = NodeConfig::example();
    read(example);
    // Without the slashes, the lines that are commented out are sound too.
    let uncommented: Vec<&str> = example
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("// "))
        .filter(|line| {
            ["work", "serve", "run", "cron", "}", "    env"]
                .iter()
                .any(|name| line.starts_with(name))
        })
        .collect();
    let config = read(&uncommented.join("\n"));
    let counts = [
        config.work.len(),
        config.serve.len(),
        config.run.len(),
        config.cron.len(),
    ];
    assert_eq!(counts, [1, 2, 1, 1]);
}

/// What a change from one text to another is, in words.
fn changes(from: &str, to: &str) -> (Vec<String>, Vec<String>) {
    let changes = read(from).changes(&read(to));
    let shown = |list: &[Change]| list.iter().map(ToString::to_string).collect();
    (shown(&changes.live), shown(&changes.restart))
}

#[test]
fn a_reload_applies_programs_and_leaves_addresses() {
    let check = |from: &str, to: &str, live: &[&str], restart: &[&str]| {
        let (found_live, found_restart) = changes(from, to);
        assert_eq!(found_live, live, "{from} to {to}");
        assert_eq!(found_restart, restart, "{from} to {to}");
    };
    check(FULL, FULL, &[], &[]);
    check(
        "",
        "node { port 7400; preset \"lan\" }\nstore\nhttp #true",
        &[],
        &[],
    );
    check(
        "node \"a\"",
        "node \"b\" { bind \"10.0.0.1\" }",
        &[],
        &["node bind: changed", "node name: changed"],
    );
    check(
        "",
        "node { log-level \"debug\"; key-file \"k\" }",
        &["node log-level: changed"],
        &["node key-file: added"],
    );
    check(
        "http { allow-host \"a\"; port 1 }",
        "http { allow-host \"b\" }",
        &["http allow-host: changed"],
        &["http port: changed"],
    );
    check(
        "store { maxmemory \"1gb\"; databases 4 }",
        "store { maxmemory \"2gb\"; port 7000; appendfsync \"always\" }",
        &["store maxmemory: changed", "store appendfsync: added"],
        &["store databases: removed", "store port: added"],
    );
    check(
        "store { maxmemory \"1gb\" }",
        "store #false",
        &[],
        &["store maxmemory: removed", "store URL: changed"],
    );
    // Redis's defaults are not the node's: it keeps an append-only file, and redis.conf may have a password.
    check(
        "store { appendonly #true; maxmemory \"1gb\"; requirepass-file \"p\"; save \"60 1\" }",
        "store { maxmemory \"2gb\" }",
        &["store maxmemory: changed"],
        &[
            "store appendonly: removed",
            "store requirepass: removed",
            "store save: removed",
        ],
    );
    check("store", "store ephemeral=#false", &[], &[]);
    check(
        "store",
        "store ephemeral=#true",
        &[],
        &["store ephemeral: added"],
    );
    check(
        "work \"a\" exec=\"x\"\nrun \"api\" exec=\"x\"\ncron \"c\" \"* * * * *\"",
        "work \"a\" exec=\"y\"\nwork \"a\" exec=\"y\" queue=\"q\"\nserve \"s.*\" exec=\"x\"\ncron \"c\" \"0 * * * *\"",
        &[
            "run api: removed",
            "work a: changed",
            "cron c: changed",
            "work a queue=q: added",
            "serve s.*: added",
        ],
        &[],
    );
    // The new entry takes what the old one had: it must be gone before.
    check(
        "run \"z\" exec=\"./api\"",
        "run \"a\" exec=\"./api\"",
        &["run z: removed", "run a: added"],
        &[],
    );
}

const REFERENCE: &str = include_str!("../../../../docs/kumi-kdl.md");

#[test]
fn the_reference_has_the_rows_of_the_table() {
    let mut rows = REFERENCE
        .lines()
        .filter(|line| line.starts_with("| `") || line.starts_with("| *"));
    for setting in SETTINGS {
        assert_eq!(rows.next(), Some(&*setting.row()));
    }
    assert_eq!(rows.next(), None);
}

#[test]
fn the_blocks_of_the_reference_are_read() {
    let blocks: Vec<&str> = REFERENCE.split("```kdl\n").skip(1).collect();
    assert!(blocks.len() >= 5, "{} blocks", blocks.len());
    for block in blocks {
        read(block.split("```").next().unwrap());
    }
}
