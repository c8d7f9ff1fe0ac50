//! Each promise, broken on purpose: a checker that cannot fail proves nothing.

use super::*;
use crate::core::{Departure, GoneCause, LocalNode, MemberMetadata, QuarantineReason};
use crate::sim::authority;
use crate::sim::watch::Watch;
use core::time::Duration;

const OLD: NodeUid = NodeUid::from_raw(5);
const NEW: NodeUid = NodeUid::from_raw(6);
const PLACE: usize = 0;
const SUBJECT: usize = 1;

/// A checker of three nodes, all of which run and have told nothing yet.
fn checker() -> Checker {
    let config = MembershipRuntimeConfig::local();
    let mut checker = Checker::new(&config, 3);
    let now = TimerInstant::from_millis(1);
    for subject in 0..3 {
        let local = LocalNode {
            authority: authority(subject),
            metadata: MemberMetadata::EMPTY,
            unix_ms: 1,
            uid: Some(OLD),
        };
        let runtime = MembershipRuntime::new(config.clone(), local, 1, now).expect("valid");
        checker.started(0, subject, subject, &runtime);
        checker.truth().began(subject, OLD);
    }
    checker
}

/// Exactly this promise is broken, by exactly the last of the calls.
fn check(promise: Promise, calls: &[&dyn Fn(&mut Checker)]) {
    let mut checker = checker();
    for (index, call) in calls.iter().enumerate() {
        assert_eq!(checker.violations(), [], "before call {index}");
        call(&mut checker);
    }
    let broken: Vec<Promise> = checker
        .violations()
        .iter()
        .map(|violation| violation.promise)
        .collect();
    assert_eq!(broken, [promise]);
}

fn step(uid: NodeUid, from: Option<NodeStatus>, to: NodeStatus) -> impl Fn(&mut Checker) {
    move |checker| checker.step(10, PLACE, SUBJECT, uid, from, to)
}

fn record(uid: NodeUid, status: NodeStatus, incarnation: u64) -> impl Fn(&mut Checker) {
    move |checker| checker.record(10, PLACE, SUBJECT, uid, status, incarnation)
}

fn reached(uid: NodeUid, incarnation: u64) -> impl Fn(&mut Checker) {
    move |checker| checker.truth().reached(SUBJECT, uid, incarnation)
}

fn ended(checker: &mut Checker) {
    checker.truth().ended(SUBJECT);
}

fn member(uid: NodeUid) -> Member {
    Member {
        authority: authority(SUBJECT),
        uid,
        status: Up,
        incarnation: 1,
        metadata: MemberMetadata::EMPTY,
    }
}

fn identity(uid: NodeUid) -> NodeIdentity {
    NodeIdentity {
        authority: authority(SUBJECT),
        uid,
    }
}

use NodeStatus::{Dead, Joining, Removed, Suspect, Up};

#[test]
fn a_life_that_ended_and_is_told_to_be_up_again_is_caught() {
    check(
        Promise::NoResurrection,
        &[
            &step(OLD, None, Up),
            &ended,
            &step(OLD, Some(Up), Dead),
            &step(OLD, None, Up),
        ],
    );
}

#[test]
fn a_life_that_ended_and_is_found_active_in_a_record_is_caught() {
    let mut checker = checker();
    checker.truth().reached(SUBJECT, NEW, 1);
    checker.record(10, PLACE, SUBJECT, NEW, Removed, 1);
    checker.record(20, PLACE, SUBJECT, NEW, Up, 1);
    let promises: Vec<Promise> = checker
        .violations()
        .iter()
        .map(|violation| violation.promise)
        .collect();
    assert!(promises.contains(&Promise::NoResurrection), "{promises:?}");
}

#[test]
fn an_incarnation_that_goes_down_is_caught() {
    check(
        Promise::IncarnationsRise,
        &[
            &step(OLD, None, Up),
            &reached(OLD, 9),
            &record(OLD, Up, 9),
            &record(OLD, Up, 8),
        ],
    );
}

#[test]
fn a_quarantine_that_ends_without_a_word_is_caught() {
    let mut checker = checker();
    checker.orders(1, 0, &[authority(1)]);
    assert!(checker.violations().is_empty());
    checker.orders(2, 0, &[]);
    assert_eq!(
        checker.violations()[0].promise,
        Promise::EventsTellEverything
    );
}

#[test]
fn an_incarnation_that_the_subject_never_had_is_caught() {
    check(
        Promise::IncarnationsRise,
        &[&step(OLD, None, Up), &record(OLD, Up, 2)],
    );
}

#[test]
fn a_record_that_falls_back_to_an_earlier_life_is_caught() {
    check(
        Promise::IncarnationsRise,
        &[
            &reached(NEW, 1),
            &step(NEW, None, Up),
            &record(NEW, Up, 1),
            &step(OLD, None, Joining),
            &record(OLD, Joining, 1),
        ],
    );
}

#[test]
fn a_step_that_is_not_allowed_is_caught() {
    check(
        Promise::LegalSteps,
        &[
            &step(OLD, None, Joining),
            &step(OLD, Some(Joining), Suspect),
        ],
    );
}

#[test]
fn a_step_that_does_not_start_where_the_last_one_ended_is_caught() {
    check(
        Promise::LegalSteps,
        &[&step(OLD, None, Up), &step(OLD, Some(Suspect), Up)],
    );
    check(
        Promise::LegalSteps,
        &[&step(OLD, None, Up), &step(OLD, None, Up)],
    );
}

#[test]
fn a_record_that_changed_without_an_event_is_caught() {
    check(
        Promise::EventsTellEverything,
        &[&step(OLD, None, Up), &record(OLD, Suspect, 1)],
    );
}

#[test]
fn a_member_that_was_never_started_is_caught() {
    let mut checker = checker();
    let stranger = Authority::new("stranger:1").expect("printable");
    assert_eq!(checker.known(10, PLACE, &stranger), None);
    assert_eq!(
        checker.violations()[0].promise,
        Promise::EventsTellEverything
    );
}

#[test]
fn the_death_of_a_node_that_is_well_is_caught() {
    check(
        Promise::NoFalseDeath,
        &[
            &step(OLD, None, Up),
            &step(OLD, Some(Up), Suspect),
            &step(OLD, Some(Suspect), Dead),
        ],
    );
}

#[test]
fn the_death_of_a_node_that_crashed_is_fine() {
    let mut checker = checker();
    checker.step(10, PLACE, SUBJECT, OLD, None, Up);
    ended(&mut checker);
    checker.step(20, PLACE, SUBJECT, OLD, Some(Up), Dead);
    assert_eq!(checker.violations(), []);
    assert_eq!((checker.coverage().joins, checker.coverage().deads), (1, 1));
}

#[test]
fn a_quarantined_member_that_is_active_is_caught() {
    let entry = |uid| QuarantineEntry {
        authority: authority(SUBJECT),
        uid,
        reason: QuarantineReason::Unreachable,
        expires_at: TimerInstant::from_millis(9),
    };
    for uid in [None, Some(OLD)] {
        check(
            Promise::QuarantinedStayOut,
            &[&|checker: &mut Checker| {
                checker.quarantined(10, PLACE, &[entry(uid)], &[member(OLD)])
            }],
        );
    }
    let mut checker = checker();
    checker.quarantined(10, PLACE, &[entry(Some(OLD))], &[member(NEW)]);
    assert_eq!(checker.violations(), [], "a restart is welcome");
}

fn topology(
    at: TimerInstant,
    members: &[Member],
    joined: &[NodeIdentity],
    left: &[NodeIdentity],
    hashes: [u64; 2],
) -> impl Fn(&mut Checker) + use<> {
    let (members, joined, left) = (members.to_vec(), joined.to_vec(), left.to_vec());
    move |checker| {
        let facts = TopologyFacts {
            members: &members,
            joined: &joined,
            left: &left,
            dead: &[],
            hash: hashes[0],
            observed_at: at,
            snapshot_hash: hashes[1],
        };
        checker.topology(10, PLACE, &facts);
    }
}

#[test]
fn two_topology_events_in_one_window_are_caught() {
    let (one, window) = (
        TimerInstant::from_millis(5000),
        MembershipRuntimeConfig::local().topology_emit_interval,
    );
    let first = topology(one, &[member(OLD)], &[identity(OLD)], &[], [1, 1]);
    let early = topology(
        one + (window - Duration::from_micros(1)),
        &[],
        &[],
        &[identity(OLD)],
        [2, 2],
    );
    check(Promise::OneTopologyPerWindow, &[&first, &early]);
    let mut checker = checker();
    first(&mut checker);
    topology(one + window, &[], &[], &[identity(OLD)], [2, 2])(&mut checker);
    assert_eq!(checker.violations(), []);
}

#[test]
fn a_clock_that_is_set_back_between_two_topology_events_does_not_bring_them_together() {
    let at = TimerInstant::from_millis(5000);
    let window = MembershipRuntimeConfig::local().topology_emit_interval;
    let jump_us = 100_000;
    let first = topology(at, &[member(OLD)], &[identity(OLD)], &[], [1, 1]);
    let jump = |checker: &mut Checker| checker.clock_set_back(PLACE, jump_us);
    let shown = |elapsed: Duration| at + (elapsed - Duration::from_micros(jump_us));
    let in_time = topology(shown(window), &[], &[], &[identity(OLD)], [2, 2]);
    let early = window - Duration::from_micros(1);
    let early = topology(shown(early), &[], &[], &[identity(OLD)], [2, 2]);
    check(Promise::OneTopologyPerWindow, &[&first, &jump, &early]);
    let mut checker = checker();
    first(&mut checker);
    jump(&mut checker);
    in_time(&mut checker);
    assert_eq!(checker.violations(), []);
}

#[test]
fn topology_events_that_do_not_lead_to_their_members_are_caught() {
    let at = TimerInstant::from_millis(5000);
    let wrong = [
        topology(at, &[member(OLD)], &[], &[], [1, 1]),
        topology(at, &[], &[identity(OLD)], &[], [1, 1]),
        topology(at, &[], &[], &[identity(OLD)], [1, 1]),
        topology(at, &[member(NEW)], &[identity(OLD)], &[], [1, 1]),
        topology(at, &[member(OLD)], &[identity(OLD)], &[], [1, 2]),
    ];
    for facts in &wrong {
        check(Promise::ReplayIsTheSnapshot, &[facts]);
    }
}

#[test]
fn a_change_that_was_never_told_in_a_topology_is_caught() {
    let told = topology(
        TimerInstant::from_millis(5000),
        &[member(OLD)],
        &[identity(OLD)],
        &[],
        [1, 1],
    );
    check(
        Promise::ReplayIsTheSnapshot,
        &[
            &told,
            &|checker: &mut Checker| checker.settled(60_000_000, PLACE, 1),
            &|checker: &mut Checker| checker.settled(61_000_000, PLACE, 2),
        ],
    );
}

#[test]
fn a_map_past_its_limit_is_caught() {
    let full = |change: fn(&mut Footprint)| {
        move |checker: &mut Checker| {
            let mut footprint = Footprint::default();
            checker.footprint(10, PLACE, footprint);
            assert_eq!(checker.violations(), []);
            change(&mut footprint);
            checker.footprint(10, PLACE, footprint);
        }
    };
    let changes: [fn(&mut Footprint); 9] = [
        |footprint| footprint.records = 9_999_999,
        |footprint| footprint.rumors = 9_999_999,
        |footprint| footprint.timeouts = 9_999_999,
        |footprint| footprint.watches = 9_999_999,
        |footprint| footprint.relays = 9_999_999,
        |footprint| footprint.quarantines = 9_999_999,
        |footprint| footprint.addresses = 9_999_999,
        |footprint| footprint.reports = 9_999_999,
        |footprint| footprint.pending = 9_999_999,
    ];
    for change in changes {
        check(Promise::BoundedMemory, &[&full(change)]);
    }
}

#[test]
fn a_node_that_never_stops_asking_for_turns_is_caught() {
    check(
        Promise::Progress,
        &[&|checker: &mut Checker| checker.stuck(10, PLACE)],
    );
}

#[test]
fn a_violation_says_when_where_and_what() {
    let mut checker = checker();
    checker.broken(
        1_500_000,
        2,
        Promise::Convergence,
        String::from("two halves"),
    );
    assert_eq!(
        format!("{}", checker.violations()[0]),
        "at 1.500 s on n2: Convergence: two halves"
    );
}

/// A turn in which this life came, and one in which it went.
fn turn(came: Option<NodeUid>, gone: Option<NodeUid>) -> impl Fn(&mut Checker) {
    move |checker| {
        let observed_at = TimerInstant::from_millis(2);
        let mut outcome = MembershipRuntimeOutcome::default();
        let came = came.map(|node_id| ClusterEvent::MemberStatusChanged {
            node_id,
            authority: authority(SUBJECT),
            from: None,
            to: Up,
            observed_at,
        });
        outcome.member_events.extend(came);
        if gone.is_some() {
            // So that it may have died.
            ended(checker);
        }
        outcome.departures.extend(gone.map(|uid| Departure::Gone {
            identity: NodeIdentity {
                authority: authority(SUBJECT),
                uid,
            },
            name: None,
            cause: GoneCause::Died,
            observed_at,
        }));
        checker.departures(10, PLACE, &outcome);
    }
}

#[test]
fn a_departure_reported_twice_or_of_no_member_is_caught() {
    let twice = turn(None, Some(OLD));
    check(
        Promise::DeparturesAreTold,
        &[&turn(Some(OLD), None), &twice, &twice],
    );
    check(
        Promise::DeparturesAreTold,
        &[&turn(Some(OLD), None), &turn(None, Some(NEW))],
    );
    check(
        Promise::DeparturesAreTold,
        &[&turn(Some(OLD), None), &turn(Some(NEW), None)],
    );
}

#[test]
fn a_life_that_goes_without_a_departure_is_caught() {
    let gone = |checker: &mut Checker| checker.living(10, PLACE, &[]);
    check(Promise::DeparturesAreTold, &[&turn(Some(OLD), None), &gone]);
    let undead = |checker: &mut Checker| checker.living(10, PLACE, &[(SUBJECT, OLD)]);
    check(
        Promise::DeparturesAreTold,
        &[&turn(Some(OLD), None), &turn(None, Some(OLD)), &undead],
    );
}

/// A turn in which the node at this place reports how the life of the subject that it knew went, and why it has itself
/// another identity, if it has.
fn departs(
    place: usize,
    cause: Option<GoneCause>,
    downed: Option<DownReason>,
) -> impl Fn(&mut Checker) {
    move |checker| {
        let observed_at = TimerInstant::from_millis(2);
        let identity = identity(OLD);
        let departure = match cause {
            Some(cause) => Departure::Gone {
                identity,
                name: None,
                cause,
                observed_at,
            },
            None => Departure::Forgotten {
                identity,
                name: None,
                observed_at,
            },
        };
        let mut outcome = MembershipRuntimeOutcome::default();
        outcome.departures.push(departure);
        let downed = downed.map(|reason| ClusterEvent::SelfDowned {
            identity: NodeIdentity {
                authority: authority(place),
                uid: OLD,
            },
            successor: None,
            reason,
            observed_at,
        });
        outcome.member_events.extend(downed);
        if let Some(view) = checker.views[place].as_mut() {
            view.alive[SUBJECT] = Some(OLD);
        }
        checker.departures(10, place, &outcome);
    }
}

#[test]
fn a_departure_that_follows_from_nothing_is_caught() {
    use GoneCause::{Died, Left, Quarantined, Replaced};
    type Happens<'a> = &'a dyn Fn(&mut Checker);
    let leaves: Happens<'_> = &|checker: &mut Checker| checker.truth().leaves(SUBJECT);
    let quarantines: Happens<'_> = &|checker: &mut Checker| checker.truth().quarantines(SUBJECT);
    let replaces = reached(NEW, 1);
    let dies: Happens<'_> = &ended;
    let cases: [(GoneCause, Happens<'_>); 4] = [
        (Died, dies),
        (Left, leaves),
        (Quarantined, quarantines),
        (Replaced, &replaces),
    ];
    for (cause, _) in cases {
        check(
            Promise::DeparturesAreTold,
            &[&departs(PLACE, Some(cause), None)],
        );
    }
    for (cause, happens) in cases {
        let mut checker = checker();
        happens(&mut checker);
        departs(PLACE, Some(cause), None)(&mut checker);
        assert_eq!(checker.violations(), [], "{cause:?}");
    }
}

#[test]
fn what_another_node_has_seen_end_may_have_died_or_left() {
    for cause in [GoneCause::Died, GoneCause::Left] {
        // The node itself learns of its death from others only.
        for place in [PLACE, SUBJECT] {
            let report = departs(place, Some(cause), None);
            check(Promise::DeparturesAreTold, &[&report]);
            let mut checker = checker();
            checker.record(10, 2, SUBJECT, OLD, Removed, 1);
            report(&mut checker);
            assert_eq!(checker.violations(), [], "{cause:?} on n{place}");
        }
    }
}

#[test]
fn only_an_isolated_node_or_an_observer_may_forget() {
    check(
        Promise::DeparturesAreTold,
        &[&departs(PLACE, None, Some(DownReason::Dead))],
    );
    check(Promise::DeparturesAreTold, &[&departs(PLACE, None, None)]);
    let mut isolated = checker();
    departs(PLACE, None, Some(DownReason::Isolated))(&mut isolated);
    assert_eq!(isolated.violations(), []);
    let mut observer = checker();
    if let Some(view) = observer.views[PLACE].as_mut() {
        view.is_client = true;
    }
    departs(PLACE, None, None)(&mut observer);
    assert_eq!(observer.violations(), []);
}
