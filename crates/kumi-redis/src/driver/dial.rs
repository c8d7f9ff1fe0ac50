//! Opening sockets: names are resolved, nothing is sent yet but the handshake of TLS.

use std::io;

use redis::ConnectionAddr;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use super::stream::{Failed, Stream, unusable};
use super::tls::Trust;

/// Connects. Dropping the future closes what was opened.
pub(super) async fn dial(addr: &ConnectionAddr, trust: &Trust) -> Result<Stream, Failed> {
    match addr {
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(tcp(host, *port).await?)),
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        ConnectionAddr::TcpTls { host, port, .. } => {
            trust.meet(host, tcp(host, *port).await?).await
        }
        _ => Err(unusable("this kind of address cannot be connected to").into()),
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // Writes are gathered before they are made; waiting for more would only delay them.
    stream.set_nodelay(true)?;
    Ok(stream)
}
