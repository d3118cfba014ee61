//! [`View`]: the paths that a policy keeps from a command.

use crate::capability::Enforcement;
use crate::search::Exclude;
use crate::setters::setters;

/// The paths that a policy keeps from a command, as data.
///
/// A sandbox at the level [`Enforcement::View`] starts the command where these rules
/// hold for every program that it runs, whatever its words are. At a lower level they
/// are not enforced, and the command runs unless more is [`required`](Self::required).
///
/// ```
/// use backend_core::Enforcement;
/// use backend_core::ops::{Command, View};
/// use backend_core::search::Exclude;
///
/// let view = View::new(Exclude::hide([".env"])?, Exclude::none()).required(Enforcement::View);
/// let command = Command::new("cat .env").view(view);
/// assert!(!command.view.is_empty());
/// # Ok::<(), backend_core::search::GlobError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct View {
    /// Paths that it can neither read nor change.
    pub deny_read: Exclude,
    /// Paths that it can read and not change.
    pub deny_write: Exclude,
    /// The answer to a denied file that has another name.
    pub hard_links: HardLinks,
    /// The lowest level at which the command may run.
    pub required: Enforcement,
}

/// The answer to a denied file that has several hard links, of which any may be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum HardLinks {
    /// The command is refused, and the error names the file.
    #[default]
    Refuse,
    /// The command runs, and what it can reach under another name is not kept from it.
    Accept,
}

impl View {
    /// Creates a view that keeps these paths from a command, if the sandbox can.
    pub fn new(deny_read: Exclude, deny_write: Exclude) -> Self {
        Self {
            deny_read,
            deny_write,
            ..Self::default()
        }
    }

    setters! {
        /// Sets the answer to a denied file that has another name.
        hard_links: HardLinks,
        /// Sets the lowest level at which the command may run.
        required: Enforcement,
    }

    /// Whether no path is kept from the command.
    pub fn is_empty(&self) -> bool {
        self.deny_read.is_none() && self.deny_write.is_none()
    }

    /// Returns the view that keeps from a command what this or `other` does. The
    /// stricter answer and the higher required level count.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let refuses =
            [self, other].map(|view| !view.is_empty() && view.hard_links == HardLinks::Refuse);
        Self {
            deny_read: self.deny_read.and(&other.deny_read),
            deny_write: self.deny_write.and(&other.deny_write),
            hard_links: match refuses {
                [false, false] if !(self.is_empty() && other.is_empty()) => HardLinks::Accept,
                _ => HardLinks::Refuse,
            },
            required: self.required.max(other.required),
        }
    }
}
