//! Paths that are kept from a command.

use std::time::Duration;

use backend_core::ErrorKind;
use backend_core::ops::{Command, Event, ExecuteOutcome, View};
use backend_core::search::{Exclude, ExcludeRule};
use backend_core::{BackendExt as _, Enforcement};
use futures::StreamExt as _;

use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

/// Time for a shell to print something.
const LONG: Duration = Duration::from_secs(50);

const LEVELS: [Enforcement; 3] = [Enforcement::Words, Enforcement::Landlock, Enforcement::View];

/// Returns the filter for these paths beneath the working directory.
fn hiding(t: &Env, rules: &[(&str, bool)]) -> Result<Exclude, Failure> {
    let mut layer = Vec::new();
    for (path, hide) in rules {
        let path = t.path(path)?;
        layer.push(if *hide {
            ExcludeRule::hide(path.as_str())
        } else {
            ExcludeRule::keep(path.as_str())
        });
    }
    Exclude::from_layers(vec![layer]).map_err(|error| Failure::new(error.to_string()))
}

/// Returns a command from which this path is kept, so that it can neither be read nor
/// changed.
fn kept(t: &Env, line: &str, path: &str) -> Result<Command, Failure> {
    let view = View::new(hiding(t, &[(path, true)])?, Exclude::none());
    Ok(Command::new(line).view(view.required(Enforcement::View)))
}

async fn run(t: &Env, command: Command) -> Result<ExecuteOutcome, Failure> {
    Ok(t.sandbox()?.execute(command).await?)
}

/// A command that requires a level the sandbox does not have is refused, however it is
/// run, and nothing of it happens.
pub async fn higher_level_than_there_is_is_refused(t: &Env) -> CaseResult {
    let level = t.backend().info().enforcement;
    for required in LEVELS.into_iter().filter(|required| *required > level) {
        let command = || Command::new("echo ran > ran").view(View::default().required(required));
        let sandbox = t.sandbox()?;
        let denied = ErrorKind::PermissionDenied;
        let told = sandbox
            .execute(command())
            .await
            .map_err(|error| error.to_string());
        let names_both =
            |text: &String| text.contains(required.as_str()) && text.contains(level.as_str());
        check!(told.as_ref().is_err_and(names_both), "{told:?}")?;
        t.fails(denied, sandbox.execute(command()).await)?;
        t.fails(denied, sandbox.stream(command()).await.map(drop))?;
        t.fails(denied, sandbox.shell_start(command()).await)?;
    }
    check!(!t.backend().exists("ran").await?)
}

/// A command that requires no more than the sandbox has is run.
pub async fn allowed_level_runs(t: &Env) -> CaseResult {
    let level = t.backend().info().enforcement;
    for required in LEVELS.into_iter().filter(|required| *required <= level) {
        let command = Command::new("echo ran").view(View::default().required(required));
        check_eq!(run(t, command).await?.stdout.text(), "ran\n")?;
    }
    Ok(())
}

/// Whatever the program and the spelling, the content of a denied file is out of reach.
pub async fn denied_file_is_not_read(t: &Env) -> CaseResult {
    t.put("secret", "never shown\n").await?;
    t.put("other", "shown\n").await?;
    for line in [
        "cat secret",
        "cat ./se*",
        "a=sec; cat \"${a}ret\"",
        "while read -r line; do echo \"$line\"; done < secret",
        "ln secret second; cat second",
        "ln -s secret link; cat link",
        "cp secret copied; cat copied",
        "mv secret moved; cat moved",
        "cat /proc/self/cwd/secret",
        "chmod 777 secret; rm -f secret; cat secret",
        "tar cf - secret | tar xOf -",
    ] {
        let outcome = run(t, kept(t, line, "secret")?).await?;
        let shown = outcome.stdout.text();
        check!(!shown.contains("never shown"), "{line}: {shown}")?;
    }
    check_eq!(t.get("secret").await?, b"never shown\n")?;
    let outcome = run(t, kept(t, "cat other", "secret")?).await?;
    check_eq!(outcome.stdout.text(), "shown\n")
}

/// Nothing in a denied directory can be read, changed or created.
pub async fn denied_directory_is_not_entered(t: &Env) -> CaseResult {
    t.put("vault/deep/key", "never shown\n").await?;
    for line in [
        "cat vault/deep/key",
        "cd vault/deep && cat key",
        "find . -type f | xargs cat",
        "mv vault elsewhere; cat elsewhere/deep/key",
        "echo new > vault/new",
        "rm -rf vault",
    ] {
        let outcome = run(t, kept(t, line, "vault")?).await?;
        let shown = outcome.stdout.text();
        check!(!shown.contains("never shown"), "{line}: {shown}")?;
    }
    check_eq!(t.get("vault/deep/key").await?, b"never shown\n")?;
    check!(!t.backend().exists("vault/new").await?)
}

/// Of ordered rules the first decides, so what an exception keeps can be read.
pub async fn exceptions_are_kept(t: &Env) -> CaseResult {
    t.put("vault/key", "never shown\n").await?;
    t.put("vault/public/a", "shown\n").await?;
    let rules = [("vault/public", false), ("vault", true)];
    let view = View::new(hiding(t, &rules)?, Exclude::none()).required(Enforcement::View);
    let read = Command::new("cat vault/public/a vault/key").view(view);
    let outcome = run(t, read).await?;
    check!(!outcome.status.success())?;
    check_eq!(outcome.stdout.text(), "shown\n")
}

/// A path that may not be changed can be read, and stays as it is.
pub async fn denied_change_is_refused(t: &Env) -> CaseResult {
    t.put("rules", "kept\n").await?;
    t.put("docs/a", "kept\n").await?;
    let view = View::new(
        Exclude::none(),
        hiding(t, &[("rules", true), ("docs", true)])?,
    );
    let view = view.required(Enforcement::View);
    for line in [
        "echo changed > rules",
        "echo more >> rules",
        "rm -f rules",
        "mv rules moved",
        "echo changed > new && mv -f new rules",
        "chmod 777 rules; echo changed > rules",
        "echo changed > docs/a",
        "echo new > docs/new",
        "rm -rf docs",
    ] {
        let outcome = run(t, Command::new(line).view(view.clone())).await?;
        check!(!outcome.status.success(), "{line} succeeded")?;
        check_eq!(t.get("rules").await?, b"kept\n")?;
        check_eq!(t.names("docs").await?, ["a"])?;
    }
    let outcome = run(t, Command::new("cat rules docs/a").view(view)).await?;
    check_eq!(outcome.stdout.text(), "kept\nkept\n")
}

/// Everything else is read, changed and created as without a view.
pub async fn other_files_are_as_before(t: &Env) -> CaseResult {
    t.put("secret", "never shown\n").await?;
    t.put("a/b", "old\n").await?;
    let line = "cat a/b; echo new > a/b; mkdir -p c/d; mv a/b c/d/e; echo x > a/f; rm a/f; pwd";
    let outcome = run(t, kept(t, line, "secret")?).await?;
    check!(outcome.status.success(), "{}", outcome.stderr.text())?;
    check!(outcome.stdout.text().starts_with("old\n"))?;
    check_eq!(t.get("c/d/e").await?, b"new\n")?;
    check_eq!(t.names("a").await?, Vec::<String>::new())
}

/// Streams and background shells are kept from the same paths.
pub async fn shells_have_it_too(t: &Env) -> CaseResult {
    t.put("secret", "never shown\n").await?;
    let line = "cat secret; echo end";
    let mut events = t.sandbox()?.stream(kept(t, line, "secret")?).await?;
    let mut shown = Vec::new();
    while let Some(event) = events.next().await {
        if let Event::Stdout(piece) = event? {
            shown.extend_from_slice(&piece);
        }
    }
    check_eq!(String::from_utf8_lossy(&shown), "end\n")?;
    let shell = t.sandbox()?.shell_start(kept(t, line, "secret")?).await?;
    let mut shown = Vec::new();
    while !shown.ends_with(b"end\n") {
        let read = t.sandbox()?.shell_read(&shell.id, LONG).await?;
        let is_silent = read.stdout.is_empty() && read.stderr.is_empty();
        check!(!is_silent, "it printed {shown:?}")?;
        shown.extend_from_slice(&read.stdout);
    }
    check_eq!(String::from_utf8_lossy(&shown), "end\n")
}

/// A view is that of one command: others, at the same time and later, have their own.
pub async fn commands_do_not_share_it(t: &Env) -> CaseResult {
    t.put("one", "1\n").await?;
    t.put("two", "2\n").await?;
    let line = "cat one two";
    let (first, second) =
        futures::join!(run(t, kept(t, line, "one")?), run(t, kept(t, line, "two")?));
    check_eq!(first?.stdout.text(), "2\n")?;
    check_eq!(second?.stdout.text(), "1\n")?;
    check_eq!(t.run(line).await?.stdout.text(), "1\n2\n")
}
