//! A proxy that loses replies: the server has carried out what was sent, and the client gets no reply.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Proxy {
    pub(crate) port: u16,
    /// How many connections were cut after the server replied.
    pub(crate) cuts: Arc<AtomicUsize>,
    is_cutting: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// Forwards to a port. While it cuts, one in six replies is dropped together with its connection.
    pub(crate) async fn start(to: u16, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (cuts, is_cutting) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (counted, switch) = (cuts.clone(), is_cutting.clone());
        let task = tokio::spawn(async move {
            let mut rng = fastrand::Rng::with_seed(seed);
            while let Ok((client, _)) = listener.accept().await {
                let to = SocketAddr::from(([127, 0, 0, 1], to));
                let Ok(server) = TcpStream::connect(to).await else {
                    continue;
                };
                let lost = carry(client, server, rng.fork(), counted.clone(), switch.clone());
                tokio::spawn(lost);
            }
        });
        Self {
            port,
            cuts,
            is_cutting,
            task,
        }
    }

    pub(crate) fn cut(&self, on: bool) {
        self.is_cutting.store(on, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(
    client: TcpStream,
    server: TcpStream,
    mut rng: fastrand::Rng,
    cuts: Arc<AtomicUsize>,
    is_cutting: Arc<AtomicBool>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
    };
    let down = async {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let Ok(read @ 1..) = from_server.read(&mut buffer).await else {
                return;
            };
            if is_cutting.load(Ordering::SeqCst) && rng.u8(..6) == 0 {
                cuts.fetch_add(1, Ordering::SeqCst);
                return;
            }
            if to_client.write_all(&buffer[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}
