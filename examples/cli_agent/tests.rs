//! The agent on a directory, with a scripted model and scripted answers.

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use backend_local::{Commands, Supervisor};
use clap::Parser as _;
use examples::chat::Server;

use crate::screen::Screen;
use crate::{Args, Script, json, run};

/// Collects what is printed.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Runs the program with these answers. Returns its output, and its progress line.
async fn tried(arguments: &[&str], answers: &str) -> Result<(String, String), String> {
    let args = Args::try_parse_from([&["cli_agent"], arguments].concat());
    let args = args.map_err(|error| error.to_string())?;
    let (output, progress) = (Paper::default(), Paper::default());
    let screen = Screen::new(
        Cursor::new(answers.to_owned()),
        output.clone(),
        Some(Box::new(progress.clone())),
    );
    // This program has no supervisor: its main function is that of the tests.
    let commands = Commands::new().supervisor(Supervisor::None);
    let ran = run(args, commands, screen).await;
    ran.map_err(|error| error.to_string())?;
    Ok((output.text(), progress.text()))
}

async fn output(arguments: &[&str], answers: &str) -> String {
    tried(arguments, answers).await.unwrap().0
}

fn git(dir: &Path, arguments: &[&str]) -> String {
    let run = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t"])
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap())
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap()
}

#[tokio::test]
async fn it_works_once_the_user_agrees() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let (shown, progress) = tried(&["--dir", at], "perhaps\ny\ny\n").await.unwrap();
    assert!(
        shown.starts_with("This is a script, not a model"),
        "{shown}"
    );
    assert!(shown.contains("changes cannot be undone"), "{shown}");
    assert!(shown.contains("+for n in 1 2 3"), "the diff: {shown}");
    assert_eq!(shown.matches("Allow it?").count(), 3, "{shown}");
    assert!(
        shown.ends_with(" 1\n2\n3\nIt counts to three.\n"),
        "{shown}"
    );
    assert!(dir.path().join("count.sh").exists());
    assert!(
        progress.contains("\r\x1b[K... waiting for execute"),
        "{progress:?}"
    );
}

#[tokio::test]
async fn no_is_no_and_so_is_the_end_of_the_input() {
    for (answers, note) in [("n\n", "the user said no"), ("", "not there to approve it")] {
        let dir = tempfile::tempdir().unwrap();
        let shown = output(&["--dir", dir.path().to_str().unwrap()], answers).await;
        assert!(shown.contains(note), "{shown}");
        assert!(
            shown.contains("Then I leave everything as it is."),
            "{shown}"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

/// Runs the program with a model of its own.
async fn with_model(script: Script, arguments: &[&str], answers: &str) -> String {
    let server = Server::play(script).await.unwrap();
    let url = server.endpoint().base_url;
    let model = ["--base-url", &url, "--model", "any", "--task", "go"];
    output(&[&model, arguments].concat(), answers).await
}

#[tokio::test]
async fn always_covers_one_kind_of_access_and_no_rule() {
    let write = |path: &str| json!({"path": path, "content": "x\n"});
    let script = Script::new()
        .calls("write_file", write("a"))
        .calls("write_file", write("b"))
        .calls("write_file", write(".git/hooks/pre-commit"))
        .calls("write_file", write(".env"))
        .calls("execute", json!({"command": "echo ran > c"}))
        .says("Done.");
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let shown = with_model(script, &["--dir", at], "a\nn\nn\n").await;
    assert_eq!(shown.matches("Allow it?").count(), 3, "{shown}");
    let exists = ["a", "b", ".git", ".env", "c"].map(|name| dir.path().join(name).exists());
    assert_eq!(exists, [true, true, false, false, false], "{shown}");
}

#[tokio::test]
async fn nothing_leads_out_of_the_directory_or_controls_the_terminal() {
    let script = Script::new()
        .says("\x1b]0;owned\x07")
        .calls("read_file", json!({"path": "../secret"}))
        .calls("grep", json!({"pattern": "needle"}))
        .calls("execute", json!({"command": "cat ../secret"}))
        .says("Done.");
    let above = tempfile::tempdir().unwrap();
    fs::write(above.path().join("secret"), "hunter2").unwrap();
    let dir = above.path().join("project");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join(".hidden"), "needle\n").unwrap();
    let at = dir.to_str().unwrap();
    let arguments = ["--dir", at, "--no-execute", "--include-hidden"];
    let shown = with_model(script, &arguments, "").await;
    assert!(
        !shown.contains("hunter2") && !shown.contains('\x1b'),
        "{shown}"
    );
    assert!(shown.contains("'execute' is not offered here"), "{shown}");
    assert!(shown.contains("\n  .hidden\n"), "{shown}");
}

#[tokio::test]
async fn undo_brings_back_the_work_tree_and_only_that() {
    let (repository, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (dir, store) = (repository.path(), store.path().to_str().unwrap());
    git(dir, &["init", "-q", "-b", "main"]);
    fs::write(dir.join(".gitignore"), "built\n").unwrap();
    fs::write(dir.join("tracked"), "1\n").unwrap();
    git(dir, &["add", "."]);
    git(dir, &["commit", "-qm", "one"]);
    fs::write(dir.join("tracked"), "2\n").unwrap();
    git(dir, &["add", "tracked"]);
    fs::write(dir.join("tracked"), "3\n").unwrap();
    fs::write(dir.join("untracked"), "u\n").unwrap();
    fs::write(dir.join("built"), "b\n").unwrap();
    let own = |dir: &Path| {
        [
            "status --porcelain=v2",
            "log --format=%H HEAD",
            "diff --cached",
        ]
        .map(|line| git(dir, &line.split(' ').collect::<Vec<_>>()))
    };
    let before = own(dir);

    let script = Script::new()
        .calls(
            "write_file",
            json!({"path": "tracked", "content": "agent\n"}),
        )
        .calls(
            "write_file",
            json!({"path": "new/file", "content": "agent\n"}),
        )
        .calls("delete_file", json!({"path": "untracked"}))
        .says("Done.");
    let at = ["--dir", dir.to_str().unwrap(), "--undo-store", store];
    let shown = with_model(script, &at, "y\ny\ny\n").await;
    assert!(shown.contains("To undo all of it: --undo"), "{shown}");
    let read = |name: &str| fs::read_to_string(dir.join(name)).ok();
    let files = || ["tracked", "new/file", "untracked", "built"].map(read);
    let text = |text: &str| Some(text.to_owned());
    let by_agent = [text("agent\n"), text("agent\n"), None, text("b\n")];
    assert_eq!(files(), by_agent, "{shown}");

    // The agent may name programs in the settings of the repository; none of them runs.
    git(dir, &["config", "filter.f.clean", "touch ran"]);
    git(dir, &["config", "filter.f.smudge", "touch ran"]);
    git(dir, &["config", "diff.external", "touch ran"]);
    fs::write(dir.join(".git/info/attributes"), "* filter=f\n").unwrap();
    let undo = [&["--undo"], &at[..]].concat();
    let undone = output(&undo, "").await;
    assert!(!dir.join("ran").exists());
    fs::remove_file(dir.join(".git/info/attributes")).unwrap();
    git(dir, &["config", "--unset", "diff.external"]);
    assert!(undone.starts_with("Undone: 3 files changed"), "{undone}");
    assert_eq!(files(), [text("3\n"), None, text("u\n"), text("b\n")]);
    assert_eq!(own(dir), before, "the index and the branch are the user's");

    output(&undo, "").await;
    assert_eq!(files(), by_agent, "an undo can be undone");
}

#[tokio::test]
async fn undo_needs_something_to_undo() {
    let (dir, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = |dir: &tempfile::TempDir| dir.path().to_str().unwrap().to_owned();
    let (at, store) = (path(&dir), path(&store));
    let at = ["--dir", &at, "--undo-store", &store];
    let undo = [&["--undo"], &at[..]].concat();
    let error = tried(&undo, "").await.unwrap_err();
    assert!(error.contains("no git work tree"), "{error}");
    git(dir.path(), &["init", "-q"]);
    let error = tried(&undo, "").await.unwrap_err();
    assert!(error.contains("nothing to undo"), "{error}");
    // A repository without a commit can be kept too.
    output(&at, "y\nn\n").await;
    output(&undo, "").await;
    assert!(!dir.path().join("count.sh").exists());
    let inside = path(&dir) + "/kept";
    let error = tried(&["--dir", at[1], "--undo-store", &inside], "").await;
    assert!(error.unwrap_err().contains("--undo-store"));
}

#[tokio::test]
async fn what_cannot_be_restricted_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    // Without a supervisor nothing can be confined.
    let error = tried(&["--restrict", "--dir", at], "y\ny\n")
        .await
        .unwrap_err();
    assert!(error.contains("supervisor"), "{error}");
    assert!(!dir.path().join("count.sh").exists());
}

#[test]
fn a_model_needs_its_name_and_a_task() {
    let parse = |line: &str| Args::try_parse_from(line.split(' ')).map(|_| ());
    assert!(parse("cli_agent --task x").is_ok());
    assert!(parse("cli_agent --model m --task x").is_err());
    assert!(parse("cli_agent --base-url u --model m --dir .").is_err());
    assert!(parse("cli_agent --undo").is_err());
}
