//! What the fuzz targets share: a world of clients around a store, frames written back as bytes, and a vocabulary.

mod frames;
mod host;
mod mutate;
mod restored;
mod targets;
pub mod unison;
mod vocabulary;
mod world;

pub use frames::{encode_frame, same};
pub use mutate::mutate_script;
pub use restored::{packed_payload, read_restored};
pub use targets::{Target, target};
pub use vocabulary::{Vocabulary, vocabulary};
pub use world::World;
