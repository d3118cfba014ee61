//! [`Composite`], its builder, and changes of its routes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use backend_core::{Backend, Error, ErrorKind, Operation, Result, VPath};

use crate::failure::{Failures, NAME};
use crate::route::Route;
use crate::table::Table;

/// Many backends as one tree.
///
/// Clones share one set of routes. A call works on the routes that existed when it
/// began, whatever is added or removed meanwhile. A composite can be routed in
/// another one, but not in itself: calls would recurse without end.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> backend_core::Result<()> {
/// # use std::sync::Arc;
/// use backend_composite::{Composite, Route};
/// use backend_core::{BackendExt as _, VPath};
/// use backend_state::StateBackend;
///
/// let composite = Composite::new(Arc::new(StateBackend::new()));
/// let notes = Arc::new(StateBackend::new());
/// composite.add_route(Route::new(VPath::parse("/notes")?, notes.clone()))?;
///
/// composite.write_file("/notes/today.md", "buy milk\n").await?;
/// assert_eq!(notes.read_to_string("/today.md").await?, "buy milk\n");
/// assert_eq!(composite.search_text("milk").await?.files[0].path.as_str(), "/notes/today.md");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Composite {
    shared: Arc<Shared>,
}

struct Shared {
    /// Held to copy or replace a pointer, never across an await.
    table: RwLock<Arc<Table>>,
    working_dir: VPath,
    id: String,
    /// Collects failures of children, for a call that continues after them.
    failures: Option<Failures>,
}

/// Builds a [`Composite`].
#[derive(Debug, Default)]
#[must_use]
pub struct CompositeBuilder {
    routes: Vec<Route>,
    working_dir: Option<VPath>,
    id: Option<String>,
}

impl CompositeBuilder {
    /// Sets the backend for paths outside every route. Without it, such paths are
    /// missing and cannot be written.
    pub fn default_backend(self, backend: Arc<dyn Backend>) -> Self {
        self.route(Route::new(VPath::root(), backend))
    }

    backend_core::setters! {
        /// Adds a route. One at `/` is the default.
        fn route(self, route: Route) { self.routes.push(route) }

        /// Sets the directory that relative paths start from; `/` by default.
        fn working_dir(self, working_dir: VPath) { self.working_dir = Some(working_dir) }

        /// Sets the name that [`Sandbox::id`](backend_core::Sandbox::id) returns;
        /// `composite-` and a number by default.
        fn id(self, id: impl Into<String>) { self.id = Some(id.into()) }
    }

    /// Builds the composite.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if two routes have the same prefix.
    pub fn build(self) -> Result<Composite> {
        let mut routes = BTreeMap::new();
        for route in self.routes {
            insert(&mut routes, route)?;
        }
        Ok(Composite::from_routes(routes, self.working_dir, self.id))
    }
}

fn insert(routes: &mut BTreeMap<VPath, Arc<Route>>, route: Route) -> Result<()> {
    let prefix = route.prefix().clone();
    if routes.contains_key(&prefix) {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            "a route has this prefix already; remove it first or choose another",
        )
        .relayed(NAME, &prefix));
    }
    routes.insert(prefix, Arc::new(route));
    Ok(())
}

impl Composite {
    /// Creates a composite in which `default` handles every path, without further routes.
    pub fn new(default: Arc<dyn Backend>) -> Self {
        let route = Route::new(VPath::root(), default);
        let routes = BTreeMap::from([(VPath::root(), Arc::new(route))]);
        Self::from_routes(routes, None, None)
    }

    fn from_routes(
        routes: BTreeMap<VPath, Arc<Route>>,
        working_dir: Option<VPath>,
        id: Option<String>,
    ) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = || format!("{NAME}-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let shared = Arc::new(Shared {
            table: RwLock::new(Arc::new(Table::new(routes))),
            working_dir: working_dir.unwrap_or_default(),
            id: id.unwrap_or_else(number),
            failures: None,
        });
        Self { shared }
    }

    /// Returns a builder for a composite.
    pub fn builder() -> CompositeBuilder {
        CompositeBuilder::default()
    }

    /// Returns the routes, ordered by prefix; the default, if there is one, comes first.
    pub fn routes(&self) -> Vec<Route> {
        let table = self.table();
        let routes = table.routes().values();
        routes.map(|route| Route::clone(route)).collect()
    }

    /// Adds a route. Calls in progress are not affected.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if there is a route with this prefix.
    pub fn add_route(&self, route: Route) -> Result<()> {
        self.change(|routes| insert(routes, route))
    }

    /// Removes a route and returns it. Calls in progress finish on it.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no route with this prefix.
    pub fn remove_route(&self, prefix: &VPath) -> Result<Route> {
        let removed = self.change(|routes| routes.remove(prefix).ok_or_else(|| no_route(prefix)));
        removed.map(|route| Route::clone(&route))
    }

    /// Returns the backend behind a route that runs commands. Use it to run a
    /// command elsewhere than in the route of the working directory.
    ///
    /// Paths are those of the backend, as for [`Route::backend`]. Its
    /// [`as_sandbox`](Backend::as_sandbox) returns a sandbox.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no route with this prefix; `Unsupported` if its
    /// backend runs no commands.
    pub fn sandbox_of(&self, prefix: &VPath) -> Result<Arc<dyn Backend>> {
        let table = self.table();
        let route = table.routes().get(prefix).ok_or_else(|| no_route(prefix))?;
        match route.backend().as_sandbox() {
            Some(_) => Ok(Arc::clone(route.backend())),
            None => Err(route.without_commands(Operation::Execute)),
        }
    }

    /// Applies `change` to the routes, or changes nothing if it fails.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<VPath, Arc<Route>>) -> Result<T>,
    ) -> Result<T> {
        // A pointer is never half-changed, so a panic in another thread does not affect it.
        let table = self.shared.table.write();
        let mut table = table.unwrap_or_else(PoisonError::into_inner);
        let mut routes = table.routes().clone();
        let changed = change(&mut routes)?;
        let before = std::mem::replace(&mut *table, Arc::new(Table::new(routes)));
        // Dropping the last pointer to a backend may take a while.
        drop(table);
        drop(before);
        Ok(changed)
    }

    /// Returns the routes that a call works on.
    pub(crate) fn table(&self) -> Arc<Table> {
        let table = self.shared.table.read();
        Arc::clone(&table.unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns this composite with a fixed set of routes, for an operation that
    /// consists of many calls. With `failures`, it continues after failures.
    pub(crate) fn frozen(&self, table: Arc<Table>, failures: Option<Failures>) -> Self {
        let shared = Arc::new(Shared {
            table: RwLock::new(table),
            working_dir: self.shared.working_dir.clone(),
            id: self.shared.id.clone(),
            failures,
        });
        Self { shared }
    }

    /// Returns this composite for a call that continues after failures.
    pub(crate) fn tolerant(&self) -> Self {
        self.frozen(self.table(), Some(Failures::default()))
    }

    pub(crate) fn start_dir(&self) -> &VPath {
        &self.shared.working_dir
    }

    pub(crate) fn own_id(&self) -> &str {
        &self.shared.id
    }

    pub(crate) fn failures(&self) -> Option<&Failures> {
        self.shared.failures.as_ref()
    }
}

fn no_route(prefix: &VPath) -> Error {
    Error::new(
        ErrorKind::NotFound,
        "no route has this prefix; list the routes to see which there are",
    )
    .relayed(NAME, prefix)
}

impl fmt::Debug for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table();
        let routes = table.routes().iter();
        let routes = routes.map(|(prefix, route)| (prefix, route.backend().info().name));
        f.debug_struct("Composite")
            .field("id", &self.shared.id)
            .field("routes", &routes.collect::<Vec<_>>())
            .finish()
    }
}
