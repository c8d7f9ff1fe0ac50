//! `kumi cluster members`: who is there, as a table.

use super::failure::Failure;
use super::key;
use super::options::{AskOptions, DEFAULT_NODE, MembersOptions, authority};
use super::words;
use crate::command_line::terminal::{self, Colour, Terminal};
use kumi_cluster::{AdminClient, ClusterView, MemberRow};

pub(super) async fn run(options: &MembersOptions) -> Result<(), Failure> {
    let client = connect(&options.ask).await?;
    let view = client.members().await?;
    client.close().await;
    let terminal = Terminal::new(options.output);
    if terminal.is_json {
        let text = serde_json::to_string(&view).map_err(|error| Failure::Other(error.into()))?;
        return Ok(terminal::say(&text)?);
    }
    let table = table(&view, options.all, &terminal);
    Ok(terminal::write(table.as_bytes())?)
}

/// Connects to the node that the options or the environment name.
pub(super) async fn connect(options: &AskOptions) -> Result<AdminClient, Failure> {
    let security = key::security(&options.trust)?;
    let named = options.node.clone();
    let node = named
        .or_else(|| std::env::var("KUMI_CLUSTER_NODE").ok())
        .filter(|node| !node.is_empty())
        .unwrap_or_else(|| DEFAULT_NODE.into());
    let node = authority(&node)?;
    Ok(AdminClient::connect(node.as_str(), &security).await?)
}

const COLUMNS: usize = 7;

/// Columns as wide as what stands in them; the last one is ragged.
fn table(view: &ClusterView, all: bool, terminal: &Terminal) -> String {
    let head = ["MEMBER", "NAME", "STATUS", "PHI", "INC", "SEEN", "METADATA"];
    let head = head.map(str::to_owned);
    let shown: Vec<&MemberRow> = view
        .members
        .iter()
        .filter(|member| all || member.is_active() || member.status == "dead")
        .collect();
    let rows: Vec<[String; COLUMNS]> = shown.iter().map(|member| cells(member)).collect();
    let width = |column: usize| {
        let cells = rows
            .iter()
            .chain([&head])
            .map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS - 1).map(width).collect();
    let line = |row: &[String; COLUMNS], status: Option<&str>| {
        let mut text = String::new();
        for (column, cell) in row.iter().enumerate() {
            let padded = match widths.get(column) {
                // Numbers and times read best from the right.
                Some(&width) if (3..=5).contains(&column) => format!("{cell:>width$}  "),
                Some(&width) => format!("{cell:width$}  "),
                None => cell.clone(),
            };
            text += &match (column, status) {
                (2, Some(status)) => words::status(terminal, status, &padded),
                (_, None) => terminal.paint(Colour::Dim, &padded),
                _ => padded,
            };
        }
        format!("{}\n", text.trim_end())
    };
    let mut text = line(&head, None);
    for (member, row) in shown.iter().zip(&rows) {
        text += &line(row, Some(&member.status));
    }
    text + &footer(view, terminal)
}

fn cells(member: &MemberRow) -> [String; COLUMNS] {
    let dash = || "-".to_owned();
    let own = if member.is_self { " *" } else { "" };
    [
        format!("{}{own}", words::shown(&member.authority)),
        member
            .name_and_life
            .as_deref()
            .map_or_else(dash, words::shown),
        words::shown(&member.status),
        member.phi.map_or_else(dash, |phi| format!("{phi:.2}")),
        member.incarnation.to_string(),
        match (member.is_self, member.last_seen_ms) {
            (true, _) => "self".into(),
            (false, Some(ms)) => words::age(ms),
            (false, None) => dash(),
        },
        metadata(member),
    ]
}

/// What a member says about itself, in one line.
pub(super) fn metadata(member: &MemberRow) -> String {
    let mut words = Vec::new();
    if !member.version.is_empty() {
        words.push(format!("v{}", member.version));
    }
    words.extend(member.roles.iter().cloned());
    words.extend(
        member
            .services
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    match words.is_empty() {
        true => "-".into(),
        false => words::shown(&words.join(" ")),
    }
}

fn footer(view: &ClusterView, terminal: &Terminal) -> String {
    let active = view
        .members
        .iter()
        .filter(|member| member.is_active())
        .count();
    let summary = format!(
        "{} of {}, hash {}, seen by {}",
        words::members(active),
        words::shown(&view.cluster),
        words::shown(&view.hash),
        words::node(&view.node, view.name_and_life.as_deref()),
    );
    let mut text = terminal.paint(Colour::Dim, &summary) + "\n";
    // The detector's follow every death and block one life only; they say nothing that the table does not.
    for kept_out in view.quarantines.iter().filter(|entry| entry.uid.is_none()) {
        let line = format!(
            "{} is quarantined for another {}: {}",
            words::shown(&kept_out.authority),
            words::age(kept_out.remaining_ms),
            words::shown(&kept_out.reason),
        );
        text += &(terminal.paint(Colour::Yellow, &line) + "\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: &str = r#"{
        "cluster": "kumi", "node": "10.0.0.1:7400", "hash": "00000000000000ff",
        "members": [
            {"authority": "10.0.0.1:7400", "status": "up", "is_self": true, "version": "0.1.0",
             "name_and_life": "web-1~6877a5d394b70475"},
            {"authority": "10.0.0.12:7400", "status": "suspect", "incarnation": 12, "phi": 9.5, "last_seen_ms": 3200,
             "roles": ["web"], "services": [["http", "10.0.0.12:80"]]},
            {"authority": "10.0.0.2:7400", "status": "dead", "last_seen_ms": 61000},
            {"authority": "10.0.0.3:7400", "status": "removed"}
        ],
        "quarantines": [
            {"authority": "10.0.0.2:7400", "uid": "5", "reason": "unreachable", "remaining_ms": 1},
            {"authority": "10.0.0.9:7400", "reason": "by an operator (disk)", "remaining_ms": 540000}
        ]
    }"#;

    #[test]
    fn columns_line_up() {
        let view: ClusterView = serde_json::from_str(VIEW).unwrap();
        assert_eq!(
            table(&view, false, &Terminal::plain()),
            "MEMBER           NAME                    STATUS    PHI  INC  SEEN  METADATA\n\
             10.0.0.1:7400 *  web-1~6877a5d394b70475  up          -    0  self  v0.1.0\n\
             10.0.0.12:7400   -                       suspect  9.50   12  3.2s  web http=10.0.0.12:80\n\
             10.0.0.2:7400    -                       dead        -    0   61s  -\n\
             2 members of kumi, hash 00000000000000ff, seen by 10.0.0.1:7400\n\
             10.0.0.9:7400 is quarantined for another 9m: by an operator (disk)\n"
        );
        assert!(table(&view, true, &Terminal::plain()).contains("removed"));
    }
}
