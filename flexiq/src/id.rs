//! The shape of all ids: a UUID, made by whoever has one to give, and shown as such.

/// An id of its own type: a UUID of version 7, unless it is made of given bytes.
macro_rules! id {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(::uuid::Uuid);

        impl $name {
            /// A new id, unlike any other.
            #[allow(clippy::new_without_default, reason = "two defaults would differ")]
            pub fn new() -> Self {
                Self(::uuid::Uuid::now_v7())
            }

            /// The sixteen bytes of the UUID.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The id of these sixteen bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(::uuid::Uuid::from_bytes(bytes))
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

pub(crate) use id;
