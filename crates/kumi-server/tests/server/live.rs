//! Changing, watching and troubling a server while it runs: CONFIG, INFO, long commands, panics.

use crate::common::{Client, Process, eventually, free_port, request, text};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// A server on a port, and the port.
fn on_port(args: &[&str]) -> (Process, u16) {
    let port = free_port();
    let number = port.to_string();
    let mut all = vec!["--port", &number];
    all.extend(args);
    let dir = tempfile::tempdir().unwrap();
    let server = Process::start_in(dir, &all, "Ready to accept connections tcp");
    (server, port)
}

/// A field of INFO.
fn info<S: Read + Write>(client: &mut Client<S>, section: &str, field: &str) -> String {
    let all = text(&client.ask(&["INFO", section]));
    let prefix = format!("{field}:");
    let line = all.lines().find_map(|line| line.strip_prefix(&prefix));
    line.unwrap_or_else(|| panic!("{all} lacks {field}"))
        .trim()
        .to_owned()
}

#[test]
fn the_port_can_be_changed_while_clients_are_connected() {
    let (_server, old) = on_port(&[]);
    let mut client = Client::tcp(old);
    let new = free_port();
    assert_eq!(client.line(&format!("CONFIG SET port {new}")), "OK");
    assert_eq!(Client::tcp(new).line("PING"), "PONG");
    assert!(TcpStream::connect(("127.0.0.1", old)).is_err());
    assert_eq!(client.line("PING"), "PONG", "connections stay");
    assert_eq!(info(&mut client, "server", "tcp_port"), new.to_string());
}

#[test]
fn a_port_that_is_taken_changes_nothing() {
    let (mut server, port) = on_port(&[]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken_port = taken.local_addr().unwrap().port();
    let mut client = Client::tcp(port);
    assert_eq!(
        client.line(&format!("CONFIG SET hz 20 port {taken_port}")),
        "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs."
    );
    server.wait_for_log(&format!("127.0.0.1:{taken_port}"));
    assert_eq!(client.line("CONFIG GET hz"), "hz,10");
    assert_eq!(client.line("CONFIG GET port"), format!("port,{port}"));
    assert_eq!(Client::tcp(port).line("PING"), "PONG");
}

#[test]
fn bind_can_grow_and_shrink_and_fail() {
    let (_server, port) = on_port(&["--bind", "*", "--protected-mode", "no"]);
    let mut client = Client::tcp(port);
    let at = |host: &str| TcpStream::connect((host, port)).is_ok();
    assert!(at("127.0.0.1") && at("127.0.0.2"));
    // The wildcard is in the way of the address, and has to go first.
    assert_eq!(client.line("CONFIG SET bind 127.0.0.1"), "OK");
    assert!(at("127.0.0.1") && !at("127.0.0.2"));
    assert_eq!(
        text(&client.ask(&["CONFIG", "SET", "bind", "127.0.0.1 127.0.0.2"])),
        "OK"
    );
    assert!(at("127.0.0.1") && at("127.0.0.2"));
    assert_eq!(
        client.line("CONFIG SET bind 203.0.113.1"),
        "-ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses."
    );
    assert!(at("127.0.0.1") && at("127.0.0.2"));
    assert_eq!(client.line("CONFIG GET bind"), "bind,127.0.0.1 127.0.0.2");
}

#[test]
fn maxclients_follows_and_stops_at_what_the_system_can() {
    let server = Process::start(&["--maxclients", "100"]);
    let mut client = server.connect();
    assert_eq!(client.line("CONFIG SET maxclients 1"), "OK");
    assert_eq!(
        server.connect().read_to_end(),
        b"-ERR max number of clients reached\r\n"
    );
    assert_eq!(info(&mut client, "stats", "rejected_connections"), "1");
    assert_eq!(client.line("CONFIG SET maxclients 2"), "OK");
    assert_eq!(server.connect().line("PING"), "PONG");
    let refused = client.line("CONFIG SET maxclients 4000000000");
    assert!(
        refused.starts_with("-ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system is not able to handle the specified number of clients, try with "),
        "{refused}"
    );
    assert_eq!(client.line("CONFIG GET maxclients"), "maxclients,2");
}

#[test]
fn the_log_level_can_be_changed() {
    let mut server = Process::start(&[]);
    let mut client = server.connect();
    assert_eq!(client.line("CONFIG SET loglevel verbose"), "OK");
    drop(server.connect());
    server.wait_for_log(" - Accepted");
    assert_eq!(client.line("CONFIG SET loglevel nothing"), "OK");
    client.send("GARBAGE \"\r\n");
    client.read_to_end();
    server.signal(Signal::TERM);
    let lines = server.log.len();
    assert_eq!(server.wait().code(), Some(0));
    let after = &server.log[lines..];
    let told = after.iter().any(|line| line.contains("rotocol"));
    assert!(!told, "{after:?}");
}

#[test]
fn http_is_logged_once_for_many_clients() {
    let mut server = Process::start(&[]);
    for line in ["POST / HTTP/1.1\r\n", "Host: example\r\n"] {
        let mut client = server.connect();
        client.send(line);
        assert_eq!(client.read_to_end(), b"");
    }
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    let words = "# Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to Redis.";
    let told = server.log.iter().filter(|line| line.contains(words));
    assert_eq!(told.count(), 1, "{:#?}", server.log);
}

/// The timer of a connection in the system's table: "02" while keepalive probes are due.
#[cfg(target_os = "linux")]
fn timer(server_port: u16, client: &Client<TcpStream>) -> String {
    let client_port = client.stream.local_addr().unwrap().port();
    let ends = format!(":{server_port:04X} 0100007F:{client_port:04X} ");
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let row = table.lines().find(|line| line.contains(&ends)).unwrap();
    let timer = row.split_ascii_whitespace().nth(5).unwrap();
    timer.split(':').next().unwrap().to_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn tcp_keepalive_holds_for_clients_that_come_after_it_was_set() {
    let (_server, port) = on_port(&["--tcp-keepalive", "100"]);
    let mut first = Client::tcp(port);
    assert_eq!(first.line("CONFIG SET tcp-keepalive 0"), "OK");
    let mut second = Client::tcp(port);
    assert_eq!(second.line("PING"), "PONG");
    // Another timer may run until the reply is acknowledged.
    eventually(|| timer(port, &first), |timer| timer == "02");
    eventually(|| timer(port, &second), |timer| timer == "00");
}

#[test]
fn a_rewritten_file_says_what_was_set_and_loads_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kumi.conf");
    fs::write(&file, "# keep me\nport 0\nunixsocket s\nmaxclients 50\n").unwrap();
    let args = [file.to_str().unwrap(), "--timeout", "17"];
    let server = Process::start_in(dir, &args, "Ready to accept connections unix");
    let mut client = server.connect();
    assert_eq!(client.line("CONFIG SET maxclients 60"), "OK");
    let set = ["CONFIG", "SET", "requirepass", "a b"];
    assert_eq!(text(&client.ask(&set)), "OK");
    assert_eq!(client.line("CONFIG REWRITE"), "OK");
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# keep me\nport 0\n"), "{written}");
    for line in ["maxclients 60", "timeout 17", "requirepass \"a b\""] {
        assert!(written.lines().any(|found| found == line), "{written}");
    }
    let config_file = info(&mut client, "server", "config_file");
    assert_eq!(config_file, file.to_str().unwrap());

    let mut server = server;
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
    let dir = tempfile::tempdir().unwrap();
    let args = [
        file.to_str().unwrap(),
        "--dir",
        dir.path().to_str().unwrap(),
    ]
    .map(str::to_owned);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let again = Process::start_in(dir, &args, "Ready to accept connections unix");
    let mut client = again.connect();
    assert_eq!(text(&client.ask(&["AUTH", "a b"])), "OK");
    assert_eq!(client.line("CONFIG GET timeout"), "timeout,17");
}

#[test]
fn a_rewrite_without_a_file_or_without_permission_is_an_error() {
    let server = Process::start(&[]);
    assert_eq!(
        server.connect().line("CONFIG REWRITE"),
        "-ERR The server is running without a config file"
    );

    let dir = tempfile::tempdir().unwrap();
    let conf = dir.path().join("conf");
    fs::create_dir(&conf).unwrap();
    let file = conf.join("kumi.conf");
    fs::write(&file, "port 0\nunixsocket s\n").unwrap();
    let args = [file.to_str().unwrap()];
    let server = Process::start_in(dir, &args, "Ready to accept connections unix");
    fs::remove_dir_all(&conf).unwrap();
    assert_eq!(
        server.connect().line("CONFIG REWRITE"),
        "-ERR Rewriting config file: No such file or directory"
    );
}

#[test]
fn info_tells_about_the_process_and_its_sockets() {
    let (server, port) = on_port(&["--unixsocket", "s"]);
    let mut client = Client::tcp(port);
    let pid = server.child.id().to_string();
    let mut check = |section: &str, field: &str, expected: &str| {
        assert_eq!(info(&mut client, section, field), expected);
    };
    check("server", "process_id", &pid);
    check("server", "tcp_port", &port.to_string());
    check("server", "config_file", "");
    check("server", "executable", env!("CARGO_BIN_EXE_kumi-server"));
    check("server", "multiplexing_api", "epoll");
    check("memory", "mem_allocator", "mimalloc");
    check("clients", "maxclients", "10000");
    check("server", "listener1", "name=unix,bind=s");
    let listener = info(&mut client, "server", "listener0");
    assert!(
        listener.starts_with("name=tcp,bind=127.0.0.1,")
            && listener.ends_with(&format!("port={port}")),
        "{listener}"
    );
    assert!(info(&mut client, "server", "os").starts_with("Linux"));
    for (section, field) in [
        ("memory", "used_memory_rss"),
        ("memory", "total_system_memory"),
        ("stats", "total_net_input_bytes"),
        ("stats", "total_net_output_bytes"),
        ("stats", "total_reads_processed"),
        ("stats", "total_writes_processed"),
        ("stats", "eventloop_cycles"),
    ] {
        let value: u64 = info(&mut client, section, field).parse().unwrap();
        assert!(value > 0, "{field}");
    }
    let peer = client.line("CLIENT INFO");
    let local = client.stream.local_addr().unwrap();
    assert!(
        peer.contains(&format!(" addr={local} laddr=127.0.0.1:{port} ")),
        "{peer}"
    );
}

/// DEBUG BUSY lets others be answered from its first moment on.
const BUSY_AT_ONCE: &[&str] = &[
    "--enable-debug-command",
    "yes",
    "--busy-reply-threshold",
    "0",
];

#[test]
fn others_hear_busy_while_a_long_command_runs() {
    let server = Process::start(BUSY_AT_ONCE);
    let mut subscriber = server.connect();
    assert_eq!(subscriber.line("SUBSCRIBE c"), "subscribe,c,1");
    let mut waiting = server.connect();
    assert_eq!(waiting.line("PING"), "PONG");
    let mut busy = server.connect();
    // The second request is in the same buffer, and the third comes while the first runs.
    let mut bytes = request(&["DEBUG", "BUSY", "1"]);
    bytes.extend(request(&["SET", "a", "1"]));
    busy.send(bytes);
    let answer = eventually(|| waiting.line("GET a"), |answer| answer != "nil");
    assert!(answer.starts_with("-BUSY "), "{answer}");
    busy.send(request(&["PUBLISH", "c", "over"]));
    let mut newcomer = server.connect();
    assert!(newcomer.line("SET a 2").starts_with("-BUSY "));
    newcomer.send("*1\r\nGARBAGE\r\n");
    assert!(newcomer.read_to_end().starts_with(b"-ERR Protocol error"));
    busy.expect("+OK\r\n+OK\r\n:1\r\n");
    assert_eq!(text(&subscriber.reply()), "message,c,over");
    assert_eq!(waiting.line("GET a"), "1");
}

#[test]
fn a_client_that_was_ready_together_with_a_long_command_gets_busy_too() {
    let mut server = Process::start(BUSY_AT_ONCE);
    let (mut control, mut busy, mut other) = (server.connect(), server.connect(), server.connect());
    for client in [&mut control, &mut busy, &mut other] {
        assert_eq!(client.line("PING"), "PONG");
    }
    // While the server sleeps, both requests arrive: one wait of the loop finds them both.
    control.send(request(&["DEBUG", "SLEEP", "0.3"]));
    busy.send(request(&["DEBUG", "BUSY", "1000"]));
    other.send(request(&["GET", "a"]));
    assert!(text(&other.reply()).starts_with("-BUSY "));
    server.signal(Signal::TERM);
    busy.expect("+OK\r\n");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_client_that_leaves_during_its_long_command_is_forgotten_after_it() {
    let server = Process::start(BUSY_AT_ONCE);
    let mut other = server.connect();
    let mut busy = server.connect();
    let id = busy.line("CLIENT ID");
    busy.send(request(&["DEBUG", "BUSY", "0.5"]));
    eventually(|| other.line("GET a"), |answer| answer.starts_with("-BUSY"));
    drop(busy);
    eventually(|| other.line("GET a"), |answer| answer == "nil");
    let list = ["CLIENT", "LIST", "ID", &id];
    eventually(|| text(&other.ask(&list)), String::is_empty);
}

#[test]
fn a_long_command_ends_when_the_server_is_asked_to_stop() {
    for signal in [true, false] {
        let mut server = Process::start(&["--enable-debug-command", "yes"]);
        let mut other = server.connect();
        let mut busy = server.connect();
        busy.send(request(&["DEBUG", "BUSY", "1000"]));
        eventually(|| other.line("GET a"), |answer| answer.starts_with("-BUSY"));
        if signal {
            server.signal(Signal::TERM);
        } else {
            other.send("SHUTDOWN NOSAVE\r\n");
            assert_eq!(other.read_to_end(), b"");
        }
        busy.expect("+OK\r\n");
        assert_eq!(server.wait().code(), Some(0));
    }
}

#[test]
fn a_panic_in_a_command_is_answered_and_logged_with_a_backtrace() {
    let mut server = Process::start(&["--enable-debug-command", "yes"]);
    let mut client = server.connect();
    client.send("SET a 1\r\nDEBUG PANIC\r\nGET a\r\n");
    client.expect("+OK\r\n-ERR internal error\r\n$1\r\n1\r\n");
    server.wait_for_log("panic: ");
    server.wait_for_log("kumi_store");
    server.wait_for_log("a command panicked");
    assert_eq!(client.line("PING"), "PONG");
}

#[test]
fn shutdown_ends_the_server_without_an_answer() {
    for command in ["SHUTDOWN", "SHUTDOWN NOSAVE NOW FORCE"] {
        let mut server = Process::start(&[]);
        let mut client = server.connect();
        let mut other = server.connect();
        assert_eq!(other.line("PING"), "PONG");
        client.send(format!("PING\r\n{command}\r\n"));
        assert_eq!(client.read_to_end(), b"+PONG\r\n");
        assert_eq!(other.read_to_end(), b"");
        assert_eq!(server.wait().code(), Some(0));
        let told = |line: &&String| line.contains("User requested shutdown");
        assert_eq!(server.log.iter().filter(told).count(), 1);
        assert!(!server.socket().exists());
    }
}

#[test]
fn limits_that_close_connections_are_counted_and_logged() {
    let limits = "normal 1mb 0 0 pubsub 1mb 0 0";
    let mut server = Process::start(&[
        "--client-output-buffer-limit",
        limits,
        "--client-query-buffer-limit",
        "1mb",
    ]);
    let mut control = server.connect();
    let value = vec![b'x'; 900_000];
    control.send(request(&[b"SET".as_slice(), b"big", &value]));
    control.expect("+OK\r\n");
    let mut deaf = server.connect();
    deaf.send("GET big\r\n".repeat(10));
    eventually(
        || {
            info(
                &mut control,
                "stats",
                "client_output_buffer_limit_disconnections",
            )
        },
        |count| count == "1",
    );
    let mut talker = server.connect();
    talker.send("*2\r\n$3\r\nGET\r\n$100000000\r\n");
    let megabyte = vec![b'x'; 1 << 20];
    while talker.stream.write_all(&megabyte).is_ok() {}
    eventually(
        || {
            info(
                &mut control,
                "stats",
                "client_query_buffer_limit_disconnections",
            )
        },
        |count| count == "1",
    );
    server.wait_for_log("overcoming of output buffer limits");
    let line = server.log.last().unwrap();
    let words = " scheduled to be closed ASAP for overcoming of output buffer limits.";
    assert!(
        line.contains("# Client id=") && line.contains(words),
        "{line}"
    );
    server.wait_for_log("Closing client that reached max query buffer length");
}

#[test]
fn a_memory_limit_of_data_is_not_reached_by_idle_connections() {
    let server = Process::start(&[]);
    let mut control = server.connect();
    let used =
        |client: &mut Client<_>| -> u64 { info(client, "memory", "used_memory").parse().unwrap() };
    let before = used(&mut control);
    let mut idle: Vec<_> = (0..1000).map(|_| server.connect()).collect();
    for client in &mut idle {
        // A reply of some size, so that buffers were in use.
        assert_eq!(text(&client.ask(&["ECHO", &"x".repeat(8000)])).len(), 8000);
    }
    let per_client = (used(&mut control) - before) / 1000;
    assert!(per_client < 1024, "{per_client} bytes for an idle client");
}

#[test]
fn clients_that_hold_too_much_memory_are_closed() {
    let (_server, port) = on_port(&["--maxmemory-clients", "3mb"]);
    let mut watcher = Client::tcp(port);
    let id = watcher.line("CLIENT ID");
    assert_eq!(watcher.line("CLIENT NO-EVICT ON"), "OK");
    // Replies of this size are copied into the output buffer; longer ones are shared with the data.
    watcher.ask(&["SET", "big", &"x".repeat(8 << 10)]);
    // Replies that are not read: the client holds them in its output buffer.
    let mut greedy = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut modest = Client::tcp(port);
    assert_eq!(modest.line("PING"), "PONG");
    let asked: Vec<u8> = (0..4000).flat_map(|_| request(&["GET", "big"])).collect();
    greedy.write_all(&asked).unwrap();
    eventually(
        || info(&mut watcher, "stats", "evicted_clients"),
        |evicted| evicted == "1",
    );
    assert_eq!(modest.line("PING"), "PONG", "a small client stays");
    assert_eq!(watcher.line("CLIENT ID"), id);
    // A request that does not end: the client holds it in its query buffer.
    let mut endless = TcpStream::connect(("127.0.0.1", port)).unwrap();
    endless
        .write_all(b"*2\r\n$4\r\nECHO\r\n$100000000\r\n")
        .unwrap();
    let part = vec![b'x'; 64 * 1024];
    // Writing fails once the server has closed the connection.
    while endless.write_all(&part).is_ok() {}
    assert_eq!(info(&mut watcher, "stats", "evicted_clients"), "2");
    assert_eq!(modest.line("PING"), "PONG");
}

#[test]
fn memory_of_scattered_keys_is_given_back() {
    let server = Process::start(&["--save", "", "--enable-debug-command", "yes"]);
    let mut client = server.connect();
    let value = "v".repeat(100);
    for from in (0..400_000).step_by(1_000) {
        let mut words = vec!["MSET".to_owned()];
        (from..from + 1_000).for_each(|key| words.extend([format!("key:{key}"), value.clone()]));
        client.send(request(&words));
        assert_eq!(text(&client.reply()), "OK");
    }
    // Every tenth key stays, so that hardly a page of the heap becomes free.
    for from in (0..400_000).step_by(1_000) {
        let mut words = vec!["DEL".to_owned()];
        let gone = (from..from + 1_000).filter(|key| key % 10 != 0);
        words.extend(gone.map(|key| format!("key:{key}")));
        client.send(request(&words));
        assert_eq!(text(&client.reply()), "900");
    }
    let digest = client.line("DEBUG DIGEST");
    let wasted = eventually(
        || info(&mut client, "memory", "allocator_frag_bytes"),
        |bytes| bytes.parse::<i64>().unwrap() < 20 << 20,
    );
    let moved = info(&mut client, "stats", "active_defrag_key_hits");
    assert!(moved.parse::<u64>().unwrap() > 20_000, "{moved}, {wasted}");
    assert_eq!(client.line("DEBUG DIGEST"), digest);
    assert_eq!(client.line("DBSIZE"), "40000");
}
