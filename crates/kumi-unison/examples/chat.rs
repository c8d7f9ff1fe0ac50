//! A chat room: typed requests from the clients, events from the server to everybody in the room.
//!
//! ```text
//! cargo run -p kumi-unison --example chat                                   # a room and two guests in one process
//! cargo run -p kumi-unison --example chat -- serve 127.0.0.1:4433           # a room; prints its fingerprint
//! cargo run -p kumi-unison --example chat -- join 127.0.0.1:4433 FINGERPRINT ann   # lines typed are said
//! ```

use std::error::Error;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use kumi_unison::{
    ChannelOptions, ClientTls, ConnectionContext, IncomingRequest, Lifetime, Payload,
    ProtocolClient, ProtocolServer, RemoteError, ServerTls, UnisonChannel,
};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

#[derive(Debug, Serialize, Deserialize)]
struct Say {
    name: String,
    text: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Said {
    heard_by: usize,
}

/// What everybody in the room hears.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    name: String,
    text: String,
}

/// A server with one room. Lines are handed around inside it; each guest's channel passes them on as events.
fn room() -> ProtocolServer {
    let (lines, _) = broadcast::channel::<Line>(256);
    let server = ProtocolServer::new("chat", "1.0.0", "example");
    server.register_channel(
        "room",
        move |_: Arc<ConnectionContext>, channel: UnisonChannel| {
            let (lines, mut heard) = (lines.clone(), lines.subscribe());
            async move {
                channel.set_service(move |request: IncomingRequest| {
                    let lines = lines.clone();
                    async move { say(&lines, &request) }
                });
                loop {
                    tokio::select! {
                        line = heard.recv() => match line {
                            Ok(line) => channel.send_event_json("Line", &line).await?,
                            // A guest that reads too slowly misses lines, as in a loud room.
                            Err(broadcast::error::RecvError::Lagged(_)) => {}
                            Err(broadcast::error::RecvError::Closed) => return Ok(()),
                        },
                        _ = channel.closed() => return Ok(()),
                    }
                }
            }
        },
    );
    server
}

fn say(lines: &broadcast::Sender<Line>, request: &IncomingRequest) -> Result<Payload, RemoteError> {
    if request.method() != "Say" {
        return Err(RemoteError::method_not_found(request.method()));
    }
    let Say { name, text } = request.payload().to_json()?;
    if text.is_empty() {
        return Err(RemoteError::invalid("nothing was said"));
    }
    let heard_by = lines.send(Line { name, text }).unwrap_or(0);
    Ok(Payload::json(&Said { heard_by })?)
}

async fn enter(
    address: &str,
    tls: ClientTls,
) -> Result<(ProtocolClient, UnisonChannel), Box<dyn Error>> {
    let client = ProtocolClient::connect(address, tls).await?;
    let options = ChannelOptions::default().lifetime(Lifetime::Persistent);
    let channel = client.open_channel_with("room", options).await?;
    Ok((client, channel))
}

async fn next_line(channel: &UnisonChannel) -> Result<Line, Box<dyn Error>> {
    loop {
        let event = channel.recv().await?;
        if event.is_resumed() {
            println!("(connected again; lines may be missing)");
            continue;
        }
        return Ok(serde_json::from_slice(&event.payload)?);
    }
}

/// Everything in one process: what the two guests see is checked, so this is a test as well.
async fn demonstrate() -> Result<(), Box<dyn Error>> {
    let tls = ServerTls::development(&["localhost"])?;
    let handle = room().listen("127.0.0.1:0".parse()?, &tls)?;
    let address = handle.local_addr().to_string();
    let pinned = ClientTls::pinned([tls.fingerprint()])?;
    let (ann, anns) = enter(&address, pinned.clone()).await?;
    let (bob, bobs) = enter(&address, pinned).await?;

    let said = Say {
        name: "ann".to_owned(),
        text: "hello".to_owned(),
    };
    let answer: Said = anns.request_json("Say", &said).await?;
    println!("ann was heard by {}", answer.heard_by);
    for (guest, channel) in [("ann", &anns), ("bob", &bobs)] {
        let line = next_line(channel).await?;
        println!("{guest} hears {}: {}", line.name, line.text);
        assert_eq!((line.name.as_str(), line.text.as_str()), ("ann", "hello"));
    }
    let nothing = Say {
        name: "bob".to_owned(),
        text: String::new(),
    };
    let answer = bobs.request_json::<_, Said>("Say", &nothing).await;
    let refused = answer.expect_err("nothing cannot be said");
    println!("bob is refused: {refused}");

    ann.close().await;
    bob.close().await;
    handle.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

async fn join(address: &str, fingerprint: &str, name: &str) -> Result<(), Box<dyn Error>> {
    let (_client, channel) = enter(address, ClientTls::pinned([fingerprint.parse()?])?).await?;
    let (typed, mut lines) = tokio::sync::mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if typed.blocking_send(line).is_err() {
                return;
            }
        }
    });
    loop {
        tokio::select! {
            line = next_line(&channel) => {
                let line = line?;
                println!("{}: {}", line.name, line.text);
            }
            text = lines.recv() => match text {
                Some(text) => {
                    let say = Say { name: name.to_owned(), text };
                    if let Err(error) = channel.request_json::<_, Said>("Say", &say).await {
                        println!("({error})");
                    }
                }
                None => return Ok(()),
            },
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => demonstrate().await,
        ["serve", address] => {
            let tls = ServerTls::development(&["localhost"])?;
            let _handle = room().listen(address.parse()?, &tls)?;
            println!("listening on {address}, fingerprint {}", tls.fingerprint());
            std::future::pending().await
        }
        ["join", address, fingerprint, name] => join(address, fingerprint, name).await,
        _ => Err("takes nothing, `serve ADDRESS` or `join ADDRESS FINGERPRINT NAME`".into()),
    }
}
