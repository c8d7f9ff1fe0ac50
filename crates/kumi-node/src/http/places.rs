//! The places for connections of one listener: who has one, and who loses one when all are taken.
//!
//! A client that opens connections and says nothing must not keep others out, so a new connection takes the place of the
//! one that has been idle for longest. A connection whose request is being answered is never closed for another; where all
//! are such, the new one is refused. A client on another machine has a part of the places at most.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use super::hosts::is_loopback;

/// The open connections of one listener. `H` is the handle by which a connection is closed.
pub(super) struct Places<H> {
    limit: usize,
    peer_limit: usize,
    open: Vec<Place<H>>,
}

struct Place<H> {
    peer: IpAddr,
    activity: Arc<Activity>,
    handle: H,
}

/// All places are taken, or all that the peer may have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoPlace;

impl<H> Places<H> {
    /// So many places, of which a peer that is not on loopback gets no more than `peer_limit`.
    pub(super) fn new(limit: usize, peer_limit: usize) -> Places<H> {
        Places {
            limit,
            peer_limit,
            open: Vec::new(),
        }
    }

    /// Makes room for a connection of this peer. If all places are taken, the connection that has been idle for longest
    /// loses its place: the caller closes it.
    pub(super) fn make_room(&mut self, peer: IpAddr) -> Result<Option<H>, NoPlace> {
        let of_peer = self.open.iter().filter(|place| place.peer == peer);
        if !is_loopback(peer) && of_peer.count() >= self.peer_limit {
            return Err(NoPlace);
        }
        if self.open.len() < self.limit {
            return Ok(None);
        }
        let idle = self.open.iter().enumerate();
        let idle = idle.filter_map(|(at, place)| Some((place.activity.idle_since()?, at)));
        let (_, longest) = idle.min().ok_or(NoPlace)?;
        Ok(Some(self.open.remove(longest).handle))
    }

    /// Gives a connection its place, after [`make_room`](Self::make_room).
    pub(super) fn take(&mut self, peer: IpAddr, activity: Arc<Activity>, handle: H) {
        self.open.push(Place {
            peer,
            activity,
            handle,
        });
    }

    /// A connection has ended. One that has lost its place already is not found.
    pub(super) fn give_back(&mut self, is_it: impl Fn(&H) -> bool) {
        self.open.retain(|place| !is_it(&place.handle));
    }
}

/// What a connection does: when it last did something, and whether a request is being answered.
pub(super) struct Activity(Mutex<State>);

struct State {
    last: Instant,
    is_busy: bool,
}

/// A request that is being answered.
pub(super) struct Busy<'a>(&'a Activity);

impl Activity {
    /// A connection that begins.
    pub(super) fn new() -> Activity {
        Activity(Mutex::new(State {
            last: Instant::now(),
            is_busy: false,
        }))
    }

    /// A request arrived. It is being answered until the reply is dropped.
    pub(super) fn begin(&self) -> Busy<'_> {
        self.set(true);
        Busy(self)
    }

    /// When the last request came or was answered; the connection's beginning until there is one.
    pub(super) fn last(&self) -> Instant {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last
    }

    /// Since when it has been idle; none while a request is being answered.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!state.is_busy).then_some(state.last)
    }

    fn set(&self, is_busy: bool) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.last = Instant::now();
        state.is_busy = is_busy;
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    /// The clock has moved on after this.
    fn tick() {
        let before = Instant::now();
        while Instant::now() == before {}
    }

    /// Takes a place, and tells who lost one.
    fn admit(
        places: &mut Places<u32>,
        peer: IpAddr,
        handle: u32,
    ) -> Result<(Option<u32>, Arc<Activity>), NoPlace> {
        let evicted = places.make_room(peer)?;
        let activity = Arc::new(Activity::new());
        places.take(peer, activity.clone(), handle);
        Ok((evicted, activity))
    }

    #[test]
    fn a_new_connection_takes_the_place_of_the_one_that_was_idle_for_longest() {
        let mut places = Places::new(3, 3);
        let mut open = Vec::new();
        for handle in 0..3 {
            let (evicted, activity) = admit(&mut places, LOOPBACK, handle).expect("a place");
            assert_eq!(evicted, None);
            open.push(activity);
            tick();
        }
        // The first one is answered, and idle for the shortest time then.
        drop(open[0].begin());
        assert_eq!(places.make_room(LOOPBACK), Ok(Some(1)));
        assert_eq!(places.make_room(LOOPBACK), Ok(None));
    }

    #[test]
    fn a_connection_whose_request_is_being_answered_keeps_its_place() {
        let mut places = Places::new(2, 2);
        let (_, first) = admit(&mut places, LOOPBACK, 1).expect("a place");
        let _first = first.begin();
        tick();
        let (_, second) = admit(&mut places, LOOPBACK, 2).expect("a place");
        {
            let _second = second.begin();
            assert_eq!(places.make_room(LOOPBACK), Err(NoPlace));
        }
        assert_eq!(places.make_room(LOOPBACK), Ok(Some(2)));
    }

    #[test]
    fn a_peer_on_another_machine_has_a_part_of_the_places() {
        let mut places = Places::new(8, 2);
        for handle in 0..2 {
            admit(&mut places, address(1), handle).expect("a place");
        }
        assert_eq!(places.make_room(address(1)), Err(NoPlace));
        assert_eq!(places.make_room(address(2)), Ok(None));
        for handle in 2..8 {
            let (evicted, _) = admit(&mut places, LOOPBACK, handle).expect("a place");
            assert_eq!(evicted, None);
        }
        places.give_back(|handle| *handle == 0);
        assert_eq!(places.make_room(address(1)), Ok(None));
        // An ended connection that has no place is not missed.
        places.give_back(|handle| *handle == 0);
    }
}
