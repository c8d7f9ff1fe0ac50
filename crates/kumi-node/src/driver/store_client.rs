//! A connection to the store for short questions: whether it replies, its clock, and INFO.

use kumi_redis::{Error as ServerError, Route, ServerUrl, Stream};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

/// How long connecting and logging in may take.
const CONNECT: Duration = Duration::from_secs(3);

/// The largest text of a reply, in bytes. INFO with all commands has a few hundred kilobytes at most.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// The most parts of a reply.
const MAX_PARTS: usize = 64;

/// The longest line of a reply, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// An authenticated connection. A call that was dropped, or failed otherwise than by the store's reply, leaves it unusable: make
/// another one.
pub(crate) struct StoreClient(BufReader<Stream>);

impl StoreClient {
    /// Connects and logs in as the URL says.
    pub(crate) async fn connect(url: &str) -> Result<Self, ServerError> {
        Self::connect_to(url, None).await
    }

    /// The same; `node` is another node of the URL's Redis Cluster, `host:port`.
    pub(crate) async fn connect_to(url: &str, node: Option<&str>) -> Result<Self, ServerError> {
        let mut route = Route::new(ServerUrl::parse(url)?)?;
        route.client_name = "kumi-node".into();
        route.library = "kumi-node";
        route.connect_timeout = CONNECT;
        let connecting = route.connect_socket(node);
        let stream = match node {
            None => route.unless_plain(connecting).await?,
            Some(_) => connecting.await?,
        };
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a command and returns the texts of its reply, one after the other.
    pub(crate) async fn call(&mut self, words: &[&str]) -> io::Result<Vec<String>> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        let stream = self.0.get_mut();
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut texts = Vec::new();
        let mut missing = 1;
        while missing > 0 {
            missing -= 1;
            match self.part().await? {
                Part::Text(text) => texts.push(text),
                // The store says how many there are, so that the sum may not fit.
                Part::Parts(parts) => missing = parts.saturating_add(missing),
            }
            if texts.len().saturating_add(missing) > MAX_PARTS {
                return Err(unexpected("a reply of too many parts"));
            }
        }
        Ok(texts)
    }

    async fn part(&mut self) -> io::Result<Part> {
        let mut line = Vec::new();
        let mut limited = (&mut self.0).take(MAX_LINE_BYTES);
        limited.read_until(b'\n', &mut line).await?;
        if !line.ends_with(b"\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&line[..line.len() - 2]).into_owned();
        let (kind, rest) = text.split_at_checked(1).unwrap_or_default();
        let number = || rest.parse::<usize>().map_err(|_| unexpected("no number"));
        match kind {
            "+" | ":" => Ok(Part::Text(rest.to_owned())),
            "-" => Err(io::Error::other(rest.to_owned())),
            "*" => Ok(Part::Parts(number()?)),
            "$" if rest == "-1" => Ok(Part::Text(String::new())),
            "$" => Ok(Part::Text(self.bulk(number()?).await?)),
            _ => Err(unexpected("a reply of another protocol")),
        }
    }

    async fn bulk(&mut self, length: usize) -> io::Result<String> {
        if length > MAX_TEXT_BYTES {
            return Err(unexpected("a reply that is too large"));
        }
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes).await?;
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

enum Part {
    Text(String),
    Parts(usize),
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the store sent {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// The reply of a store that answers each command with OK, and this one with `reply`.
    async fn call(reply: &'static [u8]) -> io::Result<Vec<String>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let store = async {
            let (stream, _) = listener.accept().await?;
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while stream.read_line(&mut line).await? > 0 {
                let replied: &[u8] = match line.trim_end() {
                    "WHICH" => reply,
                    // The last word of what a client introduces itself with.
                    word if word.starts_with("kumi-node") => b"+OK\r\n",
                    _ => b"",
                };
                stream.write_all(replied).await?;
                stream.flush().await?;
                line.clear();
            }
            io::Result::Ok(())
        };
        let client = async {
            let client = StoreClient::connect(&format!("redis://{address}")).await;
            let mut client = client.map_err(io::Error::other)?;
            client.call(&["WHICH"]).await
        };
        tokio::select! {
            texts = client => texts,
            ended = store => Err(ended.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())),
        }
    }

    #[tokio::test]
    async fn a_reply_says_how_many_parts_it_has_and_may_lie() {
        let texts = call(b"*2\r\n+a\r\n*1\r\n:7\r\n").await;
        assert_eq!(texts.expect("a reply"), ["a", "7"]);
        for reply in [
            &b"*65\r\n"[..],
            b"*18446744073709551615\r\n",
            b"*2\r\n+a\r\n*18446744073709551615\r\n",
            b"*2\r\n*18446744073709551615\r\n",
        ] {
            let error = call(reply).await.expect_err("too many").to_string();
            assert!(error.contains("too many parts"), "{error}");
        }
    }
}
