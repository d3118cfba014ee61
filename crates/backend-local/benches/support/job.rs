//! The workloads, by the names of their rows.

/// A workload that a peer can do as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Search the tree; the first `max` hits, or all.
    Grep {
        pattern: &'static str,
        max: Option<usize>,
    },
    /// Find files in the tree.
    Glob {
        pattern: &'static str,
        /// The pattern that finds the same files in Python's pathlib syntax.
        pathlib: &'static str,
        /// Whether to return sizes and times too, as the Python peer does.
        metadata: bool,
    },
    /// Read a file of fifty lines.
    Read,
    /// Replace a line of such a file.
    Edit,
    /// Overwrite a file.
    Write,
    /// Run a command that does nothing.
    Execute,
    /// Run one in a view that is kept. The peer is the same command without one.
    View,
}

/// The files that views deny.
pub(crate) fn denied() -> Vec<String> {
    (0..10).map(|number| format!("denied-{number}")).collect()
}

/// Files in the scratch directory. Each side changes its own.
pub(crate) const READ_FILE: &str = "read.txt";
pub(crate) const OUR_FILES: Files = Files {
    edit: "edit-ours.txt",
    write: "write-ours.txt",
};
pub(crate) const THEIR_FILES: Files = Files {
    edit: "edit-theirs.txt",
    write: "write-theirs.txt",
};

/// The files that one side changes.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) edit: &'static str,
    pub(crate) write: &'static str,
}

impl Job {
    /// Returns the workload of the row `name`, without the name of its peer.
    pub(crate) fn named(name: &str, peer: &str) -> Self {
        let grep = |pattern, max| Self::Grep { pattern, max };
        let glob = |pattern, pathlib| Self::Glob {
            pattern,
            pathlib,
            metadata: peer == "py",
        };
        match name {
            "local_grep_main" => grep("fn main", None),
            "local_grep_todo" => grep("TODO|FIXME", None),
            "local_grep_error" => grep("(?i)error", None),
            // Written into the tree when it was created.
            "local_grep_rare" => grep("agentbox_rare_literal", None),
            "local_grep_self" => grep("self", None),
            "local_grep_self_100" => grep("self", Some(100)),
            "local_glob_rs" => glob("**/*.rs", "**/*.rs"),
            "local_glob_toml" => glob("*.toml", "**/*.toml"),
            "local_read" => Self::Read,
            "local_edit" => Self::Edit,
            "local_write" => Self::Write,
            "local_execute" => Self::Execute,
            "local_view" => Self::View,
            _ => panic!("there is no row {name}"),
        }
    }

    /// Returns how many of the results of a peer without a maximum were asked
    /// for.
    pub(crate) fn asked_for(&self, size: u64) -> u64 {
        match self {
            Self::Grep { max: Some(max), .. } => size.min(u64::try_from(*max).unwrap()),
            _ => size,
        }
    }

    /// Returns the number of calls in one turn. Only the last one counts: a
    /// side that has just waited for the other would otherwise be timed with
    /// cold caches. Odd, so that a turn of edits leaves its file changed.
    pub(crate) fn calls_per_turn(&self) -> usize {
        match self {
            Self::Read | Self::Edit | Self::Write => 5,
            Self::Grep { .. } | Self::Glob { .. } | Self::Execute | Self::View => 1,
        }
    }
}

/// Fifty lines of source, as a model would read or edit them.
pub(crate) fn fifty_lines() -> String {
    let line = |number| match number {
        EDITED_LINE => format!("{}\n", edited(0).0),
        _ => format!("    let value_{number:02} = compute(input, {number}, &mut state)?;\n"),
    };
    (0..50).map(line).collect()
}

const EDITED_LINE: usize = 25;

/// Returns the text that an edit replaces, and its replacement. Each edit
/// undoes the one before, so each finds its text.
pub(crate) fn edited(number: usize) -> (&'static str, &'static str) {
    let lines = (
        "    let edited = first(input, &mut state)?;",
        "    let edited = other(input, &mut state)?;",
    );
    match number % 2 {
        0 => lines,
        _ => (lines.1, lines.0),
    }
}

/// One KiB of text.
pub(crate) fn one_kib() -> String {
    format!("{}\n", "x".repeat(63)).repeat(16)
}
