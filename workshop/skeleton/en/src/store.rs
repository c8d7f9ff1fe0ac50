//! DataStore: all keys and values, in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::error::CommandError;
use crate::limits::{MAX_KEYS, MAX_VALUE};

/// The store, shared by all connections. Lock it, work, let go; never hold the lock across an `await`.
pub type SharedStore = Arc<Mutex<DataStore>>;

/// What is stored under a key.
pub struct StoreEntry {
    /// The value: any bytes.
    pub value: Vec<u8>,
    /// When the key expires, in milliseconds since 1970; `None` means never.
    pub expiry_at: Option<u64>,
}

/// Keys and their entries. It has no clock: the caller checks for expiry first.
#[derive(Default)]
pub struct DataStore {
    data: HashMap<Vec<u8>, StoreEntry>,
}

impl DataStore {
    /// Given. An empty store.
    pub fn new() -> DataStore {
        DataStore::default()
    }

    /// Step 3. The value of `key`, if there is one: look it up in `self.data`, then `map` the entry to its value.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        todo!("step 3: store.rs")
    }

    /// Step 3. An error if the value is too long, or if the key would be one too many:
    /// 1. more than `MAX_VALUE` bytes are `CommandError::ValueTooLong`;
    /// 2. a key that is not there yet while there are `MAX_KEYS` keys is `CommandError::TooManyKeys`.
    fn check_limits(&self, key: &[u8], value: &[u8]) -> Result<(), CommandError> {
        todo!("step 3: store.rs")
    }

    /// Step 3. Stores a value. A deadline the key had before is gone.
    /// Call `self.check_limits(key, &value)?`, then insert an entry without expiry.
    pub fn set(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), CommandError> {
        todo!("step 3: store.rs")
    }

    /// Step 3. Changes a value and keeps the deadline (for INCR). A key that is not there yet is `set`.
    /// `self.data.get_mut(key)` gives the entry if there is one.
    pub fn update(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), CommandError> {
        todo!("step 3: store.rs")
    }

    /// Step 3. Removes a key; true if it was there.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        todo!("step 3: store.rs")
    }

    /// Step 3. True if the key is there.
    pub fn exists(&self, key: &[u8]) -> bool {
        todo!("step 3: store.rs")
    }

    /// Step 4. Sets the deadline of a key; false if the key is not there.
    pub fn set_expiry(&mut self, key: &[u8], expiry_at: u64) -> bool {
        todo!("step 4: store.rs")
    }

    /// Step 4. The deadline of a key, if the key is there and has one.
    pub fn expiry(&self, key: &[u8]) -> Option<u64> {
        todo!("step 4: store.rs")
    }

    /// Given. The number of keys, including expired keys that are not deleted yet.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Given. True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Given, for step 5. True if at least one key has a deadline.
    pub fn has_deadlines(&self) -> bool {
        self.data.values().any(|entry| entry.expiry_at.is_some())
    }

    /// Given, for step 5. Up to `count` different keys, chosen at random among all.
    pub fn sample_keys(&self, count: usize, random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
        random.choose_multiple(self.data.keys().cloned(), count)
    }
}
