//! Blocking calls as a backend, made on the thread that awaits them.

use async_trait::async_trait;
use backend_core::ops::*;
use backend_core::text::TextWindow;
use backend_core::{Backend, BackendInfo, Edit, Result, Sandbox, VPath};
use backend_sync::SyncBackend;

/// Every call blocks the thread that polls it, as in a careless program.
#[derive(Debug)]
pub(crate) struct Inline(pub(crate) SyncBackend);

#[async_trait]
impl Backend for Inline {
    fn info(&self) -> BackendInfo {
        self.0.info()
    }

    fn working_dir(&self) -> VPath {
        self.0.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        None
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        self.0.resolve(path, options)
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        self.0.stat(path, options)
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        self.0.ls(path, options)
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        self.0.read(path, options)
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        self.0.read_text(path, options)
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        self.0.write(path, content, options)
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        self.0.edit(path, edits, options)
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.0.create_dir(path, options)
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        self.0.delete(path, options)
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        self.0.rename(from, to, options)
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        self.0.copy(from, to, options)
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        self.0.glob(query)
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        self.0.grep(query)
    }
}
