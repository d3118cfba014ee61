//! State of background shells, needed to judge their input.

use std::collections::BTreeMap;

use backend_core::limits::COMMAND_BYTES;
use backend_core::ops::ShellId;

/// Programs besides [`command_line::is_shell`] that run their input as command lines.
const SHELLS: &[&str] = &[
    "busybox", "toybox", "su", "sudo", "doas", "ssh", "script", "screen", "tmux", "expect",
    "chroot", "nsenter", "docker", "podman", "kubectl", "xargs", "parallel", "at", "batch",
];

/// Programs besides [`command_line::is_interpreter`] that run their input as code.
const INTERPRETERS: &[&str] = &["R", "Rscript", "bc", "erl", "iex"];

/// Programs that treat their input as data, whatever their options.
const DATA_PROGRAMS: &[&str] = &[
    "base64",
    "cat",
    "cut",
    "echo",
    "head",
    "md5sum",
    "sha256sum",
    "sleep",
    "tail",
    "tee",
    "tr",
    "true",
    "wc",
];

/// The way a program treats its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputKind {
    /// Runs it as command lines.
    Shell,
    /// Runs it as other code.
    Interpreter,
    /// Not known; it may be either.
    Unknown,
    /// Treats it as data.
    Data,
}

impl InputKind {
    /// Guesses what a line does with its input, from all words that could be programs.
    pub(super) fn of(line: &str) -> Self {
        let is_shell = |name: &str| command_line::is_shell(name) || SHELLS.contains(&name);
        let is_interpreter = |name: &str| {
            // `python3.12` counts as `python`.
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let known = |name| command_line::is_interpreter(name) || INTERPRETERS.contains(&name);
            known(name) || known(stem)
        };
        let (mut shell, mut interpreter) = (false, false);
        let (mut data, mut code) = (true, true);
        // File names of redirects are not programs.
        let spaced = line.replace(">&", ">").replace("<&", "<");
        let spaced = spaced.replace('>', " > ").replace('<', " < ");
        for command in spaced.split(|c: char| "\n;&|(){}!".contains(c)) {
            let words = command.split(|c: char| c.is_whitespace() || c == '=');
            let (mut first, mut file) = (true, false);
            for word in words.filter(|word| !word.is_empty()) {
                if matches!(word, "<" | ">") {
                    file = true;
                    continue;
                }
                if std::mem::take(&mut file) {
                    continue;
                }
                let word: String = word.chars().filter(|c| !"\\'\"".contains(*c)).collect();
                let name = word.rsplit('/').next().unwrap_or(&word);
                shell |= is_shell(name);
                interpreter |= !is_shell(name) && is_interpreter(name);
                if std::mem::take(&mut first) {
                    data &= DATA_PROGRAMS.contains(&name);
                    code &= DATA_PROGRAMS.contains(&name) || is_interpreter(name);
                }
            }
        }
        match line.contains(['$', '`']) {
            false if data => Self::Data,
            false if code && interpreter && !shell => Self::Interpreter,
            _ if shell && !interpreter => Self::Shell,
            _ => Self::Unknown,
        }
    }
}

/// The input of all known shells.
#[derive(Debug, Clone, Default)]
pub(super) struct Shells(BTreeMap<ShellId, ShellInput>);

/// The input of one shell.
#[derive(Debug, Clone, Default)]
pub(super) struct ShellInput {
    /// The shell's command line.
    pub(super) line: String,
    /// All input so far, because it affects later input.
    pub(super) text: String,
    /// `true` if some input was too long to keep, or went past the guard.
    pub(super) overflowed: bool,
    /// `true` if it has a terminal, where a carriage return ends a line.
    pub(super) terminal: bool,
    /// The id of the policy under which the guard started it.
    pub(super) policy: Option<String>,
}

impl ShellInput {
    /// Returns `text` as the shell reads it: in a terminal, Enter is a line feed.
    pub(super) fn as_read(&self, text: String) -> String {
        if self.terminal {
            text.replace('\r', "\n")
        } else {
            text
        }
    }
}

impl Shells {
    pub(super) fn get(&self, id: &ShellId) -> Option<ShellInput> {
        self.0.get(id).cloned()
    }

    pub(super) fn started(&mut self, id: ShellId, line: String, terminal: bool, policy: String) {
        let input = ShellInput {
            line,
            terminal,
            policy: Some(policy),
            ..ShellInput::default()
        };
        self.0.insert(id, input);
    }

    pub(super) fn ended(&mut self, id: &ShellId) {
        self.0.remove(id);
    }

    /// Remembers input.
    pub(super) fn record_input(&mut self, id: &ShellId, line: &str, text: &str) {
        let input = self.0.entry(id.clone()).or_default();
        if input.line.is_empty() {
            line.clone_into(&mut input.line);
        }
        if input.text.len() + text.len() > COMMAND_BYTES {
            input.overflowed = true;
        } else {
            input.text.push_str(text);
        }
    }

    /// Remembers that input of a shell is not known.
    pub(super) fn lose_track(&mut self, id: &ShellId) {
        if let Some(input) = self.0.get_mut(id) {
            input.overflowed = true;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps only the shells in `there`.
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
            assert_eq!(InputKind::of(line), InputKind::Shell, "{line}");
        }
        for line in ["python3.12 -i", "node", "psql db", "cat x | python3"] {
            assert_eq!(InputKind::of(line), InputKind::Interpreter, "{line}");
        }
        for line in [
            "cat",
            "tee out.txt",
            "wc -l",
            "cat x | /usr/bin/head -3",
            "cat > typed",
            "cat >>sh 2>&1 <in",
        ] {
            assert_eq!(InputKind::of(line), InputKind::Data, "{line}");
        }
    }

    #[test]
    fn what_is_not_known_may_be_a_shell() {
        for line in [
            "linux64",
            "fakeroot",
            "unshare -r",
            "./server --port 80",
            "$SHELL",
            "`which x`",
            "cat; linux32",
            "cat <(linux32)",
            "cat >out linux32 | ./x",
            "fakeroot # python3",
            "python3 -c 'import pty; pty.spawn(\"sh\")'",
        ] {
            assert_eq!(InputKind::of(line), InputKind::Unknown, "{line}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let id = ShellId::new("bg_1");
        let mut shells = Shells::default();
        shells.started(id.clone(), "sh".into(), false, String::new());
        shells.record_input(&id, "sh", &"x".repeat(COMMAND_BYTES));
        assert!(!shells.get(&id).unwrap().overflowed);
        shells.record_input(&id, "sh", "y");
        let input = shells.get(&id).unwrap();
        assert!(input.overflowed && input.text.len() == COMMAND_BYTES);
        shells.retain(&[]);
        assert_eq!(shells.len(), 0);
    }
}
