//! Since when members are what they are, and which of them died lately: what only a node that watches knows.

use kumi_cluster::driver::MembershipRuntimeShared;
use kumi_cluster::{
    Authority, ClusterWatch, Departure, GoneCause, LifeNotice, LifeWatch, Member, NodeStatus,
    NodeUid,
};
use kumi_common::NameAndLife;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Deaths that are remembered.
const MAX_DEATHS: usize = 64;

/// How long a death is shown. A member that comes back under its name is not dead any more.
const SHOWN_FOR: Duration = Duration::from_secs(600);

/// A member that died.
#[derive(Clone, Debug)]
pub(crate) struct Death {
    pub(crate) node: NameAndLife,
    pub(crate) authority: Authority,
    pub(crate) at: Instant,
}

#[derive(Default)]
struct Known {
    since: BTreeMap<(Authority, NodeUid), (NodeStatus, Instant)>,
    deaths: VecDeque<Death>,
}

/// What is known of the members' times. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct MemberTimes(Arc<Mutex<Known>>);

impl MemberTimes {
    /// Follows membership until it ends.
    pub(crate) async fn follow(
        self,
        shared: MembershipRuntimeShared,
        mut events: ClusterWatch,
        mut lives: LifeWatch,
    ) {
        loop {
            self.see(&shared.members().members);
            tokio::select! {
                event = events.next() => if event.is_none() {
                    break;
                },
                notice = lives.next() => match notice {
                    Some(LifeNotice::Departed(departure)) => self.note(&departure),
                    Some(_) => {}
                    None => break,
                },
            }
        }
        std::future::pending::<()>().await;
    }

    /// How long a member has had its status.
    pub(crate) fn held(&self, member: &Member) -> Duration {
        let known = self.lock();
        let since = known.since.get(&(member.authority.clone(), member.uid));
        let since = since.filter(|(status, _)| *status == member.status);
        since.map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }

    /// The members that died lately and are not back.
    pub(crate) fn deaths(&self, members: &[Member]) -> Vec<Death> {
        let is_back = |death: &Death| {
            let mut names = members.iter().filter_map(Member::name_and_life);
            names.any(|life| life.name() == death.node.name())
        };
        let known = self.lock();
        let deaths = known.deaths.iter();
        let shown = deaths.filter(|death| death.at.elapsed() < SHOWN_FOR && !is_back(death));
        shown.cloned().collect()
    }

    fn see(&self, members: &[Member]) {
        let now = Instant::now();
        let mut known = self.lock();
        let before = std::mem::take(&mut known.since);
        for member in members {
            let key = (member.authority.clone(), member.uid);
            let same = before
                .get(&key)
                .filter(|(status, _)| *status == member.status);
            let since = same.map_or(now, |(_, since)| *since);
            known.since.insert(key, (member.status, since));
        }
    }

    fn note(&self, departure: &Departure) {
        if let (
            Departure::Gone {
                cause: GoneCause::Died,
                identity,
                ..
            },
            Some(node),
        ) = (departure, departure.name_and_life())
        {
            let mut known = self.lock();
            if known.deaths.len() == MAX_DEATHS {
                known.deaths.pop_front();
            }
            known.deaths.push_back(Death {
                node,
                authority: identity.authority.clone(),
                at: Instant::now(),
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
