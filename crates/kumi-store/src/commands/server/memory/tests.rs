use super::*;
use crate::testing::Lab;

#[test]
fn usage_counts_the_whole_entry() {
    let mut lab = Lab::new();
    lab.run("SET a 1");
    lab.run(&format!("SET big {}", "x".repeat(100_000)));
    let bytes = |reply: String| reply[1..].trim_end().parse::<usize>().expect("a count");
    let small = bytes(lab.run("MEMORY USAGE a"));
    assert!((16..64).contains(&small), "{small}");
    let big = bytes(lab.run("MEMORY USAGE big SAMPLES 0"));
    assert!((100_000..120_000).contains(&big), "{big}");
    lab.check(&[
        ("MEMORY USAGE nothing", "$-1\r\n"),
        ("MEMORY USAGE a SAMPLES", "-ERR syntax error\r\n"),
        ("MEMORY USAGE a SAMPLES -1", "-ERR syntax error\r\n"),
        ("MEMORY USAGE a NOPE 1", "-ERR syntax error\r\n"),
        ("MEMORY USAGE a SAMPLES 1 2", "-ERR syntax error\r\n"),
        ("MEMORY USAGE nothing SAMPLES 1 samples 2", "$-1\r\n"),
        (
            "MEMORY USAGE a SAMPLES x NOPE",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "MEMORY USAGE a SAMPLES x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "MEMORY USAGE",
            "-ERR wrong number of arguments for 'memory|usage' command\r\n",
        ),
    ]);
}

#[test]
fn usage_counts_the_elements_of_a_collection() {
    for (add, remove) in [
        ("RPUSH k ?", "LTRIM k 0 0"),
        ("HSET k ? v", "DEL k"),
        ("SADD k ?", "SPOP k 999"),
        ("ZADD k 1.5 ?", "ZREMRANGEBYRANK k 1 -1"),
        ("XADD k * ? v", "XTRIM k MAXLEN 1"),
    ] {
        let mut lab = Lab::new();
        let usage = |lab: &mut Lab| {
            let reply = lab.run("MEMORY USAGE k SAMPLES 1");
            reply[1..].trim_end().parse::<usize>().unwrap_or(0)
        };
        let element = |number: usize| format!("{number:03}{}", "x".repeat(97));
        lab.run(&add.replace('?', &element(0)));
        let one = usage(&mut lab);
        assert!((100..1_000).contains(&one), "{add}: {one}");
        for number in 1..1000 {
            lab.run(&add.replace('?', &element(number)));
        }
        let all = usage(&mut lab);
        assert!((100_000..300_000).contains(&all), "{add}: {all}");
        // One element is left, or none.
        lab.run(remove);
        let left = usage(&mut lab);
        assert!(left < 20_000, "{remove}: {left}");
    }
}

#[test]
fn usage_neither_counts_a_read_nor_touches_the_key() {
    let mut lab = Lab::new();
    lab.check(&[("SET a 1", "+OK\r\n"), ("MEMORY USAGE b", "$-1\r\n")]);
    lab.run("MEMORY USAGE a");
    assert!(
        lab.run("INFO stats")
            .contains("keyspace_hits:0\r\nkeyspace_misses:0\r\n")
    );
}

#[test]
fn stats_lists_every_figure_and_the_databases_in_use() {
    let mut lab = Lab::new();
    assert!(
        lab.run("MEMORY STATS")
            .starts_with("*54\r\n$14\r\npeak.allocated\r\n:")
    );
    lab.run("SET a 1");
    let stats = lab.run("MEMORY STATS");
    assert!(stats.starts_with("*56\r\n"), "{stats}");
    assert!(stats.contains("$4\r\ndb.0\r\n*6\r\n$23\r\noverhead.hashtable.main\r\n:"));
    assert!(stats.contains("keys.count\r\n:1\r\n"), "{stats}");
    lab.run("HELLO 3");
    let stats = lab.run("MEMORY STATS");
    assert!(stats.starts_with("%28\r\n"), "{stats}");
    assert!(stats.contains("peak.percentage\r\n,"), "{stats}");
    assert!(stats.contains("fragmentation\r\n,"), "{stats}");
}

#[test]
fn doctor_names_what_is_wrong() {
    let healthy = Overview {
        used: 10 << 20,
        peak: 10 << 20,
        rss: 11 << 20,
        ..Overview::default()
    };
    assert!(healthy.diagnosis(0).contains("well"));
    assert!(Overview::default().diagnosis(0).contains("too little"));
    let ill = Overview {
        peak: 40 << 20,
        rss: 30 << 20,
        clients: 9 << 20,
        ..healthy
    };
    let text = ill.diagnosis(10 << 20);
    for word in ["fuller once", "3.0 times", "maxmemory", "clients"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert!(Lab::new().run("MEMORY DOCTOR").contains("too little"));
}

#[test]
fn purge_and_malloc_stats_answer() {
    let mut lab = Lab::new();
    lab.check(&[
        ("MEMORY PURGE", "+OK\r\n"),
        (
            "MEMORY NOPE",
            "-ERR unknown subcommand 'NOPE'. Try MEMORY HELP.\r\n",
        ),
    ]);
    assert!(
        lab.run("MEMORY MALLOC-STATS")
            .contains("Stats not supported")
    );
}
