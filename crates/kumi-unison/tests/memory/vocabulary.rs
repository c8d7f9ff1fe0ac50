//! A program in the words of the design document: its types, their fields and methods, used as it uses them.

use std::sync::Arc;

use kumi_unison::document::{
    ChannelHandle, StreamHandle, StreamReceiver, StreamSender, SystemStream, UnisonStream,
};
use kumi_unison::driver::memory_stream;
use kumi_unison::wire::MAX_MESSAGE_SIZE;
use kumi_unison::{
    ChannelDirection, ChannelInfo, ChannelOptions, ChannelRegistry, ChannelSource, ChannelStatus,
    ChannelUpdate, ConnectionContext, MemoryClient, NetworkError, ProtocolMessage, ServerIdentity,
    UnisonChannel,
};
use serde_json::{Value, json};

#[test]
fn a_context_knows_its_connection_and_who_the_server_is() {
    let context = ConnectionContext::new();
    assert_ne!(
        context.connection_id,
        ConnectionContext::new().connection_id
    );
    let mut identity = ServerIdentity::new("unison", "0.1.0", "default");
    identity.add_channel(ChannelInfo {
        name: "chat".to_string(),
        direction: ChannelDirection::Bidirectional,
        lifetime: "persistent".parse().unwrap(),
        status: ChannelStatus::Available,
        delivery: Default::default(),
        schema: None,
    });
    identity.metadata = json!({ "region": "tokyo" });
    context.set_identity(identity.clone());
    assert_eq!(context.identity(), Some(identity));
    assert_eq!(context.channels(), []);
}

#[test]
fn updates_travel_with_type_and_channel() {
    let check = |update: ChannelUpdate, expected: Value| {
        assert_eq!(serde_json::to_value(update).unwrap(), expected);
    };
    check(
        ChannelUpdate::Removed("chat".to_string()),
        json!({ "type": "Removed", "channel": "chat" }),
    );
    check(
        ChannelUpdate::StatusChanged {
            name: "chat".to_string(),
            status: ChannelStatus::Unavailable,
        },
        json!({ "type": "StatusChanged", "channel": { "name": "chat", "status": "Unavailable" } }),
    );
    assert_eq!(MAX_MESSAGE_SIZE, 8 * 1024 * 1024);
}

#[tokio::test]
async fn a_channel_asks_tells_receives_and_closes() -> Result<(), NetworkError> {
    let server = ChannelRegistry::new("unison", "0.1.0", "default");
    server.register_channel(
        "chat",
        |_context: Arc<ConnectionContext>, channel: UnisonChannel| async move {
            channel.send_event("welcome", json!("hello")).await?;
            channel.serve(support_echo).await
        },
    );
    let identity: ServerIdentity = server.build_identity();
    assert_eq!(identity.channels[0].name, "chat");

    let client = MemoryClient::connect(&server);
    let channel: UnisonChannel = client.open_channel("chat", ChannelOptions::new()).await?;
    let event: ProtocolMessage = channel.recv().await?;
    assert_eq!(event.method, "welcome");
    let answer: Value = channel.request("say", json!({ "n": 1 })).await?;
    assert_eq!(answer, json!({ "n": 1 }));
    channel.send_event("bye", json!(null)).await?;
    let handle: Option<ChannelHandle> = client.context().channel("chat");
    assert_eq!(handle.unwrap().direction, ChannelDirection::Bidirectional);
    channel.close().await?;
    let error = channel.request("say", json!(2)).await.unwrap_err();
    assert_eq!(error, NetworkError::closed());
    Ok(())
}

async fn support_echo(
    request: kumi_unison::IncomingRequest,
) -> Result<kumi_unison::Payload, kumi_unison::RemoteError> {
    Ok(request.into_payload())
}

#[tokio::test]
async fn a_stream_sends_and_receives_values() {
    let ((send, recv), (far_send, far_recv)) = memory_stream();
    let mut near = UnisonStream::new(send, recv, 7, "tick");
    let mut far = UnisonStream::new(far_send, far_recv, 7, "tick");
    near.send(json!({ "n": 1 })).await.unwrap();
    assert_eq!(far.receive().await.unwrap(), json!({ "n": 1 }));
    assert!(near.is_active());
    let handle: StreamHandle = near.get_handle();
    assert_eq!(handle.stream_id, 7);
    near.close().await.unwrap();
    assert!(!near.is_active());
}

#[tokio::test]
async fn values_go_from_sender_to_receiver_inside_a_process() {
    let (sender, mut receiver): (StreamSender<u32>, StreamReceiver<u32>) = StreamSender::pair(1);
    sender.send(1).await.unwrap();
    drop(sender);
    assert_eq!(receiver.recv().await, Some(1));
    assert_eq!(receiver.recv().await, None);
}
