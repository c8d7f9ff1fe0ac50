//! `kumi muf units`: the units that are running.

use super::failure::Failure;
use super::options::UnitsOptions;
use super::shown;
use super::{POLL, Server, reader_name};
use crate::command_line::terminal::{self, Terminal};
use kumi_muf::Info;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(super) async fn run(server: &Server, options: UnitsOptions) -> Result<(), Failure> {
    let muf = server
        .short_lived(&reader_name())
        .poll_every(POLL)
        .connect()
        .await?;
    let units = muf.units().await?;
    let seen = muf.last_seen(&units).await?;
    if Terminal::new(options.output).is_json {
        for (info, seen) in units.iter().zip(&seen) {
            let line = serde_json::json!({
                "unit": info.unit, "services": info.services, "version": info.version, "since": info.since,
                "instance": info.instance, "seen_ms_ago": seen.map(|seen| seen.as_millis() as u64),
            });
            terminal::say(&line.to_string())?;
        }
        return Ok(());
    }
    let now_s = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    Ok(terminal::write(table(&units, &seen, now_s).as_bytes())?)
}

/// Columns as wide as what stands in them.
fn table(units: &[Info], seen: &[Option<Duration>], now_s: u64) -> String {
    let head = ["UNIT", "SERVICES", "VERSION", "UP", "SEEN"].map(str::to_owned);
    let rows = units.iter().zip(seen).map(|(info, seen)| {
        [
            cut(&info.unit),
            dash(&info.services.join(" ")),
            dash(&info.version),
            age(now_s.saturating_sub(info.since)),
            seen.map_or("-".into(), |seen| format!("{} ago", age(seen.as_secs()))),
        ]
    });
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..4).map(width).collect();
    let mut text = String::new();
    for [unit, services, version, up, seen] in &rows {
        text += &format!(
            "{unit:0$}  {services:1$}  {version:2$}  {up:3$}  {seen}\n",
            widths[0], widths[1], widths[2], widths[3]
        );
    }
    text
}

fn dash(text: &str) -> String {
    match text.is_empty() {
        true => "-".into(),
        false => cut(text),
    }
}

/// What a unit wrote, on one line and not too long for a table.
fn cut(text: &str) -> String {
    const LIMIT: usize = 100;
    let shown = shown::quoted(text.as_bytes());
    match shown.char_indices().nth(LIMIT) {
        Some((at, _)) => format!("{}...", &shown[..at]),
        None => shown,
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let info = |json: &str| serde_json::from_str::<Info>(json).unwrap();
        let units = [
            info(r#"{"unit":"thumbs","services":["thumb.*","x.y"],"version":"1.2","since":1000}"#),
            info(r#"{"unit":"web","since":4000}"#),
        ];
        assert_eq!(
            table(&units, &[Some(Duration::from_secs(4)), None], 4_030),
            "UNIT    SERVICES     VERSION  UP   SEEN\n\
             thumbs  thumb.* x.y  1.2      50m  4s ago\n\
             web     -            -        30s  -\n"
        );
    }

    #[test]
    fn what_a_unit_wrote_is_escaped_and_cut() {
        assert_eq!(cut("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(cut(&"x".repeat(500)), format!("{}...", "x".repeat(100)));
    }
}
