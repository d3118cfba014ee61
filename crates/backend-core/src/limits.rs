//! Every named limit of the workspace, in one place.
//!
//! Everything that can reach a model, a log or a peer is bounded by one of these,
//! and a result that was cut says so. A caller can raise or lower most of them per
//! call through the option structs in [`crate::ops`]; the constants are the
//! defaults and the ceilings that hold on every backend alike.

/// Longest path, in bytes. The kernel's `PATH_MAX` without its final NUL.
pub const PATH_BYTES: usize = 4_095;

/// Most names in one path. Deeper nesting could exhaust the stack of code that
/// walks the tree recursively.
pub const PATH_DEPTH: usize = 255;

/// Longest name of one file or directory, in bytes.
pub const NAME_BYTES: usize = 255;

/// Prefix of the names of temporary files that are being written.
///
/// No backend lists such files and no [`VPath`](crate::VPath) can name them.
pub const TEMPORARY_PREFIX: &str = ".agentbox-tmp-";

/// Bytes of foreign text that a message quotes.
pub const QUOTED_BYTES: usize = 200;

/// Bytes of an error's message, and of each of its sources, that are sent to
/// another process.
pub const ERROR_BYTES: usize = 8 * 1024;

/// Sources of an error that are sent to another process.
pub const ERROR_SOURCES: usize = 4;

/// Most bytes one `read` returns unless the caller asks for more.
pub const READ_BYTES: u64 = 64 * 1024 * 1024;

/// Leading bytes of a file that are examined to tell text from binary.
pub const SNIFF_BYTES: usize = 8 * 1024;

/// Lines in a text window unless the caller says otherwise.
pub const WINDOW_LINES: usize = 2_000;

/// Bytes of text in one window unless the caller says otherwise.
pub const WINDOW_BYTES: usize = 1024 * 1024;

/// Width, in bytes, at which a shown line is cut.
pub const LINE_BYTES: usize = 2_000;

/// Largest text file that `edit` rewrites, in bytes.
pub const EDIT_BYTES: u64 = 64 * 1024 * 1024;

/// Edits accepted in one call.
pub const EDITS: usize = 1_000;

/// Nearest candidates that a failed edit names.
pub const EDIT_CANDIDATES: usize = 3;

/// Attempts of a derived `edit` when the file changes underneath it.
pub const EDIT_ATTEMPTS: usize = 4;

/// Entries in one listing unless the caller says otherwise.
pub const LIST_ENTRIES: usize = 10_000;

/// Files in one glob result unless the caller says otherwise.
pub const GLOB_FILES: usize = 10_000;

/// Matching lines in one grep result unless the caller says otherwise.
pub const GREP_MATCHES: usize = 10_000;

/// Bytes of lines in one grep result unless the caller says otherwise.
pub const GREP_BYTES: usize = 64 * 1024 * 1024;

/// Most lines of context on either side of a match.
pub const GREP_CONTEXT_LINES: usize = 100;

/// Longest line grep will search, in bytes. A file with a longer one is skipped and
/// counted. If the pattern can span lines, this bounds the whole file.
pub const GREP_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Longest glob or regular expression, in bytes.
pub const PATTERN_BYTES: usize = 16 * 1024;

/// Largest compiled regular expression, in bytes.
pub const REGEX_BYTES: usize = 16 * 1024 * 1024;

/// Alternatives that the `{a,b}` groups of one glob may expand to.
pub const GLOB_ALTERNATIVES: usize = 256;

/// Largest ignore file that is honoured, in bytes. A larger one counts as
/// unreadable: its patterns could take seconds to compile.
pub const IGNORE_FILE_BYTES: usize = 256 * 1024;

/// Changes that wait to be read in one watch. Then the stream says that changes were lost.
pub const WATCH_EVENTS: usize = 8 * 1024;

/// Bytes of the paths of changes that wait to be read in one watch.
pub const WATCH_BYTES: usize = 4 * 1024 * 1024;

/// Files and directories beneath one watch of a real directory.
pub const WATCH_ENTRIES: usize = 1_000_000;

/// Bytes kept of each output stream of a command: its beginning and its end.
pub const OUTPUT_BYTES: usize = 100_000;

/// Output, in bytes over both streams, at which a command is killed.
pub const OUTPUT_HARD_BYTES: u64 = 1024 * 1024 * 1024;

/// Longest command line, in bytes. This is the kernel's limit for one argument.
pub const COMMAND_BYTES: usize = 128 * 1024 - 1;

/// Time between TERM and KILL when a command is ended. On a busy machine a command
/// needs part of it just to be scheduled.
pub const KILL_GRACE: std::time::Duration = std::time::Duration::from_secs(1);

/// Background shells that one sandbox keeps, running or finished.
pub const SHELLS: usize = 64;

/// Bytes of unread output kept per background shell and stream.
pub const SHELL_LOG_BYTES: usize = 1024 * 1024;

/// Bytes of unread output at which a shell waits for the connection that is attached
/// to it.
pub const ATTACHED_BYTES: usize = 64 * 1024;
