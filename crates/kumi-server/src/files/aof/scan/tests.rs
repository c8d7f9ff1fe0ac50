use super::*;
use crate::files::aof::append::testing::{group, group_of, request as encode};
use crate::files::aof::window::CHUNK;
use kumi_store::config::Fsync;

/// The requests that a file holds, and where it is cut off; or where it is damaged.
fn scan(bytes: &[u8]) -> Result<(Vec<String>, Option<u64>), u64> {
    scan_in(None, bytes)
}

/// The same in a boot of the system.
fn scan_in(boot: Option<u128>, bytes: &[u8]) -> Result<(Vec<String>, Option<u64>), u64> {
    let mut scanner = Scanner::new(&bytes, bytes.len() as u64, 0, boot).unwrap();
    let mut requests = Vec::new();
    loop {
        match scanner.next_runs() {
            Ok(Some(runs)) => {
                for run in &runs {
                    let (bytes, _) = scanner.run(run);
                    requests.push(String::from_utf8_lossy(bytes).replace("\r\n", " "));
                }
            }
            Ok(None) => return Ok((requests, scanner.cut().map(|cut| cut.at))),
            Err(ScanError::Damaged { at, .. }) => return Err(at),
            Err(ScanError::Read(error)) => panic!("{error}"),
        }
    }
}

fn text(line: &str) -> String {
    String::from_utf8(encode(line))
        .unwrap()
        .replace("\r\n", " ")
}

#[test]
fn another_servers_file_is_read_as_redis_reads_it() {
    let mut file = [encode("SET a 1"), b"#TS:12\r\n".to_vec(), encode("DEL a")].concat();
    let good = file.len() as u64;
    let both = vec![text("SET a 1"), text("DEL a")];
    assert_eq!(scan(&file), Ok((both.clone(), None)));
    file.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n$1");
    assert_eq!(scan(&file), Ok((both.clone(), Some(good))));
    file.truncate(usize::try_from(good).unwrap());
    file.extend_from_slice(b"*1\r\n$900\r\nabc");
    assert_eq!(scan(&file), Ok((both.clone(), Some(good))));
    file.truncate(usize::try_from(good).unwrap());
    file.extend_from_slice(b"#K:op");
    assert_eq!(scan(&file), Ok((both, Some(good))));
    file.truncate(usize::try_from(good).unwrap());
    for rest in [
        "SET a 1\r\n",
        "SET\0\0\0",
        "*x\r\n",
        "*1\r\n$4\r\nPINGPONG\r\n",
        "*0\r\n",
        "*-1\r\n",
    ] {
        let damaged = [&file, rest.as_bytes()].concat();
        assert_eq!(scan(&damaged), Err(good), "{rest:?}");
    }
}

#[test]
fn an_open_that_was_not_synced_is_cut_off() {
    let mut closed = mark::OPEN.to_vec();
    closed.extend_from_slice(&group(0, &["SET a 1"]));
    closed.extend_from_slice(mark::CLOSE);
    let mut opened = Vec::new();
    mark::open_line(&mut opened, 7);
    for file in [encode("SET a 1"), closed] {
        let good = file.len() as u64;
        let expected = Ok((vec![text("SET a 1")], Some(good)));
        for written in 0..opened.len() {
            for zeros in [1, 100, 5000] {
                let torn = [&file[..], &opened[..written], &vec![0; zeros]].concat();
                assert_eq!(scan(&torn), expected, "{written} and {zeros} zeros");
            }
        }
        let later = [&file[..], &[0; 20], b":24:0123456789abcdef\r\n"].concat();
        assert_eq!(scan(&later), expected);
        // Zeros with requests behind them are damage.
        let rest = encode(&format!("SET b {}", "x".repeat(400)));
        let damaged = [&file[..], &[0; 20], &rest].concat();
        assert_eq!(scan(&damaged), Err(good));
    }
}

#[test]
fn a_value_cannot_pose_as_a_group() {
    let mut file = Vec::new();
    mark::open_line(&mut file, 0x1234);
    let good = file.len() as u64;
    // A client cannot know the seed.
    let value = [mark::OPEN.to_vec(), group(good + 1, &["SET b 1"])].concat();
    let mut body = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n".to_vec();
    kumi_resp::encode::bulk(&mut body, &value);
    let mut head = Vec::new();
    mark::sync_line(&mut head, good + 1);
    let mut end = Vec::new();
    mark::end_group(&mut end, 0x1234, [&head, &body]);
    let whole = [&file[..], &head, &body, &end].concat();
    assert_eq!(scan(&whole).map(|(_, cut)| cut), Ok(None));
    let request = file.len() + head.len() + body.len();
    for len in file.len() + head.len() + 1..request {
        let requests = Ok((Vec::new(), Some(good + head.len() as u64)));
        assert_eq!(scan(&whole[..len]), requests, "{len}");
    }
    // A group of the file itself, behind the damage, is the proof that it is damage.
    let mut damaged = whole.clone();
    damaged[file.len() + 8] ^= 1;
    assert_eq!(scan(&damaged), Ok((Vec::new(), Some(good))));
    damaged.extend_from_slice(&whole[file.len()..]);
    assert_eq!(scan(&damaged), Err(good));
}

#[test]
fn half_a_transaction_is_cut_off() {
    let head = encode("SET a 1");
    let rest = [encode("MULTI"), encode("SET b 1")].concat();
    let file = [&head[..], &rest].concat();
    let good = head.len() as u64;
    assert_eq!(scan(&file), Ok((vec![text("SET a 1")], Some(good))));
    let torn = &file[..file.len() - 2];
    assert_eq!(scan(torn), Ok((vec![text("SET a 1")], Some(good))));
    let whole = [&file[..], &encode("EXEC")].concat();
    assert_eq!(scan(&whole).map(|(_, cut)| cut), Ok(None));
}

#[test]
fn behind_an_open_only_whole_groups_count() {
    let mut file = mark::OPEN.to_vec();
    file.extend_from_slice(&group(0, &["SET a 1", "SET b 1"]));
    let both = text("SET a 1") + &text("SET b 1");
    let good = file.len();
    assert_eq!(scan(&file), Ok((vec![both.clone()], None)));
    // What is left of a group: its whole requests count.
    let next = group(0, &["SET c 1"]);
    let request = encode("SET c 1").len();
    for len in 1..next.len() {
        let torn = [&file[..], &next[..len]].concat();
        let mut zeros = torn.clone();
        zeros.resize(good + next.len() + 100, 0);
        let (mut expected, mut end) = (vec![both.clone()], good);
        if len >= request {
            expected.push(text("SET c 1"));
            end += request;
        }
        let cut = (torn.len() > end).then_some(end as u64);
        assert_eq!(scan(&torn), Ok((expected.clone(), cut)), "{len}");
        let cut = Some(end as u64);
        assert_eq!(scan(&zeros), Ok((expected, cut)), "{len} and zeros");
    }
    let mut flipped = [&file[..], &next].concat();
    flipped[good + 18] ^= 1;
    assert_eq!(scan(&flipped), Ok((vec![both], Some(good as u64))));
    // With a whole group behind it, it is a hole.
    flipped.extend_from_slice(&group(0, &["SET d 1"]));
    assert_eq!(scan(&flipped), Err(good as u64));
}

/// The beginning of a file that a server wrote in boot 1.
fn opened(fsync: Fsync) -> Vec<u8> {
    let mut head = Vec::new();
    mark::boot_line(&mut head, 1);
    mark::fsync_line(&mut head, fsync);
    [mark::OPEN, &group_of(0, &head)[..]].concat()
}

#[test]
fn a_hole_is_damage_unless_a_power_failure_explains_it() {
    let (same, later) = (Some(1), Some(2));
    for fsync in [Fsync::Always, Fsync::EverySecond, Fsync::No] {
        let mut file = opened(fsync);
        file.extend_from_slice(&group(0, &["SET a 1"]));
        let good = file.len();
        let hole = group(0, &["SET b 1"]);
        let behind = group(0, &["SET c 1"]);
        file.extend_from_slice(&[hole.clone(), behind.clone()].concat());
        let may_be_lost = fsync == Fsync::EverySecond;
        for at in 0..hole.len() {
            let mut flipped = file.clone();
            flipped[good + at] ^= 1;
            assert_eq!(scan_in(same, &flipped), Err(good as u64), "{fsync:?} {at}");
            let expected = match may_be_lost {
                true => Ok((vec![text("SET a 1")], Some(good as u64))),
                false => Err(good as u64),
            };
            assert_eq!(scan_in(later, &flipped), expected, "{fsync:?} {at}");
            assert_eq!(scan_in(None, &flipped), expected, "{fsync:?} {at}");
            // A later group shows that it had been synced.
            flipped.extend_from_slice(&group(good as u64 + 1, &["SET d 1"]));
            assert_eq!(scan_in(later, &flipped), Err(good as u64), "{fsync:?} {at}");
        }
    }
}

#[test]
fn a_flipped_byte_never_loses_a_group_silently() {
    let head = opened(Fsync::No);
    let groups = [&["SET a 1"][..], &["SET b 1", "SET bb 1"], &["SET c 1"]];
    let mut file = head.clone();
    for lines in groups {
        file.extend_from_slice(&group(0, lines));
    }
    let requests = |bytes: &[u8]| match scan_in(Some(1), bytes) {
        // What is cut off is the last mark.
        Ok((runs, _)) => Some(runs.concat()),
        Err(_) => None,
    };
    let all = requests(&file).expect("it is whole");
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut flipped = file.clone();
            flipped[at] ^= 1 << bit;
            // A mark that is no longer one guards nothing, and what it guarded is there.
            let found = requests(&flipped);
            assert!(
                found.as_ref().is_none_or(|found| *found == all),
                "{at}: {found:?}"
            );
        }
    }
}

#[test]
fn a_seed_that_changed_is_damage() {
    let mut file = Vec::new();
    mark::open_line(&mut file, 7);
    for number in 0..3 {
        let body = encode(&format!("SET k {number}"));
        file.extend_from_slice(&body);
        mark::end_group(&mut file, 7, [b"", &body]);
    }
    let good = mark::OPEN.len() + 17;
    assert_eq!(scan(&file).map(|(_, cut)| cut), Ok(None));
    let mut flipped = file.clone();
    flipped[good - 3] ^= 1;
    assert_eq!(scan(&flipped), Err(good as u64));
    // Also if there is one group with data behind that of the server, or no other group.
    let head = {
        let mut head = Vec::new();
        mark::boot_line(&mut head, 1);
        mark::fsync_line(&mut head, Fsync::EverySecond);
        head
    };
    for lines in [&["SET k 1"][..], &[]] {
        let mut short = Vec::new();
        mark::open_line(&mut short, 7);
        let bodies = lines.iter().map(|line| encode(line));
        for body in [head.clone()].into_iter().chain(bodies) {
            short.extend_from_slice(&body);
            mark::end_group(&mut short, 7, [b"", &body]);
        }
        assert_eq!(scan(&short).map(|(_, cut)| cut), Ok(None));
        for digit in 0..16 {
            let mut flipped = short.clone();
            flipped[good - 3 - digit] ^= 1;
            assert_eq!(scan(&flipped), Err(good as u64), "{lines:?} {digit}");
        }
    }
    // A later server continues with the same seed.
    let end = file.len();
    mark::open_line(&mut file, 7);
    let body = encode("SET k 4");
    file.extend_from_slice(&body);
    mark::end_group(&mut file, 7, [b"", &body]);
    assert_eq!(scan(&file).map(|(_, cut)| cut), Ok(None));
    file[end + good - 3] ^= 1;
    assert_eq!(scan(&file), Err(end as u64));
}

#[test]
fn what_another_server_wrote_behind_a_group_is_loaded() {
    for (boot, zeros) in [(Some(1), 5000), (Some(2), 200), (None, 200)] {
        let mut file = opened(Fsync::EverySecond);
        file.extend_from_slice(&group(0, &["SET a 1"]));
        // The server was killed here, and left a part of a group.
        let good = file.len();
        let mut tail = encode("SELECT 0");
        let mut middle = 0;
        for number in 0..100 {
            if number == 50 {
                middle = good + tail.len();
            }
            let value = "x".repeat(4000) + &"\0".repeat(zeros) + "y";
            tail.extend_from_slice(&encode(&format!("SET k{number} {value}")));
        }
        tail.extend_from_slice(&[encode("MULTI"), encode("INCR n"), encode("EXEC")].concat());
        file.extend_from_slice(&tail);
        let found = |file: &[u8], boot| scan_in(boot, file).map(|(all, cut)| (all.concat(), cut));
        let loaded = text("SET a 1") + &String::from_utf8_lossy(&tail).replace("\r\n", " ");
        assert_eq!(found(&file, boot), Ok((loaded.clone(), None)), "{boot:?}");
        // An incomplete request or transaction behind it is cut off.
        for rest in ["*2\r\n$3\r\nDEL\r\n$1", "*1\r\n$5\r\nMULTI\r\n"] {
            let torn = [&file[..], rest.as_bytes()].concat();
            let expected = Ok((loaded.clone(), Some(file.len() as u64)));
            assert_eq!(found(&torn, boot), expected, "{rest:?}");
        }
        // A hole in it is damage, as in Redis. The place is that of the request, so that a repair keeps what is before.
        for at in [good, middle] {
            let mut flipped = file.clone();
            flipped[at] ^= 1;
            assert_eq!(scan_in(boot, &flipped), Err(at as u64), "{boot:?}");
        }
        let garbage = [&file[..], b"SET b 1\r\n"].concat();
        let end = file.len() as u64;
        assert_eq!(scan_in(boot, &garbage), Err(end), "{boot:?}");
        // A kumi that opens the file behind it continues with the same seed.
        let opened_at = file.len() as u64;
        file.extend_from_slice(mark::OPEN);
        file.extend_from_slice(&group(opened_at, &["SET z 1"]));
        let loaded = loaded + &text("SET z 1");
        assert_eq!(found(&file, Some(3)), Ok((loaded, None)));
    }
}

#[test]
fn lost_pages_are_not_loaded_as_what_another_server_wrote() {
    let mut file = opened(Fsync::EverySecond);
    file.extend_from_slice(&group(0, &["SET a 1"]));
    let first = text("SET a 1") + &text("SET b 1");
    file.extend_from_slice(&encode("SET b 1"));
    let good = file.len();
    let value = format!("SET c {}", "x".repeat(9000));
    file.extend_from_slice(&encode(&value));
    let value = text(&value);
    let end = file.len();
    file.extend_from_slice(&encode("SET d 1"));
    let len = file.len();
    // Pages in a value with an incomplete request behind it, a page up to the end of the value, a part of a page at the
    // end of the file.
    let lost = [
        (4096..8192, &b"*2\r\n$3\r\nDEL"[..], good),
        (end - end % 512..len, b"", good),
        (end + 3..len, b"", end),
    ];
    for (pages, rest, cut) in lost {
        let mut file = [&file[..], rest].concat();
        file[pages.clone()].fill(0);
        // After a power failure the zeros are pages that were never written ...
        let found = |boot| scan_in(boot, &file).map(|(all, cut)| (all.concat().len(), cut));
        let loaded = first.len() + if cut == end { value.len() } else { 0 };
        let expected = Ok((loaded, Some(cut as u64)));
        assert_eq!(found(Some(2)), expected, "{pages:?}");
        assert_eq!(found(None), expected, "{pages:?}");
    }
    // ... and without one zeros in a value are what was written.
    file[4096..8192].fill(0);
    let torn = [&file[..], b"*2\r\n$3\r\nDEL"].concat();
    let whole = Ok(Some(len as u64));
    assert_eq!(scan_in(Some(1), &torn).map(|(_, cut)| cut), whole);
    // Zeros that are no pages are damage where a request should be, and a part of a value otherwise.
    file[4096..8192].fill(b'x');
    file[5000..7000].fill(0);
    assert_eq!(scan_in(Some(2), &file).map(|(_, cut)| cut), Ok(None));
    file[end..end + 3].fill(0);
    assert_eq!(scan_in(Some(2), &file), Err(end as u64));
}

#[test]
fn whole_requests_up_to_the_end_of_the_file_are_loaded_with_their_zeros() {
    for boot in [Some(1), Some(2), None] {
        let mut file = opened(Fsync::EverySecond);
        file.extend_from_slice(&group(0, &["SET a 1"]));
        let good = file.len();
        // The zeros begin, or end, where a block does; and one block of them is all of the value.
        let request = encode(&format!("SET b {}", "x".repeat(9000)));
        let value = good + request.len() - 9002;
        let block = value.next_multiple_of(512);
        for zeros in [
            block..block + 512,
            block..block + 1000,
            block + 100..block + 1024,
            value..value + 9000,
        ] {
            let mut file = [&file[..], &request].concat();
            file[zeros.clone()].fill(0);
            file.extend_from_slice(&encode("SET c 1"));
            let loaded = String::from_utf8_lossy(&file[good..]).replace("\r\n", " ");
            let found = scan_in(boot, &file).map(|(all, cut)| (all.concat(), cut));
            let expected = text("SET a 1") + &loaded;
            assert_eq!(found, Ok((expected, None)), "{boot:?} {zeros:?}");
        }
    }
}

#[test]
fn lost_pages_beside_zeros_of_a_value_are_cut_off() {
    let mut file = opened(Fsync::EverySecond);
    file.extend_from_slice(&group(0, &["SET a 1"]));
    let good = file.len();
    // A value that begins with zeros, in a request whose first block is lost from the last group on: the header is zeros,
    // and more zeros follow than the block has.
    let value = "\0".repeat(700) + &"x".repeat(3000);
    file.extend_from_slice(&encode(&format!("SET b {value}")));
    let header = file[good..].iter().position(|&byte| byte == 0).unwrap();
    assert!(good + header < good.next_multiple_of(512));
    let mut lost = file.clone();
    lost[good..good.next_multiple_of(512)].fill(0);
    assert!(lost[good + header + 700] != 0 && !(good + header + 700).is_multiple_of(512));
    let cut = |bytes: &[u8], boot| scan_in(boot, bytes).map(|(_, cut)| cut);
    for boot in [Some(2), None] {
        assert_eq!(cut(&lost, boot), Ok(Some(good as u64)), "{boot:?}");
    }
    assert_eq!(cut(&lost, Some(1)), Err(good as u64));
    // A lost block in the middle, with zeros of the values on both sides of it: neither end is at a border.
    let mut file = file[..good].to_vec();
    let first = encode(&format!("SET b {}", "\0".repeat(300)));
    let second = encode(&format!("SET c {}", "\0".repeat(300) + "x"));
    let border = (good + first.len()).next_multiple_of(512);
    let filler = encode(&format!(
        "SET f {}",
        "x".repeat(border - good + 200 - first.len())
    ));
    file.extend_from_slice(&filler);
    let before = file.len() as u64;
    file.extend_from_slice(&first);
    file.extend_from_slice(&second);
    let block = (file.len() - second.len()) / 512 * 512;
    file[block..block + 512].fill(0);
    let zeros = file[block..].iter().take_while(|&&byte| byte == 0).count();
    assert!(file[block - 1] == 0 && zeros > 512 && !(block + zeros).is_multiple_of(512));
    for boot in [Some(2), None] {
        assert_eq!(cut(&file, boot), Ok(Some(before)), "{boot:?}");
    }
    assert_eq!(cut(&file, Some(1)), Err(before));
    // Zeros without a whole block are damage.
    let mut damaged = file[..good].to_vec();
    damaged.extend_from_slice(&encode("SET d 1"));
    let wrong = damaged.len();
    damaged.extend_from_slice(&[0; 100]);
    damaged.extend_from_slice(&encode("SET e 1"));
    assert_eq!(cut(&damaged, Some(2)), Err(wrong as u64));
}

#[test]
fn a_long_tail_of_another_server_is_not_kept_in_memory() {
    let mut file = opened(Fsync::EverySecond);
    let value = "x".repeat(100_000);
    let count = 6 * LONG_GROUP / value.len();
    for _ in 0..count {
        file.extend_from_slice(&encode(&format!("SET k {value}")));
    }
    let bytes = &file[..];
    let mut scanner = Scanner::new(&bytes, bytes.len() as u64, 0, Some(1)).unwrap();
    let mut loaded = 0;
    while let Some(runs) = scanner.next_runs().unwrap() {
        loaded += runs.iter().map(Range::len).sum::<usize>();
        let kept = scanner.window.buffer.capacity();
        assert!(kept <= 3 * LONG_GROUP, "{kept} bytes are kept");
    }
    assert_eq!(loaded, count * encode(&format!("SET k {value}")).len());
    assert_eq!(
        (scanner.cut(), scanner.position()),
        (None, file.len() as u64)
    );
    // A group of the same length is kept, because its mark comes.
    let body = &file[opened(Fsync::EverySecond).len()..];
    let whole = [&opened(Fsync::EverySecond)[..], &group_of(0, body)].concat();
    assert_eq!(scan(&whole).map(|(_, cut)| cut), Ok(None));
    // And a file that has grown a hole in one.
    let mut damaged = [&whole[..], &group(0, &["SET a 1"])].concat();
    let at = damaged.len() / 2;
    damaged[at] ^= 1;
    let good = opened(Fsync::EverySecond).len() as u64;
    assert_eq!(scan_in(Some(1), &damaged), Err(good));
}

#[test]
fn many_groups_are_handed_out_together() {
    let mut file = mark::OPEN.to_vec();
    let groups = 3 * RUN_BYTES / group(0, &["SET a 1"]).len();
    for _ in 0..groups {
        file.extend_from_slice(&group(0, &["SET a 1"]));
    }
    let good = file.len() as u64;
    file.extend_from_slice(b"*3\r\n$3\r\nSET");
    let source = &file[..];
    let mut scanner = Scanner::new(&source, file.len() as u64, 0, None).unwrap();
    let (mut times, mut runs) = (0, 0);
    while let Some(more) = scanner.next_runs().unwrap() {
        times += 1;
        runs += more.len();
        for run in &more {
            assert_eq!(scanner.run(run).0, encode("SET a 1"));
        }
    }
    assert_eq!(runs, groups);
    assert!(times <= 4, "{groups} groups in {times} times");
    assert_eq!(scanner.cut().map(|cut| cut.at), Some(good));
}

#[test]
fn an_end_of_any_length_is_cut_off() {
    /// What a crash left of a group of several GiB; more of it than the tests can read is not there.
    const LEN: u64 = 5 << 30;
    let mut file = mark::OPEN.to_vec();
    file.extend_from_slice(&group(0, &["SET a 1"]));
    let good = file.len() as u64;
    let torn = [
        "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$4000000000\r\nxxxx",
        "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$9000000000\r\nxxxx",
        "\0\0\0\0",
    ];
    for torn in torn {
        let bytes = [&file[..], torn.as_bytes()].concat();
        let source = &bytes[..];
        let mut scanner = Scanner::new(&source, LEN, 0, None).unwrap();
        while scanner.next_runs().expect("it is not damaged").is_some() {}
        let cut = scanner.cut().map(|cut| cut.at);
        assert_eq!((cut, scanner.position()), (Some(good), good), "{torn:?}");
        // The same without a server that guards the file.
        let plain = [&encode("SET a 1")[..], torn.as_bytes()].concat();
        let source = &plain[..];
        let mut scanner = Scanner::new(&source, LEN, 0, None).unwrap();
        while scanner.next_runs().expect("it is not damaged").is_some() {}
        let good = encode("SET a 1").len() as u64;
        assert_eq!(scanner.cut().map(|cut| cut.at), Some(good), "{torn:?}");
    }
}

#[test]
fn damage_is_found_from_far_behind_it() {
    let mut file = opened(Fsync::EverySecond);
    let good = file.len() as u64;
    file.extend_from_slice(&group(0, &["SET a 1"]));
    file[good as usize + 1] ^= 1;
    // A group that is longer than what is read at once says that the damaged one had been synced.
    let long = encode(&format!("SET b {}", "x".repeat(3 * CHUNK)));
    let behind = group_of(good + 1, &long);
    assert_eq!(scan(&file), Ok((Vec::new(), Some(good))));
    assert_eq!(scan(&[&file[..], &behind].concat()), Err(good));
    file.resize(file.len() + 2 * CHUNK, 0);
    assert_eq!(scan(&file), Ok((Vec::new(), Some(good))));
    assert_eq!(scan(&[&file[..], &behind].concat()), Err(good));
}

#[test]
fn what_follows_a_close_was_written_by_another_server() {
    let mut file = mark::OPEN.to_vec();
    file.extend_from_slice(&group(0, &["SET a 1"]));
    file.extend_from_slice(mark::CLOSE);
    file.extend_from_slice(&encode("SET b 1"));
    let good = file.len() as u64;
    let expected = vec![text("SET a 1"), text("SET b 1")];
    assert_eq!(scan(&file), Ok((expected.clone(), None)));
    file.extend_from_slice(mark::OPEN);
    let opened = file.len() as u64;
    assert_eq!(scan(&file), Ok((expected.clone(), None)));
    file.extend_from_slice(&encode("SET c 1")[..9]);
    assert_eq!(scan(&file), Ok((expected, Some(opened))));
    assert_ne!(good, opened);
}

#[test]
fn requests_longer_than_a_chunk_are_read() {
    let long = encode(&format!("SET a {}", "x".repeat(3 * CHUNK)));
    let mut file = mark::OPEN.to_vec();
    file.extend_from_slice(&group_of(0, &long));
    file.extend_from_slice(mark::CLOSE);
    file.extend_from_slice(&long);
    let (requests, cut) = scan(&file).unwrap();
    assert_eq!((requests.len(), cut), (2, None));
    assert_eq!(requests[1].len(), long.len() - 7);
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::sample::select(
        b"*$#K:open\r\n0123456789SETMULTIEXEC\0".to_vec()), 0..300), guarded: bool) {
        let mut file = if guarded { mark::OPEN.to_vec() } else { Vec::new() };
        file.extend_from_slice(&bytes);
        let _ = scan(&file);
    }

    /// Pieces of files in any order, torn and with a byte changed: what is left after a cut is loaded as it was, and whole.
    #[test]
    fn what_is_cut_off_is_cut_off_once(
        parts in proptest::collection::vec(0..14_usize, 0..10),
        len: proptest::sample::Index,
        flip in proptest::option::of((proptest::prelude::any::<proptest::sample::Index>(), 0..8)),
        boot in proptest::sample::select(vec![None, Some(1), Some(2)]),
    ) {
        let pieces: [Vec<u8>; 14] = [
            opened(Fsync::EverySecond),
            opened(Fsync::No),
            opened(Fsync::Always),
            mark::OPEN.to_vec(),
            mark::CLOSE.to_vec(),
            group(0, &["SET a 1"]),
            group(0, &["MULTI", "SET b 1", "SET c 1", "EXEC"]),
            group(60, &["SET d 1"]),
            encode("SET e 1"),
            encode("MULTI"),
            encode("EXEC"),
            b"*2\r\n$3\r\nGET\r\n$2\r\n\0\0\r\n".to_vec(),
            vec![0; 70],
            b"*3\r\n$3".to_vec(),
        ];
        let mut bytes: Vec<u8> = parts.iter().flat_map(|&part| pieces[part].clone()).collect();
        bytes.truncate(len.index(bytes.len() + 1));
        if let Some((at, bit)) = flip
            && !bytes.is_empty()
        {
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
        }
        if let Ok((requests, Some(cut))) = scan_in(boot, &bytes) {
            let left = &bytes[..usize::try_from(cut).unwrap()];
            let again = scan_in(boot, left).map(|(requests, cut)| (requests.concat(), cut));
            assert_eq!(again, Ok((requests.concat(), None)));
        }
    }
}
