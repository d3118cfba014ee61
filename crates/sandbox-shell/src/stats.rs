//! [`Stats`]: the resource usage of a machine.

/// The current resource usage of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Percent of one CPU since the previous sample; `None` for the first.
    pub cpu_percent: Option<f64>,
    /// Bytes of memory, without cache that the kernel could reclaim at once.
    pub memory: u64,
    /// The memory limit in bytes; 0 if there is none.
    pub memory_limit: u64,
    /// Number of processes and threads.
    pub pids: u64,
}
