//! The owner of a file.

/// The owner of a file, and the permissions of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileOwner {
    /// Whether the owner is the user that runs this program.
    pub(crate) is_own: bool,
    /// Whether the owner is root.
    pub(crate) is_root: bool,
    /// The mode bits.
    pub(crate) mode: u32,
}
