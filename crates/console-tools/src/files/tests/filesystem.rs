//! Tests of the `filesystem` profile, and mounts over files in memory to run them on.

mod delete_move_copy;
mod edit_file;
mod list_files;
mod read_file;
mod refusal;

use std::sync::{Arc, Mutex};

use backend_core::ops::{
    Content, CreateDirOptions, DeleteOptions, Entry, FileBytes, Listing, LsOptions, ReadOptions,
    StatOptions, WriteOptions, WriteOutcome,
};
use backend_core::{Backend, BackendExt as _, BackendInfo, Error, Result, VPath};
use backend_mounts::{MountConfig, Scope};
use backend_state::StateBackend;
use futures::executor::block_on;
use permissions::{Kind, Op, Reason, Refusal};
use serde_json::Value;

use crate::context::Context;
use crate::conversation::Conversation;
use crate::files::copy_file::Filesystem as CopyFileTool;
use crate::files::delete_file::Filesystem as DeleteFileTool;
use crate::files::edit_file::Filesystem as EditFileTool;
use crate::files::list_files::ListFilesTool;
use crate::files::move_file::Filesystem as MoveFileTool;
use crate::files::read_file::Filesystem as ReadFileTool;
use crate::files::write_file::Filesystem as WriteFileTool;
use crate::options::{Options, Profile};
use crate::reply::{FailureClass, Reply};
use crate::tool::Builtin;

/// Creates a context over `backend` with the default options.
fn context(backend: impl Backend) -> Context {
    let options = Arc::new(Options::default());
    Context::new(
        Arc::new(backend),
        options,
        Arc::new(Conversation::default()),
    )
}

/// Creates a context over files in memory.
fn files(files: &[(&str, &[u8])]) -> Context {
    let state = StateBackend::new();
    for (path, content) in files {
        block_on(state.write_file(path, *content)).unwrap();
    }
    context(state)
}

/// Calls a tool with JSON, as a model does.
fn call<T: Builtin>(context: &Context, arguments: Value) -> Reply {
    let arguments = serde_json::from_value(arguments).expect("arguments of the right shape");
    Reply::for_profile(Profile::Filesystem, block_on(T::run(context, arguments)))
}

/// Calls a tool and returns the text of its success.
fn ok<T: Builtin>(context: &Context, arguments: Value) -> String {
    let reply = call::<T>(context, arguments);
    assert_eq!(reply.failure, None, "{}", reply.text);
    reply.text
}

/// Calls a tool and returns the text of its fixable failure.
fn fixable<T: Builtin>(context: &Context, arguments: Value) -> String {
    failed::<T>(context, arguments, FailureClass::Fixable)
}

/// Calls a tool and returns the text of its failure of `class`.
fn failed<T: Builtin>(context: &Context, arguments: Value, class: FailureClass) -> String {
    let reply = call::<T>(context, arguments);
    assert_eq!(reply.failure, Some(class), "{}", reply.text);
    reply.text
}

/// Returns the content of a file.
fn content(context: &Context, path: &str) -> String {
    block_on(context.backend.read_to_string(path)).unwrap()
}

/// Files in memory behind mounts: enough of a guard to see its refusals. A given
/// refusal is returned once.
#[derive(Debug)]
struct Mounted {
    files: StateBackend,
    scope: Scope,
    declined: Mutex<Option<Refusal>>,
}

impl Mounted {
    fn check(&self, op: Op, path: &VPath, bytes: Option<u64>) -> Result<()> {
        if let Some(refusal) = self.declined.lock().unwrap().take() {
            return Err(refusal.into());
        }
        let verdict = self.scope.judge(op, path, Kind::File, bytes);
        match &verdict.decisive().reason {
            Reason::Refused(refusal) => Err(Error::from((**refusal).clone())),
            _ => Ok(()),
        }
    }
}

backend_core::derived_backend! {
    impl Backend for Mounted {
        fn info(&self) -> BackendInfo {
            self.files.info()
        }
        async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
            self.check(Op::Ls, path, None)?;
            self.files.stat(path, options).await
        }
        async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
            // Glob is derived from `ls`.
            let exclude = self.scope.exclude(Op::Glob);
            self.files.ls(path, options.exclude(exclude)).await
        }
        async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
            self.check(Op::Read, path, None)?;
            let read = self.files.read(path, options).await?;
            self.scope.check_size(path, read.size)?;
            Ok(read)
        }
        async fn write(&self, path: &VPath, content: Content, options: WriteOptions) -> Result<WriteOutcome> {
            let content = content.collect(1 << 20).await?;
            self.check(Op::Write, path, Some(content.len() as u64))?;
            self.files.write(path, content.into(), options).await
        }
        async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
            self.files.create_dir(path, options).await
        }
        async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
            self.check(Op::Delete, path, None)?;
            self.files.delete(path, options).await
        }
    }
}

/// Creates a context with the mounts `/docs`, of which only small `.md` files can be
/// read, and `/user`.
fn mounted() -> Context {
    declining(None)
}

/// Creates the context of [`mounted`], whose first check fails with `refusal`.
fn declining(refusal: Option<Refusal>) -> Context {
    let config = r#"
        [[mounts]]
        host_path = "/srv/docs"
        mount_point = "/docs"
        suffixes = [".md", ".txt"]
        max_file_bytes = 2000

        [[mounts]]
        host_path = "/srv/user"
        mount_point = "/user"
        mode = "rw"
        write_approval = false
    "#;
    let scope = Scope::new(MountConfig::from_toml(config).unwrap().build().unwrap());
    let files = StateBackend::new();
    let big = "x".repeat(2001);
    for (path, content) in [
        ("/docs/a.md", "about\n"),
        ("/docs/sub/c.md", "c\n"),
        ("/docs/big.md", &big),
        ("/docs/a.bin", "\n"),
        ("/user/b.md", "before\n"),
        ("/user/.hidden", "\n"),
        ("/secret/s.md", "s\n"),
    ] {
        block_on(files.write_file(path, content)).unwrap();
    }
    let guard = Mounted {
        files,
        scope: scope.clone(),
        declined: Mutex::new(refusal),
    };
    let mut context = context(guard);
    context.scope = Some(scope);
    context
}
