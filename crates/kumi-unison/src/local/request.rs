//! Requests and responses as values.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;

use tokio::sync::{mpsc, oneshot};

use crate::error::NetworkError;

type Question<Q, A> = (Q, oneshot::Sender<A>);

/// The half that sends requests. Clones send to the same other half.
#[derive(Debug)]
pub struct RequestChannel<Q, A> {
    tx: mpsc::Sender<Question<Q, A>>,
}

/// The half that responds.
#[derive(Debug)]
pub struct RespondChannel<Q, A> {
    rx: mpsc::Receiver<Question<Q, A>>,
}

/// A request that was not answered yet. If it is dropped unanswered, the call ends as lost.
#[derive(Debug)]
pub struct IncomingQuestion<Q, A> {
    /// What is asked.
    pub question: Q,
    answer: oneshot::Sender<A>,
}

impl<Q, A> Clone for RequestChannel<Q, A> {
    fn clone(&self) -> Self {
        Self {
            tx: self.tx.clone(),
        }
    }
}

impl<Q, A> RequestChannel<Q, A> {
    /// Both halves, with room for `capacity` questions that were not taken (at least one).
    pub fn pair(capacity: usize) -> (Self, RespondChannel<Q, A>) {
        let (tx, rx) = mpsc::channel(capacity.max(1));
        (Self { tx }, RespondChannel { rx })
    }

    /// Sends a request and waits for the response. Dropping the future cancels it, see [`IncomingQuestion::cancelled`].
    ///
    /// # Errors
    /// When the other half is gone, or dropped the question.
    pub async fn request(&self, question: Q) -> Result<A, NetworkError> {
        let (tx, rx) = oneshot::channel();
        let lost = NetworkError::connection_lost(false);
        self.tx.send((question, tx)).await.map_err(|_| lost)?;
        rx.await.map_err(|_| NetworkError::connection_lost(true))
    }
}

impl<Q, A> RespondChannel<Q, A> {
    /// Both halves, this one first.
    pub fn pair(capacity: usize) -> (Self, RequestChannel<Q, A>) {
        let (request, respond) = RequestChannel::pair(capacity);
        (respond, request)
    }

    /// The next question; `None` when all asking halves are gone. Dropping the future loses none.
    pub async fn recv(&mut self) -> Option<IncomingQuestion<Q, A>> {
        let (question, answer) = self.rx.recv().await?;
        Some(IncomingQuestion { question, answer })
    }

    /// Answers every question, one after the other, until all asking halves are gone.
    pub async fn serve<F, Fut>(&mut self, mut answer: F)
    where
        F: FnMut(Q) -> Fut,
        Fut: Future<Output = A>,
    {
        while let Some((question, tx)) = self.rx.recv().await {
            // The caller may be gone by now.
            let _ = tx.send(answer(question).await);
        }
    }
}

impl<Q, A> Stream for RespondChannel<Q, A> {
    type Item = IncomingQuestion<Q, A>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.get_mut().rx.poll_recv(cx);
        next.map(|next| next.map(|(question, answer)| IncomingQuestion { question, answer }))
    }
}

impl<Q, A> IncomingQuestion<Q, A> {
    /// Answers. False when the caller is gone.
    pub fn answer(self, answer: A) -> bool {
        self.answer.send(answer).is_ok()
    }

    /// Resolves when the caller is gone.
    pub async fn cancelled(&mut self) {
        self.answer.closed().await;
    }

    /// The question, and what to call with the answer.
    pub fn split(self) -> (Q, impl FnOnce(A) -> bool) {
        let Self { question, answer } = self;
        (question, move |value| answer.send(value).is_ok())
    }
}

/// A channel on which both sides ask and answer.
#[derive(Debug)]
pub struct PeerChannel<Q, A> {
    /// For our questions.
    pub requests: RequestChannel<Q, A>,
    /// For theirs.
    pub responses: RespondChannel<Q, A>,
}

impl<Q, A> PeerChannel<Q, A> {
    /// Both halves.
    pub fn pair(capacity: usize) -> (Self, Self) {
        let (requests, far_responses) = RequestChannel::pair(capacity);
        let (far_requests, responses) = RequestChannel::pair(capacity);
        let far = Self {
            requests: far_requests,
            responses: far_responses,
        };
        (
            Self {
                requests,
                responses,
            },
            far,
        )
    }

    /// Asks the other half.
    ///
    /// # Errors
    /// When it is gone, or dropped the question.
    pub async fn request(&self, question: Q) -> Result<A, NetworkError> {
        self.requests.request(question).await
    }

    /// The other half's next question.
    pub async fn recv(&mut self) -> Option<IncomingQuestion<Q, A>> {
        self.responses.recv().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;

    #[tokio::test]
    async fn questions_get_their_answers() {
        let (request, mut respond) = RequestChannel::<u32, u32>::pair(4);
        let server = tokio::spawn(async move { respond.serve(|n| async move { n * 2 }).await });
        for n in 0..10 {
            assert_eq!(request.request(n).await, Ok(n * 2));
        }
        drop(request);
        server.await.unwrap();
    }

    #[tokio::test]
    async fn a_dropped_question_ends_the_call_and_a_dropped_call_is_noticed() {
        let (request, mut respond) = RequestChannel::<u32, u32>::pair(4);
        let call = tokio::spawn({
            let request = request.clone();
            async move { request.request(1).await }
        });
        drop(respond.recv().await.unwrap());
        let lost = NetworkError::connection_lost(true);
        assert_eq!(call.await.unwrap(), Err(lost));

        let call = tokio::spawn({
            let request = request.clone();
            async move { request.request(2).await }
        });
        let mut question = respond.recv().await.unwrap();
        call.abort();
        question.cancelled().await;
        assert!(!question.answer(4));

        drop(respond);
        let lost = NetworkError::connection_lost(false);
        assert_eq!(request.request(3).await, Err(lost));
    }

    #[tokio::test]
    async fn questions_are_a_stream() {
        let (request, mut respond) = RequestChannel::<u32, u32>::pair(4);
        let calls = async {
            let answers = (request.request(1).await, request.request(2).await);
            drop(request);
            answers
        };
        let answering = async {
            while let Some(question) = respond.next().await {
                let (question, answer) = question.split();
                assert!(answer(question * 10));
            }
        };
        let (answers, ()) = tokio::join!(calls, answering);
        assert_eq!(answers, (Ok(10), Ok(20)));
    }

    #[tokio::test]
    async fn peers_ask_each_other() {
        let (near, mut far) = PeerChannel::<u8, u8>::pair(1);
        let call = tokio::spawn(async move { (near.request(1).await, near) });
        let (question, answer) = far.recv().await.unwrap().split();
        assert!(answer(question + 1));
        let (result, mut near) = call.await.unwrap();
        assert_eq!(result, Ok(2));
        let call = tokio::spawn(async move { far.request(5).await });
        assert!(near.recv().await.unwrap().answer(6));
        assert_eq!(call.await.unwrap(), Ok(6));
    }
}
