//! The fuzz targets by name. They are one program: sixteen of them would be linked with the same instrumented libraries.

mod aof_loader;
mod aof_manifest;
mod cluster_envelope;
mod command_stream;
mod config_file;
mod dump_payload;
mod lua_libraries;
mod lua_script;
mod lzf;
mod rdb_file;
mod reply_decoder;
mod request_decoder;
mod schema_parser;
mod unison_frame;
mod unison_message;
mod unison_packet;

/// A target: its name, and the function that runs one input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by the names of their files.
const TARGETS: &[Target] = &[
    ("aof_loader", aof_loader::run),
    ("aof_manifest", aof_manifest::run),
    ("cluster_envelope", cluster_envelope::run),
    ("command_stream", command_stream::run),
    ("config_file", config_file::run),
    ("dump_payload", dump_payload::run),
    ("lua_libraries", lua_libraries::run),
    ("lua_script", lua_script::run),
    ("lzf", lzf::run),
    ("rdb_file", rdb_file::run),
    ("reply_decoder", reply_decoder::run),
    ("request_decoder", request_decoder::run),
    ("schema_parser", schema_parser::run),
    ("unison_frame", unison_frame::run),
    ("unison_message", unison_message::run),
    ("unison_packet", unison_packet::run),
];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|(known, _)| *known == name)
}
