//! What is known about background shells, so that what is typed into them can be
//! judged.

use std::collections::BTreeMap;

use backend_core::limits::COMMAND_BYTES;
use backend_core::ops::ShellId;

/// Programs that run what is typed into them as a command line.
const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "busybox", "toybox", "su", "sudo",
    "doas", "ssh", "script", "screen", "tmux", "expect", "chroot", "nsenter", "docker", "podman",
    "kubectl", "xargs", "parallel", "at", "batch", "csh", "tcsh", "rbash",
];

/// Programs that run what is typed into them as code of another kind.
const INTERPRETERS: &[&str] = &[
    "python",
    "ipython",
    "pypy",
    "node",
    "nodejs",
    "deno",
    "bun",
    "ruby",
    "irb",
    "perl",
    "php",
    "lua",
    "luajit",
    "R",
    "Rscript",
    "julia",
    "ghci",
    "scala",
    "jshell",
    "psql",
    "mysql",
    "sqlite3",
    "redis-cli",
    "mongosh",
    "gdb",
    "lldb",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "emacs",
    "awk",
    "gawk",
    "bc",
    "dc",
    "tclsh",
    "guile",
    "racket",
    "erl",
    "iex",
    "make",
    "ftp",
    "sftp",
];

/// What a program does with what is typed into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// Runs it as command lines.
    Shell,
    /// Runs it as other code, or that is not known.
    Interpreter,
    /// Takes it for data.
    Program,
}

impl Reader {
    /// What a command line does with its input, guessed to the safe side: every
    /// word counts that could be a program.
    pub(super) fn of(line: &str) -> Self {
        let mut reader = match line.contains(['$', '`']) {
            true => Self::Interpreter,
            false => Self::Program,
        };
        let breaks = |c: char| c.is_whitespace() || ";&|()<>{}!=".contains(c);
        for word in line.split(breaks) {
            let word: String = word.chars().filter(|c| !"\\'\"".contains(*c)).collect();
            let name = word.rsplit('/').next().unwrap_or(&word);
            if SHELLS.contains(&name) {
                return Self::Shell;
            }
            // `python3.12` is a python.
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            if INTERPRETERS.contains(&name) || INTERPRETERS.contains(&stem) {
                reader = Self::Interpreter;
            }
        }
        reader
    }
}

/// Lines that were typed into shells.
#[derive(Debug, Clone, Default)]
pub(super) struct Shells(BTreeMap<ShellId, Typed>);

/// What was typed into one shell.
#[derive(Debug, Clone, Default)]
pub(super) struct Typed {
    /// Its command line.
    pub(super) line: String,
    /// Everything so far, for what it sets up counts for what comes.
    pub(super) text: String,
    /// Whether there was more than is kept.
    pub(super) overflowed: bool,
}

impl Shells {
    pub(super) fn get(&self, id: &ShellId) -> Option<Typed> {
        self.0.get(id).cloned()
    }

    pub(super) fn started(&mut self, id: ShellId, line: String) {
        let typed = Typed {
            line,
            ..Typed::default()
        };
        self.0.insert(id, typed);
    }

    pub(super) fn ended(&mut self, id: &ShellId) {
        self.0.remove(id);
    }

    /// Remembers what was typed.
    pub(super) fn typed(&mut self, id: &ShellId, line: &str, text: &str) {
        let typed = self.0.entry(id.clone()).or_default();
        if typed.line.is_empty() {
            line.clone_into(&mut typed.line);
        }
        if typed.text.len() + text.len() > COMMAND_BYTES {
            typed.overflowed = true;
        } else {
            typed.text.push_str(text);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps those that are still there.
    pub(super) fn retain(&mut self, there: &[ShellId]) {
        self.0.retain(|id, _| there.contains(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_known_in_every_spelling() {
        for line in [
            "sh",
            "/bin/bash -i",
            "exec zsh",
            "env FOO=1 bash",
            "cd /x&&dash",
            "ba\\sh",
            "'/bin/sh'",
            "true;sh",
            "nice -n 5 ksh",
            "sudo -i",
        ] {
            assert_eq!(Reader::of(line), Reader::Shell, "{line}");
        }
        for line in ["python3.12 -i", "node", "$SHELL", "`which x`", "psql db"] {
            assert_eq!(Reader::of(line), Reader::Interpreter, "{line}");
        }
        for line in ["cat", "tee out.txt", "wc -l", "./server --port 80"] {
            assert_eq!(Reader::of(line), Reader::Program, "{line}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let id = ShellId::new("bg_1");
        let mut shells = Shells::default();
        shells.started(id.clone(), "sh".into());
        shells.typed(&id, "sh", &"x".repeat(COMMAND_BYTES));
        assert!(!shells.get(&id).unwrap().overflowed);
        shells.typed(&id, "sh", "y");
        let typed = shells.get(&id).unwrap();
        assert!(typed.overflowed && typed.text.len() == COMMAND_BYTES);
        shells.retain(&[]);
        assert_eq!(shells.len(), 0);
    }
}
