use crate::testing::Lab;

#[test]
fn nothing_is_queued_behind_a_refused_command() {
    let mut lab = Lab::new();
    let other = lab.connect();
    let mut check_queued = |line: &str, count: &str| {
        lab.run(line);
        let list = lab.run_as(other, "CLIENT LIST");
        let own = list.lines().find(|line| line.contains("id=1 ")).unwrap();
        assert!(own.contains(&format!(" multi={count} ")), "{line}: {own}");
    };
    check_queued("MULTI", "0");
    check_queued("SET a 1", "1");
    check_queued("SET a", "1");
    check_queued("SET a 2", "1");
    check_queued("EXEC", "-1");
}

#[test]
fn exec_answers_all_queued_commands() {
    Lab::new().check(&[
        ("MULTI", "+OK\r\n"),
        ("SET a 1", "+QUEUED\r\n"),
        ("GET a", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n+OK\r\n$1\r\n1\r\n"),
        ("EXEC", "-ERR EXEC without MULTI\r\n"),
        ("DISCARD", "-ERR DISCARD without MULTI\r\n"),
    ]);
}

#[test]
fn a_refused_command_dooms_the_transaction() {
    let mut lab = Lab::new();
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        (
            "GET",
            "-ERR wrong number of arguments for 'get' command\r\n",
        ),
    ]);
    lab.check(&[
        ("SET a 1", "+QUEUED\r\n"),
        (
            "EXEC",
            "-EXECABORT Transaction discarded because of previous errors.\r\n",
        ),
        ("GET a", "$-1\r\n"),
    ]);
}

#[test]
fn nesting_is_an_error_that_leaves_the_transaction_alive() {
    Lab::new().check(&[
        ("MULTI", "+OK\r\n"),
        ("MULTI", "-ERR MULTI calls can not be nested\r\n"),
        ("WATCH a", "-ERR WATCH inside MULTI is not allowed\r\n"),
        ("PING", "+QUEUED\r\n"),
        ("EXEC", "*1\r\n+PONG\r\n"),
    ]);
}

#[test]
fn a_changed_watched_key_makes_exec_answer_null() {
    let mut lab = Lab::new();
    let other = lab.connect();
    lab.check(&[
        ("WATCH a b", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("PING", "+QUEUED\r\n"),
    ]);
    lab.run_as(other, "SET b 1");
    lab.check(&[
        ("EXEC", "*-1\r\n"),
        ("MULTI", "+OK\r\n"),
        ("PING", "+QUEUED\r\n"),
        ("EXEC", "*1\r\n+PONG\r\n"),
    ]);
}

#[test]
fn unwatch_and_discard_forget_changes() {
    let mut lab = Lab::new();
    let other = lab.connect();
    lab.check(&[("WATCH a", "+OK\r\n")]);
    lab.run_as(other, "SET a 1");
    lab.check(&[
        ("UNWATCH", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("EXEC", "*0\r\n"),
        ("WATCH a", "+OK\r\n"),
    ]);
    lab.run_as(other, "SET a 2");
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        ("DISCARD", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("EXEC", "*0\r\n"),
    ]);
}

#[test]
fn select_inside_a_transaction_counts_for_what_follows() {
    Lab::new().check(&[
        ("MULTI", "+OK\r\n"),
        ("SELECT 2", "+QUEUED\r\n"),
        ("SET a 1", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n+OK\r\n+OK\r\n"),
        ("GET a", "$1\r\n1\r\n"),
        ("SELECT 0", "+OK\r\n"),
        ("GET a", "$-1\r\n"),
    ]);
}

#[test]
fn records_of_a_transaction_are_bracketed() {
    let mut lab = Lab::new();
    lab.store.listen_to_writes(true);
    lab.check(&[
        ("MULTI", "+OK\r\n"),
        ("SET a 1", "+QUEUED\r\n"),
        ("SET b 2", "+QUEUED\r\n"),
        ("EXEC", "*2\r\n+OK\r\n+OK\r\n"),
    ]);
    assert_eq!(lab.writes(), ["MULTI", "SET a 1", "SET b 2", "EXEC"]);
}
