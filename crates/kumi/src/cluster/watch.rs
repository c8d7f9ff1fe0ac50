//! `kumi cluster watch`: what happens, as one node sees it, until ctrl-c or the node's end.

use super::events;
use super::failure::Failure;
use super::members::connect;
use super::options::WatchOptions;
use super::terminal::{self, Colour, Terminal};
use serde_json::json;

pub(super) async fn run(options: &WatchOptions) -> Result<(), Failure> {
    let terminal = Terminal::new(options.output);
    let client = connect(&options.ask).await?;
    let mut watch = client.watch().await?;
    let view = watch.first();
    match terminal.is_json {
        true => events::show_json(&json!({"kind": "view", "view": view}))?,
        false => {
            let active = view.members.iter().filter(|member| member.is_active());
            let line = format!(
                "watching {} through {}: {}, hash {}; ctrl-c ends it",
                terminal::quoted(&view.cluster),
                terminal::quoted(&view.node),
                terminal::members(active.count()),
                terminal::quoted(&view.hash),
            );
            terminal::say(&terminal.paint(Colour::Dim, &line))?;
        }
    }
    while let Some(event) = watch.next().await? {
        events::show(&event, &terminal)?;
    }
    match terminal.is_json {
        true => Ok(()),
        false => terminal::say(&terminal.paint(Colour::Dim, "the node has ended")),
    }
}
