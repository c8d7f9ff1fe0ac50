//! Connections to a Redis server, or to all primaries of a cluster.
//!
//! Commands go in as pipelines with a tag; replies (or that they are lost), pushes and changes of the state come out. URLs,
//! upkeep commands and values are the `redis` crate's; its connections are not used, because each has tasks and queues
//! of its own between its owner and the socket.
//!
//! From the top: `pipelines.rs` sends commands and takes in what comes, `keeping.rs` keeps nodes connected and subscribed;
//! both are methods of [`Connections`] in `connections.rs`. `fleet.rs` knows which node has which slot, `lane.rs` is a
//! connection for commands, and the one for large values, `waiting.rs` knows which replies are outstanding, `node.rs` sets
//! connections up, `events.rs` switches keyspace events on, `remote.rs` lends a node to tasks and `scan.rs` is one of their
//! uses. `exchange.rs` sends a command and waits for its reply, for both. `buffered.rs` moves bytes over a `stream.rs` that `dial.rs` opens, with TLS by `tls.rs`.

mod buffered;
mod connections;
mod dial;
mod events;
mod exchange;
mod fleet;
mod keeping;
mod lane;
mod node;
mod pipelines;
mod remote;
mod scan;
mod state;
mod stream;
mod tls;
mod waiting;

pub use connections::{Clock, Connections, Event, Push};
pub use keeping::{Checks, EventsChecked, Subscribed};
pub use node::Route;
pub use remote::Remote;
pub use scan::ScanError;
pub use state::{Connection, ConnectionChanges};
pub use stream::{Socket, Stream};
