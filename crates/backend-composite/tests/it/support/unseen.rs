//! A wrapper that hides some paths from listings and searches.
//!
//! The suite requires an empty working directory. With this wrapper, one with
//! routes in it looks empty, while every listing and search still has to merge them.

use async_trait::async_trait;
use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WriteOptions, WriteOutcome,
};
use backend_core::search::Exclude;
use backend_core::text::TextWindow;
use backend_core::{Backend, BackendInfo, Edit, Result, Sandbox, VPath};

#[derive(Debug)]
pub(crate) struct Unseen<B> {
    inner: B,
    exclude: Exclude,
}

impl<B> Unseen<B> {
    pub(crate) fn new(inner: B, paths: &[&str]) -> Self {
        let exclude = Exclude::hide(paths.iter().copied()).unwrap();
        Self { inner, exclude }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<B: Backend> Backend for Unseen<B> {
    fn info(&self) -> BackendInfo {
        self.inner.info()
    }

    fn working_dir(&self) -> VPath {
        self.inner.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        self.inner.as_sandbox()
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        self.inner.resolve(path, options).await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        self.inner.stat(path, options).await
    }

    async fn ls(&self, path: &VPath, mut options: LsOptions) -> Result<Listing> {
        options.exclude = options.exclude.and(&self.exclude);
        self.inner.ls(path, options).await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        self.inner.read(path, options).await
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        self.inner.read_text(path, options).await
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        self.inner.write(path, content, options).await
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        self.inner.edit(path, edits, options).await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.inner.create_dir(path, options).await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        self.inner.delete(path, options).await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        self.inner.rename(from, to, options).await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        self.inner.copy(from, to, options).await
    }

    async fn glob(&self, mut query: GlobQuery) -> Result<GlobResult> {
        query.exclude = query.exclude.and(&self.exclude);
        self.inner.glob(query).await
    }

    async fn grep(&self, mut query: GrepQuery) -> Result<GrepResult> {
        query.exclude = query.exclude.and(&self.exclude);
        self.inner.grep(query).await
    }
}
