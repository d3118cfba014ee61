//! A state whose every change is saved before it is answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WriteOptions, WriteOutcome,
};
use backend_core::text::{Edit, TextWindow};
use backend_core::{Backend, BackendInfo, Error, ErrorKind, Result, Sandbox, VPath};
use backend_state::StateBackend;

use super::document::Document;

/// A state and the document it is kept in.
#[derive(Debug)]
pub(super) struct Saved {
    state: StateBackend,
    keeper: Arc<Keeper>,
}

#[derive(Debug)]
struct Keeper {
    /// The number of the last change.
    changes: AtomicU64,
    /// The document, and the last change that is in it.
    document: Mutex<(Document, u64)>,
}

impl Saved {
    pub(super) fn new(state: StateBackend, document: Document) -> Self {
        let keeper = Keeper {
            changes: AtomicU64::new(0),
            document: Mutex::new((document, 0)),
        };
        Self {
            state,
            keeper: Arc::new(keeper),
        }
    }

    /// Saves what was changed. Whoever comes first saves for all who wait.
    async fn save(&self) -> Result<()> {
        let change = self.keeper.changes.fetch_add(1, Ordering::SeqCst) + 1;
        let (state, keeper) = (self.state.clone(), Arc::clone(&self.keeper));
        let save = tokio::task::spawn_blocking(move || {
            let mut kept = keeper.document.lock();
            let (document, saved) = &mut **kept.as_mut().unwrap_or_else(PoisonError::get_mut);
            if *saved >= change {
                return Ok(());
            }
            let newest = keeper.changes.load(Ordering::SeqCst);
            document.save(&state.snapshot()).map_err(|error| {
                let path = document.path().display();
                let text = format!(
                    "it is done, but could not be saved to {path}: {error}; make room there and change something"
                );
                Error::new(ErrorKind::Unavailable, text)
            })?;
            *saved = newest;
            Ok(())
        });
        match save.await {
            Ok(saved) => saved,
            Err(error) => Err(Error::internal("saving the state failed").with_source(error)),
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for Saved {
    fn info(&self) -> BackendInfo {
        self.state.info()
    }

    fn working_dir(&self) -> VPath {
        self.state.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        None
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        self.state.resolve(path, options).await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        self.state.stat(path, options).await
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        self.state.ls(path, options).await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        self.state.read(path, options).await
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        self.state.read_text(path, options).await
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let done = self.state.write(path, content, options).await?;
        self.save().await?;
        Ok(done)
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        let done = self.state.edit(path, edits, options).await?;
        self.save().await?;
        Ok(done)
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.state.create_dir(path, options).await?;
        self.save().await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        self.state.delete(path, options).await?;
        self.save().await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        self.state.rename(from, to, options).await?;
        self.save().await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        self.state.copy(from, to, options).await?;
        self.save().await
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        self.state.glob(query).await
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        self.state.grep(query).await
    }
}

#[cfg(test)]
mod tests {
    use backend_core::BackendExt as _;

    use super::*;

    #[tokio::test]
    async fn every_change_is_in_the_document_when_it_is_answered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let (document, _) = Document::open(&path).unwrap();
        let files = Saved::new(StateBackend::new(), document);
        let text = || std::fs::read_to_string(&path).unwrap();
        files.write_file("/a", "one").await.unwrap();
        assert!(text().contains("one"));
        files.replace_text("/a", "one", "two").await.unwrap();
        assert!(text().contains("two"));
        let a = VPath::parse("/a").unwrap();
        let b = VPath::parse("/b").unwrap();
        files
            .rename(&a, &b, RenameOptions::default())
            .await
            .unwrap();
        assert!(text().contains("/b"));
        files.copy(&b, &a, CopyOptions::default()).await.unwrap();
        assert!(text().contains("/a"));
        files.delete(&a, DeleteOptions::default()).await.unwrap();
        files.delete(&b, DeleteOptions::default()).await.unwrap();
        assert!(!text().contains("two"));
        let new = VPath::parse("/new").unwrap();
        files
            .create_dir(&new, CreateDirOptions::default())
            .await
            .unwrap();
        assert!(text().contains("/new"));
    }

    #[tokio::test]
    async fn many_changes_at_once_are_all_saved() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let (document, _) = Document::open(&path).unwrap();
        let files = Saved::new(StateBackend::new(), document);
        let writes = (0..50).map(|number| {
            let files = &files;
            async move { files.write_file(&format!("/{number}"), "x").await }
        });
        for done in futures::future::join_all(writes).await {
            done.unwrap();
        }
        drop(files);
        let (_document, snapshot) = Document::open(&path).unwrap();
        assert_eq!(snapshot.len(), 50);
    }

    #[tokio::test]
    async fn what_cannot_be_saved_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("place");
        std::fs::create_dir(&place).unwrap();
        let (document, _) = Document::open(&place.join("state.json")).unwrap();
        let files = Saved::new(StateBackend::new(), document);
        std::fs::remove_dir_all(&place).unwrap();
        let error = files.write_file("/a", "one").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("could not be saved"), "{error}");
    }
}
