//! The list of a model's faults, each of which turns one step of the protocol into the mistake that it names.

macro_rules! plants {
    ($($name:ident, $group:literal, $within:literal, $says:literal;)*) => {
        /// One mistake, or none.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum Plant {
            /// The protocol as it is meant.
            None,
            $(#[doc = $says] $name,)*
        }

        /// All mistakes: the part of the protocol that each belongs to, the random runs within which it must be
        /// found, and what is done wrong. One within 0 runs is harmless: it must find nothing.
        pub(super) const PLANTS: &[(Plant, &str, u64, &str)] =
            &[$((Plant::$name, $group, $within, $says),)*];
    };
}
