//! When a program is started again after its end, and how it is stopped. Pure: events and `now` in, one action at a time
//! out.
//!
//! ```text
//!           started            ended, to be started again
//! Starting ---------> Running -----------------------------> Pausing
//!    ^                   |                                      |
//!    +-------------------|---------------- the pause is over ---+
//!                        | stop                 ended
//!                        +--> Terminating --> Killing --> Finished
//! ```
//! The pause doubles with each end, from [`RestartRule::first_pause`] to [`RestartRule::longest_pause`]. A run of
//! [`RestartRule::steady`] makes the next pause the first one again. A stop sends SIGTERM, and SIGKILL after
//! [`RestartRule::grace`]; nothing is started after it.

use kumi_common::doubled;
use std::time::Duration;

/// Exit codes of a shell whose command may not be executed, and was not found (POSIX).
const CANNOT_RUN: [i32; 2] = [126, 127];

/// A moment, as the time since some moment that the driver has chosen.
pub(crate) type Now = Duration;

/// When a program is started again, and how long a stop may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestartRule {
    /// The pause after the first end.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// After a run of this length the pauses begin anew.
    pub steady: Duration,
    /// Whether exit code 0 is followed by another start.
    pub after_success: bool,
    /// Whether a command that the shell cannot run is tried again.
    pub if_unrunnable: bool,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl Default for RestartRule {
    /// Always again, with pauses from 0.1 s to 10 s, a steady run of 10 s, and 10 s of grace.
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
            steady: Duration::from_secs(10),
            after_success: true,
            if_unrunnable: true,
            grace: Duration::from_secs(10),
        }
    }
}

impl RestartRule {
    /// As the default, but exit code 0 and a command that the shell cannot run are final: for a program whose end ends what
    /// it was started for.
    #[must_use]
    pub fn after_crashes() -> Self {
        Self {
            after_success: false,
            if_unrunnable: false,
            ..Self::default()
        }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With an exit code.
    Exited(i32),
    /// By a signal, or its status is not known.
    Killed,
    /// It may run on, but closed its output, so that no more answers come.
    ClosedOutput,
    /// It could not be started.
    NotStarted,
}

/// What the driver does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start the program, and report `started` or `ended`.
    Start,
    /// Wait for its end, and report it.
    Watch,
    /// Wait until then, and poll again. A stop may come before.
    Sleep(Now),
    /// Send SIGTERM to the program's group, once. Wait for its end until then.
    Terminate(Now),
    /// Send SIGKILL to the program's group, and wait for its end.
    Kill,
    /// Nothing runs, and nothing will be started.
    Finished(Finished),
}

/// Why a program is not started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finished {
    /// It was told to stop.
    Stopped,
    /// It ended with exit code 0, and the rule lets it.
    Succeeded,
    /// The shell cannot run it, and the rule gives up then.
    CannotRun,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Running {
        since: Now,
    },
    Pausing {
        until: Now,
    },
    /// `kill_at` is none until SIGTERM was handed out.
    Terminating {
        kill_at: Option<Now>,
    },
    Killing,
    Finished(Finished),
}

/// One program and its successors.
#[derive(Clone, Debug)]
pub(crate) struct Supervision {
    rule: RestartRule,
    state: State,
    /// Ends in a row, none of them after a steady run.
    ends: u32,
}

impl Supervision {
    /// A program that is to be started.
    #[must_use]
    pub(crate) fn new(rule: RestartRule) -> Self {
        Self {
            rule,
            state: State::Starting,
            ends: 0,
        }
    }

    /// What to do now. The same until an event comes or time passes, except that SIGTERM is handed out once.
    pub(crate) fn poll(&mut self, now: Now) -> Action {
        match self.state {
            State::Starting => Action::Start,
            State::Running { .. } => Action::Watch,
            State::Pausing { until } if now >= until => {
                self.state = State::Starting;
                Action::Start
            }
            State::Pausing { until } => Action::Sleep(until),
            State::Terminating { kill_at: None } => {
                let kill_at = now + self.rule.grace;
                self.state = State::Terminating {
                    kill_at: Some(kill_at),
                };
                Action::Terminate(kill_at)
            }
            State::Terminating {
                kill_at: Some(kill_at),
            } if now < kill_at => Action::Sleep(kill_at),
            State::Terminating { .. } | State::Killing => {
                self.state = State::Killing;
                Action::Kill
            }
            State::Finished(why) => Action::Finished(why),
        }
    }

    /// The program runs. Called after [`Action::Start`].
    pub(crate) fn started(&mut self, now: Now) {
        if self.state == State::Starting {
            self.state = State::Running { since: now };
        }
    }

    /// The program ended, or could not be started. The pause before the next start; none if there is no next one.
    pub(crate) fn ended(&mut self, end: End, now: Now) -> Option<Duration> {
        let ran = match self.state {
            State::Running { since } => now.saturating_sub(since),
            State::Starting => Duration::ZERO,
            State::Terminating { .. } | State::Killing => {
                self.state = State::Finished(Finished::Stopped);
                return None;
            }
            State::Pausing { .. } | State::Finished(_) => return None,
        };
        let finished = match end {
            End::Exited(0) if !self.rule.after_success => Some(Finished::Succeeded),
            End::Exited(code) if CANNOT_RUN.contains(&code) && !self.rule.if_unrunnable => {
                Some(Finished::CannotRun)
            }
            _ => None,
        };
        if let Some(why) = finished {
            self.state = State::Finished(why);
            return None;
        }
        if ran >= self.rule.steady {
            self.ends = 0;
        }
        let pause = doubled(self.rule.first_pause, self.rule.longest_pause, self.ends);
        self.ends = self.ends.saturating_add(1);
        self.state = State::Pausing { until: now + pause };
        Some(pause)
    }

    /// How often it ended in a row without having run for long.
    pub(crate) fn ends_in_a_row(&self) -> u32 {
        self.ends
    }

    /// The program is to be stopped, and not started again.
    pub(crate) fn stop(&mut self) {
        self.state = match self.state {
            State::Running { .. } => State::Terminating { kill_at: None },
            State::Starting | State::Pausing { .. } => State::Finished(Finished::Stopped),
            state => state,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Now {
        Duration::from_millis(ms)
    }

    /// Plays a program that runs for so long each time, from time 0, for a minute. Answers when it was started.
    fn starts(rule: RestartRule, mut run: impl FnMut(usize) -> (Duration, End)) -> Vec<u64> {
        let (mut supervision, mut now, mut starts) = (Supervision::new(rule), ms(0), Vec::new());
        while now < ms(60_000) {
            match supervision.poll(now) {
                Action::Start => {
                    starts.push(now.as_millis() as u64);
                    supervision.started(now);
                }
                Action::Watch => {
                    let (ran, end) = run(starts.len());
                    now += ran;
                    supervision.ended(end, now);
                }
                Action::Sleep(until) => {
                    assert!(until > now, "a driver would spin");
                    now = until;
                }
                Action::Finished(_) => break,
                other => panic!("{other:?}"),
            }
        }
        starts
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let starts = starts(RestartRule::default(), |_| (ms(0), End::Exited(1)));
        assert_eq!(starts[..8], [0, 100, 300, 700, 1_500, 3_100, 6_300, 12_700]);
        assert_eq!(starts[8..], [22_700, 32_700, 42_700, 52_700]);
    }

    #[test]
    fn a_steady_run_begins_the_pauses_anew() {
        let starts = starts(RestartRule::default(), |start| match start {
            3 => (ms(10_000), End::Killed),
            5 => (ms(9_999), End::Killed),
            _ => (ms(0), End::Killed),
        });
        // The third runs from 300 to 10,300 and is followed by the first pause, the fifth is not.
        assert_eq!(starts[..6], [0, 100, 300, 10_400, 10_600, 20_999]);
    }

    #[test]
    fn the_rule_decides_which_ends_are_final() {
        let check = |rule: RestartRule, end: End, expected: Option<Finished>| {
            let mut supervision = Supervision::new(rule);
            assert_eq!(supervision.poll(ms(0)), Action::Start);
            supervision.started(ms(0));
            let pause = supervision.ended(end, ms(1));
            assert_eq!(pause.is_none(), expected.is_some(), "{end:?}");
            if let Some(expected) = expected {
                assert_eq!(supervision.poll(ms(99_999)), Action::Finished(expected));
            }
        };
        let always = RestartRule::default();
        let pipe = RestartRule::after_crashes();
        for end in [
            End::Exited(0),
            End::Exited(126),
            End::Exited(127),
            End::Exited(1),
            End::Killed,
        ] {
            check(always, end, None);
        }
        check(pipe, End::Exited(0), Some(Finished::Succeeded));
        check(pipe, End::Exited(126), Some(Finished::CannotRun));
        check(pipe, End::Exited(127), Some(Finished::CannotRun));
        for end in [
            End::Exited(1),
            End::Killed,
            End::ClosedOutput,
            End::NotStarted,
        ] {
            check(pipe, end, None);
        }
    }

    #[test]
    fn a_stop_terminates_and_then_kills() {
        let mut supervision = Supervision::new(RestartRule::default());
        supervision.started(ms(0));
        supervision.stop();
        assert_eq!(supervision.poll(ms(5)), Action::Terminate(ms(10_005)));
        assert_eq!(supervision.poll(ms(6)), Action::Sleep(ms(10_005)));
        supervision.stop();
        assert_eq!(supervision.poll(ms(10_004)), Action::Sleep(ms(10_005)));
        assert_eq!(supervision.poll(ms(10_005)), Action::Kill);
        assert_eq!(supervision.poll(ms(10_006)), Action::Kill);
        assert_eq!(supervision.ended(End::Killed, ms(10_007)), None);
        assert_eq!(
            supervision.poll(ms(10_007)),
            Action::Finished(Finished::Stopped)
        );
    }

    #[test]
    fn a_program_that_ends_within_its_grace_is_not_started_again() {
        let mut supervision = Supervision::new(RestartRule::default());
        supervision.started(ms(0));
        supervision.stop();
        supervision.poll(ms(1));
        assert_eq!(supervision.ended(End::Exited(1), ms(2)), None);
        assert_eq!(
            supervision.poll(ms(99_999)),
            Action::Finished(Finished::Stopped)
        );
    }

    #[test]
    fn a_stop_during_a_pause_starts_nothing() {
        let mut supervision = Supervision::new(RestartRule::default());
        supervision.started(ms(0));
        assert_eq!(supervision.ended(End::Exited(1), ms(1)), Some(ms(100)));
        supervision.stop();
        assert_eq!(
            supervision.poll(ms(99_999)),
            Action::Finished(Finished::Stopped)
        );
        supervision.started(ms(99_999));
        assert_eq!(
            supervision.poll(ms(99_999)),
            Action::Finished(Finished::Stopped)
        );
    }

    #[test]
    fn what_cannot_be_started_waits_as_what_crashes() {
        let mut supervision = Supervision::new(RestartRule::default());
        assert_eq!(supervision.ended(End::NotStarted, ms(0)), Some(ms(100)));
        assert_eq!(supervision.poll(ms(100)), Action::Start);
        assert_eq!(supervision.ended(End::NotStarted, ms(100)), Some(ms(200)));
    }
}
