//! Calls and gathers that handles wait for.

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use super::messages::Ticket;
use crate::core::{CallError, CallId, GatherId, Gathered, IdMap};

type CallReply = oneshot::Sender<Result<Bytes, CallError>>;
type GatherReplies = mpsc::Sender<Result<Gathered, CallError>>;

/// What a ticket stands for.
#[derive(Clone, Copy)]
pub(super) enum Pending {
    Call(CallId),
    Gather(GatherId),
}

/// All that wait, by the core's number and by the handle's ticket.
#[derive(Default)]
pub(super) struct Calls {
    calls: IdMap<CallId, (Ticket, CallReply)>,
    gathers: IdMap<GatherId, (Ticket, GatherReplies)>,
    tickets: IdMap<Ticket, Pending>,
}

impl Calls {
    pub(super) fn add_call(&mut self, call: CallId, ticket: Ticket, reply: CallReply) {
        self.calls.insert(call, (ticket, reply));
        self.tickets.insert(ticket, Pending::Call(call));
    }

    pub(super) fn add_gather(&mut self, gather: GatherId, ticket: Ticket, replies: GatherReplies) {
        self.gathers.insert(gather, (ticket, replies));
        self.tickets.insert(ticket, Pending::Gather(gather));
    }

    /// Ends a call with its result. False if its handle was dropped.
    pub(super) fn end_call(&mut self, call: CallId, result: Result<Bytes, CallError>) -> bool {
        let Some((ticket, reply)) = self.calls.remove(&call) else {
            return false;
        };
        self.tickets.remove(&ticket);
        let _ = reply.send(result);
        true
    }

    /// Hands one answer to a gather.
    pub(super) fn gathered(&self, gather: GatherId, answer: Gathered) {
        if let Some((_, answers)) = self.gathers.get(&gather) {
            // The core delivers no more than there is room for.
            let _ = answers.try_send(Ok(answer));
        }
    }

    /// Answers that the reader of a gather has room for. One place is left for the error that may end it.
    pub(super) fn gather_room(&self, gather: GatherId) -> Option<usize> {
        let (_, answers) = self.gathers.get(&gather)?;
        Some(answers.capacity().saturating_sub(1))
    }

    pub(super) fn end_gather(&mut self, gather: GatherId, result: Result<(), CallError>) {
        if let Some((ticket, answers)) = self.gathers.remove(&gather) {
            self.tickets.remove(&ticket);
            if let Err(error) = result {
                let _ = answers.try_send(Err(error));
            }
        }
    }

    /// Forgets what a dropped handle waited for. It names what the core has to cancel.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Option<Pending> {
        let pending = self.tickets.remove(&ticket)?;
        match pending {
            Pending::Call(call) => {
                self.calls.remove(&call);
            }
            Pending::Gather(gather) => {
                self.gathers.remove(&gather);
            }
        }
        Some(pending)
    }
}
