//! [`Links`]: whether an operation follows symbolic links.

/// The treatment of symbolic links in the path of an operation.
///
/// A guard first calls with `Refuse`. Only if that fails with
/// [`ErrorKind::IsALink`](crate::ErrorKind::IsALink) does it resolve the path,
/// check the target, and operate on exactly that target, again with `Refuse`. So
/// the path that was checked is the path that is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Links {
    /// Follow links that stay inside the backend's namespace.
    #[default]
    Follow,
    /// Fail with `IsALink` if any link would have to be followed.
    Refuse,
}
