//! `cli`: a small redis-cli, for a computer that has none.

use std::io::{BufRead, Write};
use std::net::SocketAddr;

use super::Mini;
use super::arguments::Arguments;
use crate::bytes::command;
use crate::wire::{Client, Ending};

pub(super) fn cli(mini: &Mini, arguments: &mut Arguments) -> Result<bool, String> {
    let port = arguments.option("--port")?.unwrap_or_else(|| "6379".to_string());
    let port: u16 = port.parse().map_err(|_| format!("--port: {port}"))?;
    let refused = mini.lang.pick(
        "could not connect: is your server running? (cargo mini run)",
        "接続できません。サーバは起動していますか。（cargo mini run）",
    );
    let mut client = Client::connect(SocketAddr::from(([127, 0, 0, 1], port))).map_err(|_| refused.to_string())?;
    let words: Vec<String> = std::iter::from_fn(|| arguments.word()).collect();
    if !words.is_empty() {
        return Ok(one(&mut client, &words));
    }
    loop {
        print!("127.0.0.1:{port}> ");
        let _ = std::io::stdout().flush();
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line).map_err(|error| error.to_string())? == 0 {
            return Ok(true);
        }
        let words = words_of(&line);
        match words.first().map(String::as_str) {
            None => {}
            Some("exit" | "quit") => return Ok(true),
            Some(_) if one(&mut client, &words) => {}
            Some(_) => return Ok(false),
        }
    }
}

/// Sends one command and prints its reply; for SUBSCRIBE, replies until the connection ends.
fn one(client: &mut Client, words: &[String]) -> bool {
    let arguments: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    client.send(&command(&arguments));
    let endless = words[0].to_uppercase().ends_with("SUBSCRIBE");
    loop {
        match print_reply(client, "") {
            Ending::Different if !endless => return true,
            Ending::Different => {}
            Ending::Silence if endless => {}
            Ending::Silence => {
                println!("(no reply)");
                return false;
            }
            Ending::Closed | Ending::Refused => {
                println!("(connection closed)");
                return false;
            }
        }
    }
}

/// As redis-cli shows it on a terminal.
fn print_reply(client: &mut Client, indent: &str) -> Ending {
    let (reply, ending) = client.read_reply();
    if ending != Ending::Different {
        return ending;
    }
    let line_end = reply.windows(2).position(|pair| pair == b"\r\n").unwrap_or(0);
    let line = String::from_utf8_lossy(&reply[..line_end]).into_owned();
    let (kind, rest) = line.split_at(line.len().min(1));
    match kind {
        "+" => println!("{rest}"),
        "-" => println!("(error) {rest}"),
        ":" => println!("(integer) {rest}"),
        "$" if rest == "-1" => println!("(nil)"),
        "$" => {
            let value = &reply[line_end + 2..reply.len() - 2];
            println!("\"{}\"", crate::bytes::visible(value).replace('"', "\\\""));
        }
        "*" => {
            for index in 1..=rest.parse::<usize>().unwrap_or(0).min(1024) {
                print!("{}{index}) ", if index == 1 { "" } else { indent });
                let _ = std::io::stdout().flush();
                let ending = print_reply(client, &format!("{indent}   "));
                if ending != Ending::Different {
                    return ending;
                }
            }
        }
        _ => println!("{line}"),
    }
    Ending::Different
}

/// Words separated by blanks; quotes of either kind keep blanks together.
fn words_of(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.trim().chars() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => word.get_or_insert_default().push(character),
            None if character == '"' || character == '\'' => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            None if character.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_blanks_together() {
        assert_eq!(words_of("SET k 'some text' \"\""), ["SET", "k", "some text", ""]);
        assert!(words_of("  ").is_empty());
    }
}
