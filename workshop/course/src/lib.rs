//! The workshop's tools: the generator of skeletons, the staged wire tests, and what the `mini` command does.

pub mod bytes;
pub mod files;
pub mod generate;
pub mod hints;
pub mod lang;
pub mod mini;
pub mod runner;
pub mod server;
pub mod state;
pub mod steps;
pub mod wire;

/// The guide's Rust code, compiled and run as documentation tests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../guide/en/01-tcp.md")]
    struct Tcp;
    #[doc = include_str!("../../guide/en/02-resp.md")]
    struct Resp;
    #[doc = include_str!("../../guide/en/03-keys.md")]
    struct Keys;
    #[doc = include_str!("../../guide/en/04-expire.md")]
    struct Expire;
    #[doc = include_str!("../../guide/en/05-active.md")]
    struct Active;
    #[doc = include_str!("../../guide/en/06-pubsub.md")]
    struct PubSub;
    #[doc = include_str!("../../guide/en/07-muf.md")]
    struct Muf;
}
