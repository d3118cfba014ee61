//! The threads of a supervisor.

/// Starts a thread.
pub(super) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started
        .map(drop)
        .map_err(|error| format!("no thread: {error}"))
}

/// Returns the number of this process's threads, if it is known.
pub(super) fn count() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}
