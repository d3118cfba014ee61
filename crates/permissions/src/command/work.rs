//! [`Work`]: how much judging one line may take.
//!
//! Every loop over something that a line holds is charged here, so that the time
//! a line takes is bounded whatever it holds, and ends early for a caller who has
//! gone away.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::Trouble;

/// What judging one line may cost. A step is about what a byte takes to be read;
/// a line that takes all of them takes a few hundredths of a second.
pub const MAX_STEPS: usize = 400_000;

/// Why a line was given up.
pub(crate) const TOO_MUCH: Trouble = Trouble("it is too complicated");

/// The steps that are left for a line.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    left: AtomicUsize,
    spent: AtomicBool,
    stop: Option<&'a AtomicBool>,
}

impl<'a> Work<'a> {
    /// All of the steps, unless `stop` is set meanwhile.
    pub(crate) fn new(stop: Option<&'a AtomicBool>) -> Self {
        Self {
            left: AtomicUsize::new(MAX_STEPS),
            spent: AtomicBool::new(false),
            stop,
        }
    }

    /// Takes some steps; `false` once there are none left.
    pub(crate) fn charge(&self, steps: usize) -> bool {
        if self.is_spent() || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.exhaust();
            return false;
        }
        // One thread at a time works on a line, so nothing is lost between the two.
        let left = self.left.load(Ordering::Relaxed);
        self.left
            .store(left.saturating_sub(steps), Ordering::Relaxed);
        if steps > left {
            self.exhaust();
        }
        steps <= left
    }

    /// Gives the line up.
    pub(crate) fn exhaust(&self) {
        self.spent.store(true, Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
    }

    /// Whether the line was given up.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Relaxed)
    }

    /// How many steps were taken.
    pub(crate) fn steps(&self) -> usize {
        MAX_STEPS - self.left.load(Ordering::Relaxed)
    }
}
