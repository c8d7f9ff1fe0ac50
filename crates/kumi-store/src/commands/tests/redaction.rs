//! What MONITOR and SLOWLOG do not show.

use crate::testing::Lab;
use kumi_resp::OwnedArgs;

#[track_caller]
fn check(line: &str, expected: &str) {
    let lab = Lab::new();
    let args = OwnedArgs::from_slices(line.split(' '));
    let args = args.as_args();
    let id = lab.store.index.find_request(args).expect("a command");
    let hides = lab.store.index.get(id).row.hides;
    let words = args.iter().enumerate().map(|(position, arg)| {
        let hidden = hides.is_some_and(|hides| hides(args, position));
        let shown = if hidden { b"(redacted)" } else { arg };
        String::from_utf8_lossy(shown)
    });
    assert_eq!(words.collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn passwords_do_not_reach_monitor_or_the_slow_log() {
    check("AUTH secret", "AUTH (redacted)");
    check("AUTH me secret", "AUTH (redacted) (redacted)");
    check(
        "HELLO 3 auth me secret SETNAME x",
        "HELLO 3 auth (redacted) (redacted) SETNAME x",
    );
    check("HELLO auth x", "HELLO auth (redacted)");
    check(
        "CONFIG SET hz 10 requirepass secret",
        "CONFIG SET hz 10 requirepass (redacted)",
    );
    check(
        "ACL SETUSER me >secret",
        "ACL SETUSER (redacted) (redacted)",
    );
    check("ACL GETUSER me", "ACL GETUSER (redacted)");
    check("ACL DELUSER me you", "ACL DELUSER (redacted) (redacted)");
    check("GET auth", "GET auth");
}
