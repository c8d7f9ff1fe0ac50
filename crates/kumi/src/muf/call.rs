//! `kumi muf call`: one request, its answer on standard output.

use super::failure::Failure;
use super::options::{CallOptions, payload};
use super::{POLL, terminal, visitor};
use std::io::IsTerminal;
use std::time::Duration;

/// How long connecting may take, where the call's timeout is not shorter.
const CONNECT: Duration = Duration::from_secs(5);

pub(super) async fn run(url: &str, options: CallOptions) -> Result<(), Failure> {
    let payload = payload(options.payload)?;
    if options.json
        && let Err(error) = serde_json::from_slice::<serde_json::Value>(&payload)
    {
        return Err(Failure::Usage(format!("the payload is not JSON: {error}")));
    }
    let muf = visitor(url, &options.unit)
        .connect_timeout(options.timeout.unwrap_or(CONNECT).min(CONNECT))
        .poll_every(POLL)
        .connect()
        .await?;
    let mut call = muf.request(&options.target, payload);
    if let Some(timeout) = options.timeout {
        call = call.timeout(timeout);
    }
    if let Some(ttl) = options.ttl {
        call = call.ttl(ttl);
    }
    let answer = call.await?;
    if options.json {
        answer.json::<serde_json::Value>()?;
    } else if options.text {
        answer.text()?;
    }
    let bytes = answer.bytes();
    let wants_line = options.json || options.text || std::io::stdout().is_terminal();
    terminal::write(bytes)?;
    match wants_line && !bytes.ends_with(b"\n") {
        true => terminal::write(b"\n"),
        false => Ok(()),
    }
}
