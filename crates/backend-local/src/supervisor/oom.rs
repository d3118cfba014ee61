//! Makes the kernel's OOM killer choose a command and not the processes that
//! supervise it. In a container all of them share one limit, and a command that
//! uses it up would sometimes take the agent with it.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;

/// The memory use that is added to a command's score, in thousandths of all
/// memory.
const COMMAND_EXTRA: i32 = 500;

const MAX_SCORE: i32 = 1_000;

/// This process's OOM score adjustment, which children inherit.
#[derive(Debug)]
pub(crate) struct OomScore {
    file: File,
    own: i32,
}

impl OomScore {
    /// Returns `None` if the kernel does not let us choose.
    pub(crate) fn read() -> Option<Self> {
        let path = "/proc/self/oom_score_adj";
        let mut file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        let own = text.trim().parse().ok()?;
        Some(Self { file, own })
    }

    /// Runs `work` so that processes it starts are killed before this one.
    /// Raising one's own score needs no privilege, and neither does restoring
    /// it.
    pub(crate) fn with_raised<T>(&self, work: impl FnOnce() -> T) -> T {
        self.set((self.own + COMMAND_EXTRA).min(MAX_SCORE));
        let done = work();
        self.set(self.own);
        done
    }

    fn set(&self, score: i32) {
        // If it is refused, all processes are equally likely to be killed.
        let _ = self.file.write_at(score.to_string().as_bytes(), 0);
    }
}
