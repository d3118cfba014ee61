//! The backend that the other commands would use.

use super::finding::Finding;
use crate::app::App;
use crate::backend;
use crate::backend::kind::{Kind, Tables};

/// The backend that the other commands would use.
#[derive(Debug)]
pub(super) struct UsedBackend {
    /// Its specification; `None` is the default.
    pub(super) spec: Option<String>,
    /// The kinds of backends it consists of, if they are known.
    pub(super) kinds: Vec<Kind>,
    pub(super) tables: Tables,
}

impl UsedBackend {
    pub(super) fn uses(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Returns the backend of a configuration. Returns a finding about it too, unless
    /// it is the default and fine.
    pub(super) fn of(app: Option<App>) -> (Self, Option<Finding>) {
        let Some(app) = app else {
            let usual = Self {
                spec: None,
                kinds: vec![Kind::Local],
                tables: Tables::new(),
            };
            return (usual, None);
        };
        let spec = (!app.spec.implied).then(|| app.spec.text());
        let finding = Finding::new("backend", "where the files are").needed(true);
        let (kinds, finding) = match backend::check(&app.spec) {
            Ok(kinds) => (kinds, spec.clone().map(|spec| finding.ok(spec))),
            Err(failure) => (Vec::new(), Some(finding.wrong(&failure))),
        };
        let tables = app.config.backends;
        let backend = Self {
            spec,
            kinds,
            tables,
        };
        (backend, finding)
    }
}
