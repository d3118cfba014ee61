//! What a case works with: a fresh backend, and a hand behind it.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::ops::{
    Command, Content, ExecuteOutcome, GlobQuery, GlobResult, GrepQuery, GrepResult, LineKind,
    LsOptions, ReadOptions, TextOptions, WriteOptions,
};
use backend_core::text::TextWindow;
use backend_core::{Backend, BackendExt as _, ErrorKind, Result, Sandbox, VPath};

use crate::case::{CaseResult, Failure, Need};

/// Provides a fresh, empty backend for one case, and does behind its back what
/// the contract speaks of but the trait cannot do.
///
/// A fixture lives as long as its case. Clean up in `Drop`.
///
/// # Signatures
///
/// The async methods, as they are written under `#[async_trait]`:
///
/// ```text
/// async fn make_link(&self, path: &VPath, target: &str) -> CaseResult;
/// async fn make_fifo(&self, path: &VPath) -> CaseResult;
/// async fn make_raw_name(&self, directory: &VPath, name: &[u8]) -> CaseResult;
/// async fn set_mode(&self, path: &VPath, mode: u32) -> CaseResult;
/// async fn make_outside(&self) -> Result<String, Failure>;
/// async fn check_outside(&self) -> CaseResult;
/// async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult;
/// ```
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
            Need::Commands => capabilities.commands,
            Need::ReadOnly => self.read_only().is_some(),
            Need::SetTime | Need::Links | Need::Fifo | Need::RawName => false,
            Need::Modes | Need::Outside => false,
        }
    }

    /// A backend on the same place that may change nothing, if there can be one.
    fn read_only(&self) -> Option<Arc<dyn Backend>> {
        None
    }

    /// The text of an absolute link that leads to `path` of the backend: the
    /// path by which whatever follows links knows it.
    fn link_text(&self, path: &VPath) -> String {
        path.to_string()
    }

    /// Makes a symbolic link at `path` with exactly this text.
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

    /// Sets the permission bits of what stands at `path`.
    async fn set_mode(&self, path: &VPath, mode: u32) -> CaseResult {
        Err(Failure::unprovided(Need::Modes, path, &format!("{mode:o}")))
    }

    /// Makes a directory outside the backend that holds one file, `secret`,
    /// with the text `secret`. Returns the text of an absolute link to the
    /// directory.
    async fn make_outside(&self) -> Result<String, Failure> {
        let root = VPath::root();
        Err(Failure::unprovided(Need::Outside, &root, "has no outside"))
    }

    /// Fails unless the directory outside is as it was made: its names, the
    /// file's text, bits and time.
    async fn check_outside(&self) -> CaseResult {
        let root = VPath::root();
        Err(Failure::unprovided(Need::Outside, &root, "has no outside"))
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

    /// The backend as a sandbox.
    ///
    /// # Errors
    ///
    /// A failure if it is none.
    pub fn sandbox(&self) -> Result<&dyn Sandbox, Failure> {
        let none = || Failure::new("the backend says it runs commands but is no sandbox");
        self.backend.as_sandbox().ok_or_else(none)
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    ///
    /// A failure if the fixture cannot.
    pub async fn link(&self, path: &str, text: &str) -> CaseResult {
        self.fixture.make_link(&self.path(path)?, text).await
    }

    /// Runs a command line to its end.
    ///
    /// # Errors
    ///
    /// A failure if the sandbox does not run it.
    pub async fn run(&self, line: &str) -> Result<ExecuteOutcome, Failure> {
        Ok(self.sandbox()?.execute(Command::new(line)).await?)
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
        let name = |entry: &backend_core::ops::Entry| match entry.is_dir() {
            true => format!("{}/", entry.name()),
            false => entry.name().to_owned(),
        };
        Ok(listing.entries.iter().map(name).collect())
    }

    /// A query for files beneath the working directory.
    pub fn glob_query(&self, pattern: &str) -> GlobQuery {
        GlobQuery::new(pattern, self.backend.working_dir())
    }

    /// A query for lines beneath the working directory.
    pub fn grep_query(&self, pattern: &str) -> GrepQuery {
        GrepQuery::new(pattern, self.backend.working_dir())
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
            let path = self.relative(&file.path);
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
        files.map(|file| self.relative(&file.path)).collect()
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
    #[track_caller]
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
