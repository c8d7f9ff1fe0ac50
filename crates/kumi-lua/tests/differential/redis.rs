//! A redis-server of its own on a Unix socket, and the little RESP that EVAL needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) struct Redis {
    server: Child,
    stream: BufReader<UnixStream>,
    _folder: TempDir,
}

impl Redis {
    pub(crate) fn start() -> Redis {
        let program =
            std::env::var_os("REDIS_SERVER_BIN").unwrap_or_else(|| "/usr/bin/redis-server".into());
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = folder.path().join("redis.sock");
        let mut server = Command::new(&program)
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("the reference is Debian's redis-server (apt-get install redis-server), or REDIS_SERVER_BIN");
        let deadline = Instant::now() + Duration::from_secs(20);
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > deadline => {
                    let _ = server.kill();
                    panic!("redis-server does not listen: {error}");
                }
                Err(_) => std::thread::yield_now(),
            }
        };
        Redis {
            server,
            stream: BufReader::new(stream),
            _folder: folder,
        }
    }

    /// The reply to EVAL as text: a bulk string's contents, or an error's message.
    pub(crate) fn eval(&mut self, source: &str) -> String {
        let head = format!("*3\r\n$4\r\nEVAL\r\n${}\r\n", source.len());
        let stream = self.stream.get_mut();
        stream
            .write_all(head.as_bytes())
            .expect("redis-server reads");
        stream
            .write_all(source.as_bytes())
            .expect("redis-server reads");
        stream
            .write_all(b"\r\n$1\r\n0\r\n")
            .expect("redis-server reads");
        self.reply()
    }

    fn reply(&mut self) -> String {
        let mut line = Vec::new();
        self.stream
            .read_until(b'\n', &mut line)
            .expect("redis-server answers");
        assert!(!line.is_empty(), "redis-server closed the connection");
        let text = String::from_utf8_lossy(&line[1..line.len() - 2]).into_owned();
        match line[0] {
            b'$' => {
                let len: i64 = text.parse().expect("a length");
                if len < 0 {
                    return "nil".to_owned();
                }
                let mut bytes = vec![0; len as usize + 2];
                self.stream
                    .read_exact(&mut bytes)
                    .expect("the bytes follow");
                bytes.truncate(len as usize);
                String::from_utf8_lossy(&bytes).into_owned()
            }
            _ => text,
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
