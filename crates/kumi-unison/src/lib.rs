//! Unison: typed requests and events over QUIC, and in memory.

mod channel;
mod context;
mod core;
mod error;
mod identity;
mod local;
mod memory;
mod metrics;
mod payload;
mod quic;
mod registry;
#[allow(
    dead_code,
    unused_imports,
    reason = "the endpoints that use the rest of it come next"
)]
mod tls;
mod wire;

pub use channel::{
    CallOptions, ChannelOptions, DEFAULT_DEADLINE, DEFAULT_FRAME_TIMEOUT, DEFAULT_MAX_IN_FLIGHT,
    EventReceiver, IncomingRequest, OWN_STREAM_BYTES, RESET_CODE, Service, StreamHandle,
    StreamOpener, SystemStream, TransportRecv, TransportSend, UnisonChannel, UnisonStream,
};
pub use context::{ChannelHandle, ConnectionContext, ConnectionLimits};
pub use core::{EventPolicy, Window};
pub use error::{NetworkError, RemoteError, TransportError};
pub use identity::{
    ChannelDirection, ChannelInfo, ChannelStatus, ChannelUpdate, Delivery, Lifetime, SchemaId,
    ServerIdentity,
};
pub use local::{
    BidirectionalChannel, IncomingQuestion, PeerChannel, ReceiveChannel, RequestChannel,
    RespondChannel, SendChannel, ServiceChannel, StreamReceiver, StreamSender,
};
pub use memory::{ChannelSource, MemoryClient, MemoryRecv, MemorySend, memory_stream};
pub use metrics::{Metrics, MetricsSnapshot};
pub use payload::{Payload, TypedPayload};
pub use registry::{ChannelHandler, ChannelRegistry, ChannelSpec, LegacyHandler, ServiceHandler};
pub use tls::{ClientTls, ClusterKey, Credentials, Fingerprint, ServerTls, TlsError, TrustStore};
pub use wire::{
    ALPN, ArchivedProtocolMessage, COMPRESSION_SAMPLE, COMPRESSION_THRESHOLD, Codec, ContentType,
    FrameReader, HEADER_LEN, MAX_MESSAGE_SIZE, MessageType, Metadata, PROTOCOL_VERSION, Packet,
    PacketFlags, PacketHeader, PacketType, ProtocolMessage, WireError, encode_frame,
    encode_unframed,
};
pub use {rkyv, serde, serde_json};
