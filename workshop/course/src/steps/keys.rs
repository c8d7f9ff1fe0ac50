//! Step 3: GET, SET, INCR and the limits.

use super::Test;
use crate::bytes::bulk;

pub(super) const TESTS: &[Test] = &[
    Test {
        step: 3,
        name: "set_get",
        topic: "store",
        course_only: false,
        title: ("GET gives back what SET stored", "SET した値を GET で取得できる"),
        nudge: (
            "DataStore::set inserts an entry, DataStore::get finds it; execute_set answers OK, execute_get a bulk string.",
            "DataStore::set でエントリを insert し、DataStore::get で取得します。execute_set は OK、execute_get は Bulk String を返します。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            client.call(&[b"SET", &key, b"one"], b"+OK\r\n")?;
            client.call(&[b"GET", &key], b"$3\r\none\r\n")?;
            client.call(&[b"SET", &key, b"two"], b"+OK\r\n")?;
            client.call(&[b"GET", &key], b"$3\r\ntwo\r\n")
        },
    },
    Test {
        step: 3,
        name: "get_missing",
        topic: "commands",
        course_only: false,
        title: ("GET of a key that is not there is null", "存在しないキーの GET は null を返す"),
        nudge: (
            "A missing key is Reply::Bulk(None), which is encoded as $-1\\r\\n.",
            "存在しないキーは Reply::Bulk(None) で、$-1\\r\\n とエンコードされます。",
        ),
        run: |context| context.client()?.call(&[b"GET", &context.key("a")], b"$-1\r\n"),
    },
    Test {
        step: 3,
        name: "binary_value",
        topic: "store",
        course_only: false,
        title: ("values are bytes", "値はバイト列である"),
        nudge: (
            "Keep values as Vec<u8>; never turn them into a String.",
            "値は Vec<u8> のまま保存します。String に変換しないでください。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            let value: Vec<u8> = (0..100).map(|_| context.random.u8(..)).chain(*b"\r\n\x00\xff").collect();
            client.call(&[b"SET", &key, &value], b"+OK\r\n")?;
            client.call(&[b"GET", &key], &bulk(&value))?;
            client.call(&[b"SET", &key, b""], b"+OK\r\n")?;
            client.call(&[b"GET", &key], b"$0\r\n\r\n")
        },
    },
    Test {
        step: 3,
        name: "shared",
        topic: "store",
        course_only: false,
        title: ("all clients see the same data", "すべてのクライアントが同じデータを見る"),
        nudge: (
            "There is one store behind self.store(); do not make another one.",
            "ストアは self.store() の 1 つだけです。別のストアを作らないでください。",
        ),
        run: |context| {
            let key = context.key("a");
            let (mut writer, mut reader) = (context.client()?, context.client()?);
            writer.call(&[b"SET", &key, b"seen"], b"+OK\r\n")?;
            reader.call(&[b"GET", &key], b"$4\r\nseen\r\n")
        },
    },
    Test {
        step: 3,
        name: "incr",
        topic: "incr",
        course_only: false,
        title: ("INCR counts, from 1 on", "INCR で 1 から数える"),
        nudge: (
            "A missing key counts as 0. Store the new number with store.update, as text, and answer Reply::Integer.",
            "存在しないキーは 0 とみなします。新しい数値を文字列として store.update で保存し、Reply::Integer を返します。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            client.call(&[b"INCR", &key], b":1\r\n")?;
            client.call(&[b"INCR", &key], b":2\r\n")?;
            client.call(&[b"GET", &key], b"$1\r\n2\r\n")?;
            client.call(&[b"SET", &key, b"-6"], b"+OK\r\n")?;
            client.call(&[b"INCR", &key], b":-5\r\n")
        },
    },
    Test {
        step: 3,
        name: "incr_text",
        topic: "incr",
        course_only: false,
        title: ("INCR of something that is no number is an error", "整数でない値の INCR はエラーになる"),
        nudge: (
            "parse_integer(value)? for the text; checked_add(1) and ok_or(CommandError::NotAnInteger)? for the overflow.",
            "文字列には parse_integer(value)?、オーバーフローには checked_add(1) と ok_or(CommandError::NotAnInteger)? を使います。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            for value in [&b"apple"[..], b"1.5", b""] {
                client.call(&[b"SET", &key, value], b"+OK\r\n")?;
                client.call_line(&[b"INCR", &key], b"-ERR value is not an integer or out of range")?;
                client.call(&[b"GET", &key], &bulk(value))?;
            }
            let largest = b"9223372036854775807";
            client.call(&[b"SET", &key, largest], b"+OK\r\n")?;
            client.call_line(&[b"INCR", &key], b"-ERR")?;
            client.call(&[b"GET", &key], &bulk(largest))
        },
    },
    Test {
        step: 3,
        name: "incr_together",
        topic: "incr",
        course_only: false,
        title: ("no INCR is lost when ten clients count", "10 クライアントが同時に数えても INCR が失われない"),
        nudge: (
            "Hold one lock from reading the number to storing it: let mut store = self.store(); once, at the top.",
            "数値を読んでから保存するまで 1 つのロックを保持します。先頭で 1 回だけ let mut store = self.store(); とします。",
        ),
        run: |context| {
            let key = context.key("a");
            let mut clients = Vec::new();
            for _ in 0..10 {
                let mut client = context.client()?;
                client.send(&crate::bytes::command(&[b"INCR", &key]).repeat(50));
                clients.push(client);
            }
            for client in &mut clients {
                for _ in 0..50 {
                    client.expect_line(b":")?;
                }
            }
            context.client()?.call(&[b"GET", &key], b"$3\r\n500\r\n")
        },
    },
    Test {
        step: 3,
        name: "arity",
        topic: "commands",
        course_only: false,
        title: ("a wrong number of arguments is an error", "引数の個数が誤っていればエラーになる"),
        nudge: (
            "The check is given in execute; do not change the table there.",
            "このチェックは execute に実装済みです。振り分けの表は変更しないでください。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.call_line(&[b"GET"], b"-ERR wrong number of arguments")?;
            client.call_line(&[b"SET", b"k"], b"-ERR wrong number of arguments")?;
            client.call_line(&[b"INCR", b"k", b"2"], b"-ERR wrong number of arguments").map(|_| ())
        },
    },
    Test {
        step: 3,
        name: "value_too_long",
        topic: "limits",
        course_only: true,
        title: ("a value of more than 512 KB is an error", "512 KB を超える値はエラーになる"),
        nudge: (
            "set has to call self.check_limits(key, &value)?, which compares value.len() with MAX_VALUE.",
            "set の中で self.check_limits(key, &value)? を呼び、value.len() を MAX_VALUE と比べます。",
        ),
        run: |context| {
            let (key, mut client) = (context.key("a"), context.client()?);
            let value = vec![b'v'; 512 * 1024];
            client.call(&[b"SET", &key, &value], b"+OK\r\n")?;
            client.call_line(&[b"SET", &key, &[&value[..], b"v"].concat()], b"-ERR")?;
            client.call(&[b"GET", &key], &bulk(&value))
        },
    },
    Test {
        step: 3,
        name: "too_many_keys",
        topic: "limits",
        course_only: true,
        title: ("key number 10,001 is an error", "10,001 個目のキーはエラーになる"),
        nudge: (
            "A new key while there are MAX_KEYS keys is CommandError::TooManyKeys; an old key may still be overwritten.",
            "MAX_KEYS 個あるときの新しいキーは CommandError::TooManyKeys です。既存のキーの上書きはできます。",
        ),
        run: |context| {
            let mut client = context.client()?;
            let size = client.call_line(&[b"DBSIZE"], b":")?;
            let there: usize = String::from_utf8_lossy(&size[1..]).parse().unwrap_or(0);
            let count = 10_000usize.saturating_sub(there);
            for chunk in (0..count).collect::<Vec<_>>().chunks(500) {
                let keys = chunk.iter().map(|index| context.key(&index.to_string()));
                client.send(&keys.flat_map(|key| crate::bytes::command(&[b"SET", &key, b"x"])).collect::<Vec<u8>>());
                client.expect(&b"+OK\r\n".repeat(chunk.len()))?;
            }
            client.call(&[b"DBSIZE"], b":10000\r\n")?;
            client.call_line(&[b"SET", &context.key("more"), b"x"], b"-ERR")?;
            client.call_line(&[b"INCR", &context.key("more")], b"-ERR")?;
            client.call(&[b"SET", &context.key("0"), b"y"], b"+OK\r\n")
        },
    },
];
