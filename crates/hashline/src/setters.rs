//! [`setters!`]: the setters of options.

/// Writes, in an impl block, setters of public fields that take and return the struct by value.
macro_rules! setters {
    ($($(#[$doc:meta])+ $field:ident($value:ident: $type:ty),)+) => {$(
        $(#[$doc])+
        #[must_use]
        pub const fn $field(mut self, $value: $type) -> Self {
            self.$field = $value;
            self
        }
    )+};
}

pub(crate) use setters;
