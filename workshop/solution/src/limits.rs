//! en: Given. How much a client may send or keep.
//! ja: 実装済み。クライアントが送信・保存できる量の上限です。

/// en: The longest command, in bytes (1 MB).
/// ja: 1 コマンドの最大バイト数（1 MB）。
pub const MAX_MESSAGE: usize = 1024 * 1024;

/// en: The longest line that announces a length, in bytes.
/// ja: 長さを示す行の最大バイト数。
pub const MAX_LINE: u64 = 64;

/// en: The largest number of arguments in one command.
/// ja: 1 コマンドの引数の最大個数。
pub const MAX_ARGUMENTS: usize = 1024;

/// en: The longest value, in bytes (512 KB).
/// ja: 値の最大バイト数（512 KB）。
pub const MAX_VALUE: usize = 512 * 1024;

/// en: The largest number of keys.
/// ja: キーの最大個数。
pub const MAX_KEYS: usize = 10_000;

/// en: How many messages may wait for one client (step 6).
/// ja: 1 クライアントあたりの送信待ちメッセージの最大個数（ステップ 6）。
pub const MAX_QUEUED: usize = 1024;
