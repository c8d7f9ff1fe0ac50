use crate::engine::store::Flow;
use crate::testing::Lab;

fn with_password() -> Lab {
    let mut lab = Lab::new();
    lab.configure("requirepass", "secret");
    lab.client = lab.connect();
    lab
}

#[test]
fn ping_and_echo_answer_what_they_are_given() {
    Lab::new().check(&[
        ("PING", "+PONG\r\n"),
        ("ping hello", "$5\r\nhello\r\n"),
        (
            "PING a b",
            "-ERR wrong number of arguments for 'ping' command\r\n",
        ),
        ("ECHO hi", "$2\r\nhi\r\n"),
    ]);
}

#[test]
fn select_keeps_databases_apart() {
    Lab::new().check(&[
        ("SET a 1", "+OK\r\n"),
        ("SELECT 15", "+OK\r\n"),
        ("GET a", "$-1\r\n"),
        ("SELECT 16", "-ERR DB index is out of range\r\n"),
        ("SELECT -1", "-ERR DB index is out of range\r\n"),
        (
            "SELECT x",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "SELECT 99999999999",
            "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n",
        ),
    ]);
}

#[test]
fn hello_switches_the_protocol_of_its_own_reply() {
    let mut lab = Lab::new();
    assert!(
        lab.run("HELLO")
            .starts_with("*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n")
    );
    assert!(lab.run("HELLO 3 SETNAME me").starts_with("%7\r\n"));
    lab.check(&[
        ("CLIENT GETNAME", "$2\r\nme\r\n"),
        ("GET nothing", "_\r\n"),
        ("HELLO 4", "-NOPROTO unsupported protocol version\r\n"),
        (
            "HELLO x",
            "-ERR Protocol version is not an integer or out of range\r\n",
        ),
        (
            "HELLO 3 AUTH a",
            "-ERR Syntax error in HELLO option 'AUTH'\r\n",
        ),
    ]);
    assert!(lab.run("HELLO 2").starts_with("*14\r\n"));
}

#[test]
fn nothing_runs_before_authentication() {
    with_password().check(&[
        ("GET a", "-NOAUTH Authentication required.\r\n"),
        (
            "AUTH wrong",
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
        ),
        (
            "AUTH other secret",
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
        ),
        ("AUTH default secret", "+OK\r\n"),
        ("GET a", "$-1\r\n"),
        ("RESET", "+RESET\r\n"),
        ("GET a", "-NOAUTH Authentication required.\r\n"),
        ("AUTH secret", "+OK\r\n"),
        ("AUTH a b c", "-ERR syntax error\r\n"),
    ]);
}

#[test]
fn a_password_taken_away_frees_who_had_none_until_it_is_back() {
    let mut lab = with_password();
    let late = lab.connect();
    lab.check(&[
        ("AUTH secret", "+OK\r\n"),
        ("CONFIG SET requirepass \"\"", "+OK\r\n"),
    ]);
    assert_eq!(lab.run_as(late, "GET a"), "$-1\r\n");
    lab.check(&[("CONFIG SET requirepass other", "+OK\r\n")]);
    let refused = "-NOAUTH Authentication required.\r\n";
    assert_eq!(lab.run_as(late, "GET a"), refused);
    lab.check(&[("GET a", "$-1\r\n")]);
}

#[test]
fn hello_needs_credentials_when_a_password_is_set() {
    let mut lab = with_password();
    assert!(
        lab.run("HELLO 3")
            .starts_with("-NOAUTH HELLO must be called")
    );
    assert!(
        lab.run("HELLO 3 AUTH default nope")
            .starts_with("-WRONGPASS")
    );
    assert!(lab.run("HELLO 3 AUTH default secret").starts_with("%7\r\n"));
}

#[test]
fn auth_without_a_configured_password_says_so() {
    let mut lab = Lab::new();
    assert!(
        lab.run("AUTH x")
            .starts_with("-ERR AUTH <password> called without any password configured")
    );
    assert_eq!(lab.run("AUTH default anything"), "+OK\r\n");
}

#[test]
fn quit_answers_and_closes() {
    let mut lab = Lab::new();
    assert_eq!(lab.run("QUIT"), "+OK\r\n");
    assert_eq!(lab.last_flow, Flow::Close);
    assert_eq!(lab.run("PING"), "", "nothing runs after QUIT");
}

#[test]
fn reset_leaves_a_transaction_and_the_protocol() {
    let mut lab = Lab::new();
    lab.run("HELLO 3");
    lab.check(&[
        ("SELECT 3", "+OK\r\n"),
        ("MULTI", "+OK\r\n"),
        ("RESET", "+RESET\r\n"),
        ("EXEC", "-ERR EXEC without MULTI\r\n"),
        ("GET nothing", "$-1\r\n"),
    ]);
}
