//! [`BuildEvent`]: the progress of a pull or build.

use std::fmt;

/// Progress of a pull or build.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildEvent {
    /// An image is being pulled from its registry.
    Pulling {
        /// The image's name.
        image: String,
    },
    /// A step of the build started, or was found in the cache.
    Step {
        /// The step's number, starting at 1.
        number: u32,
        /// The number of steps.
        total: u32,
        /// The instruction.
        name: String,
        /// Whether the result of an earlier build was used.
        cached: bool,
    },
    /// A line of output.
    Log {
        /// Its text, without control characters.
        line: String,
    },
    /// This listener was too slow and missed some events.
    Skipped {
        /// The number of missed events.
        events: u64,
    },
    /// The image is ready.
    Done {
        /// The image's name.
        image: String,
        /// Whether it was built just now.
        built: bool,
    },
}

impl fmt::Display for BuildEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pulling { image } => write!(f, "pulling {image}"),
            Self::Step {
                number,
                total,
                name,
                cached,
            } => {
                let cached = if *cached { " (cached)" } else { "" };
                write!(f, "step {number}/{total}: {name}{cached}")
            }
            Self::Log { line } => f.write_str(line),
            Self::Skipped { events } => write!(f, "({events} lines are not shown)"),
            Self::Done { image, built: true } => write!(f, "built {image}"),
            Self::Done { image, .. } => write!(f, "{image} is there"),
        }
    }
}
