use crate::testing::Lab;

#[test]
fn time_and_lastsave_read_the_hosts_clock() {
    let mut lab = Lab::new();
    lab.check(&[
        ("TIME", "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"),
        ("LASTSAVE", ":1700000000\r\n"),
    ]);
    lab.advance_ms(1_002);
    lab.check(&[
        ("TIME", "*2\r\n$10\r\n1700000001\r\n$4\r\n2000\r\n"),
        ("LASTSAVE", ":1700000000\r\n"),
        (
            "TIME now",
            "-ERR wrong number of arguments for 'time' command\r\n",
        ),
    ]);
}

#[test]
fn a_monitor_sees_commands_after_their_answers() {
    let mut lab = Lab::new();
    let other = lab.connect();
    lab.check(&[
        ("MONITOR", "+OK\r\n"),
        ("MONITOR", ""),
        ("PING", "+PONG\r\n+1700000000.000000 [0 ] \"PING\"\r\n"),
    ]);
    lab.run_as(other, "SELECT 3");
    lab.run_as(other, "SET a b");
    lab.run_as(other, "CONFIG GET port");
    let client = lab.client;
    assert_eq!(
        lab.received(client),
        "+1700000000.000000 [3 ] \"SELECT\" \"3\"\r\n+1700000000.000000 [3 ] \"SET\" \"a\" \"b\"\r\n"
    );
    lab.check(&[("RESET", "+RESET\r\n")]);
    lab.run_as(other, "PING");
    assert_eq!(lab.received(client), "");
}

#[test]
fn monitor_is_refused_in_a_transaction() {
    Lab::new().check(&[
        ("MULTI", "+OK\r\n"),
        ("MONITOR", "+QUEUED\r\n"),
        (
            "EXEC",
            "*1\r\n-ERR MONITOR isn't allowed for DENY BLOCKING client\r\n",
        ),
    ]);
}
