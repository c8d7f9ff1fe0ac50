//! A schema that uses the language in unusual ways: what nests, what repeats, what is empty, what is large.

use super::super::unusual::{
    self, Cell, Checked, Demanding, Expr, Formula, Initial, Inner, Level, Open, Wide,
};
use super::lab::within;
use kumi_unison::{
    Call, ChannelRegistry, Json, MemoryClient, Message, NetworkError, Payload, RemoteError,
    Timestamp,
};
use serde_json::Value;
use unusual::UnusualConnectionBuilder;

/// `typescript/main.ts` reads the same file: what one language takes, the other takes too.
#[test]
fn both_languages_take_the_same_values() {
    let vectors: Vec<(String, String, String)> = serde_json::from_str(include_str!(
        "../../../../crates/kumi-schema/tests/vectors.json"
    ))
    .expect("a table");
    assert!(vectors.len() > 200);
    let mut wrong = Vec::new();
    for (message, json, taken_by) in vectors {
        let taken = match &*message {
            "Checked" => taken::<Checked>(&json),
            "Demanding" => taken::<Demanding>(&json),
            "Formula" => taken::<Formula>(&json),
            other => panic!("unknown: {other}"),
        };
        let expected = match &*taken_by {
            "both" | "rust" => true,
            "none" => false,
            other => panic!("no such name: {other}"),
        };
        if taken.is_ok() != expected {
            wrong.push(format!("{message} {json}: {taken:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn taken<M: Message>(json: &str) -> Result<(), String> {
    let message: M = serde_json::from_str(json).map_err(|error| error.to_string())?;
    message.validate().map_err(|error| error.to_string())
}

#[test]
fn unions_survive_both_formats_however_deep() {
    let mut expr = Expr::List(vec![
        Expr::Blob(vec![1, 2, 3]),
        Expr::Self_(Level::MidHigh),
        Expr::Any(Json(Value::Null)),
    ]);
    for _ in 0..20 {
        let left = Expr::Inner(Box::new(Inner::Expr(expr.into())));
        expr = Expr::Add(Box::new(unusual::Add::new(left)));
    }
    let formula = Formula {
        more: Some(Expr::Number(9)),
        ..Formula::new(expr)
    };
    let typed = Payload::typed(&formula).expect("it can be archived");
    assert_eq!(typed.to_typed::<Formula>().as_ref(), Ok(&formula));
    let json = Payload::json(&formula).expect("it can be written");
    assert_eq!(json.to_json::<Formula>().as_ref(), Ok(&formula));
    let small = Payload::json(&Formula::new(Expr::Word("a".into()))).expect("it can be written");
    assert_eq!(&small.bytes[..], br#"{"expr":{"type":"word","value":"a"}}"#);
}

#[test]
fn a_broken_constraint_of_a_union_is_told_with_its_path() {
    let large = Expr::Add(Box::new(unusual::Add::new(Expr::Number(10))));
    let error = Formula::new(Expr::List(vec![Expr::Number(1), large])).validate();
    let error = error.expect_err("too large");
    assert_eq!(&*error.path, "expr.value[1].value.left.value");
    let long = Formula::new(Expr::List(vec![Expr::Number(1); 4])).validate();
    assert_eq!(&*long.expect_err("too many").path, "expr.value");
}

/// A newer peer may know more variants. Its message is refused with the name that is not known.
#[test]
fn an_unknown_variant_is_an_error_that_names_it() {
    let payload = Payload {
        content_type: kumi_unison::wire::ContentType::Json,
        bytes: (&br#"{"expr":{"type":"hexagon","value":{"side":1}}}"#[..]).into(),
    };
    let error = payload.to_json::<Formula>().expect_err("it is unknown");
    assert!(
        error.to_string().contains("unknown variant `hexagon`"),
        "{error}"
    );
}

#[test]
fn defaults_of_every_kind_are_the_schemas() {
    let initial = Initial::default();
    assert_eq!(initial.empty, "");
    assert_eq!(
        initial.text,
        "\u{1F600} \\ \"q\" ${x} `b` {0}\r\n\t\u{2028}\0"
    );
    assert_eq!(initial.raw, "\\d\"\\n");
    assert!(initial.zero == 0.0 && initial.zero.is_sign_negative());
    assert_eq!((initial.huge, initial.whole), (1e300, 3.0));
    assert_eq!((initial.int, initial.least), ((1 << 53) - 1, 1 - (1 << 53)));
    assert_eq!(initial.before, Timestamp(-1));
    assert_eq!((initial.level, &initial.open), (Level::Self_, &Open::AB));
    assert!(!initial.no);
    assert_eq!(initial.validate(), Ok(()));
    // What is missing has its default, unless it is required as well.
    let read = |json: &str| serde_json::from_str::<Initial>(json);
    let given = read(r#"{"text":"t","open":"whatever"}"#).expect("it has what it needs");
    assert_eq!(given.open, Open::Unknown("whatever".into()));
    assert_eq!(given.raw, initial.raw);
    assert!(read(r#"{"text":"t"}"#).is_err());
}

fn cell(below: Option<unusual::Grid>) -> Cell {
    Cell {
        below,
        ..Cell::new(0)
    }
}

struct Quiet;

impl unusual::ABCService for Quiet {
    async fn get_some_thing(
        &self,
        call: Call<unusual::ABCPeer>,
        request: unusual::GetSomeThing,
    ) -> Result<unusual::GotIt, RemoteError> {
        call.peer.send_initial(&Initial::default()).await?;
        let cube = request.cells.map(|cells| [("x".to_owned(), cells)].into());
        Ok(unusual::GotIt {
            cube,
            initial: Some(Initial::default()),
        })
    }

    async fn wide(&self, _: Call<unusual::ABCPeer>, request: Wide) -> Result<Wide, RemoteError> {
        Ok(request)
    }

    async fn nothing(
        &self,
        _: Call<unusual::ABCPeer>,
        request: unusual::Nothing,
    ) -> Result<unusual::Nothing, RemoteError> {
        Ok(request)
    }

    async fn checked(&self, _: Call<unusual::ABCPeer>, _: Checked) -> Result<Checked, RemoteError> {
        Ok(Checked {
            bounded: Some(6),
            ..Checked::default()
        })
    }

    async fn mutual(
        &self,
        call: Call<unusual::ABCPeer>,
        request: unusual::Mutual,
    ) -> Result<(), RemoteError> {
        let event = unusual::Mutually {
            list: Some(vec![request.clone()]),
            ..unusual::Mutually::new(request)
        };
        call.peer.send_mutually(&event).await?;
        Ok(())
    }
}

impl unusual::QuietService for Quiet {}
impl unusual::LoudService for Quiet {}
impl unusual::OneWayService for Quiet {}

impl unusual::MixedService for Quiet {
    async fn gamma(&self, peer: &unusual::MixedPeer, _: unusual::Gamma) {
        let asked = peer.ask(&unusual::Ask {}).await;
        let alpha = asked.unwrap_or_else(|_| unusual::Alpha::new(-1));
        peer.send_alpha(&alpha).await.ok();
    }
}

impl unusual::PairService for Quiet {}

impl unusual::OldServiceService for Quiet {
    async fn do_it(
        &self,
        _: Call<unusual::OldServicePeer>,
        _: unusual::Alpha,
    ) -> Result<unusual::Beta, RemoteError> {
        Ok(unusual::Beta {})
    }

    async fn nothing_at_all(
        &self,
        _: Call<unusual::OldServicePeer>,
        _: unusual::NothingAtAll,
    ) -> Result<(), RemoteError> {
        Ok(())
    }

    async fn in_place(
        &self,
        _: Call<unusual::OldServicePeer>,
        request: unusual::Placed,
    ) -> Result<unusual::InPlaceResponse, RemoteError> {
        Ok(unusual::InPlaceResponse {
            y: Some(vec![Open::Unknown(request.x.to_string())]),
        })
    }
}

struct Asked;

impl unusual::MixedClientService for Asked {
    async fn ask(
        &self,
        _: Call<unusual::MixedClient>,
        _: unusual::Ask,
    ) -> Result<unusual::Alpha, RemoteError> {
        Ok(unusual::Alpha::new(7))
    }
}

async fn connected() -> unusual::UnusualQuicConnection {
    let registry = ChannelRegistry::new("unusual", unusual::UNUSUAL_PROTOCOL_VERSION, "test");
    unusual::register_a_b_c(&registry, Quiet);
    unusual::register_quiet(&registry, Quiet);
    unusual::register_loud(&registry, Quiet);
    unusual::register_mixed(&registry, Quiet);
    unusual::register_one_way(&registry, Quiet);
    unusual::register_pair(&registry, Quiet);
    unusual::register_old_service(&registry, Quiet);
    let client = MemoryClient::connect(&registry);
    within(unusual::UnusualQuicConnection::build(&client))
        .await
        .expect("every channel opens")
}

#[tokio::test]
async fn what_nests_arrives_in_both_formats() {
    let connection = connected().await;
    let cells = vec![
        vec![cell(Some(vec![vec![cell(None), cell(None)]]))],
        vec![cell(Some(vec![]))],
    ];
    let request = unusual::GetSomeThing {
        cells: Some(cells.clone()),
    };
    for handle in [connection.a_b_c(), connection.a_b_c().with_binary()] {
        let mut events = handle.event_streams();
        let got = within(handle.get_some_thing(&request))
            .await
            .expect("an answer");
        assert_eq!(got.cube, Some([("x".to_owned(), cells.clone())].into()));
        assert_eq!(got.initial, Some(Initial::default()));
        assert_eq!(
            within(events.initial.next()).await,
            Some(Ok(Initial::default()))
        );
        let inner = unusual::Mutually::new(unusual::Mutual::default());
        let mutual = unusual::Mutual {
            other: Some(Box::new(inner.clone())),
            others: Some([("o".to_owned(), inner)].into()),
        };
        within(handle.mutual(&mutual))
            .await
            .expect("it is answered");
        let heard = within(events.mutually.next()).await.expect("an event");
        let heard = heard.expect("a sound one");
        assert_eq!(
            (heard.list, heard.mutual),
            (Some(vec![mutual.clone()]), mutual)
        );
    }
    let refused = unusual::GetSomeThing {
        cells: Some(vec![vec![cell(Some(vec![vec![]]))]]),
    };
    let error = within(connection.a_b_c().get_some_thing(&refused)).await;
    let Err(NetworkError::Invalid(error)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(error.path, "cells[0][0].below[0]");
}

#[tokio::test]
async fn two_hundred_fields_and_none_at_all() {
    let connection = connected().await;
    let json: serde_json::Map<String, Value> = (0..200)
        .filter(|index| index % 3 == 0)
        .map(|index| (format!("field_{index}"), sample(index)))
        .collect();
    let wide: Wide = serde_json::from_value(Value::Object(json)).expect("all it needs");
    assert_eq!(wide.field_10, 10);
    assert_eq!(wide.field_190, 190);
    for handle in [connection.a_b_c(), connection.a_b_c().with_binary()] {
        assert_eq!(within(handle.wide(&wide)).await.as_ref(), Ok(&wide));
        let nothing = within(handle.nothing(&unusual::Nothing {})).await;
        assert_eq!(nothing, Ok(unusual::Nothing {}));
    }
}

/// A value for a field of `Wide`, whose types repeat every ten.
fn sample(index: usize) -> Value {
    match index % 10 {
        0 | 4 => index.into(),
        1 => "text".into(),
        2 => true.into(),
        3 => 0.5.into(),
        5 => "YQ==".into(),
        6 => Value::Null,
        7 => "mid-high".into(),
        8 => "unheard-of".into(),
        _ => vec!["x"].into(),
    }
}

/// The caller's side checks what arrives, so a server that breaks its own schema is found out.
#[tokio::test]
async fn an_answer_that_breaks_the_schema_is_refused() {
    let connection = connected().await;
    let answer = within(connection.a_b_c().checked(&Checked::default())).await;
    assert!(answer.is_err(), "{answer:?}");
}

#[tokio::test]
async fn older_forms_stand_beside_newer_ones() {
    let connection = connected().await;
    let mixed = connection.mixed();
    mixed.serve_requests(Asked);
    let mut events = mixed.event_streams();
    within(mixed.send_gamma(&unusual::Gamma {}))
        .await
        .expect("sent");
    assert_eq!(
        within(events.alpha.next()).await,
        Some(Ok(unusual::Alpha::new(7)))
    );
    let service = connection.old_service();
    let beta = within(service.do_it(&unusual::Alpha::new(1))).await;
    assert_eq!(beta, Ok(unusual::Beta {}));
    within(service.nothing_at_all(&unusual::NothingAtAll {}))
        .await
        .expect("nothing");
    let placed = within(service.in_place(&unusual::Placed::default())).await;
    assert_eq!(
        placed.expect("an answer").y,
        Some(vec![Open::Unknown("None".into())])
    );
}

#[test]
fn an_event_may_be_called_like_a_type() {
    let event = unusual::Int { n: Some(1) };
    let payload = Payload::json(&event).expect("it can be written");
    assert_eq!(payload.to_json::<unusual::Int>(), Ok(event));
    let free = Checked {
        anything: Some(Json(Value::Null)),
        ..Checked::default()
    };
    assert_eq!(free.validate(), Ok(()));
}
