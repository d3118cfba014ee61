//! `watch`: the changes of the entries that a listing and a search by name would show.
//!
//! The backend tells nothing of entries that the policy hides. Through a link, this
//! applies to the paths that the link leads to; the paths as the caller sees them are
//! checked against the policy and the caller's own exclusions afterwards. A policy is
//! fixed while the stream lives.

use backend_core::ops::{Links, WatchQuery};
use backend_core::search::Exclude;
use backend_core::{Backend, Operation, Result, VPath, WatchStream};
use futures_util::StreamExt as _;
use futures_util::stream;

use super::gate::Gate;
use super::guard::Guarded;
use super::link_resolution::{LastLink, LinkResolution};
use crate::Op;
use crate::access::Intent;

impl<B: Backend> Guarded<B> {
    pub(super) async fn watch_judged(&self, query: WatchQuery) -> Result<WatchStream> {
        let operation = Operation::Watch;
        let path = query.path.clone();
        let mut gate = Gate::new(self, operation, &path);
        let mut route = LinkResolution::new(&path, query.links, LastLink::Followed);
        let intent = if query.recursive {
            Intent::watch
        } else {
            Intent::ls
        };
        loop {
            gate.authorize(&mut route, intent).await?;
            self.visible(&gate, &path, route.at())?;
            let ours = self.hidden_changes(query.recursive);
            let mut now = query.clone().links(Links::Refuse);
            now.path = route.at().clone();
            now.exclude = if route.moved() {
                ours.clone()
            } else {
                query.exclude.and(&ours)
            };
            match self.backend().watch(now).await {
                Ok(changes) => {
                    let at = route.at().clone();
                    let exclude = query.exclude.and(&ours);
                    return Ok(shown(changes, at, query.exclude(exclude)));
                }
                Err(error) => self.follow_or_fail(&mut route, operation, error).await?,
            }
        }
    }

    /// Returns the entries whose changes the policy hides.
    fn hidden_changes(&self, recursive: bool) -> Exclude {
        let listed = self.policy.exclude(Op::Ls);
        if recursive {
            listed.and(self.policy.exclude(Op::Glob))
        } else {
            listed.clone()
        }
    }
}

/// Converts the changes of the directory `at` to the path that the caller gave, and drops
/// all that the caller may not see, whatever the backend tells.
fn shown(changes: WatchStream, at: VPath, query: WatchQuery) -> WatchStream {
    let seen = move |path: &VPath| {
        let path = path.rebase(&at, &query.path).ok()?;
        (path == query.path || query.tells(&path)).then_some(path)
    };
    let changes = changes.flat_map(move |event| {
        stream::iter(match event {
            Ok(event) => event.seen(&seen).into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    });
    changes.boxed()
}
