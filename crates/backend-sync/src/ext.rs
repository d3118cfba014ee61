//! Plain verbs for callers who need no options: those of
//! [`BackendExt`](backend_core::BackendExt).

use backend_core::ops::{
    Content, EditOutcome, Entry, GlobResult, GrepResult, Listing, WriteOutcome,
};
use backend_core::{BackendExt as _, Result, VPath};
use bytes::Bytes;

use crate::SyncBackend;

impl SyncBackend {
    /// Folds a path, relative to the working directory. No I/O.
    ///
    /// # Errors
    ///
    /// `InvalidPath`.
    pub fn path(&self, path: &str) -> Result<VPath> {
        self.backend.path(path)
    }

    /// Whether a regular file stands at `path`.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::exists`](backend_core::BackendExt::exists).
    pub fn exists(&self, path: &str) -> Result<bool> {
        let path = path.to_owned();
        self.with(|backend| async move { backend.exists(&path).await })
    }

    /// Describes what stands at `path`.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::describe`](backend_core::BackendExt::describe).
    pub fn describe(&self, path: &str) -> Result<Entry> {
        let path = path.to_owned();
        self.with(|backend| async move { backend.describe(&path).await })
    }

    /// Reads a whole file.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::read_bytes`](backend_core::BackendExt::read_bytes).
    pub fn read_bytes(&self, path: &str) -> Result<Bytes> {
        let path = path.to_owned();
        self.with(|backend| async move { backend.read_bytes(&path).await })
    }

    /// Reads a whole file that must be UTF-8.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::read_string`](backend_core::BackendExt::read_string).
    pub fn read_string(&self, path: &str) -> Result<String> {
        let path = path.to_owned();
        self.with(|backend| async move { backend.read_string(&path).await })
    }

    /// Writes a file, replacing what is there.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::write_file`](backend_core::BackendExt::write_file).
    pub fn write_file(&self, path: &str, content: impl Into<Content>) -> Result<WriteOutcome> {
        let content: Content = content.into();
        let path = path.to_owned();
        self.with(|backend| async move { backend.write_file(&path, content).await })
    }

    /// Writes a file that must not exist yet.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::write_new_file`](backend_core::BackendExt::write_new_file).
    pub fn write_new_file(&self, path: &str, content: impl Into<Content>) -> Result<WriteOutcome> {
        let content: Content = content.into();
        let path = path.to_owned();
        self.with(|backend| async move { backend.write_new_file(&path, content).await })
    }

    /// Replaces the one place where `old` stands.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::replace_text`](backend_core::BackendExt::replace_text).
    pub fn replace_text(&self, path: &str, old: &str, new: &str) -> Result<EditOutcome> {
        let (path, old, new) = (path.to_owned(), old.to_owned(), new.to_owned());
        self.with(|backend| async move { backend.replace_text(&path, &old, &new).await })
    }

    /// Lists a directory.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::list_dir`](backend_core::BackendExt::list_dir).
    pub fn list_dir(&self, path: &str) -> Result<Listing> {
        let path = path.to_owned();
        self.with(|backend| async move { backend.list_dir(&path).await })
    }

    /// Finds files beneath the working directory.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::find_files`](backend_core::BackendExt::find_files).
    pub fn find_files(&self, pattern: &str) -> Result<GlobResult> {
        let pattern = pattern.to_owned();
        self.with(|backend| async move { backend.find_files(&pattern).await })
    }

    /// Finds lines in the files beneath the working directory.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::search_text`](backend_core::BackendExt::search_text).
    pub fn search_text(&self, pattern: &str) -> Result<GrepResult> {
        let pattern = pattern.to_owned();
        self.with(|backend| async move { backend.search_text(&pattern).await })
    }

    /// Deletes a file.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::delete_file`](backend_core::BackendExt::delete_file).
    pub fn delete_file(&self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.with(|backend| async move { backend.delete_file(&path).await })
    }

    /// Deletes a directory and all it holds.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::delete_tree`](backend_core::BackendExt::delete_tree).
    pub fn delete_tree(&self, path: &str) -> Result<()> {
        let path = path.to_owned();
        self.with(|backend| async move { backend.delete_tree(&path).await })
    }

    /// Moves a file or directory to where nothing is.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::move_to`](backend_core::BackendExt::move_to).
    pub fn move_to(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.with(|backend| async move { backend.move_to(&from, &to).await })
    }

    /// Copies a file to where nothing is.
    ///
    /// # Errors
    ///
    /// As [`BackendExt::copy_to`](backend_core::BackendExt::copy_to).
    pub fn copy_to(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.with(|backend| async move { backend.copy_to(&from, &to).await })
    }
}
