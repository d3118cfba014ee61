//! A wrapper that hides some paths from listings and searches.
//!
//! The suite requires an empty working directory. With this wrapper, one with
//! routes in it looks empty, while every listing and search still has to merge them.

use async_trait::async_trait;
use backend_core::ops::{
    GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, WatchQuery,
};
use backend_core::search::Exclude;
use backend_core::{Backend, Result, VPath, WatchStream};

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
    backend_core::delegate! {
        |self| self.inner => info, working_dir, as_sandbox, resolve, stat, read, read_text,
        write, edit, create_dir, delete, rename, copy
    }

    async fn ls(&self, path: &VPath, mut options: LsOptions) -> Result<Listing> {
        options.exclude = options.exclude.and(&self.exclude);
        self.inner.ls(path, options).await
    }

    async fn glob(&self, mut query: GlobQuery) -> Result<GlobResult> {
        query.exclude = query.exclude.and(&self.exclude);
        self.inner.glob(query).await
    }

    async fn grep(&self, mut query: GrepQuery) -> Result<GrepResult> {
        query.exclude = query.exclude.and(&self.exclude);
        self.inner.grep(query).await
    }

    async fn watch(&self, mut query: WatchQuery) -> Result<WatchStream> {
        query.exclude = query.exclude.and(&self.exclude);
        self.inner.watch(query).await
    }
}
