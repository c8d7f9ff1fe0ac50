//! kumi: what a team runs instead of a Redis, a message broker, a job queue and a service registry.
//!
//! This library is a facade: each feature adds a module that re-exports one crate. Its only code of its own is the
//! command line.
//!
//! | feature | module | what it is |
//! |---|---|---|
//! | `store` | `kumi::store` | a Redis-compatible server inside this program |
//! | `muf` | `kumi::muf` | request/reply, kept values and discovery over any Redis; `tls` adds `rediss://` |
//! | `jobs` | `kumi::jobs` | tasks with retries, leases and cron, in memory or on any Redis; `tls` adds `rediss://` |
//! | `unison` | `kumi::unison` | typed requests and events over QUIC, or in memory |
//! | `cluster` | `kumi::cluster` | membership and failure detection over Unison |
//! | `cli` | | all of them, and the `kumi` binary with its parser and allocator; on by default |
//!
//! A program that uses kumi as a library leaves `cli` out:
//!
//! ```toml
//! [dependencies]
//! kumi = { path = "../kumi/crates/kumi", default-features = false, features = ["store", "muf"] }
//! ```
//!
//! # A store
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kumi::store::Embedded;
//!
//! let store = Embedded::builder().set("maxmemory", "10mb").start()?;
//! let mut client = redis::Client::open(store.url())?.get_connection()?;
//! redis::cmd("SET").arg("greeting").arg("hello").exec(&mut client)?;
//! let greeting: String = redis::cmd("GET").arg("greeting").query(&mut client)?;
//! assert_eq!(greeting, "hello");
//! # Ok(()) }
//! ```
//!
//! # MUF: calls between programs
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kumi::muf::{Error, Muf, Request};
//!
//! let store = kumi::store::embedded()?; // or the URL of any Redis
//! let backend = Muf::connect(store.url(), "greeter").await?;
//! backend
//!     .serve("greet.hello", |request: Request| async move {
//!         Ok::<_, Error>(format!("hello, {}", request.text()?))
//!     })
//!     .await?;
//!
//! let web = Muf::connect(store.url(), "web").await?;
//! assert_eq!(web.request("greet.hello", "Ann").await?.text()?, "hello, Ann");
//! # Ok(()) }
//! ```
//!
//! # Jobs
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kumi::jobs::{Context, Jobs, Task, TaskError, Worker};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Double(u64);
//!
//! impl Task for Double {
//!     const TYPE: &'static str = "double";
//!     type Output = u64;
//! }
//!
//! async fn double(task: Double, _: Context<()>) -> Result<u64, TaskError> {
//!     Ok(2 * task.0)
//! }
//!
//! let jobs = Jobs::memory(); // or Jobs::connect("redis://...")
//! let handle = jobs.enqueue(Double(21)).await?;
//! let done = async { assert_eq!(handle.result().await.ok(), Some(42)) };
//! Worker::new(&jobs, ()).handle(double).run_until(done).await?;
//! # Ok(()) }
//! ```
//!
//! # Unison: channels
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kumi::unison::{ChannelOptions, ChannelRegistry, ChannelSource, IncomingRequest, MemoryClient, ServiceHandler};
//! use serde_json::json;
//!
//! let registry = ChannelRegistry::new("demo", "1.0.0", "default");
//! let echo = |request: IncomingRequest| async move { Ok(request.into_payload()) };
//! registry.register_channel("echo", ServiceHandler::new(echo));
//!
//! let client = MemoryClient::connect(&registry); // or ProtocolClient::connect(address, tls) over QUIC
//! let channel = client.open_channel("echo", ChannelOptions::new()).await?;
//! assert_eq!(channel.request("say", json!("hello")).await?, json!("hello"));
//! # Ok(()) }
//! ```
//!
//! # Membership
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kumi::cluster::{ClusterNode, MembershipRuntimeConfig, MemoryNetwork, NodeOptions, Transport};
//!
//! let network = MemoryNetwork::new(); // or Transport::quic(security)
//! let options = NodeOptions::new(MembershipRuntimeConfig::local());
//! let first = ClusterNode::start(options.clone(), Transport::memory(&network)).await?;
//! let mut watch = first.subscribe();
//! let options = options.seeds([first.authority().clone()]);
//! let second = ClusterNode::start(options, Transport::memory(&network)).await?;
//! while first.members().members.len() < 2 {
//!     watch.next().await;
//! }
//! second.leave().await?;
//! # Ok(()) }
//! ```

/// A Redis-compatible server inside this program: the crates `kumi-server` and `kumi-store`.
#[cfg(feature = "store")]
pub mod store {
    pub use kumi_server::{
        Builder, EmbedError, Embedded, ListenError, Listeners, ServerConfig, ServerError, Shutdown,
        embedded, embedded_at, embedded_with, run,
    };
    pub use kumi_store::Config;
    pub use kumi_store::config::{ConfigError, Origin};
}

/// The command line, for the binary only: not an interface to build on.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod command_line;

#[cfg(feature = "cluster")]
pub use kumi_cluster as cluster;
#[cfg(feature = "jobs")]
pub use kumi_jobs as jobs;
#[cfg(feature = "muf")]
pub use kumi_muf as muf;
#[cfg(feature = "unison")]
pub use kumi_unison as unison;
