//! How large the parts of a question, an answer and the memory of them can get.

use std::time::Duration;

/// Bytes of a diff, or of a shown command, in one question. The middle of a
/// longer one is left out, and a line says how much.
pub const EFFECT_BYTES: usize = 32 * 1024;

/// Bytes on either side of a change beyond which it is described by sizes and
/// hashes instead of a diff.
pub const DIFF_BYTES: usize = 1024 * 1024;

/// How long a diff may take to become as short as possible. After that it is
/// longer than it need be, and still right.
pub const DIFF_TIME: Duration = Duration::from_millis(50);

/// Bytes of any one line that a question or a refusal shows: the description, a
/// reason, a target.
pub const LINE_BYTES: usize = 1_000;

/// Reasons, and targets, that a question shows. It says how many more there are.
pub const SHOWN_LINES: usize = 20;

/// Bytes of one string among the arguments of a tool that are shown.
pub const ARGUMENT_BYTES: usize = 1_000;

/// Bytes of all arguments together. More than that are shown as a size and a
/// hash.
pub const ARGUMENTS_BYTES: usize = 16 * 1024;

/// Bytes of an answer's note.
pub const NOTE_BYTES: usize = 2_000;

/// Answers that are remembered. When one more comes, those that have expired go
/// first, then the oldest yes, then the oldest no.
pub const GRANTS: usize = 1_000;

/// Targets that one remembered answer can name.
pub const GRANT_TARGETS: usize = 100;

/// Longest command line or pattern that is remembered, in bytes.
pub const GRANT_TEXT_BYTES: usize = 4 * 1024;

/// Callbacks that may block at once, each on a thread of its own.
pub const BLOCKED_THREADS: usize = 16;
