//! Plans a search: which parts the children search themselves, and which the shared
//! walk over the composite covers.
//!
//! A child's own search is used only if its result equals that of the walk:
//!
//! - There is no ignore file above the route, neither in the composite nor, if the
//!   route leads to a directory of the child, in the child.
//! - The pattern and the filter can be translated into the child's paths.
//! - No directory between the start and the routes beneath it is hidden or ignored.

use std::collections::BTreeSet;
use std::sync::Arc;

use backend_core::limits::IGNORE_FILE_BYTES;
use backend_core::ops::{FileKind, GlobQuery, GrepQuery, Links, ReadOptions, StatOptions};
use backend_core::search::{
    Child, Exclude, ExcludeRule, GENERATED_DIRECTORIES, Glob, Step, Walk, WalkOptions, is_generated,
};
use backend_core::{Backend, Error, ErrorKind, Operation, Result, VPath};
use bytes::Bytes;

use crate::composite::Composite;
use crate::failure::is_absent;
use crate::route::Route;
use crate::table::{Lookup, Table};

/// The names of ignore files.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The scope of a search, a glob or a grep alike.
pub(super) struct Scope<'q> {
    path: &'q VPath,
    links: Links,
    options: WalkOptions,
}

impl<'q> Scope<'q> {
    pub(super) fn of_glob(query: &'q GlobQuery) -> Result<Self> {
        Ok(Self {
            path: &query.path,
            links: query.links,
            options: query.compile()?,
        })
    }

    pub(super) fn of_grep(query: &'q GrepQuery) -> Result<Self> {
        Ok(Self {
            path: &query.path,
            links: query.links,
            options: query.compile()?.0,
        })
    }

    /// Whether anything beneath `prefix` can match the pattern.
    fn may_match_beneath(&self, prefix: &VPath) -> bool {
        let pattern = self.options.pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.may_match_beneath(self.path, prefix))
    }

    /// Whether the caller's pattern means the same in a walk that starts at `start`.
    fn means_the_same_from(&self, start: &VPath) -> bool {
        let pattern = self.options.pattern.as_ref();
        pattern.is_none_or(|pattern| {
            pattern.is_absolute() || is_about_names(pattern.as_str()) || start == self.path
        })
    }

    /// Whether a search from `start` finds files in generated directories. This is
    /// also the case if one lies between the search path and `start`, because this
    /// search has already entered it.
    fn generated(&self, start: &VPath) -> bool {
        let within = start.strip_prefix(self.path);
        self.options.generated
            || self.options.ignored
            || within.is_some_and(|within| within.split('/').any(is_generated))
    }

    /// Returns the search of the child of `route` from `start`; `None` if it cannot
    /// be translated into the child's paths.
    fn native(&self, route: &Route, start: &VPath, hidden: Exclude) -> Result<Option<Native>> {
        let moved = match self.pattern_for(route, start) {
            Some(pattern) => pattern,
            None => return Ok(None),
        };
        let Some(exclude) = moved_exclude(&self.options.exclude, route) else {
            return Ok(None);
        };
        Ok(Some(Native {
            start: route.to_child(start)?,
            pattern: moved,
            exclude: exclude.and(&hidden),
        }))
    }

    /// Returns the pattern for a search of the child from `start`: `Some(None)` if
    /// the caller's pattern can be used unchanged, `None` if no pattern has the same meaning.
    fn pattern_for(&self, route: &Route, start: &VPath) -> Option<Option<String>> {
        let Some(pattern) = &self.options.pattern else {
            return Some(None);
        };
        let stands = if pattern.is_absolute() {
            route.keeps_paths()
        } else {
            start == self.path
        };
        if stands || is_about_names(pattern.as_str()) {
            return Some(None);
        }
        // A name with a dot includes hidden names at any depth, and must not be
        // lost. The same goes for the name of a generated directory.
        let asks = |name: &&str| pattern.names_directory(name);
        let asks_for_generated = || GENERATED_DIRECTORIES.iter().any(asks);
        if names_dots(pattern.as_str()) || (!self.generated(start) && asks_for_generated()) {
            return None;
        }
        let below = pattern.below(self.path, route.prefix()).ok()??;
        let text = beneath_base(route, below.as_str());
        Glob::new(&text).ok()?;
        Some(Some(text))
    }
}

/// Whether a pattern means the same wherever the search starts.
fn is_about_names(pattern: &str) -> bool {
    let name = pattern.strip_prefix("**/").unwrap_or(pattern);
    !name.contains('/')
}

/// Whether a name in the pattern may begin with a literal dot.
fn names_dots(pattern: &str) -> bool {
    let mut before = '/';
    pattern.chars().any(|c| {
        let begins = matches!(before, '/' | '{' | ',' | '\\');
        before = c;
        begins && c == '.'
    })
}

/// Translates an absolute pattern from the route's root into the paths of its child.
fn beneath_base(route: &Route, pattern: &str) -> String {
    if route.base().is_root() {
        pattern.to_owned()
    } else {
        format!("{}{pattern}", Glob::escape(route.base().as_str()))
    }
}

/// Translates the filter into the paths of a route's child, if possible.
pub(crate) fn moved_exclude(exclude: &Exclude, route: &Route) -> Option<Exclude> {
    if exclude.is_none() || route.keeps_paths() {
        return Some(exclude.clone());
    }
    let (root, prefix) = (VPath::root(), route.prefix());
    let mut layers = Vec::new();
    for layer in exclude.layers() {
        let mut moved = Vec::with_capacity(layer.len() + 1);
        for rule in layer {
            let pattern = Glob::new(&rule.pattern).ok()?;
            if let Some(below) = pattern.below(&root, prefix).ok()? {
                let text = beneath_base(route, below.as_str());
                moved.push(ExcludeRule::new(text, rule.action));
            }
        }
        // A path that no rule matches inherits its directory's decision.
        let alone = Exclude::from_layers(vec![layer.clone()]).ok()?;
        if alone.hides(prefix) {
            moved.push(ExcludeRule::hide(beneath_base(route, "/*")));
        }
        layers.push(moved);
    }
    Exclude::from_layers(layers).ok()
}

/// The plan for a search.
pub(super) enum Plan {
    /// Run the shared walk over the composite.
    Walk,
    /// Search these parts and merge their results.
    Parts(Vec<Part>),
}

/// The part of a search that one route covers.
pub(super) struct Part {
    pub(super) route: Arc<Route>,
    /// The start of the search, as a path of the composite.
    pub(super) start: VPath,
    /// Whether the start is a directory whatever the child holds.
    pub(super) is_route_dir: bool,
    /// Whether to find files in generated directories.
    pub(super) generated: bool,
    /// The child's own search; `None` if the shared walk is used.
    pub(super) native: Option<Native>,
}

/// A child's own search, with its paths.
pub(super) struct Native {
    pub(super) start: VPath,
    /// The pattern, if it differs from the caller's.
    pub(super) pattern: Option<String>,
    /// Entries to leave out: those the caller excludes and those other routes hide.
    pub(super) exclude: Exclude,
}

/// The result of walking from the start of a search to the routes beneath it.
#[derive(Default)]
struct Probe {
    /// The directories that a walk from the start enters, among those that exist
    /// because of routes.
    entered: BTreeSet<VPath>,
    /// Directories with an ignore file that have routes beneath them.
    ruled: Vec<VPath>,
}

impl Composite {
    pub(super) async fn plan(&self, table: &Table, scope: &Scope<'_>) -> Result<Plan> {
        let lookup = table.find(scope.path);
        let beneath: Vec<_> = lookup.routes_beneath();
        let hidden = hidden_by(&beneath, lookup.route)?;
        let Some(native) = scope.native(lookup.route, scope.path, hidden)? else {
            return Ok(Plan::Walk);
        };
        if !scope.options.ignored && self.has_ignore_file_above(table, lookup.route).await? {
            return Ok(Plan::Walk);
        }
        let owner = Part {
            route: Arc::clone(lookup.route),
            start: scope.path.clone(),
            is_route_dir: lookup.is_route_dir(),
            generated: scope.generated(scope.path),
            native: Some(native),
        };
        if beneath.is_empty() {
            return Ok(Plan::Parts(vec![owner]));
        }
        let mut parts = Vec::new();
        if self.owner_takes_part(lookup, scope).await? {
            parts.push(owner);
        }
        let may_match = |directory: &VPath| scope.may_match_beneath(directory);
        let mut on_the_way = lookup.route_dirs_beneath(scope.path);
        on_the_way.retain(may_match);
        if on_the_way.is_empty() {
            return Ok(Plan::Parts(parts));
        }
        let probe = self.probe(table, scope).await?;
        if !on_the_way.iter().all(|path| probe.entered.contains(path)) {
            return Ok(Plan::Walk);
        }
        let within = |route: &&Arc<Route>| may_match(route.prefix());
        let beneath: Vec<_> = beneath.into_iter().filter(within).collect();
        let parts = self.with_routes(table, scope, &probe, (&beneath, parts));
        Ok(parts.await?.map_or(Plan::Walk, Plan::Parts))
    }

    /// Adds a part for each route beneath the start. Returns `None` if a route
    /// needs a walk from the start itself.
    async fn with_routes(
        &self,
        table: &Table,
        scope: &Scope<'_>,
        probe: &Probe,
        (beneath, mut parts): (&[&Arc<Route>], Vec<Part>),
    ) -> Result<Option<Vec<Part>>> {
        let mut walked: Option<VPath> = None;
        for route in beneath {
            let prefix = route.prefix();
            // A walk covers the routes beneath its start, which come after it.
            if walked
                .as_ref()
                .is_some_and(|walked| prefix.starts_with(walked))
            {
                continue;
            }
            let is_above = |ruled: &VPath| ruled != prefix && prefix.starts_with(ruled);
            let ruled = !scope.options.ignored
                && (probe.ruled.iter().any(is_above)
                    || self.child_has_ignore_file_above(route).await?);
            let hidden = hidden_by(&table.find(prefix).routes_beneath(), route)?;
            let native = if ruled {
                None
            } else {
                scope.native(route, prefix, hidden)?
            };
            if native.is_none() {
                if !scope.means_the_same_from(prefix) {
                    return Ok(None);
                }
                walked = Some(prefix.clone());
            }
            parts.push(Part {
                route: Arc::clone(route),
                start: prefix.clone(),
                is_route_dir: true,
                generated: scope.generated(prefix),
                native,
            });
        }
        Ok(Some(parts))
    }

    /// Whether the child that owns the start has a directory there.
    async fn owner_takes_part(&self, lookup: Lookup<'_>, scope: &Scope<'_>) -> Result<bool> {
        let options = StatOptions::default().links(scope.links);
        match lookup.route.stat(scope.path, options).await {
            Ok(entry) => Ok(entry.is_dir() && !entry.link),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => {
                let error = lookup.route.translate_error(Operation::Stat, scope.path)(error);
                self.record_failure(lookup.route, error)?;
                Ok(false)
            }
        }
    }

    /// Whether an ignore file above the route applies to the files in it.
    async fn has_ignore_file_above(&self, table: &Table, route: &Route) -> Result<bool> {
        for directory in route.prefix().ancestors() {
            for name in IGNORE_FILES {
                if let Ok(path) = directory.child(name)
                    && !table.find(&path).is_route_dir()
                    && self.rules(&path).await?.is_some()
                {
                    return Ok(true);
                }
            }
        }
        self.child_has_ignore_file_above(route).await
    }

    /// Whether the child has an ignore file above the directory that the route shows.
    async fn child_has_ignore_file_above(&self, route: &Route) -> Result<bool> {
        for directory in route.base().ancestors() {
            for name in IGNORE_FILES {
                if let Ok(path) = directory.child(name)
                    && read_rules(&**route.backend(), &path).await?.is_some()
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Walks down to the routes beneath the start, with the rules of a search,
    /// without looking at anything else.
    async fn probe(&self, table: &Table, scope: &Scope<'_>) -> Result<Probe> {
        let mut probe = Probe::default();
        let mut walk = Walk::new(scope.path.clone(), scope.options.clone());
        loop {
            match walk.step() {
                Step::Done => return Ok(probe),
                Step::File { .. } => {}
                Step::Enter { path, .. } => {
                    let path = path.clone();
                    let lookup = table.find(&path);
                    let names = lookup.names();
                    let mut children: Vec<_> = names
                        .map(|name| Child::new(name, FileKind::Directory, ()))
                        .collect();
                    if lookup.has_routes_beneath() {
                        let files = IGNORE_FILES.into_iter();
                        children.extend(files.map(|name| Child::new(name, FileKind::File, ())));
                    }
                    probe.entered.insert(path);
                    walk.entered((), children);
                }
                Step::IgnoreFile { path, .. } => {
                    let path = path.clone();
                    let rules = self.rules(&path).await?;
                    if rules.is_some() {
                        probe.ruled.extend(path.parent());
                    }
                    walk.ignore_file(rules.as_deref());
                }
            }
        }
    }

    /// Reads an ignore file of the composite.
    async fn rules(&self, path: &VPath) -> Result<Option<Bytes>> {
        read_rules(self, path).await
    }
}

/// Reads an ignore file, if there is one. One that cannot be read has no rules, but
/// it counts as present, because a walk counts it as unreadable.
async fn read_rules<B: Backend + ?Sized>(backend: &B, path: &VPath) -> Result<Option<Bytes>> {
    let options = ReadOptions::default()
        .links(Links::Refuse)
        .max_bytes(IGNORE_FILE_BYTES as u64);
    match backend.read(path, options).await {
        Ok(read) => Ok(Some(read.data)),
        Err(error) => match error.kind() {
            _ if is_absent(&error) => Ok(None),
            ErrorKind::IsADirectory => Ok(None),
            ErrorKind::InvalidInput | ErrorKind::PermissionDenied | ErrorKind::TooLarge => {
                Ok(Some(Bytes::new()))
            }
            _ => Err(error),
        },
    }
}

/// Returns the paths that a child must leave out because other routes replace them.
pub(crate) fn hidden_by(beneath: &[&Arc<Route>], owner: &Route) -> Result<Exclude> {
    let mut patterns = Vec::with_capacity(beneath.len());
    for route in beneath {
        patterns.push(Glob::escape(owner.to_child(route.prefix())?.as_str()));
    }
    Exclude::hide(patterns).map_err(Error::from)
}
