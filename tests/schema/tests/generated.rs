//! Generated Rust compiles and works, feature by feature, in memory and over QUIC.

#[path = "cases/mod.rs"]
mod cases;

/// `everything.kdl`: each feature of the language.
pub mod everything {
    include!(concat!(env!("OUT_DIR"), "/everything.rs"));
}

/// `odd.kdl`, whose names are words of the language. That this compiles is the test.
pub mod odd {
    include!(concat!(env!("OUT_DIR"), "/odd.rs"));
}

/// `unusual.kdl`: combinations of features that are rare.
pub mod unusual {
    include!(concat!(env!("OUT_DIR"), "/unusual.rs"));
}

/// Three versions of one protocol, from `versions/`.
pub mod versions {
    /// The first.
    pub mod v1_0 {
        include!(concat!(env!("OUT_DIR"), "/v1_0.rs"));
    }

    /// The same major version.
    pub mod v1_1 {
        include!(concat!(env!("OUT_DIR"), "/v1_1.rs"));
    }

    /// Another major version.
    pub mod v2_0 {
        include!(concat!(env!("OUT_DIR"), "/v2_0.rs"));
    }
}
