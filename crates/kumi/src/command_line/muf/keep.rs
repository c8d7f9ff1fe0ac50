//! `kumi muf keep`: writes, reads, ends or watches kept values.

use super::failure::Failure;
use super::options::{KeepOptions, payload};
use super::shown;
use super::{POLL, Server, reader_name};
use crate::command_line::terminal::{self, Colour, Terminal};
use kumi_muf::KeepEvent;
use serde_json::{Map, Value};
use std::time::Duration;

pub(super) async fn run(server: &Server, options: KeepOptions) -> Result<(), Failure> {
    if let Some(pattern) = &options.watch {
        let terminal = Terminal::new(options.output);
        return watch(server, pattern, options.poll, &terminal).await;
    }
    // The parser lets nothing through that lacks them.
    let (unit, id) = (
        options.unit.unwrap_or_default(),
        options.id.unwrap_or_default(),
    );
    if options.get {
        return read(server, &unit, &id).await;
    }
    if options.delete {
        let muf = server.short_lived(&unit).poll_every(POLL).connect().await?;
        return match muf.end_keep(&id).await? {
            true => Ok(()),
            false => Err(Failure::Missing(format!("MUF/{unit}/KEEP/{id}"))),
        };
    }
    let value = payload(options.value)?;
    let muf = server.short_lived(&unit).poll_every(POLL).connect().await?;
    let mut keep = muf.keep(&id, value);
    if let Some(ttl) = options.ttl {
        keep = keep.ttl(ttl);
    } else if options.forever {
        keep = keep.forever();
    }
    Ok(keep.await?)
}

async fn read(server: &Server, unit: &str, id: &str) -> Result<(), Failure> {
    let muf = server
        .short_lived(&reader_name())
        .poll_every(POLL)
        .connect()
        .await?;
    match muf.read_keep(unit, id).await? {
        Some(value) => Ok(terminal::write(value.bytes())?),
        None => Err(Failure::Missing(format!("MUF/{unit}/KEEP/{id}"))),
    }
}

async fn watch(
    server: &Server,
    pattern: &str,
    poll: Option<Duration>,
    terminal: &Terminal,
) -> Result<(), Failure> {
    terminal::end_with_reader();
    let mut unit = server.short_lived(&reader_name());
    if let Some(poll) = poll {
        unit = unit.poll_every(poll);
    }
    let muf = unit.connect().await?;
    let mut watch = muf.watch_keep(pattern).await?;
    while let Some(event) = watch.next().await {
        let line = match terminal.is_json {
            true => json(&event),
            false => text(&event, terminal),
        };
        if let Some(line) = line {
            terminal::say(&line)?;
        }
    }
    Ok(())
}

fn json(event: &KeepEvent) -> Option<String> {
    let mut object = Map::new();
    let mut about = |kind: &str, of: Option<(&String, &String)>| {
        object.insert("kind".into(), kind.into());
        if let Some((unit, id)) = of {
            object.insert("unit".into(), unit.as_str().into());
            object.insert("id".into(), id.as_str().into());
        }
    };
    match event {
        KeepEvent::Value {
            unit,
            id,
            value,
            ttl_ms,
        } => {
            about("value", Some((unit, id)));
            shown::put(&mut object, "value", value);
            object.insert("ttl_ms".into(), (*ttl_ms).into());
        }
        KeepEvent::TooLarge { unit, id, .. } => about("too_large", Some((unit, id))),
        KeepEvent::Deleted { unit, id } => about("deleted", Some((unit, id))),
        KeepEvent::Expired { unit, id } => about("expired", Some((unit, id))),
        KeepEvent::Live => about("live", None),
        KeepEvent::Gap => about("gap", None),
        _ => return None,
    }
    Some(Value::from(object).to_string())
}

fn text(event: &KeepEvent, terminal: &Terminal) -> Option<String> {
    let name = |unit: &str, id: &str| {
        let name = format!("{}/{}", terminal::shown(unit), terminal::shown(id));
        terminal.paint(Colour::Cyan, &name)
    };
    let dim = |text: &str| terminal.paint(Colour::Dim, text);
    Some(match event {
        KeepEvent::Value {
            unit,
            id,
            value,
            ttl_ms,
        } => {
            let life = match ttl_ms {
                Some(ms) => format!("{:?}", Duration::from_secs(ms.div_ceil(1_000))),
                None => "for ever".into(),
            };
            let value = shown::quoted(value);
            format!("{} = {value}  {}", name(unit, id), dim(&life))
        }
        KeepEvent::TooLarge {
            unit,
            id,
            limit_bytes,
        } => {
            let text = format!("a value over the limit of {limit_bytes} bytes");
            format!("{} {}", name(unit, id), dim(&text))
        }
        KeepEvent::Deleted { unit, id } => format!("{} {}", name(unit, id), dim("deleted")),
        KeepEvent::Expired { unit, id } => format!("{} {}", name(unit, id), dim("expired")),
        KeepEvent::Live => dim("that is all there is; what follows is live"),
        KeepEvent::Gap => terminal.paint(
            Colour::Yellow,
            "something may have been missed; all there is follows",
        ),
        _ => return None,
    })
}
