//! Whole files: recorded ones of 6.2 and 7.2 servers, and exchange with a redis-server.

use crate::testing::{Lab, load};
use std::process::{Command, Stdio};

#[test]
fn what_is_no_file_is_refused_with_its_reason() {
    for (bytes, reason) in [
        (&b""[..], "at byte 0: the input ends inside a value"),
        (b"REDIS00", "at byte 0: the input ends inside a value"),
        (b"hello, world", "at byte 0: not an RDB file"),
        (b"REDIS00x1", "at byte 0: not an RDB file"),
        (
            b"REDIS0000\xff",
            "at byte 5: RDB version 0 is not supported",
        ),
        (b"REDIS0012\xff", "Redis 7.4 and later write it"),
        (b"VALKEY080\xff", "RDB version 80 is not supported"),
        (b"VALKEY080\xff", "Valkey 9 writes it"),
        (b"VALKEY08x\xff", "at byte 0: not an RDB file"),
        (b"REDIS0010", "at byte 9: the input ends inside a value"),
        (
            b"REDIS0010\xfe\x20\x00\x01k\x01v\xff",
            "the file has a database 32, and there are 16",
        ),
        (
            b"REDIS0010\x00\x01k\x01v\x00\x01k\x01w\xff\0\0\0\0\0\0\0\0",
            "key 'k' occurs twice in database 0",
        ),
        (b"REDIS0010\x63\x01kabc", "key 'k': unknown value type 99"),
        (
            b"REDIS0010\xff\x01\x02\x03\x04\x05\x06\x07\x08",
            "the checksum is 0x0807060504030201",
        ),
    ] {
        let error = load(bytes).expect_err("it is no file");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn empty_collections_are_left_out() {
    let empty_ziplist = b"\x0b\x0b\0\0\0\x0a\0\0\0\0\0\xff";
    let empty_listpack = b"\x07\x07\0\0\0\0\0\xff";
    let values: [&[u8]; 13] = [
        b"\x01\x01e\x00",
        b"\x02\x01e\x00",
        b"\x04\x01e\x00",
        b"\x05\x01e\x00",
        b"\x0e\x01e\x00",
        &[b"\x0e\x01e\x01", &empty_ziplist[..]].concat(),
        &[b"\x0d\x01e", &empty_ziplist[..]].concat(),
        b"\x03\x01e\x00",
        &[b"\x0a\x01e", &empty_ziplist[..]].concat(),
        &[b"\x0c\x01e", &empty_ziplist[..]].concat(),
        &[b"\x10\x01e", &empty_listpack[..]].concat(),
        &[b"\x11\x01e", &empty_listpack[..]].concat(),
        b"\x12\x01e\x00",
    ];
    // A deadline before an empty collection is not the next key's.
    let deadline = b"\xfc\x00\x00\x00\x00\x00\x00\x00\x01";
    for value in values {
        let file = [
            b"REDIS0009\xfe\x00\x00\x01a\x011",
            &deadline[..],
            value,
            b"\x00\x01b\x012\xff\0\0\0\0\0\0\0\0",
        ]
        .concat();
        let (mut lab, loaded) = load(&file).expect("it loads");
        assert_eq!(loaded.empty, 1);
        lab.check(&[
            ("DBSIZE", ":2\r\n"),
            ("GET b", "$1\r\n2\r\n"),
            ("TTL b", ":-1\r\n"),
        ]);
    }
    // RESTORE of one is still an error: see `damage.rs`.
}

#[test]
fn the_file_of_a_7_2_server_gives_its_data() {
    let (mut lab, loaded) = load(include_bytes!(
        "../../../../../../tests/fixtures/redis-7.2/dump.rdb"
    ))
    .expect("it loads");
    assert_eq!(loaded.version, 11);
    lab.allow_debug();
    let digest = "+ca426299f12bf1c74cb851bdb623ca5cc9f424e8\r\n";
    assert_eq!(lab.run("DEBUG DIGEST"), digest);
}

#[test]
fn the_file_of_a_6_2_server_gives_its_data() {
    let (mut lab, loaded) = load(include_bytes!(
        "../../../../../../tests/fixtures/redis-6.2/dump.rdb"
    ))
    .expect("it loads");
    assert_eq!((loaded.version, loaded.written_by.as_str()), (9, "6.2.14"));
    lab.allow_debug();
    let digest = "+f5137986576df8acbb81394e7e6024594b800cb1\r\n";
    assert_eq!(lab.run("DEBUG DIGEST"), digest);
}

#[test]
fn old_files_have_no_checksum_and_seconds() {
    let file = b"REDIS0003\xfe\x00\xfd\xff\xff\xff\x7f\x00\x01k\x01v\xff";
    let (mut lab, loaded) = load(file).expect("it loads");
    assert_eq!((loaded.keys, loaded.version), (1, 3));
    assert_eq!(lab.run("EXPIRETIME k"), ":2147483647\r\n");
}

#[test]
fn data_of_modules_beside_the_keys_is_refused_by_name() {
    // "ft_index0" version 2: nine times six bits, then ten.
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let name = b"ft_index0".iter().fold(0u64, |bits, character| {
        let index = alphabet.iter().position(|other| other == character);
        bits << 6 | index.expect("it is in the alphabet") as u64
    });
    // Before the keys and after them.
    for when in [1, 2] {
        let mut file = b"REDIS0010\xf7\x81".to_vec();
        file.extend((name << 10 | 2).to_be_bytes());
        file.extend([2, when, 5, 2, b'h', b'i', 0]);
        file.extend(b"\x00\x01k\x01v\xff\0\0\0\0\0\0\0\0");
        assert_eq!(
            load(&file).map(|_| ()),
            Err("at byte 9: The RDB file contains AUX module data I can't load: no matching module 'ft_index0'".to_owned())
        );
    }
}

#[test]
fn libraries_of_functions_are_handed_over() {
    let mut file = b"REDIS0010".to_vec();
    file.extend(b"\xf5\x13#!lua name=lib\nrest");
    file.extend(b"\x00\x01k\x01v\xff\0\0\0\0\0\0\0\0");
    let (_, loaded) = load(&file).expect("it loads");
    let library: Box<[u8]> = Box::from(&b"#!lua name=lib\nrest"[..]);
    assert_eq!((loaded.keys, loaded.libraries), (1, vec![library]));
}

#[test]
fn a_redis_server_loads_what_save_writes() {
    let mut lab = Lab::new();
    for line in [
        "SET int 12345",
        "SET text hello",
        "SET long aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "SET timed x PXAT 4102444800000",
        "RPUSH list a 1 -300 70000",
        "HSET hash f v g 2",
        "SADD ints 1 2 300",
        "SADD words a b c",
        "ZADD zset 1 a -2.5 b inf c",
        "SELECT 9",
        "SET other db",
    ] {
        let reply = lab.run(line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    lab.allow_debug();
    lab.check(&[("SAVE", "+OK\r\n"), ("SELECT 0", "+OK\r\n")]);
    let digest = lab.run("DEBUG DIGEST");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("dump.rdb");
    std::fs::write(&file, lab.host.saved.as_deref().expect("a file")).expect("written");
    let socket = directory.path().join("s");
    let mut server = Command::new("redis-server")
        .args([
            "--port",
            "0",
            "--save",
            "",
            "--enable-debug-command",
            "local",
            "--dir",
        ])
        .arg(directory.path())
        .arg("--unixsocket")
        .arg(&socket)
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed");
    let ask = |words: &[&str]| {
        let output = Command::new("redis-cli")
            .arg("-s")
            .arg(&socket)
            .args(words)
            .output();
        let output = output.expect("redis-cli is installed");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let mut answer = String::new();
    for _ in 0..500 {
        answer = ask(&["PING"]);
        if answer == "PONG" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let theirs = ask(&["DEBUG", "DIGEST"]);
    ask(&["SAVE"]);
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!(answer, "PONG", "redis-server did not load the file");
    assert_eq!(format!("+{theirs}\r\n"), digest);
    let theirs = std::fs::read(&file).expect("a file");
    let (mut again, loaded) = load(&theirs).expect("their file loads");
    again.allow_debug();
    assert_eq!(loaded.keys, 10);
    assert_eq!(again.run("DEBUG DIGEST"), digest);
}
