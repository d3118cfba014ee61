//! [`Unseen`]: the amount of an effect that is not shown.

use std::fmt;

use serde::Serialize;

/// The amount of an effect that is not shown. Approval covers it nevertheless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each name is the unit")]
pub struct Unseen {
    pub lines: u64,
    pub bytes: u64,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines {
            0 => write!(f, "{} bytes are not shown", self.bytes),
            1 => write!(f, "1 more line is not shown"),
            lines => write!(f, "{lines} more lines are not shown"),
        }
    }
}
