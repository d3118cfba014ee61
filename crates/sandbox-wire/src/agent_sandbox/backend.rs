//! File operations of [`AgentSandbox`].

use std::borrow::Cow;

use async_trait::async_trait;
use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WatchQuery, WriteOptions,
    WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{
    Backend, BackendInfo, Containment, Edit, Error, Operation, Result, Sandbox, VPath, WatchStream,
};

use crate::agent_sandbox::AgentSandbox;
use crate::client;
use crate::machine::Machine;
use crate::message::{INLINE_BYTES, Request};

/// The reason why commands of a sandbox are not confined further.
const AT_THE_EDGE: &str = "its commands are confined to the sandbox and no further; use a local backend with \
     `Landlock::views`, or keep what is denied out of the sandbox";

#[async_trait]
impl<M: Machine> Backend for AgentSandbox<M> {
    fn info(&self) -> BackendInfo {
        let capabilities = self.options.capabilities;
        let containment = if capabilities.commands {
            Containment::Isolated
        } else {
            Containment::NoCommands
        };
        let info = BackendInfo::new(self.machine.name(), capabilities).containment(containment);
        let limit = capabilities.commands.then_some(Cow::Borrowed(AT_THE_EDGE));
        info.enforcement_limit(limit)
    }

    fn working_dir(&self) -> VPath {
        self.machine.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        self.options.capabilities.commands.then_some(self)
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        let request = Request::Resolve(path.clone(), options);
        let work = async { client::path(&mut self.open(request).await?).await };
        self.at(Operation::Resolve, path, work).await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        let request = Request::Stat(path.clone(), options);
        let work = async { client::entry(&mut self.open(request).await?, path).await };
        self.at(Operation::Stat, path, work).await
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        let request = Request::Ls(path.clone(), options.clone());
        let work = async { client::listing(&mut self.open(request).await?, path, &options).await };
        self.at(Operation::Ls, path, work).await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        let request = Request::Read(path.clone(), options);
        let work = async { client::read(&mut self.open(request).await?, &options).await };
        self.at(Operation::Read, path, work).await
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        let request = Request::ReadText(path.clone(), options);
        let work = async { client::text(&mut self.open(request).await?, &options).await };
        self.at(Operation::ReadText, path, work).await
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let work = async {
            match content {
                Content::Bytes(bytes) if bytes.len() <= INLINE_BYTES => {
                    let request = Request::Write(path.clone(), options, bytes);
                    client::written(&mut self.open(request).await?).await
                }
                content => {
                    let request = Request::WriteStream(path.clone(), options);
                    client::write_pieces(self.open(request).await?, content).await
                }
            }
        };
        self.at(Operation::Write, path, work).await
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        let request = Request::Edit(path.clone(), edits.to_vec(), options);
        let work = async { client::edited(&mut self.open(request).await?, edits.len()).await };
        self.at(Operation::Edit, path, work).await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        let request = Request::CreateDir(path.clone(), options);
        let work = async { client::done(&mut self.open(request).await?).await };
        self.at(Operation::CreateDir, path, work).await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        let request = Request::Delete(path.clone(), options);
        let work = async { client::done(&mut self.open(request).await?).await };
        self.at(Operation::Delete, path, work).await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        let request = Request::Rename(from.clone(), to.clone(), options);
        let work = async { client::done(&mut self.open(request).await?).await };
        self.at(Operation::Rename, from, work).await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        let request = Request::Copy(from.clone(), to.clone(), options);
        let work = async { client::done(&mut self.open(request).await?).await };
        self.at(Operation::Copy, from, work).await
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        let request = Request::Glob(query.clone());
        let work = async { client::glob(&mut self.open(request).await?, &query).await };
        self.at(Operation::Glob, &query.path, work).await
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        let request = Request::Grep(query.clone());
        let work = async { client::grep(&mut self.open(request).await?, &query).await };
        self.at(Operation::Grep, &query.path, work).await
    }

    /// The sandbox is in use until the watch has started, and not because of it later.
    async fn watch(&self, query: WatchQuery) -> Result<WatchStream> {
        let (path, name) = (query.path.clone(), self.machine.name());
        let at = path.clone();
        let context = move |error: Error| error.at(Operation::Watch, &at).on(name.clone());
        let request = Request::Watch(query.clone());
        let work = async { client::changes(self.open(request).await?, query, context).await };
        self.at(Operation::Watch, &path, work).await
    }
}
