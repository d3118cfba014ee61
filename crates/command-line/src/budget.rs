//! [`StepBudget`]: the bound on the work for one line.
//!
//! Every loop over the contents of a line is charged here. That bounds the time for any
//! line, and lets the work end early if the caller no longer waits for it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::ParseError;

/// The number of steps that judging one line may take. A step is about the cost of
/// reading one byte; a line that uses all of them takes a few hundredths of a second.
pub const MAX_STEPS: usize = 400_000;

/// The reason for giving up on a line.
pub(crate) const TOO_MUCH: ParseError = ParseError("it is too complicated");

/// The steps that may still be spent on a line. One budget can cover both the analysis and
/// the decision about its findings.
#[derive(Debug)]
pub struct StepBudget<'a> {
    left: AtomicUsize,
    spent: AtomicBool,
    stop: Option<&'a AtomicBool>,
}

impl<'a> StepBudget<'a> {
    /// Starts with the full budget. Setting `stop` ends it early.
    pub fn new(stop: Option<&'a AtomicBool>) -> Self {
        Self {
            left: AtomicUsize::new(MAX_STEPS),
            spent: AtomicBool::new(false),
            stop,
        }
    }

    /// Takes `steps` from the budget. Returns `false` if there are not enough left.
    pub fn charge(&self, steps: usize) -> bool {
        if self.is_spent() || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.exhaust();
            return false;
        }
        // One thread at a time works on a line, so no update is lost between load and
        // store.
        let left = self.left.load(Ordering::Relaxed);
        self.left
            .store(left.saturating_sub(steps), Ordering::Relaxed);
        if steps > left {
            self.exhaust();
        }
        steps <= left
    }

    /// Gives up on the line.
    pub(crate) fn exhaust(&self) {
        self.spent.store(true, Ordering::Relaxed);
        self.left.store(0, Ordering::Relaxed);
    }

    /// Returns whether the line has been given up.
    pub fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Relaxed)
    }

    /// Returns the number of steps taken.
    pub fn steps(&self) -> usize {
        MAX_STEPS - self.left.load(Ordering::Relaxed)
    }
}
