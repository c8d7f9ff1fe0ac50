//! The server's side: the guests of the room, and the events they get.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kumi_unison::{Call, EventPolicy, ProtocolServer, RemoteError};

use crate::chat::{
    Came, Enter, Entered, Line, RoomPeer, RoomService, Said, Say, register_room_with, room_spec,
};

/// A server with one room.
pub(crate) fn server() -> ProtocolServer {
    let server = ProtocolServer::new("chat", "1.0.0", "example");
    // A guest that reads slowly holds up no other: the oldest events of that guest are dropped.
    let spec = room_spec().event_policy(EventPolicy::DropOldest);
    register_room_with(&server, spec, Room::default());
    server
}

/// Guests by name, with the handle on which they receive events. A name belongs to the guest that entered with it last, so
/// that a guest can enter again after its connection broke; a real room would require a token.
#[derive(Clone, Default)]
struct Room {
    guests: Arc<Mutex<BTreeMap<String, RoomPeer>>>,
}

impl Room {
    fn guests(&self) -> MutexGuard<'_, BTreeMap<String, RoomPeer>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current guests, so that events are sent without holding the lock.
    fn everybody(&self) -> Vec<RoomPeer> {
        self.guests().values().cloned().collect()
    }
}

/// Whether two handles are those of one connection.
fn same(one: &RoomPeer, other: &RoomPeer) -> bool {
    let id = |peer: &RoomPeer| peer.raw_channel().context().connection_id;
    id(one) == id(other)
}

impl RoomService for Room {
    async fn enter(&self, call: Call<RoomPeer>, request: Enter) -> Result<Entered, RemoteError> {
        let before = self
            .guests()
            .insert(request.name.clone(), call.peer.clone());
        // An idempotent request may come twice.
        if !before.is_some_and(|before| same(&before, &call.peer)) {
            let came = Came::new(request.name);
            for guest in self.everybody() {
                if !same(&guest, &call.peer) {
                    // A guest who has gone is taken off the list by `channel_closed`.
                    let _ = guest.send_came(&came).await;
                }
            }
        }
        Ok(Entered::new(self.guests().keys().cloned().collect()))
    }

    async fn say(&self, call: Call<RoomPeer>, request: Say) -> Result<Said, RemoteError> {
        let guests: Vec<_> = self.guests().clone().into_iter().collect();
        let Some((by, _)) = guests.iter().find(|(_, guest)| same(guest, &call.peer)) else {
            return Err(RemoteError::new("not-here", "enter the room first"));
        };
        let line = Line::new(by.clone(), request.text);
        let mut heard_by = 0;
        for (_, guest) in &guests {
            heard_by += i64::from(guest.send_line(&line).await.is_ok());
        }
        Ok(Said::new(heard_by))
    }

    async fn channel_closed(&self, peer: &RoomPeer) {
        self.guests().retain(|_, guest| !same(guest, peer));
    }
}
