//! [`BackendExt`]: plain methods for callers that need no options.

use bytes::Bytes;

use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions, RenameOptions,
    StatOptions, WriteMode, WriteOptions, WriteOutcome,
};
use crate::path::VPath;
use crate::text::Edit;

/// Convenience methods on every [`Backend`]. They take paths as strings or as
/// [`VPath`], resolve relative ones against the working directory, and use the
/// default options. Each fails as the method of [`Backend`] that it names, and with
/// `InvalidPath`.
///
/// The blanket implementation in this crate is the only one, so a wrapper cannot
/// override these methods and bypass what it wraps.
///
/// ```
/// # use backend_core::{Backend, Result};
/// use backend_core::BackendExt as _;
///
/// async fn bump(backend: &dyn Backend) -> Result<()> {
///     backend.write_file("notes/version.txt", "version = 1\n").await?;
///     backend.replace_text("notes/version.txt", "= 1", "= 2").await?;
///     assert_eq!(backend.read_to_string("notes/version.txt").await?, "version = 2\n");
///     assert!(backend.is_file("notes/version.txt").await?);
///     Ok(())
/// }
/// ```
pub trait BackendExt: Backend {
    /// Folds a path, relative to the working directory.
    fn path(&self, path: impl AsRef<str>) -> Result<VPath> {
        Ok(self.working_dir().join(path.as_ref())?)
    }

    /// Whether anything exists at `path`: a file, a directory, or anything else
    /// that [`stat`](Backend::stat) describes, such as a FIFO. `false` for paths
    /// that are missing, invalid, or denied to `stat`, and for dangling links. A
    /// visible file exists even if it cannot be read.
    ///
    /// # Errors
    ///
    /// Only errors that say nothing about the path, such as `Unavailable`.
    fn exists(&self, path: impl AsRef<str>) -> impl Future<Output = Result<bool>> + Send {
        let path = self.path(path);
        is_visible(self, path, |_| true)
    }

    /// Whether `path` is a regular file. Otherwise as [`exists`](Self::exists).
    fn is_file(&self, path: impl AsRef<str>) -> impl Future<Output = Result<bool>> + Send {
        let path = self.path(path);
        is_visible(self, path, Entry::is_file)
    }

    /// Whether `path` is a directory. Otherwise as [`exists`](Self::exists).
    fn is_dir(&self, path: impl AsRef<str>) -> impl Future<Output = Result<bool>> + Send {
        let path = self.path(path);
        is_visible(self, path, Entry::is_dir)
    }

    /// Describes the entry at `path`. See [`Backend::stat`].
    fn metadata(&self, path: impl AsRef<str>) -> impl Future<Output = Result<Entry>> + Send {
        let path = self.path(path);
        async move { self.stat(&path?, StatOptions::default()).await }
    }

    /// Reads a whole file. See [`Backend::read`].
    fn read_bytes(&self, path: impl AsRef<str>) -> impl Future<Output = Result<Bytes>> + Send {
        let path = self.path(path);
        async move { Ok(self.read(&path?, ReadOptions::default()).await?.data) }
    }

    /// Reads a whole file that must be UTF-8, else `NotText`. See [`Backend::read`].
    fn read_to_string(&self, path: impl AsRef<str>) -> impl Future<Output = Result<String>> + Send {
        let path = self.path(path);
        async move {
            let path = path?;
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
    }

    /// Writes a file, replacing an existing one. See [`Backend::write`].
    fn write_file(
        &self,
        path: impl AsRef<str>,
        content: impl Into<Content>,
    ) -> impl Future<Output = Result<WriteOutcome>> + Send {
        let (path, content) = (self.path(path), content.into());
        async move { self.write(&path?, content, WriteOptions::default()).await }
    }

    /// Writes a file that must not exist yet. See [`Backend::write`].
    fn write_new_file(
        &self,
        path: impl AsRef<str>,
        content: impl Into<Content>,
    ) -> impl Future<Output = Result<WriteOutcome>> + Send {
        let (path, content) = (self.path(path), content.into());
        let options = WriteOptions::default().mode(WriteMode::CreateNew);
        async move { self.write(&path?, content, options).await }
    }

    /// Replaces the only occurrence of `old`. See [`Backend::edit`].
    fn replace_text(
        &self,
        path: impl AsRef<str>,
        old: impl Into<String>,
        new: impl Into<String>,
    ) -> impl Future<Output = Result<EditOutcome>> + Send {
        let (path, edits) = (self.path(path), [Edit::new(old, new)]);
        async move { self.edit(&path?, &edits, EditOptions::default()).await }
    }

    /// Lists a directory. See [`Backend::ls`].
    fn list_dir(&self, path: impl AsRef<str>) -> impl Future<Output = Result<Listing>> + Send {
        let path = self.path(path);
        async move { self.ls(&path?, LsOptions::default()).await }
    }

    /// Creates a directory and its missing parents. See [`Backend::create_dir`].
    fn create_dir_all(&self, path: impl AsRef<str>) -> impl Future<Output = Result<()>> + Send {
        let path = self.path(path);
        async move { self.create_dir(&path?, CreateDirOptions::default()).await }
    }

    /// Finds files beneath the working directory. See [`Backend::glob`].
    fn find_files(
        &self,
        pattern: impl Into<String>,
    ) -> impl Future<Output = Result<GlobResult>> + Send {
        self.glob(GlobQuery::new(pattern, self.working_dir()))
    }

    /// Finds lines in files beneath the working directory. See [`Backend::grep`].
    fn search_text(
        &self,
        pattern: impl Into<String>,
    ) -> impl Future<Output = Result<GrepResult>> + Send {
        self.grep(GrepQuery::new(pattern, self.working_dir()))
    }

    /// Deletes a file. See [`Backend::delete`].
    fn delete_file(&self, path: impl AsRef<str>) -> impl Future<Output = Result<()>> + Send {
        let path = self.path(path);
        async move { self.delete(&path?, DeleteOptions::default()).await }
    }

    /// Deletes a directory and its contents. See [`Backend::delete`].
    fn delete_tree(&self, path: impl AsRef<str>) -> impl Future<Output = Result<()>> + Send {
        let path = self.path(path);
        let options = DeleteOptions::default().recursive(true);
        async move { self.delete(&path?, options).await }
    }

    /// Moves a file or directory to a path that does not exist. See [`Backend::rename`].
    fn move_to(
        &self,
        from: impl AsRef<str>,
        to: impl AsRef<str>,
    ) -> impl Future<Output = Result<()>> + Send {
        let (from, to) = (self.path(from), self.path(to));
        async move { self.rename(&from?, &to?, RenameOptions::default()).await }
    }

    /// Copies a file to a path that does not exist yet. See [`Backend::copy`].
    fn copy_to(
        &self,
        from: impl AsRef<str>,
        to: impl AsRef<str>,
    ) -> impl Future<Output = Result<()>> + Send {
        let (from, to) = (self.path(from), self.path(to));
        async move { self.copy(&from?, &to?, CopyOptions::default()).await }
    }
}

impl<B: Backend + ?Sized> BackendExt for B {}

/// Whether the entry at a path passes the test; `false` if it is missing, invalid or denied.
async fn is_visible<B: Backend + ?Sized>(
    backend: &B,
    path: Result<VPath>,
    test: fn(&Entry) -> bool,
) -> Result<bool> {
    let found = match path {
        Ok(path) => backend.stat(&path, StatOptions::default()).await,
        Err(error) => Err(error),
    };
    found
        .map(|entry| test(&entry))
        .or_else(|error| match error.kind() {
            ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsALink
            | ErrorKind::InvalidPath
            | ErrorKind::InvalidInput
            | ErrorKind::PermissionDenied
            | ErrorKind::ApprovalRequired => Ok(false),
            _ => Err(error),
        })
}
