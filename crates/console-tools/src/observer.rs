//! [`Observer`]: whoever follows a call while it runs.

/// Follows a call while it runs: shows what a command prints before the reply
/// has it.
pub trait Observer: std::fmt::Debug + Send + Sync + 'static {
    /// What a command has just printed, as it came: with escape codes, and cut
    /// anywhere. Called in order, and awaited by the command: return soon.
    fn output(&self, bytes: &[u8]);
}
