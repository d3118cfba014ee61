//! A tree in memory, and a driver that walks it.

use std::collections::BTreeMap;

use crate::ops::{FileKind, Skipped};
use crate::path::VPath;
use crate::search::{Child, Step, Walk, WalkOptions};

/// A tree in memory: the node at each path, parents included.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug)]
pub(super) enum Node {
    File(Vec<u8>),
    Directory,
    UnreadableDirectory,
    Link,
    Fifo,
}

impl Node {
    fn kind(&self) -> FileKind {
        match self {
            Self::File(_) => FileKind::File,
            Self::Directory | Self::UnreadableDirectory => FileKind::Directory,
            Self::Link => FileKind::Link,
            Self::Fifo => FileKind::Other,
        }
    }
}

impl Tree {
    /// Creates a tree of empty files; a path that ends with `/` is a directory.
    pub(super) fn new(paths: &[&str]) -> Self {
        paths
            .iter()
            .fold(Self::default(), |tree, path| tree.with(path, ""))
    }

    pub(super) fn with(self, path: &str, text: &str) -> Self {
        match path.strip_suffix('/') {
            Some(path) => self.with_node(path, Node::Directory),
            None => self.with_node(path, Node::File(text.as_bytes().to_vec())),
        }
    }

    pub(super) fn with_node(mut self, path: &str, node: Node) -> Self {
        let path = VPath::parse(path).unwrap();
        for above in path.ancestors() {
            let parent = self.nodes.entry(above.to_string());
            parent.or_insert(Node::Directory);
        }
        self.nodes.insert(path.to_string(), node);
        self
    }

    pub(super) fn text(&self, path: &VPath) -> Option<&[u8]> {
        match self.nodes.get(path.as_str()) {
            Some(Node::File(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn children(&self, directory: &VPath) -> Vec<Child<u64>> {
        let beneath = self.nodes.iter().rev().filter_map(|(path, node)| {
            let path = VPath::parse(path).unwrap();
            let name = path.strip_prefix(directory)?;
            (!name.is_empty() && !name.contains('/')).then(|| (name.to_owned(), node))
        });
        beneath
            .map(|(name, node)| {
                let size = match node {
                    Node::File(text) => text.len() as u64,
                    _ => 0,
                };
                Child::new(name, node.kind(), size)
            })
            .collect()
    }

    pub(super) fn walk(&self, start: &str, options: WalkOptions) -> Log {
        let mut log = Log::default();
        let mut walk = Walk::<VPath, u64>::new(VPath::parse(start).unwrap(), options);
        loop {
            match walk.step() {
                Step::Enter { parent, name, path } => {
                    let opened = parent.map(|parent| parent.child(name).unwrap());
                    assert!(opened.is_none_or(|opened| opened == *path));
                    log.entered.push(path.to_string());
                    match self.nodes.get(path.as_str()) {
                        Some(Node::Directory) => {
                            let (path, children) = (path.clone(), self.children(path));
                            walk.entered(path, children);
                        }
                        _ => walk.unreadable(),
                    }
                }
                Step::IgnoreFile {
                    directory,
                    name,
                    path,
                } => {
                    let parent = directory.cloned().or(path.parent()).unwrap();
                    assert_eq!(parent.child(name).unwrap(), *path);
                    log.read.push(path.to_string());
                    match self.nodes.get(path.as_str()) {
                        Some(Node::File(text)) => walk.ignore_file(Some(text)),
                        _ => walk.ignore_file(None),
                    }
                }
                Step::File {
                    directory,
                    path,
                    payload,
                } => {
                    assert_eq!(path.parent().as_ref(), Some(directory));
                    log.found.push(path.to_string());
                    log.bytes += payload;
                }
                Step::Done => break,
            }
        }
        assert!(matches!(walk.step(), Step::Done), "done stays done");
        log.skipped = walk.skipped();
        log
    }
}

/// The record of a walk.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) found: Vec<String>,
    pub(super) entered: Vec<String>,
    pub(super) read: Vec<String>,
    pub(super) bytes: u64,
    pub(super) skipped: Skipped,
}
