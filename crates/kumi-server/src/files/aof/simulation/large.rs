//! Large arguments that wait to be written: the AOF shares them with the data.

use super::disk::SimulatedDisk;
use super::{Life, Replayed, START, config, count};
use kumi_resp::{Decoder, Limits, OwnedArgs, Step, encode};

const VALUE_BYTES: usize = 200_000;

/// SET of a large value, decoded as a server does it.
fn set_large(key: &str) -> OwnedArgs {
    let value = key.repeat(VALUE_BYTES / key.len());
    let mut bytes = Vec::new();
    encode::array(&mut bytes, 3);
    for word in ["SET", key, value.as_str()] {
        encode::bulk(&mut bytes, word.as_bytes());
    }
    match Decoder::new().decode(&bytes, &Limits::default()) {
        Ok(Step::Request { args, .. }) => args.to_owned(),
        other => panic!("not a request: {other:?}"),
    }
}

fn execute(life: &mut Life, args: &OwnedArgs) {
    let Replayed {
        store,
        outputs,
        host,
    } = &mut life.replayed;
    let _ = store.execute(life.client, args.as_args(), life.now, outputs, host);
}

/// A server whose writes wait for an fsync, which runs until the disk releases it.
fn waiting(disk: &SimulatedDisk) -> Life {
    let mut life = Life::start(disk, &config("everysec", true), START);
    assert_eq!(count(&mut life, 1), Some(true));
    life.now.mono_ns += 1_100_000_000;
    disk.hold_syncs(true);
    life.flush();
    assert!(life.aof.facts(life.now).fsync_running);
    life
}

fn release(life: &mut Life, disk: &SimulatedDisk) {
    disk.hold_syncs(false);
    life.aof.settle();
    life.flush();
    assert_eq!(life.aof.facts(life.now).buffered_bytes, 0);
}

#[test]
fn large_values_wait_for_an_fsync_without_a_copy() {
    let disk = SimulatedDisk::default();
    let mut life = waiting(&disk);
    let requests = [set_large("aa"), set_large("bb")];
    let values = requests.each_ref().map(|args| &args.as_args().large()[0]);
    for (index, args) in requests.iter().enumerate() {
        execute(&mut life, args);
        life.run(&format!("SET small {index}"));
        life.flush();
    }
    let waiting = life.aof.facts(life.now).buffered_bytes;
    assert!(waiting > 2 * VALUE_BYTES as u64, "{waiting}");
    for value in values {
        assert_eq!(value.owners(), 3, "the request, the data and the AOF");
    }
    release(&mut life, &disk);
    for value in values {
        assert_eq!(value.owners(), 2, "the request and the data");
    }
    assert!(life.aof.take_garbage().is_empty());
    drop(life);
    let mut life = Life::start(&disk.copy(), &config("everysec", true), START);
    let store = &mut life.replayed.store;
    for (key, value) in [b"aa", b"bb"].into_iter().zip(values) {
        assert!(store.peek(key) == Some(value.to_vec()), "{key:?}");
    }
    assert_eq!(store.peek(b"small"), Some(b"1".to_vec()));
}

#[test]
fn a_value_that_is_gone_when_it_is_written_is_left_to_another_thread() {
    let disk = SimulatedDisk::default();
    let mut life = waiting(&disk);
    execute(&mut life, &set_large("gone"));
    life.run("UNLINK gone");
    // What the data set gave up.
    drop(life.replayed.store.effects());
    life.flush();
    release(&mut life, &disk);
    let garbage = life.aof.take_garbage();
    assert_eq!(garbage.len(), 1);
    assert_eq!(garbage[0].len(), VALUE_BYTES);
    assert!(life.aof.take_garbage().is_empty());
}
