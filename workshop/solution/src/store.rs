//! en: DataStore: all keys and values, in memory.
//! ja: DataStore: すべてのキーと値をメモリに保存します。

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::error::CommandError;
use crate::limits::{MAX_KEYS, MAX_VALUE};

/// en: The store, shared by all connections. Lock it, work, let go; never hold the lock across an `await`.
/// ja: すべての接続が共有するストアです。ロックし、処理し、すぐに解放します。`await` をまたいでロックを保持してはいけません。
pub type SharedStore = Arc<Mutex<DataStore>>;

/// en: What is stored under a key.
/// ja: キーに対応するエントリです。
pub struct StoreEntry {
    /// en: The value: any bytes.
    /// ja: 値（任意のバイト列）。
    pub value: Vec<u8>,
    /// en: When the key expires, in milliseconds since 1970; `None` means never.
    /// ja: 有効期限（1970 年からのミリ秒）。`None` は無期限。
    pub expiry_at: Option<u64>,
}

/// en: Keys and their entries. It has no clock: the caller checks for expiry first.
/// ja: キーとエントリの表です。時計は持ちません。期限切れのチェックは呼び出し側の責任です。
#[derive(Default)]
pub struct DataStore {
    data: HashMap<Vec<u8>, StoreEntry>,
}

impl DataStore {
    /// en: Given. An empty store.
    /// ja: 実装済み。空のストア。
    pub fn new() -> DataStore {
        DataStore::default()
    }

    /// en: Step 3. The value of `key`, if there is one: look it up in `self.data`, then `map` the entry to its value.
    /// ja: ステップ 3。`key` の値を返します（なければ `None`）。`self.data` から探し、エントリを `map` で値に変換します。
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        //@ step 3
        self.data.get(key).map(|entry| entry.value.as_slice())
        //@ end
    }

    /// en: Step 3. An error if the value is too long, or if the key would be one too many:
    /// en: 1. more than `MAX_VALUE` bytes are `CommandError::ValueTooLong`;
    /// en: 2. a key that is not there yet while there are `MAX_KEYS` keys is `CommandError::TooManyKeys`.
    /// ja: ステップ 3。値が長すぎるか、キーの個数が上限を超えるならエラーを返します。
    /// ja: 1. `MAX_VALUE` バイトを超える値は `CommandError::ValueTooLong`。
    /// ja: 2. キーが `MAX_KEYS` 個あるときの新しいキーは `CommandError::TooManyKeys`。
    fn check_limits(&self, key: &[u8], value: &[u8]) -> Result<(), CommandError> {
        //@ step 3
        if value.len() > MAX_VALUE {
            return Err(CommandError::ValueTooLong);
        }
        if self.data.len() >= MAX_KEYS && !self.data.contains_key(key) {
            return Err(CommandError::TooManyKeys);
        }
        Ok(())
        //@ end
    }

    /// en: Step 3. Stores a value. A deadline the key had before is gone.
    /// en: Call `self.check_limits(key, &value)?`, then insert an entry without expiry.
    /// ja: ステップ 3。値を設定します。既存の有効期限はクリアされます。
    /// ja: `self.check_limits(key, &value)?` を呼び、有効期限のないエントリを insert します。
    pub fn set(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), CommandError> {
        //@ step 3
        self.check_limits(key, &value)?;
        let entry = StoreEntry { value, expiry_at: None };
        self.data.insert(key.to_vec(), entry);
        Ok(())
        //@ end
    }

    /// en: Step 3. Changes a value and keeps the deadline (for INCR). A key that is not there yet is `set`.
    /// en: `self.data.get_mut(key)` gives the entry if there is one.
    /// ja: ステップ 3。有効期限を保ったまま値を変更します（INCR 用）。キーがなければ `set` を呼びます。
    /// ja: エントリがあれば `self.data.get_mut(key)` で取得できます。
    pub fn update(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), CommandError> {
        //@ step 3
        match self.data.get_mut(key) {
            Some(entry) => {
                entry.value = value;
                Ok(())
            }
            None => self.set(key, value),
        }
        //@ end
    }

    /// en: Step 3. Removes a key; true if it was there.
    /// ja: ステップ 3。キーを削除します。存在していれば true。
    pub fn delete(&mut self, key: &[u8]) -> bool {
        //@ step 3
        self.data.remove(key).is_some()
        //@ end
    }

    /// en: Step 3. True if the key is there.
    /// ja: ステップ 3。キーが存在すれば true。
    pub fn exists(&self, key: &[u8]) -> bool {
        //@ step 3
        self.data.contains_key(key)
        //@ end
    }

    /// en: Step 4. Sets the deadline of a key; false if the key is not there.
    /// ja: ステップ 4。キーに有効期限を設定します。キーがなければ false。
    pub fn set_expiry(&mut self, key: &[u8], expiry_at: u64) -> bool {
        //@ step 4
        let Some(entry) = self.data.get_mut(key) else {
            return false;
        };
        entry.expiry_at = Some(expiry_at);
        true
        //@ end
    }

    /// en: Step 4. The deadline of a key, if the key is there and has one.
    /// ja: ステップ 4。キーの有効期限を返します（キーがない、または無期限なら `None`）。
    pub fn expiry(&self, key: &[u8]) -> Option<u64> {
        //@ step 4
        self.data.get(key)?.expiry_at
        //@ end
    }

    /// en: Given. The number of keys, including expired keys that are not deleted yet.
    /// ja: 実装済み。キーの個数。まだ削除されていない期限切れのキーも含みます。
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// en: Given. True if there is no key.
    /// ja: 実装済み。キーが 1 つもなければ true。
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// en: Given, for step 5. True if at least one key has a deadline.
    /// ja: 実装済み（ステップ 5 用）。有効期限のあるキーが 1 つでもあれば true。
    pub fn has_deadlines(&self) -> bool {
        self.data.values().any(|entry| entry.expiry_at.is_some())
    }

    /// en: Given, for step 5. Up to `count` different keys, chosen at random among all.
    /// ja: 実装済み（ステップ 5 用）。全キーからランダムに選んだ、最大 `count` 個の異なるキー。
    pub fn sample_keys(&self, count: usize, random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
        random.choose_multiple(self.data.keys().cloned(), count)
    }
}
