//! Rules that moves and copies share.

use std::sync::Arc;

use backend_core::ops::{CopyOptions, RenameOptions};
use backend_core::{Backend, BackendExt as _, ErrorKind, Result};

use super::concurrent::{at_once, one_winner};
use super::create_dir::create_dir;
use crate::check_eq;
use crate::env::Env;
use crate::failure::{CaseResult, Failure};

/// A move or a copy.
#[derive(Clone, Copy)]
pub(super) enum Transfer {
    Rename,
    Copy { recursive: bool },
}

impl Transfer {
    /// Transfers an entry.
    pub(super) async fn run(self, t: &Env, from: &str, to: &str, overwrite: bool) -> Result<()> {
        self.run_on(t.backend(), from, to, overwrite).await
    }

    async fn run_on(
        self,
        backend: &Arc<dyn Backend>,
        from: &str,
        to: &str,
        overwrite: bool,
    ) -> Result<()> {
        let (from, to) = (backend.path(from)?, backend.path(to)?);
        match self {
            Self::Rename => {
                let options = RenameOptions::default().overwrite(overwrite);
                backend.rename(&from, &to, options).await
            }
            Self::Copy { recursive } => {
                let options = CopyOptions::default().recursive(recursive);
                backend.copy(&from, &to, options.overwrite(overwrite)).await
            }
        }
    }

    /// Checks that it fails in the same way whether or not it may overwrite.
    pub(super) async fn refused(
        self,
        t: &Env,
        kind: ErrorKind,
        from: &str,
        to: &str,
    ) -> CaseResult {
        for overwrite in [false, true] {
            t.fails(kind, self.run(t, from, to, overwrite).await)?;
        }
        Ok(())
    }

    /// Parents of the destination are created.
    pub(super) async fn creates_parents(self, t: &Env) -> CaseResult {
        t.put("file", "x").await?;
        self.run(t, "file", "a/b/file", false).await?;
        check_eq!(t.get("a/b/file").await?, b"x")
    }

    /// A file at the destination is not replaced unless the caller allows it.
    pub(super) async fn never_overwrites(self, t: &Env) -> CaseResult {
        t.put("from", "new").await?;
        t.put("to", "old").await?;
        let done = self.run(t, "from", "to", false).await;
        t.fails(ErrorKind::AlreadyExists, done)?;
        check_eq!(t.get("from").await?, b"new")?;
        check_eq!(t.get("to").await?, b"old")
    }

    /// A file replaces a file if the caller allows it.
    pub(super) async fn overwrites_when_told(self, t: &Env) -> CaseResult {
        t.put("from", "new").await?;
        t.put("to", "something old").await?;
        self.run(t, "from", "to", true).await?;
        check_eq!(t.get("to").await?, b"new")
    }

    /// Onto itself is rejected and loses nothing.
    pub(super) async fn onto_itself(self, t: &Env) -> CaseResult {
        t.put("directory/file", "kept").await?;
        for path in ["directory/file", "directory"] {
            self.refused(t, ErrorKind::InvalidInput, path, path).await?;
        }
        check_eq!(t.get("directory/file").await?, b"kept")
    }

    /// Into itself is rejected, for a directory at each of these destinations.
    pub(super) async fn into_itself(self, t: &Env, destinations: &[&str]) -> CaseResult {
        t.put("directory/inner/file", "kept").await?;
        for to in destinations {
            self.refused(t, ErrorKind::InvalidInput, "directory", to)
                .await?;
        }
        let (from, to) = ("directory/inner/file", "directory/inner/file/new");
        self.refused(t, ErrorKind::InvalidInput, from, to).await?;
        check_eq!(t.names("directory").await?, ["inner/"])?;
        check_eq!(t.names("directory/inner").await?, ["file"])?;
        check_eq!(t.get("directory/inner/file").await?, b"kept")
    }

    /// A missing source is reported first, and no directory is created for it.
    pub(super) async fn missing_source(self, t: &Env) -> CaseResult {
        t.put("file", "kept").await?;
        for to in ["new/parent/file", "file", "."] {
            self.refused(t, ErrorKind::NotFound, "missing", to).await?;
        }
        self.refused(t, ErrorKind::NotADirectory, "file/beneath", "new/to")
            .await?;
        t.fails(ErrorKind::NotFound, t.backend().metadata("new").await)?;
        check_eq!(t.get("file").await?, b"kept")
    }

    /// A directory at the destination is never replaced, entered or merged with.
    pub(super) async fn over_a_directory(self, t: &Env) -> CaseResult {
        t.put_all(&["directory/inner/kept", "file"]).await?;
        create_dir(t, "empty").await?;
        for (from, to) in [
            ("file", "empty"),
            ("file", "."),
            ("directory", "empty"),
            ("directory", "."),
            ("file", "directory"),
            // Its current parent.
            ("directory/inner", "directory"),
        ] {
            self.refused(t, ErrorKind::AlreadyExists, from, to).await?;
        }
        check_eq!(t.names("").await?, ["directory/", "empty/", "file"])?;
        check_eq!(t.names("empty").await?, [""; 0])
    }

    /// A directory never replaces a file.
    pub(super) async fn directory_over_a_file(self, t: &Env) -> CaseResult {
        t.put("directory/inner", "kept").await?;
        t.put("file", "kept too").await?;
        self.refused(t, ErrorKind::AlreadyExists, "directory", "file")
            .await?;
        check_eq!(t.get("directory/inner").await?, b"kept")?;
        check_eq!(t.get("file").await?, b"kept too")
    }

    /// There is no destination below a file.
    pub(super) async fn beneath_a_file(self, t: &Env) -> CaseResult {
        t.put_all(&["directory/inner", "source"]).await?;
        t.put("file", "kept").await?;
        for from in ["source", "directory"] {
            for to in ["file/beneath", "file/far/beneath"] {
                self.refused(t, ErrorKind::NotADirectory, from, to).await?;
            }
        }
        check_eq!(t.names("").await?, ["directory/", "file", "source"])?;
        check_eq!(t.get("file").await?, b"kept")
    }

    /// Transfers the files `0` to `7` to one path concurrently. Returns the one that
    /// succeeded.
    pub(super) async fn race(self, t: &Env) -> Result<usize, Failure> {
        for source in 0..8 {
            t.put(&format!("{source}"), format!("from {source}"))
                .await?;
        }
        let results = at_once((0..8).map(|source| {
            let backend = Arc::clone(t.backend());
            async move {
                let from = format!("{source}");
                self.run_on(&backend, &from, "to", false).await
            }
        }));
        let winner = one_winner(t, ErrorKind::AlreadyExists, results.await?)?;
        check_eq!(t.get("to").await?, format!("from {winner}").as_bytes())?;
        Ok(winner)
    }

    /// A destination is rejected where an entry inside the source would have no valid
    /// path.
    pub(super) async fn nothing_inside_loses_its_path(self, t: &Env) -> CaseResult {
        let deep = "d/".repeat(150);
        t.put(&format!("{deep}f"), "x").await?;
        let to = "e/".repeat(150);
        // The destination itself has a valid path.
        t.path(&to)?;
        let done = self.run(t, "d", &to, false).await;
        t.fails(ErrorKind::InvalidPath, done)?;
        check_eq!(t.get(&format!("{deep}f")).await?, b"x")
    }
}
