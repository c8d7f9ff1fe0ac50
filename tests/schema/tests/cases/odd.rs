//! A schema whose names are words of the language: `Send`, `Clone`, `From`, `S`.

use super::super::odd;
use super::lab::within;
use kumi_unison::{
    Call, ChannelRegistry, ChannelSource, MemoryClient, Message, Payload, Problem, RemoteError,
};

struct Delete;

impl odd::DeleteService for Delete {
    async fn send(
        &self,
        call: Call<odd::DeletePeer>,
        request: odd::Send,
    ) -> Result<odd::Sync, RemoteError> {
        call.peer.send_s(&odd::S::new(request.to)).await?;
        Ok(odd::Sync { sync: Some(true) })
    }

    async fn clone(
        &self,
        _: Call<odd::DeletePeer>,
        _: odd::Clone,
    ) -> Result<odd::Result, RemoteError> {
        Ok(odd::Result::new(true))
    }
}

#[tokio::test]
async fn messages_may_be_called_like_what_every_module_knows() {
    let registry = ChannelRegistry::new("odd", "0.1.0", "test");
    odd::register_delete(&registry, Delete);
    let client = MemoryClient::connect(&registry);
    let channel = client.open_channel("delete", odd::delete_options()).await;
    let delete = odd::DeleteClient::from_channel(channel.expect("open"));
    let mut events = delete.event_streams();
    let sent = within(delete.send(&odd::Send::new("x"))).await;
    assert_eq!(sent, Ok(odd::Sync { sync: Some(true) }));
    assert_eq!(within(events.s.next()).await, Some(Ok(odd::S::new("x"))));
    let cloned = within(delete.clone(&odd::Clone {})).await;
    assert_eq!(cloned, Ok(odd::Result::new(true)));
}

#[test]
fn types_behind_other_names_survive_both_formats() {
    let node = odd::Node {
        next: Some(Box::default()),
        kids: Some([("k".to_owned(), vec![odd::Node::default()])].into()),
        blobs: Some([("b".to_owned(), vec![vec![1, 2], vec![]])].into()),
        levels: Some(vec![odd::Ord::Self_, odd::Ord::None]),
        ..odd::Node::default()
    };
    assert_eq!(node.level, odd::Ord::Static);
    let typed = Payload::typed(&node).expect("it can be archived");
    assert_eq!(typed.to_typed::<odd::Node>().as_ref(), Ok(&node));
    let json = Payload::json(&node).expect("it can be written");
    assert_eq!(json.to_json::<odd::Node>().as_ref(), Ok(&node));
    let crowd = odd::Node {
        kids: Some([("k".to_owned(), vec![odd::Node::default(); 4])].into()),
        ..odd::Node::default()
    };
    let error = crowd.validate().expect_err("too many");
    assert_eq!(
        (&*error.path, error.problem),
        ("kids[\"k\"]", Problem::TooLong(3))
    );
}

#[test]
fn numbers_that_json_cannot_say_are_refused() {
    let mut message = odd::Eq::new(f64::NAN);
    let error = message.validate().expect_err("not a number");
    assert_eq!((&*error.path, error.problem), ("eq", Problem::NotFinite));
    message.eq = 1.0;
    message.r#loop = Some(vec![0.0, f64::INFINITY]);
    let error = Message::validate(&message).expect_err("infinite");
    assert_eq!(
        (&*error.path, error.problem),
        ("loop[1]", Problem::NotFinite)
    );
}

/// `typescript/main.ts` says the same.
#[test]
fn patterns_mean_in_rust_what_they_mean_in_typescript() {
    let check = |text: &str| {
        let message = odd::Copy {
            copy: Some([("k".to_owned(), vec![vec![text.to_owned()]])].into()),
            ..odd::Copy::default()
        };
        message.validate().is_ok()
    };
    assert!(check("a\r"));
    assert!(check("\u{a0}x"));
    assert!(!check("a\n"));
    assert!(!check(" a"));
}
