//! The built-in runtimes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use backend_core::Result;

use crate::error;
use crate::read::{self, RawFile};
use crate::runtime::Runtime;

/// Empty if the file were not valid; the tests read it.
static BUILTIN: LazyLock<BTreeMap<String, Runtime>> = LazyLock::new(|| {
    let file = read::toml::<RawFile>(include_str!("builtin.toml")).unwrap_or_default();
    let named = |(name, raw): (String, read::RawRuntime)| {
        let runtime = raw.named(&name).ok()?;
        Some((name, runtime))
    };
    file.runtimes.into_iter().filter_map(named).collect()
});

/// Returns the names, sorted.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.keys().map(String::as_str)
}

pub(crate) fn get(name: &str) -> Option<Runtime> {
    BUILTIN.get(name).cloned()
}

impl Runtime {
    /// Returns one of [the built-in runtimes](crate::Runtimes::builtin_names).
    ///
    /// # Errors
    ///
    /// `Config`, listing the known names, if there is no runtime of this name.
    pub fn builtin(name: &str) -> Result<Self> {
        get(name).ok_or_else(|| error::unknown(name, names()))
    }
}
