//! [`LocalBackend`]: implements [`Backend`] over [`RootedFs`].

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WatchQuery, WriteOptions,
    WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{
    Backend, BackendInfo, Capabilities, Edit, Error, Operation, Result, Sandbox, VPath, WatchStream,
};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{BoxStream, StreamExt as _};

use crate::builder::LocalBuilder;
use crate::cancel::CancelFlag;
use crate::engine;
use crate::exec::Runner;
use crate::fs::{LIST, PendingWrite, RootedFs};
use crate::search::{self, ReadAbove, SearchRoot};
use crate::watch;

/// The backend's name in messages.
pub(crate) const NAME: &str = "local";

/// The size up to which small pieces of a stream are gathered before they are
/// written.
const GATHERED_BYTES: usize = 256 * 1024;

/// A directory of this machine.
///
/// Clones share the same state. Files are accessed by handle and never by host
/// path, so nothing outside the directory can be read or changed through it,
/// even if it contains links or another process moves them. If the directory
/// itself is removed meanwhile, calls fail with `Unavailable`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> backend_core::Result<()> {
/// use backend_core::BackendExt as _;
/// use backend_local::LocalBackend;
///
/// # let directory = tempfile::tempdir().unwrap();
/// let backend = LocalBackend::builder(directory.path()).open()?;
/// backend.write_file("notes/today.md", "buy milk\n").await?;
/// assert_eq!(backend.read_to_string("/notes/today.md").await?, "buy milk\n");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct LocalBackend {
    pub(crate) inner: Arc<Inner>,
}

impl LocalBuilder {
    /// Opens the directory.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotADirectory` and `PermissionDenied` for the root and the
    /// allowed directories; `Unsupported` for a confinement or limit that this
    /// host cannot enforce; `Config` for options that exclude each other, and
    /// for a directory whose path is not UTF-8 and therefore cannot be shown.
    pub fn open(self) -> Result<LocalBackend> {
        let fs = Arc::new(RootedFs::open(&self).map_err(|error| error.on(NAME))?);
        let runner = if self.enable_execute {
            let opened = Runner::open(&self.commands, &fs, self.read_only);
            Some(opened.map_err(|error| error.on(NAME))?)
        } else {
            None
        };
        let inner = Inner {
            fs,
            runner,
            write_inline: self.write_inline,
            hidden: self.search_hidden,
            ignored: self.search_ignored,
            generated: self.search_generated,
        };
        Ok(LocalBackend {
            inner: Arc::new(inner),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) fs: Arc<RootedFs>,
    /// The runner of commands, if they are enabled.
    pub(crate) runner: Option<Runner>,
    /// Whether small changes are made on the caller's thread.
    write_inline: bool,
    /// Whether searches include hidden entries by default.
    hidden: bool,
    /// Whether searches include ignored entries by default.
    ignored: bool,
    /// Whether searches include the contents of generated directories by
    /// default.
    generated: bool,
}

impl Inner {
    /// Whether commands may run in views.
    fn keeps_views(&self) -> bool {
        let runner = self.runner.as_ref();
        runner.is_some_and(|runner| runner.state.keeps_views())
    }

    /// Masks again what an operation has replaced, in views with commands.
    fn mask_again(&self) {
        if let Some(runner) = &self.runner {
            runner.state.mask_again();
        }
    }
}

impl LocalBackend {
    /// Opens the directory `root`, with the default options.
    ///
    /// # Errors
    ///
    /// As [`LocalBuilder::open`].
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        Self::builder(root).open()
    }

    /// Returns a builder for a backend on the directory `root`.
    pub fn builder(root: impl Into<PathBuf>) -> LocalBuilder {
        LocalBuilder::new(root.into())
    }

    /// Records that an operation began or ended.
    fn used(&self) {
        if let Some(runner) = &self.inner.runner {
            runner.state.activity.touch();
        }
    }

    /// Runs `work` where it may block, until the call is dropped.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&RootedFs, &CancelFlag) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (inner, cancel) = (Arc::clone(&self.inner), CancelFlag::default());
        let _guard = cancel.guard();
        self.used();
        let done = engine::blocking(move || work(&inner.fs, &cancel)).await;
        self.used();
        done
    }

    /// Makes a small change on this thread, if that is wanted and possible.
    fn inline<T>(
        &self,
        operation: Operation,
        path: &VPath,
        work: impl FnOnce(&RootedFs) -> Option<Result<T>>,
    ) -> Option<Result<T>> {
        let fs = &self.inner.fs;
        // A change may have to wait for the masks of running commands.
        if !self.inner.write_inline || self.inner.keeps_views() {
            return None;
        }
        self.used();
        let done = work(fs)?.map_err(|error| fs.explain_missing(path, error));
        self.used();
        Some(done.map_err(context(operation, path)))
    }

    /// [`on_disk`](Self::on_disk) with a path, which is added to an error.
    async fn at<T: Send + 'static>(
        &self,
        operation: Operation,
        path: &VPath,
        work: impl FnOnce(&RootedFs, &VPath, &CancelFlag) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let wanted = path.clone();
        let done = self.on_disk(move |fs, cancel| {
            let done = work(fs, &wanted, cancel);
            done.map_err(|error| fs.explain_missing(&wanted, error))
        });
        done.await.map_err(context(operation, path))
    }

    /// [`at`](Self::at) for a change. Before it returns, even after an error, what it has
    /// replaced is kept again from running commands that may not read it.
    async fn change<T: Send + 'static>(
        &self,
        operation: Operation,
        path: &VPath,
        work: impl FnOnce(&RootedFs, &VPath, &CancelFlag) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        self.at(operation, path, move |fs, path, cancel| {
            let done = work(fs, path, cancel);
            inner.mask_again();
            done
        })
        .await
    }

    async fn write_stream(
        &self,
        path: VPath,
        mut stream: BoxStream<'static, Result<Bytes>>,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let mut pending = self
            .on_disk(move |fs, _| {
                let begun = fs.begin_write(&path, options);
                begun.map_err(|error| fs.explain_missing(&path, error))
            })
            .await?;
        let mut gathered = BytesMut::new();
        while let Some(piece) = stream.next().await {
            let piece = piece?;
            if gathered.is_empty() && piece.len() >= GATHERED_BYTES {
                pending = self.append(pending, piece).await?;
                continue;
            }
            gathered.extend_from_slice(&piece);
            if gathered.len() >= GATHERED_BYTES {
                pending = self.append(pending, gathered.split().freeze()).await?;
            }
        }
        let inner = Arc::clone(&self.inner);
        self.on_disk(move |fs, cancel| {
            pending.append(fs, &gathered)?;
            let written = fs.finish_write(pending, cancel);
            inner.mask_again();
            written
        })
        .await
    }

    async fn append(&self, mut pending: PendingWrite, piece: Bytes) -> Result<PendingWrite> {
        self.on_disk(move |fs, _| pending.append(fs, &piece).map(|()| pending))
            .await
    }

    fn read_above(&self) -> Arc<ReadAbove> {
        let inner = Arc::clone(&self.inner);
        Arc::new(move |path| inner.fs.read_above(path))
    }
}

fn context(operation: Operation, path: &VPath) -> impl FnOnce(Error) -> Error {
    Error::context(NAME, operation, path)
}

#[async_trait]
impl Backend for LocalBackend {
    fn info(&self) -> BackendInfo {
        let mut capabilities = Capabilities::default()
            .with_links()
            .with_modes()
            .with_times()
            .with_durable()
            .with_watch();
        capabilities.writable = !self.inner.fs.read_only;
        match &self.inner.runner {
            None => BackendInfo::new(NAME, capabilities),
            Some(runner) => {
                let mut capabilities = capabilities.with_commands();
                capabilities.ports = runner.state.has_network();
                capabilities.terminals = runner.has_terminals();
                let (enforcement, limit) = runner.state.enforcement();
                BackendInfo::new(NAME, capabilities)
                    .containment(runner.containment())
                    .enforcement(enforcement)
                    .enforcement_limit(limit.map(Into::into))
            }
        }
    }

    fn working_dir(&self) -> VPath {
        self.inner.fs.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        self.inner.runner.as_ref().map(|_| self as &dyn Sandbox)
    }

    async fn resolve(&self, path: &VPath, _: ResolveOptions) -> Result<VPath> {
        self.at(Operation::Resolve, path, |fs, path, _| fs.resolve(path))
            .await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        self.used();
        if let Some(entry) = self.inner.fs.stat_cached(path, options.links) {
            return Ok(entry);
        }
        self.at(Operation::Stat, path, move |fs, path, _| {
            fs.stat(path, options.links)
        })
        .await
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        self.at(Operation::Ls, path, move |fs, path, cancel| {
            fs.ls(path, &options, cancel)
        })
        .await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        self.used();
        if let Some(content) = self.inner.fs.cached(path, options.links) {
            let read = options.slice(&content);
            return read.map_err(context(Operation::Read, path));
        }
        self.at(Operation::Read, path, move |fs, path, cancel| {
            fs.read(path, &options, cancel)
        })
        .await
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        self.used();
        if let Some(window) = self.inner.fs.read_text_cached(path, &options) {
            return window.map_err(context(Operation::ReadText, path));
        }
        self.at(Operation::ReadText, path, move |fs, path, cancel| {
            fs.read_text(path, &options, cancel)
        })
        .await
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        match content {
            Content::Bytes(content) => {
                let near = |fs: &RootedFs| fs.write_near(path, &content, options);
                if let Some(written) = self.inline(Operation::Write, path, near) {
                    return written;
                }
                self.change(Operation::Write, path, move |fs, path, cancel| {
                    fs.write(path, &content, options, cancel)
                })
                .await
            }
            Content::Stream(stream) => {
                let written = self.write_stream(path.clone(), stream, options).await;
                written.map_err(context(Operation::Write, path))
            }
        }
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        let near = |fs: &RootedFs| fs.edit_near(path, edits, &options);
        if let Some(edited) = self.inline(Operation::Edit, path, near) {
            return edited;
        }
        let edits = edits.to_vec();
        self.change(Operation::Edit, path, move |fs, path, cancel| {
            fs.edit(path, &edits, &options, cancel)
        })
        .await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.change(Operation::CreateDir, path, move |fs, path, _| {
            fs.create_dir(path, options)
        })
        .await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        self.change(Operation::Delete, path, move |fs, path, cancel| {
            fs.delete(path, &options, cancel)
        })
        .await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        let to = to.clone();
        self.change(Operation::Rename, from, move |fs, from, cancel| {
            fs.rename(from, &to, &options, cancel)
        })
        .await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        let to = to.clone();
        self.change(Operation::Copy, from, move |fs, from, cancel| {
            fs.copy(from, &to, &options, cancel)
        })
        .await
    }

    async fn glob(&self, mut query: GlobQuery) -> Result<GlobResult> {
        query.hidden |= self.inner.hidden;
        query.ignored |= self.inner.ignored;
        query.generated |= self.inner.generated;
        let (path, links, inner) = (query.path.clone(), query.links, Arc::clone(&self.inner));
        let start = path.clone();
        let open = move || {
            inner.fs.check_root(&start)?;
            let directory = inner.fs.open_path(&start, LIST, links)?;
            Ok(SearchRoot::Directory(directory, start))
        };
        self.used();
        let found = search::glob(open, query, self.read_above()).await;
        self.used();
        found.map_err(context(Operation::Glob, &path))
    }

    async fn grep(&self, mut query: GrepQuery) -> Result<GrepResult> {
        query.hidden |= self.inner.hidden;
        query.ignored |= self.inner.ignored;
        query.generated |= self.inner.generated;
        let (path, links, inner) = (query.path.clone(), query.links, Arc::clone(&self.inner));
        let start = path.clone();
        let open = move || {
            inner.fs.check_root(&start)?;
            inner.fs.open_search_root(&start, links)
        };
        self.used();
        let found = search::grep(open, query, self.read_above()).await;
        self.used();
        found.map_err(context(Operation::Grep, &path))
    }

    async fn watch(&self, query: WatchQuery) -> Result<WatchStream> {
        let path = query.path.clone();
        let opened = self.at(Operation::Watch, &path, move |fs, _, cancel| {
            watch::open(NAME, fs, query, cancel)
        });
        Ok(Box::pin(opened.await?))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;
    use crate::builder::NameSpace;

    /// Waits until no operation of the backend is running.
    async fn idle(backend: &LocalBackend) {
        let idle = async {
            while Arc::strong_count(&backend.inner) > 1 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), idle)
            .await
            .unwrap();
    }

    /// Drops a call that would take minutes, after it has started.
    async fn dropped<T>(call: impl Future<Output = T>) {
        let begun = Duration::from_millis(20);
        assert!(tokio::time::timeout(begun, call).await.is_err());
    }

    #[tokio::test]
    async fn a_call_that_is_dropped_ends_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        // The kernel describes every possible page in 256 GiB of zeros that are
        // not a hole.
        let own = format!("/proc/{}", std::process::id());
        let backend = LocalBackend::builder(directory.path())
            .names(NameSpace::Host {
                allowed: vec![own.clone().into()],
            })
            .open()
            .unwrap();
        let path = VPath::parse(&format!("{own}/pagemap")).unwrap();
        let text = TextOptions::default();
        dropped(backend.read_text(&path, text)).await;
        dropped(backend.read_text(&path, text.offset(u64::MAX))).await;
        let copy = backend.working_dir().child("copy").unwrap();
        drop(
            backend
                .copy(&path, &copy, CopyOptions::default())
                .now_or_never(),
        );
        idle(&backend).await;
        let left = std::fs::read_dir(directory.path()).unwrap();
        assert_eq!(left.count(), 0);
    }
}
