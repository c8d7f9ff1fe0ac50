//! `kumi cluster watch`: what happens, as one node sees it, until ctrl-c or the node's end.

use super::failure::Failure;
use super::members::connect;
use super::options::WatchOptions;
use super::printer::Printer;
use super::words;
use crate::command_line::terminal::{self, Colour, Terminal};
use serde_json::json;
use tokio::sync::oneshot;

pub(super) async fn run(options: &WatchOptions) -> Result<(), Failure> {
    let terminal = Terminal::new(options.output);
    terminal::end_with_reader();
    let client = connect(&options.ask).await?;
    let mut watch = client.watch().await?;
    let (report, mut gone) = oneshot::channel();
    // The connection is kept up whether the output is read or not.
    let printer = Printer::start(&terminal, |error| {
        let _ = report.send(error);
    })?;
    let view = watch.first();
    match terminal.is_json {
        true => printer.show_json(&json!({"kind": "view", "view": view}))?,
        false => {
            let active = view.members.iter().filter(|member| member.is_active());
            let line = format!(
                "watching {} through {}: {}, hash {}; ctrl-c ends it",
                words::shown(&view.cluster),
                words::node(&view.node, view.name_and_life.as_deref()),
                words::members(active.count()),
                words::shown(&view.hash),
            );
            printer.say(terminal.paint(Colour::Dim, &line));
        }
    }
    let ended = loop {
        tokio::select! {
            next = watch.next() => match next {
                Ok(Some(event)) => printer.show(&event)?,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            },
            Ok(error) = &mut gone => return Err(terminal::unwritten(error).into()),
        }
    };
    if ended.is_ok() && !terminal.is_json {
        printer.say(terminal.paint(Colour::Dim, "the node has ended"));
    }
    printer.finish();
    ended
}
