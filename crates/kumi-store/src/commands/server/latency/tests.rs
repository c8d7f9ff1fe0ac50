use crate::GarbageBytes;
use crate::testing::Lab;

fn slow() -> Lab {
    let mut lab = Lab::new();
    lab.allow_debug();
    lab.check(&[
        ("LATENCY LATEST", "*0\r\n"),
        ("DEBUG SLEEP 0.1", "+OK\r\n"),
        ("LATENCY LATEST", "*0\r\n"),
        ("CONFIG SET latency-monitor-threshold 20", "+OK\r\n"),
        ("DEBUG SLEEP 0.019", "+OK\r\n"),
        ("DEBUG SLEEP 0.03", "+OK\r\n"),
    ]);
    lab.advance_ms(5_000);
    lab.check(&[
        ("DEBUG SLEEP 0.07", "+OK\r\n"),
        ("DEBUG SLEEP 0.05", "+OK\r\n"),
    ]);
    lab
}

#[test]
fn spikes_are_kept_one_per_second() {
    slow().check(&[
        (
            "LATENCY LATEST",
            "*1\r\n*4\r\n$7\r\ncommand\r\n:1700000005\r\n:70\r\n:70\r\n",
        ),
        (
            "LATENCY HISTORY command",
            "*2\r\n*2\r\n:1700000000\r\n:30\r\n*2\r\n:1700000005\r\n:70\r\n",
        ),
        ("LATENCY HISTORY fast-command", "*0\r\n"),
        ("LATENCY RESET nope", ":0\r\n"),
        ("LATENCY RESET command nope", ":1\r\n"),
        ("LATENCY RESET", ":0\r\n"),
        ("LATENCY HISTORY command", "*0\r\n"),
        (
            "LATENCY HISTORY",
            "-ERR wrong number of arguments for 'latency|history' command\r\n",
        ),
        (
            "LATENCY NOPE",
            "-ERR unknown subcommand 'NOPE'. Try LATENCY HELP.\r\n",
        ),
    ]);
}

#[test]
fn histogram_counts_calls_up_to_each_bound() {
    let mut lab = Lab::new();
    lab.allow_debug();
    lab.check(&[
            ("PING", "+PONG\r\n"),
            ("DEBUG SLEEP 0.05", "+OK\r\n"),
            ("DEBUG SLEEP 0.00001", "+OK\r\n"),
            (
                "LATENCY HISTOGRAM debug nope get",
                "*2\r\n$5\r\ndebug\r\n*4\r\n$5\r\ncalls\r\n:2\r\n$14\r\nhistogram_usec\r\n*4\r\n:16\r\n:1\r\n:67633\r\n:2\r\n",
            ),
            (
                "LATENCY HISTOGRAM LATENCY",
                "*2\r\n$17\r\nlatency|histogram\r\n*4\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n*2\r\n:1\r\n:1\r\n",
            ),
        ]);
    lab.run("HELLO 3");
    lab.check(&[(
            "LATENCY HISTOGRAM ping",
            "%1\r\n$4\r\nping\r\n%2\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n%1\r\n:1\r\n:1\r\n",
        )]);
    assert!(lab.run("LATENCY HISTOGRAM").starts_with("%4\r\n"));
}

#[test]
fn nothing_is_tracked_when_tracking_is_off() {
    Lab::new().check(&[
        ("CONFIG SET latency-tracking no", "+OK\r\n"),
        ("PING", "+PONG\r\n"),
        ("LATENCY HISTOGRAM ping", "*0\r\n"),
    ]);
}

#[test]
fn graph_and_doctor_tell_of_the_spikes() {
    let mut lab = slow();
    let graph = lab.run("LATENCY GRAPH command");
    assert!(
        graph.contains("command - high 70 ms, low 30 ms (all time high 70 ms)\n"),
        "{graph}"
    );
    assert!(
        graph.ends_with("\n #\n |\n |\n_|\n  \n50\nss\n\r\n"),
        "{graph}"
    );
    lab.check(&[(
        "LATENCY GRAPH nope",
        "-ERR No samples available for event 'nope'\r\n",
    )]);
    assert!(lab.run("LATENCY DOCTOR").contains("command: 2 spikes"));
    lab.run("HELLO 3");
    assert!(lab.run("LATENCY DOCTOR").starts_with('='));
    assert!(lab.run("LATENCY GRAPH command").starts_with('='));
}

fn expire_cycle_ms(lab: &mut Lab) -> Option<u64> {
    let latest = lab.run("LATENCY LATEST");
    let mut lines = latest.split("\r\n:").skip(2);
    let ms = lines.next()?.split("\r\n").next()?.parse();
    latest.contains("expire-cycle").then_some(ms.ok()?)
}

/// A slice of expiry ends after a millisecond, so no slice alone is a spike.
#[test]
fn a_cycle_of_expiry_lasts_until_no_key_is_due() {
    let mut lab = Lab::new();
    lab.run("CONFIG SET latency-monitor-threshold 20");
    for key in 0..20_000 {
        lab.run(&format!("SET key:{key} v PX 100"));
    }
    lab.host.tick_ns = 400_000;
    lab.advance_ms(200);
    for _ in 0..20_000 {
        if lab.run("DBSIZE") == ":0\r\n" {
            break;
        }
        lab.advance_ms(1);
    }
    assert!(expire_cycle_ms(&mut lab).is_some_and(|ms| ms >= 20));
}

/// In Redis the cycle frees what expired. Here another thread does, unless that is asked for in Redis too.
#[test]
fn a_cycle_of_expiry_lasts_until_its_memory_is_free() {
    for (lazy, meanwhile, whole) in [("no", Some(50), Some(60)), ("yes", None, None)] {
        let mut lab = Lab::new();
        lab.run("CONFIG SET latency-monitor-threshold 20");
        lab.run(&format!("CONFIG SET lazyfree-lazy-expire {lazy}"));
        lab.run(&format!("SET big {} PX 100", "x".repeat(1 << 20)));
        lab.advance_ms(100);
        lab.check(&[("DBSIZE", ":0\r\n")]);
        let start = lab.host.now;
        for (waiting, after_ms, expected) in [
            (1 << 20, 0, None),
            (1 << 20, 10, None),
            (1, 50, meanwhile),
            (0, 60, whole),
            (0, 90, whole),
        ] {
            let mut now = start;
            now.mono_ns += after_ms * 1_000_000;
            let garbage = GarbageBytes {
                handed_over: 1 << 20,
                waiting,
            };
            lab.store.note_garbage(garbage, now);
            assert_eq!(expire_cycle_ms(&mut lab), expected, "after {after_ms} ms");
        }
    }
}

/// Other values are freed all the time, and other keys expire.
#[test]
fn a_cycle_of_expiry_ends_although_there_is_always_something_to_free() {
    for expires in [false, true] {
        let mut lab = Lab::new();
        lab.run("CONFIG SET latency-monitor-threshold 20");
        let value = "x".repeat(1 << 20);
        lab.run(&format!("SET big {value} PX 100"));
        lab.advance_ms(100);
        lab.check(&[("DBSIZE", ":0\r\n")]);
        let mut handed_over = 1 << 20;
        for turn in 0..20 {
            if expires {
                lab.run(&format!("SET big {value} PX 5"));
            }
            lab.advance_ms(10);
            let garbage = GarbageBytes {
                handed_over,
                waiting: 2 << 20,
            };
            handed_over += 1 << 20;
            let now = lab.host.now;
            lab.store.note_garbage(garbage, now);
            let ms = expire_cycle_ms(&mut lab);
            assert!(ms.is_none_or(|ms| ms <= 60), "turn {turn}: {ms:?} ms");
        }
        assert!(expire_cycle_ms(&mut lab).is_some());
    }
}
