//! [`setters!`]: the methods of builders.

/// Writes, in an impl block, public methods that change the builder and return it.
macro_rules! setters {
    ($($(#[$attribute:meta])+ fn $name:ident($self:ident, $($argument:tt)+) $change:block)+) => {$(
        $(#[$attribute])+
        pub fn $name(mut $self, $($argument)+) -> Self {
            $change
            $self
        }
    )+};
}

pub(crate) use setters;
