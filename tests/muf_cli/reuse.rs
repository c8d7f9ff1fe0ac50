//! IDs as a person types them, used again; and IDs that are none.

use crate::support::Server;

const REQ: &str = "MUF/me/REQ/hello";
const RES: &str = "MUF/me/RES/hello";
const ERR: &str = "MUF/me/ERR/hello";

#[test]
fn an_id_that_is_used_again_has_its_last_answer_only() {
    for server in Server::each() {
        let command =
            r#"read -r word; [ "$word" = good ] || { echo "$word" >&2; exit 1; }; echo "$word""#;
        let _backend = server.serve(&["*", "--exec", command]);
        let ask = |word: &str, key: &str, other: &str| {
            server.cli(&["SET", REQ, word, "EX", "10"]);
            server.until(&["GET", key], |answer| answer == word);
            server.until(&["EXISTS", other], |there| there == "0");
        };
        ask("good", RES, ERR);
        ask("bad", ERR, RES);
        ask("good", RES, ERR);
    }
}

#[test]
fn an_id_without_a_form_is_not_served() {
    for server in Server::each() {
        let _backend = server.serve(&["*", "--exec", "cat"]);
        server.cli(&["SET", "MUF/me/REQ/a~b", "x", "EX", "10"]);
        // Events come in order: once the later request is answered, the event of the first one was seen.
        server.cli(&["SET", REQ, "x", "EX", "10"]);
        server.until(&["EXISTS", RES], |there| there == "1");
        for key in ["MUF/me/KEEP/a~b.claim", "MUF/me/RES/a~b", "MUF/me/ERR/a~b"] {
            assert_eq!(server.cli(&["EXISTS", key]), "0", "{key}");
        }
    }
}
