//! A minimal blocking implementation: files in a map.

use std::collections::BTreeMap;
use std::sync::Mutex;

use backend_core::ops::*;
use backend_core::sync::lock;
use backend_core::{BackendInfo, Capabilities, Error, Operation, Result, VPath, derived};
use backend_sync::{BlockingBackend, BlockingContent};
use bytes::Bytes;

/// Files by path; `None` is a directory. The root has no entry.
type Nodes = BTreeMap<VPath, Option<Bytes>>;

/// Files in a map.
#[derive(Debug, Default)]
pub(crate) struct Flat(Mutex<Nodes>);

impl Flat {
    fn with<T>(
        &self,
        operation: Operation,
        at: &VPath,
        work: impl FnOnce(&mut Nodes) -> Result<T>,
    ) -> Result<T> {
        work(&mut lock(&self.0)).map_err(Error::context("flat", operation, at))
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

fn put(nodes: &mut Nodes, path: &VPath, node: Option<Bytes>) {
    let above = path.ancestors().filter(|above| !above.is_root());
    nodes.extend(above.map(|above| (above, None)));
    nodes.insert(path.clone(), node);
}

impl BlockingBackend for Flat {
    fn info(&self) -> BackendInfo {
        BackendInfo::new("flat", Capabilities::writable())
    }

    fn stat(&self, path: &VPath, _: StatOptions) -> Result<Entry> {
        self.with(Operation::Stat, path, |nodes| {
            Ok(entry(path, &node(nodes, path)?))
        })
    }

    fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        self.with(Operation::Ls, path, |nodes| {
            let is_file = node(nodes, path)?.is_some();
            let is_listed =
                |at: &VPath| is_file && at == path || at.parent().as_ref() == Some(path);
            let listed = nodes.iter().filter(|(at, _)| is_listed(at));
            let entries = listed.map(|(at, node)| entry(at, node)).collect();
            options.listing(entries, Skipped::default())
        })
    }

    fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        self.with(Operation::Read, path, |nodes| {
            let content = node(nodes, path)?.ok_or_else(Error::is_a_directory)?;
            options.slice(&content)
        })
    }

    fn write(
        &self,
        path: &VPath,
        content: BlockingContent,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let content = content.collect(1 << 30);
        self.with(Operation::Write, path, |nodes| {
            let content = content?;
            let existing = Error::none_if_missing(node(nodes, path))?;
            if existing == Some(None) {
                return Err(options.mode.on_directory());
            }
            let before = existing.as_ref().and_then(Option::as_deref);
            options.mode.check(before)?;
            put(nodes, path, Some(content.clone()));
            Ok(WriteOutcome::of(existing.is_none(), &content))
        })
    }

    fn create_dir(&self, path: &VPath, _: CreateDirOptions) -> Result<()> {
        self.with(
            Operation::CreateDir,
            path,
            |nodes| match Error::none_if_missing(node(nodes, path))? {
                Some(Some(_)) => Err(Error::already_exists()),
                Some(None) => Ok(()),
                None => {
                    put(nodes, path, None);
                    Ok(())
                }
            },
        )
    }

    fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        self.with(Operation::Delete, path, |nodes| {
            derived::refuse_working_dir(path, &VPath::root())?;
            let goes = node(nodes, path)?.is_some() || options.recursive;
            nodes.retain(|at, _| !(goes && at.starts_with(path)));
            if goes {
                Ok(())
            } else {
                Err(Error::is_a_directory())
            }
        })
    }
}
