//! Large replies and large requests: memory, time, and the stall of others.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::procfs;
use crate::report::{Goal, Row};
use crate::store::large::stall::Pings;
use crate::store::large::{MB, Subject, megabytes};
use crate::store::servers::Server;
use crate::wire::{self, Connection};

const REPLY_TIMEOUT: Duration = Duration::from_secs(120);
/// Requests are written in pieces of this size.
const PIECE_BYTES: usize = 256 * 1024;

/// MGET of one large key, many times, under an output limit.
pub(super) const OUTPUT_LIMIT: Subject = Subject {
    name: "MGET past the output limit",
    rows: || {
        // The limit of 10 MB and one value of 1 MB, in units of 1,048,576 bytes.
        vec![
            Row::new(
                "store.large.output_limit.peak",
                "MGET of 1 MB 600 times, output limit 10 MB: peak memory",
                "MB",
            )
            .goal(Some(Goal::AtMost(11.0 * 1.048_576))),
        ]
    },
    measure: |setting, contender| {
        let limit = ("client-output-buffer-limit", "normal 10mb 0 0");
        let server = contender.start(setting.stage, &[limit])?;
        set_value(&server, b"large", 1 << 20)?;
        let times = setting.size(600);
        let mut args: Vec<&[u8]> = vec![b"MGET"];
        args.resize(times + 1, b"large");
        let mut request = Vec::new();
        wire::push_command(&mut request, &args);
        let peak = Peak::begin(&server)?;
        let mut stream = open(&server)?;
        stream.write_all(&request)?;
        // The server closes the connection or sends all of it; both end the measurement.
        let reply = format!("*{times}\r\n").len() + times * ("$1048576\r\n".len() + (1 << 20) + 2);
        read_up_to(&mut stream, reply);
        Ok(vec![peak.growth()?])
    },
};

/// DEL of many small keys that do not exist.
pub(super) const MANY_ARGUMENTS: Subject = Subject {
    name: "DEL of many arguments",
    rows: || {
        let label = "DEL of 425 MB of 16-byte keys";
        vec![
            Row::new("store.large.del.seconds", format!("{label}: time"), "s")
                .goal(Some(Goal::RatioAtMost(1.0))),
            Row::new(
                "store.large.del.stall",
                format!("{label}: stall of others"),
                "ms",
            )
            .goal(Some(Goal::RatioAtMost(1.0))),
        ]
    },
    measure: |setting, contender| {
        let server = contender.start(setting.stage, &[])?;
        // `$16`, the key, and two line ends.
        let keys = setting.size(425 * MB) / 23;
        let mut request = format!("*{}\r\n$3\r\nDEL\r\n", keys + 1).into_bytes();
        for index in 0..keys {
            write!(request, "$16\r\nkey:{index:012}\r\n")?;
        }
        timed(&server, &request, b":0")
    },
};

/// SET of one large value.
pub(super) const LARGE_VALUE: Subject = Subject {
    name: "SET of a large value",
    rows: || {
        let label = "SET of 200 MB";
        vec![
            Row::new("store.large.set.seconds", format!("{label}: time"), "s")
                .goal(Some(Goal::RatioAtMost(1.0))),
            Row::new(
                "store.large.set.stall",
                format!("{label}: stall of others"),
                "ms",
            )
            .goal(Some(Goal::RatioAtMost(1.0))),
        ]
    },
    measure: |setting, contender| {
        let server = contender.start(setting.stage, &[])?;
        let mut request = Vec::new();
        let value = vec![b'v'; setting.size(200 * MB)];
        wire::push_command(&mut request, &[b"SET", b"large", &value]);
        timed(&server, &request, b"+OK")
    },
};

/// Pipelined GETs of a client that does not read for a while.
pub(super) const PAUSED_READER: Subject = Subject {
    name: "GETs of a paused reader",
    rows: || {
        let label = "2,900 GETs of 200 KB, paused reader";
        vec![
            Row::new(
                "store.large.paused.peak",
                format!("{label}: peak memory"),
                "MB",
            )
            .goal(Some(Goal::AtMost(64.0))),
            Row::new(
                "store.large.paused.stall",
                format!("{label}: stall of others"),
                "ms",
            )
            .goal(Some(Goal::AtMost(20.0))),
        ]
    },
    measure: |setting, contender| {
        const VALUE_BYTES: usize = 200_000;
        let server = contender.start(setting.stage, &[])?;
        set_value(&server, b"large", VALUE_BYTES)?;
        let gets = setting.size(2_900);
        let mut request = Vec::new();
        for _ in 0..gets {
            wire::push_command(&mut request, &[b"GET", b"large"]);
        }
        let peak = Peak::begin(&server)?;
        let pings = Pings::start(server.address())?;
        let mut stream = open(&server)?;
        stream.write_all(&request)?;
        // The pause is the load, not a way to wait for something.
        thread::sleep(Duration::from_secs(2));
        let reply_bytes = "$200000\r\n".len() + VALUE_BYTES + 2;
        let mut expected = gets * reply_bytes;
        let mut buffer = vec![0; PIECE_BYTES];
        while expected > 0 {
            let count = stream
                .read(&mut buffer)
                .context("cannot read the replies")?;
            if count == 0 || count > expected {
                bail!("the replies have another length than {gets} values");
            }
            expected -= count;
        }
        Ok(vec![peak.growth()?, pings.longest_ms()?])
    },
};

/// Sends a request, takes its reply of one line, and returns the seconds it took and the stall of others.
fn timed(server: &Server, request: &[u8], expected: &[u8]) -> Result<Vec<f64>> {
    let mut connection = Connection::open(server.address())?;
    let pings = Pings::start(server.address())?;
    let start = Instant::now();
    for piece in request.chunks(PIECE_BYTES) {
        connection.send(piece)?;
    }
    let reply = connection.reply()?;
    let seconds = start.elapsed().as_secs_f64();
    let stall_ms = pings.longest_ms()?;
    if reply != expected {
        bail!("the server answered {}", String::from_utf8_lossy(&reply));
    }
    Ok(vec![seconds, stall_ms])
}

fn set_value(server: &Server, key: &[u8], bytes: usize) -> Result<()> {
    let value = vec![b'v'; bytes];
    let reply = Connection::open(server.address())?.command(&[b"SET", key, &value])?;
    if reply != b"+OK" {
        bail!("SET was answered with {}", String::from_utf8_lossy(&reply));
    }
    Ok(())
}

fn open(server: &Server) -> Result<TcpStream> {
    let stream = TcpStream::connect(server.address()).context("cannot connect")?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    Ok(stream)
}

/// Reads this many bytes, or fewer if the connection ends before.
fn read_up_to(stream: &mut TcpStream, mut bytes: usize) {
    let mut buffer = vec![0; PIECE_BYTES];
    while bytes > 0 {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes = bytes.saturating_sub(count),
        }
    }
}

/// The peak of a server's resident memory from a moment on.
struct Peak<'a> {
    server: &'a Server,
    before: u64,
}

impl Peak<'_> {
    fn begin(server: &Server) -> Result<Peak<'_>> {
        procfs::reset_peak(server.pid())?;
        let before = server.resident_bytes()?;
        Ok(Peak { server, before })
    }

    /// How far the peak lies above the beginning, in MB.
    fn growth(&self) -> Result<f64> {
        let peak = procfs::peak_resident_bytes(self.server.pid())?;
        Ok(megabytes(peak.saturating_sub(self.before)))
    }
}
