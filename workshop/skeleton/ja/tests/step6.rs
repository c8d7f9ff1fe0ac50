//! PubSubManager、セッション、パターンを、ネットワークなしでテストします。

use mini_redis::App;
use mini_redis::commands::Reply;
use mini_redis::error::CommandError;
use mini_redis::glob;
use mini_redis::limits::MAX_QUEUED;
use mini_redis::session::ClientSession;

fn words(words: &str) -> Vec<Vec<u8>> {
    words.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn patterns_match_as_in_redis() {
    for (pattern, text, expected) in [
        ("news.*", "news.tech", true),
        ("news.*", "new", false),
        ("*", "", true),
        ("h?llo", "hello", true),
        ("h?llo", "hllo", false),
        ("h[ae]llo", "hallo", true),
        ("h[ae]llo", "hillo", false),
        ("*a*b", "xaybab", true),
        ("a*a", "a", false),
        ("MUF/*/[RE][ER][SR]/*", "MUF/me/RES/x", true),
    ] {
        assert_eq!(glob::matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
    }
    assert!(!glob::matches("a*".repeat(50).as_bytes(), "a".repeat(40).as_bytes()));
}

#[test]
fn a_message_comes_out_of_the_subscribers_queue() {
    let app = App::new();
    let (mut session, mut queue) = ClientSession::new(1);
    let reply = app.commands.execute_in_session(&mut session, &words("SUBSCRIBE news"));
    let name = |text: &str| Reply::Bulk(Some(text.into()));
    assert_eq!(reply, Ok(vec![Reply::Array(vec![name("subscribe"), name("news"), Reply::Integer(1)])]));
    assert_eq!(app.commands.execute(&words("PUBLISH news hello")), Ok(Reply::Integer(1)));
    assert_eq!(queue.try_recv().unwrap(), b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
    assert_eq!(app.commands.execute_in_session(&mut session, &words("GET k")), Err(CommandError::PubSubMode));
    app.commands.forget(&mut session);
    assert_eq!(app.commands.execute(&words("PUBLISH news again")), Ok(Reply::Integer(0)));
    assert!(queue.try_recv().is_err());
}

#[test]
fn a_slow_subscriber_loses_messages_and_blocks_no_other_client() {
    let app = App::new();
    let (mut session, queue) = ClientSession::new(1);
    app.commands.execute_in_session(&mut session, &words("PSUBSCRIBE *")).unwrap();
    for _ in 0..MAX_QUEUED + 10 {
        assert_eq!(app.commands.execute(&words("PUBLISH news x")), Ok(Reply::Integer(1)));
    }
    assert_eq!(queue.len(), MAX_QUEUED);
}
