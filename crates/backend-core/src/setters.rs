//! [`setters!`]: the setters of option structs.

/// Writes, in an impl block, setters of fields that take and return the struct by value. A
/// field may also be an `Option` of the setter's type. With `fn`, a block makes the change.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($(#[$doc:meta])+ $field:ident: $type:ty),+ $(,)?) => {$(
        $(#[$doc])+
        #[must_use]
        pub fn $field(mut self, $field: $type) -> Self {
            self.$field = $field.into();
            self
        }
    )+};
    ($($(#[$doc:meta])+ fn $name:ident($self:ident, $($argument:tt)+) $change:block)+) => {$(
        $(#[$doc])+
        #[must_use]
        pub fn $name(mut $self, $($argument)+) -> Self {
            $change
            $self
        }
    )+};
}

pub(crate) use setters;
