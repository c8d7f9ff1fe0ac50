//! W3C trace context: which trace a request belongs to, from one process to the next.
//!
//! A call carries the context that its [`CallOptions`](crate::CallOptions::traceparent) name, or else the current one. A
//! context is current inside of [`TraceContext::scope`], and inside of a handler whose request carried one, so that
//! what a handler asks in turn belongs to the same trace.

use std::fmt;
use std::future::Future;
use std::str::FromStr;

tokio::task_local! {
    static CURRENT: TraceContext;
}

/// The only version of `traceparent` that is written; later ones are read as far as this one goes.
const VERSION: &str = "00";

/// What a `traceparent` header says.
///
/// ```
/// use kumi_unison::TraceContext;
///
/// let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let context: TraceContext = text.parse()?;
/// assert!(context.is_sampled());
/// assert_eq!(context.to_string(), text);
/// # Ok::<(), kumi_unison::TraceError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace_id: [u8; 16],
    parent_id: [u8; 8],
    flags: u8,
}

/// A text is no `traceparent`: four groups of lower-case hexadecimal digits, with ids that are not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a W3C traceparent")]
pub struct TraceError;

impl TraceContext {
    /// A context from its parts; `None` when an id is zero, which the standard forbids.
    pub fn new(trace_id: [u8; 16], parent_id: [u8; 8], flags: u8) -> Option<Self> {
        let context = Self {
            trace_id,
            parent_id,
            flags,
        };
        (trace_id != [0; 16] && parent_id != [0; 8]).then_some(context)
    }

    /// The trace.
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// The caller's span.
    pub fn parent_id(&self) -> [u8; 8] {
        self.parent_id
    }

    /// The trace's flags; bit 0 is "sampled".
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Whether the caller records this trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 != 0
    }

    /// The same trace, seen from another span.
    #[must_use]
    pub fn with_parent(self, parent_id: [u8; 8]) -> Option<Self> {
        Self::new(self.trace_id, parent_id, self.flags)
    }

    /// The context that calls carry here, if there is one.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|current| *current).ok()
    }

    /// Runs a future whose calls carry this context, unless they name another. Tasks that it spawns do not inherit it.
    pub async fn scope<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(self, future).await
    }

    /// Runs a function in which this context is current.
    pub(crate) fn sync_scope<R>(self, function: impl FnOnce() -> R) -> R {
        CURRENT.sync_scope(self, function)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}-")?;
        write_hex(f, &self.trace_id)?;
        f.write_str("-")?;
        write_hex(f, &self.parent_id)?;
        write!(f, "-{:02x}", self.flags)
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceContext({self})")
    }
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl FromStr for TraceContext {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        let mut groups = text.split('-');
        let mut next = || groups.next().ok_or(TraceError);
        let (version, trace_id, parent_id, flags) = (next()?, next()?, next()?, next()?);
        let [version] = hex::<1>(version)?;
        let [flags] = hex::<1>(flags)?;
        // A later version may have more groups; this one may not. 0xff is no version.
        if version == 0xff || (version == 0 && groups.next().is_some()) {
            return Err(TraceError);
        }
        Self::new(hex(trace_id)?, hex(parent_id)?, flags).ok_or(TraceError)
    }
}

/// Exactly `N` bytes in lower-case hexadecimal digits.
fn hex<const N: usize>(text: &str) -> Result<[u8; N], TraceError> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return Err(TraceError);
    }
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(TraceError),
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_no_traceparent_is_refused() {
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ] {
            assert_eq!(wrong.parse::<TraceContext>(), Err(TraceError), "{wrong}");
        }
        let later = format!("01{}-more", &TEXT[2..]);
        let later: TraceContext = later.parse().unwrap();
        assert_eq!(later.to_string(), TEXT);
    }

    #[tokio::test]
    async fn a_context_is_current_in_its_scope_only() {
        let context: TraceContext = TEXT.parse().unwrap();
        assert_eq!(TraceContext::current(), None);
        let inside = context.scope(async { TraceContext::current() }).await;
        assert_eq!(inside, Some(context));
        assert_eq!(TraceContext::current(), None);
    }
}
