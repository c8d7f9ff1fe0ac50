//! Running the core over real connections.
