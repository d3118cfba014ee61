//! [`PathLayer`]: a layer of a policy that judges by path.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use backend_core::VPath;
use backend_core::search::Exclude;

use crate::access::Kind;
use crate::action::{Action, Op};
use crate::verdict::Verdict;

/// A layer of a [`Policy`](crate::Policy) that judges accesses by path, beside the rules.
/// `backend-mounts` has one. A layer never weakens another: the strongest verdict counts.
pub trait PathLayer: Any + fmt::Debug + Send + Sync {
    /// Returns the verdict about an access to a path. `bytes` is the size that the file
    /// has or is to have, if known.
    fn judge(&self, op: Op, path: &VPath, kind: Kind, bytes: Option<u64>) -> Verdict;

    /// Returns the most lenient action that `op` can get for any path.
    fn most_lenient(&self, op: Op) -> Action;

    /// Returns the strongest action that `op` could get for an entry beneath `directory`.
    /// It may be too strong, but never too weak.
    fn strongest_beneath(&self, op: Op, directory: &VPath) -> Action;

    /// Returns the maximum size of a file at `path`.
    fn max_file_bytes(&self, path: &VPath) -> Option<u64>;

    /// Returns the entries that `ls`, `glob` or `grep` must leave out of its results, once
    /// the questions raised by [`judge`](Self::judge) are answered.
    fn exclude(&self, op: Op) -> Exclude;

    /// Returns an id. Equal layers have equal ids, in every process.
    fn id(&self) -> String;
}

/// Returns whether a layer has this type.
pub(super) fn is<L: PathLayer>(layer: &Arc<dyn PathLayer>) -> bool {
    (&**layer as &dyn Any).is::<L>()
}
