//! `EverythingConnection`: plain values between two ends in one process.

use super::*;
use kumi_unison::local::{
    BidirectionalChannel, PeerChannel, ReceiveChannel, RequestChannel, RespondChannel, SendChannel,
    ServiceChannel,
};

/// The types of the fields, one by one; that this compiles is the test.
#[test]
fn every_combination_has_its_type() {
    let (client, server) = EverythingConnection::pair(4);
    let EverythingConnection {
        main,
        callbacks,
        peers,
        ticks,
        upload,
        old_query,
        old_talk,
        old_both,
        user_service,
    } = client;
    let _: ServiceChannel<
        RequestChannel<MainRequest, MainResponse>,
        BidirectionalChannel<Typing, MainServerEvent>,
    > = main;
    let _: ServiceChannel<RespondChannel<Confirm, Confirmed>, SendChannel<Start>> = callbacks;
    let _: ServiceChannel<PeerChannel<Swap, Many>, BidirectionalChannel<Wave, Wave>> = peers;
    let _: ReceiveChannel<Tick> = ticks;
    let _: SendChannel<Chunk> = upload;
    let _: RequestChannel<Query, Found> = old_query;
    let _: BidirectionalChannel<Said, Heard> = old_talk;
    let _: BidirectionalChannel<OldBothClientEvent, OldBothServerEvent> = old_both;
    let _: RequestChannel<UserServiceRequest, UserServiceResponse> = user_service;
    let _: SendChannel<Tick> = server.ticks;
    let _: RespondChannel<Query, Found> = server.old_query;
    let _: BidirectionalChannel<Heard, Said> = server.old_talk;
}

#[tokio::test]
async fn values_pass_between_the_ends() {
    let (mut client, mut server) = EverythingConnection::pair(4);
    let answering = tokio::spawn(async move {
        while let Some(question) = server.main.requests.recv().await {
            let answer = match &question.question {
                MainRequest::Add(add) => MainResponse::Add(Result::new(add.terms.iter().sum())),
                MainRequest::Ping(_) => MainResponse::Ping,
                other => panic!("unexpected request {other:?}"),
            };
            question.answer(answer);
        }
        server.main.events.send(Posted::new("ann").into()).await
    });
    let sum = client
        .main
        .requests
        .request(Add::new(vec![1, 2, 3]).into())
        .await;
    assert_eq!(sum, Ok(MainResponse::Add(Result::new(6))));
    assert_eq!(
        client.main.requests.request(Ping {}.into()).await,
        Ok(MainResponse::Ping)
    );
    drop(client.main.requests);
    assert_eq!(
        client.main.events.recv().await,
        Some(MainServerEvent::Posted(Posted::new("ann")))
    );
    assert_eq!(answering.await.expect("no panic"), Ok(()));
}

#[tokio::test]
async fn either_side_may_ask() {
    let (mut client, server) = EverythingConnection::pair(4);
    let many = Many::new(1, 2, 3, 4, 5, 6, 7, 8);
    let (asked, answered) = tokio::join!(
        server.peers.requests.request(Swap::new(Odd::new("x"))),
        async {
            let question = client.peers.requests.recv().await.expect("a question");
            assert_eq!(question.question.odd.r#type, "x");
            question.answer(many.clone())
        }
    );
    assert_eq!(asked, Ok(many));
    assert!(answered);
}
