//! [`Table`]: finds the route for a path.
//!
//! The table is a tree of names. A lookup walks down the names of the path and
//! keeps the last route it met, so its cost is the depth of the path, however many
//! routes there are. A table never changes: adding a route makes a new one, and a
//! call keeps the table it started with.

use std::collections::BTreeMap;
use std::sync::Arc;

use backend_core::ops::{
    Content, CreateDirOptions, DeleteOptions, Entry, FileBytes, Listing, LsOptions, ReadOptions,
    Skipped, StatOptions, WriteOptions, WriteOutcome,
};
use backend_core::{BackendInfo, Capabilities, Error, ErrorKind, Result, VPath, derived_backend};

use crate::failure::NAME;
use crate::route::Route;

/// All routes at one point in time.
#[derive(Debug)]
pub(crate) struct Table {
    /// Routes by prefix. The route at `/` is the default, and may be missing.
    routes: BTreeMap<VPath, Arc<Route>>,
    root: Node,
    /// The fallback for paths outside every route.
    default: Arc<Route>,
}

/// A name on the path to a route.
#[derive(Debug, Default)]
pub(crate) struct Node {
    route: Option<Arc<Route>>,
    children: BTreeMap<Box<str>, Self>,
}

/// The result of looking up a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookup<'t> {
    /// The route that handles it.
    pub(crate) route: &'t Arc<Route>,
    /// The path's own node, if it is a route's prefix or lies above one.
    node: Option<&'t Node>,
}

impl Table {
    pub(crate) fn new(routes: BTreeMap<VPath, Arc<Route>>) -> Self {
        let mut root = Node::default();
        for (prefix, route) in &routes {
            let mut node = &mut root;
            for name in prefix.components() {
                node = node.children.entry(name.into()).or_default();
            }
            node.route = Some(Arc::clone(route));
        }
        let nothing = || Arc::new(Route::new(VPath::root(), Arc::new(Empty)));
        let default = root.route.clone().unwrap_or_else(nothing);
        Self {
            routes,
            root,
            default,
        }
    }

    /// Returns the routes by prefix, without the placeholder for a missing default.
    pub(crate) fn routes(&self) -> &BTreeMap<VPath, Arc<Route>> {
        &self.routes
    }

    /// Finds the route with the longest prefix of `path`.
    pub(crate) fn find(&self, path: &VPath) -> Lookup<'_> {
        let mut route = &self.default;
        let mut node = Some(&self.root);
        for name in path.components() {
            node = node.and_then(|node| node.children.get(name));
            let Some(node) = node else {
                break;
            };
            route = node.route.as_ref().unwrap_or(route);
        }
        Lookup { route, node }
    }
}

impl<'t> Lookup<'t> {
    /// Whether the path is a route's prefix or lies above one, and so is a
    /// directory whatever the backends hold.
    pub(crate) fn is_route_dir(&self) -> bool {
        self.node.is_some()
    }

    /// Whether the path lies above a route and is not a prefix itself, so that it
    /// need not exist in any backend.
    pub(crate) fn is_synthetic(&self, path: &VPath) -> bool {
        self.node.is_some() && self.route.prefix() != path
    }

    /// Returns the names that routes add to this directory.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        self.node
            .into_iter()
            .flat_map(|node| node.children.keys())
            .map(|name| &**name)
    }

    /// Whether routes add this name to the directory.
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.node
            .is_some_and(|node| node.children.contains_key(name))
    }

    /// Whether a route lies beneath the path.
    pub(crate) fn has_routes_beneath(&self) -> bool {
        self.node.is_some_and(|node| !node.children.is_empty())
    }

    /// Returns the directories beneath `path`, the path of this lookup, that exist
    /// because of routes.
    pub(crate) fn route_dirs_beneath(&self, path: &VPath) -> Vec<VPath> {
        let mut found = Vec::new();
        let mut pending: Vec<_> = self
            .node
            .map(|node| (path.clone(), node))
            .into_iter()
            .collect();
        while let Some((directory, node)) = pending.pop() {
            for (name, node) in &node.children {
                // Each lies above a prefix, which is a valid path.
                if let Ok(child) = directory.child(name) {
                    found.push(child.clone());
                    pending.push((child, node));
                }
            }
        }
        found
    }

    /// Returns the routes beneath the path, outer ones before those nested in them.
    pub(crate) fn routes_beneath(&self) -> Vec<&'t Arc<Route>> {
        let mut found = Vec::new();
        let mut pending: Vec<_> = self
            .node
            .into_iter()
            .flat_map(|node| node.children.values().rev())
            .collect();
        while let Some(node) = pending.pop() {
            found.extend(&node.route);
            pending.extend(node.children.values().rev());
        }
        found
    }
}

/// An empty directory that stays empty.
#[derive(Debug)]
pub(crate) struct Empty;

fn closed() -> Error {
    Error::new(
        ErrorKind::PermissionDenied,
        "no route has this path; choose one beneath a directory that '/' lists",
    )
}

/// Only the root exists.
fn refuse_missing(path: &VPath) -> Result<()> {
    if path.is_root() {
        Ok(())
    } else {
        Err(Error::not_found())
    }
}

derived_backend! {
    impl Backend for Empty {
        fn info(&self) -> BackendInfo {
            BackendInfo::new(NAME, Capabilities::default())
        }

        async fn stat(&self, path: &VPath, _: StatOptions) -> Result<Entry> {
            refuse_missing(path).map(|()| Entry::directory(path.clone()))
        }

        async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
            refuse_missing(path).and_then(|()| options.listing(Vec::new(), Skipped::default()))
        }

        async fn read(&self, path: &VPath, _: ReadOptions) -> Result<FileBytes> {
            refuse_missing(path).and(Err(Error::is_a_directory()))
        }

        async fn write(&self, _: &VPath, _: Content, _: WriteOptions) -> Result<WriteOutcome> {
            Err(closed())
        }

        async fn create_dir(&self, path: &VPath, _: CreateDirOptions) -> Result<()> {
            if path.is_root() { Ok(()) } else { Err(closed()) }
        }

        async fn delete(&self, _: &VPath, _: DeleteOptions) -> Result<()> {
            Err(Error::not_found())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(prefixes: &[&str]) -> Table {
        let route = |prefix: &&str| {
            let prefix = VPath::parse(prefix).unwrap();
            let route = Route::new(prefix.clone(), Arc::new(Empty));
            (prefix, Arc::new(route))
        };
        Table::new(prefixes.iter().map(route).collect())
    }

    fn found(table: &Table, path: &str) -> String {
        let path = VPath::parse(path).unwrap();
        table.find(&path).route.prefix().to_string()
    }

    #[test]
    fn the_longest_prefix_wins_name_by_name() {
        let table = table(&["/foo/", "/foo/bar", "/foobar", "/a/b/c"]);
        for (path, prefix) in [
            ("/", "/"),
            ("/foo", "/foo"),
            ("/foo/x", "/foo"),
            ("/foo/ba", "/foo"),
            ("/foo/bar", "/foo/bar"),
            ("/foo/bar/x/y", "/foo/bar"),
            ("/foo/barn", "/foo"),
            ("/foobar/x", "/foobar"),
            ("/fo", "/"),
            ("/foob", "/"),
            ("/a/b", "/"),
            ("/a/b/x", "/"),
            ("/a/b/c/d", "/a/b/c"),
        ] {
            assert_eq!(found(&table, path), prefix, "{path}");
        }
    }

    #[test]
    fn prefixes_and_directories_above_them_are_route_dirs() {
        let table = table(&["/a/b/c", "/a/b/c/d/e", "/z"]);
        let at = |path: &str| VPath::parse(path).unwrap();
        for (path, is_dir, synthetic) in [
            ("/", true, false),
            ("/a", true, true),
            ("/a/b/c", true, false),
            ("/a/b/c/d", true, true),
            ("/a/b/c/x", false, false),
            ("/zz", false, false),
        ] {
            let path = at(path);
            let lookup = table.find(&path);
            assert_eq!(lookup.is_route_dir(), is_dir, "{path}");
            assert_eq!(lookup.is_synthetic(&path), synthetic, "{path}");
        }
        let root = at("/");
        let names: Vec<_> = table.find(&root).names().collect();
        assert_eq!(names, ["a", "z"]);
        assert!(table.find(&root).has_name("z") && !table.find(&root).has_name("b"));
        let beneath: Vec<_> = table
            .find(&at("/a"))
            .routes_beneath()
            .iter()
            .map(|route| route.prefix().to_string())
            .collect();
        assert_eq!(beneath, ["/a/b/c", "/a/b/c/d/e"]);
        assert!(!table.find(&at("/z")).has_routes_beneath());
    }
}
