//! Rules for every operation.

use std::sync::Arc;

use backend_core::ops::{GlobQuery, GrepQuery, LsOptions, ReadOptions, StatOptions};
use backend_core::{Backend as _, BackendExt as _, Containment, Error, ErrorKind, Operation};
use futures::FutureExt as _;
use futures::future::join_all;

use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

fn told<T>(t: &Env, result: Result<T, Error>, operation: Operation, path: &str) -> CaseResult {
    let Err(error) = result else {
        return Err(Failure::new(format!("{operation:?} succeeded")));
    };
    check_eq!(error.operation(), Some(operation))?;
    check_eq!(error.path(), Some(&t.path(path)?))?;
    let name = t.backend().info().name;
    check_eq!(error.backend(), Some(name.as_ref()))?;
    check!(!error.message().is_empty())
}

/// The working directory exists and can be listed.
pub async fn working_directory_is_there(t: &Env) -> CaseResult {
    let path = t.backend().working_dir();
    let entry = t.backend().stat(&path, StatOptions::default()).await?;
    check!(entry.is_dir())?;
    check_eq!(t.names(".").await?, Vec::<String>::new())
}

/// An error says which operation failed, where, and on which backend.
pub async fn errors_have_context(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    let backend = t.backend();
    let missing = t.path("missing")?;
    let read = backend.read(&missing, ReadOptions::default()).await;
    told(t, read, Operation::Read, "missing")?;
    let list = backend.ls(&missing, LsOptions::default()).await;
    told(t, list, Operation::Ls, "missing")?;
    let edit = backend.replace_text("missing", "a", "b").await;
    told(t, edit, Operation::Edit, "missing")?;
    let delete = backend.delete_file("missing").await;
    told(t, delete, Operation::Delete, "missing")?;
    let write = backend.write_file("file/beneath", "x").await;
    told(t, write, Operation::Write, "file/beneath")?;
    let moved = backend.move_to("missing", "elsewhere").await;
    told(t, moved, Operation::Rename, "missing")?;
    let glob = backend.glob(GlobQuery::new("*", missing.clone())).await;
    told(t, glob, Operation::Glob, "missing")?;
    let grep = backend.grep(GrepQuery::new("x", missing)).await;
    told(t, grep, Operation::Grep, "missing")
}

/// The same mistake gives the same kind of error in every operation.
pub async fn beneath_a_file_is_one_kind(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    let kind = ErrorKind::NotADirectory;
    let backend = t.backend();
    let path = t.path("file/beneath")?;
    t.fails(kind, backend.read_bytes("file/beneath").await)?;
    t.fails(kind, backend.list_dir("file/beneath").await)?;
    t.fails(kind, backend.write_file("file/beneath", "x").await)?;
    t.fails(kind, backend.replace_text("file/beneath", "x", "y").await)?;
    t.fails(kind, backend.delete_file("file/beneath").await)?;
    t.fails(kind, backend.copy_to("file/beneath", "copy").await)?;
    t.fails(kind, backend.move_to("file/beneath", "moved").await)?;
    t.fails(kind, backend.glob(GlobQuery::new("*", path.clone())).await)?;
    t.fails(kind, backend.grep(GrepQuery::new("x", path)).await)
}

/// Clones of a handle share the same files.
pub async fn handles_share_one_place(t: &Env) -> CaseResult {
    let other = Arc::clone(t.backend());
    other.write_file("file", "x").await?;
    check_eq!(t.get("file").await?, b"x")
}

/// Many concurrent calls all get their own results.
pub async fn many_calls_at_once(t: &Env) -> CaseResult {
    let names: Vec<_> = (0..200).map(|n| format!("many/{n}")).collect();
    let writes = names
        .iter()
        .map(|name| t.backend().write_file(name, name.as_str()));
    for written in join_all(writes).await {
        written?;
    }
    let reads = names.iter().map(|name| t.get(name));
    for (name, read) in names.iter().zip(join_all(reads).await) {
        check_eq!(read?, name.as_bytes())?;
    }
    check_eq!(t.names("many").await?.len(), 200)
}

/// A call that is dropped after its first step harms nothing.
pub async fn dropped_calls_harm_nothing(t: &Env) -> CaseResult {
    t.put("file", "old\n").await?;
    for _ in 0..20 {
        let write = t.backend().write_file("file", "new\n");
        drop(write.now_or_never());
        let edit = t.backend().replace_text("file", "old", "older");
        drop(edit.now_or_never());
        drop(t.backend().search_text("o").now_or_never());
        drop(t.backend().find_files("**").now_or_never());
    }
    let content = t.get("file").await?;
    let whole = content == b"new\n" || (content.starts_with(b"old") && content.ends_with(b"\n"));
    check!(whole, "{:?}", String::from_utf8_lossy(&content))?;
    t.put("file", "done").await?;
    check_eq!(t.get("file").await?, b"done")?;
    check_eq!(t.names(".").await?, ["file"])
}

/// Every operation sees a written file.
pub async fn every_view_agrees(t: &Env) -> CaseResult {
    t.put("a/b.txt", "needle\n").await?;
    let backend = t.backend();
    check_eq!(backend.exists("a/b.txt").await?, true)?;
    check_eq!(t.names("a").await?, ["b.txt"])?;
    check_eq!(t.glob("b.txt").await?, ["a/b.txt"])?;
    check_eq!(t.grep("needle").await?, ["a/b.txt:1:needle"])?;
    backend.delete_file("a/b.txt").await?;
    check_eq!(backend.exists("a/b.txt").await?, false)?;
    check!(t.names("a").await?.is_empty())?;
    check!(t.glob("b.txt").await?.is_empty())?;
    check!(t.grep("needle").await?.is_empty())
}

/// The backend is a sandbox exactly if its capabilities include commands.
pub async fn sandbox_is_there_if_promised(t: &Env) -> CaseResult {
    let info = t.backend().info();
    let promised = info.capabilities.commands;
    check_eq!(t.backend().as_sandbox().is_some(), promised)?;
    let contained = info.containment != Containment::NoCommands;
    check_eq!(contained, promised)
}
