//! DataStore: すべてのキーと値をメモリに保存します。

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::error::CommandError;
use crate::limits::{MAX_KEYS, MAX_VALUE};

/// すべての接続が共有するストアです。ロックし、処理し、すぐに解放します。`await` をまたいでロックを保持してはいけません。
pub type SharedStore = Arc<Mutex<DataStore>>;

/// キーに対応するエントリです。
pub struct StoreEntry {
    /// 値（任意のバイト列）。
    pub value: Vec<u8>,
    /// 有効期限（1970 年からのミリ秒）。`None` は無期限。
    pub expiry_at: Option<u64>,
}

/// キーとエントリの表です。時計は持ちません。期限切れのチェックは呼び出し側の責任です。
#[derive(Default)]
pub struct DataStore {
    data: HashMap<Vec<u8>, StoreEntry>,
}

impl DataStore {
    /// 実装済み。空のストア。
    pub fn new() -> DataStore {
        DataStore::default()
    }

    /// ステップ 3。`key` の値を返します（なければ `None`）。`self.data` から探し、エントリを `map` で値に変換します。
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        todo!("step 3: store.rs")
    }

    /// ステップ 3。値が長すぎるか、キーの個数が上限を超えるならエラーを返します。
    /// 1. `MAX_VALUE` バイトを超える値は `CommandError::ValueTooLong`。
    /// 2. キーが `MAX_KEYS` 個あるときの新しいキーは `CommandError::TooManyKeys`。
    fn check_limits(&self, key: &[u8], value: &[u8]) -> Result<(), CommandError> {
        todo!("step 3: store.rs")
    }

    /// ステップ 3。値を設定します。既存の有効期限はクリアされます。
    /// `self.check_limits(key, &value)?` を呼び、有効期限のないエントリを insert します。
    pub fn set(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), CommandError> {
        todo!("step 3: store.rs")
    }

    /// ステップ 3。有効期限を保ったまま値を変更します（INCR 用）。キーがなければ `set` を呼びます。
    /// エントリがあれば `self.data.get_mut(key)` で取得できます。
    pub fn update(&mut self, key: &[u8], value: Vec<u8>) -> Result<(), CommandError> {
        todo!("step 3: store.rs")
    }

    /// ステップ 3。キーを削除します。存在していれば true。
    pub fn delete(&mut self, key: &[u8]) -> bool {
        todo!("step 3: store.rs")
    }

    /// ステップ 3。キーが存在すれば true。
    pub fn exists(&self, key: &[u8]) -> bool {
        todo!("step 3: store.rs")
    }

    /// ステップ 4。キーに有効期限を設定します。キーがなければ false。
    pub fn set_expiry(&mut self, key: &[u8], expiry_at: u64) -> bool {
        todo!("step 4: store.rs")
    }

    /// ステップ 4。キーの有効期限を返します（キーがない、または無期限なら `None`）。
    pub fn expiry(&self, key: &[u8]) -> Option<u64> {
        todo!("step 4: store.rs")
    }

    /// 実装済み。キーの個数。まだ削除されていない期限切れのキーも含みます。
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// 実装済み。キーが 1 つもなければ true。
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// 実装済み（ステップ 5 用）。有効期限のあるキーが 1 つでもあれば true。
    pub fn has_deadlines(&self) -> bool {
        self.data.values().any(|entry| entry.expiry_at.is_some())
    }

    /// 実装済み（ステップ 5 用）。全キーからランダムに選んだ、最大 `count` 個の異なるキー。
    pub fn sample_keys(&self, count: usize, random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
        random.choose_multiple(self.data.keys().cloned(), count)
    }
}
