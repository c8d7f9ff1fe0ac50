use crate::store::Flow;
use crate::testing::Lab;
use kumi_resp::{Batch, Limits, encode};

/// Sends lines as one packet of the first client; returns what came back.
fn send(lab: &mut Lab, lines: &[&str]) -> String {
    let mut buffer = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        encode::array(&mut buffer, words.len());
        for word in words {
            encode::bulk(&mut buffer, word.as_bytes());
        }
    }
    let (client, mut at) = (lab.client, 0);
    while at < buffer.len() {
        let mut batch = Batch::default();
        let mut end = at;
        while let Some(next) = batch.decode(&buffer, end, &Limits::default(), usize::MAX) {
            let args = batch.args(&buffer, batch.len() - 1);
            end = next;
            if !lab.store.plan(client, args) {
                break;
            }
        }
        let (executed, flow) = lab.execute_batch(client, &batch, &buffer);
        at = batch.end(executed - 1);
        if flow != Flow::Done {
            break;
        }
    }
    lab.received(client)
}

#[test]
fn a_run_answers_what_single_requests_answer() {
    let mut lab = Lab::new();
    let lines = [
        "SET a 1",
        "INCR a",
        "GET a",
        "get",
        "NOPE",
        "MSET b 2 c 3",
        "MGET a b c d",
        "DEL a",
        "EXISTS a",
        "SELECT 1",
        "GET b",
        "SET b other",
        "SELECT 0",
        "GET b",
    ];
    let mut single = Lab::new();
    let expected: String = lines.iter().map(|line| single.run(line)).collect();
    assert_eq!(send(&mut lab, &lines), expected);
}

#[test]
fn what_a_command_changes_holds_for_the_next_of_its_run() {
    let mut lab = Lab::new();
    let answer = send(&mut lab, &["MULTI", "SET a 1", "GET a", "EXEC", "GET a"]);
    let expected = "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$1\r\n1\r\n$1\r\n1\r\n";
    assert_eq!(answer, expected);
    let answer = send(
        &mut lab,
        &["CLIENT REPLY OFF", "SET a 2", "CLIENT REPLY ON", "GET a"],
    );
    assert_eq!(answer, "+OK\r\n$1\r\n2\r\n");
    let answer = send(&mut lab, &["HELLO 3", "GET missing"]);
    assert!(answer.ends_with("_\r\n"), "{answer}");
}

#[test]
fn a_run_of_a_killed_session_executes_nothing() {
    let mut lab = Lab::new();
    let killer = lab.connect();
    let id = lab.run("CLIENT ID");
    let id = id.trim_matches([':', '\r', '\n']);
    assert_eq!(
        lab.run_as(killer, &format!("CLIENT KILL ID {id}")),
        ":1\r\n"
    );
    // Its socket was readable in the turn of the loop that killed it.
    assert_eq!(send(&mut lab, &["SET a 1", "SET b 1"]), "");
    assert_eq!(lab.run_as(killer, "EXISTS a b"), ":0\r\n");
}

#[test]
fn a_run_ends_where_its_session_closes() {
    let mut lab = Lab::new();
    assert_eq!(
        send(&mut lab, &["SET a 1", "QUIT", "SET a 2"]),
        "+OK\r\n+OK\r\n"
    );
    let mut other = Lab::new();
    std::mem::swap(&mut other.store, &mut lab.store);
    let second = other.store.connect(crate::Peer::default(), other.host.now);
    assert_eq!(other.run_as(second, "GET a"), "$1\r\n1\r\n");
}

#[test]
fn a_command_that_changes_decoding_ends_the_plan() {
    let mut lab = Lab::new();
    let plan = |lab: &mut Lab, line: &str| {
        let args = kumi_resp::OwnedArgs::from_slices(line.split(' '));
        let client = lab.client;
        lab.store.plan(client, args.as_args())
    };
    assert!(plan(&mut lab, "GET a"));
    assert!(plan(&mut lab, "CLIENT ID"));
    for line in [
        "AUTH x",
        "HELLO 3",
        "RESET",
        "CONFIG SET proto-max-bulk-len 1mb",
    ] {
        assert!(!plan(&mut lab, line), "{line}");
    }
}
