//! [`CallEnvironment`]: a guarded backend and the tools that are offered on it.

use std::sync::Arc;

use backend_core::Backend;
use permissions::Guarded;
use permissions::tool::Visibility;

use crate::definition::Definitions;
use crate::host_names::HostNames;
use crate::tool::Definition;

#[derive(Debug)]
pub(crate) struct CallEnvironment {
    pub(crate) guard: Guarded<Arc<dyn Backend>>,
    /// A guard that never asks and ignores the settings of tools.
    pub(crate) non_interactive: Guarded<Arc<dyn Backend>>,
    pub(crate) tools: Arc<OfferedTools>,
    pub(crate) host_names: HostNames,
}

/// The tools that are offered under a policy.
#[derive(Debug)]
pub(crate) struct OfferedTools {
    /// In the order of the entries.
    pub(crate) visible: Vec<Visibility>,
    pub(crate) definitions: Definitions,
}

impl OfferedTools {
    /// Selects from `definitions`, which are in the same order as `visible`.
    pub(crate) fn new<'a>(
        visible: Vec<Visibility>,
        definitions: impl Iterator<Item = &'a Definition>,
    ) -> Self {
        let each = definitions.zip(&visible);
        let offered = each.filter_map(|(definition, visible)| match *visible {
            Visibility::Hidden => None,
            Visibility::Offered { asks } => {
                let mut definition = definition.clone();
                definition.asks = asks;
                Some(definition)
            }
        });
        Self {
            definitions: Definitions::new(offered.collect()),
            visible,
        }
    }

    pub(crate) fn offers(&self, index: usize) -> bool {
        matches!(self.visible.get(index), Some(Visibility::Offered { .. }))
    }
}
