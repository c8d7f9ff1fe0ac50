//! The names that documents and other implementations use exist, and the documentation says what each is.

use kumi_unison::document::{
    ChannelHandle, StreamHandle, StreamReceiver, StreamSender, SystemStream, UnisonStream,
};
use kumi_unison::local::{
    BidirectionalChannel, PeerChannel, ReceiveChannel, RequestChannel, RespondChannel, SendChannel,
};
use kumi_unison::{
    ChannelDirection, ChannelInfo, ChannelStatus, ChannelUpdate, ConnectionContext, NetworkError,
    ProtocolClient, ProtocolMessage, ProtocolServer, ServerIdentity, UnisonChannel,
};
use std::path::Path;

/// Each is named as a type, so that it has to exist, and returned as text.
macro_rules! types {
    ($($name:ident $(<$argument:ty $(, $more:ty)?>)?),* $(,)?) => {
        [$({
            let _ = size_of::<$name $(<$argument $(, $more)?>)?>();
            stringify!($name)
        }),*]
    };
}

/// The one that is a trait, and who fills it.
fn system_stream<S: SystemStream>() -> &'static str {
    let _ = size_of::<S>();
    "SystemStream"
}

#[test]
fn every_name_exists_and_is_explained() {
    let types = types!(
        ConnectionContext,
        ChannelHandle,
        ChannelDirection,
        ChannelStatus,
        ServerIdentity,
        ChannelInfo,
        ChannelUpdate,
        UnisonStream,
        StreamHandle,
        UnisonChannel,
        ProtocolServer,
        ProtocolClient,
        ProtocolMessage,
        NetworkError,
        StreamSender<u8>,
        StreamReceiver<u8>,
        SendChannel<u8>,
        ReceiveChannel<u8>,
        RequestChannel<u8, u8>,
        RespondChannel<u8, u8>,
        PeerChannel<u8, u8>,
        BidirectionalChannel<u8, u8>,
    );
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = std::fs::read_to_string(documents.join("unison.md")).expect("it is there");
    let generated = ["Connection", "QuicConnection", "ConnectionBuilder"];
    let generated = generated.map(|suffix| format!("{{Protocol}}{suffix}"));
    let known = types.into_iter();
    let known = known.chain([system_stream::<UnisonStream>()]);
    for name in known.chain(generated.iter().map(String::as_str)) {
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/unison.md does not say what {name} is"
        );
    }
}
