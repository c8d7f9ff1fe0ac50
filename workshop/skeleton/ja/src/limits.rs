//! 実装済み。クライアントが送信・保存できる量の上限です。

/// 1 コマンドの最大バイト数（1 MB）。
pub const MAX_MESSAGE: usize = 1024 * 1024;

/// 長さを示す行の最大バイト数。
pub const MAX_LINE: u64 = 64;

/// 1 コマンドの引数の最大個数。
pub const MAX_ARGUMENTS: usize = 1024;

/// 値の最大バイト数（512 KB）。
pub const MAX_VALUE: usize = 512 * 1024;

/// キーの最大個数。
pub const MAX_KEYS: usize = 10_000;

/// 1 クライアントあたりの送信待ちメッセージの最大個数（ステップ 6）。
pub const MAX_QUEUED: usize = 1024;
