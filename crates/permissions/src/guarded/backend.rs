//! [`Guarded`] as a backend: implements every method explicitly.

use async_trait::async_trait;
use backend_core::derived::refuse_working_dir;
use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WatchQuery, WriteOptions,
    WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{
    Backend, BackendInfo, Edit, Error, Operation, Result, Sandbox, VPath, WatchStream,
};

use super::guard::Guarded;
use super::tree::Transfer;

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<B: Backend> Backend for Guarded<B> {
    fn info(&self) -> BackendInfo {
        self.backend().info()
    }

    fn working_dir(&self) -> VPath {
        self.backend().working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        self.backend().as_sandbox().map(|_| self as &dyn Sandbox)
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        self.resolve_judged(path, options).await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        self.stat_judged(path, options).await
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        self.ls_judged(path, options).await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        self.read_judged(path, options).await
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        self.read_text_judged(path, options).await
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        self.write_judged(path, content, options).await
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        self.edit_judged(path, edits, options).await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.create_dir_judged(path, options).await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        self.keep_working_dir(Operation::Delete, path)?;
        self.delete_judged(path, options).await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        self.keep_working_dir(Operation::Rename, from)?;
        self.transfer_judged(from, to, Transfer::Rename(options))
            .await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        self.transfer_judged(from, to, Transfer::Copy(options))
            .await
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        self.glob_judged(query).await
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        self.grep_judged(query).await
    }

    async fn watch(&self, query: WatchQuery) -> Result<WatchStream> {
        self.watch_judged(query).await
    }
}

impl<B: Backend> Guarded<B> {
    /// Refuses to delete or move the working directory. No backend does that, so the
    /// policy is not consulted.
    fn keep_working_dir(&self, operation: Operation, path: &VPath) -> Result<()> {
        refuse_working_dir(path, &self.working_dir()).map_err(Error::context(
            self.info().name,
            operation,
            path,
        ))
    }
}
