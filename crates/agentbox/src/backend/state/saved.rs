//! A state that saves every change before it reports success.

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, RenameOptions,
    WriteOptions, WriteOutcome,
};
use backend_core::text::Edit;
use backend_core::{Backend, Error, ErrorKind, Operation, Result, Sandbox, VPath, delegate};
use backend_state::StateBackend;
use tokio::sync::Mutex;

use super::document::Document;

/// A state and its document. A change is made to a draft, and counts once it is saved.
#[derive(Debug)]
pub(super) struct SavedState {
    state: StateBackend,
    /// Held from the draft of a change until it is saved.
    document: Arc<Mutex<Document>>,
    max_file_bytes: u64,
}

impl SavedState {
    pub(super) fn new(state: StateBackend, document: Document, max_file_bytes: u64) -> Self {
        Self {
            state,
            document: Arc::new(Mutex::new(document)),
            max_file_bytes,
        }
    }

    /// Makes and saves a change. On failure nothing changes.
    async fn change<T, F>(&self, change: impl FnOnce(StateBackend) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut document = Arc::clone(&self.document).lock_owned().await;
        let draft = self.state.fork();
        let done = change(draft.clone()).await?;
        let state = self.state.clone();
        // This completes even if the caller drops the future.
        let save = tokio::task::spawn_blocking(move || {
            let draft = draft.snapshot();
            document.save(&draft).map_err(|error| {
                let path = document.path.display();
                let text = format!(
                    "nothing was changed, because it could not be saved to {path}: {error}; make room there and try again"
                );
                Error::new(ErrorKind::Unavailable, text)
            })?;
            state.restore(draft);
            Ok(())
        });
        let saved = save.await.unwrap_or_else(|error| {
            Err(Error::internal("saving the state failed; please report this").with_source(error))
        });
        saved.map(|()| done)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for SavedState {
    delegate! {
        |self| self.state => info, working_dir, resolve, stat, ls, read, read_text, glob, grep,
        watch
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        None
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        // Content may arrive slowly, and other callers must not wait for it.
        let content = content.collect(self.max_file_bytes).await;
        let content = content.map_err(Error::context("state", Operation::Write, path))?;
        let write = |draft: StateBackend| async move {
            draft.write(path, Content::Bytes(content), options).await
        };
        self.change(write).await
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        let edit = |draft: StateBackend| async move { draft.edit(path, edits, options).await };
        self.change(edit).await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        let create = |draft: StateBackend| async move { draft.create_dir(path, options).await };
        self.change(create).await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        let delete = |draft: StateBackend| async move { draft.delete(path, options).await };
        self.change(delete).await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        let rename = |draft: StateBackend| async move { draft.rename(from, to, options).await };
        self.change(rename).await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        let copy = |draft: StateBackend| async move { draft.copy(from, to, options).await };
        self.change(copy).await
    }
}

#[cfg(test)]
mod tests {
    use backend_core::BackendExt as _;
    use futures::StreamExt as _;

    use super::*;

    fn open(path: &std::path::Path) -> SavedState {
        let (document, builder) = Document::open(path, StateBackend::builder()).unwrap();
        SavedState::new(builder.build(), document, backend_state::FILE_BYTES)
    }

    #[tokio::test]
    async fn every_change_is_in_the_document_when_it_is_answered() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let files = open(&path);
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
        let files = open(&path);
        let writes = (0..50).map(|number| {
            let files = &files;
            async move { files.write_file(&format!("/{number}"), "x").await }
        });
        for done in futures::future::join_all(writes).await {
            done.unwrap();
        }
        drop(files);
        assert_eq!(open(&path).state.snapshot().len(), 50);
    }

    #[tokio::test]
    async fn what_cannot_be_saved_is_not_done() {
        let directory = tempfile::tempdir().unwrap();
        let parent = directory.path().join("parent");
        std::fs::create_dir(&parent).unwrap();
        let files = open(&parent.join("state.json"));
        files.write_file("/a", "one").await.unwrap();
        std::fs::remove_dir_all(&parent).unwrap();
        let error = files.write_file("/b", "two").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("nothing was changed"), "{error}");
        let error = files.delete_file("/a").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(files.read_to_string("/a").await.unwrap(), "one");
        let missing = files.read_to_string("/b").await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        // Once there is room again, changes succeed.
        std::fs::create_dir(&parent).unwrap();
        files.write_file("/c", "three").await.unwrap();
        drop(files);
        let files = open(&parent.join("state.json"));
        let paths = files.state.snapshot();
        let paths: Vec<_> = paths.iter().map(|file| file.path.to_string()).collect();
        assert_eq!(paths, ["/a", "/c"]);
    }

    #[tokio::test]
    async fn content_that_does_not_come_keeps_nobody_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let files = open(&directory.path().join("state.json"));
        let never = Content::Stream(futures::stream::pending().boxed());
        let slow = VPath::parse("/slow").unwrap();
        let mut slow = files.write(&slow, never, WriteOptions::default());
        assert!(futures::poll!(&mut slow).is_pending());
        files.write_file("/a", "one").await.unwrap();
    }
}
