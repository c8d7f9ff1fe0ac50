use super::buffer::CHUNK_BYTES;
use super::*;
use crate::engine::reply::Reply;
use crate::engine::session::Sessions;
use kumi_resp::Protocol;

/// A session with a running command, and everything it may write to.
struct Desk {
    outputs: Outputs,
    key: SessionKey,
    slot: usize,
}

impl Desk {
    fn with_limit(limit: usize) -> Self {
        let key = Sessions::default().add(
            crate::engine::session::Peer::default(),
            true,
            std::sync::Arc::default(),
            0,
        );
        let mut outputs = Outputs::new();
        let slot = outputs.begin(key, limit);
        Self { outputs, key, slot }
    }

    fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    fn reply(&mut self) -> Reply<'_> {
        Reply::new(&mut self.outputs, self.slot, Protocol::Resp2)
    }

    /// Ends the command and takes all output, as a socket that takes `step` bytes at a time.
    fn take(&mut self, step: usize) -> Vec<u8> {
        assert_eq!(self.outputs.end(self.slot), None);
        let mut taken = Vec::new();
        while self.outputs.pending(self.key) > 0 {
            let mut slices = [IoSlice::new(&[]); 8];
            let filled = self.outputs.slices(self.key, &mut slices);
            let all: Vec<u8> = slices[..filled]
                .iter()
                .flat_map(|part| part.to_vec())
                .collect();
            let count = all.len().min(step);
            taken.extend_from_slice(&all[..count]);
            self.outputs.written(self.key, count);
        }
        taken
    }
}

#[test]
fn a_deferred_header_lands_before_its_elements() {
    let mut desk = Desk::new();
    let mut reply = desk.reply();
    reply.ok();
    let deferred = reply.defer();
    reply.integer(1);
    reply.integer(2);
    reply.finish_array(deferred, 2);
    assert_eq!(desk.take(usize::MAX), b"+OK\r\n*2\r\n:1\r\n:2\r\n");
}

#[test]
fn a_deferred_header_lands_in_an_earlier_chunk() {
    for before in [0, 5, CHUNK_BYTES - 3, CHUNK_BYTES, CHUNK_BYTES + 9] {
        let mut desk = Desk::new();
        let mut reply = desk.reply();
        reply.encoded(&vec![b'.'; before]);
        let deferred = reply.defer();
        let inner = reply.defer();
        for _ in 0..5000 {
            reply.bulk(b"element");
        }
        reply.finish_array(inner, 5000);
        reply.finish_array(deferred, 1);
        let mut expected = vec![b'.'; before];
        expected.extend_from_slice(b"*1\r\n*5000\r\n");
        expected.extend(b"$7\r\nelement\r\n".repeat(5000));
        assert_eq!(desk.take(usize::MAX), expected, "behind {before} bytes");
    }
}

#[test]
fn cutting_back_keeps_what_was_before_the_mark() {
    for before in [0, 5, CHUNK_BYTES, 3 * CHUNK_BYTES + 1] {
        for after in [0, 5, CHUNK_BYTES, 5 * CHUNK_BYTES] {
            let mut desk = Desk::new();
            let mut reply = desk.reply();
            reply.encoded(&vec![b'a'; before]);
            let mark = reply.len();
            reply.encoded(&vec![b'b'; after]);
            reply.cut_back(mark);
            reply.ok();
            let mut expected = vec![b'a'; before];
            expected.extend_from_slice(b"+OK\r\n");
            assert_eq!(desk.take(1000), expected, "{before} and {after} bytes");
        }
    }
}

#[test]
fn cutting_back_drops_references() {
    let mut desk = Desk::new();
    let value = SharedBytes::new(vec![b'v'; 100_000]);
    let mut reply = desk.reply();
    reply.ok();
    let mark = reply.len();
    reply.bulk_shared(&value);
    reply.bulk_shared(&value);
    assert!(!value.is_unique());
    reply.cut_back(mark);
    assert!(value.is_unique());
    assert_eq!(desk.take(usize::MAX), b"+OK\r\n");
}

#[test]
fn a_long_value_is_referred_to_and_a_short_one_copied() {
    let mut desk = Desk::new();
    let (short, long) = (vec![b's'; 10_000], vec![b'l'; 100_000]);
    let (short, long) = (SharedBytes::new(short), SharedBytes::new(long));
    let mut reply = desk.reply();
    for _ in 0..3 {
        reply.bulk_shared(&short);
        reply.bulk_shared(&long);
    }
    assert!(short.is_unique() && !long.is_unique());
    assert!(desk.outputs.pool.bytes < 100_000);
    assert!(desk.outputs.usage(desk.key).more_memory > 300_000);
    let pair = [b"$10000\r\n", &*short, b"\r\n$100000\r\n", &*long, b"\r\n"].concat();
    assert_eq!(desk.take(70_000), pair.repeat(3));
    assert!(long.is_unique());
}

#[test]
fn the_last_reference_is_not_dropped_here() {
    let mut desk = Desk::new();
    let value = SharedBytes::new(vec![b'v'; 100_000]);
    desk.reply().bulk_shared(&value);
    drop(value);
    assert!(!desk.outputs.has_garbage());
    desk.take(usize::MAX);
    assert_eq!(desk.outputs.take_garbage().len(), 1);
}

#[test]
fn all_memory_is_accounted_for() {
    let mut desk = Desk::new();
    for round in 0..200 {
        let mut reply = desk.reply();
        let deferred = reply.defer();
        let mark = reply.len();
        reply.bulk(vec![b'x'; round * 511]);
        if round % 3 == 0 {
            reply.cut_back(mark);
        }
        reply.finish_array(deferred, 1);
    }
    desk.take(12_345);
    desk.outputs.remove(desk.key);
    let spare = desk.outputs.pool.bytes;
    assert!(spare <= 1024 * 1024, "{spare} bytes stay");
    assert_eq!(spare, desk.outputs.pool.spare_capacity());
}

#[test]
fn nothing_is_kept_past_the_budget() {
    let mut desk = Desk::with_limit(100_000);
    let mut reply = desk.reply();
    let deferred = reply.defer();
    let mut most = 0;
    for _ in 0..1000 {
        reply.bulk(vec![b'x'; 5000]);
        most = most.max(reply.outputs().heap_bytes());
    }
    let mark = reply.len();
    reply.finish_array(deferred, 1000);
    reply.cut_back(mark);
    assert!(most < 140_000, "{most} bytes");
    assert!(
        desk.outputs
            .end(desk.slot)
            .is_some_and(|bytes| bytes > 100_000)
    );
}

#[test]
fn pushes_to_the_running_session_use_its_budget() {
    let mut desk = Desk::with_limit(100_000);
    let key = desk.key;
    desk.reply().bulk(vec![b'x'; 60_000]);
    desk.outputs.push(key, &[b'p'; 20_000]);
    assert!((80_000..81_000).contains(&desk.outputs.list(key)));
    let mut most = 0;
    for _ in 0..1000 {
        desk.outputs.push(key, &[b'p'; 5000]);
        most = most.max(desk.outputs.heap_bytes());
    }
    assert!(most < 140_000, "{most} bytes");
    assert!(desk.outputs.list(key) > 100_000);
    let overflow = desk.outputs.end(desk.slot);
    assert!(overflow.is_some_and(|bytes| bytes > 100_000));
}

#[test]
fn references_pushed_to_the_running_session_use_its_budget() {
    let mut desk = Desk::with_limit(1_000_000);
    let value = SharedBytes::new(vec![b'v'; 300_000]);
    for _ in 0..3 {
        desk.outputs.push_shared(desk.key, &value);
    }
    assert_eq!(value.owners(), 4);
    desk.outputs.push_shared(desk.key, &value);
    assert!(value.is_unique());
    assert_eq!(desk.outputs.end(desk.slot), Some(1_200_000));
}

#[test]
fn a_reply_over_the_limit_is_not_shown() {
    let mut desk = Desk::new();
    desk.reply().ok();
    assert_eq!(desk.outputs.end(desk.slot), None);
    desk.slot = desk.outputs.begin(desk.key, 100_000);
    desk.outputs.written(desk.key, 3);
    assert_eq!(desk.outputs.first_chunk(desk.key), (&b"\r\n"[..], false));
    let mut reply = desk.reply();
    while !reply.is_over_limit() {
        reply.bulk(vec![b'x'; 5000]);
    }
    // The reply goes on, and what it writes is in the buffer for a while.
    for count in [0, 1, 10] {
        desk.reply().encoded(&vec![b'x'; count]);
        assert_eq!(desk.outputs.first_chunk(desk.key), (&b""[..], false));
        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(desk.outputs.slices(desk.key, &mut slices), 0);
        assert_eq!(desk.outputs.pending(desk.key), 0);
    }
    assert!(desk.outputs.end(desk.slot).is_some());
}

#[test]
fn a_running_session_that_is_cleared_keeps_nothing_more() {
    let mut desk = Desk::new();
    let deferred = desk.reply().defer();
    desk.reply().bulk(vec![b'x'; 50_000]);
    desk.outputs.push(desk.key, &[b'p'; 50_000]);
    desk.outputs.clear(desk.key);
    for _ in 0..1000 {
        desk.reply().bulk(vec![b'x'; 5000]);
        desk.outputs.push(desk.key, &[b'p'; 5000]);
    }
    desk.reply().finish_array(deferred, 1001);
    let held = desk.outputs.heap_bytes();
    assert!(held < 60_000, "{held} bytes");
    assert_eq!(desk.outputs.pending(desk.key), 0);
    assert!(desk.outputs.end(desk.slot).is_some());
}

#[test]
fn references_use_the_budget() {
    let mut desk = Desk::with_limit(1_000_000);
    let value = SharedBytes::new(vec![b'v'; 300_000]);
    let mut reply = desk.reply();
    for _ in 0..10 {
        reply.bulk_shared(&value);
    }
    assert!(value.is_unique());
    assert_eq!(desk.outputs.end(desk.slot), Some(1_200_042));
}

#[test]
fn a_reply_that_is_not_wanted_uses_neither_memory_nor_budget() {
    let mut desk = Desk::with_limit(100_000);
    let value = SharedBytes::new(vec![b'v'; 300_000]);
    let mut reply = desk.reply();
    reply.ok();
    reply.discard();
    for _ in 0..1000 {
        reply.bulk(vec![b'x'; 5000]);
        reply.bulk_shared(&value);
    }
    assert!(reply.outputs().heap_bytes() < 50_000);
    reply.keep();
    reply.integer(7);
    assert_eq!(desk.take(usize::MAX), b"+OK\r\n:7\r\n");
}

#[test]
fn pushes_to_the_running_session_follow_its_reply() {
    let mut desk = Desk::new();
    let key = desk.key;
    desk.outputs.push(key, b"first ");
    desk.outputs.push(key, &[b'p'; 40_000]);
    desk.reply().ok();
    desk.outputs.push(key, b" last");
    assert_eq!(desk.outputs.first_chunk(key), (&b""[..], false));
    let expected = [b"+OK\r\nfirst ", &[b'p'; 40_000][..], b" last"].concat();
    assert_eq!(desk.take(999), expected);
    desk.outputs.push(key, b"at once");
    assert_eq!(desk.outputs.first_chunk(key), (&b"at once"[..], false));
}

#[test]
fn a_slot_shows_nothing_of_its_earlier_session() {
    let mut sessions = Sessions::default();
    let mut outputs = Outputs::new();
    let earlier = sessions.add(
        crate::engine::session::Peer::default(),
        true,
        std::sync::Arc::default(),
        0,
    );
    outputs.push(earlier, b"secret");
    sessions.remove(earlier);
    let later = sessions.add(
        crate::engine::session::Peer::default(),
        true,
        std::sync::Arc::default(),
        0,
    );
    assert_eq!((later.slot, outputs.pending(later)), (earlier.slot, 0));
    outputs.push(later, b"hello");
    assert_eq!(outputs.first_chunk(later), (&b"hello"[..], false));
    assert_eq!(outputs.pending(earlier), 0);
}

mod budget {
    use crate::engine::store::{Effect, Flow};
    use crate::testing::Lab;

    /// A store with a value of 1 MB and a limit of 10 MB.
    fn lab() -> Lab {
        let mut lab = Lab::new();
        let (client, value) = (lab.client, vec![b'x'; 1_000_000]);
        lab.send(client, &[b"SET", b"big", &value]);
        lab.configure("client-output-buffer-limit", "normal 10mb 0 0");
        lab
    }

    #[track_caller]
    fn check_closed(lab: &mut Lab, client: crate::base::ids::SessionKey) {
        let effects = lab.effects();
        let closes = |effect: &Effect| matches!(effect, Effect::Close(key) if *key == client);
        assert_eq!(effects.iter().filter(|effect| closes(effect)).count(), 1);
        assert_eq!(lab.store.telemetry.stats.output_limit_disconnections, 1);
        let held = lab.outputs.heap_bytes();
        assert!(held < 100_000, "{held} bytes are still held");
        assert_eq!(lab.run_as(client, "SET later 1"), "", "a closing client");
        assert_eq!(lab.last_flow, Flow::Close);
    }

    #[test]
    fn a_long_reply_closes_its_client_and_is_not_kept() {
        let mut lab = lab();
        let client = lab.connect();
        let words: Vec<&[u8]> = [b"MGET".as_slice()]
            .into_iter()
            .chain([b"big".as_slice(); 600])
            .collect();
        assert_eq!(lab.send(client, &words), "");
        check_closed(&mut lab, client);
    }

    #[test]
    fn a_transaction_with_long_replies_completes_and_closes_its_client() {
        let mut lab = lab();
        lab.store.listen_to_writes(true);
        let client = lab.connect();
        lab.run_as(client, "MULTI");
        for _ in 0..60 {
            lab.run_as(client, "GET big");
            lab.run_as(client, "INCR count");
        }
        assert_eq!(lab.run_as(client, "EXEC"), "");
        check_closed(&mut lab, client);
        lab.check(&[("GET count", "$2\r\n60\r\n")]);
        let writes = lab.writes();
        assert_eq!(
            writes
                .iter()
                .filter(|write| write.contains("count"))
                .count(),
            60
        );
    }

    #[test]
    fn replies_that_are_off_use_no_budget() {
        let mut lab = lab();
        lab.run("CLIENT REPLY OFF");
        for _ in 0..60 {
            lab.leave_unread(lab.client, "MGET big big");
            lab.leave_unread(lab.client, "INCR count");
        }
        assert!(lab.effects().is_empty());
        lab.check(&[
            ("CLIENT REPLY ON", "+OK\r\n"),
            ("GET count", "$2\r\n60\r\n"),
        ]);
        lab.run("CLIENT REPLY SKIP");
        let words: Vec<&[u8]> = [b"MGET".as_slice()]
            .into_iter()
            .chain([b"big".as_slice(); 600])
            .collect();
        assert_eq!(lab.send(lab.client, &words), "");
        lab.check(&[("PING", "+PONG\r\n")]);
    }

    #[test]
    fn a_script_that_floods_its_own_client_closes_it_at_once() {
        let mut lab = lab();
        lab.configure("client-output-buffer-limit", "pubsub 10mb 0 0");
        let client = lab.connect();
        lab.run_as(client, "HELLO 3");
        lab.run_as(client, "SUBSCRIBE c");
        let script = b"local message = redis.call('GET', 'big') \
            for i = 1, 20 do redis.call('PUBLISH', 'c', message) end \
            redis.call('SET', 'stats', redis.call('INFO', 'stats'))";
        assert_eq!(lab.send(client, &[b"EVAL", script, b"0"]), "");
        check_closed(&mut lab, client);
        let stats = lab.run("GET stats");
        let expected = "client_output_buffer_limit_disconnections:1\r\n";
        assert!(stats.contains(expected), "{stats}");
    }

    fn is_closed(lab: &mut Lab, client: crate::base::ids::SessionKey) -> bool {
        let effects = lab.effects();
        let closes = |effect: &Effect| matches!(effect, Effect::Close(key) if *key == client);
        effects.iter().any(closes)
    }

    #[test]
    fn a_reply_counts_as_far_as_it_does_not_fit_into_the_first_buffer() {
        for (limit, bytes, answered) in [
            ("normal 100 0 0", 200, true),
            ("normal 100 0 0", 1000, true),
            ("normal 100 0 0", 15_000, true),
            ("normal 100 0 0", 17_000, false),
            ("normal 100 0 0", 40_000, false),
            ("normal 10000 0 0", 17_000, false),
            ("normal 33000 0 0", 40_000, true),
            ("normal 33000 0 0", 50_000, false),
        ] {
            let mut lab = Lab::new();
            let (client, value) = (lab.client, vec![b'x'; bytes]);
            lab.send(client, &[b"SET", b"a", &value]);
            lab.configure("client-output-buffer-limit", limit);
            let reply = lab.run("GET a");
            assert_eq!(reply.len() > bytes, answered, "{limit}, {bytes} bytes");
            assert_eq!(is_closed(&mut lab, client), !answered, "{limit}, {bytes}");
        }
    }

    #[test]
    fn a_message_counts_as_far_as_it_does_not_fit_into_the_first_buffer() {
        for (limit, bytes, delivered) in [
            ("pubsub 4096 0 0", 8000, true),
            ("pubsub 4096 0 0", 17_000, false),
            ("pubsub 33000 0 0", 35_000, true),
            ("pubsub 33000 0 0", 40_000, true),
            ("pubsub 33000 0 0", 50_000, false),
        ] {
            let mut lab = Lab::new();
            lab.configure("client-output-buffer-limit", limit);
            let subscriber = lab.connect();
            lab.run_as(subscriber, "SUBSCRIBE c");
            let (client, message) = (lab.client, vec![b'x'; bytes]);
            lab.send(client, &[b"PUBLISH", b"c", &message]);
            let received = lab.received(subscriber).len();
            assert_eq!(received > bytes, delivered, "{limit}, {bytes} bytes");
            let closed = is_closed(&mut lab, subscriber);
            assert_eq!(closed, !delivered, "{limit}, {bytes} bytes");
        }
    }

    #[test]
    fn many_short_replies_fit_into_the_first_buffer() {
        let mut lab = Lab::new();
        lab.configure("client-output-buffer-limit", "normal 100 100 0");
        let client = lab.client;
        for _ in 0..100 {
            lab.leave_unread(client, "PING");
        }
        lab.advance_ms(2000);
        assert!(!is_closed(&mut lab, client));
        assert_eq!(lab.received(client), "+PONG\r\n".repeat(100));
    }

    #[test]
    fn the_soft_limit_counts_as_the_hard_one() {
        for (bytes, closed) in [(15_000, false), (17_000, true)] {
            let mut lab = Lab::new();
            let (client, value) = (lab.client, vec![b'x'; bytes]);
            lab.send(client, &[b"SET", b"a", &value]);
            lab.configure("client-output-buffer-limit", "normal 0 100 1");
            lab.leave_unread(client, "GET a");
            assert!(!is_closed(&mut lab, client), "{bytes} bytes");
            lab.advance_ms(2000);
            assert_eq!(is_closed(&mut lab, client), closed, "{bytes} bytes");
        }
    }

    #[test]
    fn little_may_wait_before_authentication() {
        let mut lab = lab();
        lab.configure("requirepass", "secret");
        let client = lab.connect();
        for _ in 0..1000 {
            lab.leave_unread(client, "GET nothing");
        }
        check_closed(&mut lab, client);
    }
}

#[test]
fn a_flushed_database_is_dropped_in_slices() {
    let mut lab = crate::testing::Lab::new();
    for key in 0..60_000 {
        lab.run(&format!("SET key:{key} value"));
    }
    lab.effects();
    lab.run("FLUSHALL");
    let mut garbage: Vec<_> = lab
        .effects()
        .into_iter()
        .filter_map(|effect| match effect {
            crate::engine::store::Effect::Discard(garbage) => Some(garbage),
            _ => None,
        })
        .collect();
    assert_eq!(garbage.len(), 1);
    assert!(garbage[0].heap_bytes() > 60_000 * 32);
    let mut slices = 1;
    while garbage[0].drop_slice() {
        slices += 1;
    }
    assert!(slices > 2, "{slices} slices");
}

#[test]
fn a_large_collection_is_dropped_in_slices() {
    let mut lab = crate::testing::Lab::new();
    for chunk in 0..200 {
        let members: Vec<String> = (0..500).map(|i| format!("member-{chunk}-{i}")).collect();
        lab.run(&format!("SADD set {}", members.join(" ")));
    }
    lab.effects();
    lab.run("DEL set");
    let garbage = lab.effects().into_iter().find_map(|effect| match effect {
        crate::engine::store::Effect::Discard(garbage) => Some(garbage),
        _ => None,
    });
    let mut garbage = garbage.expect("a large set is dropped elsewhere");
    let mut slices = 1;
    while garbage.drop_slice() {
        slices += 1;
    }
    assert!(slices > 2, "{slices}");
}

#[test]
fn a_value_that_only_the_output_holds_is_counted_once() {
    let mut desk = Desk::new();
    let (kept, gone) = (vec![b'k'; 100_000], vec![b'g'; 200_000]);
    let (kept, gone) = (SharedBytes::new(kept), SharedBytes::new(gone));
    let gone_bytes = gone.heap_bytes();
    let mut reply = desk.reply();
    for _ in 0..2 {
        reply.bulk_shared(&kept);
        reply.bulk_shared(&gone);
    }
    desk.outputs.push_shared(desk.key, &gone);
    drop(gone);
    desk.outputs.count_shared();
    assert_eq!(desk.outputs.pool.orphan_bytes, gone_bytes);
    assert_eq!(desk.outputs.pool.shared_bytes, 800_000);
    assert_eq!(desk.outputs.end(desk.slot), None);
    desk.outputs.count_shared();
    assert_eq!(desk.outputs.pool.orphan_bytes, gone_bytes);
    assert_eq!(desk.outputs.pool.shared_bytes, 800_000);
    desk.take(usize::MAX);
    assert_eq!(desk.outputs.pool.orphan_bytes, 0);
    assert_eq!(desk.outputs.pool.shared_bytes, 0);
    assert_eq!(desk.outputs.pool.shared_chunks, 0);
}

#[test]
fn the_list_of_waiting_values_counts() {
    let mut desk = Desk::new();
    let value = SharedBytes::new(vec![b'v'; 100_000]);
    let before = desk.outputs.heap_bytes();
    let mut reply = desk.reply();
    for _ in 0..10_000 {
        reply.bulk_shared(&value);
    }
    // The value is the data set's; the reply has a header and two places in a list for each.
    let grown = desk.outputs.heap_bytes() - before;
    assert!((300_000..3_000_000).contains(&grown), "{grown}");
}

#[test]
fn values_are_counted_when_many_wait() {
    let mut desk = Desk::new();
    for _ in 0..100 {
        let mut reply = desk.reply();
        reply.bulk_shared(&SharedBytes::new(vec![b'v'; 500_000]));
        desk.outputs.list(desk.key);
    }
    let heap_bytes = desk.outputs.heap_bytes();
    assert!(heap_bytes > 30_000_000, "{heap_bytes}");
    desk.outputs.remove(desk.key);
    assert_eq!(desk.outputs.waiting_bytes(), desk.outputs.heap_bytes());
    assert!(desk.outputs.heap_bytes() < 1_000_000);
}
