//! The environment of a case: short methods over a fresh backend.

use std::sync::Arc;

use backend_core::ops::{
    Command, Content, Entry, ExecuteOutcome, GlobQuery, GlobResult, GrepQuery, GrepResult,
    LineKind, ResolveOptions, TextOptions,
};
use backend_core::text::TextWindow;
use backend_core::{Backend, BackendExt as _, ErrorKind, Result, Sandbox, VPath};

use crate::failure::{CaseResult, Failure};
use crate::fixture::Fixture;

/// The environment of one case: short methods over a fixture's backend.
///
/// Paths are strings relative to the working directory, so that a case does not depend
/// on its location. A method fails if the backend or the fixture does not do as asked.
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
    /// Creates an environment on a fixture.
    pub fn new(fixture: impl Fixture) -> Self {
        let backend = fixture.backend();
        Self {
            fixture: Box::new(fixture),
            backend,
        }
    }

    /// Returns the backend under test.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Returns the fixture.
    pub fn fixture(&self) -> &dyn Fixture {
        &*self.fixture
    }

    /// Returns the backend as a sandbox.
    pub fn sandbox(&self) -> Result<&dyn Sandbox, Failure> {
        let none = || Failure::new("the backend says it runs commands but is not a sandbox");
        self.backend.as_sandbox().ok_or_else(none)
    }

    /// Creates a symbolic link.
    pub async fn link(&self, path: &str, text: &str) -> CaseResult {
        self.fixture.make_link(&self.path(path)?, text).await
    }

    /// Runs a command line to completion.
    pub async fn run(&self, line: &str) -> Result<ExecuteOutcome, Failure> {
        Ok(self.sandbox()?.execute(Command::new(line)).await?)
    }

    /// Returns a path relative to the working directory.
    pub fn path(&self, path: &str) -> Result<VPath, Failure> {
        Ok(self.backend.path(path)?)
    }

    /// Follows every link in a path.
    pub async fn resolve(&self, path: &str) -> Result<VPath> {
        let path = self.backend.path(path)?;
        self.backend.resolve(&path, ResolveOptions::default()).await
    }

    /// Writes a file.
    pub async fn put(&self, path: &str, content: impl Into<Content>) -> CaseResult {
        self.backend.write_file(path, content).await?;
        Ok(())
    }

    /// Writes several files, each with the same line of text.
    pub async fn put_all(&self, paths: &[&str]) -> CaseResult {
        for path in paths {
            self.put(path, "text\n").await?;
        }
        Ok(())
    }

    /// Reads a whole file.
    pub async fn get(&self, path: &str) -> Result<Vec<u8>, Failure> {
        Ok(self.backend.read_bytes(path).await?.into())
    }

    /// Reads a window of lines with the given options.
    pub async fn window(&self, path: &str, options: TextOptions) -> Result<TextWindow> {
        let path = self.backend.path(path)?;
        self.backend.read_text(&path, options).await
    }

    /// Returns the lines of a file, without numbers.
    pub async fn lines(&self, path: &str) -> Result<Vec<String>, Failure> {
        let window = self.window(path, TextOptions::default()).await?;
        Ok(window.lines().map(|line| line.text.to_owned()).collect())
    }

    /// Returns the names in a directory, with a slash after directories.
    pub async fn names(&self, path: &str) -> Result<Vec<String>, Failure> {
        let listing = self.backend.list_dir(path).await?;
        let name = |entry: &Entry| {
            let slash = if entry.is_dir() { "/" } else { "" };
            format!("{}{slash}", entry.name())
        };
        Ok(listing.entries.iter().map(name).collect())
    }

    /// Creates a query for files below the working directory.
    pub fn glob_query(&self, pattern: &str) -> GlobQuery {
        GlobQuery::new(pattern, self.backend.working_dir())
    }

    /// Creates a query for lines below the working directory.
    pub fn grep_query(&self, pattern: &str) -> GrepQuery {
        GrepQuery::new(pattern, self.backend.working_dir())
    }

    /// Returns the paths of the found files, relative to the working directory.
    pub fn found(&self, result: &GlobResult) -> Vec<String> {
        let files = result.files.iter();
        files.map(|file| self.relative(&file.path)).collect()
    }

    /// Returns the files that match a pattern, relative to the working directory.
    pub async fn glob(&self, pattern: &str) -> Result<Vec<String>, Failure> {
        let result = self.backend.glob(self.glob_query(pattern)).await?;
        Ok(self.found(&result))
    }

    /// Returns the found lines as `path:number:text`, and context as
    /// `path-number-text`.
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

    /// Returns the lines that match a pattern, formatted as by [`hits`](Self::hits).
    pub async fn grep(&self, pattern: &str) -> Result<Vec<String>, Failure> {
        let result = self.backend.grep(self.grep_query(pattern)).await?;
        Ok(self.hits(&result))
    }

    /// Returns the paths of files with a match, relative to the working directory.
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

    /// Checks that a call failed with this kind of error.
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
