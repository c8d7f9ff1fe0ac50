//! RespParser and the encoders, without a network.

use mini_redis::commands::Reply;
use mini_redis::error::RespError;
use mini_redis::resp::{self, Command, RespParser};
use tokio::io::{AsyncWriteExt, BufReader};

async fn parse(mut bytes: &[u8]) -> Result<Option<Command>, RespError> {
    RespParser::parse_command(&mut bytes).await
}

fn words(words: &[&[u8]]) -> Command {
    words.iter().map(|word| word.to_vec()).collect()
}

#[tokio::test]
async fn a_command_becomes_its_words() {
    let command = parse(b"*2\r\n$3\r\nGET\r\n$3\r\nfoo\r\n").await.unwrap();
    assert_eq!(command, Some(words(&[b"GET", b"foo"])));
}

#[tokio::test]
async fn the_end_before_a_command_is_none() {
    assert_eq!(parse(b"").await.unwrap(), None);
}

#[tokio::test]
async fn one_byte_at_a_time_is_enough() {
    let (mut sender, receiver) = tokio::io::duplex(1);
    let sending = tokio::spawn(async move {
        for byte in b"*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n" {
            sender.write_all(&[*byte]).await.unwrap();
        }
    });
    let command = RespParser::parse_command(&mut BufReader::new(receiver)).await.unwrap();
    assert_eq!(command, Some(words(&[b"ECHO", b"hello"])));
    sending.await.unwrap();
}

#[tokio::test]
async fn two_commands_in_one_buffer_come_one_after_the_other() {
    let mut bytes: &[u8] = b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    assert_eq!(RespParser::parse_command(&mut bytes).await.unwrap(), Some(words(&[b"PING"])));
    assert_eq!(RespParser::parse_command(&mut bytes).await.unwrap(), Some(words(&[b"GET", b"k"])));
    assert_eq!(RespParser::parse_command(&mut bytes).await.unwrap(), None);
}

#[tokio::test]
async fn values_are_bytes() {
    let command = parse(b"*2\r\n$4\r\nECHO\r\n$6\r\n\r\n\x00\xff\r\n\r\n").await.unwrap();
    assert_eq!(command, Some(words(&[b"ECHO", b"\r\n\x00\xff\r\n"])));
    assert_eq!(parse(b"*1\r\n$0\r\n\r\n").await.unwrap(), Some(words(&[b""])));
}

#[tokio::test]
async fn bad_lengths_and_missing_ends_are_protocol_errors() {
    let bad: [&[u8]; 9] = [
        b"PING\r\n",
        b"*x\r\n",
        b"*-1\r\n",
        b"*1\n",
        b"*1\r\n+PING\r\n",
        b"*1\r\n$four\r\nPING\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n$4\r\nPINGxx",
        b"*1\r\n$3\r\nPING\r\n",
    ];
    for bytes in bad {
        let result = parse(bytes).await;
        assert!(matches!(result, Err(RespError::Protocol(_))), "{:?}: {result:?}", bytes.escape_ascii().to_string());
    }
}

#[tokio::test]
async fn the_end_in_the_middle_is_an_error() {
    for bytes in [&b"*2\r\n"[..], b"*1\r\n$4\r\nPI", b"*1\r\n$4\r\nPING", b"*1"] {
        assert!(parse(bytes).await.is_err(), "{:?}", bytes.escape_ascii().to_string());
    }
}

#[tokio::test]
async fn more_than_the_limits_is_a_protocol_error() {
    for bytes in [&b"*2\r\n$4\r\nECHO\r\n$1048577\r\n"[..], b"*1025\r\n", b"$$$$$$$$$$"] {
        assert!(parse(bytes).await.is_err(), "{:?}", bytes.escape_ascii().to_string());
    }
    let endless = vec![b'1'; 10_000];
    assert!(matches!(parse(&endless).await, Err(RespError::Protocol(_))));
}

#[test]
fn every_reply_type_is_encoded() {
    assert_eq!(resp::encode_simple_string("OK"), b"+OK\r\n");
    assert_eq!(resp::encode_error("unknown command"), b"-ERR unknown command\r\n");
    assert_eq!(resp::encode_integer(-42), b":-42\r\n");
    assert_eq!(resp::encode_bulk_string(Some(b"f\r\no")), b"$4\r\nf\r\no\r\n");
    assert_eq!(resp::encode_bulk_string(Some(b"")), b"$0\r\n\r\n");
    assert_eq!(resp::encode_bulk_string(None), b"$-1\r\n");
    assert_eq!(resp::encode_reply(&Reply::Array(vec![Reply::Integer(1), Reply::Bulk(None)])), b"*2\r\n:1\r\n$-1\r\n");
}
