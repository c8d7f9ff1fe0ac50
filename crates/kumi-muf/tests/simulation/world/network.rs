//! The network of a simulated world: commands and replies in order, pushes lost, doubled or late, broken links.

use kumi_muf::core::{Command, Key, Op, Status};

use super::{Event, Flight, World};

/// Pushes of one key that one unit may miss without losing its subscription: one less than a requester makes in the ten
/// seconds that REQ lives (at 0, 1, 3 and 7 s).
const LOST_IN_ALL: u32 = 3;

impl World {
    /// An answer may leave a backend only while the server holds its claim. What is on its way may still be late.
    fn check_answer(&mut self, unit: usize, op: &Op) {
        let Some(Command::Set {
            key: text,
            only_new: true,
            ..
        }) = op.commands.first()
        else {
            return;
        };
        let Some(key) =
            Key::parse(text).filter(|key| matches!(key.status, Status::Res | Status::Err))
        else {
            return;
        };
        if key.id.contains("~all~")
            || self.server.lost_writes_at.is_some()
            || self.units[unit].paused.is_some()
        {
            return;
        }
        let claim = format!("MUF/{}/KEEP/{}.claim", key.unit, key.id);
        let holder = self
            .server
            .value(&claim, self.now)
            .map(|value| String::from_utf8_lossy(value).into_owned());
        let name = self.units[unit].name.as_str();
        if holder
            .as_ref()
            .is_none_or(|holder| holder.split('~').next() != Some(name))
        {
            self.violations.push(format!(
                "{name} answers {text}, which {holder:?} has claimed"
            ));
        }
    }

    pub(super) fn send(&mut self, unit: usize, op: Op) {
        self.check_answer(unit, &op);
        self.next += 1;
        let number = self.next;
        let at = match op.bulk {
            true => self.bulk_arrival(unit, &op),
            false => (self.now + self.latency()).max(self.units[unit].link_free_at),
        };
        if !op.bulk {
            self.units[unit].link_free_at = at;
        }
        let (life, link) = (self.units[unit].life, self.units[unit].link);
        self.tally.commands += op.commands.len() as u64;
        self.flights.insert(
            number,
            Flight {
                unit,
                life,
                op,
                replies: Vec::new(),
            },
        );
        self.at(
            at,
            Event::Execute {
                unit,
                link,
                op: number,
                index: 0,
            },
        );
    }

    /// When an operation with a large value reaches the server. It goes by a link of its own, where large values follow
    /// each other.
    fn bulk_arrival(&mut self, unit: usize, op: &Op) -> u64 {
        self.tally.bump("large value");
        let is_written = op
            .commands
            .iter()
            .any(|command| matches!(command, Command::Set { .. } | Command::SetAgain { .. }));
        let carried_ms = match is_written {
            true => self.rng.u64(..=self.plan.bulk_ms.unwrap_or(0)),
            false => 0,
        };
        let latency = self.latency();
        let free_at = &mut self.units[unit].bulk_up_free_at;
        *free_at = (self.now + latency).max(*free_at) + carried_ms;
        *free_at
    }

    /// When the reply to an operation with a large value is here.
    fn bulk_return(&mut self, unit: usize, number: u64) -> u64 {
        let flight = self.flights.get(&number);
        let is_read = flight.is_some_and(|flight| {
            let mut commands = flight.op.commands.iter();
            commands.any(|command| matches!(command, Command::Read { .. }))
        });
        let carried_ms = match is_read {
            true => self.rng.u64(..=self.plan.bulk_ms.unwrap_or(0)),
            false => 0,
        };
        let latency = self.latency();
        let free_at = &mut self.units[unit].bulk_down_free_at;
        *free_at = (self.now + latency).max(*free_at) + carried_ms;
        *free_at
    }

    pub(super) fn execute(&mut self, unit: usize, link: u32, number: u64, index: usize) {
        let broken = self.units[unit].link != link || !self.server.up;
        // What was written to a connection before it broke may still be read by the server.
        if !self.server.up || (broken && self.rng.bool()) {
            return self.reply(self.now + 1, unit, number, true);
        }
        let Some(flight) = self.flights.get_mut(&number) else {
            return;
        };
        let (reply, changed) = self.server.execute(&flight.op.commands[index], self.now);
        flight.replies.push(reply);
        let bulk = flight.op.bulk;
        let more = index + 1 < flight.op.commands.len();
        if let Some(key) = changed {
            self.publish(&key);
        }
        if more {
            let at = self.now + u64::from(self.rng.u8(..) < 30);
            let free_at = match bulk {
                true => &mut self.units[unit].bulk_up_free_at,
                false => &mut self.units[unit].link_free_at,
            };
            *free_at = (*free_at).max(at);
            self.at(
                at,
                Event::Execute {
                    unit,
                    link,
                    op: number,
                    index: index + 1,
                },
            );
        } else {
            let at = match bulk {
                true => self.bulk_return(unit, number),
                false => self.now + self.latency(),
            };
            self.reply(at, unit, number, broken);
        }
    }

    fn reply(&mut self, at: u64, unit: usize, op: u64, lost: bool) {
        self.at(at, Event::Reply { unit, op, lost });
    }

    fn publish(&mut self, text: &str) {
        let Some(key) = Key::parse(text) else { return };
        for unit in 0..self.units.len() {
            let is_subscribed = match key.status {
                Status::Req => self.units[unit].is_backend,
                Status::Res | Status::Err => {
                    self.units[unit].name.as_str() == key.unit || self.units[unit].watches_answers
                }
                _ => false,
            };
            if !is_subscribed || !self.units[unit].subscribed {
                continue;
            }
            // A real server loses pushes only together with the subscription. This one loses single ones, but not all
            // that tell of one key: no requester could do anything about that.
            let lost = self.lost_pushes.entry((unit, text.to_owned())).or_default();
            if self.rng.u8(..) < self.plan.push_loss && *lost < LOST_IN_ALL {
                *lost += 1;
                self.tally.bump("lost push");
                continue;
            }
            let copies = if self.rng.u8(..) < self.plan.push_copies {
                2
            } else {
                1
            };
            for copy in 0..copies {
                if copy > 0 {
                    self.tally.bump("duplicated push");
                }
                let late = if self.rng.u8(..) < 4 {
                    self.rng.u64(..self.plan.late_push_ms + 1)
                } else {
                    0
                };
                let at = (self.now + self.latency() + late).max(self.units[unit].push_free_at);
                self.units[unit].push_free_at = at;
                let subscription = self.units[unit].subscription;
                self.at(
                    at,
                    Event::Push {
                        unit,
                        subscription,
                        key: text.to_owned(),
                    },
                );
            }
        }
    }

    /// A command's way to the server, or a reply's way back.
    pub(super) fn latency(&mut self) -> u64 {
        match self.rng.u8(..) {
            0..245 => u64::from(self.rng.u8(..) < 60),
            _ => self.rng.u64(..self.plan.latency_ms + 1),
        }
    }
}
