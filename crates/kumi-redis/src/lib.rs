//! Connections to a Redis server, or to all primaries of a cluster: URLs, TLS, dialling, reconnecting, slots, redirects.
//!
//! One client layer for `kumi-muf`, which drives all of it, and `kumi-jobs`, which takes the URL, its sockets
//! ([`Route::connect_socket`]), the slot map and what errors mean, and puts connections of the `redis` crate on them. [`core`] decides and opens nothing; `driver` has the
//! sockets. [`ServerUrl`] has the grammar of URLs, [`Connections`] is the entry point of the driver.
//!
//! ```no_run
//! use kumi_redis::core::strings::Command;
//! use kumi_redis::{Connections, Event, Route, ServerUrl};
//!
//! # async fn example() -> Result<(), kumi_redis::Error> {
//! let route = Route::new(ServerUrl::parse("redis://127.0.0.1:6379")?)?;
//! let (mut connections, _) = Connections::open(route, Default::default(), "").await?;
//! connections.send("my tag", vec![Command::Exists(vec!["key".into()])], false);
//! loop {
//!     if connections.wait().await {
//!         connections.take_in(|_push| {});
//!     }
//!     while let Some(event) = connections.poll_event() {
//!         if let Event::Replied(tag, replies) = event {
//!             assert_eq!((tag, replies.is_ok()), ("my tag", true));
//!             return Ok(());
//!         }
//!     }
//! }
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod core;
mod driver;

pub use crate::core::{Cause, Error, ServerUrl, without_password};
pub use driver::{
    Checks, Clock, Connection, ConnectionChanges, Connections, Event, EventsChecked, Push, Remote,
    Route, ScanError, Socket, Stream, Subscribed,
};
