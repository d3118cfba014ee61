//! Convenience methods without options: those of
//! [`BackendExt`](backend_core::BackendExt).

use backend_core::ops::{
    Content, EditOutcome, Entry, GlobResult, GrepResult, Listing, WriteOutcome,
};
use backend_core::{BackendExt as _, Result, VPath};
use bytes::Bytes;

use crate::backend::SyncBackend;

/// Writes, in an impl block, blocking calls of the methods of `BackendExt`. `;` stands
/// between paths and other arguments.
macro_rules! convenience_calls {
    ($(
        $(#[$doc:meta])+
        $method:ident($($path:ident),*; $($value:ident: $type:ty),*) -> $output:ty;
    )+) => {$(
        $(#[$doc])+
        ///
        #[doc = concat!(
            "See [`BackendExt::", stringify!($method), "`](backend_core::BackendExt::",
            stringify!($method), ")."
        )]
        pub fn $method(
            &self,
            $($path: impl AsRef<str>,)*
            $($value: impl Into<$type>),*
        ) -> Result<$output> {
            $(let $path = $path.as_ref().to_owned();)*
            $(let $value: $type = $value.into();)*
            self.with(|backend| async move { backend.$method($(&$path,)* $($value),*).await })
        }
    )+};
}

impl SyncBackend {
    /// Normalizes a path relative to the working directory; see
    /// [`BackendExt::path`](backend_core::BackendExt::path). No I/O.
    pub fn path(&self, path: impl AsRef<str>) -> Result<VPath> {
        self.backend.path(path)
    }

    convenience_calls! {
        /// Whether anything exists at `path`.
        exists(path;) -> bool;

        /// Whether there is a regular file at `path`.
        is_file(path;) -> bool;

        /// Whether there is a directory at `path`.
        is_dir(path;) -> bool;

        /// Describes the entry at `path`.
        metadata(path;) -> Entry;

        /// Reads a whole file.
        read_bytes(path;) -> Bytes;

        /// Reads a whole file that must be UTF-8.
        read_to_string(path;) -> String;

        /// Writes a file, replacing an existing one.
        write_file(path; content: Content) -> WriteOutcome;

        /// Writes a file that must not exist yet.
        write_new_file(path; content: Content) -> WriteOutcome;

        /// Replaces the only occurrence of `old`.
        replace_text(path; old: String, new: String) -> EditOutcome;

        /// Lists a directory.
        list_dir(path;) -> Listing;

        /// Creates a directory and its missing parents.
        create_dir_all(path;) -> ();

        /// Finds files below the working directory.
        find_files(; pattern: String) -> GlobResult;

        /// Finds lines in the files below the working directory.
        search_text(; pattern: String) -> GrepResult;

        /// Deletes a file.
        delete_file(path;) -> ();

        /// Deletes a directory and its contents.
        delete_tree(path;) -> ();

        /// Moves a file or directory to a path that must not exist.
        move_to(from, to;) -> ();

        /// Copies a file to a path that must not exist.
        copy_to(from, to;) -> ();
    }
}
