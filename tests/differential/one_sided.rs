//! Tests that no generated sequence can hold: what only one of the servers has, and what ends a server or a
//! connection that sequences need.

use std::time::Duration;

use crate::grammar;
use crate::known_differences as known;
use crate::run::{FLAGS, Side};
use crate::support::client::{Client, Silence};
use crate::support::frame::{Frame, Reply};
use crate::support::server::Server;
use crate::{reference_binary, tested_binary};

const TIMEOUT: Duration = Duration::from_secs(5);

fn both() -> [Side; 2] {
    [
        Side::start("redis", &reference_binary()).expect("the reference starts"),
        Side::start("kumi", &tested_binary()).expect("the server under test starts"),
    ]
}

/// A server under test that follows 7.2; none while another 7.0 stands in for it.
fn tested_7_2() -> Option<Side> {
    let side = Side::start("kumi", &tested_binary()).expect("the server under test starts");
    (!side.is_7_0).then_some(side)
}

fn client(side: &Side) -> Client {
    side.server
        .connect(TIMEOUT)
        .expect("a server that started takes connections")
}

/// Sends a line of words and gives the answer as text.
fn ask(client: &mut Client, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match client.call(&words) {
        Ok(reply) => reply.raw.escape_ascii().to_string(),
        Err(silence) => format!("{silence:?}"),
    }
}

#[test]
fn what_came_with_7_2_answers_as_7_2_does() {
    let Some(side) = tested_7_2() else { return };
    for protocol in ["2", "3"] {
        let mut client = client(&side);
        client.call(&["HELLO", protocol]).unwrap();
        for (request, expected) in known::SINCE_7_2 {
            let reply = client.call(request).unwrap();
            assert_eq!(
                reply.raw.escape_ascii().to_string(),
                expected.escape_ascii().to_string(),
                "{request:?} in RESP{protocol}"
            );
        }
        let info = client.call(&["CLIENT", "INFO"]).unwrap();
        let info = String::from_utf8_lossy(info.frame.text().unwrap()).into_owned();
        for field in known::CLIENT_FIELDS_SINCE_7_2 {
            assert!(info.contains(&format!(" {field}=")), "{field} in {info}");
        }
    }
}

#[test]
fn what_would_be_a_lie_is_refused() {
    let Some(side) = tested_7_2() else { return };
    let mut client = client(&side);
    for (directive, value) in known::REFUSED_DIRECTIVES {
        let reply = client.call(&["CONFIG", "SET", directive, value]).unwrap();
        let error = String::from_utf8_lossy(reply.frame.error().unwrap_or_default()).into_owned();
        let expected =
            format!("ERR CONFIG SET failed (possibly related to argument '{directive}') - ");
        assert!(
            error.starts_with(&expected),
            "{directive} {value}: {:?}",
            reply.frame
        );
    }
}

/// Commands that are built and have no row in the grammar yet: their unit tests are all that checks them.
const NOT_DRAWN_YET: &[&str] = &[];

/// Every command of the reference, and every one that 7.2 added, is built or has a reason not to be.
#[test]
fn a_command_that_is_not_built_has_a_reason() {
    let Some(tested) = tested_7_2() else { return };
    let reference = Side::start("redis", &reference_binary()).unwrap();
    let listed = client(&reference).call(&["COMMAND", "LIST"]).unwrap();
    let listed = listed.frame.items().unwrap().iter();
    let mut names: Vec<String> = listed
        .map(|name| String::from_utf8_lossy(name.text().unwrap()).to_ascii_lowercase())
        .collect();
    assert!(names.len() > 300, "only {} commands", names.len());
    names.extend(known::ADDED_BY_7_2.iter().map(|name| (*name).to_owned()));
    let mut client = client(&tested);
    let mut missing = Vec::new();
    for name in &names {
        let reply = client.call(&["COMMAND", "INFO", name]).unwrap();
        let is_built = reply
            .frame
            .items()
            .is_some_and(|rows| rows.iter().all(|row| row.items().is_some()));
        let excused = known::NOT_BUILT
            .iter()
            .any(|(excused, _)| name == excused || name.split('|').next() == Some(excused));
        if !is_built && !excused {
            missing.push(name.as_str());
        }
    }
    assert!(missing.is_empty(), "neither built nor excused: {missing:?}");
}

/// What the reference can do and the grammar does not have does not exist yet, and is answered as Redis answers what
/// does not exist. A command that is built gets a row in the grammar, or this fails.
#[test]
fn commands_of_rooms_not_built_yet_are_unknown() {
    let Some(tested) = tested_7_2() else { return };
    let reference = Side::start("redis", &reference_binary()).unwrap();
    let names = client(&reference).call(&["COMMAND", "LIST"]).unwrap();
    let names: Vec<String> = names
        .frame
        .items()
        .unwrap()
        .iter()
        .map(|name| String::from_utf8_lossy(name.text().unwrap()).into_owned())
        .collect();
    assert!(
        names.len() > 200,
        "the reference lists only {}",
        names.len()
    );
    let mut client = client(&tested);
    let mut wrong = Vec::new();
    for name in names.iter().filter(|name| !grammar::has_command(name)) {
        let words: Vec<&str> = name.split('|').chain(["a", "b"]).collect();
        let answer = client.call(&words).unwrap();
        let answer =
            String::from_utf8_lossy(answer.frame.error().unwrap_or(b"(no error)")).into_owned();
        let container = words[0];
        let expected = if name.contains('|') && grammar::has_command(container) {
            format!(
                "ERR unknown subcommand '{}'. Try {} HELP.",
                words[1],
                container.to_uppercase()
            )
        } else {
            let args: String = words[1..].iter().map(|word| format!("'{word}' ")).collect();
            format!("ERR unknown command '{container}', with args beginning with: {args}")
        };
        let built = [known::BUILT_BEYOND_THE_GRAMMAR, NOT_DRAWN_YET].concat();
        if answer != expected && !built.contains(&name.as_str()) {
            wrong.push(format!("{name}: {answer:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Sets every directive to the value it has: what is immutable, and what insists on its form, shows.
#[test]
fn every_directive_takes_its_own_value_as_in_redis() {
    let [reference, tested] = both();
    let (mut reference_client, mut client) = (client(&reference), client(&tested));
    let directives = reference_client.call(&["CONFIG", "GET", "*"]).unwrap();
    let mut wrong = Vec::new();
    for (name, _) in directives.frame.pairs().unwrap() {
        let name = String::from_utf8_lossy(name.text().unwrap()).into_owned();
        if known::ABSENT_DIRECTIVES.contains(&name.as_str())
            || known::UNSETTABLE_IN_TESTS.contains(&name.as_str())
        {
            continue;
        }
        let set_again = |client: &mut Client| -> String {
            let Ok(Reply { frame, .. }) = client.call(&["CONFIG", "GET", &name]) else {
                return "(no answer)".into();
            };
            let Some(value) = frame
                .pairs()
                .and_then(|pairs| Some(pairs.first()?.1.text()?.to_vec()))
            else {
                return "(not there)".into();
            };
            match client.call(&[b"CONFIG".as_slice(), b"SET", name.as_bytes(), &value]) {
                Ok(reply) => reply.raw.escape_ascii().to_string(),
                Err(silence) => format!("{silence:?}"),
            }
        };
        let (expected, found) = (set_again(&mut reference_client), set_again(&mut client));
        if expected != found {
            wrong.push(format!("{name}: {found} instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn killing_by_type_closes_the_same_connections() {
    let transcripts = both().map(|side| {
        let mut killer = client(&side);
        let mut normal = client(&side);
        let mut subscribed = client(&side);
        ask(&mut normal, "PING");
        ask(&mut subscribed, "SUBSCRIBE a");
        let mut lines = vec![ask(&mut killer, "CLIENT KILL TYPE pubsub")];
        lines.push(format!("{:?}", subscribed.reply()));
        lines.push(ask(&mut normal, "PING"));
        // The test's control connection dies with the normal one.
        lines.push(ask(&mut killer, "CLIENT KILL TYPE normal"));
        lines.push(format!("{:?}", normal.reply()));
        lines.push(ask(&mut killer, "CLIENT KILL TYPE normal SKIPME no"));
        lines.push(format!("{:?}", killer.reply()));
        let mut again = client(&side);
        let address = format!("{}:0", side.server.socket().display());
        lines.push(ask(
            &mut again,
            &format!("CLIENT KILL ADDR {address} SKIPME no"),
        ));
        lines.push(format!("{:?}", again.reply()));
        let mut last = client(&side);
        lines.push(ask(&mut last, &format!("CLIENT KILL {address}")));
        lines.push(format!("{:?}", last.reply()));
        lines
    });
    assert_eq!(transcripts[1], transcripts[0]);
}

#[test]
fn a_monitor_sees_the_same_commands() {
    let transcripts = both().map(|side| {
        let mut monitor = client(&side);
        let mut actor = client(&side);
        assert_eq!(ask(&mut monitor, "MONITOR"), "+OK\\r\\n");
        for line in [
            "SET a 1",
            "GET a",
            "get",
            "NOSUCH a b",
            "SELECT 3",
            "SET quote\"and\\slash \r\n\t\x01",
            "AUTH secret",
            "AUTH default secret",
            "HELLO 2 AUTH default secret SETNAME x",
            "CONFIG GET maxmemory",
            "CONFIG SET maxmemory 0",
            "CLIENT ID",
            "MULTI",
            "SET b 1",
            "INCR b",
            "EXEC",
            "WATCH a",
            "MULTI",
            "DISCARD",
            "PUBLISH a b",
            "SUBSCRIBE x",
            "UNSUBSCRIBE x",
            "DEBUG SLEEP 0",
            "SWAPDB 0 1",
            "RESET",
            "ECHO last",
        ] {
            ask(&mut actor, line);
        }
        let mut lines = Vec::new();
        loop {
            let line = match monitor.reply() {
                Ok(Reply {
                    frame: Frame::Simple(line),
                    ..
                }) => String::from_utf8_lossy(&line).into_owned(),
                other => format!("{other:?}"),
            };
            // The line begins with the time and, in brackets, the database and the address.
            let (head, command) = line.split_once("] ").unwrap_or(("", &line));
            let database = head
                .split_once('[')
                .and_then(|(_, rest)| rest.split_once(' '))
                .map_or("", |(number, _)| number);
            let is_last = command.contains("last") || !line.contains(']');
            lines.push(format!("[{database}] {command}"));
            if is_last {
                break;
            }
        }
        // RESET ends the monitoring.
        while ask(&mut monitor, "RESET") != "+RESET\\r\\n" {}
        ask(&mut actor, "ECHO unseen");
        lines.push(ask(&mut monitor, "PING"));
        lines
    });
    assert_eq!(transcripts[1], transcripts[0]);
}

#[test]
fn the_slow_log_keeps_the_same_commands() {
    let transcripts = both().map(|side| {
        let mut client = client(&side);
        let long = "x".repeat(200);
        let many = "k ".repeat(40);
        for line in [
            "CONFIG SET slowlog-log-slower-than 0",
            "CLIENT SETNAME tester",
            "SLOWLOG RESET",
            "SET a 1",
            "GET",
            "NOSUCH",
            &format!("SET a {long}"),
            &format!("MGET {}", many.trim_end()),
            "AUTH secret",
            "CONFIG SET requirepass \"\"",
            "MULTI",
            "SET b 1",
            "EXEC",
            "SLOWLOG LEN",
        ] {
            ask(&mut client, line);
        }
        let reply = client.call(&["SLOWLOG", "GET", "100"]).unwrap();
        reply
            .frame
            .items()
            .unwrap()
            .iter()
            .map(|row| {
                let row = row.items().unwrap();
                format!("{:?} {:?}", row[3], row[5])
            })
            .collect::<Vec<_>>()
    });
    assert_eq!(transcripts[1], transcripts[0]);
}

#[test]
fn shutdown_closes_every_connection_and_exits_with_0() {
    for binary in [reference_binary(), tested_binary()] {
        for request in [["SHUTDOWN", "NOSAVE"], ["shutdown", "now"]] {
            let mut server = Server::start(&binary, FLAGS).unwrap();
            let mut other = server.connect(TIMEOUT).unwrap();
            let mut client = server.connect(TIMEOUT).unwrap();
            assert_eq!(ask(&mut other, "PING"), "+PONG\\r\\n");
            assert_eq!(
                client.call(&request),
                Err(Silence::Closed),
                "{}",
                binary.display()
            );
            assert_eq!(other.reply(), Err(Silence::Closed), "{}", binary.display());
            let status = server.wait(TIMEOUT).unwrap();
            assert!(status.success(), "{}: {status}", binary.display());
        }
    }
}
