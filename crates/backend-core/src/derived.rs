//! Operations derived from simpler ones, for backends without a better
//! implementation.
//!
//! A backend that can `stat`, `ls`, `read`, `write`, `create_dir` and `delete`
//! implements the rest of [`Backend`](crate::Backend) in one line each,
//!
//! ```text
//! async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
//!     glob_by_walk(self, query).await
//! }
//! ```
//!
//! or all of it at once with [`derived_backend!`](crate::derived_backend).
//!
//! The derived functions follow the contract, errors included, at the price of moving whole files
//! through the caller: `grep_by_read` holds one file in memory at a time. A backend
//! whose data is remote should run these operations where the data is.

mod files;
mod macros;
mod search;

pub use files::{
    check_destination, copy_by_read, edit_by_write, edit_bytes, refuse_into_itself,
    refuse_working_dir, rename_by_copy, resolve_without_links, text_by_read,
};
pub use search::{glob_by_walk, grep_by_file, grep_by_read};
