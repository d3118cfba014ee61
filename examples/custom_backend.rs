//! A custom backend in about a hundred lines: a flat map in memory.
//!
//! Run it with `cargo run --example custom_backend`: it runs the whole conformance
//! suite.
#![allow(clippy::print_stdout, reason = "this is an example")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use backend_core::{Backend, BackendInfo, Capabilities, Error, Operation, Result, VPath};
use backend_core::{derived, ops::*};
use backend_testkit::{Fixture, run_all};
use bytes::Bytes;

/// Files by path; `None` is a directory. The root is not stored.
type Nodes = BTreeMap<VPath, Option<Bytes>>;

#[derive(Debug, Default)]
struct FlatBackend(Mutex<Nodes>);

impl FlatBackend {
    /// Locks all nodes. Errors get the operation and the path as context.
    fn with<T>(
        &self,
        op: Operation,
        at: &VPath,
        f: impl FnOnce(&mut Nodes) -> Result<T>,
    ) -> Result<T> {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f(&mut nodes).map_err(Error::context("flat", op, at))
    }
}

fn node(nodes: &Nodes, path: &VPath) -> Result<Option<Bytes>> {
    let is_file = |above: VPath| matches!(nodes.get(&above), Some(Some(_)));
    match nodes.get(path) {
        Some(node) => Ok(node.clone()),
        None if path.is_root() => Ok(None),
        None if path.ancestors().any(is_file) => Err(Error::not_a_directory()),
        None => Err(Error::not_found()),
    }
}

fn entry(path: &VPath, node: &Option<Bytes>) -> Entry {
    match node {
        Some(content) => Entry::file(path.clone(), content.len() as u64),
        None => Entry::directory(path.clone()),
    }
}

fn put(nodes: &mut Nodes, path: &VPath, node: Option<Bytes>) -> Result<()> {
    let above = path.ancestors().filter(|above| !above.is_root());
    nodes.extend(above.map(|above| (above, None)));
    nodes.insert(path.clone(), node);
    Ok(())
}

backend_core::derived_backend! {
    impl Backend for FlatBackend {
        fn info(&self) -> BackendInfo {
            BackendInfo::new("flat", Capabilities::writable())
        }
        async fn stat(&self, path: &VPath, _: StatOptions) -> Result<Entry> {
            self.with(Operation::Stat, path, |nodes| Ok(entry(path, &node(nodes, path)?)))
        }
        async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
            self.with(Operation::Ls, path, |nodes| {
                let is_file = node(nodes, path)?.is_some();
                let is_listed = |at: &VPath| is_file && at == path || at.parent().as_ref() == Some(path);
                let listed = nodes.iter().filter(|(at, _)| is_listed(at));
                options.listing(listed.map(|(at, node)| entry(at, node)).collect(), Skipped::default())
            })
        }
        async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
            let file = |nodes: &mut Nodes| node(nodes, path)?.ok_or_else(Error::is_a_directory);
            self.with(Operation::Read, path, |nodes| options.slice(&file(nodes)?))
        }
        async fn write(&self, path: &VPath, content: Content, options: WriteOptions) -> Result<WriteOutcome> {
            let content = content.collect(1 << 30).await;
            self.with(Operation::Write, path, |nodes| {
                let content = content?;
                let existing = Error::none_if_missing(node(nodes, path))?;
                if existing == Some(None) {
                    return Err(options.mode.on_directory());
                }
                options.mode.check(existing.as_ref().and_then(Option::as_deref))?;
                put(nodes, path, Some(content.clone()))?;
                Ok(WriteOutcome::of(existing.is_none(), &content))
            })
        }
        async fn create_dir(&self, path: &VPath, _: CreateDirOptions) -> Result<()> {
            self.with(Operation::CreateDir, path, |nodes| match Error::none_if_missing(node(nodes, path))? {
                Some(Some(_)) => Err(Error::already_exists()),
                Some(None) => Ok(()),
                None => put(nodes, path, None),
            })
        }
        async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
            self.with(Operation::Delete, path, |nodes| {
                derived::refuse_working_dir(path, &VPath::root())?;
                let goes = node(nodes, path)?.is_some() || options.recursive;
                nodes.retain(|at, _| !(goes && at.starts_with(path)));
                if goes { Ok(()) } else { Err(Error::is_a_directory()) }
            })
        }
    }
}

/// A fresh backend for each case of the suite.
#[derive(Default)]
struct Flat(Arc<FlatBackend>);

impl Fixture for Flat {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.0) as Arc<dyn Backend>
    }
}

#[tokio::main]
async fn main() {
    let report = run_all(async || Flat::default()).await;
    println!("{report}");
    assert!(report.failed.is_empty(), "the backend breaks the contract");
}

#[cfg(test)]
backend_testkit::conformance! {
    mod flat;
    fixture = async || Flat::default();
    skipped = 239;
}
