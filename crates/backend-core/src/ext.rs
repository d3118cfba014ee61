//! [`BackendExt`]: plain verbs for callers who need no options.

use async_trait::async_trait;
use bytes::Bytes;

use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::ops::{
    Content, CopyOptions, DeleteOptions, EditOptions, EditOutcome, Entry, GlobQuery, GlobResult,
    GrepQuery, GrepResult, Listing, LsOptions, ReadOptions, RenameOptions, StatOptions, WriteMode,
    WriteOptions, WriteOutcome,
};
use crate::path::VPath;
use crate::text::Edit;

/// Conveniences on every [`Backend`]. They take paths as strings, relative ones
/// from the working directory, and use the default options.
///
/// Nobody implements this trait but this crate, so that a wrapper cannot lose
/// what it wraps.
///
/// ```
/// # use backend_core::{Backend, Result};
/// use backend_core::BackendExt as _;
///
/// async fn bump(backend: &dyn Backend) -> Result<()> {
///     backend.write_file("notes/version.txt", "version = 1\n").await?;
///     backend.replace_text("notes/version.txt", "= 1", "= 2").await?;
///     assert_eq!(backend.read_string("notes/version.txt").await?, "version = 2\n");
///     assert!(backend.exists("notes/version.txt").await?);
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait BackendExt: Backend {
    /// Folds a path, relative to the working directory.
    ///
    /// # Errors
    ///
    /// `InvalidPath`.
    fn path(&self, path: &str) -> Result<VPath> {
        Ok(self.working_dir().join(path)?)
    }

    /// Whether a regular file stands at `path`. False for directories and for
    /// paths that are missing, invalid, or denied to [`stat`](Backend::stat). A
    /// file that can be seen exists, also if it cannot be read.
    ///
    /// # Errors
    ///
    /// Only what says nothing about the path, such as `Unavailable`.
    async fn exists(&self, path: &str) -> Result<bool> {
        let found = match self.path(path) {
            Ok(path) => self.stat(&path, StatOptions::default()).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(entry) => Ok(entry.is_file()),
            Err(error) => match error.kind() {
                ErrorKind::NotFound
                | ErrorKind::NotADirectory
                | ErrorKind::IsALink
                | ErrorKind::InvalidPath
                | ErrorKind::InvalidInput
                | ErrorKind::PermissionDenied
                | ErrorKind::ApprovalRequired => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Describes what stands at `path`. See [`Backend::stat`].
    ///
    /// # Errors
    ///
    /// As [`Backend::stat`].
    async fn describe(&self, path: &str) -> Result<Entry> {
        self.stat(&self.path(path)?, StatOptions::default()).await
    }

    /// Reads a whole file. See [`Backend::read`].
    ///
    /// # Errors
    ///
    /// As [`Backend::read`].
    async fn read_bytes(&self, path: &str) -> Result<Bytes> {
        let path = self.path(path)?;
        Ok(self.read(&path, ReadOptions::default()).await?.data)
    }

    /// Reads a whole file that must be UTF-8. See [`Backend::read`].
    ///
    /// # Errors
    ///
    /// As [`Backend::read`]; `NotText` if it is not UTF-8.
    async fn read_string(&self, path: &str) -> Result<String> {
        let path = self.path(path)?;
        let bytes = self.read(&path, ReadOptions::default()).await?.data;
        String::from_utf8(bytes.into()).map_err(|error| {
            Error::new(
                ErrorKind::NotText,
                "the file is not UTF-8 text; read it as bytes",
            )
            .with_source(error)
            .at(Operation::Read, &path)
            .on(self.info().name)
        })
    }

    /// Writes a file, replacing what is there. See [`Backend::write`].
    ///
    /// # Errors
    ///
    /// As [`Backend::write`].
    async fn write_file<C>(&self, path: &str, content: C) -> Result<WriteOutcome>
    where
        C: Into<Content> + Send,
    {
        let content = content.into();
        let path = self.path(path)?;
        self.write(&path, content, WriteOptions::default()).await
    }

    /// Writes a file that must not exist yet. See [`Backend::write`].
    ///
    /// # Errors
    ///
    /// As [`Backend::write`]; `AlreadyExists` if something stands there.
    async fn write_new_file<C>(&self, path: &str, content: C) -> Result<WriteOutcome>
    where
        C: Into<Content> + Send,
    {
        let content = content.into();
        let path = self.path(path)?;
        let options = WriteOptions::default().mode(WriteMode::CreateNew);
        self.write(&path, content, options).await
    }

    /// Replaces the one place where `old` stands. See [`Backend::edit`].
    ///
    /// # Errors
    ///
    /// As [`Backend::edit`].
    async fn replace_text(&self, path: &str, old: &str, new: &str) -> Result<EditOutcome> {
        let path = self.path(path)?;
        let edits = [Edit::new(old, new)];
        self.edit(&path, &edits, EditOptions::default()).await
    }

    /// Lists a directory. See [`Backend::ls`].
    ///
    /// # Errors
    ///
    /// As [`Backend::ls`].
    async fn list_dir(&self, path: &str) -> Result<Listing> {
        self.ls(&self.path(path)?, LsOptions::default()).await
    }

    /// Finds files beneath the working directory. See [`Backend::glob`].
    ///
    /// # Errors
    ///
    /// As [`Backend::glob`].
    async fn find_files(&self, pattern: &str) -> Result<GlobResult> {
        self.glob(GlobQuery::new(self.working_dir(), pattern)).await
    }

    /// Finds lines in the files beneath the working directory. See
    /// [`Backend::grep`].
    ///
    /// # Errors
    ///
    /// As [`Backend::grep`].
    async fn search_text(&self, pattern: &str) -> Result<GrepResult> {
        self.grep(GrepQuery::new(self.working_dir(), pattern)).await
    }

    /// Deletes a file. See [`Backend::delete`].
    ///
    /// # Errors
    ///
    /// As [`Backend::delete`].
    async fn delete_file(&self, path: &str) -> Result<()> {
        self.delete(&self.path(path)?, DeleteOptions::default())
            .await
    }

    /// Deletes a directory and all it holds. See [`Backend::delete`].
    ///
    /// # Errors
    ///
    /// As [`Backend::delete`].
    async fn delete_tree(&self, path: &str) -> Result<()> {
        let options = DeleteOptions::default().recursive(true);
        self.delete(&self.path(path)?, options).await
    }

    /// Moves a file or directory to where nothing is. See [`Backend::rename`].
    ///
    /// # Errors
    ///
    /// As [`Backend::rename`].
    async fn move_to(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.path(from)?, self.path(to)?);
        self.rename(&from, &to, RenameOptions::default()).await
    }

    /// Copies a file to where nothing is. See [`Backend::copy`].
    ///
    /// # Errors
    ///
    /// As [`Backend::copy`].
    async fn copy_to(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (self.path(from)?, self.path(to)?);
        self.copy(&from, &to, CopyOptions::default()).await
    }
}

impl<B: Backend + ?Sized> BackendExt for B {}
