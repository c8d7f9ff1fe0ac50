//! A chat room: typed requests from the guests, typed events to everybody in the room, all from `schema/chat.kdl`.
//!
//! ```text
//! cargo run -p chat                                            # a room and two guests in one process
//! cargo run -p chat -- serve 127.0.0.1:4433                    # a room; prints its fingerprint
//! cargo run -p chat -- join 127.0.0.1:4433 FINGERPRINT ann     # lines typed are said
//! ```

mod room;

/// What `build.rs` wrote.
mod chat {
    include!(concat!(env!("OUT_DIR"), "/chat.rs"));
}

use std::error::Error;
use std::io::BufRead;
use std::process::ExitCode;
use std::time::Duration;

use chat::{ChatChannels, ChatConnectionBuilder, Enter, Line, RoomClient, RoomEventStreams, Say};
use kumi_unison::{ClientTls, ProtocolClient, ServerTls, StreamItem};

/// Somebody in the room.
struct Guest {
    name: String,
    client: ProtocolClient,
    room: RoomClient,
    events: RoomEventStreams,
    /// Whether the server knows that we are here.
    is_seated: bool,
}

impl Guest {
    async fn enter(address: &str, tls: ClientTls, name: &str) -> Result<Guest, Box<dyn Error>> {
        let client = ProtocolClient::connect(address, tls).await?;
        let room = ChatChannels::build(&client).await?.room();
        let events = room.event_streams();
        let mut guest = Guest {
            name: name.to_owned(),
            client,
            room,
            events,
            is_seated: false,
        };
        guest.take_seat().await?;
        Ok(guest)
    }

    async fn take_seat(&mut self) -> Result<(), Box<dyn Error>> {
        let entered = self.room.enter(&Enter::new(self.name.clone())).await?;
        self.is_seated = true;
        println!("{} is in, with {}", self.name, entered.present.join(", "));
        Ok(())
    }

    /// The next line. After a lost connection the server sees somebody new, so the seat is taken again. Dropping the
    /// future loses no line.
    async fn next_line(&mut self) -> Result<Line, Box<dyn Error>> {
        loop {
            if !self.is_seated {
                println!("{} is connected again; lines may be missing", self.name);
                self.take_seat().await?;
            }
            tokio::select! {
                // Who came before a line was said is told of first.
                biased;
                Some(came) = self.events.came.next() => {
                    println!("{} hears that {} came", self.name, came?.name);
                }
                line = self.events.line.recv() => match line? {
                    StreamItem::Event(line) => return Ok(line),
                    _ => self.is_seated = false,
                },
            }
        }
    }
}

/// Everything in one process.
async fn demonstrate() -> Result<(), Box<dyn Error>> {
    let tls = ServerTls::development(&["localhost"])?;
    let handle = room::server().listen("127.0.0.1:0".parse()?, &tls)?;
    let address = handle.local_addr().to_string();
    let pinned = ClientTls::pinned([tls.fingerprint()])?;
    let mut ann = Guest::enter(&address, pinned.clone(), "ann").await?;
    let mut bob = Guest::enter(&address, pinned, "bob").await?;

    let said = ann.room.say(&Say::new("hello")).await?;
    println!("ann was heard by {}", said.heard_by);
    for guest in [&mut ann, &mut bob] {
        let line = guest.next_line().await?;
        println!("{} hears {}: {}", guest.name, line.by, line.text);
    }
    // The schema wants a text; this is refused before it is sent.
    if let Err(error) = bob.room.say(&Say::new("")).await {
        println!("bob cannot say nothing: {error}");
    }

    // As if the network had failed. The channel and its streams live on.
    if let Some(connection) = bob.client.context() {
        connection.close();
    }
    let (line, said) = tokio::join!(bob.next_line(), async {
        // Bob's return is the next thing ann hears of.
        let came = ann.events.came.next().await.ok_or("the room is gone")??;
        println!("ann hears that {} came", came.name);
        let said = ann.room.say(&Say::new("welcome back")).await?;
        Ok::<_, Box<dyn Error>>(said.heard_by)
    });
    let line = line?;
    println!("{} hear {}: {}", said?, line.by, line.text);

    ann.client.close().await;
    bob.client.close().await;
    handle.shutdown(Duration::from_secs(1)).await;
    Ok(())
}

async fn join(address: &str, fingerprint: &str, name: &str) -> Result<(), Box<dyn Error>> {
    let pinned = ClientTls::pinned([fingerprint.parse()?])?;
    let mut guest = Guest::enter(address, pinned, name).await?;
    let (typed, mut texts) = tokio::sync::mpsc::channel(16);
    std::thread::spawn(move || {
        for text in std::io::stdin().lock().lines().map_while(Result::ok) {
            if typed.blocking_send(text).is_err() {
                return;
            }
        }
    });
    let room = guest.room.clone();
    loop {
        tokio::select! {
            line = guest.next_line() => {
                let line = line?;
                println!("{}: {}", line.by, line.text);
            }
            text = texts.recv() => match text {
                Some(text) => {
                    if let Err(error) = room.say(&Say::new(text)).await {
                        println!("({error})");
                    }
                }
                None => break,
            },
        }
    }
    guest.client.close().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chat: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => demonstrate().await,
        ["serve", address] => {
            let tls = ServerTls::development(&["localhost"])?;
            let handle = room::server().listen(address.parse()?, &tls)?;
            let (address, fingerprint) = (handle.local_addr(), tls.fingerprint());
            println!("listening on {address}, fingerprint {fingerprint}");
            std::future::pending().await
        }
        ["join", address, fingerprint, name] => join(address, fingerprint, name).await,
        _ => Err("takes nothing, `serve ADDRESS` or `join ADDRESS FINGERPRINT NAME`".into()),
    }
}
