//! `kumi status` and `kumi nodes`: what all nodes reply, as text or as JSON, once or again and again.

use super::entry::{Entry, connect};
use super::failure::Failure;
use super::options::{NodesOptions, StatusOptions};
use crate::command_line::terminal::{self, Colour, Terminal};
use kumi_node::core::status::{ClusterStatus, Rendering};
use kumi_node::driver::client::ClusterClient;
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// How often a watch asks.
const EVERY: Duration = Duration::from_secs(1);

/// Moves the cursor to the first line, ends a line, and clears what is below.
const HOME: &str = "\x1b[H";
const LINE_END: &str = "\x1b[K\n";
const CLEAR_BELOW: &str = "\x1b[J";
const CLEAR: &str = "\x1b[2J";

pub(super) async fn status(options: &StatusOptions) -> Result<(), Failure> {
    let Entry { mut client, .. } = connect(&options.show.entry).await?;
    let mut page = Page::new(Terminal::new(options.show.output), options.watch);
    page.show(&client.status().await?)?;
    let watched = match options.watch {
        true => tokio::select! {
            ended = watch(&mut client, &mut page) => ended,
            _ = tokio::signal::ctrl_c() => Ok(()),
        },
        false => Ok(()),
    };
    client.close().await;
    watched
}

pub(super) async fn nodes(options: &NodesOptions) -> Result<(), Failure> {
    let Entry { mut client, .. } = connect(&options.entry).await?;
    let status = client.status().await;
    client.close().await;
    let status = status?;
    if Terminal::new(options.output).is_json {
        let document = json!({
            "format": status.format,
            "at_unix_ms": status.at_unix_ms,
            "members": status.members,
            "nodes": status.nodes,
            "silent": status.silent,
        });
        return Ok(terminal::say(&document.to_string())?);
    }
    let text = status.members_to_text(rendering(terminal::size()));
    Ok(terminal::write(text.as_bytes())?)
}

/// Shows the status every second. Nodes that do not answer for a while are waited for. Ends only with an error.
async fn watch(client: &mut ClusterClient, page: &mut Page) -> Result<(), Failure> {
    terminal::end_with_reader();
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first one is at once, and the status has been shown.
    ticks.tick().await;
    let mut is_told = false;
    loop {
        ticks.tick().await;
        match client.status().await {
            Ok(status) => {
                page.show(&status)?;
                is_told = false;
            }
            Err(error) if !is_told => {
                terminal::note(Failure::from(error));
                is_told = true;
            }
            Err(_) => {}
        }
    }
}

/// Shows one status after the other: in place on a terminal, below each other elsewhere.
struct Page {
    terminal: Terminal,
    is_watch: bool,
    last: Option<String>,
}

impl Page {
    fn new(terminal: Terminal, is_watch: bool) -> Self {
        Self {
            terminal,
            is_watch,
            last: None,
        }
    }

    fn show(&mut self, status: &ClusterStatus) -> Result<(), Failure> {
        if self.terminal.is_json {
            let text =
                serde_json::to_string(status).map_err(|error| Failure::Other(error.into()))?;
            return Ok(terminal::say(&text)?);
        }
        // None unless standard output is a terminal.
        let size = terminal::size();
        let text = status.to_text(rendering(size));
        if self.last.as_ref() == Some(&text) {
            return Ok(());
        }
        let painted = painted(&text, &self.terminal);
        let shown = match (self.is_watch, size, &self.last) {
            (true, Some((_, rows)), None) => format!("{CLEAR}{}", in_place(&painted, rows)),
            (true, Some((_, rows)), Some(_)) => in_place(&painted, rows),
            (_, _, None) => painted,
            (_, _, Some(_)) => format!("\n{painted}"),
        };
        self.last = Some(text);
        Ok(terminal::write(shown.as_bytes())?)
    }
}

fn rendering(size: Option<(usize, usize)>) -> Rendering {
    Rendering {
        width: size.map(|(columns, _)| columns),
    }
}

/// A text over the one before, at most as many lines as the terminal has.
fn in_place(text: &str, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    // The cursor is on the last row afterwards.
    let room = rows.saturating_sub(1).max(1);
    let mut out = HOME.to_owned();
    let whole = match lines.len() <= room {
        true => lines.len(),
        false => room - 1,
    };
    for line in &lines[..whole] {
        out += line;
        out += LINE_END;
    }
    let left = lines.len() - whole;
    if left > 0 {
        // Writing into a text does not fail.
        let _ = write!(out, "{left} more lines{LINE_END}");
    }
    out + CLEAR_BELOW
}

/// The severities in their colours.
fn painted(text: &str, terminal: &Terminal) -> String {
    let (attention, rest) = match text.find("\n\n") {
        Some(end) => text.split_at(end),
        None => (text, ""),
    };
    let lines = attention.split('\n').map(|line| {
        for (severity, colour) in [("red", Colour::Red), ("yellow", Colour::Yellow)] {
            if let Some(words) = line
                .strip_prefix("  ")
                .and_then(|l| l.strip_prefix(severity))
            {
                return format!("  {}{words}", terminal.paint(colour, severity));
            }
        }
        line.to_owned()
    });
    lines.collect::<Vec<_>>().join("\n") + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_drawn_over_the_last_and_cut_to_the_terminal() {
        assert_eq!(in_place("a\nb\n", 24), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J",);
        assert_eq!(
            in_place("a\nb\nc\nd\n", 4),
            "\x1b[Ha\x1b[K\nb\x1b[K\n2 more lines\x1b[K\n\x1b[J",
        );
        assert_eq!(
            in_place("a\nb\nc\n", 4),
            "\x1b[Ha\x1b[K\nb\x1b[K\nc\x1b[K\n\x1b[J"
        );
        assert_eq!(in_place("a\nb\n", 0), "\x1b[H2 more lines\x1b[K\n\x1b[J");
    }

    #[test]
    fn only_severities_are_painted() {
        let text =
            "attention\n  red     store: away\n  yellow  node b\n\nmembers  1 up\n  red     up\n";
        let painted = painted(text, &Terminal::coloured());
        assert_eq!(
            painted,
            "attention\n  \x1b[31mred\x1b[0m     store: away\n  \x1b[33myellow\x1b[0m  node b\n\n\
             members  1 up\n  red     up\n"
        );
    }
}
