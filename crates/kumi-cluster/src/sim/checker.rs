//! The promises of membership, checked at every step on what the step changed, and on everything in sweeps.
//!
//! Each promise has a function of its own that takes plain facts, so that a test can pass it a forged violation. The checker
//! sees only events, records and counters of the core, not its inner state.

mod departed;
mod view;
mod watching;

use std::collections::HashSet;
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

use super::coverage::Coverage;
use super::host::Host;
use super::promise::{Promise, Violation};
use super::truth::Truth;
use super::world::{authority, subject_of};
use crate::core::MembershipEvent;
use crate::core::{
    Authority, ClusterEvent, Departure, DownReason, Footprint, Member, MembershipRuntime,
    MembershipRuntimeConfig, MembershipRuntimeOutcome, MembershipRuntimeState, NodeIdentity,
    NodeStatus, NodeUid, QuarantineEntry, TimerInstant,
};
use departed::Departed;
use view::{Cell, View};

pub use view::TopologyFacts;

/// The most violations that a run keeps.
const MAX_VIOLATIONS: usize = 20;

/// Watches a world and records every broken promise.
#[derive(Clone, Debug)]
pub struct Checker {
    config: MembershipRuntimeConfig,
    subjects: usize,
    truth: Truth,
    views: Vec<Option<View>>,
    processes: u64,
    /// By subject, the lives that some process has seen Dead or Removed, and which processes have.
    ended: Vec<Vec<(NodeUid, HashSet<u64>)>>,
    coverage: Coverage,
    violations: Vec<Violation>,
    /// Authorities under which two processes run: nothing is promised to them.
    contested: Vec<bool>,
    verbose: bool,
}

impl Checker {
    /// A checker of a world of so many authorities.
    pub fn new(config: &MembershipRuntimeConfig, subjects: usize) -> Self {
        let memory =
            config.suspect_timeout + config.heartbeat_interval * 4 + config.probe_timeout * 4;
        Self {
            config: config.clone(),
            subjects,
            truth: Truth::new(subjects, config.monitors, memory.as_micros() as u64),
            views: Vec::new(),
            processes: 0,
            ended: vec![Vec::new(); subjects],
            coverage: Coverage::default(),
            violations: Vec::new(),
            contested: vec![false; subjects],
            verbose: false,
        }
    }

    /// Prints every event on standard error from now on, to look into a failing seed.
    pub fn be_verbose(&mut self) {
        self.verbose = true;
    }

    /// What is really the case.
    pub fn truth(&mut self) -> &mut Truth {
        &mut self.truth
    }

    /// Two processes share this authority from now on.
    pub fn contest(&mut self, subject: usize) {
        self.contested[subject] = true;
    }

    /// What was seen so far.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// What was broken so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Writes a broken promise down.
    pub fn broken(&mut self, at_us: u64, place: usize, promise: Promise, detail: String) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(Violation {
                at_us,
                place,
                promise,
                detail,
            });
        }
    }

    /// Looks at every record of every node that runs.
    pub fn sweep(&mut self, at_us: u64, hosts: &[Host]) {
        self.coverage.sweeps += 1;
        for host in hosts {
            if let Some(runtime) = host
                .runtime()
                .filter(|runtime| runtime.state() != MembershipRuntimeState::Stopped)
            {
                self.note_own(host.subject(), runtime);
            }
        }
        for (place, host) in hosts.iter().enumerate() {
            if let Some(runtime) = host.runtime() {
                self.sweep_one(at_us, place, runtime);
                if !host.is_paused() && runtime.state() != MembershipRuntimeState::Stopped {
                    self.settled(at_us, place, runtime.topology_hash());
                }
            }
        }
    }

    fn sweep_one(&mut self, at_us: u64, place: usize, runtime: &MembershipRuntime) {
        if runtime.state() == MembershipRuntimeState::Stopped {
            return;
        }
        for view in runtime.members() {
            let record = view.record;
            let Some(subject) = self.known(at_us, place, &record.authority) else {
                continue;
            };
            self.record(
                at_us,
                place,
                subject,
                record.uid,
                record.status,
                record.incarnation,
            );
        }
        let active = runtime
            .members()
            .filter(|view| view.record.status.is_active());
        let active = active.filter_map(|view| {
            let subject = subject_of(&view.record.authority)?;
            Some((subject, view.record.uid))
        });
        self.living(at_us, place, &active.collect::<Vec<_>>());
        let mut blocked = runtime.quarantine_snapshot();
        let ordered = blocked.iter().filter(|entry| entry.uid.is_none());
        let ordered: Vec<Authority> = ordered.map(|entry| entry.authority.clone()).collect();
        self.orders(at_us, place, &ordered);
        // A node that is kept out goes on holding itself to be on its way in; what counts is that no other node does.
        blocked.retain(|entry| entry.authority != runtime.identity().authority);
        if !blocked.is_empty() {
            self.quarantined(at_us, place, &blocked, &runtime.snapshot().members);
        }
        self.footprint(at_us, place, runtime.footprint());
    }

    /// Takes the counters of all nodes that still run into the coverage; those that ended are in it already.
    pub fn finish(&mut self, hosts: &[Host]) {
        for runtime in hosts.iter().filter_map(Host::runtime) {
            self.add_metrics(runtime);
        }
    }

    fn add_metrics(&mut self, runtime: &MembershipRuntime) {
        let metrics = runtime.metrics();
        self.coverage.snapshots += metrics.snapshots;
        self.coverage.cancelled_windows += metrics.cancelled_windows;
        self.coverage.convictions += metrics.convictions;
        self.coverage.withdrawals += metrics.withdrawals;
    }

    fn note_own(&mut self, subject: usize, runtime: &MembershipRuntime) {
        // An observer is no subject.
        if runtime.state() != MembershipRuntimeState::Member || self.contested[subject] {
            return;
        }
        let uid = runtime.identity().uid;
        if self.truth.running(subject) != Some(uid) {
            // A joiner whose clock runs behind goes above the uid it receives.
            self.truth.began(subject, uid);
        }
        self.truth.reached(subject, uid, runtime.incarnation());
    }

    fn known(&mut self, at_us: u64, place: usize, authority: &Authority) -> Option<usize> {
        let subject = subject_of(authority).filter(|&subject| subject < self.subjects);
        if subject.is_none() {
            let detail = format!("no node has the name {authority}");
            self.broken(at_us, place, Promise::EventsTellEverything, detail);
        }
        subject
    }

    fn cell(&mut self, place: usize, subject: usize) -> Cell {
        self.views[place]
            .as_ref()
            .map_or_else(Cell::default, |view| view.cells[subject])
    }

    fn set_cell(&mut self, place: usize, subject: usize, cell: Cell) {
        if let Some(view) = self.views[place].as_mut() {
            view.cells[subject] = cell;
        }
    }

    /// One record as a sweep finds it.
    pub fn record(
        &mut self,
        at_us: u64,
        place: usize,
        subject: usize,
        uid: NodeUid,
        status: NodeStatus,
        incarnation: u64,
    ) {
        let mut cell = self.cell(place, subject);
        self.mortality(at_us, place, subject, uid, status);
        // Once a tombstone is collected, a clock that was set back may start a life with a lower uid.
        if let Some((known, before, was)) = cell.record
            && (known > uid && was.is_active() || known == uid && before > incarnation)
        {
            let detail = format!(
                "n{subject}#{uid} went from #{known}/{before} to incarnation {incarnation}"
            );
            self.broken(at_us, place, Promise::IncarnationsRise, detail);
        }
        if !self.contested[subject] && !self.truth.has_reached(subject, uid, incarnation) {
            let detail = format!("n{subject}#{uid} never had incarnation {incarnation}");
            self.broken(at_us, place, Promise::IncarnationsRise, detail);
        }
        if status.is_active() && cell.told != Some((uid, status)) {
            let detail = format!("n{subject}#{uid} is {status}, but {:?} was told", cell.told);
            self.broken(at_us, place, Promise::EventsTellEverything, detail);
        }
        cell.record = Some((uid, incarnation, status));
        self.set_cell(place, subject, cell);
    }

    /// One event about a member.
    pub fn step(
        &mut self,
        at_us: u64,
        place: usize,
        subject: usize,
        uid: NodeUid,
        from: Option<NodeStatus>,
        to: NodeStatus,
    ) {
        let mut cell = self.cell(place, subject);
        let told = cell
            .told
            .filter(|&(known, _)| known == uid)
            .map(|(_, status)| status);
        let legal = from.is_none_or(|from| from.may_become(to));
        let follows = match from {
            Some(_) => told == from,
            None => told.is_none_or(NodeStatus::is_terminal),
        };
        if !legal || !follows {
            let detail =
                format!("n{subject}#{uid} went from {from:?} to {to}; told last was {told:?}");
            self.broken(at_us, place, Promise::LegalSteps, detail);
        }
        self.mortality(at_us, place, subject, uid, to);
        if to == NodeStatus::Dead {
            self.death(at_us, place, subject, uid);
        }
        cell.told = Some((uid, to));
        self.set_cell(place, subject, cell);
        if let Some(view) = self.views[place].as_mut() {
            view.changed_us = at_us;
        }
        match (from, to) {
            (None, _) => self.coverage.joins += 1,
            (_, NodeStatus::Suspect) => self.coverage.suspicions += 1,
            (Some(NodeStatus::Suspect), NodeStatus::Up) => self.coverage.recoveries += 1,
            (_, NodeStatus::Dead) => self.coverage.deads += 1,
            (_, NodeStatus::Leaving) => self.coverage.leaves += 1,
            (_, NodeStatus::Removed) => self.coverage.removals += 1,
            _ => {}
        }
    }

    /// Remembers lives that ended, and notices those that are back.
    fn mortality(
        &mut self,
        at_us: u64,
        place: usize,
        subject: usize,
        uid: NodeUid,
        status: NodeStatus,
    ) {
        let Some(process) = self.views[place].as_ref().map(|view| view.process) else {
            return;
        };
        let lives = &mut self.ended[subject];
        let life = lives.iter_mut().find(|(ended, _)| *ended == uid);
        if status.is_terminal() {
            match life {
                Some((_, processes)) => _ = processes.insert(process),
                None => lives.push((uid, HashSet::from([process]))),
            }
        } else if life.is_some_and(|(_, processes)| processes.contains(&process)) {
            let detail = format!("n{subject}#{uid} is {status} after it had ended");
            self.broken(at_us, place, Promise::NoResurrection, detail);
        }
    }

    fn death(&mut self, at_us: u64, place: usize, subject: usize, uid: NodeUid) {
        self.coverage.judged_deaths += 1;
        if !self.contested[subject] && !self.truth.deserves_death(subject, uid, at_us) {
            let detail = format!("n{subject}#{uid} runs and is well connected");
            self.broken(at_us, place, Promise::NoFalseDeath, detail);
        }
    }

    /// Quarantines in force beside the active members.
    pub fn quarantined(
        &mut self,
        at_us: u64,
        place: usize,
        blocked: &[QuarantineEntry],
        active: &[Member],
    ) {
        for entry in blocked {
            let found = active
                .iter()
                .find(|member| member.authority == entry.authority);
            if let Some(member) =
                found.filter(|member| entry.uid.is_none_or(|uid| uid == member.uid))
            {
                let detail = format!(
                    "{}#{} is {} in spite of {entry:?}",
                    member.authority, member.uid, member.status
                );
                self.broken(at_us, place, Promise::QuarantinedStayOut, detail);
            }
        }
    }

    /// A topology event, and what the node holds at that moment.
    pub fn topology(&mut self, at_us: u64, place: usize, event: &TopologyFacts<'_>) {
        self.coverage.topologies += 1;
        let interval = self.config.topology_emit_interval;
        let Some(view) = self.views[place].as_mut() else {
            return;
        };
        let mut broken = Vec::new();
        if let Some((before, _)) = view.topology
            && event.observed_at.saturating_since(before) < interval
        {
            let detail = format!(
                "{before} and {} are less than {interval:?} apart",
                event.observed_at
            );
            broken.push((Promise::OneTopologyPerWindow, detail));
        }
        view.topology = Some((event.observed_at, event.hash));
        if let Err(detail) = view.replay(event) {
            broken.push((Promise::ReplayIsTheSnapshot, detail));
        }
        if event.hash != event.snapshot_hash {
            broken.push((
                Promise::ReplayIsTheSnapshot,
                String::from("the event's hash is not the snapshot's"),
            ));
        }
        for (promise, detail) in broken {
            self.broken(at_us, place, promise, detail);
        }
    }

    /// The hash of a node whose last change is longer ago than a window must be the one it told.
    pub fn settled(&mut self, at_us: u64, place: usize, hash: u64) {
        let window_us = self.config.topology_emit_interval.as_micros() as u64;
        // Half as much again for clocks that run slow and timers that fire late.
        let slack_us = window_us / 2 + 500_000;
        let Some(view) = self.views[place].as_ref() else {
            return;
        };
        let quiet = at_us.saturating_sub(view.changed_us) > window_us + slack_us;
        // There is no event for an empty cluster before another one: an observer begins with it.
        let empty = crate::core::protocol::topology::members_hash(&[]);
        let told = view.topology.map_or(empty, |(_, hash)| hash);
        if quiet && told != hash {
            let detail = format!("{told} was told last, {hash} is the case");
            self.broken(at_us, place, Promise::ReplayIsTheSnapshot, detail);
        }
    }

    /// What a node holds, against the limits of its configuration.
    pub fn footprint(&mut self, at_us: u64, place: usize, footprint: Footprint) {
        let records = self.config.max_members;
        let limits = [
            ("records", footprint.records, records.min(2 * self.subjects)),
            (
                "rumors",
                footprint.rumors,
                3 * records.min(2 * self.subjects),
            ),
            (
                "timeouts",
                footprint.timeouts,
                records.min(2 * self.subjects),
            ),
            // When many members are gone, a survivor watches all members between itself and the monitors that are left.
            ("watches", footprint.watches, records.min(2 * self.subjects)),
            ("relays", footprint.relays, 4096),
            (
                "quarantines",
                footprint.quarantines,
                2 * records.min(2 * self.subjects),
            ),
            (
                "addresses",
                footprint.addresses,
                self.config.max_address_book,
            ),
            ("reports", footprint.reports, 1024),
            ("pending", footprint.pending, 100_000),
        ];
        for (name, held, limit) in limits {
            if held > limit {
                let detail = format!("{held} {name}, at most {limit} are expected");
                self.broken(at_us, place, Promise::BoundedMemory, detail);
            }
        }
    }

    /// The clock of this node was set back by so much. Its windows go on as if it had not been, so the distance of two
    /// events is measured without the jump.
    pub fn clock_set_back(&mut self, place: usize, by_us: u64) {
        if let Some(Some(view)) = self.views.get_mut(place)
            && let Some((before, _)) = &mut view.topology
        {
            *before = TimerInstant::from_micros(before.as_micros().saturating_sub(by_us));
        }
    }

    /// The sense of time of this node is disturbed until then, so its windows may close later than they should.
    pub fn restless(&mut self, place: usize, until_us: u64) {
        if let Some(Some(view)) = self.views.get_mut(place) {
            view.changed_us = view.changed_us.max(until_us);
        }
    }

    fn observe(
        &mut self,
        at_us: u64,
        place: usize,
        runtime: &MembershipRuntime,
        event: &ClusterEvent,
    ) {
        match event {
            ClusterEvent::MemberStatusChanged {
                node_id,
                authority,
                from,
                to,
                ..
            } => {
                if let Some(subject) = self.known(at_us, place, authority) {
                    self.step(at_us, place, subject, *node_id, *from, *to);
                }
            }
            ClusterEvent::TopologyUpdated {
                topology,
                members,
                joined,
                left,
                dead,
                observed_at,
                ..
            } => {
                let facts = TopologyFacts {
                    members,
                    joined,
                    left,
                    dead,
                    hash: topology.hash,
                    observed_at: *observed_at,
                    snapshot_hash: runtime.topology_hash(),
                };
                self.topology(at_us, place, &facts);
            }
            ClusterEvent::MemberQuarantined { .. } => self.coverage.quarantines += 1,
            ClusterEvent::QuarantineReleased { authority, .. } => {
                self.coverage.releases += 1;
                if let Some(view) = self.views[place].as_mut() {
                    view.released.insert(authority.clone());
                }
            }
            ClusterEvent::AuthorityConflict { .. } => self.coverage.conflicts += 1,
            ClusterEvent::PeerRefused { .. } => self.coverage.refused_peers += 1,
            // Nodes of these runs have no names.
            ClusterEvent::NameTaken { .. } => {}
            ClusterEvent::SelfDowned {
                successor, reason, ..
            } => {
                self.downed(place, successor.as_ref(), *reason);
            }
            _ => {}
        }
    }

    /// The departures of one turn, beside the steps of the same turn. A life comes and goes by its own uid, so each is
    /// followed by itself: those that came in this turn first, then those that went. How each went has to follow from what
    /// happened to it.
    pub fn departures(&mut self, at_us: u64, place: usize, outcome: &MembershipRuntimeOutcome) {
        let Some(view) = self.views[place].as_mut() else {
            return;
        };
        let mut came: Vec<(usize, NodeUid)> = Vec::new();
        for event in &outcome.member_events {
            if let ClusterEvent::MemberStatusChanged {
                node_id,
                authority,
                from: None,
                to,
                ..
            } = event
                && let Some(subject) = subject_of(authority).filter(|it| *it < view.alive.len())
                && to.is_active()
            {
                came.push((subject, *node_id));
            }
        }
        let mut broken = Vec::new();
        let (own, process) = (view.subject, view.process);
        let is_isolated = |event: &ClusterEvent| {
            let ClusterEvent::SelfDowned { reason, .. } = event else {
                return false;
            };
            *reason == DownReason::Isolated
        };
        let dead_timeout_us = self.config.dead_timeout.as_micros() as u64;
        let slept_long = |event: &MembershipEvent| matches!(event, MembershipEvent::Late { late_us } if *late_us > dead_timeout_us);
        let may_forget = view.is_client
            || outcome.member_events.iter().any(is_isolated)
            || outcome.membership_events.iter().any(slept_long);
        for departure in &outcome.departures {
            let NodeIdentity { authority, uid } = departure.identity();
            let Some(subject) = subject_of(authority).filter(|it| *it < view.alive.len()) else {
                continue;
            };
            self.coverage.departures += 1;
            let gave_up_joiner = |event: &ClusterEvent| {
                let ClusterEvent::MemberStatusChanged {
                    node_id, from, to, ..
                } = event
                else {
                    return false;
                };
                node_id == uid && *from == Some(NodeStatus::Joining) && to.is_terminal()
            };
            let facts = Departed {
                subject,
                uid: *uid,
                is_own: subject == own && !view.is_client,
                was_joining: outcome.member_events.iter().any(gave_up_joiner),
                // Another node reported the end of this life before, and its reason was checked then.
                ended_elsewhere: self.ended[subject].iter().any(|(ended, processes)| {
                    ended == uid && processes.iter().any(|seen_by| *seen_by != process)
                }),
            };
            let is_right = match departure {
                Departure::Forgotten { .. } => may_forget,
                Departure::Gone { .. } if self.contested[subject] => true,
                Departure::Gone { cause, .. } => facts.may_be(*cause, &mut self.truth, at_us),
            };
            if !is_right {
                broken.push(format!("{departure:?} follows from nothing that happened"));
            }
            let at = came.iter().position(|it| *it == (subject, *uid));
            if view.alive[subject] == Some(*uid) {
                view.alive[subject] = None;
            } else if let Some(at) = at {
                came.remove(at);
            } else {
                broken.push(format!(
                    "n{subject}#{uid} departed ({departure:?}), but {:?} was told to be there",
                    view.alive[subject]
                ));
            }
        }
        for (subject, uid) in came {
            if let Some(before) = view.alive[subject].replace(uid)
                && before != NodeUid::UNKNOWN
            {
                broken.push(format!(
                    "n{subject}#{uid} came, and #{before} never departed"
                ));
            }
        }
        for detail in broken {
            self.broken(at_us, place, Promise::DeparturesAreTold, detail);
        }
    }

    /// The lives that a node reports as active: exactly those without a reported departure.
    pub fn living(&mut self, at_us: u64, place: usize, active: &[(usize, NodeUid)]) {
        let Some(view) = self.views[place].as_ref() else {
            return;
        };
        let mut found = vec![None; self.subjects];
        for &(subject, uid) in active
            .iter()
            .filter(|(subject, _)| *subject < self.subjects)
        {
            found[subject] = Some(uid);
        }
        let wrong = found.iter().zip(&view.alive).enumerate();
        let wrong = wrong.filter(|(_, (found, told))| found != told);
        let details: Vec<String> = wrong
            .map(|(subject, (found, told))| {
                format!("of n{subject} {found:?} is active, and {told:?} was told to be")
            })
            .collect();
        for detail in details {
            self.broken(at_us, place, Promise::DeparturesAreTold, detail);
        }
    }

    /// An observer that is shown a cluster without a member forgets that it was there, without an event about it. When it
    /// sees it again, it starts from nothing.
    fn lost_sight(&mut self, at_us: u64, place: usize, runtime: &MembershipRuntime) {
        let Some(view) = self.views[place].as_mut() else {
            return;
        };
        let mut lost = 0;
        for (subject, cell) in view.cells.iter_mut().enumerate() {
            let Some((uid, status)) = cell.told else {
                continue;
            };
            let record = runtime.table().record(&authority(subject));
            if status.is_active() && record.is_none_or(|record| record.uid < uid) {
                *cell = Cell::default();
                lost += 1;
            }
        }
        if lost > 0 {
            view.changed_us = view.changed_us.max(at_us);
            self.coverage.lost_sights += lost;
        }
    }

    /// The operators' quarantines that are in force, as a sweep finds them: one that was in force at the last sweep and
    /// no longer is has been told to be over.
    pub fn orders(&mut self, at_us: u64, place: usize, in_force: &[Authority]) {
        let Some(view) = self.views[place].as_mut() else {
            return;
        };
        let released = core::mem::take(&mut view.released);
        let before = core::mem::replace(&mut view.ordered, in_force.iter().cloned().collect());
        let untold: Vec<Authority> = before
            .into_iter()
            .filter(|authority| !in_force.contains(authority) && !released.contains(authority))
            .collect();
        for authority in untold {
            let detail = format!("the quarantine of {authority} ended without a word");
            self.broken(at_us, place, Promise::EventsTellEverything, detail);
        }
    }

    fn downed(&mut self, place: usize, successor: Option<&NodeIdentity>, reason: DownReason) {
        match reason {
            DownReason::Superseded => self.coverage.superseded += 1,
            DownReason::Isolated => self.coverage.isolations += 1,
            DownReason::Quarantined => self.coverage.quarantined_self += 1,
            _ => self.coverage.rejoins += u64::from(successor.is_some()),
        }
        let Some(view) = self.views[place].as_mut() else {
            return;
        };
        if reason == DownReason::Isolated {
            // It forgets the active members, without events, and keeps its tombstones.
            for cell in &mut view.cells {
                cell.told = cell.told.filter(|(_, status)| status.is_terminal());
                cell.record = cell.record.filter(|(.., status)| status.is_terminal());
            }
        }
        let subject = view.subject;
        match successor {
            Some(identity) if !self.contested[subject] => self.truth.began(subject, identity.uid),
            Some(_) => {}
            None => self.truth.ended(subject),
        }
    }
}

#[cfg(test)]
mod tests;
