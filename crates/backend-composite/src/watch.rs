//! `watch` across routes: the changes of all children beneath a path, in the
//! composite's paths.
//!
//! Each child watches its part of the tree. The order of changes is kept within a child,
//! and so for every path.

use std::sync::Arc;

use backend_core::ops::{WatchEvent, WatchQuery};
use backend_core::search::Exclude;
use backend_core::{Error, Operation, Result, VPath, WatchStream};
use futures_util::future::ready;
use futures_util::stream::{self, BoxStream, StreamExt as _};

use crate::composite::Composite;
use crate::failure::is_absent;
use crate::route::Route;
use crate::search::{hidden_by, moved_exclude};
use crate::table::Table;

/// The part of a watch that one child tells.
struct Part {
    table: Arc<Table>,
    route: Arc<Route>,
    query: WatchQuery,
    /// The path at which the child's part begins.
    start: VPath,
    /// Whether that is a directory whatever the child holds.
    is_route_dir: bool,
}

impl Composite {
    pub(crate) async fn watch_in(
        &self,
        table: &Arc<Table>,
        query: WatchQuery,
    ) -> Result<WatchStream> {
        let lookup = table.find(&query.path);
        let part = |route: &Arc<Route>, start: &VPath| Part {
            table: Arc::clone(table),
            route: Arc::clone(route),
            query: query.clone(),
            start: start.clone(),
            is_route_dir: table.find(start).is_route_dir(),
        };
        let mut parts = Vec::new();
        // The placeholder for a missing default never changes.
        if table.routes().contains_key(lookup.route.prefix()) {
            parts.push(part(lookup.route, &query.path));
        }
        if query.recursive {
            let beneath = lookup.routes_beneath().into_iter();
            parts.extend(beneath.map(|route| part(route, route.prefix())));
        }
        let mut streams = Vec::with_capacity(parts.len());
        for part in parts {
            streams.push(part.open().await?);
        }
        if streams.is_empty() {
            return Ok(stream::pending().boxed());
        }
        // The end of one part ends the whole, because its changes would be missed.
        let merged = stream::select_all(streams);
        let merged = merged.take_while(|item| ready(item.is_some()));
        Ok(merged.filter_map(ready).boxed())
    }
}

impl Part {
    /// Starts the watch of the child. `None` is the end.
    async fn open(self) -> Result<BoxStream<'static, Option<Result<WatchEvent>>>> {
        let opened = self.watch_child().await;
        let opened = opened.map_err(|error| self.error(error))?;
        let end = if self.is_route_dir {
            Some(Err(self.error(Error::unavailable(
                "the directory of a route is gone; watch again",
            ))))
        } else {
            None
        };
        let told = opened.flat_map(move |event| stream::iter(self.translate(event)));
        Ok(told.map(Some).chain(stream::iter([end, None])).boxed())
    }

    fn error(&self, error: Error) -> Error {
        self.route.translate_error(Operation::Watch, &self.start)(error)
    }

    async fn watch_child(&self) -> Result<WatchStream> {
        let beneath = self.table.find(self.route.prefix()).routes_beneath();
        let hidden = hidden_by(&beneath, &self.route)?;
        let exclude = moved_exclude(&self.query.exclude, &self.route);
        // A filter that cannot be translated is applied here alone.
        let exclude = exclude.unwrap_or_else(Exclude::none).and(&hidden);
        let mut query = self.query.clone().exclude(exclude);
        query.path = self.route.to_child(&self.start)?;
        let at = query.path.clone();
        let mut watched = self.route.backend().watch(query.clone()).await;
        // The child may have no such directory yet. It is watched from above, so that
        // its creation is told too.
        let above: Vec<VPath> = at.ancestors().collect();
        for above in above.into_iter().rev() {
            match &watched {
                Err(error) if self.is_route_dir && is_absent(error) => {
                    query.path = above;
                    query.recursive = true;
                    watched = self.route.backend().watch(query.clone()).await;
                }
                _ => break,
            }
        }
        watched
    }

    /// Returns the path of the composite for a path of the child, if its changes are
    /// told.
    fn shown(&self, path: &VPath) -> Option<VPath> {
        let path = self.route.to_composite(path).ok()?;
        let lookup = self.table.find(&path);
        let is_own = Arc::ptr_eq(lookup.route, &self.route) && !lookup.is_route_dir();
        // The watched directory is told only when it is gone.
        let is_told = self.query.tells(&path) || path == self.query.path;
        (is_own && is_told).then_some(path)
    }

    /// Translates an event of the child.
    fn translate(&self, event: Result<WatchEvent>) -> Vec<Result<WatchEvent>> {
        match event {
            Ok(event) => {
                let events = event.seen(|path| self.shown(path)).into_iter();
                events.map(Ok).collect()
            }
            Err(error) => vec![Err(self.error(error))],
        }
    }
}
