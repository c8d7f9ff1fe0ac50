//! Peers that were generated from different versions of a schema: what `kumi schema diff` calls safe works, and what it
//! calls breaking is refused.

use super::super::versions::{v1_0, v1_1, v2_0};
use super::lab::{Listening, Over, lose_connection, over_both, within};
use kumi_schema::{Difference, Schema};
use kumi_unison::{Call, NetworkError, ProtocolServer, RemoteError, SchemaId, StreamItem};
use std::path::Path;
// The generated modules each have a trait of these names.
use v1_0::ShopConnectionBuilder as _;
use v1_1::ShopConnectionBuilder as _;
use v2_0::ShopConnectionBuilder as _;

over_both!(
    the_same_schema_speaks_every_format,
    an_older_client_speaks_json_with_a_newer_server,
    a_newer_client_speaks_json_with_an_older_server,
    another_major_version_is_refused,
);

/// A shop in which everything costs as many cents as its name is long.
struct Shop;

impl v1_0::PricesService for Shop {
    async fn ask(
        &self,
        call: Call<v1_0::PricesPeer>,
        request: v1_0::Ask,
    ) -> Result<v1_0::Price, RemoteError> {
        let changed = v1_0::Changed::new(request.item.clone());
        call.peer.send_changed(&changed).await?;
        Ok(v1_0::Price::new(request.item.len() as i64))
    }
}

impl v1_1::PricesService for Shop {
    async fn ask(
        &self,
        call: Call<v1_1::PricesPeer>,
        request: v1_1::Ask,
    ) -> Result<v1_1::Price, RemoteError> {
        assert_eq!(request.currency, "EUR");
        let sold_out = v1_1::SoldOut::new("everything else");
        call.peer.send_sold_out(&sold_out).await?;
        let changed = v1_1::Changed::new(request.item.clone());
        call.peer.send_changed(&changed).await?;
        Ok(v1_1::Price {
            until: Some(kumi_unison::Timestamp(0)),
            ..v1_1::Price::new(request.item.len() as i64)
        })
    }
}

impl v2_0::PricesService for Shop {
    async fn ask(
        &self,
        _: Call<v2_0::PricesPeer>,
        request: v2_0::Ask,
    ) -> Result<v2_0::Price, RemoteError> {
        Ok(v2_0::Price::new(request.item))
    }
}

fn server() -> ProtocolServer {
    ProtocolServer::new("shop", "1.0.0", "test")
}

async fn the_same_schema_speaks_every_format(over: Over) {
    let server = server();
    v1_0::register_prices(&server, Shop);
    let listening = Listening::start(over, server);
    let client = listening.client().await;
    let shop = v1_0::ShopQuicConnection::build(&*client)
        .await
        .expect("open");
    assert!(shop.prices.typed_allowed());
    let mut changed = shop.prices().changed_events();
    for prices in [shop.prices(), shop.prices().with_binary()] {
        let price = prices.ask(&v1_0::Ask::new("pen")).await;
        assert_eq!(price, Ok(v1_0::Price::new(3)));
        assert_eq!(changed.next().await, Some(Ok(v1_0::Changed::new("pen"))));
    }
}

async fn an_older_client_speaks_json_with_a_newer_server(over: Over) {
    let server = server();
    v1_1::register_prices(&server, Shop);
    let listening = Listening::start(over, server);
    let client = listening.client().await;
    let shop = v1_0::ShopQuicConnection::build(&*client)
        .await
        .expect("the same major version");
    let prices = shop.prices();
    let mut streams = prices.event_streams();
    // The field and the event that it does not know are passed over.
    let price = prices.ask(&v1_0::Ask::new("pen")).await;
    assert_eq!(price, Ok(v1_0::Price::new(3)));
    assert_eq!(
        streams.changed.next().await,
        Some(Ok(v1_0::Changed::new("pen")))
    );
    assert!(!shop.prices.typed_allowed());
    let refused = prices.with_binary().ask(&v1_0::Ask::new("pen")).await;
    assert_eq!(refused, Err(NetworkError::TypedRefused));
}

async fn a_newer_client_speaks_json_with_an_older_server(over: Over) {
    let server = server();
    v1_0::register_prices(&server, Shop);
    let listening = Listening::start(over, server);
    let client = listening.client().await;
    let shop = v1_1::ShopQuicConnection::build(&*client)
        .await
        .expect("the same major version");
    let price = shop.prices().ask(&v1_1::Ask::new("pen")).await;
    assert_eq!(price, Ok(v1_1::Price::new(3)));
    let binary = shop.prices().with_binary();
    let refused = binary.ask(&v1_1::Ask::new("pen")).await;
    assert_eq!(refused, Err(NetworkError::TypedRefused));
}

fn assert_mismatch<T: std::fmt::Debug>(outcome: Result<T, NetworkError>, ours: &str, theirs: &str) {
    let text = match outcome {
        Err(error @ NetworkError::SchemaMismatch { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(text.contains(ours) && text.contains(theirs), "{text}");
}

async fn another_major_version_is_refused(over: Over) {
    let server = server();
    v2_0::register_prices(&server, Shop);
    let listening = Listening::start(over, server);
    let client = listening.client().await;
    let shop = v1_0::ShopQuicConnection::build(&*client).await;
    assert_mismatch(shop, "1.0.0", "2.0.0");
    let shop = v1_1::ShopQuicConnection::build(&*client).await;
    assert_mismatch(shop, "1.1.0", "2.0.0");
    let shop = v2_0::ShopQuicConnection::build(&*client)
        .await
        .expect("the same version");
    let price = shop.prices().with_binary().ask(&v2_0::Ask::new(7)).await;
    assert_eq!(price, Ok(v2_0::Price::new(7)));
}

#[tokio::test]
async fn schemas_are_compared_again_on_every_connection() {
    let server = server();
    v1_0::register_prices(&server, Shop);
    let listening = Listening::start(Over::Quic, server);
    let client = listening.quic_client().await;
    let shop = within(v1_0::ShopQuicConnection::build(&client))
        .await
        .expect("open");
    let binary = shop.prices().with_binary();
    let mut changed = shop.prices().changed_events();
    let ask = v1_0::Ask::new("pen");
    assert_eq!(within(binary.ask(&ask)).await, Ok(v1_0::Price::new(3)));
    assert!(matches!(
        within(changed.recv()).await,
        Ok(StreamItem::Event(_))
    ));

    // The server learns the next minor version: JSON goes on, the binary format does not.
    v1_1::register_prices(&listening.registry, Shop);
    lose_connection(&client);
    assert_eq!(within(changed.recv()).await, Ok(StreamItem::Resumed));
    let refused = within(binary.ask(&ask)).await;
    assert_eq!(refused, Err(NetworkError::TypedRefused));
    assert_eq!(
        within(shop.prices().ask(&ask)).await,
        Ok(v1_0::Price::new(3))
    );
    assert!(matches!(
        within(changed.recv()).await,
        Ok(StreamItem::Event(_))
    ));

    // And then the next major version, with which this client cannot speak at all.
    v2_0::register_prices(&listening.registry, Shop);
    lose_connection(&client);
    assert_mismatch(within(changed.recv()).await, "1.0.0", "2.0.0");
    assert_mismatch(within(shop.prices().ask(&ask)).await, "1.0.0", "2.0.0");
}

#[test]
fn what_the_peers_do_is_what_the_comparison_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../crates/kumi-schema/tests/schemas/versions");
    let load =
        |name: &str| Schema::load(folder.join(name)).unwrap_or_else(|errors| panic!("{errors}"));
    let [first, minor, major] = ["v1_0.kdl", "v1_1.kdl", "v2_0.kdl"].map(load);
    let safe = Difference::between(&first, &minor);
    assert!(!safe.changes.is_empty() && !safe.is_breaking(), "{safe:?}");
    let breaking = Difference::between(&minor, &major);
    assert!(breaking.is_breaking() && !breaking.breaks_unannounced());
    let id = |hash: [u8; 32], version: &'static str| SchemaId::new(hash, version);
    assert_ne!(
        id(v1_0::PRICES_CHANNEL_HASH, v1_0::SHOP_PROTOCOL_VERSION),
        id(v1_1::PRICES_CHANNEL_HASH, v1_1::SHOP_PROTOCOL_VERSION)
    );
}
