//! What a person sees: `kumi muf` on a terminal, which `script` makes.

use crate::support::Server;

#[test]
fn a_terminal_gets_lines_in_colour_and_nothing_that_moves_the_cursor() {
    for server in Server::each() {
        let watch = server.on_terminal(&["watch"]);
        watch.until("watching");
        let _backend = server.serve(&["text.*", "--exec", "tr a-z A-Z", "--unit", "upper"]);
        server.printed(&["call", "web", "text.upper", "a\x1b[2Jb\nc"]);
        let request = watch.until("->");
        assert!(request.contains("\x1b[36m"), "coloured: {request:?}");
        assert!(request.contains("web text.upper"), "{request:?}");
        assert!(request.contains(r"a\u{1b}[2Jb\nc"), "{request:?}");
        server.printed(&["call", "we\u{202e}b", "text.upper", "\u{202e}z"]);
        let request = watch.until(r"we\u{202e}b text.upper");
        assert!(request.contains(r" \u{202e}z"), "{request:?}");
        assert!(watch.until("claimed by").contains("upper"));
        assert!(watch.until("RES").contains("by upper"));
        let keep = server.on_terminal(&["keep", "--watch", "*/*"]);
        keep.until("what follows is live");
        server.printed(&["keep", "sensor", "t", "21.5"]);
        assert!(keep.until("sensor/t").contains("= 21.5"));
        let units = server.on_terminal(&["units"]);
        units.until("SERVICES");
        assert!(units.until("upper").contains("text.*"));
    }
}
