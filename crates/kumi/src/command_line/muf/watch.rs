//! `kumi muf watch`: live traffic of all units, requests matched with their answers.
//!
//! Latencies are between pushes as they arrive here, so they are what an onlooker next to the server sees, not what the
//! caller waited. An answer to a request from before the watch began has none.

use super::failure::Failure;
use super::options::WatchOptions;
use super::shown as bytes;
use super::{Server, reader_name};
use crate::command_line::terminal::{self, Colour, Terminal};
use kumi_muf::core::{Audience, RequestId, Status};
use kumi_muf::{KeyEvent, Traffic};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// Requests remembered at a time. The oldest is forgotten first; its answer is then shown without latency.
const OPEN_LIMIT: usize = 10_000;

/// How much of a payload is shown unless all is wanted.
const PAYLOAD_BYTES: usize = 120;

pub(super) async fn run(server: &Server, options: WatchOptions) -> Result<(), Failure> {
    let terminal = Terminal::new(options.output);
    terminal::end_with_reader();
    let muf = server.short_lived(&reader_name()).connect().await?;
    let mut tap = muf.tap().await?;
    let mut matcher = Matcher::default();
    show(&Sight::of(Kind::Watching), &terminal, options.full)?;
    while let Some(traffic) = tap.next().await {
        let sight = match traffic? {
            Traffic::Key(event) => matcher.see(event),
            Traffic::Ignored { key, reason, .. } => Some(Sight {
                ignored: Some((key, reason)),
                ..Sight::of(Kind::Ignored)
            }),
            _ => Some(Sight::of(Kind::Gap)),
        };
        if let Some(sight) = sight {
            show(&sight, &terminal, options.full)?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Watching,
    Request,
    Claim,
    Answer,
    Error,
    /// A request's life ended without an answer.
    Unanswered,
    /// A key that no unit takes part in.
    Ignored,
    Gap,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Watching => "watching",
            Kind::Request => "request",
            Kind::Claim => "claim",
            Kind::Answer => "answer",
            Kind::Error => "error",
            Kind::Unanswered => "unanswered",
            Kind::Ignored => "ignored",
            Kind::Gap => "gap",
        }
    }
}

/// One thing to show.
#[derive(Debug)]
struct Sight {
    kind: Kind,
    /// Requester and request ID.
    about: Option<(String, RequestId)>,
    /// The backend that claimed it, or answered a gather.
    backend: Option<String>,
    /// Since the request was seen.
    after_ms: Option<f64>,
    payload: Option<Vec<u8>>,
    /// A key that is ignored, and why.
    ignored: Option<(String, String)>,
}

impl Sight {
    fn of(kind: Kind) -> Self {
        Self {
            kind,
            about: None,
            backend: None,
            after_ms: None,
            payload: None,
            ignored: None,
        }
    }
}

/// A request that was seen.
struct Open {
    at: Instant,
    claimant: Option<String>,
    answered: bool,
}

/// Groups the events of a request.
#[derive(Default)]
struct Matcher {
    open: HashMap<(String, String), Open>,
    /// In the order they came, for forgetting.
    order: VecDeque<(String, String)>,
}

impl Matcher {
    fn see(&mut self, event: KeyEvent) -> Option<Sight> {
        match (event.status, event.event.as_str()) {
            (Status::Req, "set") => self.request(event),
            (Status::Req, "expired" | "del") => self.ended(event),
            (Status::Keep, "set") => self.claim(event),
            (Status::Res | Status::Err, "set") => self.answer(event),
            _ => None,
        }
    }

    fn request(&mut self, event: KeyEvent) -> Option<Sight> {
        let id = RequestId::parse(&event.id)?;
        let name = (event.unit.clone(), event.id);
        // A requester sets a request again while no backend has claimed it: that is the same one. An ID that a person typed
        // may be used again after its answer.
        let is_known = |open: &Open| !open.answered || id.target().is_some();
        if self.open.get(&name).is_some_and(is_known) {
            return None;
        }
        let open = Open {
            at: event.at,
            claimant: None,
            answered: false,
        };
        if self.open.insert(name.clone(), open).is_none() {
            self.order.push_back(name);
        }
        if self.order.len() > OPEN_LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.open.remove(&oldest);
        }
        Some(Sight {
            payload: event.value.map(Vec::from),
            about: Some((event.unit, id)),
            ..Sight::of(Kind::Request)
        })
    }

    fn claim(&mut self, event: KeyEvent) -> Option<Sight> {
        let id = RequestId::parse(event.id.strip_suffix(".claim")?)?;
        // A claim is `unit~instance`; the instance is of no use to people.
        let claimant = String::from_utf8_lossy(&event.value?).into_owned();
        let claimant = claimant.split('~').next().unwrap_or_default().to_owned();
        let open = self
            .open
            .get_mut(&(event.unit.clone(), id.as_str().to_owned()));
        let after_ms = open.map(|open| {
            open.claimant = Some(claimant.clone());
            millis(open.at, event.at)
        });
        Some(Sight {
            about: Some((event.unit, id)),
            backend: Some(claimant),
            after_ms,
            ..Sight::of(Kind::Claim)
        })
    }

    fn answer(&mut self, event: KeyEvent) -> Option<Sight> {
        let (id, backend) = RequestId::parse_answer(&event.id)?;
        let kind = match event.status {
            Status::Res => Kind::Answer,
            _ => Kind::Error,
        };
        let open = self
            .open
            .get_mut(&(event.unit.clone(), id.as_str().to_owned()));
        let mut sight = Sight {
            backend: backend.map(str::to_owned),
            payload: event.value.map(Vec::from),
            ..Sight::of(kind)
        };
        if let Some(open) = open {
            open.answered = true;
            sight.after_ms = Some(millis(open.at, event.at));
            sight.backend = sight.backend.or_else(|| open.claimant.clone());
        }
        sight.about = Some((event.unit, id));
        Some(sight)
    }

    /// A request is gone: shortly after its answer, or because there was none.
    fn ended(&mut self, event: KeyEvent) -> Option<Sight> {
        let id = RequestId::parse(&event.id)?;
        let name = (event.unit.clone(), event.id);
        let open = self.open.remove(&name)?;
        // Requests live about as long as each other, so it is near the front.
        if let Some(at) = self.order.iter().position(|other| *other == name) {
            self.order.remove(at);
        }
        if open.answered {
            return None;
        }
        Some(Sight {
            about: Some((event.unit, id)),
            backend: open.claimant,
            after_ms: Some(millis(open.at, event.at)),
            ..Sight::of(Kind::Unanswered)
        })
    }
}

fn millis(from: Instant, to: Instant) -> f64 {
    let micros = to.saturating_duration_since(from).as_micros();
    micros as f64 / 1_000.0
}

fn show(sight: &Sight, terminal: &Terminal, full: bool) -> Result<(), Failure> {
    let unix_ms = terminal::unix_ms();
    let line = match terminal.is_json {
        true => to_json(sight, unix_ms, full),
        false => to_text(sight, unix_ms, full, terminal),
    };
    Ok(terminal::say(&line)?)
}

fn to_json(sight: &Sight, unix_ms: u64, full: bool) -> String {
    let mut object = Map::new();
    object.insert("kind".into(), sight.kind.name().into());
    object.insert("time_ms".into(), unix_ms.into());
    if let Some((unit, id)) = &sight.about {
        object.insert("unit".into(), unit.as_str().into());
        object.insert("id".into(), id.as_str().into());
        object.insert("method".into(), id.target().into());
    }
    if let Some(backend) = &sight.backend {
        object.insert("backend".into(), backend.as_str().into());
    }
    if let Some(after_ms) = sight.after_ms {
        object.insert("after_ms".into(), json!(after_ms));
    }
    if let Some((key, reason)) = &sight.ignored {
        object.insert("key".into(), key.as_str().into());
        object.insert("reason".into(), reason.as_str().into());
    }
    if let Some(payload) = &sight.payload {
        object.insert("size_bytes".into(), payload.len().into());
        bytes::put(&mut object, "payload", shown(payload, full));
    }
    Value::from(object).to_string()
}

fn to_text(sight: &Sight, unix_ms: u64, full: bool, terminal: &Terminal) -> String {
    let (mark, colour) = match sight.kind {
        Kind::Watching | Kind::Claim => ("  ·", Colour::Dim),
        Kind::Request => ("->", Colour::Cyan),
        Kind::Answer => ("  <-", Colour::Green),
        Kind::Error => ("  <-", Colour::Red),
        Kind::Unanswered => ("  x", Colour::Yellow),
        Kind::Ignored => ("  !", Colour::Yellow),
        Kind::Gap => ("  ?", Colour::Yellow),
    };
    let mut parts = vec![terminal.paint(Colour::Dim, &terminal::clock(unix_ms))];
    parts.push(terminal.paint(colour, mark));
    if let Some((unit, id)) = &sight.about {
        parts.push(name(unit, id, terminal));
    }
    let by = |text: &str| {
        let backend = sight.backend.as_ref();
        backend.map(|unit| format!("{text} {}", terminal::shown(unit.as_str())))
    };
    match sight.kind {
        Kind::Watching => parts.push("watching; ctrl-c ends it".into()),
        Kind::Gap => parts.push("something may have been missed".into()),
        Kind::Request => {}
        Kind::Ignored => {
            parts.push(terminal.paint(colour, "ignored"));
            if let Some((key, reason)) = &sight.ignored {
                parts.push(format!("{}: {reason}", terminal::shown(key)));
            }
        }
        Kind::Claim => parts.extend(by("claimed by")),
        Kind::Answer | Kind::Error => {
            let word = ["RES", "ERR"][usize::from(sight.kind == Kind::Error)];
            parts.push(terminal.paint(colour, word));
            parts.extend(by("by"));
        }
        Kind::Unanswered => {
            parts.push(terminal.paint(colour, "unanswered"));
            parts.push(by("though claimed by").unwrap_or_else(|| "no backend claimed it".into()));
        }
    }
    if let Some(after_ms) = sight.after_ms {
        parts.push(format!("after {after_ms:.1} ms"));
    }
    if let Some(payload) = &sight.payload {
        parts.push(terminal.paint(Colour::Dim, &format!("{} B", payload.len())));
        parts.push(bytes::quoted(shown(payload, full)));
    }
    parts.join(" ")
}

/// The calling unit and the method, with the end of the ID: its beginning is the time, alike in all that is on the screen.
fn name(unit: &str, id: &RequestId, terminal: &Terminal) -> String {
    let unit = terminal::shown(unit);
    let target = id.target().map(terminal::shown);
    let unique = id.as_str().rsplit('~').next().unwrap_or_default();
    let unique = unique.trim_matches(['{', '}']);
    let tail = unique
        .get(unique.len().saturating_sub(6)..)
        .unwrap_or(unique);
    let tail = dim(&terminal::shown(tail), terminal);
    match (target, id.audience()) {
        (Some(target), Audience::All) => format!("{unit} {target} (all) {tail}"),
        (Some(target), _) => format!("{unit} {target} {tail}"),
        (None, _) => format!("{unit} {}", terminal::shown(id.as_str())),
    }
}

fn dim(text: &str, terminal: &Terminal) -> String {
    terminal.paint(Colour::Dim, text)
}

/// The beginning of a payload, cut between characters if it is text.
fn shown(payload: &[u8], full: bool) -> &[u8] {
    if full || payload.len() <= PAYLOAD_BYTES {
        return payload;
    }
    let is_start = |at: &usize| payload[*at] & 0b1100_0000 != 0b1000_0000;
    let end = (PAYLOAD_BYTES - 3..=PAYLOAD_BYTES).rev().find(is_start);
    &payload[..end.unwrap_or(PAYLOAD_BYTES)]
}
