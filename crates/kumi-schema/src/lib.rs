//! KDL schemas of Unison protocols: parsed, checked, and turned into Rust and TypeScript.
