//! How many nodes the radix tree has in which Redis keeps a stream: `radix-tree-nodes` of XINFO STREAM.
//!
//! Redis's tree has one node per key, one per place where keys part, and one for each run of bytes that all keys below
//! it share, be it one byte or many. All of that follows from the keys in their order. There is no such tree here, so
//! the count takes time linear in the number of nodes of the stream.

use super::Stream;

type Key = [u8; 16];

impl Stream {
    /// `radix-tree-nodes` of XINFO.
    pub(crate) fn radix_tree_nodes(&self) -> u64 {
        tree(self.nodes.iter().map(|(id, _)| id.to_bytes()).collect())
    }
}

/// Counts the nodes of the tree with these keys.
fn tree(mut keys: Vec<Key>) -> u64 {
    // They ascend already. `subtree` relies on it: each of its calls is for keys that share a byte more than those of
    // its caller, so that it ends after as many calls inside each other as a key has bytes.
    keys.sort_unstable();
    keys.dedup();
    match keys.is_empty() {
        // The root.
        true => 1,
        false => subtree(&keys, 0),
    }
}

/// Counts the nodes of the tree with these keys, which ascend, differ and share their first `depth` bytes.
fn subtree(keys: &[Key], depth: usize) -> u64 {
    let (Some(first), Some(last)) = (keys.first(), keys.last()) else {
        return 0;
    };
    let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let run = u64::from(shared > depth);
    if shared == first.len() {
        // One key: the run of its last bytes and the node of the key.
        return run + 1;
    }
    let mut nodes = run + 1;
    let mut rest = keys;
    while let Some(next) = rest.first() {
        let byte = next[shared];
        let below = rest.partition_point(|key| key[shared] <= byte);
        let (branch, others) = rest.split_at(below);
        nodes += subtree(branch, shared + 1);
        rest = others;
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::stream::{NodeLimits, StreamId};

    #[test]
    fn the_order_of_the_keys_does_not_matter() {
        let key = |ms, seq| StreamId::new(ms, seq).to_bytes();
        let ascending = vec![key(1, 1), key(256, 1), key(256, 2)];
        let shuffled = vec![key(256, 2), key(1, 1), key(256, 1), key(256, 2)];
        assert_eq!(tree(shuffled), tree(ascending));
    }

    #[test]
    fn nodes_are_counted_as_redis_counts_them() {
        let limits = NodeLimits {
            max_bytes: 0,
            max_entries: 1,
        };
        // Seen with redis-server 7.0.15 and `stream-node-max-entries 1`.
        let cases: &[(&[(u64, u64)], u64)] = &[
            (&[], 1),
            (&[(1, 1)], 2),
            (&[(1, 1), (1, 2)], 4),
            (&[(1, 1), (1, 2), (1, 3)], 5),
            (&[(1, 1), (2, 1)], 6),
            (&[(1, 1), (256, 1)], 6),
            (&[(1, 1), (256, 1), (256, 2)], 8),
            (&[(1, 1), (1, 256), (1, 257)], 7),
        ];
        for (ids, expected) in cases {
            let mut stream = Stream::new();
            for &(ms, seq) in *ids {
                let id = StreamId::new(ms, seq);
                stream.append(id, &[b"f", b"v"], limits).unwrap();
            }
            assert_eq!(stream.radix_tree_nodes(), *expected, "{ids:?}");
        }
    }
}
