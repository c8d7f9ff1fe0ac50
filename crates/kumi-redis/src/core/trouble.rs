//! Errors of a server that are no answer to a command: the key is elsewhere, or the server cannot serve now.

use super::slots::Address;

/// Why a command was not carried out, if that is not the command's fault. Nothing was done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// The server cannot serve now: it is loading, busy, a replica, or its cluster is changing.
    Later,
    /// Another node has the slot now.
    Moved(Address),
    /// Another node has the key, for this once.
    Ask(Address),
}

impl Trouble {
    /// Reads an error reply: its code, and the text behind that. None if it is the answer to the command.
    ///
    /// ```
    /// use kumi_redis::core::Trouble;
    ///
    /// assert_eq!(Trouble::of("MOVED", "12 h:7001"), Some(Trouble::Moved("h:7001".into())));
    /// assert_eq!(Trouble::of("LOADING", "Redis is loading"), Some(Trouble::Later));
    /// assert_eq!(Trouble::of("WRONGTYPE", "Operation against a key"), None);
    /// ```
    pub fn of(code: &str, details: &str) -> Option<Self> {
        let address = || Address::from(details.split(' ').nth(1).unwrap_or_default());
        match code {
            "MOVED" => Some(Trouble::Moved(address())),
            "ASK" => Some(Trouble::Ask(address())),
            "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "LOADING" | "READONLY" | "BUSY" => {
                Some(Trouble::Later)
            }
            _ => None,
        }
    }
}
