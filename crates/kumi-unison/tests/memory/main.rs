//! Unison over the in-memory transport: calls, events, openings, reattaching, and peers that misbehave.
//!
//! One binary for all of them: linking and generating the same code eight times took longer than running it.

#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod calls;
mod events;
mod hostile;
mod openings;
mod parts;
mod reattach;
mod support;
mod traces;
mod unread;
mod vocabulary;
