//! A store as a node starts it, and a client that says what it is told to.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use kumi_node::trust::{AclUser, Trust};
use kumi_server::Embedded;
use kumi_unison::ClusterKey;

/// Keyspace events are on, and the users are set.
pub(crate) struct Store {
    server: Embedded,
    pub(crate) trust: Trust,
}

impl Store {
    pub(crate) fn start() -> Store {
        let server = Embedded::builder()
            .set("notify-keyspace-events", "K$xg")
            .start()
            .expect("a server");
        let key = ClusterKey::from_secret(&[7; 32]).expect("long enough");
        let trust = Trust::from_key(&key).expect("a trust");
        let store = Store { server, trust };
        let mut admin = store.connect();
        for user in [store.trust.node_user(), store.trust.app_user()] {
            let rules = user.rules();
            let mut words = vec!["ACL", "SETUSER", user.name()];
            words.extend(rules.iter().map(String::as_str));
            assert_eq!(admin.ask(&words), "+OK");
        }
        store
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.server.path()).expect("a connection");
        Client(BufReader::new(stream))
    }

    pub(crate) fn connect_as(&self, user: &AclUser) -> Client {
        let mut client = self.connect();
        let said = client.ask(&["AUTH", user.name(), user.password().expose()]);
        assert_eq!(said, "+OK");
        client
    }

    pub(crate) fn url(&self, user: &AclUser) -> String {
        let path = self.server.path().display();
        format!(
            "unix://{path}?user={}&pass={}",
            user.name(),
            user.password().expose()
        )
    }

    /// The commands, keys and channels that the server denied so far.
    pub(crate) fn denied(&self) -> BTreeSet<String> {
        let mut admin = self.connect();
        let mut entries = admin.ask(&["ACL", "LOG"]);
        if entries != "*0" {
            // Its length in bytes is not known: PING's answer marks the end.
            admin.send(&["PING"]);
            while !entries.ends_with("+PONG\r\n") {
                admin.0.read_line(&mut entries).expect("an answer");
            }
        }
        // A field's name is followed by the length of its value, and by that.
        let lines: Vec<&str> = entries.lines().collect();
        let fields = lines.windows(3).filter(|field| field[0] == "object");
        fields.map(|field| field[2].to_owned()).collect()
    }
}

pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    fn send(&mut self, words: &[&str]) {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.0
            .get_mut()
            .write_all(request.as_bytes())
            .expect("sent");
    }

    /// The first line of the reply; of a bulk string, its text.
    pub(crate) fn ask(&mut self, words: &[&str]) -> String {
        self.send(words);
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        let line = line.trim_end().to_owned();
        let Some(length) = line
            .strip_prefix('$')
            .and_then(|length| length.parse::<usize>().ok())
        else {
            return line;
        };
        let mut text = vec![0; length + 2];
        self.0.read_exact(&mut text).expect("a text");
        String::from_utf8(text)
            .expect("UTF-8")
            .trim_end()
            .to_owned()
    }
}
