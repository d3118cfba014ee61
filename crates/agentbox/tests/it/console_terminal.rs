//! The console on a pseudo-terminal.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use backend_testkit::processes;
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use rexpect::session::{PtySession, spawn_command};
use tempfile::TempDir;

use crate::support::console;

/// Timeout in milliseconds.
const PATIENCE: u64 = 60_000;

const UP: &str = "\x1b[A";
const PROMPT: &str = "local> ";
/// The end of a question.
const QUESTION: &str = "[n]o:";

struct Console {
    terminal: PtySession,
}

impl Console {
    fn start(home: &TempDir) -> Self {
        Self::start_with(home, |_| {})
    }

    fn start_with(home: &TempDir, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = console(home.path());
        command.env("TERM", "xterm-256color");
        change(&mut command);
        let mut terminal = spawn_command(command, Some(PATIENCE)).unwrap();
        terminal.process_mut().set_kill_timeout(Some(5_000));
        let mut console = Self { terminal };
        console.sees("Ctrl-D leaves.");
        console.sees(PROMPT);
        console
    }

    /// Waits for a text. Returns the output before it.
    #[track_caller]
    fn sees(&mut self, text: &str) -> String {
        match self.terminal.exp_string(text) {
            Ok(before) => before,
            Err(error) => panic!("{text:?} did not come: {error}"),
        }
    }

    #[track_caller]
    fn types(&mut self, text: &str) {
        self.terminal.send(text).unwrap();
        self.terminal.flush().unwrap();
    }

    /// Types a line. Returns the output up to the next prompt.
    #[track_caller]
    fn says(&mut self, line: &str) -> String {
        self.types(&format!("{line}\r"));
        self.sees("\n");
        self.sees(PROMPT)
    }

    /// Types a line and allows what it asks about.
    #[track_caller]
    fn allows(&mut self, line: &str) {
        self.types(&format!("{line}\r"));
        self.sees(QUESTION);
        self.types("y\n");
    }

    /// Cancels what runs.
    #[track_caller]
    fn cancels(&mut self) {
        self.control('c');
        self.sees("cancelled");
        self.sees(PROMPT);
    }

    /// Leaves at the prompt.
    #[track_caller]
    fn leaves(mut self) {
        self.control('d');
        assert_eq!(self.ends(), 0);
    }

    fn control(&mut self, key: char) {
        self.terminal.send_control(key).unwrap();
    }

    /// Waits for the end. Returns the exit code.
    #[track_caller]
    fn ends(mut self) -> i32 {
        self.terminal.exp_eof().unwrap();
        match self.terminal.process().wait().unwrap() {
            WaitStatus::Exited(_, code) => code,
            other => panic!("{other:?}"),
        }
    }
}

/// Waits until a process is gone.
fn is_gone(pid: &str) {
    // If it cannot be opened, it is gone already.
    let process = processes::handle(pid.trim().parse().unwrap());
    let limit = Duration::from_secs(30);
    let is_gone = process.is_none_or(|process| processes::wait(&process, limit));
    assert!(is_gone, "{pid} still runs");
}

fn workspace(home: &TempDir) -> std::path::PathBuf {
    home.path().join("agentbox-workspace")
}

/// Starts the console in a home of its own.
fn start() -> (TempDir, Console) {
    let home = tempfile::tempdir().unwrap();
    let console = Console::start(&home);
    (home, console)
}

/// Starts a command that prints its process id and then keeps running. Returns the id.
fn long_command(console: &mut Console) -> String {
    console.allows("!echo p'i'd $$ end; exec sleep 1000");
    console.sees("pid ");
    console.sees(" end")
}

#[test]
fn greets_calls_and_leaves() {
    let (_home, mut console) = start();
    assert!(
        console
            .says("write a.txt 'hello there'")
            .contains("Wrote 1 line to a.txt")
    );
    assert!(console.says("read a.txt").contains("1\thello there"));
    let text = console.says("read nope.txt");
    assert!(
        text.contains("\x1b[31mError: File 'nope.txt' not found"),
        "{text:?}"
    );
    let text = console.says("read a.txt --ofset 1");
    assert!(text.contains("read_file has no field 'ofset'"), "{text:?}");
    console.leaves();
}

#[test]
fn several_lines_are_one_text() {
    let (home, mut console) = start();
    console.types("write a.txt <<EOF\rone\r'two'\rEOF\r");
    console.sees("Wrote 2 lines to a.txt");
    console.sees(PROMPT);
    let written = std::fs::read_to_string(workspace(&home).join("a.txt")).unwrap();
    assert_eq!(written, "one\n'two'\n");
    console.types("quit\r");
    assert_eq!(console.ends(), 0);
}

#[test]
fn tab_completes_tools_fields_and_paths() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(workspace(&home).join("src")).unwrap();
    std::fs::write(workspace(&home).join("src/long name.rs"), "found\n").unwrap();
    let mut console = Console::start(&home);
    let text = console.says("read_f\t s\tlo\t");
    assert!(text.contains("1\tfound"), "{text:?}");
    // Ambiguous names are listed.
    console.types("read_\t");
    console.sees("read_file");
    console.sees("read_output");
    console.types("f\t --off\t");
    console.sees("--offset ");
    console.control('c');
    console.sees(PROMPT);
    console.leaves();
}

#[test]
fn history_lasts() {
    let (home, mut console) = start();
    console.says("write a.txt 'kept for later'");
    console.says("read a.txt");
    console.leaves();
    let mut console = Console::start(&home);
    let text = console.says(UP);
    assert!(text.contains("1\tkept for later"), "{text:?}");
    let text = console.says(&format!("{UP}{UP}"));
    assert!(text.contains("Wrote 1 line"), "{text:?}");
    let file = home.path().join(".local/state/agentbox/history");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0);
}

#[test]
fn edits_show_coloured_diffs() {
    let (home, mut console) = start();
    console.says("write a.txt 'the old text'");
    // This also works for a file that was not read.
    std::fs::write(workspace(&home).join("b.txt"), "an old text\n").unwrap();
    for file in ["a.txt", "b.txt"] {
        let text = console.says(&format!("edit {file} old new"));
        assert!(text.contains("replaced 1 occurrence"), "{text:?}");
        assert!(text.contains("old text\x1b[0m"), "{text:?}");
        assert!(text.contains("\x1b[31m-"), "{text:?}");
        assert!(text.contains("\x1b[32m+"), "{text:?}");
        assert_eq!(text.matches("\x1b[32m+").count(), 1, "{text:?}");
    }
    let text = console.says("edit b.txt new newer --dry-run");
    assert_eq!(
        text.matches("\x1b[32m+an newer text\x1b[0m").count(),
        1,
        "{text:?}"
    );
}

#[test]
fn no_colour_if_nobody_wants_it() {
    let home = tempfile::tempdir().unwrap();
    let mut console = Console::start_with(&home, |command| {
        command.env("NO_COLOR", "1");
    });
    let text = console.says("read nope.txt");
    assert!(
        text.contains("Error: File") && !text.contains("\x1b[3"),
        "{text:?}"
    );
}

#[test]
fn commands_are_asked_about() {
    let (home, mut console) = start();
    console.types("!echo one > out\r");
    let question = console.sees(QUESTION);
    assert!(question.contains("echo one > out"), "{question:?}");
    console.types("n not that\n");
    let text = console.sees(PROMPT);
    assert!(text.contains("not that"), "{text:?}");
    assert!(!workspace(&home).join("out").exists());

    console.types("!echo two > out\r");
    console.sees(QUESTION);
    console.types("perhaps\n");
    console.sees("y allows this once.");
    console.sees(QUESTION);
    console.types("y\n");
    console.sees(PROMPT);
    assert_eq!(read(&workspace(&home).join("out")), "two\n");

    // The same command is not asked about again, but any other is.
    console.types("!echo three >> out\r");
    console.sees(QUESTION);
    console.types("s\n");
    console.sees(PROMPT);
    console.says("!echo three >> out");
    assert_eq!(read(&workspace(&home).join("out")), "two\nthree\nthree\n");
    console.types("!echo other > out\r");
    let question = console.sees(QUESTION);
    // Coloured lines are wrapped at words.
    assert!(question.contains("[a]ny command"), "{question:?}");
    console.types("a\n");
    let text = console.sees(PROMPT);
    assert!(text.contains("not be asked about any command"), "{text:?}");
    console.says("!echo four > out");
    assert_eq!(read(&workspace(&home).join("out")), "four\n");
}

#[test]
fn commands_are_told_from_tools() {
    let (_home, mut console) = start();
    for (typed, told) in [
        (
            "git status",
            "there is no tool 'git'; to run a command: !git status",
        ),
        ("pwd", "to run a command: !pwd"),
        ("cd x", "to run a command: !cd x && COMMAND"),
        ("python3 a.py 'it", "to run a command: !python3 a.py 'it"),
        ("wriet a.txt x", "did you mean write?"),
        ("help reed", "did you mean read?"),
    ] {
        let text = console.says(typed);
        assert!(text.contains(told), "{typed}: {text:?}");
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn what_commands_print_comes_live_and_harmless() {
    let (home, mut console) = start();
    // It waits for a file, which is created once its first line was seen.
    console.allows(
        "!printf '\\033[31mfirst\\033[0m \\033[2J\\n'; until [ -e go ]; do sleep 0.05; done; echo second; exit 3",
    );
    let before = console.sees("\x1b[31mfirst\x1b[0m ");
    assert!(!before.contains("\x1b[2J"));
    std::fs::write(workspace(&home).join("go"), "").unwrap();
    let text = console.sees(PROMPT);
    assert!(!text.contains("\x1b[2J"), "{text:?}");
    assert_eq!(text.matches("second").count(), 1, "{text:?}");
    assert!(text.contains("Command failed (exit code 3)"), "{text:?}");
}

#[test]
fn ctrl_c_cancels_a_command() {
    let (_home, mut console) = start();
    let pid = long_command(&mut console);
    console.cancels();
    is_gone(&pid);
    // The next command works.
    console.allows("!echo still here");
    console.sees("still here");
    console.sees(PROMPT);
    console.leaves();
}

#[test]
fn ctrl_c_withdraws_a_question() {
    let (home, mut console) = start();
    console.types("!echo no > out\r");
    console.sees(QUESTION);
    console.cancels();
    // Input typed now is not an answer.
    let text = console.says("y");
    assert!(text.contains("there is no tool 'y'"), "{text:?}");
    assert!(!workspace(&home).join("out").exists());
}

#[test]
fn ctrl_c_twice_leaves() {
    let (_home, mut console) = start();
    console.types("something");
    console.control('c');
    console.sees(PROMPT);
    // A line was typed in between.
    console.says("ls");
    console.control('c');
    console.sees("Ctrl-C again leaves.");
    console.sees(PROMPT);
    console.control('c');
    assert_eq!(console.ends(), 130);
}

#[test]
fn ctrl_c_twice_leaves_nothing_behind() {
    let (home, mut console) = start();
    console.types("bg echo $$ > bg; exec sleep 1000\r");
    console.sees(QUESTION);
    console.types("a\n");
    console.sees("bg_1");
    console.sees(PROMPT);
    console.types("!until [ -s bg ]; do sleep 0.05; done; echo p'i'd $$ end; exec sleep 1000\r");
    console.sees("pid ");
    let pid = console.sees(" end");
    console.control('c');
    console.sees("cancelled");
    console.control('c');
    assert_eq!(console.ends(), 130);
    is_gone(&pid);
    is_gone(&read(&workspace(&home).join("bg")));
}

#[test]
fn a_signal_ends_it_and_nothing_stays() {
    let (_home, mut console) = start();
    let pid = long_command(&mut console);

    console
        .terminal
        .process_mut()
        .signal(Signal::SIGTERM)
        .unwrap();
    assert_eq!(console.ends(), 143);
    is_gone(&pid);
}

#[test]
fn a_signal_ends_it_at_the_prompt() {
    let (_home, mut console) = start();
    console.types("not finish");
    console.sees("not finish");
    let process = console.terminal.process_mut();
    process.signal(Signal::SIGTERM).unwrap();
    assert_eq!(console.ends(), 143);
}

#[test]
fn ctrl_c_ends_all_that_was_pasted() {
    let (home, mut console) = start();
    let pasted = "!echo begun; exec sleep 1000\nwrite late.txt x\n";
    console.types(&format!("\x1b[200~{pasted}\x1b[201~\r"));
    console.sees(QUESTION);
    console.types("y\n");
    console.sees("begun");
    console.cancels();
    assert!(!workspace(&home).join("late.txt").exists());
}

#[test]
fn a_hint_tells_the_fields_to_come() {
    let (_home, mut console) = start();
    console.types("read ");
    console.sees("PATH [OFFSET] [LIMIT]");
    // The hint is not inserted.
    let text = console.says("nope.txt");
    assert!(text.contains("File 'nope.txt' not found"), "{text:?}");
}

#[test]
fn background_shells_end_with_the_console() {
    let (_home, mut console) = start();
    console.allows("bg echo p'i'd $$ end; exec sleep 1000");
    console.sees(PROMPT);
    console.types("out bg_1 --wait-seconds 60\r");
    console.sees("pid ");
    let pid = console.sees(" end");
    console.sees(PROMPT);
    console.control('d');
    assert_eq!(console.ends(), 0);
    is_gone(&pid);
}

#[test]
fn ctrl_c_stops_a_flood() {
    let (_home, mut console) = start();
    console.allows("!exec yes flood");
    console.sees("flood\r\nflood\r\n");
    console.cancels();
    console.leaves();
}

#[test]
fn a_terminal_that_can_do_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut console = Console::start_with(&home, |command| {
        command.env("TERM", "dumb");
    });
    console.types("write a.txt 'two\nlines'\n");
    assert!(console.sees(PROMPT).contains("Wrote 2 lines"));
    console.types("!echo p'i'd $$ end; exec sleep 1000\n");
    let question = console.sees(QUESTION);
    assert!(!question.contains('\x1b'), "{question:?}");
    console.types("y\n");
    console.sees("pid ");
    let pid = console.sees(" end");
    console.cancels();
    console.control('c');
    assert_eq!(console.ends(), 130);
    is_gone(&pid);
}

#[test]
fn help_tells_what_there_is() {
    let (_home, mut console) = start();
    assert!(console.says("help").contains("Type a tool's name"));
    assert!(
        console
            .says("help read")
            .contains("read_file PATH [OFFSET] [LIMIT]")
    );
    assert!(console.says("tools").contains("Runs a shell command"));
    assert!(
        console
            .says("help nothing")
            .contains("there is no tool 'nothing'")
    );
}

#[test]
fn a_full_screen_program_gets_the_terminal() {
    let (home, mut console) = start();
    let editor = workspace(&home).join("vi");
    let script = "#!/bin/sh\nstty raw -echo; echo ready; key=$(dd bs=1 count=1 2>/dev/null)\n\
                  stty sane; echo key=$key; exit 3\n";
    std::fs::write(&editor, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&editor, mode).unwrap();
    console.types("!./vi a.txt\r");
    console.sees("ready");
    // Ctrl-C is a key like others.
    console.control('c');
    console.sees("key=\x03");
    console.sees("exited with code 3");
    console.sees(PROMPT);
    // The next keys are for the console again.
    assert!(console.says("ls").contains("vi"));
    console.leaves();
}

#[test]
fn a_background_shell_is_attached_to_left_and_found_again() {
    let (_home, mut console) = start();
    console.allows("bg --terminal PS1=# sh");
    console.sees(PROMPT);
    console.types("attach bg_1\r");
    console.sees("attach bg_1");
    console.types("echo $((40+2))\r");
    console.sees("\n42");
    console.types("\r~.");
    console.sees("bg_1 runs on");
    console.sees(PROMPT);
    assert!(console.says("shells").contains("bg_1  running"));
    console.types("attach bg_1\r");
    console.sees("attach bg_1");
    console.types("exit 3\r");
    console.sees("bg_1 exited with code 3");
    console.sees(PROMPT);
    // A shell without a terminal takes lines.
    console.allows("bg cat");
    console.sees(PROMPT);
    console.types("attach bg_2\r");
    console.sees("attach bg_2");
    // The terminal of this test does not show what is typed.
    console.types("typed\n");
    console.sees("typed\r\n");
    console.types("~.\n");
    console.sees("bg_2 runs on");
    console.sees(PROMPT);
    let missing = console.says("attach");
    assert!(missing.contains("attach needs the id"), "{missing}");
    console.leaves();
}
