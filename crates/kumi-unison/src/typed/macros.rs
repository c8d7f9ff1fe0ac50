//! What generated code has in common with all generated code and cannot have by a generic type alone: implementations for
//! types of its own.

/// Makes a handle on a channel of `struct X(TypedChannel<X>)`: it is made from a [`UnisonChannel`](crate::UnisonChannel) or a
/// [`TypedChannel`](crate::TypedChannel), and has the methods of the typed channel.
#[macro_export]
macro_rules! typed_handle {
    ($handle:ident) => {
        #[allow(dead_code, unreachable_pub)]
        impl $handle {
            /// A handle on an open channel, whose messages are JSON.
            pub fn from_channel(channel: $crate::UnisonChannel) -> Self {
                Self(::core::convert::From::from(channel))
            }
        }

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

/// Implements [`Message`](crate::Message) for a type by its own `validate`. With `unconstrained` the type gets a `validate`
/// that accepts every value.
#[macro_export]
macro_rules! typed_message {
    ($message:ident, $name:literal) => {
        impl $crate::Message for $message {
            const NAME: &'static str = $name;

            fn validate(&self) -> ::core::result::Result<(), $crate::ValidationError> {
                $message::validate(self)
            }
        }
    };
    ($message:ident, $name:literal, unconstrained) => {
        #[allow(dead_code, unreachable_pub)]
        impl $message {
            /// The schema has no constraints for this message: it accepts every value.
            pub fn validate(&self) -> ::core::result::Result<(), $crate::ValidationError> {
                ::core::result::Result::Ok(())
            }
        }

        $crate::typed_message!($message, $name);
    };
}

/// Converts messages into the variants of an enum: `typed_variants!(Event { Posted(Posted), Left(Left) })`.
#[macro_export]
macro_rules! typed_variants {
    ($sum:ident { $($variant:ident($message:ty)),* $(,)? }) => {
        $(
            impl ::core::convert::From<$message> for $sum {
                fn from(message: $message) -> Self {
                    Self::$variant(message)
                }
            }
        )*
    };
}
