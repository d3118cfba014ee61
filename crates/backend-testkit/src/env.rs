//! What a case works with: a fresh backend, and a hand behind it.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::ops::{
    Content, GlobQuery, GlobResult, GrepQuery, GrepResult, LineKind, LsOptions, ReadOptions,
    TextOptions, WriteOptions,
};
use backend_core::text::TextWindow;
use backend_core::{Backend, BackendExt as _, ErrorKind, Result, VPath};

use crate::case::{CaseResult, Failure, Need};

/// Provides a fresh, empty backend for one case, and does behind its back what
/// the contract speaks of but the trait cannot do.
///
/// A fixture lives as long as its case. Clean up in `Drop`.
#[async_trait]
pub trait Fixture: Send + Sync + 'static {
    /// The backend to test. Its working directory is empty and its own.
    fn backend(&self) -> Arc<dyn Backend>;

    /// Whether cases that need this can run.
    ///
    /// By default, whatever the backend's capabilities say; what a fixture must
    /// do itself, it does not.
    fn provides(&self, need: Need) -> bool {
        let capabilities = self.backend().info().capabilities;
        match need {
            Need::Write => capabilities.writable,
            Need::Times => capabilities.times,
            Need::SetTime | Need::Links | Need::Fifo | Need::RawName => false,
        }
    }

    /// Makes a symbolic link at `path` with this target text.
    async fn make_link(&self, path: &VPath, target: &str) -> CaseResult {
        Err(Failure::unprovided(Need::Links, path, target))
    }

    /// Makes a FIFO at `path`.
    async fn make_fifo(&self, path: &VPath) -> CaseResult {
        Err(Failure::unprovided(Need::Fifo, path, ""))
    }

    /// Makes an empty file in `directory` whose name is these bytes.
    async fn make_raw_name(&self, directory: &VPath, name: &[u8]) -> CaseResult {
        let name = String::from_utf8_lossy(name);
        Err(Failure::unprovided(Need::RawName, directory, &name))
    }

    /// Sets when the file at `path` was last changed.
    async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult {
        Err(Failure::unprovided(
            Need::SetTime,
            path,
            &format!("{time:?}"),
        ))
    }
}

/// One case's surroundings: short verbs over a fixture's backend.
///
/// Paths are strings relative to the working directory, so that a case does not
/// care where that is.
pub struct Env {
    fixture: Box<dyn Fixture>,
    backend: Arc<dyn Backend>,
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Env").field(&self.backend).finish()
    }
}

impl Env {
    /// Surroundings on a fixture.
    pub fn new(fixture: impl Fixture) -> Self {
        let backend = fixture.backend();
        Self {
            fixture: Box::new(fixture),
            backend,
        }
    }

    /// The backend under test.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// The hand behind the backend.
    pub fn fixture(&self) -> &dyn Fixture {
        &*self.fixture
    }

    /// A path relative to the working directory.
    ///
    /// # Errors
    ///
    /// A failure if it is not a path: a mistake in the case.
    pub fn path(&self, path: &str) -> Result<VPath, Failure> {
        Ok(self.backend.path(path)?)
    }

    /// Writes a file.
    ///
    /// # Errors
    ///
    /// A failure if the backend does not take it.
    pub async fn put(&self, path: &str, content: impl Into<Content>) -> CaseResult {
        let path = self.path(path)?;
        let content = content.into();
        let options = WriteOptions::default();
        self.backend.write(&path, content, options).await?;
        Ok(())
    }

    /// Writes several files with a line of text each.
    ///
    /// # Errors
    ///
    /// A failure if the backend does not take one.
    pub async fn put_all(&self, paths: &[&str]) -> CaseResult {
        for path in paths {
            self.put(path, "text\n").await?;
        }
        Ok(())
    }

    /// Reads a whole file.
    ///
    /// # Errors
    ///
    /// A failure if the backend does not give it.
    pub async fn get(&self, path: &str) -> Result<Vec<u8>, Failure> {
        let path = self.path(path)?;
        let read = self.backend.read(&path, ReadOptions::default()).await?;
        Ok(read.data.into())
    }

    /// Reads a window of lines with the given options.
    pub async fn window(&self, path: &str, options: TextOptions) -> Result<TextWindow> {
        let path = self.backend.path(path)?;
        self.backend.read_text(&path, options).await
    }

    /// The lines of a file, without numbers.
    ///
    /// # Errors
    ///
    /// A failure if the backend does not give them.
    pub async fn lines(&self, path: &str) -> Result<Vec<String>, Failure> {
        let window = self.window(path, TextOptions::default()).await?;
        Ok(window.lines().map(|line| line.text.to_owned()).collect())
    }

    /// The names in a directory, directories marked with a slash.
    ///
    /// # Errors
    ///
    /// A failure if the backend does not list it.
    pub async fn names(&self, path: &str) -> Result<Vec<String>, Failure> {
        let listing = self
            .backend
            .ls(&self.path(path)?, LsOptions::default())
            .await?;
        let name = |entry: &backend_core::ops::Entry| match entry.is_directory() {
            true => format!("{}/", entry.name()),
            false => entry.name().to_owned(),
        };
        Ok(listing.entries.iter().map(name).collect())
    }

    /// A query for files beneath the working directory.
    pub fn glob_query(&self, pattern: &str) -> GlobQuery {
        GlobQuery::new(self.backend.working_dir(), pattern)
    }

    /// A query for lines beneath the working directory.
    pub fn grep_query(&self, pattern: &str) -> GrepQuery {
        GrepQuery::new(self.backend.working_dir(), pattern)
    }

    /// The found files' paths relative to the working directory.
    pub fn found(&self, result: &GlobResult) -> Vec<String> {
        let files = result.files.iter();
        files.map(|file| self.relative(&file.path)).collect()
    }

    /// Files that match a pattern, relative to the working directory.
    ///
    /// # Errors
    ///
    /// A failure if the backend does not search.
    pub async fn glob(&self, pattern: &str) -> Result<Vec<String>, Failure> {
        let result = self.backend.glob(self.glob_query(pattern)).await?;
        Ok(self.found(&result))
    }

    /// The found lines as `path:number:text`, context as `path-number-text`.
    pub fn hits(&self, result: &GrepResult) -> Vec<String> {
        let mut hits = Vec::new();
        for file in &result.files {
            let path = self.relative(file.path());
            for line in file.lines() {
                let mark = match line.kind {
                    LineKind::Match => ':',
                    LineKind::Context => '-',
                };
                hits.push(format!("{path}{mark}{}{mark}{}", line.number, line.text()));
            }
        }
        hits
    }

    /// Lines that match a pattern, as [`hits`](Self::hits) writes them.
    ///
    /// # Errors
    ///
    /// A failure if the backend does not search.
    pub async fn grep(&self, pattern: &str) -> Result<Vec<String>, Failure> {
        let result = self.backend.grep(self.grep_query(pattern)).await?;
        Ok(self.hits(&result))
    }

    /// The paths of files with a match, relative to the working directory.
    pub fn files_hit(&self, result: &GrepResult) -> Vec<String> {
        let files = result.files.iter();
        files.map(|file| self.relative(file.path())).collect()
    }

    fn relative(&self, path: &VPath) -> String {
        match path.strip_prefix(&self.backend.working_dir()) {
            Some(relative) => relative.to_owned(),
            None => path.to_string(),
        }
    }

    /// Checks that something failed, and with this kind of error.
    ///
    /// # Errors
    ///
    /// A failure if it succeeded or failed with another kind.
    pub fn fails<T: std::fmt::Debug>(&self, kind: ErrorKind, result: Result<T>) -> CaseResult {
        match result {
            Err(error) if error.kind() == kind => Ok(()),
            Err(error) => Err(Failure::new(format!(
                "expected {kind:?}, got {:?}: {error}",
                error.kind()
            ))),
            Ok(value) => Err(Failure::new(format!("expected {kind:?}, got {value:?}"))),
        }
    }
}
