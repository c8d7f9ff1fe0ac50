//! Peers that ask and do not read their answers: what that makes the answering side hold, and do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::registry_with;
use bytes::Bytes;
use futures_util::future::join_all;
use kumi_unison::driver::{ConnectionLimits, MemoryRecv, TransportRecv, memory_stream};
use kumi_unison::wire::Codec;
use kumi_unison::{
    CallOptions, ChannelOptions, ConnectionContext, IncomingRequest, NetworkError, Payload,
    RemoteError, Service, ServiceHandler, TransportError, UnisonChannel,
};
use tokio::sync::Semaphore;

const MIB: usize = 1024 * 1024;
/// What the answering side may hold of requests. Of answers it may hold twice as much.
const HELD_BYTES: usize = 4 * MIB;

/// Reads only once the gate is open.
struct Gated {
    recv: MemoryRecv,
    gate: Arc<Semaphore>,
}

impl TransportRecv for Gated {
    async fn read(&mut self, into: &mut Vec<Bytes>) -> Result<bool, TransportError> {
        drop(self.gate.acquire().await);
        self.recv.read(into).await
    }

    fn stop(&mut self, code: u32) {
        self.recv.stop(code);
    }
}

/// Asks all at once; the results come when the gate is open.
fn ask(
    channel: &UnisonChannel,
    requests: usize,
    payload: &Bytes,
) -> tokio::task::JoinHandle<Vec<Result<Payload, NetworkError>>> {
    let calls = (0..requests).map(|_| {
        let (channel, payload) = (channel.clone(), payload.clone());
        async move {
            let payload = Payload::bytes(payload);
            channel.call("m", payload, CallOptions::new()).await
        }
    });
    tokio::spawn(join_all(calls))
}

/// A channel to a service, whose answers are read once the gate is open.
struct Lab {
    channel: UnisonChannel,
    gate: Arc<Semaphore>,
    server: Arc<ConnectionContext>,
}

impl Lab {
    fn start(service: impl Service) -> Lab {
        let registry = registry_with("lab", ServiceHandler::new(service));
        let ((send, recv), (server_send, server_recv)) = memory_stream();
        let limits = ConnectionLimits::default().max_held_bytes(HELD_BYTES);
        let server = ConnectionContext::with(limits, Arc::new(Codec::new()));
        let context = Arc::clone(&server);
        tokio::spawn(async move {
            registry
                .serve_stream(context, server_send, server_recv, 0)
                .await;
        });
        let gate = Arc::new(Semaphore::new(0));
        let recv = Gated {
            recv,
            gate: Arc::clone(&gate),
        };
        let client = ConnectionContext::new();
        let channel =
            UnisonChannel::open(send, recv, 0, "lab", ChannelOptions::new(), &client).unwrap();
        Lab {
            channel,
            gate,
            server,
        }
    }

    fn ask(
        &self,
        requests: usize,
        payload: &Bytes,
    ) -> tokio::task::JoinHandle<Vec<Result<Payload, NetworkError>>> {
        ask(&self.channel, requests, payload)
    }
}

fn noise(len: usize) -> Bytes {
    let mut random = fastrand::Rng::with_seed(18);
    let mut noise = vec![0; len];
    random.fill(&mut noise);
    noise.into()
}

/// Lets every task go as far as it can.
async fn settle() {
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn while_answers_wait_no_further_handlers_run() {
    let ran = Arc::new(AtomicUsize::new(0));
    let answer = noise(MIB);
    let service = {
        let (ran, answer) = (Arc::clone(&ran), answer.clone());
        move |_: IncomingRequest| {
            ran.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Ok::<_, RemoteError>(Payload::bytes(answer.clone())))
        }
    };
    let lab = Lab::start(service);
    let answers = lab.ask(60, &Bytes::from_static(b"?"));
    settle().await;
    let so_far = ran.load(Ordering::SeqCst);
    assert!(
        so_far < 10,
        "{so_far} handlers ran without a reader of their answers"
    );
    assert!(lab.server.answer_bytes() <= 2 * HELD_BYTES);

    lab.gate.add_permits(1);
    let answers = answers.await.unwrap();
    assert!(
        answers
            .iter()
            .all(|result| result.as_ref().unwrap().bytes == answer)
    );
    assert_eq!(ran.load(Ordering::SeqCst), 60);
    settle().await;
    assert_eq!((lab.server.answer_bytes(), lab.server.held_bytes()), (0, 0));
    assert_eq!(lab.server.running_requests(), 0);
}

#[tokio::test]
async fn a_request_counts_until_its_answer_is_queued() {
    let service =
        |request: IncomingRequest| async move { Ok::<_, RemoteError>(request.into_payload()) };
    let lab = Lab::start(service);
    let answers = lab.ask(60, &noise(200 * 1024));
    settle().await;
    assert!(lab.server.running_requests() > 0);
    assert!(lab.server.held_bytes() > 0);
    assert!(lab.server.held_bytes() <= HELD_BYTES);
    assert!(lab.server.answer_bytes() <= 2 * HELD_BYTES);

    lab.gate.add_permits(1);
    for result in answers.await.unwrap() {
        // Beyond what may be held of requests the answer is `busy`, for a peer that does not keep to it by itself.
        assert!(
            matches!(result, Ok(_) | Err(NetworkError::Busy)),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn answers_made_all_at_once_beyond_the_limit_become_errors() {
    let (begun, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let answer = noise(MIB);
    let service = {
        let (begun, go, answer) = (Arc::clone(&begun), Arc::clone(&go), answer.clone());
        move |_: IncomingRequest| {
            let (begun, go, answer) = (Arc::clone(&begun), Arc::clone(&go), answer.clone());
            async move {
                begun.add_permits(1);
                go.acquire().await.unwrap().forget();
                Ok::<_, RemoteError>(Payload::bytes(answer))
            }
        }
    };
    let lab = Lab::start(service);
    let answers = lab.ask(40, &Bytes::from_static(b"?"));
    begun.acquire_many(40).await.unwrap().forget();
    go.add_permits(40);
    settle().await;
    assert!(lab.server.answer_bytes() <= 2 * HELD_BYTES);

    lab.gate.add_permits(1);
    let (mut good, mut dropped) = (0, 0);
    for result in answers.await.unwrap() {
        match result {
            Ok(payload) => {
                assert!(payload.bytes == answer);
                good += 1;
            }
            Err(NetworkError::Remote(error)) => {
                assert_eq!(error.code, "answers-waiting");
                dropped += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(good >= 8 && dropped > 0, "{good} and {dropped}");
    assert_eq!(good + dropped, 40);
    settle().await;
    assert_eq!(lab.server.answer_bytes(), 0);
}

#[tokio::test]
async fn short_answers_on_many_channels_count_together() {
    const CHANNELS: usize = 64;
    const REQUESTS: usize = 400;
    const ANSWER: usize = 1_900;
    // Enough for all requests that are held; as for long answers, twice as much may be unwritten.
    const HELD: usize = 3 * MIB;
    let ran = Arc::new(AtomicUsize::new(0));
    let service = {
        let ran = Arc::clone(&ran);
        move |_: IncomingRequest| {
            ran.fetch_add(1, Ordering::SeqCst);
            std::future::ready(Ok::<_, RemoteError>(Payload::bytes(vec![7; ANSWER])))
        }
    };
    let registry = registry_with("lab", ServiceHandler::new(service));
    let limits = ConnectionLimits::default().max_held_bytes(HELD);
    let server = ConnectionContext::with(limits, Arc::new(Codec::new()));
    let client = ConnectionContext::new();
    let gate = Arc::new(Semaphore::new(1));
    let mut channels = Vec::new();
    for number in 0..CHANNELS as u64 {
        let ((send, recv), (server_send, server_recv)) = memory_stream();
        let (registry, context) = (registry.clone(), Arc::clone(&server));
        tokio::spawn(async move {
            registry
                .serve_stream(context, server_send, server_recv, 4 * number)
                .await;
        });
        let gate = Arc::clone(&gate);
        let options = ChannelOptions::new();
        let recv = Gated { recv, gate };
        let channel = UnisonChannel::open(send, recv, 4 * number, "lab", options, &client);
        channels.push(channel.unwrap());
    }
    for channel in &channels {
        channel.opened().await.unwrap();
    }
    gate.forget_permits(1);
    let question = Bytes::from_static(b"?");
    let asked = channels.iter();
    let asked: Vec<_> = asked
        .map(|channel| ask(channel, REQUESTS, &question))
        .collect();
    settle().await;
    let unwritten = server.unwritten_bytes();
    assert!(unwritten > HELD, "{unwritten}");
    // Beyond the limit each channel may have one answer.
    assert!(unwritten <= 2 * HELD + CHANNELS * 2 * ANSWER, "{unwritten}");
    // Without the limit all of them run.
    let so_far = ran.load(Ordering::SeqCst);
    assert!(so_far < CHANNELS * REQUESTS * 5 / 6, "{so_far}");

    gate.add_permits(1);
    for answers in join_all(asked).await {
        let answers = answers.unwrap();
        let whole = |answer: &Payload| answer.bytes.len() == ANSWER;
        assert!(
            answers
                .iter()
                .all(|answer| answer.as_ref().is_ok_and(whole))
        );
    }
    assert_eq!(ran.load(Ordering::SeqCst), CHANNELS * REQUESTS);
    settle().await;
    assert_eq!((server.unwritten_bytes(), server.held_bytes()), (0, 0));
    assert_eq!(client.unwritten_bytes(), 0);
}
