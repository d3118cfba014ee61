//! [`Observer`]: follows a call while it runs.

/// Receives the output of a command before the reply contains it.
pub trait Observer: std::fmt::Debug + Send + Sync + 'static {
    /// Receives raw output of a command: with escape codes, and split at any byte.
    /// Called in order. The command waits for it, so return soon.
    fn output(&self, bytes: &[u8]);
}
