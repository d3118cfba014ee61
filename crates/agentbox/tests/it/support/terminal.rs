//! The program on a pseudo-terminal.

use std::process::{Command, Stdio};

use nix::sys::wait::WaitStatus;
use rexpect::session::{PtySession, spawn_command};

use crate::support::{TestDir, in_script};

/// Timeout in milliseconds.
const PATIENCE: u64 = 60_000;

/// The program on a terminal of 33 rows and 99 columns, within a script that records the
/// state of the terminal before and after.
pub(crate) struct Terminal<'d> {
    dir: &'d TestDir,
    session: PtySession,
}

impl<'d> Terminal<'d> {
    /// Starts the program with the arguments of a command. `more` are further ones, as
    /// they are written in a shell.
    pub(crate) fn start(dir: &'d TestDir, program: &Command, more: &str) -> Self {
        let script = format!(
            "stty rows 33 columns 99; stty -a > before; \
             \"$0\" \"$@\" {more}; code=$?; stty -a > after; exit $code"
        );
        let mut shell = in_script(program, &script);
        shell.env("TERM", "xterm").env("PS1", "> ");
        shell.stdin(Stdio::inherit()).stdout(Stdio::inherit());
        shell.stderr(Stdio::inherit());
        let session = spawn_command(shell, Some(PATIENCE)).unwrap();
        Self { dir, session }
    }

    /// Waits for a text. Returns the output before it.
    #[track_caller]
    pub(crate) fn sees(&mut self, text: &str) -> String {
        match self.session.exp_string(text) {
            Ok(before) => before,
            Err(error) => panic!("{text:?} did not come: {error}"),
        }
    }

    #[track_caller]
    pub(crate) fn types(&mut self, text: &str) {
        self.session.send(text).unwrap();
        self.session.flush().unwrap();
    }

    #[track_caller]
    pub(crate) fn control(&mut self, key: char) {
        self.session.send_control(key).unwrap();
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let size = rustix::termios::Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let device = self.session.process().get_file_handle().unwrap();
        rustix::termios::tcsetwinsize(&device, size).unwrap();
    }

    /// Checks the exit code, and that the terminal is as it was, but for its size. Returns
    /// the last output.
    #[track_caller]
    pub(crate) fn ends(mut self, code: i32) -> String {
        let rest = self.session.exp_eof().unwrap();
        match self.session.process().wait().unwrap() {
            WaitStatus::Exited(_, exited) => assert_eq!(exited, code, "{rest}"),
            other => panic!("{other:?}"),
        }
        // The first line has the size.
        let mode = |name| {
            let all = self.dir.read(name);
            all.split_once('\n').unwrap().1.to_owned()
        };
        assert_eq!(mode("before"), mode("after"));
        rest
    }
}
