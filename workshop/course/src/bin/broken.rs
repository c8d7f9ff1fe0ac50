//! `broken --fault NAME --port PORT`: a mini Redis with one mistake that learners make, to test the tests with.
//!
//! A thread per connection and blocking reads: it shares no code with the solution. `--fault none` passes steps 1 to 5.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Every fault there is.
const FAULTS: [&str; 17] = [
    "none",
    "closes-early",
    "forgets-crlf",
    "one-client-at-a-time",
    "drops-half-read",
    "forgets-the-second",
    "integers-as-strings",
    "crashes-on-binary",
    "case-sensitive",
    "wrong-null",
    "no-value-limit",
    "locks-twice",
    "ignores-expiry",
    "truncates-ttl",
    "incr-drops-ttl",
    "never-deletes-unread",
    "one-cycle-a-second",
];

struct Entry {
    value: Vec<u8>,
    deadline: Option<Instant>,
}

/// What all connections share.
struct Broken {
    fault: String,
    data: Mutex<HashMap<Vec<u8>, Entry>>,
    expired: Mutex<u64>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [flag, fault, port_flag, port] = arguments.as_slice() else { return usage() };
    let Ok(port) = port.parse::<u16>() else { return usage() };
    if flag != "--fault" || port_flag != "--port" || !FAULTS.contains(&fault.as_str()) {
        return usage();
    }
    let listener = match TcpListener::bind(("127.0.0.1", port)) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("ERROR {error}");
            return ExitCode::FAILURE;
        }
    };
    if let Ok(address) = listener.local_addr() {
        eprintln!("INFO listening on {address}");
    }
    let broken = Arc::new(Broken { fault: fault.clone(), data: Mutex::default(), expired: Mutex::default() });
    if !broken.has("never-deletes-unread") && !broken.has("ignores-expiry") {
        let broken = broken.clone();
        std::thread::spawn(move || broken.expire_actively());
    }
    for stream in listener.incoming().flatten() {
        let broken = broken.clone();
        let serving = std::thread::spawn(move || broken.serve(stream));
        if *fault == "one-client-at-a-time" {
            let _ = serving.join();
        }
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: broken --fault NAME --port PORT; faults: {}", FAULTS.join(", "));
    ExitCode::from(2)
}

impl Broken {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        stream.set_nodelay(true).ok()?;
        let mut writer = stream.try_clone().ok()?;
        let mut reader = BufReader::new(stream);
        loop {
            if self.has("drops-half-read") || self.has("forgets-the-second") {
                // Takes what one read gives for one command.
                let available = reader.fill_buf().ok()?.to_vec();
                if available.is_empty() {
                    return None;
                }
                reader.consume(available.len());
                match read_command(&mut available.as_slice()) {
                    Ok(command) => writer.write_all(&self.execute(&command)).ok()?,
                    Err(_) if self.has("drops-half-read") => {}
                    Err(rest) => {
                        // This one does wait for the rest.
                        let mut all = available.as_slice().chain(&mut reader);
                        let command = read_command(&mut BufReader::new(&mut all)).or(Err(rest));
                        match command {
                            Ok(command) => writer.write_all(&self.execute(&command)).ok()?,
                            Err(message) => return fail(&mut writer, message),
                        }
                    }
                }
                continue;
            }
            match read_command(&mut reader) {
                Ok(command) => writer.write_all(&self.execute(&command)).ok()?,
                Err(message) => return fail(&mut writer, message),
            }
            if self.has("closes-early") {
                return None;
            }
        }
    }

    fn execute(&self, command: &[Vec<u8>]) -> Vec<u8> {
        if self.has("crashes-on-binary") && command.iter().any(|word| str::from_utf8(word).is_err()) {
            eprintln!("ERROR called `Result::unwrap()` on an `Err` value: Utf8Error");
            std::process::exit(101);
        }
        let mut reply = self.reply(command).unwrap_or_else(|message| format!("-ERR {message}\r\n").into_bytes());
        if self.has("forgets-crlf") {
            reply.truncate(reply.len() - 2);
        }
        reply
    }

    fn reply(&self, command: &[Vec<u8>]) -> Result<Vec<u8>, &'static str> {
        let name = match command.first() {
            Some(name) if self.has("case-sensitive") => name.clone(),
            Some(name) => name.to_ascii_uppercase(),
            None => return Err("unknown command"),
        };
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = command.get(1).filter(|_| !self.has("ignores-expiry")) {
            let over =
                data.get(key).is_some_and(|entry| entry.deadline.is_some_and(|deadline| deadline <= Instant::now()));
            if over {
                data.remove(key);
            }
        }
        match (name.as_slice(), &command[1..]) {
            (b"PING", []) => Ok(b"+PONG\r\n".to_vec()),
            (b"PING" | b"ECHO", [message]) => Ok(bulk(message)),
            (b"DBSIZE", []) => Ok(self.integer(data.len() as i64)),
            (b"INFO", _) => {
                let expired = *self.expired.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(bulk(format!("active_expired_keys:{expired}\r\n").as_bytes()))
            }
            (b"GET", [key]) => Ok(match data.get(key) {
                Some(entry) => bulk(&entry.value),
                None if self.has("wrong-null") => bulk(b""),
                None => b"$-1\r\n".to_vec(),
            }),
            (b"SET", [key, value]) => {
                check_limits(&data, key, value, self.has("no-value-limit"))?;
                data.insert(key.clone(), Entry { value: value.clone(), deadline: None });
                Ok(b"+OK\r\n".to_vec())
            }
            (b"INCR", [key]) => {
                if self.has("locks-twice") {
                    // It waits for itself.
                    drop(self.data.lock());
                }
                check_limits(&data, key, b"", false)?;
                let entry = data.entry(key.clone()).or_insert(Entry { value: b"0".to_vec(), deadline: None });
                let number = integer(&entry.value)?.checked_add(1).ok_or("value is not an integer or out of range")?;
                entry.value = number.to_string().into_bytes();
                if self.has("incr-drops-ttl") {
                    entry.deadline = None;
                }
                Ok(self.integer(number))
            }
            (b"EXPIRE", [key, seconds]) => {
                let seconds = integer(seconds)?;
                let found = match data.get_mut(key) {
                    Some(_) if seconds <= 0 => data.remove(key).is_some(),
                    Some(entry) => {
                        entry.deadline = Some(Instant::now() + Duration::from_secs(seconds.unsigned_abs()));
                        true
                    }
                    None => false,
                };
                Ok(self.integer(i64::from(found)))
            }
            (b"TTL", [key]) => {
                let left = data.get(key).map(|entry| entry.deadline.map(|deadline| deadline - Instant::now()));
                Ok(self.integer(match left {
                    None => -2,
                    Some(None) => -1,
                    Some(Some(left)) if self.has("truncates-ttl") => left.as_secs() as i64,
                    Some(Some(left)) => left.as_millis().div_ceil(1000) as i64,
                }))
            }
            (b"ECHO" | b"GET" | b"SET" | b"INCR" | b"EXPIRE" | b"TTL" | b"DBSIZE", _) => {
                Err("wrong number of arguments")
            }
            _ => Err("unknown command"),
        }
    }

    fn integer(&self, number: i64) -> Vec<u8> {
        match self.has("integers-as-strings") {
            true => bulk(number.to_string().as_bytes()),
            false => format!(":{number}\r\n").into_bytes(),
        }
    }

    /// Deletes expired keys every second: all of them, or 20 with the fault.
    fn expire_actively(&self) {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let limit = if self.has("one-cycle-a-second") { 20 } else { usize::MAX };
            let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
            let over = |entry: &Entry| entry.deadline.is_some_and(|deadline| deadline <= Instant::now());
            let keys: Vec<Vec<u8>> =
                data.iter().filter(|(_, entry)| over(entry)).map(|(key, _)| key.clone()).take(limit).collect();
            for key in keys {
                data.remove(&key);
                *self.expired.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            }
        }
    }
}

fn fail(writer: &mut TcpStream, message: &str) -> Option<()> {
    writer.write_all(format!("-ERR {message}\r\n").as_bytes()).ok()
}

fn bulk(value: &[u8]) -> Vec<u8> {
    course::bytes::bulk(value)
}

fn integer(bytes: &[u8]) -> Result<i64, &'static str> {
    let text = str::from_utf8(bytes).ok();
    text.and_then(|text| text.parse().ok()).ok_or("value is not an integer or out of range")
}

fn check_limits(data: &HashMap<Vec<u8>, Entry>, key: &[u8], value: &[u8], any: bool) -> Result<(), &'static str> {
    if value.len() > 512 * 1024 && !any {
        return Err("the value is too long");
    }
    if data.len() >= 10_000 && !data.contains_key(key) { Err("too many keys") } else { Ok(()) }
}

/// A command, or what is wrong with the bytes.
fn read_command(reader: &mut impl BufRead) -> Result<Vec<Vec<u8>>, &'static str> {
    let count = read_length(reader, b'*')?;
    let mut left: usize = 1024 * 1024;
    let mut command = Vec::new();
    for _ in 0..count {
        let length = read_length(reader, b'$')?;
        left = left.checked_sub(length).ok_or("the message is too long")?;
        let mut bytes = vec![0; length + 2];
        reader.read_exact(&mut bytes).map_err(|_| "the end")?;
        bytes.truncate(length);
        command.push(bytes);
    }
    Ok(command)
}

fn read_length(reader: &mut impl BufRead, kind: u8) -> Result<usize, &'static str> {
    let mut line = Vec::new();
    reader.take(64).read_until(b'\n', &mut line).map_err(|_| "the end")?;
    let digits = line.strip_prefix(&[kind]).and_then(|line| line.strip_suffix(b"\r\n")).ok_or("not RESP")?;
    let length = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    length.filter(|length| *length <= 1024 * 1024).ok_or("a bad length")
}
