//! What all generated code has in common and cannot have by a generic type alone: the items of a schema as tables.
//!
//! Each macro declares the items that belong together. They expect the crate under the name `unison`, as in
//! `use kumi_unison as unison;`, because serde takes its path as a text.

/// Declares messages. A message has serde's and rkyv's derives, `validate`, and [`Message`](crate::Message).
///
/// Attributes stand in this order, each at most once: `#[name = ".."]` is the name on the wire where it is not the
/// identifier; `#[derive(..)]` adds one derive; `#[serde(..)]` is serde's; `#[check(..)]` is a rule of
/// [`check`](crate::typed::check).
///
/// ```
/// use kumi_unison as unison;
///
/// unison::typed_messages! {
///     /// A person.
///     pub struct User {
///         #[check(length(1..=64))]
///         pub name: String,
///         #[serde(skip_serializing_if = "Option::is_none")]
///         #[check(some(range(0..=150)))]
///         pub age: Option<i64>,
///     }
/// }
///
/// let user = User { name: "ann".into(), age: Some(200) };
/// assert_eq!(user.validate().unwrap_err().to_string(), "age: it is more than 150");
/// ```
#[macro_export]
macro_rules! typed_messages {
    ($(
        $(#[doc = $doc:literal])*
        $(#[name = $name:literal])?
        $(#[derive($more:ident)])?
        $(#[serde($($container:tt)*)])?
        pub struct $message:ident {$(
            $(#[doc = $field_doc:literal])*
            $(#[name = $field_name:literal])?
            $(#[serde($($serde:tt)*)])?
            $(#[check($($check:tt)*)])?
            pub $field:ident: $ty:ty,
        )*}
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq $(, $more)?)]
        #[derive($crate::serde::Serialize, $crate::serde::Deserialize)]
        #[derive($crate::rkyv::Archive, $crate::rkyv::Serialize, $crate::rkyv::Deserialize)]
        #[serde(crate = "unison::serde")]
        $(#[serde($($container)*)])?
        #[rkyv(crate = $crate::rkyv)]
        // A message may hold itself, so that bounds are not inferred from the fields. These are what any archive offers.
        #[rkyv(serialize_bounds(
            __S: $crate::rkyv::ser::Writer + $crate::rkyv::ser::Allocator,
            __S::Error: $crate::rkyv::rancor::Source
        ))]
        #[rkyv(deserialize_bounds(__D::Error: $crate::rkyv::rancor::Source))]
        #[rkyv(bytecheck(bounds(
            __C: $crate::rkyv::validation::ArchiveContext,
            __C::Error: $crate::rkyv::rancor::Source
        )))]
        pub struct $message {$(
            $(#[doc = $field_doc])*
            $(#[serde(rename = $field_name)])?
            $(#[serde($($serde)*)])?
            #[rkyv(omit_bounds)]
            pub $field: $ty,
        )*}

        impl $message {
            /// Checks every constraint of the schema.
            ///
            /// # Errors
            /// With the path of the first field that breaks one.
            pub fn validate(&self) -> ::core::result::Result<(), $crate::ValidationError> {
                #[allow(unused_imports)]
                use $crate::typed::check::{both, each, field, length, matching, range, some, valid};
                $(
                    let name = $crate::typed_name!($field $($field_name)?);
                    $(field(name, &self.$field, $($check)*)?;)?
                    field(name, &self.$field, valid)?;
                )*
                ::core::result::Result::Ok(())
            }
        }

        impl $crate::typed::check::Valid for $message {
            fn valid(&self) -> ::core::result::Result<(), $crate::ValidationError> {
                $message::validate(self).map_err($crate::ValidationError::inside)
            }
        }

        impl $crate::Message for $message {
            const NAME: &'static str = $crate::typed_name!($message $($name)?);

            fn validate(&self) -> ::core::result::Result<(), $crate::ValidationError> {
                $message::validate(self)
            }
        }
    )*};
}

/// A name on the wire: the literal, or the identifier without the `r#` of a keyword.
#[doc(hidden)]
#[macro_export]
macro_rules! typed_name {
    ($identifier:ident) => {
        $crate::typed::plain_name(stringify!($identifier))
    };
    ($identifier:ident $name:literal) => {
        $name
    };
}

/// Declares enums of a schema, whose values are texts on the wire. With `..Unknown` at its end an enum is open: a value
/// that is not listed is kept in that variant. Without, it is an error of the reader.
///
/// ```
/// use kumi_unison as unison;
///
/// unison::typed_enums! {
///     pub enum Role { Guest = "guest", Admin = "admin" }
///     pub enum Mood { Good = "good", ..Unknown }
/// }
///
/// assert_eq!(Role::LISTED.map(|role| role.to_string()), ["guest", "admin"]);
/// assert_eq!(Mood::Unknown("fair".into()).as_str(), "fair");
/// ```
#[macro_export]
macro_rules! typed_enums {
    ($( $(#[doc = $doc:literal])* pub enum $name:ident { $($body:tt)* } )*) => {$(
        $crate::typed_enum! { [$(#[doc = $doc])*] $name { $($body)* } }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::typed::check::Valid for $name {
            fn valid(&self) -> ::core::result::Result<(), $crate::ValidationError> {
                ::core::result::Result::Ok(())
            }
        }
    )*};
}

/// One enum of [`typed_enums!`](crate::typed_enums).
#[doc(hidden)]
#[macro_export]
macro_rules! typed_enum {
    ([$(#[$doc:meta])*] $name:ident {$(
        $(#[doc = $variant_doc:literal])* $variant:ident = $text:literal
    ),* $(,)?}) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[derive($crate::serde::Serialize, $crate::serde::Deserialize)]
        #[derive($crate::rkyv::Archive, $crate::rkyv::Serialize, $crate::rkyv::Deserialize)]
        #[serde(crate = "unison::serde")]
        #[rkyv(crate = $crate::rkyv)]
        pub enum $name {$(
            $(#[doc = $variant_doc])*
            #[serde(rename = $text)]
            $variant,
        )*}

        $crate::typed_enum! { @methods $name { $($variant = $text),* } {} }
    };
    ([$(#[$doc:meta])*] $name:ident {
        $($(#[doc = $variant_doc:literal])* $variant:ident = $text:literal,)* ..$unknown:ident
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[derive($crate::serde::Serialize, $crate::serde::Deserialize)]
        #[derive($crate::rkyv::Archive, $crate::rkyv::Serialize, $crate::rkyv::Deserialize)]
        #[serde(crate = "unison::serde")]
        #[rkyv(crate = $crate::rkyv)]
        pub enum $name {
            $($(#[doc = $variant_doc])* #[serde(rename = $text)] $variant,)*
            /// A value that the schema does not list, as it came.
            #[serde(untagged)]
            $unknown(String),
        }

        $crate::typed_enum! { @methods $name { $($variant = $text),* } { $unknown } }
    };
    (@methods $name:ident { $($variant:ident = $text:literal),* } { $($unknown:ident)? }) => {
        impl $name {
            /// The values that the schema lists, in its order.
            pub const LISTED: [Self; <[&str]>::len(&[$($text),*])] = [$(Self::$variant),*];

            /// The value on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    $(Self::$unknown(value) => value,)?
                }
            }
        }
    };
}

/// Declares unions of a schema: `{"type": "circle", "value": ..}` in JSON. A variant that is not listed is an error of
/// the reader.
///
/// ```
/// use kumi_unison as unison;
///
/// unison::typed_unions! {
///     pub enum Shape {
///         #[check(range(0.0..))]
///         Circle(f64) = "circle",
///         Named(String) = "named",
///     }
/// }
///
/// assert_eq!(Shape::Circle(-1.0).validate().unwrap_err().path, "value");
/// ```
#[macro_export]
macro_rules! typed_unions {
    ($(
        $(#[doc = $doc:literal])*
        pub enum $union:ident {$(
            $(#[doc = $variant_doc:literal])*
            $(#[check($($check:tt)*)])?
            $variant:ident($(#[serde($($serde:tt)*)])? $ty:ty) = $name:literal,
        )*}
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[derive($crate::serde::Serialize, $crate::serde::Deserialize)]
        #[derive($crate::rkyv::Archive, $crate::rkyv::Serialize, $crate::rkyv::Deserialize)]
        #[serde(crate = "unison::serde", tag = "type", content = "value")]
        #[rkyv(crate = $crate::rkyv)]
        #[rkyv(serialize_bounds(
            __S: $crate::rkyv::ser::Writer + $crate::rkyv::ser::Allocator,
            __S::Error: $crate::rkyv::rancor::Source
        ))]
        #[rkyv(deserialize_bounds(__D::Error: $crate::rkyv::rancor::Source))]
        #[rkyv(bytecheck(bounds(
            __C: $crate::rkyv::validation::ArchiveContext,
            __C::Error: $crate::rkyv::rancor::Source
        )))]
        pub enum $union {$(
            $(#[doc = $variant_doc])*
            #[serde(rename = $name)]
            $variant($(#[serde($($serde)*)])? #[rkyv(omit_bounds)] $ty),
        )*}

        impl $union {
            /// Checks every constraint of the schema.
            ///
            /// # Errors
            /// With the path of the first value that breaks one.
            pub fn validate(&self) -> ::core::result::Result<(), $crate::ValidationError> {
                #[allow(unused_imports)]
                use $crate::typed::check::{both, each, field, length, matching, range, some, valid};
                match self {$(
                    Self::$variant(value) => {
                        $(field("value", value, $($check)*)?;)?
                        field("value", value, valid)
                    }
                )*}
            }
        }

        impl $crate::typed::check::Valid for $union {
            fn valid(&self) -> ::core::result::Result<(), $crate::ValidationError> {
                $union::validate(self).map_err($crate::ValidationError::inside)
            }
        }
    )*};
}

/// Declares enums over the messages of a channel. `Join(Joined)` also converts from its message; `Join[Joined]`, whose
/// message another variant has too, does not; `Leave` holds none.
#[macro_export]
macro_rules! typed_sums {
    ($(
        $(#[doc = $doc:literal])*
        pub enum $sum:ident {$(
            $variant:ident $(($message:ty))? $([$shared:ty])?
        ),* $(,)?}
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $sum {$(
            #[doc = concat!("`", stringify!($variant), "`")]
            $variant $(($message))? $(($shared))?,
        )*}

        $($(
            impl ::core::convert::From<$message> for $sum {
                fn from(message: $message) -> Self {
                    Self::$variant(message)
                }
            }
        )?)*
    )*};
}

/// Declares a handle on a channel, around a [`TypedChannel`](crate::TypedChannel), whose methods it has too. `requests` are
/// those that its side sends, `sends` its events, `streams` the events of the other side.
#[macro_export]
macro_rules! typed_handle {
    (
        $(#[doc = $doc:literal])*
        pub struct $handle:ident;
        $(requests {$(
            $(#[doc = $request_doc:literal])*
            $request:ident($question:ty) -> $answer:ty = $request_name:literal $($idempotent:ident)?;
        )*})?
        $(sends {$(
            $(#[doc = $send_doc:literal])*
            $send:ident($sent:ty) = $sent_name:literal;
        )*})?
        $(streams $streams:ident {$(
            $(#[doc = $event_doc:literal])*
            $event:ident($received:ty) = $received_name:literal, $stream:ident;
        )*})?
    ) => {
        $(#[doc = $doc])*
        ///
        /// Clones are the same channel.
        #[derive(Clone, Debug)]
        pub struct $handle($crate::TypedChannel<Self>);

        impl $handle {
            /// A handle on an open channel, whose messages are JSON.
            pub fn from_channel(channel: $crate::UnisonChannel) -> Self {
                Self(::core::convert::From::from(channel))
            }

            $($(
                $(#[doc = $request_doc])*
                #[doc = concat!("\n\nSends request `", $request_name, "` and waits for the response.")]
                $(#[doc = concat!("\n\nIt is ", stringify!($idempotent), ": it is sent again when the connection breaks before the response.")])?
                pub async fn $request(
                    &self,
                    request: &$question,
                ) -> ::core::result::Result<$answer, $crate::NetworkError> {
                    let idempotent = !<[&str]>::is_empty(&[$(stringify!($idempotent))?]);
                    self.0.call($request_name, request, idempotent).await
                }
            )*)?

            $($(
                $(#[doc = $send_doc])*
                #[doc = concat!("\n\nSends event `", $sent_name, "`. The channel's policy says what happens without credit.")]
                pub async fn $send(&self, event: &$sent) -> ::core::result::Result<(), $crate::NetworkError> {
                    self.0.emit($sent_name, event).await
                }
            )*)?

            $(
                $(
                    $(#[doc = $event_doc])*
                    #[doc = concat!("\n\nReceives `", $received_name, "` from now on.")]
                    ///
                    /// While the stream lives, these events come to it alone. Events of other names wait until they are
                    /// received, up to half of the window while this stream is waited on; then the oldest are dropped and
                    /// counted. `event_streams` takes all of them at once.
                    pub fn $stream(&self) -> $crate::EventStream<$received> {
                        self.0.events($received_name)
                    }
                )*

                /// A stream for every event of the channel. An event that has no stream, because it is unknown or its
                /// stream was dropped, is discarded on arrival.
                pub fn event_streams(&self) -> $streams {
                    let streams = $streams { $($event: self.$stream()),* };
                    self.raw_channel().discard_events();
                    streams
                }
            )?
        }

        $(
            /// A stream for every event that the server sends on the channel.
            #[derive(Debug)]
            pub struct $streams {$(
                $(#[doc = $event_doc])*
                #[doc = concat!("\n\nReceives `", $received_name, "`.")]
                pub $event: $crate::EventStream<$received>,
            )*}
        )?

        impl ::core::convert::From<$crate::UnisonChannel> for $handle {
            fn from(channel: $crate::UnisonChannel) -> Self {
                Self::from_channel(channel)
            }
        }

        impl ::core::convert::From<$crate::TypedChannel<$handle>> for $handle {
            fn from(channel: $crate::TypedChannel<$handle>) -> Self {
                Self(channel)
            }
        }

        impl ::core::ops::Deref for $handle {
            type Target = $crate::TypedChannel<$handle>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
    };
}

/// Declares the trait of a channel's server, and the functions that register an implementation.
#[macro_export]
macro_rules! typed_service {
    (
        $(#[doc = $doc:literal])*
        pub trait $service:ident for $peer:ident;
        pub fn $register:ident, $register_with:ident = $spec:ident;
        $(requests {$(
            $(#[doc = $request_doc:literal])*
            $request:ident($question:ty) -> $answer:ty = $request_name:literal $($idempotent:ident)?;
        )*})?
        $(events {$(
            $(#[doc = $event_doc:literal])*
            $event:ident($received:ty) = $received_name:literal;
        )*})?
    ) => {
        $(#[doc = $doc])*
        ///
        /// One value serves all clients; methods run at the same time.
        pub trait $service: ::core::marker::Send + ::core::marker::Sync + 'static {
            $($(
                $(#[doc = $request_doc])*
                #[doc = concat!("\n\nResponds to request `", $request_name, "`.")]
                $(#[doc = concat!("\n\nIt is ", stringify!($idempotent), ": it may arrive twice, with the same effect as once.")])?
                fn $request(
                    &self,
                    call: $crate::Call<$peer>,
                    request: $question,
                ) -> impl ::core::future::Future<
                    Output = ::core::result::Result<$answer, $crate::RemoteError>,
                > + ::core::marker::Send;
            )*)?

            $($(
                $(#[doc = $event_doc])*
                #[doc = concat!("\n\nHandles event `", $received_name, "`.")]
                /// Events of one client are handled one after the other. By default they are ignored.
                fn $event(
                    &self,
                    peer: &$peer,
                    event: $received,
                ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
                    let _ = (peer, event);
                    async {}
                }
            )*)?

            /// A client has opened the channel. The future runs beside everything else, and is dropped when the channel
            /// ends; a loop that sends events may run here.
            fn channel_opened(
                &self,
                peer: $peer,
            ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
                let _ = peer;
                async {}
            }

            /// The channel of a client has ended.
            fn channel_closed(
                &self,
                peer: &$peer,
            ) -> impl ::core::future::Future<Output = ()> + ::core::marker::Send {
                let _ = peer;
                async {}
            }
        }

        impl<__S: $service> $crate::typed::ServedBy<__S> for $peer {
            $(
                const RESPONDS: bool = true;

                async fn respond(
                    service: &__S,
                    request: $crate::IncomingRequest,
                ) -> ::core::result::Result<$crate::Payload, $crate::RemoteError> {
                    $crate::typed_response!(__S, service, request, { $($request_name => $request),* })
                }
            )?

            $(
                async fn event(service: &__S, peer: &Self, message: $crate::ProtocolMessage) {
                    $(
                        if let ::core::option::Option::Some(event) =
                            $crate::typed::event_named(&message, $received_name)
                        {
                            return __S::$event(service, peer, event).await;
                        }
                    )*
                }
            )?

            async fn opened(service: &__S, peer: Self) {
                __S::channel_opened(service, peer).await;
            }

            async fn closed(service: &__S, peer: &Self) {
                __S::channel_closed(service, peer).await;
            }
        }

        /// Registers the channel at a server, served by an implementation.
        pub fn $register<__S: $service>(
            server: &impl ::core::convert::AsRef<$crate::ChannelRegistry>,
            implementation: __S,
        ) {
            $register_with(server, $spec(), implementation);
        }

        /// As the function above, with more than the schema says, such as what happens to events of a slow client.
        pub fn $register_with<__S: $service>(
            server: &impl ::core::convert::AsRef<$crate::ChannelRegistry>,
            spec: $crate::ChannelSpec,
            implementation: __S,
        ) {
            $crate::typed::register::<$peer, __S>(server, spec, implementation);
        }
    };
}

/// Declares the trait of a client that responds to the server's requests. `serve_requests` of the handle takes it.
#[macro_export]
macro_rules! typed_client_service {
    (
        $(#[doc = $doc:literal])*
        pub trait $service:ident for $client:ident;
        requests {$(
            $(#[doc = $request_doc:literal])*
            $request:ident($question:ty) -> $answer:ty = $request_name:literal $($idempotent:ident)?;
        )*}
    ) => {
        $(#[doc = $doc])*
        pub trait $service: ::core::marker::Send + ::core::marker::Sync + 'static {$(
            $(#[doc = $request_doc])*
            #[doc = concat!("\n\nResponds to request `", $request_name, "`.")]
            fn $request(
                &self,
                call: $crate::Call<$client>,
                request: $question,
            ) -> impl ::core::future::Future<
                Output = ::core::result::Result<$answer, $crate::RemoteError>,
            > + ::core::marker::Send;
        )*}

        impl<__S: $service> $crate::typed::RespondsBy<__S> for $client {
            async fn respond(
                service: &__S,
                request: $crate::IncomingRequest,
            ) -> ::core::result::Result<$crate::Payload, $crate::RemoteError> {
                $crate::typed_response!(__S, service, request, { $($request_name => $request),* })
            }
        }
    };
}

/// Hands a request to the method of its name. Methods are named with the type, because `clone` and the like are methods of
/// a reference too.
#[doc(hidden)]
#[macro_export]
macro_rules! typed_response {
    ($service:ident, $value:ident, $request:ident, { $($name:literal => $method:ident),* }) => {
        match $request.method() {
            $($name => {
                $crate::typed::answer($request, |call, message| {
                    $service::$method($value, call, message)
                })
                .await
            })*
            other => ::core::result::Result::Err($crate::RemoteError::method_not_found(other)),
        }
    };
}

/// Declares all channels of a protocol together: open on a connection of any transport, with the trait that opens them,
/// and in memory, with `pair`. A line per channel: its handle, its name and options, and the client's half in memory.
#[macro_export]
macro_rules! typed_connection {
    (
        $(#[doc = $doc:literal])*
        pub struct $channels:ident, $quic:ident, $builder:ident, $connection:ident, $server:ident;
        $(
            $(#[doc = $channel_doc:literal])*
            $channel:ident: $client:ident = $name:literal, $options:ident, $half:ty;
        )*
    ) => {
        $(#[doc = $doc])*
        ///
        /// All channels of the protocol, open on a connection. A field is the channel itself, a method of the same name
        /// its typed handle.
        #[derive(Clone, Debug)]
        pub struct $channels {$(
            $(#[doc = $channel_doc])*
            #[doc = concat!("\n\nChannel `", $name, "`.")]
            pub $channel: $crate::UnisonChannel,
        )*}

        impl $channels {$(
            $(#[doc = $channel_doc])*
            #[doc = concat!("\n\nChannel `", $name, "`, typed.")]
            pub fn $channel(&self) -> $client {
                $client::from_channel(self.$channel.clone())
            }
        )*}

        /// Another name of the same, whatever the transport.
        pub type $quic = $channels;

        /// Opens every channel of the protocol.
        pub trait $builder {
            /// Opens every channel at once, in one round trip, and waits until the server has accepted each.
            ///
            /// # Errors
            /// When one of them is refused. None is left open then.
            fn build<__C: $crate::ChannelSource + ?Sized>(
                client: &__C,
            ) -> impl ::core::future::Future<
                Output = ::core::result::Result<$channels, $crate::NetworkError>,
            > + ::core::marker::Send;
        }

        impl $builder for $channels {
            async fn build<__C: $crate::ChannelSource + ?Sized>(
                client: &__C,
            ) -> ::core::result::Result<Self, $crate::NetworkError> {
                let [$($channel),*] = $crate::open_channels(client, [$(($name, $options())),*]).await?;
                ::core::result::Result::Ok(Self { $($channel),* })
            }
        }

        $(#[doc = $doc])*
        ///
        /// All channels of the protocol inside one process, as the client holds them.
        #[derive(Debug)]
        pub struct $connection {$(
            $(#[doc = $channel_doc])*
            #[doc = concat!("\n\nChannel `", $name, "`.")]
            pub $channel: $half,
        )*}

        $(#[doc = $doc])*
        ///
        /// All channels of the protocol inside one process, as the server holds them.
        #[derive(Debug)]
        pub struct $server {$(
            $(#[doc = $channel_doc])*
            #[doc = concat!("\n\nChannel `", $name, "`.")]
            pub $channel: <$half as $crate::local::Half>::Other,
        )*}

        impl $connection {
            /// Both ends of a connection. Each channel holds up to `capacity` messages each way; a full one makes its
            /// sender wait.
            pub fn pair(capacity: usize) -> (Self, $server) {
                $(let $channel = <$half as $crate::local::Half>::pair(capacity);)*
                (Self { $($channel: $channel.0),* }, $server { $($channel: $channel.1),* })
            }
        }
    };
}
