//! The reader and the writer of a channel's stream. Both end when the channel does.
//!
//! The writer writes all queued messages at once, so calls made together are sent together. The reader handles all frames
//! that arrived together under one lock. Neither waits for the other. On most channels they are two tasks; on a
//! stream for one call they are part of the caller's future on one side and of the stream's task on the other, because
//! two tasks for each such call cost more than the rest of it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use kumi_common::Chain;
use tokio::time::{Instant, Sleep, sleep_until};

use super::driver::{ChannelDriver, now};
use super::transport::{
    CLOSE_REASON_TIMEOUT, CLOSED_CODE, RESET_CODE, TransportRecv, TransportSend, reset_code,
};
use crate::core::{Phase, Step, after};
use crate::error::{NetworkError, TransportError};
use crate::wire::{FrameReader, Metadata, PacketHeader, ProtocolMessage};

/// How long the reader may take to find the close reason after the peer has stopped reading.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Messages that the reader handles before it yields: the responses to the first are sent while the next are read, so that
/// both sides of a busy channel work in parallel.
const BATCH_MESSAGES: usize = 32;

/// The reader also yields after this many decompressed bytes, so that they are refused or charged before more are
/// decompressed.
const BATCH_BYTES: usize = 256 * 1024;

/// Starts both tasks on the current runtime.
pub(super) fn start<S: TransportSend, R: TransportRecv>(
    driver: &Arc<ChannelDriver>,
    send: S,
    recv: R,
    reader: FrameReader,
) {
    let stream = driver.core().generation();
    if driver.is_unreliable() {
        driver.attach_datagrams(send.datagrams());
    }
    tokio::spawn(write(Arc::clone(driver), stream, send));
    tokio::spawn(read(Arc::clone(driver), stream, recv, reader));
}

/// The answering side of a stream for one call, to be run by the stream's own task.
pub(super) async fn run_own_stream_answer<S: TransportSend, R: TransportRecv>(
    driver: Arc<ChannelDriver>,
    send: S,
    recv: R,
    reader: FrameReader,
) {
    let stream = driver.core().generation();
    // Reading comes first, so that an answer that is ready at once leaves together with the acknowledgement.
    futures_util::future::join(
        read(Arc::clone(&driver), stream, recv, reader),
        write(driver, stream, send),
    )
    .await;
}

/// The asking side of a stream for one call: writes the opening and the request, which are queued when this is first
/// polled, finishes that half, and reads until the peer has finished the other. Dropped before that, it cancels the call.
pub(super) async fn run_own_stream_call<S: TransportSend, R: TransportRecv>(
    driver: Arc<ChannelDriver>,
    send: S,
    recv: R,
) {
    let stream = driver.core().generation();
    let mut timer = Timer::new();
    let mut reading = pin!(read(Arc::clone(&driver), stream, recv, FrameReader::new()));
    let mut writing = pin!(write_once(&driver, stream, ResetOnDrop::new(send)));
    let mut is_written = false;
    poll_fn(|cx| {
        is_written = is_written || writing.as_mut().poll(cx).is_ready();
        loop {
            let deadline = driver.core().next_deadline();
            if timer.poll(deadline, cx).is_pending() {
                break;
            }
            expire(&driver);
        }
        reading.as_mut().poll(cx)
    })
    .await;
}

/// Writes what is queued and ends the stream. If the peer stops reading, the reader receives the reason or the error.
async fn write_once<S: TransportSend>(
    driver: &ChannelDriver,
    stream: u64,
    mut send: ResetOnDrop<S>,
) {
    let queued = driver.core().queued_bytes();
    let _room = driver.context.room_for_write(queued).await;
    let mut chunks = Vec::new();
    let step = poll_fn(|cx| {
        let mut core = driver.core();
        Poll::Ready(core.take_output(stream, now(), &mut chunks, cx.waker()))
    });
    if step.await != Step::Write {
        return;
    }
    count_write(driver, &chunks);
    if send.stream.write(&mut chunks).await.is_ok() {
        driver.core().output_written(stream);
        send.stream.finish();
        send.armed = false;
        send.stream.finished().await;
    }
}

/// Resets the stream when dropped, unless it was finished.
struct ResetOnDrop<S: TransportSend> {
    stream: S,
    armed: bool,
}

impl<S: TransportSend> ResetOnDrop<S> {
    fn new(stream: S) -> Self {
        let armed = true;
        Self { stream, armed }
    }
}

impl<S: TransportSend> Drop for ResetOnDrop<S> {
    fn drop(&mut self) {
        if self.armed {
            self.stream.reset(RESET_CODE);
        }
    }
}

fn count_write(driver: &ChannelDriver, chunks: &[Bytes]) {
    let metrics = driver.context.metrics();
    metrics.writes.increment();
    metrics
        .bytes_out
        .add(chunks.iter().map(|chunk| chunk.len() as u64).sum());
}

async fn write<S: TransportSend>(driver: Arc<ChannelDriver>, stream: u64, mut send: S) {
    let mut chunks: Vec<Bytes> = Vec::new();
    let mut timer = Timer::new();
    // A stream for one call has room until its answer has arrived; others until it is written.
    let is_apart = driver.is_own_stream();
    let mut room = None;
    // A write was given up before its end, so nothing can follow it.
    let mut is_broken_off = false;
    let mut stopped = pin!(send.stopped());
    loop {
        let output = |cx: &mut Context<'_>| {
            poll_output(
                &driver,
                stream,
                &mut chunks,
                &mut timer,
                stopped.as_mut(),
                cx,
            )
        };
        match poll_fn(output).await {
            Step::Write => {
                driver.output_taken();
                count_write(&driver, &chunks);
                let bytes = chunks.iter().map(Bytes::len).sum();
                let write = async {
                    let taken = driver.context.room_for_write(bytes).await;
                    if is_apart && room.is_none() {
                        room = taken;
                        return send.write(&mut chunks).await;
                    }
                    send.write(&mut chunks).await
                };
                let written = tokio::select! {
                    biased;
                    written = write => Some(written),
                    () = poll_fn(|cx| poll_blocked(&driver, stream, &mut timer, cx)) => None,
                };
                chunks.clear();
                match written {
                    Some(Ok(())) => {}
                    Some(Err(error)) => {
                        if matches!(error, TransportError::Reset(_)) {
                            // The peer has stopped reading this half. Its close reason comes on the other half: the reader
                            // gets a short time to receive it.
                            let over = poll_fn(|cx| poll_over(&driver, stream, &mut timer, cx));
                            let _ = tokio::time::timeout(STOP_GRACE, over).await;
                        }
                        return lost(&driver, stream, &error);
                    }
                    // The next step of the core decides how the stream ends.
                    None => is_broken_off = true,
                }
            }
            Step::Finish => {
                send.finish();
                driver.finished();
                return send.finished().await;
            }
            Step::Reset => return end_stream(&driver, &mut send, is_broken_off).await,
            Step::Exit => return send.reset(RESET_CODE),
            Step::Wait => {}
        }
    }
}

/// The next step of the writer; runs deadlines while it waits. When the peer has finished its half, no reader is left, so
/// this function also notices a peer that stops reading or is gone.
fn poll_output(
    driver: &ChannelDriver,
    stream: u64,
    chunks: &mut Vec<Bytes>,
    timer: &mut Timer,
    mut stopped: Pin<&mut impl Future<Output = ()>>,
    cx: &mut Context<'_>,
) -> Poll<Step> {
    loop {
        let (step, deadline, is_alone, made_room) = {
            let mut core = driver.core();
            let step = core.take_output(stream, now(), chunks, cx.waker());
            let is_alone = *core.phase() == Phase::PeerDone;
            let made_room = core.take_made_room();
            (step, core.next_deadline(), is_alone, made_room)
        };
        if made_room {
            driver.output_taken();
        }
        if step != Step::Wait {
            return Poll::Ready(step);
        }
        if is_alone && stopped.as_mut().poll(cx).is_ready() {
            lost(
                driver,
                stream,
                &TransportError::Reset(u64::from(RESET_CODE)),
            );
            continue;
        }
        if timer.poll(deadline, cx).is_pending() {
            return Poll::Pending;
        }
        expire(driver);
    }
}

/// Resolves when the reader has ended the channel; runs deadlines while it waits.
fn poll_over(
    driver: &ChannelDriver,
    stream: u64,
    timer: &mut Timer,
    cx: &mut Context<'_>,
) -> Poll<()> {
    loop {
        let (is_over, deadline) = {
            let mut core = driver.core();
            let is_over = core.writer_should_give_up(stream, cx.waker())
                || !matches!(core.phase(), Phase::Open | Phase::Opening { .. });
            (is_over, core.next_deadline())
        };
        if is_over {
            return Poll::Ready(());
        }
        if timer.poll(deadline, cx).is_pending() {
            return Poll::Pending;
        }
        expire(driver);
    }
}

/// Ends the stream of a channel that has ended. Where the channel ended for what the peer sent, or by a policy, the peer gets
/// the reason, if it still reads and no message is half written. Otherwise the stream is reset.
async fn end_stream<S: TransportSend>(driver: &ChannelDriver, send: &mut S, is_broken_off: bool) {
    let mut chunks = Vec::new();
    let (code, has_reason) = {
        let mut core = driver.core();
        let code = match core.phase() {
            Phase::Ended { error, .. } => reset_code(error),
            _ => RESET_CODE,
        };
        let has_reason = !is_broken_off && core.take_close_reason(now(), &mut chunks);
        core.drop_output();
        (code, has_reason)
    };
    if has_reason {
        let write = tokio::time::timeout(CLOSE_REASON_TIMEOUT, send.write(&mut chunks));
        if let Ok(Ok(())) = write.await {
            return send.finish();
        }
    }
    send.reset(code);
}

/// Runs deadlines while a write is blocked. Resolves when the channel has ended without flushing.
fn poll_blocked(
    driver: &ChannelDriver,
    stream: u64,
    timer: &mut Timer,
    cx: &mut Context<'_>,
) -> Poll<()> {
    loop {
        let (give_up, deadline) = {
            let mut core = driver.core();
            (
                core.writer_should_give_up(stream, cx.waker()),
                core.next_deadline(),
            )
        };
        if give_up {
            return Poll::Ready(());
        }
        if timer.poll(deadline, cx).is_pending() {
            return Poll::Pending;
        }
        expire(driver);
    }
}

fn expire(driver: &ChannelDriver) {
    let now = now();
    driver.step_here(|core, effects| core.handle_timeout(now, effects));
}

fn lost(driver: &ChannelDriver, stream: u64, error: &TransportError) {
    tracing::debug!(
        connection_id = %driver.context.connection_id,
        peer = ?driver.context.peer(),
        stream_id = driver.stream_id(),
        %error,
        "a stream broke"
    );
    driver.step_here(|core, effects| {
        if !core.is_current(stream) {
        } else if *error == TransportError::Reset(u64::from(CLOSED_CODE)) {
            core.end(NetworkError::closed(), false, effects);
        } else {
            core.handle_loss(effects);
        }
    });
}

async fn read<R: TransportRecv>(
    driver: Arc<ChannelDriver>,
    stream: u64,
    mut recv: R,
    mut reader: FrameReader,
) {
    let mut held = Partial {
        driver: Arc::clone(&driver),
        bytes: 0,
    };
    let result = read_until_end(&driver, stream, &mut recv, &mut reader, &mut held).await;
    drop(held);
    let mut code = RESET_CODE;
    match result {
        Ok(()) => {}
        Err(NetworkError::Transport(error)) => lost(&driver, stream, &error),
        Err(error) => {
            code = reset_code(&error);
            tracing::debug!(
                connection_id = %driver.context.connection_id,
                peer = ?driver.context.peer(),
                stream_id = driver.stream_id(),
                error = %Chain(&error),
                "a stream is closed for what came on it"
            );
            driver.context.metrics().protocol_errors.increment();
            driver.step_here(|core, effects| {
                if core.is_current(stream) {
                    core.end(error, false, effects);
                }
            });
        }
    }
    recv.stop(code);
}

async fn read_until_end<R: TransportRecv>(
    driver: &Arc<ChannelDriver>,
    stream: u64,
    recv: &mut R,
    reader: &mut FrameReader,
    held: &mut Partial,
) -> Result<(), NetworkError> {
    let mut chunks = Vec::new();
    let mut batch = Vec::new();
    let mut timer = Timer::new();
    let mut partial_until = None;
    loop {
        // Buffered bytes first: on the accepting side they follow the opening.
        let more = take_frames(driver, reader, &mut batch);
        if !batch.is_empty() {
            partial_until = None;
            poll_fn(|cx| Poll::Ready(handle(driver, stream, &mut batch, cx))).await?;
        }
        if more? {
            tokio::task::yield_now().await;
            continue;
        }
        held.set(reader.buffered_bytes())?;
        if reader.is_partial() {
            partial_until.get_or_insert_with(|| after(now(), driver.options.frame_timeout));
        }
        let more = tokio::select! {
            biased;
            more = recv.read(&mut chunks) => more?,
            end = poll_fn(|cx| poll_end(driver, stream, &mut timer, partial_until, cx)) => return end,
        };
        if !more {
            reader.end()?;
            driver.step_here(|core, effects| {
                if core.is_current(stream) {
                    core.handle_end(effects);
                }
            });
            return Ok(());
        }
        let mut bytes = 0;
        for chunk in chunks.drain(..) {
            bytes += chunk.len() as u64;
            reader.push(chunk);
        }
        driver.context.metrics().bytes_in.add(bytes);
    }
}

type Received = (PacketHeader, ProtocolMessage, Metadata);

/// The next frames that are complete. True if there may be more.
fn take_frames(
    driver: &ChannelDriver,
    reader: &mut FrameReader,
    batch: &mut Vec<Received>,
) -> Result<bool, NetworkError> {
    let mut bytes = 0;
    let mut more = true;
    while more && batch.len() < BATCH_MESSAGES && bytes < BATCH_BYTES {
        match reader.next()? {
            Some(packet) => {
                bytes += packet.body.len();
                let (message, metadata) =
                    ProtocolMessage::decode_owned(&packet.header, packet.body)?;
                batch.push((packet.header, message, metadata));
            }
            None => more = false,
        }
    }
    driver.context.metrics().packets_in.add(batch.len() as u64);
    Ok(more)
}

/// Passes messages to the core under one lock, and runs its effects.
fn handle(
    driver: &Arc<ChannelDriver>,
    stream: u64,
    batch: &mut Vec<Received>,
    cx: &mut Context<'_>,
) -> Result<(), NetworkError> {
    let now = now();
    let (result, calls) = driver.step_here(|core, effects| {
        for (header, message, metadata) in batch.drain(..) {
            if !core.is_current(stream) {
                break;
            }
            core.handle(now, &header, message, metadata, effects)?;
        }
        Ok(())
    });
    let (mut ready, mut bytes) = (Vec::new(), 0);
    for call in calls {
        let Some(answer) = driver.run(call, cx) else {
            continue;
        };
        bytes += answer.bytes();
        ready.push(answer);
        // A few requests may have long answers: the next runs when it is known whether there is room for these.
        if bytes >= BATCH_BYTES {
            driver.answer(std::mem::take(&mut ready));
            bytes = 0;
        }
    }
    driver.answer(ready);
    result
}

/// Resolves when there is nothing more to read for: the channel ended, or a frame takes too long.
fn poll_end(
    driver: &ChannelDriver,
    stream: u64,
    timer: &mut Timer,
    partial_until: Option<std::time::Instant>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), NetworkError>> {
    if driver.core().reader_should_stop(stream, cx.waker()) {
        return Poll::Ready(Ok(()));
    }
    timer
        .poll(partial_until, cx)
        .map(|()| Err(NetworkError::FrameTimeout))
}

/// Bytes of an incomplete frame, counted against the connection's limit.
struct Partial {
    driver: Arc<ChannelDriver>,
    bytes: usize,
}

impl Partial {
    fn set(&mut self, bytes: usize) -> Result<(), NetworkError> {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if self.driver.context.exchange_partial(before, bytes) {
            return Ok(());
        }
        self.bytes = 0;
        Err(NetworkError::MemoryLimit)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        self.driver.context.exchange_partial(self.bytes, 0);
    }
}

/// A timer that is made when first needed and moved when its deadline moves.
struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    fn new() -> Self {
        Self { sleep: None }
    }

    /// Ready when `deadline` has passed.
    fn poll(&mut self, deadline: Option<std::time::Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = deadline.map(Instant::from_std) else {
            return Poll::Pending;
        };
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx)
    }
}
