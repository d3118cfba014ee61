//! The limits of views. Each test shows one row of the table in
//! docs/confinement.md, and until when it is so.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use backend_core::Backend as _;
use backend_core::ErrorKind::PermissionDenied;
use backend_core::Sandbox as _;
use backend_core::ops::{Command, HardLinks, View, WriteOptions};
use backend_core::search::Exclude;
use backend_testkit::{fails, path};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::mpsc;

use crate::support::views::*;

#[tokio::test]
async fn what_others_replace_is_read_until_the_next_command() {
    let Some(place) = Place::viewed() else { return };
    let shell = Shell::start(&place, None).await;
    assert!(!shell.says("cat .env").await.contains(SECRET));
    put(&place.outside("b"), SECRET);
    fs::rename(place.outside("b"), place.inside.join(".env")).unwrap();
    put(&place.inside.join("later/x.pem"), SECRET);
    assert!(shell.says("cat .env").await.contains(SECRET));
    assert!(shell.says("cat later/x.pem").await.contains(SECRET));
    assert!(place.run("true").await.status.success());
    let said = shell.says("cat .env later/x.pem").await;
    assert_eq!(said.matches("Permission denied").count(), 2, "{said}");
}

#[tokio::test]
async fn what_is_being_written_has_another_name() {
    let Some(place) = Place::viewed() else { return };
    let shell = Shell::start(&place, None).await;
    let (send, pieces) = mpsc::unbounded::<backend_core::Result<Bytes>>();
    let first = format!("{SECRET}{}", " ".repeat(1_000_000));
    send.unbounded_send(Ok(first.into())).unwrap();
    let name = path("/.env");
    let content = backend_core::ops::Content::Stream(pieces.boxed());
    let write = place.backend.write(&name, content, WriteOptions::default());
    let look = async {
        // Until the first piece is on the disk.
        while !shell.says("cat .agentbox-tmp-*").await.contains(SECRET) {}
        drop(send);
    };
    let (written, ()) = tokio::join!(write, look);
    written.unwrap();
    let said = shell.says("cat .env").await;
    assert!(said.contains("Permission denied"), "{said}");
}

#[tokio::test]
async fn a_shell_from_before_the_rule_reads_on() {
    let Some(place) = Place::viewed() else { return };
    let none = View::new(hide(&["/nothing"]), Exclude::none());
    let early = Shell::start_with(&place, none, None).await;
    assert!(place.run("true").await.status.success());
    assert!(early.says("cat .env").await.contains(SECRET));
}

#[tokio::test]
async fn what_was_open_before_it_was_denied_stays_open() {
    let Some(place) = Place::viewed() else { return };
    let shell = Shell::start(&place, None).await;
    put(&place.inside.join("later/.env"), SECRET);
    assert_eq!(shell.says("exec 5< later/.env").await, "end1\n");
    assert!(place.run("true").await.status.success());
    let said = shell.says("cat later/.env").await;
    assert!(said.contains("Permission denied"), "{said}");
    assert!(shell.says("cat <&5").await.contains(SECRET));
}

#[tokio::test]
async fn a_copy_is_another_file() {
    let Some(place) = Place::viewed() else { return };
    fs::copy(place.inside.join(".env"), place.inside.join("copy")).unwrap();
    assert_eq!(place.says("cat copy").await, SECRET);
}

#[tokio::test]
async fn the_objects_of_git_hold_the_content() {
    let Some(place) = Place::viewed() else { return };
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        let done = command.args(arguments).current_dir(&place.inside).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    fs::remove_dir_all(place.inside.join(".git")).unwrap();
    git(&["init", "-q"]);
    git(&["add", "-f", ".env"]);
    let said = place.says("cat .env; git cat-file -p :.env").await;
    assert!(said.contains("Permission denied"), "{said}");
    assert!(said.contains(SECRET), "{said}");
    // The objects can be denied.
    let view = View::new(hide(&[".env", "/.git/objects"]), Exclude::none());
    let command = Command::new("git cat-file -p :.env").view(view);
    let outcome = place.backend.execute(command).await.unwrap();
    assert!(!outcome.stdout.text().contains(SECRET), "{outcome:?}");
}

#[tokio::test]
async fn a_hard_link_from_outside_is_read_until_the_next_command() {
    let Some(place) = Place::viewed() else { return };
    let shell = Shell::start(&place, None).await;
    fs::hard_link(place.inside.join(".env"), place.inside.join("other")).unwrap();
    assert!(shell.says("cat other").await.contains(SECRET));
    let command = || Command::new("true").view(rules());
    fails(PermissionDenied, place.backend.execute(command()).await);
    // If that is accepted, it stays so.
    let view = rules().hard_links(HardLinks::Accept);
    let command = Command::new("cat other").view(view);
    let outcome = place.backend.execute(command).await.unwrap();
    assert_eq!(outcome.stdout.text(), SECRET);
}

#[tokio::test]
async fn another_name_of_a_file_in_a_read_only_directory_is_written() {
    let Some(place) = Place::viewed() else { return };
    fs::hard_link(place.inside.join("fixed/file"), place.inside.join("other")).unwrap();
    // Where nothing in it may be denied for reading, the files in it are not looked at.
    let view = View::new(Exclude::none(), hide(&["/fixed"]));
    let line = "echo x > fixed/file; echo changed > other";
    let outcome = place.backend.execute(Command::new(line).view(view));
    let said = outcome.await.unwrap().stderr.text();
    assert!(said.contains("Read-only"), "{said}");
    let changed = fs::read_to_string(place.inside.join("fixed/file")).unwrap();
    assert_eq!(changed, "changed\n");
}

#[tokio::test]
async fn names_and_sizes_are_told() {
    let Some(place) = Place::viewed() else { return };
    let said = place.says("ls -A a/b; grep -o '[^ ]*/conf/only.txt' /proc/self/mountinfo");
    let said = said.await;
    assert!(
        said.contains("x.pem") && said.contains("/conf/only.txt"),
        "{said}"
    );
    // Not of what is in a directory that is denied as a whole.
    let said = place.says("ls secrets; stat secrets/key").await;
    assert!(!said.contains("Size:"), "{said}");
}

#[tokio::test]
async fn the_creator_of_a_denied_name_reads_it() {
    let Some(place) = Place::viewed() else { return };
    let made = "mkdir new && echo own > new/.env && cat new/.env";
    assert_eq!(place.says(made).await, "own\n");
    let said = place.says("cat new/.env").await;
    assert!(said.contains("Permission denied"), "{said}");
}

#[tokio::test]
async fn a_directory_above_that_came_later_can_be_renamed() {
    let Some(place) = Place::viewed() else { return };
    let view = || View::new(hide(&["/later/only.txt"]), Exclude::none());
    let shell = Shell::start_with(&place, view(), None).await;
    let (name, content) = (path("/later/only.txt"), Bytes::from(SECRET));
    let written = place
        .backend
        .write(&name, content.into(), WriteOptions::default());
    written.await.unwrap();
    let said = shell
        .says("cat later/only.txt; mv later moved; cat moved/only.txt")
        .await;
    assert!(!said.contains(SECRET), "{said}");
    // The rule does not say anything about the other path.
    let command = Command::new("cat moved/only.txt").view(view());
    let outcome = place.backend.execute(command).await.unwrap();
    assert_eq!(outcome.stdout.text(), "", "{outcome:?}");
    drop(shell);
    place
        .backend
        .stop(backend_core::ops::StopMode::Keep)
        .await
        .unwrap();
    let command = Command::new("cat moved/only.txt").view(view());
    let outcome = place.backend.execute(command).await.unwrap();
    assert_eq!(outcome.stdout.text(), SECRET, "{outcome:?}");
}

#[tokio::test]
async fn a_link_out_of_the_directories_leads_to_what_is_allowed() {
    let Some(place) = Place::viewed() else { return };
    put(&place.tools.join("secret"), SECRET);
    symlink(place.tools.join("secret"), place.inside.join("out.pem")).unwrap();
    assert_eq!(place.says("cat out.pem").await, SECRET);
    put(&place.outside("secret"), SECRET);
    symlink(place.outside("secret"), place.inside.join("far.pem")).unwrap();
    let said = place.says("cat far.pem").await;
    assert!(said.contains("Permission denied"), "{said}");
}

#[tokio::test]
async fn a_repository_can_be_made_to_name_another_configuration() {
    let Some(place) = Place::viewed() else { return };
    let made = "echo ../other > .git/commondir && mkdir -p sub/.git && echo x > sub/.git/config";
    assert_eq!(place.says(made).await, "");
    // As a file, it is kept.
    fs::remove_dir_all(place.inside.join(".git")).unwrap();
    fs::write(place.inside.join(".git"), "gitdir: elsewhere").unwrap();
    let said = place
        .says("echo gitdir: evil > .git; mv .git old; rm .git")
        .await;
    assert!(
        said.contains("Read-only") && said.contains("busy"),
        "{said}"
    );
}

#[tokio::test]
async fn a_name_in_another_encoding_is_another_name() {
    let Some(place) = Place::viewed() else { return };
    put(&place.inside.join("clé.key"), SECRET);
    let latin = std::ffi::OsStr::from_bytes(b"cl\xe9.key");
    fs::write(place.inside.join(latin), "other secret").unwrap();
    let view = View::new(hide(&["clé.key"]), Exclude::none());
    let outcome = place.backend.execute(Command::new("cat cl*").view(view));
    let outcome = outcome.await.unwrap();
    assert_eq!(outcome.stdout.text(), "other secret");
    assert!(outcome.stderr.text().contains("Permission denied"));
    let view = View::new(hide(&["cl*.key"]), Exclude::none());
    let outcome = place.backend.execute(Command::new("cat cl*").view(view));
    assert_eq!(outcome.await.unwrap().stdout.text(), "");
}

/// The same directory, mounted at another place to which commands have access. The run
/// again is in a namespace in which this test may mount.
#[tokio::test]
async fn another_mount_of_the_directory_is_another_path() {
    if backend_testkit::processes::mounts_refused().is_some() {
        println!("skipped: the system refuses mounts");
        return;
    }
    if !is_again() {
        let mut by = std::process::Command::new("unshare");
        if !rustix::process::getuid().is_root() {
            by.args(["--user", "--map-root-user"]);
        }
        by.arg("--mount").arg(std::env::current_exe().unwrap());
        run_again(
            by,
            "limits_of_views::another_mount_of_the_directory_is_another_path",
        );
        return;
    }
    let Some(place) = Place::viewed() else { return };
    let again = place.tools.join("again");
    fs::create_dir(&again).unwrap();
    let mut mount = std::process::Command::new("mount");
    mount.arg("--bind").arg(&place.inside).arg(&again);
    assert!(mount.status().unwrap().success());
    // Views are made from the mounts that there were.
    let mut place = place;
    place.reopen();
    let said = place
        .says(&format!("cat .env; cat {}/.env", again.display()))
        .await;
    assert!(
        said.contains("Permission denied") && said.contains(SECRET),
        "{said}"
    );
}
