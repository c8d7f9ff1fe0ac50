//! The driver: runs the core of each channel on tokio, over QUIC or in memory.
//!
//! ```text
//!   UnisonChannel ── ChannelDriver (the core behind a lock) ── tasks that read and write ── TransportRecv, TransportSend
//!                          │                                                                  │
//!                   ConnectionContext (limits, metrics, open channels)                 memory/ or quic/
//! ```
//!
//! [`ChannelRegistry`] has the channels that a server offers. Everything that needs a clock, a socket or a task is here.

pub(crate) mod channel;
pub(crate) mod memory;
pub(crate) mod metrics;
#[cfg(feature = "quic")]
pub(crate) mod quic;
pub(crate) mod registry;
pub(crate) mod subscription;

pub use channel::context::{ConnectionContext, ConnectionLimits};
pub use channel::{
    CLOSED_CODE, CallOptions, ChannelOptions, DEFAULT_DEADLINE, DEFAULT_FRAME_TIMEOUT,
    DEFAULT_MAX_IN_FLIGHT, DEFAULT_OPEN_TIMEOUT, DatagramLink, EventReceiver, IncomingRequest,
    OWN_STREAM_BYTES, RESET_CODE, Service, StreamOpener, TransportRecv, TransportSend,
    UnisonChannel,
};
pub use memory::{ChannelSource, MemoryClient, MemoryRecv, MemorySend, memory_stream};
pub use metrics::{Metrics, MetricsSnapshot};
#[cfg(feature = "quic")]
pub use quic::{
    ClientOptions, ProtocolClient, ProtocolServer, ReconnectPolicy, ServerHandle, ServerLimits,
    Traffic, bind_socket, endpoint_config, transport_config,
};
pub use registry::{ChannelHandler, ChannelRegistry, ChannelSpec, ServiceHandler};
pub use subscription::{Lagged, Subscription};
