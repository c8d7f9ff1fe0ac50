//! What the world tells the checker, step by step.

use std::format;
use std::string::String;

use super::super::promise::Promise;
use super::super::watch::Watch;
use super::Checker;
use super::view::View;
use crate::core::{
    ClusterEvent, EnvelopeError, MembershipEvent, MembershipRuntime, MembershipRuntimeOutcome,
    MembershipRuntimeState, TimerInstant,
};

impl Watch for Checker {
    fn started(&mut self, at_us: u64, place: usize, subject: usize, runtime: &MembershipRuntime) {
        if self.views.len() <= place {
            self.views.resize(place + 1, None);
        }
        self.processes += 1;
        let mut view = View::new(subject, self.processes, self.subjects, at_us);
        view.is_client = runtime.state() == MembershipRuntimeState::Client;
        self.views[place] = Some(view);
        if runtime.state() == MembershipRuntimeState::Member && !self.contested[subject] {
            self.truth.began(subject, runtime.identity().uid);
        }
        if self.verbose {
            std::eprintln!(
                "{:10.3} n{place} starts as {}",
                at_us as f64 / 1e6,
                runtime.identity()
            );
        }
    }

    fn ended(&mut self, at_us: u64, place: usize, runtime: &MembershipRuntime) {
        let Some(view) = self.views[place].take() else {
            return;
        };
        self.note_own(view.subject, runtime);
        self.add_metrics(runtime);
        if view.subject < self.subjects {
            self.truth.ended(view.subject);
        }
        if self.verbose {
            std::eprintln!("{:10.3} n{place} ends", at_us as f64 / 1e6);
        }
    }

    fn delivered(
        &mut self,
        at_us: u64,
        place: usize,
        runtime: &MembershipRuntime,
        refused: Option<&EnvelopeError>,
    ) {
        match refused {
            None => self.coverage.messages += 1,
            Some(_) => self.coverage.refused_messages += 1,
        }
        if runtime.state() == MembershipRuntimeState::Client {
            self.lost_sight(at_us, place, runtime);
        }
    }

    fn polled(
        &mut self,
        at_us: u64,
        place: usize,
        _now: TimerInstant,
        runtime: &MembershipRuntime,
        outcome: &MembershipRuntimeOutcome,
    ) {
        for note in &outcome.membership_events {
            if self.verbose {
                std::eprintln!("{:10.3} n{place} {note:?}", at_us as f64 / 1e6);
            }
            match note {
                MembershipEvent::Refuted { .. } => self.coverage.refutations += 1,
                MembershipEvent::Late { .. } => {
                    self.coverage.late += 1;
                    self.restless(place, at_us);
                }
                MembershipEvent::Joined { .. } => self.coverage.welcomes += 1,
                MembershipEvent::Reachable { .. } => self.coverage.reachable += 1,
                MembershipEvent::Refused { .. } => self.coverage.refused_steps += 1,
                _ => {}
            }
        }
        if outcome.quarantine_events.is_empty()
            && outcome.member_events.is_empty()
            && outcome.topology_event.is_none()
            && outcome.departures.is_empty()
        {
            return;
        }
        if let Some(subject) = self.views[place].as_ref().map(|view| view.subject) {
            self.note_own(subject, runtime);
        }
        let events = outcome
            .quarantine_events
            .iter()
            .chain(&outcome.member_events);
        for event in events.chain(&outcome.topology_event) {
            if self.verbose {
                std::eprintln!("{:10.3} n{place} {}", at_us as f64 / 1e6, brief(event));
            }
            self.observe(at_us, place, runtime, event);
        }
        self.departures(at_us, place, outcome);
    }

    fn stuck(&mut self, at_us: u64, place: usize) {
        self.broken(
            at_us,
            place,
            Promise::Progress,
            String::from("asks for turns without end"),
        );
    }
}

/// An event in one line.
fn brief(event: &ClusterEvent) -> String {
    match event {
        ClusterEvent::TopologyUpdated {
            topology, members, ..
        } => {
            format!(
                "topology of {}: +{:?} -{:?} x{:?}",
                members.len(),
                topology.joined,
                topology.left,
                topology.dead
            )
        }
        ClusterEvent::MemberStatusChanged {
            node_id,
            authority,
            from,
            to,
            ..
        } => {
            format!("{authority}#{node_id} {from:?} -> {to}")
        }
        other => format!("{other:?}"),
    }
}
