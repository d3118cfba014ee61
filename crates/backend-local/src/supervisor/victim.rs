//! Whom the kernel ends when memory runs out: a command, not those who watch over
//! it. In a container all of them share one limit, and a command that uses it up
//! would now and then take the agent with it.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;

/// How much memory a command seems to use on top of what it does, in thousandths
/// of all there is.
const MORE: i32 = 500;

/// The most that can be said.
const MOST: i32 = 1_000;

/// This process's place among those that may be ended. Children inherit it.
#[derive(Debug)]
pub(crate) struct Place {
    file: File,
    own: i32,
}

impl Place {
    /// `None` where the kernel does not let us choose.
    pub(crate) fn find() -> Option<Self> {
        let path = "/proc/self/oom_score_adj";
        let mut file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        let own = text.trim().parse().ok()?;
        Some(Self { file, own })
    }

    /// Does something whose new processes are ended before this one. Everybody may
    /// offer itself, and may take that back.
    pub(crate) fn offering<T>(&self, work: impl FnOnce() -> T) -> T {
        self.say((self.own + MORE).min(MOST));
        let done = work();
        self.say(self.own);
        done
    }

    fn say(&self, place: i32) {
        // Where it is refused, everybody is offered alike.
        let _ = self.file.write_at(place.to_string().as_bytes(), 0);
    }
}
