// Generated from protocol shop by kumi-schema. Changes belong into the schema.

/// Version of the protocol. Peers whose first numbers differ refuse each other.
#[allow(dead_code, unreachable_pub)]
pub const SHOP_PROTOCOL_VERSION: &str = "1.1.0";

/// Hash over the whole protocol.
#[allow(dead_code, unreachable_pub)]
pub const SHOP_PROTOCOL_HASH: [u8; 32] = [
    0x66, 0xd0, 0x65, 0xb3, 0x64, 0x2d, 0x6f, 0xce, 0x90, 0xa5, 0x50, 0x73, 0xb6, 0x87,
    0xaa, 0x96, 0xe1, 0xbd, 0x91, 0x4a, 0x23, 0xf9, 0x7f, 0x19, 0xf4, 0xfd, 0x96, 0xf2,
    0xd4, 0xb2, 0x87, 0xc1,
];

/// Message Ask.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Ask {
    /// Field item.
    pub item: String,
    /// Field currency.
    #[serde(default = "Ask::default_currency")]
    pub currency: String,
}

#[allow(dead_code, unreachable_pub)]
impl Ask {
    /// A message with what it has to have, and nothing else.
    pub fn new(item: impl Into<String>) -> Self {
        Self {
            item: item.into(),
            currency: Self::default_currency(),
        }
    }

    fn default_currency() -> String {
        "EUR".to_owned()
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.currency;
            ::kumi_unison::typed::check::min_length(value.chars().count(), 3)
                .map_err(|problem| problem.at("currency"))?;
            ::kumi_unison::typed::check::max_length(value.chars().count(), 3)
                .map_err(|problem| problem.at("currency"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Ask {
    const NAME: &'static str = "Ask";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ask::validate(self)
    }
}

/// Message Price.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Price {
    /// Field cents.
    pub cents: i64,
    /// Field until.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<::kumi_unison::Timestamp>,
}

#[allow(dead_code, unreachable_pub)]
impl Price {
    /// A message with what it has to have, and nothing else.
    pub fn new(cents: i64) -> Self {
        Self { cents, until: None }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        {
            let value = &self.cents;
            ::kumi_unison::typed::check::at_least(value, &0)
                .map_err(|problem| problem.at("cents"))?;
        }
        Ok(())
    }
}

impl ::kumi_unison::Message for Price {
    const NAME: &'static str = "Price";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Price::validate(self)
    }
}

/// Message Changed.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct Changed {
    /// Field item.
    pub item: String,
}

#[allow(dead_code, unreachable_pub)]
impl Changed {
    /// A message with what it has to have, and nothing else.
    pub fn new(item: impl Into<String>) -> Self {
        Self { item: item.into() }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for Changed {
    const NAME: &'static str = "Changed";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Changed::validate(self)
    }
}

/// Message SoldOut.
#[derive(
    Clone,
    Debug,
    PartialEq,
    ::kumi_unison::serde::Serialize,
    ::kumi_unison::serde::Deserialize,
    ::kumi_unison::rkyv::Archive,
    ::kumi_unison::rkyv::Serialize,
    ::kumi_unison::rkyv::Deserialize
)]
#[serde(crate = "::kumi_unison::serde")]
#[rkyv(crate = ::kumi_unison::rkyv)]
#[allow(dead_code, unreachable_pub)]
pub struct SoldOut {
    /// Field item.
    pub item: String,
}

#[allow(dead_code, unreachable_pub)]
impl SoldOut {
    /// A message with what it has to have, and nothing else.
    pub fn new(item: impl Into<String>) -> Self {
        Self { item: item.into() }
    }

    /// Checks every constraint of the schema.
    ///
    /// Fails with the path of the first field that breaks one. Requests are checked before they are sent, and everything is checked when it arrives.
    pub fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        Ok(())
    }
}

impl ::kumi_unison::Message for SoldOut {
    const NAME: &'static str = "SoldOut";
    fn validate(&self) -> Result<(), ::kumi_unison::ValidationError> {
        SoldOut::validate(self)
    }
}

/// Hash over channel `prices`. Peers with the same hash may use the binary format.
#[allow(dead_code, unreachable_pub)]
pub const PRICES_CHANNEL_HASH: [u8; 32] = [
    0x04, 0xd3, 0x80, 0x54, 0x98, 0x3c, 0x57, 0x24, 0x71, 0x4d, 0xdd, 0xbf, 0xc1, 0x8b,
    0x89, 0xe8, 0x7f, 0xf1, 0x31, 0x04, 0x29, 0x22, 0x8a, 0xd9, 0xb7, 0xb9, 0xb4, 0x87,
    0xd7, 0x4a, 0x4c, 0x1a,
];

/// What channel `prices` is, for a server that offers it.
#[allow(dead_code, unreachable_pub)]
pub fn prices_spec() -> ::kumi_unison::ChannelSpec {
    ::kumi_unison::ChannelSpec::new("prices")
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(PRICES_CHANNEL_HASH, SHOP_PROTOCOL_VERSION))
}

/// With what a client opens channel `prices`.
#[allow(dead_code, unreachable_pub)]
pub fn prices_options() -> ::kumi_unison::ChannelOptions {
    ::kumi_unison::ChannelOptions::new()
        .direction(::kumi_unison::ChannelDirection::ClientToServer)
        .lifetime(::kumi_unison::Lifetime::Persistent)
        .delivery(::kumi_unison::Delivery::Reliable)
        .event_policy(::kumi_unison::EventPolicy::DropOldest)
        .schema(::kumi_unison::SchemaId::new(PRICES_CHANNEL_HASH, SHOP_PROTOCOL_VERSION))
}

/// The client's side of channel `prices`.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct PricesClient {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl PricesClient {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Asks `Ask`.
    ///
    /// Idempotent: it is sent again when the connection breaks before its answer came.
    pub async fn ask(
        &self,
        request: &Ask,
    ) -> Result<Price, ::kumi_unison::NetworkError> {
        self.channel.call("Ask", request, true).await
    }

    /// Every `Changed`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn changed_events(&self) -> ::kumi_unison::EventStream<Changed> {
        self.channel.events("Changed")
    }

    /// Every `SoldOut`, from now on.
    ///
    /// While the stream lives, these events come to it and to nobody else. Events of other names wait for somebody to take them; `event_streams` takes all of them at once.
    pub fn sold_out_events(&self) -> ::kumi_unison::EventStream<SoldOut> {
        self.channel.events("SoldOut")
    }

    /// A stream for every event of the channel.
    ///
    /// Whatever has no stream, because it is unknown or its stream was dropped, is thrown away on arrival.
    pub fn event_streams(&self) -> PricesEventStreams {
        let streams = PricesEventStreams {
            changed: self.changed_events(),
            sold_out: self.sold_out_events(),
        };
        self.raw_channel().discard_events();
        streams
    }
}

impl From<::kumi_unison::UnisonChannel> for PricesClient {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// The server's side of channel `prices`: one client that has it open.
///
/// Clones are the same channel.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct PricesPeer {
    channel: ::kumi_unison::TypedChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl PricesPeer {
    /// A handle on an open channel, which speaks JSON.
    pub fn from_channel(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self {
            channel: ::kumi_unison::TypedChannel::new(channel),
        }
    }

    /// The same channel in the binary format, which takes no detour over JSON.
    ///
    /// Both sides need the same schema hash; otherwise what is sent is refused.
    #[must_use]
    pub fn with_binary(mut self) -> Self {
        self.channel = self.channel.binary();
        self
    }

    /// The same channel, with other options for its calls, such as a deadline.
    #[must_use]
    pub fn with_options(mut self, options: ::kumi_unison::CallOptions) -> Self {
        self.channel = self.channel.options(options);
        self
    }

    /// The channel beneath.
    pub fn raw_channel(&self) -> &::kumi_unison::UnisonChannel {
        self.channel.channel()
    }

    /// Sends `Changed`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_changed(
        &self,
        event: &Changed,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("Changed", event).await
    }

    /// Sends `SoldOut`.
    ///
    /// What happens when the other side does not keep up is the channel's policy.
    pub async fn send_sold_out(
        &self,
        event: &SoldOut,
    ) -> Result<(), ::kumi_unison::NetworkError> {
        self.channel.emit("SoldOut", event).await
    }
}

impl From<::kumi_unison::UnisonChannel> for PricesPeer {
    fn from(channel: ::kumi_unison::UnisonChannel) -> Self {
        Self::from_channel(channel)
    }
}

/// A stream for every event that the server sends on channel `prices`.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct PricesEventStreams {
    /// Every `Changed`.
    pub changed: ::kumi_unison::EventStream<Changed>,
    /// Every `SoldOut`.
    pub sold_out: ::kumi_unison::EventStream<SoldOut>,
}

/// What a server does on channel `prices`.
///
/// One value serves all clients; methods run at the same time.
#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
pub trait PricesService: Send + Sync + 'static {
    /// Answers `Ask`.
    ///
    /// Idempotent: it may come twice, and has to mean the same as once.
    fn ask(
        &self,
        call: ::kumi_unison::Call<PricesPeer>,
        request: Ask,
    ) -> impl ::core::future::Future<
        Output = Result<Price, ::kumi_unison::RemoteError>,
    > + Send;
    /// A client has opened the channel.
    ///
    /// Runs beside everything else, and is dropped when the channel ends; a loop that sends events may live here.
    fn channel_opened(
        &self,
        peer: PricesPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }

    /// The channel of a client has ended.
    fn channel_closed(
        &self,
        peer: &PricesPeer,
    ) -> impl ::core::future::Future<Output = ()> + Send {
        let _ = peer;
        async {}
    }
}

/// Offers channel `prices` at a server, answered by an implementation.
#[allow(dead_code, unreachable_pub)]
pub fn register_prices<S: PricesService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    implementation: S,
) {
    register_prices_with(server, prices_spec(), implementation);
}

/// As `register_prices`, with more than the schema says, such as what happens to events of a slow client.
#[allow(dead_code, unreachable_pub)]
pub fn register_prices_with<S: PricesService>(
    server: &impl AsRef<::kumi_unison::ChannelRegistry>,
    spec: ::kumi_unison::ChannelSpec,
    implementation: S,
) {
    let implementation = ::std::sync::Arc::new(implementation);
    server
        .as_ref()
        .register_channel_with(
            spec,
            move |
                _: ::std::sync::Arc<::kumi_unison::ConnectionContext>,
                channel: ::kumi_unison::UnisonChannel|
            serve_prices(::std::sync::Arc::clone(&implementation), channel),
        );
}

#[allow(dead_code, unreachable_pub)]
async fn serve_prices<S: PricesService>(
    implementation: ::std::sync::Arc<S>,
    channel: ::kumi_unison::UnisonChannel,
) -> Result<(), ::kumi_unison::NetworkError> {
    let peer = PricesPeer::from_channel(channel.clone());
    let answering = ::std::sync::Arc::clone(&implementation);
    channel
        .set_service(move |request: ::kumi_unison::IncomingRequest| {
            let implementation = ::std::sync::Arc::clone(&answering);
            async move {
                match request.method() {
                    "Ask" => {
                        ::kumi_unison::typed::answer(
                                request,
                                |call, message| PricesService::ask(
                                    &*implementation,
                                    call,
                                    message,
                                ),
                            )
                            .await
                    }
                    other => Err(::kumi_unison::RemoteError::method_not_found(other)),
                }
            }
        });
    let events = async {
        while ::kumi_unison::typed::next_event(&channel).await?.is_some() {}
        Ok(())
    };
    let beside = async {
        if !channel.is_own_stream() {
            implementation.channel_opened(peer.clone()).await;
        }
    };
    let outcome = ::kumi_unison::typed::run_beside(events, beside).await;
    if !channel.is_own_stream() {
        implementation.channel_closed(&peer).await;
    }
    outcome
}

/// Any event that the server sends on channel `prices`.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, clippy::enum_variant_names)]
#[allow(dead_code, unreachable_pub)]
pub enum PricesServerEvent {
    /// `Changed`
    Changed(Changed),
    /// `SoldOut`
    SoldOut(SoldOut),
}

impl From<Changed> for PricesServerEvent {
    fn from(message: Changed) -> Self {
        Self::Changed(message)
    }
}

impl From<SoldOut> for PricesServerEvent {
    fn from(message: SoldOut) -> Self {
        Self::SoldOut(message)
    }
}

/// Every channel of protocol `shop` inside one process, as its client holds them.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct ShopConnection {
    /// Channel `prices`.
    pub prices: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RequestChannel<Ask, Price>,
        ::kumi_unison::ReceiveChannel<PricesServerEvent>,
    >,
}

/// Every channel of protocol `shop` inside one process, as its server holds them.
#[derive(Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct ShopServerConnection {
    /// Channel `prices`.
    pub prices: ::kumi_unison::ServiceChannel<
        ::kumi_unison::RespondChannel<Ask, Price>,
        ::kumi_unison::SendChannel<PricesServerEvent>,
    >,
}

#[allow(dead_code, unreachable_pub)]
impl ShopConnection {
    /// Both ends of a connection. Each channel holds up to `capacity` messages each way; a full one makes its sender wait.
    pub fn pair(capacity: usize) -> (Self, ShopServerConnection) {
        let (requests, answers) = <::kumi_unison::RequestChannel<
            Ask,
            Price,
        >>::pair(capacity);
        let (near, far) = <::kumi_unison::ReceiveChannel<
            PricesServerEvent,
        >>::pair(capacity);
        let prices_client = ::kumi_unison::ServiceChannel {
            requests,
            events: near,
        };
        let prices_server = ::kumi_unison::ServiceChannel {
            requests: answers,
            events: far,
        };
        (
            Self { prices: prices_client },
            ShopServerConnection {
                prices: prices_server,
            },
        )
    }
}

/// Every channel of protocol `shop`, open on a connection.
///
/// A field is the channel itself, a method of the same name its typed handle.
#[derive(Clone, Debug)]
#[allow(dead_code, unreachable_pub)]
pub struct ShopQuicConnection {
    /// Channel `prices`.
    pub prices: ::kumi_unison::UnisonChannel,
}

#[allow(
    clippy::new_ret_no_self,
    clippy::should_implement_trait,
    clippy::wrong_self_convention
)]
#[allow(dead_code, unreachable_pub)]
impl ShopQuicConnection {
    /// Channel `prices`, typed.
    pub fn prices(&self) -> PricesClient {
        PricesClient::from_channel(self.prices.clone())
    }
}

/// Opens every channel of protocol `shop`.
#[allow(dead_code, unreachable_pub)]
pub trait ShopConnectionBuilder {
    /// Opens every channel at once, in one round trip, and waits until the server has agreed to each.
    ///
    /// Fails, with none left open, when one of them is refused.
    fn build<C: ::kumi_unison::ChannelSource + ?Sized>(
        client: &C,
    ) -> impl ::core::future::Future<
        Output = Result<ShopQuicConnection, ::kumi_unison::NetworkError>,
    > + Send;
}

impl ShopConnectionBuilder for ShopQuicConnection {
    async fn build<C: ::kumi_unison::ChannelSource + ?Sized>(
        client: &C,
    ) -> Result<Self, ::kumi_unison::NetworkError> {
        let [prices] = ::kumi_unison::open_channels(
                client,
                [("prices", prices_options())],
            )
            .await?;
        Ok(Self { prices })
    }
}
