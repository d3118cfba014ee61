//! The variables that every sandbox starts with.

use std::collections::BTreeMap;

/// Turns off prompts, pagers, colours and notices, and lets git work in directories owned by
/// other users.
const DEFAULTS: [(&str, &str); 24] = [
    ("GIT_CONFIG_COUNT", "5"),
    ("GIT_CONFIG_KEY_0", "safe.directory"),
    ("GIT_CONFIG_VALUE_0", "*"),
    ("GIT_CONFIG_KEY_1", "user.name"),
    ("GIT_CONFIG_VALUE_1", "Agent"),
    ("GIT_CONFIG_KEY_2", "user.email"),
    ("GIT_CONFIG_VALUE_2", "agent@sandbox.local"),
    ("GIT_CONFIG_KEY_3", "init.defaultBranch"),
    ("GIT_CONFIG_VALUE_3", "main"),
    ("GIT_CONFIG_KEY_4", "advice.detachedHead"),
    ("GIT_CONFIG_VALUE_4", "false"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("NO_COLOR", "1"),
    ("LANG", "C.UTF-8"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PYTHONUNBUFFERED", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_NO_INPUT", "1"),
    ("PIP_ROOT_USER_ACTION", "ignore"),
    ("UV_CONCURRENT_DOWNLOADS", "2"),
    ("UV_CONCURRENT_INSTALLS", "2"),
    ("UV_COMPILE_BYTECODE", "1"),
];

/// Returns the default variables for the commands of a sandbox, which its runtime or user can
/// override: they turn off prompts, pagers, colours and notices, and let git work in
/// directories owned by other users.
pub fn environment(is_root: bool) -> BTreeMap<&'static str, &'static str> {
    // The system's packages belong to root. For others uv must create an environment.
    let for_root = is_root.then_some(("UV_SYSTEM_PYTHON", "1"));
    DEFAULTS.into_iter().chain(for_root).collect()
}
