//! [`setters!`]: the setters of option structs.

/// Writes, in an impl block, setters of public fields that take and return the struct by value.
macro_rules! setters {
    ($($(#[$doc:meta])+ $field:ident: $type:ty),+ $(,)?) => {$(
        $(#[$doc])+
        #[must_use]
        pub fn $field(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    )+};
}

pub(crate) use setters;
