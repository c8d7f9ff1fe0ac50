//! Seeds, ids and tokens come from the operating system.

use crate::sources::{files, source_folder};
use std::fs;

/// Crates whose sources, without their tests, may draw from a generator that they are handed or that they seed from the
/// operating system, and from no other.
const CRATES: [&str; 14] = [
    "kumi",
    "kumi-cluster",
    "kumi-common",
    "kumi-jobs",
    "kumi-kdl",
    "kumi-lua",
    "kumi-muf",
    "kumi-node",
    "kumi-redis",
    "kumi-resp",
    "kumi-schema",
    "kumi-server",
    "kumi-store",
    "kumi-unison",
];

/// `fastrand` seeds its own generators from the time and the thread: who sees an id can find the seed.
#[test]
fn no_generator_is_seeded_from_the_time() {
    let mut sources = 0;
    for name in CRATES {
        let root = source_folder(name);
        for file in files(&root) {
            let path = file.strip_prefix(&root).expect("a file of the crate");
            let is_test = path.components().any(|part| {
                let part = part.as_os_str().to_string_lossy();
                part.starts_with("test") || part.starts_with("simulation")
            });
            if is_test || path.extension().is_none_or(|ending| ending != "rs") {
                continue;
            }
            sources += 1;
            let text = fs::read_to_string(&file).expect("a file");
            // The tests of a file are at its end.
            let code = text.split("#[cfg(test)]\nmod tests").next();
            for line in code.unwrap_or_default().lines() {
                let fault = fault(line);
                assert_eq!(fault, None, "{}: {line}", file.display());
            }
        }
    }
    assert!(sources > 300, "{sources} files");
}

/// What in a line draws from a generator that nobody has seeded.
fn fault(line: &str) -> Option<&str> {
    let after = line.split("fastrand::").skip(1);
    let mut faults = after.filter(|after| {
        let rest = after.strip_prefix("Rng");
        rest.is_none_or(|rest| {
            rest.starts_with("::new") || rest.starts_with("::default") || rest.starts_with("Ext")
        })
    });
    faults.next()
}

#[test]
fn faults_are_found() {
    for line in [
        "let n = fastrand::u64(..);",
        "let mut rng = fastrand::Rng::new();",
        "use fastrand::shuffle;",
    ] {
        assert!(fault(line).is_some(), "{line}");
    }
    for line in ["rng: &mut fastrand::Rng,", "fastrand::Rng::with_seed(seed)"] {
        assert_eq!(fault(line), None, "{line}");
    }
}
