//! Search as pure code: the glob and grep dialects, the rules for what is skipped,
//! and the one walk that every backend uses.
//!
//! Nothing here opens a file. [`Walk`] says which directory to list and which
//! ignore file to read next, and its driver (an in-memory store, a real directory,
//! a remote one) does that and passes the result back. [`GrepWorker`] searches
//! bytes it is given. So hidden files, ignore files, generated directories,
//! exclusion, order and the regular expression dialect cannot differ between backends.

mod collect;
mod compile;
pub(crate) mod exclude;
mod generated;
mod glob;
mod glob_set;
mod grep;
mod ignore_rules;
mod walk;

pub use collect::GlobCollector;
pub use exclude::{Exclude, ExcludeAction, ExcludeRule, ExcludeState};
pub use generated::{GENERATED_DIRECTORIES, is_generated};
pub use glob::{Glob, GlobError};
pub use glob_set::GlobSet;
pub use grep::{Grep, GrepCollector, GrepPatternError, GrepWorker, SkipReason};
pub use walk::{Child, Step, Walk, WalkOptions};
