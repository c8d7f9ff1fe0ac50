//! `kumi muf call`: one request, its answer, or the answers of all, on standard output.

use super::failure::Failure;
use super::options::{CallOptions, payload};
use super::shown;
use super::{POLL, Server};
use crate::command_line::terminal::{self, Colour, Form, Terminal};
use kumi_muf::core::{Pattern, Target};
use kumi_muf::{Gathered, Muf};
use serde_json::{Map, Value};
use std::future::IntoFuture;
use std::io::IsTerminal;
use std::time::Duration;

/// How long connecting may take, where the call's timeout is not shorter.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a call waits before the hint that no unit serves it, and how many units the hint names.
const HINT_AFTER: Duration = Duration::from_secs(2);
const HINT_UNITS: usize = 8;

/// How long the hint waits for the list of units, which is a search of the keyspace.
const HINT_LIMIT: Duration = Duration::from_secs(5);

pub(super) async fn run(server: &Server, mut options: CallOptions) -> Result<(), Failure> {
    let fix = with_caller(&options);
    if let (Some(fix), Err(error)) = (&fix, Target::new(&options.target)) {
        return Err(Failure::Usage(format!(
            "{error}: the caller's name comes first, before the method; try: {fix}"
        )));
    }
    let payload = payload(options.payload.take())?;
    if options.json
        && let Err(error) = serde_json::from_slice::<Value>(&payload)
    {
        return Err(Failure::Usage(format!("the payload is not JSON: {error}")));
    }
    let muf = server
        .short_lived(&options.unit)
        .connect_timeout(options.timeout.unwrap_or(CONNECT).min(CONNECT))
        .poll_every(POLL)
        .connect()
        .await?;
    if options.all {
        return gather(&muf, &options, payload, fix.as_deref()).await;
    }
    let mut call = muf.request(&options.target, payload);
    if let Some(timeout) = options.timeout {
        call = call.timeout(timeout);
    }
    if let Some(ttl) = options.ttl {
        call = call.ttl(ttl);
    }
    let mut call = call.into_future();
    let answer = tokio::select! {
        answer = &mut call => answer,
        () = late_hint(&muf, &options, fix.as_deref()) => call.await,
    }?;
    if options.json {
        answer.json::<Value>()?;
    } else if options.text {
        answer.text()?;
    }
    let bytes = answer.bytes();
    let wants_line = options.json || options.text || std::io::stdout().is_terminal();
    terminal::write(bytes)?;
    if wants_line && !bytes.ends_with(b"\n") {
        terminal::write(b"\n")?;
    }
    Ok(())
}

/// The hint, after [`HINT_AFTER`].
async fn late_hint(muf: &Muf, options: &CallOptions, fix: Option<&str>) {
    tokio::time::sleep(HINT_AFTER).await;
    hint(muf, options, fix).await;
}

/// The command line with a caller's name before its words, if the first of them could be a method.
fn with_caller(options: &CallOptions) -> Option<String> {
    Target::new(&options.unit).ok()?;
    let words = [&options.unit, &options.target];
    let words = words.into_iter().chain(&options.payload);
    let words: Vec<String> = words.map(|word| quoted(word)).collect();
    Some(format!("kumi muf call me {}", words.join(" ")))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/@:,+=%".contains(&byte);
    let word = terminal::shown(word);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Names the units that run if none of them serves the target. There is no hint if they are not known in time.
async fn hint(muf: &Muf, options: &CallOptions, fix: Option<&str>) {
    let target = options.target.as_str();
    let Ok(Ok(units)) = tokio::time::timeout(HINT_LIMIT, muf.units()).await else {
        return;
    };
    let is_served = |target: &str| {
        let mut patterns = units.iter().flat_map(|unit| &unit.services);
        patterns.any(|pattern| {
            let pattern = pattern.parse::<Pattern>();
            pattern.is_ok_and(|pattern| pattern.matches(Some(target)))
        })
    };
    if is_served(target) {
        return;
    }
    if let Some(fix) = fix.filter(|_| is_served(&options.unit)) {
        let (target, unit) = (terminal::shown(target), terminal::shown(&options.unit));
        terminal::note(format_args!(
            "no unit serves {target} so far, but {unit} is served: the caller's name comes first; try: {fix}"
        ));
        return;
    }
    let others = units.iter().filter(|unit| !unit.services.is_empty());
    let names: Vec<String> = others
        .take(HINT_UNITS)
        .map(|unit| {
            let services = unit.services.join(" ");
            format!(
                "{} ({})",
                terminal::shown(&unit.unit),
                terminal::shown(&services)
            )
        })
        .collect();
    let there = match names.is_empty() {
        true => "no unit serves anything".into(),
        false => format!("these units run: {}", names.join(", ")),
    };
    let target = terminal::shown(target);
    terminal::note(format_args!("no unit serves {target} so far; {there}"));
}

/// Calls all backends, and shows each answer as it comes. No answer is a failure, as it is for a call.
async fn gather(
    muf: &Muf,
    options: &CallOptions,
    payload: Vec<u8>,
    fix: Option<&str>,
) -> Result<(), Failure> {
    let mut gather = muf.gather(&options.target, payload);
    if let Some(timeout) = options.timeout {
        gather = gather.timeout(timeout);
    }
    if let Some(count) = options.count {
        gather = gather.count(count as usize);
    }
    if let Some(idle) = options.idle {
        gather = gather.quiet(idle);
    }
    let terminal = Terminal::new(Form::Auto);
    let mut answers = gather.start().await?;
    let late_hint = late_hint(muf, options, fix);
    tokio::pin!(late_hint);
    let (mut heard, mut hinted) = (false, false);
    loop {
        let answer = tokio::select! {
            answer = answers.next() => answer,
            () = &mut late_hint, if !heard && !hinted => {
                hinted = true;
                continue;
            }
        };
        let Some(answer) = answer else { break };
        terminal::say(&line(&answer?, &terminal))?;
        heard = true;
    }
    if heard {
        return Ok(());
    }
    // By default it has ended by the time of the hint.
    if !hinted {
        hint(muf, options, fix).await;
    }
    Err(Failure::Unanswered)
}

fn line(answer: &Gathered, terminal: &Terminal) -> String {
    let (name, colour, bytes) = match &answer.result {
        Ok(payload) => ("payload", Colour::Cyan, payload),
        Err(payload) => ("error", Colour::Red, payload),
    };
    if !terminal.is_json {
        let backend = terminal.paint(colour, &terminal::shown(&answer.backend));
        return format!("{backend}: {}", shown::quoted(bytes));
    }
    let mut object = Map::new();
    object.insert("backend".into(), answer.backend.as_str().into());
    shown::put(&mut object, name, bytes);
    Value::from(object).to_string()
}
