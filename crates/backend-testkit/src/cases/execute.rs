//! Running a command to completion: its inputs and its exit status.

use std::time::Duration;

use backend_core::limits::COMMAND_BYTES;
use backend_core::ops::{Command, CommandStatus};
use backend_core::{BackendExt as _, ErrorKind};
use futures::future::join_all;

use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

/// Commands that every sandbox rejects.
pub(crate) fn nonsense() -> Vec<Command> {
    vec![
        Command::new("true").timeout(Duration::ZERO),
        Command::new("echo a\0b"),
        Command::new(format!(": {}", "x".repeat(COMMAND_BYTES))),
        Command::new("true").env("", "x"),
        Command::new("true").env("A=B", "x"),
        Command::new("true").env("A\0", "x"),
        Command::new("true").env("A", "x\0"),
    ]
}

/// A command can read a file written by a file operation.
pub async fn commands_see_files(t: &Env) -> CaseResult {
    t.put("directory/file name", "written by the backend")
        .await?;
    let outcome = t.run("cat 'directory/file name'").await?;
    check_eq!(outcome.status, CommandStatus::Exited(0))?;
    check_eq!(outcome.stdout.text(), "written by the backend")?;
    t.backend().delete_file("directory/file name").await?;
    let outcome = t.run("test -e 'directory/file name'").await?;
    check_eq!(outcome.status, CommandStatus::Exited(1))
}

/// Every file operation immediately sees files written by a command.
pub async fn files_see_commands(t: &Env) -> CaseResult {
    t.run("mkdir -p a/b && printf 'needle\\n' > a/b/file")
        .await?;
    check_eq!(t.get("a/b/file").await?, b"needle\n")?;
    check_eq!(t.names("a").await?, ["b/"])?;
    check_eq!(t.glob("file").await?, ["a/b/file"])?;
    check_eq!(t.grep("needle").await?, ["a/b/file:1:needle"])?;
    t.run("rm -r a").await?;
    check!(t.names("").await?.is_empty())
}

/// A link that a command creates does not lead file operations outside.
pub async fn link_by_a_command_is_no_way_out(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    let made = Command::new("ln -s \"$OUT\" out && ln -s \"$OUT/secret\" file").env("OUT", outside);
    let outcome = t.sandbox()?.execute(made).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0))?;
    for path in ["out/secret", "file"] {
        let read = t.backend().read_bytes(path).await;
        t.fails(ErrorKind::PermissionDenied, read)?;
    }
    let written = t.backend().write_file("out/new", "x").await;
    t.fails(ErrorKind::PermissionDenied, written)?;
    t.fixture().check_outside().await
}

/// An exit code is an outcome, whatever its value.
pub async fn exit_code_is_a_result(t: &Env) -> CaseResult {
    for code in [0, 1, 2, 42, 126, 255] {
        let outcome = t.run(&format!("exit {code}")).await?;
        check_eq!(outcome.status, CommandStatus::Exited(code))?;
        check_eq!(outcome.status.success(), code == 0)?;
    }
    Ok(())
}

/// A missing program is exit code 127, and a file that cannot be run is 126.
pub async fn missing_program_is_127(t: &Env) -> CaseResult {
    let outcome = t.run("no-such-program-anywhere --flag").await?;
    check_eq!(outcome.status, CommandStatus::Exited(127))?;
    check!(!outcome.stderr.head.is_empty())?;
    t.put("file", "no program").await?;
    let outcome = t.run("./file").await?;
    check_eq!(outcome.status, CommandStatus::Exited(126))
}

/// Death by a signal is an outcome.
pub async fn signal_is_a_result(t: &Env) -> CaseResult {
    for (name, number) in [("KILL", 9), ("TERM", 15), ("USR1", 10)] {
        let outcome = t.run(&format!("echo before; kill -{name} $$")).await?;
        check_eq!(outcome.status, CommandStatus::Signalled(number))?;
        check_eq!(outcome.stdout.text(), "before\n")?;
    }
    Ok(())
}

/// Standard input is at its end, so a program that reads it does not wait.
pub async fn input_is_at_its_end(t: &Env) -> CaseResult {
    let outcome = t.run("cat; read line || echo end").await?;
    check_eq!(outcome.status, CommandStatus::Exited(0))?;
    check_eq!(outcome.stdout.text(), "end\n")
}

/// A command runs in the working directory, or in the one it is given.
pub async fn runs_in_its_directory(t: &Env) -> CaseResult {
    t.put("a directory/inner/file", "x").await?;
    t.run("echo here > made").await?;
    check_eq!(t.get("made").await?, b"here\n")?;
    for directory in ["a directory", "a directory/inner"] {
        let command = Command::new("echo there > made").directory(t.path(directory)?);
        t.sandbox()?.execute(command).await?;
        check_eq!(t.get(&format!("{directory}/made")).await?, b"there\n")?;
    }
    let command = Command::new("pwd; cd /; pwd -P > /dev/null").directory(t.path("a directory")?);
    let outcome = t.sandbox()?.execute(command).await?;
    let printed = outcome.stdout.text();
    check!(printed.ends_with("/a directory\n"), "{printed}")
}

/// A missing directory is an error. The command does not run elsewhere.
pub async fn directory_must_be_one(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    for (directory, kind) in [
        ("missing", ErrorKind::NotFound),
        ("missing/deeper", ErrorKind::NotFound),
        ("file", ErrorKind::NotADirectory),
        ("file/beneath", ErrorKind::NotADirectory),
    ] {
        let command = Command::new("echo ran > ran").directory(t.path(directory)?);
        t.fails(kind, t.sandbox()?.execute(command.clone()).await)?;
        let streamed = t.sandbox()?.stream(command.clone()).await;
        t.fails(kind, streamed.map(drop))?;
        t.fails(kind, t.sandbox()?.shell_start(command).await)?;
    }
    check_eq!(t.names("").await?, ["file"])
}

/// A command's directory may be a link that stays inside, but not one that leads
/// outside.
pub async fn directory_may_be_a_link_inside(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    t.put("real/inner/file", "x").await?;
    t.link("link", "real").await?;
    t.link("out", &outside).await?;
    let command = Command::new("echo x > made").directory(t.path("link/inner")?);
    t.sandbox()?.execute(command).await?;
    check_eq!(t.get("real/inner/made").await?, b"x\n")?;
    let command = Command::new("echo x > made").directory(t.path("out")?);
    let refused = t.sandbox()?.execute(command).await;
    t.fails(ErrorKind::PermissionDenied, refused)?;
    t.fixture().check_outside().await
}

/// Variables reach the command exactly as given. The last value of a name counts.
pub async fn variables_are_verbatim(t: &Env) -> CaseResult {
    let value = "two  blanks 'single' \"double\" $HOME `id` $(id) \\ \n\ttab é %s *";
    let command = Command::new("printf %s \"$VALUE\"")
        .env("VALUE", "overridden")
        .env("VALUE", value);
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.stdout.text(), value)?;
    let command = Command::new("printf '[%s]' \"${EMPTY-unset}\"").env("EMPTY", "");
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.stdout.text(), "[]")
}

/// A command's environment, directory and shell state do not carry over to the next
/// command.
pub async fn nothing_carries_over(t: &Env) -> CaseResult {
    t.put("directory/file", "x").await?;
    let first = "export EXPORTED=1; cd directory; alias cat=false; umask 0777; f() { :; }";
    let command = Command::new(first).env("GIVEN", "1");
    check!(t.sandbox()?.execute(command).await?.status.success())?;
    let outcome = t
        .run("printf '[%s%s]' \"$EXPORTED\" \"$GIVEN\"; cat directory/file; f 2>/dev/null")
        .await?;
    check_eq!(outcome.stdout.text(), "[]x")?;
    check_eq!(outcome.status, CommandStatus::Exited(127))
}

/// A command line is interpreted by the shell only.
pub async fn quoting_is_the_shells(t: &Env) -> CaseResult {
    t.put_all(&["a b", "c*d"]).await?;
    for (line, printed) in [
        ("printf '<%s>' 'a b' \"c d\" e\\ f", "<a b><c d><e f>"),
        ("printf '<%s>' *", "<a b><c*d>"),
        ("printf '<%s>' '*' \"it's\"", "<*><it's>"),
        (
            "x=1; printf '<%s>' \"$x\" '$x' \"$((x + 1))\"",
            "<1><$x><2>",
        ),
        (
            "printf 'one\\n' | tr a-z A-Z && echo two || echo three",
            "ONE\ntwo\n",
        ),
        ("cat <<'END'\n$literal `text`\nEND", "$literal `text`\n"),
        ("# nothing\n\necho line\n\n", "line\n"),
        ("printf é", "é"),
    ] {
        let outcome = t.run(line).await?;
        check_eq!((line, outcome.stdout.text().as_str()), (line, printed))?;
    }
    Ok(())
}

/// A command line that begins like an option is still a command line.
pub async fn line_like_an_option_is_a_line(t: &Env) -> CaseResult {
    for line in ["-n", "-c", "--", "-", "--help", "-x -c 'echo ran'", "+e"] {
        let outcome = t.run(&format!("{line} 2>/dev/null\necho \"$?\"")).await?;
        check_eq!((line, outcome.stdout.text().as_str()), (line, "127\n"))?;
        check_eq!(outcome.status, CommandStatus::Exited(0))?;
    }
    Ok(())
}

/// A command's signals have their default dispositions: a broken pipe ends its writer,
/// a child's exit is noticed, nothing is blocked.
pub async fn signals_are_not_held_back(t: &Env) -> CaseResult {
    let outcome = t.run("yes | head -n 1; echo second").await?;
    check_eq!(outcome.stdout.text(), "y\nsecond\n")?;
    check_eq!(outcome.stderr.text(), "")?;
    let line = "sh -c 'kill -TERM $$'; echo $?; sh -c 'kill -PIPE $$'; echo $?; \
                trap 'echo caught' USR1; kill -USR1 $$; (exit 3) & wait $!; echo $?";
    let command = Command::new(line).timeout(Duration::from_secs(20));
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.stdout.text(), "143\n141\ncaught\n3\n")?;
    check_eq!(outcome.status, CommandStatus::Exited(0))
}

/// An empty command line succeeds.
pub async fn empty_line_succeeds(t: &Env) -> CaseResult {
    for line in ["", "  ", "\n", "# only a comment"] {
        let outcome = t.run(line).await?;
        check_eq!(outcome.status, CommandStatus::Exited(0))?;
        check!(outcome.stdout.head.is_empty() && outcome.stderr.head.is_empty())?;
    }
    Ok(())
}

/// An invalid command is rejected before anything runs.
pub async fn nonsense_is_invalid(t: &Env) -> CaseResult {
    for command in nonsense() {
        let kind = ErrorKind::InvalidInput;
        t.fails(kind, t.sandbox()?.execute(command.clone()).await)?;
        let streamed = t.sandbox()?.stream(command.clone()).await;
        t.fails(kind, streamed.map(drop))?;
        t.fails(kind, t.sandbox()?.shell_start(command).await)?;
    }
    check!(t.sandbox()?.shell_list().await?.is_empty())
}

/// The longest command line runs.
pub async fn longest_line_runs(t: &Env) -> CaseResult {
    let line = format!("echo ran; : {}", "x".repeat(COMMAND_BYTES));
    let outcome = t.run(&line[..COMMAND_BYTES]).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0))?;
    check_eq!(outcome.stdout.text(), "ran\n")
}

/// A command runs to completion without a time limit, or with one that it does not
/// reach.
pub async fn time_limit_is_only_a_limit(t: &Env) -> CaseResult {
    for timeout in [None, Some(Duration::from_secs(50)), Some(Duration::MAX)] {
        let command = Command::new("sleep 0.1; echo done").timeout(timeout);
        let outcome = t.sandbox()?.execute(command).await?;
        check_eq!(outcome.status, CommandStatus::Exited(0))?;
        check_eq!(outcome.stdout.text(), "done\n")?;
        check!(outcome.duration >= Duration::from_millis(100))?;
    }
    Ok(())
}

/// Many commands run concurrently, and each gets its own outcome.
pub async fn many_at_once(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let commands = (0..64).map(|number| {
        let line = format!("echo out {number}; echo err {number} >&2; exit {number}");
        sandbox.execute(Command::new(line))
    });
    for (number, outcome) in join_all(commands).await.into_iter().enumerate() {
        let outcome = outcome?;
        let code = i32::try_from(number).unwrap_or(-1);
        check_eq!(outcome.status, CommandStatus::Exited(code))?;
        check_eq!(outcome.stdout.text(), format!("out {number}\n"))?;
        check_eq!(outcome.stderr.text(), format!("err {number}\n"))?;
    }
    Ok(())
}
