//! Generated Rust compiles and works, feature by feature, in memory and over QUIC. `current.rs` sees to it that the
//! texts are current.

#[path = "generated/cases/mod.rs"]
mod cases;

/// What the generator wrote for `schemas/everything.kdl`.
pub mod everything {
    include!("generated/everything.rs");
}

/// What it wrote for `schemas/odd.kdl`, whose names are words of the language. That this compiles is the test.
pub mod odd {
    include!("generated/odd.rs");
}

/// What it wrote for `schemas/unusual.kdl`, which puts features together that seldom meet.
pub mod unusual {
    include!("generated/unusual.rs");
}

/// Three versions of one protocol, from `schemas/versions`.
pub mod versions {
    /// The first.
    pub mod v1_0 {
        include!("generated/versions/v1_0.rs");
    }

    /// The same major version.
    pub mod v1_1 {
        include!("generated/versions/v1_1.rs");
    }

    /// Another.
    pub mod v2_0 {
        include!("generated/versions/v2_0.rs");
    }
}
