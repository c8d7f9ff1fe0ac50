//! ClientHandler: 1 つのクライアントとの通信を、最初のバイトから最後のバイトまで担当します。

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use crate::commands::{CommandHandler, Reply};
use crate::error::{CommandError, RespError};
use crate::log;
use crate::resp::{self, RespParser};
use crate::session::ClientSession;
use crate::stats::Stats;

/// 接続を処理します。接続ごとの状態は持ちません（ステートレス）。
pub struct ClientHandler {
    commands: Arc<CommandHandler>,
    stats: Arc<Stats>,
    next_id: AtomicU64,
}

impl ClientHandler {
    /// 実装済み。
    pub fn new(commands: Arc<CommandHandler>, stats: Arc<Stats>) -> ClientHandler {
        ClientHandler { commands, stats, next_id: AtomicU64::new(1) }
    }

    /// 実装済み。`handle` の前後で接続を数え、ログを出力します。
    pub async fn serve(&self, stream: TcpStream, address: SocketAddr) {
        log::info(&format!("{address} connected"));
        let _open = OpenConnection::count(&self.stats);
        // 応答をすぐに送信します。そうしないと、OS が複数の応答を 1 つのパケットにまとめようとして最大 40 ミリ秒待ちます。
        let _ = stream.set_nodelay(true);
        match self.handle(stream).await {
            Ok(()) => log::info(&format!("{address} disconnected")),
            Err(error) => log::warning(&format!("{address} closed: {error}")),
        }
    }

    /// ステップ 1。何が届いても `+PONG\r\n` と応答します。
    /// 1. `let mut stream = stream;` と、バッファ `let mut buffer = [0; 1024];` を用意する。ループの中で
    ///    `stream.read(&mut buffer).await?` を呼ぶと、読み取ったバイト数が返る。
    /// 2. 0 バイトはクライアントの切断を意味する: `Ok(())` を返す。
    /// 3. それ以外なら `stream.write_all(b"+PONG\r\n").await?` を実行し、最初に戻る。
    ///
    /// ステップ 2 では全体を置き換えます。
    /// 1. `let (reader, mut writer) = stream.into_split();` で分割し、reader を `BufReader::new` で包む。
    /// 2. ループの中で `match RespParser::parse_command(&mut reader).await`。
    /// 3. `Ok(Some(command))` なら `self.reply_to(&command)` を書き込む。`Ok(None)` なら `Ok(())` を返す。
    /// 4. `Err(error)` なら `resp::encode_error(&error.to_string())` を書き込んでから、エラーを返す。
    ///
    /// ステップ 6 ではもう一度置き換え、セッションと、`tokio::join!` で並行に動く 2 つの処理にします。
    /// 1. `ClientSession::new(id)` は、セッションとメッセージキューの受信側を返す。id は
    ///    `self.next_id.fetch_add(1, Ordering::Relaxed)` で得る。
    /// 2. 片方は、キューからバイト列を取り出して（`recv().await`）書き込む。`None` になったら終わる。
    /// 3. もう片方は `self.handle_commands(...)` を await し、そのあと `self.commands.forget(&mut session)` を呼ぶ。
    ///    セッションを所有する（`async move`）ので、この処理が終わるとキューも終わる。
    async fn handle(&self, stream: TcpStream) -> Result<(), RespError> {
        todo!("step 1: client.rs")
    }

    /// 実装済み（ステップ 6 用）。QUIT か切断までコマンドを読み、応答はすべてセッションのメッセージキューに入れます。
    async fn handle_commands(
        &self,
        reader: &mut BufReader<OwnedReadHalf>,
        session: &mut ClientSession,
    ) -> Result<(), RespError> {
        loop {
            match RespParser::parse_command(reader).await {
                Ok(Some(command)) => {
                    for reply in self.replies_to(session, &command) {
                        session.send(reply).await?;
                    }
                    if command.first().is_some_and(|name| name.eq_ignore_ascii_case(b"QUIT")) {
                        return Ok(());
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    session.send(resp::encode_error(&error.to_string())).await?;
                    return Err(error);
                }
            }
        }
    }

    /// 実装済み。1 つのコマンドを実行し、クライアントに書き込むバイト列を返します。
    pub fn reply_to(&self, command: &[Vec<u8>]) -> Vec<u8> {
        self.caught(|| self.commands.execute(command).map(|reply| vec![reply])).concat()
    }

    /// 実装済み（ステップ 6 用）。購読もできるコマンド用です。応答が複数になることがあります。
    fn replies_to(&self, session: &mut ClientSession, command: &[Vec<u8>]) -> Vec<Vec<u8>> {
        self.caught(|| self.commands.execute_in_session(session, command))
    }

    /// 実装済み。応答をエンコードします。エラーやパニックも応答になり、接続は維持されます。
    fn caught(&self, execute: impl FnOnce() -> Result<Vec<Reply>, CommandError>) -> Vec<Vec<u8>> {
        self.stats.commands.fetch_add(1, Ordering::Relaxed);
        let encoded = catch_unwind(AssertUnwindSafe(|| match execute() {
            Ok(replies) => replies.iter().map(resp::encode_reply).collect(),
            Err(error) => {
                log::warning(&format!("command failed: {error}"));
                vec![resp::encode_error(&error.to_string())]
            }
        }));
        encoded.unwrap_or_else(|_| vec![resp::encode_error("internal error")])
    }
}

/// 実装済み。終わり方にかかわらず、接続が存在するあいだだけ数えます。
struct OpenConnection<'a>(&'a Stats);

impl OpenConnection<'_> {
    fn count(stats: &Stats) -> OpenConnection<'_> {
        stats.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(stats)
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
