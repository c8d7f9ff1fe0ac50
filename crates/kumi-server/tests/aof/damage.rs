//! Files that are not as this server left them: another server has written on, a crash has torn the end, bytes have changed.

use super::{AOF, Server, files};
use crate::common::{Client, binary, request};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

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
