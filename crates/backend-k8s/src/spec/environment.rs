//! The default environment of every sandbox, which its runtime or user can override.

use std::collections::BTreeMap;

use sandbox_runtime::ENVIRONMENT;

use crate::settings::Settings;

/// Returns all variables. The user's values take precedence over the runtime's, and those
/// over the defaults. `home` is that of the user, if neither sets one.
pub(super) fn merged<'a>(
    settings: &'a Settings,
    home: Option<&'a str>,
) -> BTreeMap<&'a str, &'a str> {
    let mut all: BTreeMap<&str, &str> = ENVIRONMENT.into_iter().collect();
    if settings.user().is_none_or(|(uid, _)| uid != 0) {
        // The system's packages belong to root, so uv must create an environment.
        all.remove("UV_SYSTEM_PYTHON");
    }
    all.extend(home.map(|home| ("HOME", home)));
    let runtime = settings.runtime.as_ref().map(|runtime| &runtime.env_vars);
    for set in runtime.into_iter().chain([&settings.env]) {
        all.extend(set.iter().map(|(name, value)| (&**name, &**value)));
    }
    all
}
