//! en: ClientHandler: talks with one client, from its first byte to its last.
//! ja: ClientHandler: 1 つのクライアントとの通信を、最初のバイトから最後のバイトまで担当します。

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

//@ before
//| use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
//@ step 6
use tokio::io::{AsyncWriteExt, BufReader};
//@ end
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use crate::commands::{CommandHandler, Reply};
use crate::error::{CommandError, RespError};
use crate::log;
use crate::resp::{self, RespParser};
use crate::session::ClientSession;
use crate::stats::Stats;

/// en: Serves connections. It has no state of its own for any of them.
/// ja: 接続を処理します。接続ごとの状態は持ちません（ステートレス）。
pub struct ClientHandler {
    commands: Arc<CommandHandler>,
    stats: Arc<Stats>,
    next_id: AtomicU64,
}

impl ClientHandler {
    /// en: Given.
    /// ja: 実装済み。
    pub fn new(commands: Arc<CommandHandler>, stats: Arc<Stats>) -> ClientHandler {
        ClientHandler { commands, stats, next_id: AtomicU64::new(1) }
    }

    /// en: Given. Counts and logs the connection around `handle`.
    /// ja: 実装済み。`handle` の前後で接続を数え、ログを出力します。
    pub async fn serve(&self, stream: TcpStream, address: SocketAddr) {
        log::info(&format!("{address} connected"));
        let _open = OpenConnection::count(&self.stats);
        // en: Send every reply at once: the system would wait up to 40 ms to put two of them into one packet.
        // ja: 応答をすぐに送信します。そうしないと、OS が複数の応答を 1 つのパケットにまとめようとして最大 40 ミリ秒待ちます。
        let _ = stream.set_nodelay(true);
        match self.handle(stream).await {
            Ok(()) => log::info(&format!("{address} disconnected")),
            Err(error) => log::warning(&format!("{address} closed: {error}")),
        }
    }

    /// en: Step 1. Answer `+PONG\r\n` to whatever arrives:
    /// en: 1. `let mut stream = stream;`, and a buffer: `let mut buffer = [0; 1024];`. Then in a loop:
    /// en:    `stream.read(&mut buffer).await?` gives the number of bytes;
    /// en: 2. 0 bytes mean that the client closed the connection: return `Ok(())`;
    /// en: 3. otherwise `stream.write_all(b"+PONG\r\n").await?`, and begin again.
    /// en:
    /// en: Step 2 replaces all of it:
    /// en: 1. split: `let (reader, mut writer) = stream.into_split();`, and wrap the reader in `BufReader::new`;
    /// en: 2. in a loop, `match RespParser::parse_command(&mut reader).await`;
    /// en: 3. `Ok(Some(command))`: write `self.reply_to(&command)`; `Ok(None)`: return `Ok(())`;
    /// en: 4. `Err(error)`: write `resp::encode_error(&error.to_string())`, then return the error.
    /// en:
    /// en: Step 6 replaces it again, with a session and two parts that run side by side in `tokio::join!`:
    /// en: 1. `ClientSession::new(id)` gives a session and the receiving end of its message queue; the id is
    /// en:    `self.next_id.fetch_add(1, Ordering::Relaxed)`;
    /// en: 2. one part takes bytes from the queue (`recv().await`) and writes them, until there is `None`;
    /// en: 3. the other awaits `self.handle_commands(...)`, then calls `self.commands.forget(&mut session)`. It owns the
    /// en:    session (`async move`), so that the queue ends with it.
    /// ja: ステップ 1。何が届いても `+PONG\r\n` と応答します。
    /// ja: 1. `let mut stream = stream;` と、バッファ `let mut buffer = [0; 1024];` を用意する。ループの中で
    /// ja:    `stream.read(&mut buffer).await?` を呼ぶと、読み取ったバイト数が返る。
    /// ja: 2. 0 バイトはクライアントの切断を意味する: `Ok(())` を返す。
    /// ja: 3. それ以外なら `stream.write_all(b"+PONG\r\n").await?` を実行し、最初に戻る。
    /// ja:
    /// ja: ステップ 2 では全体を置き換えます。
    /// ja: 1. `let (reader, mut writer) = stream.into_split();` で分割し、reader を `BufReader::new` で包む。
    /// ja: 2. ループの中で `match RespParser::parse_command(&mut reader).await`。
    /// ja: 3. `Ok(Some(command))` なら `self.reply_to(&command)` を書き込む。`Ok(None)` なら `Ok(())` を返す。
    /// ja: 4. `Err(error)` なら `resp::encode_error(&error.to_string())` を書き込んでから、エラーを返す。
    /// ja:
    /// ja: ステップ 6 ではもう一度置き換え、セッションと、`tokio::join!` で並行に動く 2 つの処理にします。
    /// ja: 1. `ClientSession::new(id)` は、セッションとメッセージキューの受信側を返す。id は
    /// ja:    `self.next_id.fetch_add(1, Ordering::Relaxed)` で得る。
    /// ja: 2. 片方は、キューからバイト列を取り出して（`recv().await`）書き込む。`None` になったら終わる。
    /// ja: 3. もう片方は `self.handle_commands(...)` を await し、そのあと `self.commands.forget(&mut session)` を呼ぶ。
    /// ja:    セッションを所有する（`async move`）ので、この処理が終わるとキューも終わる。
    async fn handle(&self, stream: TcpStream) -> Result<(), RespError> {
        //@ step 1
        //| let mut stream = stream;
        //| let mut buffer = [0; 1024];
        //| loop {
        //|     let count = stream.read(&mut buffer).await?;
        //|     if count == 0 {
        //|         return Ok(());
        //|     }
        //|     stream.write_all(b"+PONG\r\n").await?;
        //| }
        //@ step 2
        //| let (reader, mut writer) = stream.into_split();
        //| let mut reader = BufReader::new(reader);
        //| loop {
        //|     match RespParser::parse_command(&mut reader).await {
        //|         Ok(Some(command)) => writer.write_all(&self.reply_to(&command)).await?,
        //|         Ok(None) => return Ok(()),
        //|         Err(error) => {
        //|             writer.write_all(&resp::encode_error(&error.to_string())).await?;
        //|             return Err(error);
        //|         }
        //|     }
        //| }
        //@ step 6
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (mut session, mut queue) = ClientSession::new(id);
        let write = async move {
            while let Some(bytes) = queue.recv().await {
                writer.write_all(&bytes).await?;
            }
            Ok(())
        };
        let read = async move {
            let result = self.handle_commands(&mut reader, &mut session).await;
            self.commands.forget(&mut session);
            result
        };
        let (read, written) = tokio::join!(read, write);
        read.and(written)
        //@ end
    }

    /// en: Given, for step 6. Reads commands until QUIT or the end; every reply goes into the session's message queue.
    /// ja: 実装済み（ステップ 6 用）。QUIT か切断までコマンドを読み、応答はすべてセッションのメッセージキューに入れます。
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

    /// en: Given. Executes one command; the result is what to write to the client.
    /// ja: 実装済み。1 つのコマンドを実行し、クライアントに書き込むバイト列を返します。
    pub fn reply_to(&self, command: &[Vec<u8>]) -> Vec<u8> {
        self.caught(|| self.commands.execute(command).map(|reply| vec![reply])).concat()
    }

    /// en: Given, for step 6. The same for a command that may subscribe: it can have several replies.
    /// ja: 実装済み（ステップ 6 用）。購読もできるコマンド用です。応答が複数になることがあります。
    fn replies_to(&self, session: &mut ClientSession, command: &[Vec<u8>]) -> Vec<Vec<u8>> {
        self.caught(|| self.commands.execute_in_session(session, command))
    }

    /// en: Given. Encodes the replies. An error, even a panic, is a reply too: the connection stays open.
    /// ja: 実装済み。応答をエンコードします。エラーやパニックも応答になり、接続は維持されます。
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

/// en: Given. Counts a connection for as long as it lives, however it ends.
/// ja: 実装済み。終わり方にかかわらず、接続が存在するあいだだけ数えます。
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
