//! Who calls and who answers: the same shape for MUF and for NATS.
//!
//! One caller with a connection of its own, and backends that echo, each with its own too. Several NATS backends form
//! a queue group, as MUF backends share calls by claiming them. The SDKs run with their defaults, except that units do
//! not announce themselves where they are compared with NATS, whose clients do not either.

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures_util::StreamExt;
use kumi_muf::{Muf, Request};
use tokio::task::JoinSet;

use crate::store::servers::Kind;

/// What is sent, and echoed.
pub(super) const PAYLOAD: [u8; 64] =
    *b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// The service and the subject.
const TARGET: &str = "bench.echo";
const QUEUE_GROUP: &str = "bench";

/// Makes calls. Clones share a connection.
#[derive(Clone)]
pub(super) enum Caller {
    Muf(Muf),
    Nats(async_nats::Client),
}

impl Caller {
    /// One call; fails unless the payload comes back whole.
    pub(super) async fn call(&self) -> Result<()> {
        let payload = Bytes::from_static(&PAYLOAD);
        let answer = match self {
            Caller::Muf(muf) => muf.request(TARGET, payload).await?.into_bytes(),
            Caller::Nats(client) => client.request(TARGET, payload).await?.payload,
        };
        if answer != PAYLOAD[..] {
            bail!("an answer was not what was sent");
        }
        Ok(())
    }

    /// One command and its reply, on the road that the commands of calls take: a read of a value that is not there.
    pub(super) async fn read(&self) -> Result<()> {
        match self {
            Caller::Muf(muf) => muf.read_keep("caller", "nothing").await.map(|_| ())?,
            Caller::Nats(_) => bail!("NATS keeps no values"),
        }
        Ok(())
    }
}

/// A caller and its backends, which live as long as this.
pub(super) struct Parties {
    pub(super) caller: Caller,
    /// MUF backends run tasks of their own while their handle lives.
    _units: Vec<Muf>,
    /// NATS backends are loops, aborted when this is dropped.
    _loops: JoinSet<()>,
}

/// Connects all parties; when this returns, every backend is subscribed.
pub(super) async fn connect(kind: Kind, address: SocketAddr, backends: usize) -> Result<Parties> {
    let (mut units, mut loops) = (Vec::new(), JoinSet::new());
    let caller = match kind {
        Kind::Redis => {
            units = echo_units(address, backends, false).await?;
            Caller::Muf(unit(address, "caller", false).await?)
        }
        Kind::Nats => {
            for _ in 0..backends {
                let client = nats(address).await?;
                let mut requests = client
                    .queue_subscribe(TARGET, QUEUE_GROUP.to_owned())
                    .await?;
                let backend = client.clone();
                loops.spawn(async move {
                    while let Some(request) = requests.next().await {
                        if let Some(reply) = request.reply {
                            // A caller that gets no answer fails the run; nothing is left to do here.
                            let _ = backend.publish(reply, request.payload).await;
                        }
                    }
                });
                // A call on the same connection: once it is answered, the server has seen the subscription.
                Caller::Nats(client).call().await?;
            }
            Caller::Nats(nats(address).await?)
        }
    };
    Ok(Parties {
        caller,
        _units: units,
        _loops: loops,
    })
}

/// MUF's parties with all defaults: units announce themselves too.
pub(super) async fn connect_announced(address: SocketAddr, backends: usize) -> Result<Parties> {
    Ok(Parties {
        _units: echo_units(address, backends, true).await?,
        caller: Caller::Muf(unit(address, "caller", true).await?),
        _loops: JoinSet::new(),
    })
}

async fn echo_units(address: SocketAddr, backends: usize, announced: bool) -> Result<Vec<Muf>> {
    let mut units = Vec::new();
    for number in 0..backends {
        let unit = unit(address, &format!("backend-{number}"), announced).await?;
        let echo = |request: Request| async move { Ok::<_, Infallible>(request.payload().clone()) };
        unit.serve(TARGET, echo).await?;
        units.push(unit);
    }
    Ok(units)
}

async fn unit(address: SocketAddr, name: &str, announced: bool) -> Result<Muf> {
    Muf::builder(&format!("redis://{address}"), name)
        .discovery(announced)
        .connect()
        .await
        .context("a MUF unit cannot connect")
}

async fn nats(address: SocketAddr) -> Result<async_nats::Client> {
    async_nats::connect(format!("nats://{address}"))
        .await
        .context("a NATS client cannot connect")
}
