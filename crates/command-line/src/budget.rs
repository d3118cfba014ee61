//! [`StepBudget`]: the bound on the work for one line.
//!
//! Every loop over the contents of a line is charged here. That bounds the time for any
//! line, and lets the work end early if the caller no longer waits for it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

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
    left: Cell<usize>,
    spent: Cell<bool>,
    stop: Option<&'a AtomicBool>,
}

impl<'a> StepBudget<'a> {
    /// Starts with the full budget. Setting `stop` ends it early.
    pub fn new(stop: Option<&'a AtomicBool>) -> Self {
        Self {
            left: Cell::new(MAX_STEPS),
            spent: Cell::new(false),
            stop,
        }
    }

    /// Takes `steps` from the budget. Returns `false` if there are not enough left.
    pub fn charge(&self, steps: usize) -> bool {
        if self.is_spent() || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.exhaust();
            return false;
        }
        let left = self.left.get().checked_sub(steps);
        match left {
            Some(left) => self.left.set(left),
            None => self.exhaust(),
        }
        left.is_some()
    }

    /// Gives up on the line.
    pub(crate) fn exhaust(&self) {
        self.spent.set(true);
        self.left.set(0);
    }

    /// Returns whether the line has been given up.
    pub fn is_spent(&self) -> bool {
        self.spent.get()
    }

    /// Returns the number of steps taken.
    pub fn steps(&self) -> usize {
        MAX_STEPS - self.left.get()
    }
}
