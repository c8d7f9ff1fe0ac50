//! Files that are not as this server left them: another server has written on, a crash has torn the end, bytes have changed.

use super::{AOF, Server, files};
use crate::common::{Client, binary, request};
use kumi_store::crc64;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sends `SET <prefix><number>` for each number, in pipelines.
fn set_all(client: &mut Client<UnixStream>, prefix: &str, count: usize, pipeline: usize) {
    for start in (0..count).step_by(pipeline) {
        let numbers = start..count.min(start + pipeline);
        let requests = numbers.clone().flat_map(|number| {
            let (key, value) = (format!("{prefix}{number}"), format!("value {number}"));
            request(&["SET", &key, &value])
        });
        client.send(requests.collect::<Vec<u8>>());
        for _ in numbers {
            client.expect("+OK\r\n");
        }
    }
}

fn increment(dir: &Path) -> PathBuf {
    files(dir, ".incr.aof").pop().unwrap()
}

/// What `kumi check-aof` finds, without and with `--fix`.
fn check(dir: &Path, fix: bool) -> kumi_server::Checked {
    kumi_server::check_aof(&dir.join("appendonlydir"), fix).unwrap()
}

#[test]
fn what_redis_wrote_after_a_crash_of_kumi_is_loaded() {
    for torn in [&b""[..], b"*3\r\n$3\r\nSET\r\n$1\r\nz\r\n$90"] {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::kumi(dir.path(), AOF);
        set_all(&mut server.connect(), "kumi:", 300, 30);
        server.kill();
        // What a crash in the middle of a write leaves. redis-server cuts it off too.
        let path = increment(dir.path());
        fs::write(&path, [&fs::read(&path).unwrap(), torn].concat()).unwrap();

        let server = Server::redis(dir.path(), AOF);
        set_all(&mut server.connect(), "redis:", 5000, 100);
        // A transaction in another database, and a value of zeros.
        let mut client = server.connect();
        for line in ["SELECT 3", "MULTI", "INCR n", "INCR n", "EXEC", "SELECT 0"] {
            client.line(line);
        }
        let zeros = "\0".repeat(100_000);
        client.ask(&["SET", "zeros", &zeros]);
        let digest = server.digest();
        server.stop();
        assert!(check(dir.path(), false).valid);

        let server = Server::kumi(dir.path(), AOF);
        assert_eq!(
            (server.line("DBSIZE"), server.digest()),
            ("5301".into(), digest)
        );
        // Its own writes follow, and another crash.
        server.line("SET last 1");
        let digest = server.digest();
        server.kill();
        let server = Server::kumi(dir.path(), AOF);
        assert_eq!(
            (server.line("DBSIZE"), server.digest()),
            ("5302".into(), digest)
        );
        server.stop();
        assert!(check(dir.path(), false).valid);
        assert_eq!(
            files(dir.path(), ".cut"),
            Vec::<PathBuf>::new(),
            "nothing was cut off"
        );
    }
}

/// The position of some bytes.
fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    let mut windows = bytes.windows(wanted.len());
    windows.position(|window| window == wanted).unwrap()
}

/// Has a file look as if kumi had written it before the system was started: its first group names another boot.
fn reboot(file: &mut [u8]) {
    let hexadecimal = |digits: &[u8]| u64::from_str_radix(str::from_utf8(digits).unwrap(), 16);
    let seed = find(file, b"#K:open:") + 8;
    let start = seed + 16 + 2;
    let seed = hexadecimal(&file[seed..seed + 16]).unwrap();
    let boot = find(file, b"#K:boot:") + 8;
    file[boot] = if file[boot] == b'0' { b'1' } else { b'0' };
    let end = boot + find(&file[boot..], b"\r\n#K:fsync:") + 2;
    let end = end + find(&file[end..], b"\n") + 1;
    let crc = end + find(&file[end..], b"\r\n") - 16;
    let sum = format!("{:016x}", crc64::update(seed, &file[start..end]));
    file[crc..crc + 16].copy_from_slice(sum.as_bytes());
}

/// The keys that a server finds in a copy of a directory, or none if it does not start.
fn keys_found(command: Command, dir: &Path, increment: &[u8]) -> Option<String> {
    let copy = tempfile::tempdir().unwrap();
    let files_dir = copy.path().join("appendonlydir");
    fs::create_dir(&files_dir).unwrap();
    for path in files(dir, "") {
        fs::copy(&path, files_dir.join(path.file_name().unwrap())).unwrap();
    }
    fs::write(self::increment(copy.path()), increment).unwrap();
    let server = Server::try_start(command, copy.path(), AOF).ok()?;
    Some(server.line("DBSIZE"))
}

#[test]
fn what_redis_wrote_is_loaded_cut_off_and_refused_as_redis_does_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), AOF);
    set_all(&mut server.connect(), "kumi:", 30, 10);
    server.kill();
    let server = Server::redis(dir.path(), AOF);
    let mut client = server.connect();
    set_all(&mut client, "redis:", 50, 10);
    client.ask(&["SET", "zero", "a\0b"]);
    set_all(&mut client, "later:", 20, 10);
    server.stop();
    let whole = fs::read(increment(dir.path())).unwrap();

    let middle = find(&whole, b"redis:25") - b"*3\r\n$3\r\nSET\r\n$8\r\n".len();
    let with = |at: usize, byte: u8| {
        let mut file = whole.clone();
        file[at] = byte;
        file
    };
    let cases = [
        ("whole", whole.clone(), Some("101")),
        ("cut short", whole[..whole.len() - 3].to_vec(), Some("100")),
        ("no request", with(middle, b'x'), None),
        ("a wrong length", with(middle + 5, b'2'), None),
        ("a zero", with(middle, 0), None),
        ("text", [&whole[..], b"SET a 1\r\n"].concat(), None),
    ];
    for (name, file, expected) in cases {
        let mut rebooted = file.clone();
        reboot(&mut rebooted);
        let redis = keys_found(Command::new("redis-server"), dir.path(), &file);
        let kumi = keys_found(binary(), dir.path(), &file);
        let later = keys_found(binary(), dir.path(), &rebooted);
        let all = [redis, kumi, later];
        assert_eq!(
            all.each_ref().map(Option::as_deref),
            [expected; 3],
            "{name}"
        );
    }

    // A repair keeps the requests before the damage.
    fs::write(increment(dir.path()), with(middle, b'x')).unwrap();
    assert!(check(dir.path(), true).valid);
    assert_eq!(fs::read(increment(dir.path())).unwrap(), whole[..middle]);
    assert_eq!(Server::kumi(dir.path(), AOF).line("DBSIZE"), "55");
}

#[test]
fn what_is_cut_off_is_kept_beside_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::kumi(dir.path(), AOF);
    set_all(&mut server.connect(), "k", 50, 1);
    server.kill();
    let path = increment(dir.path());
    let good = fs::read(&path).unwrap();
    for (round, torn) in [&b"*3\r\n$3\r\nSET\r\n$1\r\nz"[..], &[0; 5000]]
        .into_iter()
        .enumerate()
    {
        let before = fs::read(&path).unwrap();
        fs::write(&path, [&before[..], torn].concat()).unwrap();
        let checked = check(dir.path(), false);
        assert!(!checked.valid);
        let server = Server::kumi(dir.path(), AOF);
        assert_eq!(server.line("DBSIZE"), "50");
        assert!(fs::read(&path).unwrap().starts_with(&before));
        let kept = files(dir.path(), ".cut");
        assert_eq!(kept.len(), round + 1);
        let is_kept = |path: &PathBuf| fs::read(path).unwrap() == torn;
        assert!(kept.iter().any(is_kept), "round {round}");
        let name = kept.iter().find(|path| is_kept(path)).unwrap();
        assert!(server.said(name.to_str().unwrap()), "{:#?}", server.log);
        server.kill();
    }
    assert!(fs::read(&path).unwrap().starts_with(&good));
}

#[test]
fn a_flipped_byte_never_loses_writes_silently() {
    const KEYS: usize = 2000;
    for fsync in ["always", "everysec", "no"] {
        let args = ["--appendonly", "yes", "--appendfsync", fsync];
        let dir = tempfile::tempdir().unwrap();
        let server = Server::kumi(dir.path(), &args);
        set_all(&mut server.connect(), "k", KEYS, 20);
        server.kill();
        let path = increment(dir.path());
        let good = fs::read(&path).unwrap();
        let len = good.len();
        // A tenth of the file, the marks at its beginning, its last bytes, and places in between.
        let ends = [
            len / 10,
            9,
            12,
            30,
            60,
            len - 1,
            len - 2,
            len - 10,
            len - 40,
            len - 200,
        ];
        let places = ends
            .into_iter()
            .chain((0..40).map(|part| len * part / 40 + part));
        let (mut refused, mut loaded) = (0, 0);
        for (number, at) in places.enumerate() {
            let mut damaged = good.clone();
            damaged[at] ^= 1 << (number % 8);
            fs::write(&path, &damaged).unwrap();
            let checked = check(dir.path(), false);
            // Most verdicts are those of the check alone; it loads the files as the server does.
            if number >= 12 {
                assert!(!checked.valid, "{fsync}, byte {at}: {checked:?}");
                continue;
            }
            match Server::try_start(binary(), dir.path(), &args) {
                Err(log) => {
                    refused += 1;
                    let log = log.join("\n");
                    assert!(
                        log.contains("kumi check-aof --fix"),
                        "{fsync}, byte {at}: {log}"
                    );
                    assert!(!checked.valid, "{fsync}, byte {at}: {checked:?}");
                    assert_eq!(fs::read(&path).unwrap(), damaged, "nothing was changed");
                }
                // The change was in a mark that is not needed.
                Ok(server) => {
                    loaded += 1;
                    assert_eq!(
                        server.line("DBSIZE"),
                        KEYS.to_string(),
                        "{fsync}, byte {at}"
                    );
                }
            }
            for cut in files(dir.path(), ".cut") {
                fs::remove_file(cut).unwrap();
            }
        }
        assert!(refused >= 6, "{fsync}: {refused} refused, {loaded} loaded");

        // The check cuts it off when it is told to, and keeps all bytes.
        let mut damaged = good.clone();
        damaged[len / 10] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(check(dir.path(), true).valid);
        let kept = files(dir.path(), ".cut");
        let all = [fs::read(&path).unwrap(), fs::read(&kept[0]).unwrap()].concat();
        assert!(all == damaged && kept.len() == 1);
        let server = Server::kumi(dir.path(), &args);
        let keys: usize = server.line("DBSIZE").parse().unwrap();
        assert!((KEYS / 20..KEYS / 5).contains(&keys), "{keys}");
    }
}
