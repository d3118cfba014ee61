//! [`suffixed`]: a file beside another one.

use std::path::{Path, PathBuf};

/// Returns the path of the file whose name is that of another one and a suffix.
pub(crate) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut suffixed = path.as_os_str().to_owned();
    suffixed.push(suffix);
    suffixed.into()
}
