//! DataStore and CommandHandler, without a network.

use mini_redis::App;
use mini_redis::commands::Reply;
use mini_redis::error::CommandError;
use mini_redis::limits::{MAX_KEYS, MAX_VALUE};
use mini_redis::store::DataStore;

fn execute(app: &App, words: &str) -> Result<Reply, CommandError> {
    let command: Vec<Vec<u8>> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    app.commands.execute(&command)
}

fn bulk(text: &str) -> Result<Reply, CommandError> {
    Ok(Reply::Bulk(Some(text.as_bytes().to_vec())))
}

#[test]
fn the_store_creates_reads_overwrites_and_deletes() {
    let mut store = DataStore::new();
    assert_eq!(store.get(b"k"), None);
    assert!(!store.exists(b"k"));
    assert!(!store.delete(b"k"));
    store.set(b"k", b"one".to_vec()).unwrap();
    store.set(b"k", b"two".to_vec()).unwrap();
    assert_eq!(store.get(b"k"), Some(&b"two"[..]));
    assert!(store.exists(b"k"));
    assert_eq!(store.len(), 1);
    store.update(b"k", b"three".to_vec()).unwrap();
    store.update(b"new", b"four".to_vec()).unwrap();
    assert_eq!(store.get(b"k"), Some(&b"three"[..]));
    assert_eq!(store.get(b"new"), Some(&b"four"[..]));
    assert!(store.delete(b"k"));
    assert_eq!(store.get(b"k"), None);
}

#[test]
fn the_store_has_limits() {
    let mut store = DataStore::new();
    assert_eq!(store.set(b"k", vec![0; MAX_VALUE + 1]), Err(CommandError::ValueTooLong));
    assert_eq!(store.set(b"k", vec![0; MAX_VALUE]), Ok(()));
    for number in 1..MAX_KEYS {
        store.set(number.to_string().as_bytes(), Vec::new()).unwrap();
    }
    assert_eq!(store.set(b"more", Vec::new()), Err(CommandError::TooManyKeys));
    assert_eq!(store.update(b"more", Vec::new()), Err(CommandError::TooManyKeys));
    assert_eq!(store.set(b"k", Vec::new()), Ok(()));
    assert_eq!(store.update(b"k", Vec::new()), Ok(()));
}

#[test]
fn get_set_and_incr() {
    let app = App::new();
    assert_eq!(execute(&app, "GET k"), Ok(Reply::Bulk(None)));
    assert_eq!(execute(&app, "SET k v"), Ok(Reply::Simple("OK")));
    assert_eq!(execute(&app, "GET k"), bulk("v"));
    assert_eq!(execute(&app, "INCR n"), Ok(Reply::Integer(1)));
    assert_eq!(execute(&app, "INCR n"), Ok(Reply::Integer(2)));
    assert_eq!(execute(&app, "GET n"), bulk("2"));
    assert_eq!(execute(&app, "DBSIZE"), Ok(Reply::Integer(2)));
}

#[test]
fn errors_change_nothing() {
    let app = App::new();
    execute(&app, "SET k v").unwrap();
    assert_eq!(execute(&app, "INCR k"), Err(CommandError::NotAnInteger));
    assert_eq!(execute(&app, "GET k"), bulk("v"));
    execute(&app, "SET k 9223372036854775807").unwrap();
    assert_eq!(execute(&app, "INCR k"), Err(CommandError::NotAnInteger));
    assert_eq!(execute(&app, "GET k"), bulk("9223372036854775807"));
}

#[test]
fn unknown_commands_and_wrong_arity() {
    let app = App::new();
    assert_eq!(execute(&app, "FLY"), Err(CommandError::UnknownCommand));
    for words in ["GET", "GET a b", "SET a", "INCR", "DBSIZE a", "TTL", "EXPIRE a"] {
        assert_eq!(execute(&app, words), Err(CommandError::WrongNumberOfArguments), "{words}");
    }
    assert_eq!(app.commands.execute(&[]), Err(CommandError::UnknownCommand));
    assert_eq!(execute(&app, "SET a b PX 10"), Err(CommandError::Syntax));
}
