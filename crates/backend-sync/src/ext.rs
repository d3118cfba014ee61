//! Convenience methods without options: those of
//! [`BackendExt`](backend_core::BackendExt).

use backend_core::ops::{
    Content, EditOutcome, Entry, GlobResult, GrepResult, Listing, WriteOutcome,
};
use backend_core::{BackendExt as _, Result, VPath};
use bytes::Bytes;

use crate::backend::SyncBackend;

impl SyncBackend {
    /// Normalizes a path relative to the working directory. No I/O.
    ///
    /// # Errors
    ///
    /// `InvalidPath`.
    pub fn path(&self, path: impl AsRef<str>) -> Result<VPath> {
        self.backend.path(path)
    }

    /// Whether anything exists at `path`.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::exists`](backend_core::BackendExt::exists).
    pub fn exists(&self, path: impl AsRef<str>) -> Result<bool> {
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.exists(&path).await })
    }

    /// Whether there is a regular file at `path`.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::is_file`](backend_core::BackendExt::is_file).
    pub fn is_file(&self, path: impl AsRef<str>) -> Result<bool> {
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.is_file(&path).await })
    }

    /// Whether there is a directory at `path`.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::is_dir`](backend_core::BackendExt::is_dir).
    pub fn is_dir(&self, path: impl AsRef<str>) -> Result<bool> {
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.is_dir(&path).await })
    }

    /// Describes the entry at `path`.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::metadata`](backend_core::BackendExt::metadata).
    pub fn metadata(&self, path: impl AsRef<str>) -> Result<Entry> {
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.metadata(&path).await })
    }

    /// Reads a whole file.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::read_bytes`](backend_core::BackendExt::read_bytes).
    pub fn read_bytes(&self, path: impl AsRef<str>) -> Result<Bytes> {
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.read_bytes(&path).await })
    }

    /// Reads a whole file that must be UTF-8.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::read_to_string`](backend_core::BackendExt::read_to_string).
    pub fn read_to_string(&self, path: impl AsRef<str>) -> Result<String> {
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.read_to_string(&path).await })
    }

    /// Writes a file, replacing an existing one.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::write_file`](backend_core::BackendExt::write_file).
    pub fn write_file(
        &self,
        path: impl AsRef<str>,
        content: impl Into<Content>,
    ) -> Result<WriteOutcome> {
        let content: Content = content.into();
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.write_file(&path, content).await })
    }

    /// Writes a file that must not exist yet.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::write_new_file`](backend_core::BackendExt::write_new_file).
    pub fn write_new_file(
        &self,
        path: impl AsRef<str>,
        content: impl Into<Content>,
    ) -> Result<WriteOutcome> {
        let content: Content = content.into();
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.write_new_file(&path, content).await })
    }

    /// Replaces the only occurrence of `old`.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::replace_text`](backend_core::BackendExt::replace_text).
    pub fn replace_text(
        &self,
        path: impl AsRef<str>,
        old: impl Into<String>,
        new: impl Into<String>,
    ) -> Result<EditOutcome> {
        let (path, old, new): (_, String, String) =
            (path.as_ref().to_owned(), old.into(), new.into());
        self.with(|backend| async move { backend.replace_text(&path, old, new).await })
    }

    /// Lists a directory.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::list_dir`](backend_core::BackendExt::list_dir).
    pub fn list_dir(&self, path: impl AsRef<str>) -> Result<Listing> {
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.list_dir(&path).await })
    }

    /// Creates a directory and its missing parents.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::create_dir_all`](backend_core::BackendExt::create_dir_all).
    pub fn create_dir_all(&self, path: impl AsRef<str>) -> Result<()> {
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.create_dir_all(&path).await })
    }

    /// Finds files below the working directory.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::find_files`](backend_core::BackendExt::find_files).
    pub fn find_files(&self, pattern: impl Into<String>) -> Result<GlobResult> {
        let pattern: String = pattern.into();
        self.with(|backend| async move { backend.find_files(pattern).await })
    }

    /// Finds lines in the files below the working directory.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::search_text`](backend_core::BackendExt::search_text).
    pub fn search_text(&self, pattern: impl Into<String>) -> Result<GrepResult> {
        let pattern: String = pattern.into();
        self.with(|backend| async move { backend.search_text(pattern).await })
    }

    /// Deletes a file.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::delete_file`](backend_core::BackendExt::delete_file).
    pub fn delete_file(&self, path: impl AsRef<str>) -> Result<()> {
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.delete_file(&path).await })
    }

    /// Deletes a directory and its contents.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::delete_tree`](backend_core::BackendExt::delete_tree).
    pub fn delete_tree(&self, path: impl AsRef<str>) -> Result<()> {
        let path = path.as_ref().to_owned();
        self.with(|backend| async move { backend.delete_tree(&path).await })
    }

    /// Moves a file or directory to a path that must not exist.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::move_to`](backend_core::BackendExt::move_to).
    pub fn move_to(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<()> {
        let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
        self.with(|backend| async move { backend.move_to(&from, &to).await })
    }

    /// Copies a file to a path that must not exist.
    ///
    /// # Errors
    ///
    /// See [`BackendExt::copy_to`](backend_core::BackendExt::copy_to).
    pub fn copy_to(&self, from: impl AsRef<str>, to: impl AsRef<str>) -> Result<()> {
        let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
        self.with(|backend| async move { backend.copy_to(&from, &to).await })
    }
}
