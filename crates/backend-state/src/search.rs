//! Drives the shared walk over the tree in memory.

use std::sync::Arc;

use backend_core::limits::IGNORE_FILE_BYTES;
use backend_core::ops::{FileKind, GlobQuery, GlobResult, GrepQuery, GrepResult, Skipped};
use backend_core::search::{Child, GlobCollector, GrepCollector, Step, Walk, WalkOptions};
use backend_core::{Error, Result, VPath};

use crate::tree::{Directory, File, Node, Tree};
use crate::yield_timer::YieldTimer;

pub(crate) async fn glob(tree: &Tree, query: GlobQuery) -> Result<GlobResult> {
    let options = query.compile()?;
    if !matches!(tree.get(&query.path)?, Node::Directory(_)) {
        return Err(Error::not_a_directory());
    }
    let mut files = Files::new(tree, &query.path, options);
    let mut found = GlobCollector::new(&query);
    while let Some((path, file)) = files.next().await {
        if found.add(Node::File(file).entry(path)).is_break() {
            break;
        }
    }
    Ok(found.finish(files.walk.skipped()))
}

pub(crate) async fn grep(tree: &Tree, query: GrepQuery) -> Result<GrepResult> {
    let (options, grep) = query.compile()?;
    let mut worker = grep.worker();
    let mut found = GrepCollector::new(&query);
    if let Node::File(file) = tree.get(&query.path)? {
        if !query.exclude.hides(&query.path) {
            found.add(worker.search_bytes(&query.path, &file.content));
        }
        return Ok(found.finish(Skipped::default()));
    }
    let mut files = Files::new(tree, &query.path, options);
    while let Some((path, file)) = files.next().await {
        if found.add(worker.search_bytes(&path, &file.content)) {
            break;
        }
    }
    Ok(found.finish(files.walk.skipped()))
}

/// The files of a search, in path order.
struct Files<'t> {
    tree: &'t Tree,
    walk: Walk<Arc<Directory>, Option<Arc<File>>>,
    yields: YieldTimer,
}

impl<'t> Files<'t> {
    fn new(tree: &'t Tree, start: &VPath, options: WalkOptions) -> Self {
        Self {
            tree,
            walk: Walk::new(start.clone(), options),
            yields: YieldTimer::new(),
        }
    }

    async fn next(&mut self) -> Option<(VPath, Arc<File>)> {
        loop {
            match self.walk.step() {
                Step::Done => return None,
                Step::File { path, payload, .. } => {
                    let found = payload.map(|file| (path.clone(), file));
                    self.yields.tick().await;
                    return found;
                }
                Step::Enter { parent, name, path } => {
                    let found = match parent {
                        Some(parent) => parent.entries.get(name).cloned(),
                        None => self.tree.get(path).ok(),
                    };
                    match found {
                        Some(Node::Directory(directory)) => {
                            let children = children(&directory);
                            self.walk.entered(directory, children);
                        }
                        _ => self.walk.unreadable(),
                    }
                }
                Step::IgnoreFile { path, .. } => {
                    let rules = match self.tree.get(path) {
                        Ok(Node::File(file)) if file.content.len() <= IGNORE_FILE_BYTES => {
                            Some(file)
                        }
                        _ => None,
                    };
                    let rules = rules.as_ref().map(|file| &file.content[..]);
                    self.walk.ignore_file(rules);
                }
            }
        }
    }
}

fn children(directory: &Directory) -> Vec<Child<Option<Arc<File>>>> {
    let children = directory.entries.iter().map(|(name, node)| {
        let (kind, payload) = match node {
            Node::File(file) => (FileKind::File, Some(Arc::clone(file))),
            Node::Directory(_) => (FileKind::Directory, None),
        };
        Child {
            name: name.as_ref().to_owned(),
            kind,
            payload,
        }
    });
    children.collect()
}
