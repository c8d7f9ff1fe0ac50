//! W3C trace context: named by a call or current where it is made, given to the handler, and passed on by it.

use crate::support::registry_with;
use kumi_unison::{
    CallOptions, ChannelOptions, ChannelRegistry, ChannelSource, IncomingRequest, MemoryClient,
    Payload, RemoteError, ServiceHandler, TraceContext, UnisonChannel,
};

const ONE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-11112222333344445555666677778888-aaaabbbbccccdddd-00";

fn trace(text: &str) -> TraceContext {
    text.parse().unwrap()
}

/// Answers with the trace context of the request, and of what is current in the handler after it waited.
async fn traced(request: IncomingRequest) -> Result<Payload, RemoteError> {
    let carried = request.traceparent();
    let before = TraceContext::current();
    tokio::task::yield_now().await;
    let shown = [carried, before, TraceContext::current()];
    let shown = shown.map(|trace| trace.map(|trace| trace.to_string()));
    Ok(Payload::json(&shown)?)
}

async fn open(registry: &ChannelRegistry, name: &str) -> UnisonChannel {
    let client = MemoryClient::connect(registry);
    let opened = client.open_channel(name, ChannelOptions::new()).await;
    opened.unwrap()
}

async fn ask(channel: &UnisonChannel, options: CallOptions) -> [Option<String>; 3] {
    let payload = Payload::json(&()).unwrap();
    let answer = channel.call("m", payload, options).await.unwrap();
    answer.to_json().unwrap()
}

#[tokio::test]
async fn a_call_carries_the_context_it_names_or_the_current_one() {
    let channel = open(&registry_with("c", ServiceHandler::new(traced)), "c").await;
    let everywhere = |text: &str| {
        [
            Some(text.to_owned()),
            Some(text.to_owned()),
            Some(text.to_owned()),
        ]
    };
    let plain = CallOptions::new();
    assert_eq!(ask(&channel, plain).await, [None, None, None]);
    let named = plain.traceparent(trace(ONE));
    assert_eq!(ask(&channel, named).await, everywhere(ONE));
    let current = trace(OTHER).scope(ask(&channel, plain)).await;
    assert_eq!(current, everywhere(OTHER));
    let both = trace(OTHER).scope(ask(&channel, named)).await;
    assert_eq!(both, everywhere(ONE), "what the call names comes first");
    assert_eq!(ask(&channel, plain).await, [None, None, None]);
    let apart = named.own_stream(true);
    assert_eq!(ask(&channel, apart).await, everywhere(ONE));
    // Long enough to be prepared outside of the channel's lock.
    let payload = Payload::bytes(vec![7; 100_000]);
    let answer = channel.call("m", payload, named).await.unwrap();
    let answer: [Option<String>; 3] = answer.to_json().unwrap();
    assert_eq!(answer, everywhere(ONE));
}

#[tokio::test]
async fn what_a_handler_asks_in_turn_belongs_to_the_same_trace() {
    let behind = registry_with("c", ServiceHandler::new(traced));
    let behind = open(&behind, "c").await;
    let front = registry_with(
        "front",
        ServiceHandler::new(move |_: IncomingRequest| {
            let behind = behind.clone();
            async move {
                tokio::task::yield_now().await;
                let answer = ask(&behind, CallOptions::new()).await;
                Ok(Payload::json(&answer)?)
            }
        }),
    );
    let front = open(&front, "front").await;
    let answer = ask(&front, CallOptions::new().traceparent(trace(ONE))).await;
    assert_eq!(answer[0].as_deref(), Some(ONE));
    assert_eq!(ask(&front, CallOptions::new()).await[0], None);
}
