//! Locks between processes.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Returns the locked file. Waits while another run holds the lock.
pub(crate) fn exclusive(path: &Path) -> Result<File> {
    let lock = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    if lock.try_lock().is_err() {
        println!("another run uses {}; waiting", path.display());
        lock.lock()?;
    }
    Ok(lock)
}
