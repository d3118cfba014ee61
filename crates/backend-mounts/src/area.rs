//! [`Area`]: the part of a tree that one restriction of a scope opens.

use std::collections::BTreeMap;

use backend_core::VPath;

/// Places in the tree, each either open or closed. A place also decides for everything
/// beneath it, up to a deeper place. Paths that no place covers are closed.
#[derive(Debug, Clone)]
pub(crate) struct Area {
    /// The names of the area in messages, in the order given.
    pub(crate) labels: Vec<VPath>,
    /// The places, the deepest first.
    places: Vec<(VPath, bool)>,
}

impl Area {
    pub(crate) fn new(labels: Vec<VPath>, places: impl IntoIterator<Item = (VPath, bool)>) -> Self {
        // If a place occurs twice, the later one wins.
        let places: BTreeMap<_, _> = places.into_iter().collect();
        let mut places: Vec<_> = places.into_iter().collect();
        places.sort_by_key(|(place, _)| std::cmp::Reverse(place.as_str().len()));
        Self { labels, places }
    }

    /// Creates the area that `entries` open. Without `span_nested`, other mounts beneath
    /// an entry stay closed.
    pub(crate) fn of_entries<'a>(
        entries: Vec<VPath>,
        points: impl Iterator<Item = &'a VPath>,
        span_nested: bool,
    ) -> Self {
        let mut labels: Vec<VPath> = Vec::new();
        for entry in entries {
            if !labels.contains(&entry) {
                labels.push(entry);
            }
        }
        let is_nested =
            |point: &&VPath| !span_nested && labels.iter().any(|label| point.starts_with(label));
        let nested = points.filter(is_nested).map(|point| (point.clone(), false));
        let open = labels.iter().map(|label| (label.clone(), true));
        let places: Vec<_> = nested.chain(open).collect();
        Self::new(labels, places)
    }

    pub(crate) fn is_open(&self, path: &VPath) -> bool {
        self.places
            .iter()
            .find(|(place, _)| path.starts_with(place))
            .is_some_and(|(_, open)| *open)
    }

    /// Returns the places, the deepest first. The decision changes only at these.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&VPath, bool)> {
        self.places.iter().map(|(place, open)| (place, *open))
    }
}
