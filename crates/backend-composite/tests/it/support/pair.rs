//! Compares a composite with a single backend that has the same files.

use std::sync::Arc;
use std::time::Duration;

use backend_composite::{Composite, Route};
use backend_core::ops::{LsOptions, ReadOptions, WriteOptions};
use backend_core::{Backend, BackendExt as _, ErrorKind, VPath};
use backend_state::StateBackend;
use backend_sync::{BlockingAdapter, SyncBackend};
use backend_testkit::fake::PausedClock;
use futures::executor::block_on;

use super::call::Call;

/// A file's path and content.
pub(crate) type File = (VPath, &'static str);

/// The paths that a route's child sees.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Names {
    Below,
    Full,
    Directory,
}

/// A route.
#[derive(Debug, Clone)]
pub(crate) struct RouteAt {
    pub(crate) prefix: VPath,
    pub(crate) names: Names,
    /// An ignore file in the child, above the directory that the route shows. It
    /// must not have any effect.
    pub(crate) rules_above: Option<&'static str>,
    /// Whether the child is a blocking backend.
    pub(crate) blocking: bool,
}

/// The routes, and hidden content of the children behind them.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) routes: Vec<RouteAt>,
    pub(crate) shadows: Vec<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Pair {
    composite: Composite,
    flat: StateBackend,
    clock: PausedClock,
    prefixes: Vec<VPath>,
}

fn store(clock: &PausedClock) -> StateBackend {
    let clock = clock.clone();
    StateBackend::builder().clock(move || clock.now()).build()
}

impl Pair {
    /// Creates both with `files`, skipping those that cannot be written.
    pub(crate) fn new(layout: &Layout, files: &[File]) -> Self {
        let clock = PausedClock::new();
        let flat = store(&clock);
        let default = store(&clock);
        let composite = Composite::new(Arc::new(default.clone()));
        for route in &layout.routes {
            let child = store(&clock);
            if let Some(rules) = route.rules_above {
                let above = match route.names {
                    Names::Below => None,
                    Names::Full => Some("/.gitignore"),
                    Names::Directory => Some("/elsewhere/.gitignore"),
                };
                if let Some(above) = above {
                    block_on(child.write_file(above, rules)).unwrap();
                }
            }
            // Entries of the default at the prefix of a route are hidden.
            for name in &layout.shadows {
                let hidden = route.prefix.child(name).unwrap();
                drop(block_on(
                    default.write_file(hidden.as_str(), "needle hidden\n"),
                ));
            }
            let child = Arc::new(child);
            let made = if route.blocking {
                let adapter = BlockingAdapter::new(SyncBackend::new(child));
                Route::new(route.prefix.clone(), Arc::new(adapter))
            } else {
                Route::new(route.prefix.clone(), child)
            };
            let made = match route.names {
                Names::Below => made,
                Names::Full => made.full_paths(),
                Names::Directory => made.to_directory(VPath::parse("/elsewhere/dir").unwrap()),
            };
            composite.add_route(made).unwrap();
            block_on(flat.create_dir(&route.prefix, Default::default())).unwrap();
        }
        let prefixes = layout.routes.iter().map(|route| route.prefix.clone());
        let mut pair = Self {
            composite,
            flat,
            clock,
            prefixes: prefixes.collect(),
        };
        for (path, content) in files {
            pair.tick();
            let text = path.as_str();
            let one = block_on(pair.flat.write_file(text, *content));
            let two = block_on(pair.composite.write_file(text, *content));
            assert_eq!(one.is_ok(), two.is_ok(), "{path}: {one:?} {two:?}");
        }
        pair
    }

    fn tick(&mut self) {
        self.clock.advance(Duration::from_secs(1));
    }

    fn is_route_dir(&self, path: &VPath) -> bool {
        self.prefixes.iter().any(|prefix| prefix.starts_with(path))
    }

    fn route_of(&self, path: &VPath) -> usize {
        let prefixes = self
            .prefixes
            .iter()
            .filter(|prefix| path.starts_with(prefix));
        prefixes
            .map(|prefix| prefix.as_str().len())
            .max()
            .unwrap_or_default()
    }

    /// Makes the call on both.
    ///
    /// # Errors
    ///
    /// A description of the difference between the results.
    pub(crate) fn try_call(&mut self, call: &Call) -> Result<(), String> {
        self.tick();
        // The one exception: a composite never deletes or moves its routes.
        if let Call::Delete(path, _) | Call::Rename(path, _, _) = call
            && self.is_route_dir(path)
        {
            let answer = block_on(call.answer(&self.composite));
            let refused = format!("{:?}", ErrorKind::InvalidInput);
            return if answer.starts_with(&refused) {
                Ok(())
            } else {
                Err(format!("{call:?} was not refused: {answer}"))
            };
        }
        let one = block_on(call.answer(&self.flat));
        let two = block_on(call.answer(&self.composite));
        if one != two {
            return Err(format!("{call:?}\nflat: {one}\ncomposite: {two}"));
        }
        if let Call::Rename(from, to, _) = call
            && one == "()"
            && self.route_of(from) != self.route_of(to)
        {
            self.touch(to);
        }
        Ok(())
    }

    /// Rewrites moved files in the flat store, so that their times match those in
    /// the other route: times cannot be written.
    fn touch(&self, path: &VPath) {
        for file in self.tree(&self.flat, path) {
            let options = ReadOptions::default();
            let content = block_on(self.flat.read(&file, options)).unwrap().data;
            let options = WriteOptions::default();
            block_on(self.flat.write(&file, content.into(), options)).unwrap();
        }
    }

    /// Returns the files at and beneath a path.
    fn tree(&self, backend: &dyn Backend, path: &VPath) -> Vec<VPath> {
        let mut pending = vec![path.clone()];
        let mut files = Vec::new();
        while let Some(path) = pending.pop() {
            let listing = block_on(backend.ls(&path, LsOptions::default())).unwrap();
            for entry in listing.entries {
                if entry.is_dir() {
                    pending.push(entry.path);
                } else {
                    files.push(entry.path);
                }
            }
        }
        files.sort();
        files
    }

    /// Compares the whole content of both.
    pub(crate) fn check_trees(&self) -> Result<(), String> {
        let root = VPath::root();
        let one = self.tree(&self.flat, &root);
        let two = self.tree(&self.composite, &root);
        if one != two {
            return Err(format!("flat: {one:?}\ncomposite: {two:?}"));
        }
        for path in one {
            let one = block_on(self.flat.read_bytes(path.as_str())).unwrap();
            let two = block_on(self.composite.read_bytes(path.as_str())).unwrap();
            if one != two {
                return Err(format!("{path}: {one:?} {two:?}"));
            }
        }
        Ok(())
    }
}
