//! Step 2: RESP. Commands in pieces and in bunches, all reply types, and bytes that make no sense.

use super::{Test, ping};
use crate::bytes::{bulk, command};

pub(super) const TESTS: &[Test] = &[
    Test {
        step: 2,
        name: "echo",
        topic: "parse",
        course_only: false,
        title: ("ECHO gives its argument back", "ECHO が引数をそのまま返す"),
        nudge: (
            "+PONG means that handle is still that of step 1. Otherwise: parse_command has to return the name and all arguments.",
            "+PONG が返るなら、handle がまだステップ 1 のままです。それ以外なら、parse_command がコマンド名とすべての引数を返しているか確認してください。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.call(&[b"PING"], b"+PONG\r\n")?;
            client.call(&[b"ECHO", b"hello"], b"$5\r\nhello\r\n")
        },
    },
    Test {
        step: 2,
        name: "byte_by_byte",
        topic: "parse",
        course_only: false,
        title: ("a command may arrive byte by byte", "1 バイトずつ届いたコマンドを処理する"),
        nudge: (
            "A read can end anywhere. Use read_until and read_exact, which wait for the rest.",
            "読み込みはどこででも途切れます。残りを待ってくれる read_until と read_exact を使ってください。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.send_one_by_one(&command(&[b"ECHO", b"slowly"]));
            client.expect(b"$6\r\nslowly\r\n")
        },
    },
    Test {
        step: 2,
        name: "two_at_once",
        topic: "loop",
        course_only: false,
        title: ("two commands in one packet get two replies", "1 つのパケットで届いた 2 つのコマンドに 2 つ応答する"),
        nudge: (
            "Make one BufReader before the loop, not one per command: it keeps the bytes of the next command.",
            "BufReader はループの前に 1 つだけ作ります。コマンドごとに作ると、次のコマンドのバイトが失われます。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.send(&[command(&[b"PING"]), command(&[b"ECHO", b"two"])].concat());
            client.expect(b"+PONG\r\n$3\r\ntwo\r\n")
        },
    },
    Test {
        step: 2,
        name: "binary",
        topic: "encode",
        course_only: false,
        title: ("arguments are bytes, not text", "引数は文字列ではなくバイト列として扱う"),
        nudge: (
            "Read exactly as many bytes as the length says; \\r\\n may be part of a value, and values need not be UTF-8.",
            "長さの示すバイト数だけ正確に読みます。値に \\r\\n が含まれることも、UTF-8 でないこともあります。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.call(&[b"ECHO", b""], b"$0\r\n\r\n")?;
            let value: Vec<u8> = (0..64).map(|_| context.random.u8(..)).chain(*b"\r\n\x00\xff\r\n").collect();
            client.call(&[b"ECHO", &value], &bulk(&value))
        },
    },
    Test {
        step: 2,
        name: "integer",
        topic: "encode",
        course_only: false,
        title: ("numbers are encoded as integers", "数値を Integer としてエンコードする"),
        nudge: (
            "encode_integer writes a colon, the number and \\r\\n.",
            "encode_integer は、コロン、数値、\\r\\n を書きます。",
        ),
        run: |context| context.client()?.call_line(&[b"DBSIZE"], b":").map(|_| ()),
    },
    Test {
        step: 2,
        name: "lower_case",
        topic: "parse",
        course_only: false,
        title: ("ping and PING are the same command", "ping と PING は同じコマンド"),
        nudge: (
            "The dispatch is given; hand it the command as it came.",
            "コマンドの振り分けは実装済みです。届いたコマンドをそのまま渡してください。",
        ),
        run: |context| context.client()?.call(&[b"pInG"], b"+PONG\r\n"),
    },
    Test {
        step: 2,
        name: "errors",
        topic: "loop",
        course_only: false,
        title: ("an error is a reply, and the connection stays open", "エラーも応答であり、接続は維持される"),
        nudge: (
            "Write what self.reply_to(&command) returns, also when it is an error, and go on.",
            "self.reply_to(&command) の戻り値は、エラーであってもそのまま書き込み、処理を続けます。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.call_line(&[b"NOSUCHCOMMAND"], b"-ERR unknown command")?;
            client.call_line(&[b"ECHO"], b"-ERR wrong number of arguments")?;
            client.call(&[b"PING"], b"+PONG\r\n")
        },
    },
    Test {
        step: 2,
        name: "bad_length",
        topic: "loop",
        course_only: false,
        title: ("a length that is no number ends the connection", "数値でない長さを受け取ったら接続を切断する"),
        nudge: (
            "On Err(error): write encode_error, then return the error. Returning drops both halves and closes the connection.",
            "Err(error) の場合は encode_error を書き込んでからエラーを返します。関数を抜けると接続はクローズされます。",
        ),
        run: |context| {
            for bytes in [&b"*x\r\n"[..], b"*1\r\n$abc\r\n", b"*1\r\n$-7\r\nPING\r\n"] {
                let mut client = context.client()?;
                client.send(bytes);
                client.expect_closed()?;
            }
            context.client()?.call(&[b"PING"], b"+PONG\r\n")
        },
    },
    Test {
        step: 2,
        name: "garbage",
        topic: "parse",
        course_only: true,
        title: ("garbage ends the connection, not the server", "無意味なバイト列で接続は切れるが、サーバは動き続ける"),
        nudge: (
            "read_line must stop at MAX_LINE bytes: reader.take(MAX_LINE).",
            "read_line は MAX_LINE バイトで止まる必要があります: reader.take(MAX_LINE)。",
        ),
        run: |context| {
            for _ in 0..20 {
                let length = context.random.usize(64..2000);
                let mut bytes: Vec<u8> = (0..length).map(|_| context.random.u8(..)).collect();
                bytes[0] = b'!';
                let mut client = context.client()?;
                client.send(&bytes);
            }
            let mut client = context.client()?;
            client.send(&[b'*'; 200]);
            client.expect_line(b"-ERR")?;
            context.client()?.call(&[b"PING"], b"+PONG\r\n")
        },
    },
    Test {
        step: 2,
        name: "too_long",
        topic: "parse",
        course_only: true,
        title: ("a message of more than 1 MB is an error", "1 MB を超えるメッセージはエラーになる"),
        nudge: (
            "Hand parse_length what is left of MAX_MESSAGE, and take the length off after every argument.",
            "parse_length には MAX_MESSAGE の残りを渡し、引数を読むたびに長さを引いてください。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.send(b"*2\r\n$4\r\nECHO\r\n$1048577\r\n");
            client.expect_closed()?;
            let mut client = context.client()?;
            let half = vec![b'x'; 600 * 1024];
            client.send(&command(&[b"ECHO", &half]));
            client.expect(&bulk(&half))?;
            client.send(&[&b"*3\r\n$4\r\nECHO\r\n"[..], &bulk(&half), b"$614400\r\n"].concat());
            client.expect_closed()
        },
    },
    Test {
        step: 2,
        name: "half_a_command",
        topic: "parse",
        course_only: false,
        title: (
            "half a command and then the end: the server survives",
            "コマンドの途中で切断されてもサーバは動き続ける",
        ),
        nudge: (
            "read_exact gives an error at the end of the input; pass it on with ?.",
            "入力が終わると read_exact はエラーを返します。? で呼び出し元に渡してください。",
        ),
        run: |context| {
            let mut client = context.client()?;
            client.send(b"*2\r\n$4\r\nECHO\r\n$100\r\nhal");
            drop(client);
            context.client()?.call(&[b"PING"], b"+PONG\r\n")
        },
    },
    Test {
        step: 2,
        name: "hundred_clients",
        topic: "loop",
        course_only: false,
        title: ("a hundred clients at once", "100 クライアントの同時接続"),
        nudge: (
            "Every connection needs its own task, and nothing in it may block.",
            "接続ごとに専用のタスクが必要です。タスクの中でブロックしてはいけません。",
        ),
        run: |context| ping::many_clients(context, 100),
    },
];
