//! `kumi muf units`: who is there.

use super::failure::Failure;
use super::options::UnitsOptions;
use super::shown;
use super::{POLL, Server, nameless};
use crate::terminal::{self, Terminal};
use kumi_muf::Info;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) async fn run(server: &Server, options: UnitsOptions) -> Result<(), Failure> {
    let muf = server
        .visitor(&nameless())
        .poll_every(POLL)
        .connect()
        .await?;
    let units = muf.units().await?;
    if Terminal::new(options.output).is_json {
        for info in &units {
            let line = serde_json::json!({
                "unit": info.unit, "services": info.services, "version": info.version, "since": info.since,
                "instance": info.instance,
            });
            terminal::say(&line.to_string())?;
        }
        return Ok(());
    }
    let now_s = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    Ok(terminal::write(table(&units, now_s).as_bytes())?)
}

/// Columns as wide as what stands in them.
fn table(units: &[Info], now_s: u64) -> String {
    let head = ["UNIT", "SERVICES", "VERSION", "UP"].map(str::to_owned);
    let rows = units.iter().map(|info| {
        [
            shown::quoted(info.unit.as_bytes()),
            dash(&info.services.join(" ")),
            dash(&info.version),
            age(now_s.saturating_sub(info.since)),
        ]
    });
    let rows: Vec<[String; 4]> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..3).map(width).collect();
    let mut text = String::new();
    for [unit, services, version, up] in &rows {
        text += &format!(
            "{unit:0$}  {services:1$}  {version:2$}  {up}\n",
            widths[0], widths[1], widths[2]
        );
    }
    text
}

fn dash(text: &str) -> String {
    match text.is_empty() {
        true => "-".into(),
        false => shown::quoted(text.as_bytes()),
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
            table(&units, 4_030),
            "UNIT    SERVICES     VERSION  UP\n\
             thumbs  thumb.* x.y  1.2      50m\n\
             web     -            -        30s\n"
        );
    }
}
