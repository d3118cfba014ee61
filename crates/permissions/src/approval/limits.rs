//! Size limits of questions, answers and remembered answers.

use std::time::Duration;

/// Maximum bytes of a diff, or of a shown command, in one question. The middle of a
/// longer one is left out, and a line says how much.
pub const EFFECT_BYTES: usize = 32 * 1024;

/// Maximum bytes on either side of a diff. A larger change is shown as sizes and hashes.
pub const DIFF_BYTES: usize = 1024 * 1024;

/// Maximum time to minimize a diff, which is correct but longer after that.
pub const DIFF_TIME: Duration = Duration::from_millis(50);

/// Maximum bytes of each description, reason or target in a question or refusal.
pub const LINE_BYTES: usize = 1_000;

/// Maximum number of reasons, and of targets, that a question shows; it counts the rest.
pub const SHOWN_LINES: usize = 20;

/// Maximum bytes shown of one string in the arguments of a tool.
pub const ARGUMENT_BYTES: usize = 1_000;

/// Maximum bytes of all arguments together. Larger ones are shown as a size and a hash.
pub const ARGUMENTS_BYTES: usize = 16 * 1024;

/// Maximum bytes of an answer's note.
pub const NOTE_BYTES: usize = 2_000;

/// Maximum number of remembered answers. To make room, expired ones are removed first,
/// then the oldest yes, then the oldest no.
pub const GRANTS: usize = 1_000;

/// Maximum number of targets in one remembered answer.
pub const GRANT_TARGETS: usize = 100;

/// Maximum length of a remembered command line or pattern, in bytes.
pub const GRANT_TEXT_BYTES: usize = 4 * 1024;

/// Maximum number of callbacks that block at the same time, each on a separate thread.
pub const BLOCKED_THREADS: usize = 16;
