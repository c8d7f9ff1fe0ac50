//! What goes wrong in a simulated world, and how programs come back from it.

use kumi_muf::core::{Core, Pattern, Time};

use super::{Event, World, settings};
use crate::plan::Fault;

impl World {
    pub(super) fn subscribe(&mut self, unit: usize) {
        if !self.units[unit].alive || self.units[unit].subscribed {
            return;
        }
        if !self.server.up {
            let at = self.now + 100 + self.rng.u64(..200);
            return self.at(at, Event::Subscribe { unit });
        }
        self.units[unit].subscribed = true;
        self.units[unit].core.handle_subscribed(Time(self.now));
        self.settle(unit);
    }

    pub(super) fn fault(&mut self, fault: Fault) {
        self.tally.bump(fault.name());
        match fault {
            Fault::BreakLink(unit) => self.units[unit].link += 1,
            Fault::BreakPushes(unit) => self.break_pushes(unit),
            Fault::Pause(unit, ms) => {
                if self.units[unit].paused.is_none() {
                    self.units[unit].paused = Some(Vec::new());
                    self.at(self.now + ms, Event::Resume { unit });
                }
            }
            Fault::Die(unit, back_after_ms) => {
                let entry = &mut self.units[unit];
                entry.alive = false;
                entry.life += 1;
                entry.subscribed = false;
                entry.subscription += 1;
                entry.link += 1;
                entry.watches_answers = false;
                if let Some(ms) = back_after_ms {
                    self.at(self.now + ms, Event::Revive { unit });
                }
            }
            Fault::Save => self.server.save(),
            Fault::Restart { down_ms, loses } => {
                if self.server.up {
                    self.server.up = false;
                    for unit in 0..self.units.len() {
                        self.units[unit].link += 1;
                        self.break_pushes(unit);
                    }
                    self.at(self.now + down_ms, Event::ServerUp { loses });
                }
            }
            // A primary fails over to a replica that lags: no connection of ours need notice for a while.
            Fault::LoseWrites => self.server.restart(true, self.now),
        }
    }

    fn break_pushes(&mut self, unit: usize) {
        if !self.units[unit].alive || !self.units[unit].subscribed {
            return;
        }
        self.units[unit].subscribed = false;
        self.units[unit].subscription += 1;
        self.units[unit].core.handle_unsubscribed();
        let at = self.now + self.rng.u64(1..300);
        self.at(at, Event::Subscribe { unit });
    }

    pub(super) fn revive(&mut self, unit: usize) {
        let (rng, places) = (self.rng.fork(), self.plan.places);
        let settings = settings(&self.plan);
        let entry = &mut self.units[unit];
        if entry.alive {
            return;
        }
        entry.alive = true;
        entry.paused = None;
        entry.wake_at = None;
        entry.core = Core::new(entry.name.clone(), &entry.life.to_string(), settings, rng);
        entry.core.serve(Pattern::All, places, Time(self.now));
        self.subscribe(unit);
    }
}
