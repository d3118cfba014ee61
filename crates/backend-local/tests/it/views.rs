//! Views through the contract: what a policy denies is kept from commands by the kernel,
//! and everything else is as without one. Needs Linux 6.12 or newer, and a system that
//! lets its users enter user namespaces.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use backend_core::ErrorKind::{PermissionDenied, TooLarge};
use backend_core::ops::{
    Command, CopyOptions, DeleteOptions, EditOptions, HardLinks, RenameOptions, StopMode,
    TerminalSize, View, WriteOptions,
};
use backend_core::search::{Exclude, ExcludeRule};
use backend_core::{Backend, Edit, Enforcement, Error, Sandbox};
use backend_local::{Commands, Confinement, Landlock, LocalBackend, Supervisor};
use backend_testkit::{fails, path};
use bytes::Bytes;

use crate::support::views::*;

/// Runs a line in a view that denies reading these, and returns what it prints.
async fn in_view(place: &Place, patterns: &[&str], line: &str) -> String {
    let view = View::new(hide(patterns), Exclude::none());
    let outcome = place
        .backend
        .execute(Command::new(line).view(view))
        .await
        .unwrap();
    outcome.stdout.text() + &outcome.stderr.text()
}

#[tokio::test]
async fn what_is_denied_is_refused_and_the_rest_is_as_before() {
    let Some(place) = Place::viewed() else { return };
    for name in DENIED {
        let said = place.says(&format!("cat {name}")).await;
        assert!(said.contains("Permission denied"), "{name}: {said}");
    }
    for (line, why) in [
        ("echo x > .env", "Read-only file system"),
        ("rm .env", "busy"),
        ("ls secrets", "Permission denied"),
        ("echo x > fixed/file", "Read-only file system"),
        ("echo x > fixed/new", "Read-only file system"),
        ("rm fixed/file", "Read-only file system"),
        ("echo x > conf/fixed.txt", "Read-only file system"),
        ("echo x > .git/config", "Read-only file system"),
        ("echo x > .git/hooks/post-checkout", "Read-only file system"),
        ("mv .git old", "busy"),
        ("mv conf old", "busy"),
    ] {
        let said = place.says(line).await;
        assert!(said.contains(why), "{line}: {said}");
    }
    for line in [
        "test $(cat open.txt fixed/file conf/fixed.txt a/b/open.txt) = openopenopenopen",
        "echo x > new && mkdir d && mv new d/ && rm -r d && ls -A > /dev/null",
        "mv a other && test $(cat other/b/open.txt) = open && mv other a",
        "f=$(mktemp) && echo x > $f && rm $f",
        "cd sub/dir && test $(pwd) = $OLDPWD/sub/dir && touch here && rm here",
        "test $(id -u) = $(stat -c %u open.txt)",
        "cat .git/config .git/hooks/pre-commit > /dev/null",
    ] {
        let outcome = place.run(line).await;
        assert!(outcome.status.success(), "{line}: {outcome:?}");
    }
    // Commands without a view are as before, and so is the disk.
    let plain = Command::new("cat .env");
    let outcome = place.backend.execute(plain).await.unwrap();
    assert_eq!(outcome.stdout.text(), SECRET);
    assert_eq!(
        fs::read_to_string(place.inside.join("secrets/key")).unwrap(),
        SECRET
    );
}

#[tokio::test]
async fn rules_mean_what_they_mean_for_file_tools() {
    let Some(place) = Place::viewed() else { return };
    let layer = vec![
        ExcludeRule::keep("/secrets/more"),
        ExcludeRule::hide("/secrets"),
    ];
    let view = View::new(Exclude::from_layers(vec![layer]).unwrap(), Exclude::none());
    let outcome = place
        .backend
        .execute(Command::new("cat secrets/more/key secrets/key").view(view));
    let outcome = outcome.await.unwrap();
    assert_eq!(outcome.stdout.text(), SECRET, "{outcome:?}");
    assert!(
        outcome
            .stderr
            .text()
            .contains("secrets/key: Permission denied"),
        "{outcome:?}"
    );
    // What a denied link leads to is denied.
    let said = in_view(&place, &["/absolute"], "cat absolute; cat a/b/x.pem").await;
    assert_eq!(said.matches("Permission denied").count(), 2, "{said}");
    // A denied directory is none to run in.
    let view = View::new(hide(&["/a"]), Exclude::none());
    let command = Command::new("pwd").directory(path("/a/b")).view(view);
    fails(PermissionDenied, place.backend.execute(command).await);
}

#[tokio::test]
async fn what_appears_later_is_denied_to_the_next_command() {
    let Some(place) = Place::viewed() else { return };
    let made = "mkdir -p n/m && echo x > n/m/new.pem && echo x > .env2 && cat n/m/new.pem";
    assert_eq!(place.says(made).await, "x\n");
    let said = place.says("cat n/m/new.pem").await;
    assert!(said.contains("Permission denied"), "{said}");
    // A host that replaces a file, or moves its directory.
    put(&place.outside("b"), SECRET);
    fs::rename(place.outside("b"), place.inside.join(".env")).unwrap();
    fs::rename(place.inside.join("sub/dir"), place.inside.join("sub/moved")).unwrap();
    let said = place.says("cat .env; cat sub/moved/.env").await;
    assert_eq!(said.matches("Permission denied").count(), 2, "{said}");
    fs::remove_dir_all(place.inside.join("sub")).unwrap();
    assert_eq!(
        place.says("cat sub 2>&1 | wc -l; cat open.txt").await,
        "1\nopen"
    );
}

#[tokio::test]
async fn many_paths_are_masked_and_too_many_refused() {
    let Some(place) = Place::viewed() else { return };
    for number in 0..990 {
        put(
            &place
                .inside
                .join(format!("many/{}/{number}.key", number % 9)),
            SECRET,
        );
    }
    let said = in_view(
        &place,
        &["*.key"],
        "cat many/*/*.key 2>&1 | grep -vc denied; cat open.txt",
    );
    assert_eq!(said.await, "0\nopen");
    for number in 990..1001 {
        put(&place.inside.join(format!("many/{number}.key")), SECRET);
    }
    let view = View::new(hide(&["*.key"]), Exclude::none());
    fails(
        TooLarge,
        place.backend.execute(Command::new("true").view(view)).await,
    );
    let said = in_view(&place, &["many/**"], "cat many/*/1.key; cat open.txt").await;
    assert!(said.contains("open") && !said.contains(SECRET), "{said}");
}

#[tokio::test]
async fn a_file_with_another_name_is_refused_or_accepted() {
    let Some(place) = Place::viewed() else { return };
    for denied in [".env", "secrets/more/key"] {
        let other = place.inside.join("other-name");
        fs::hard_link(place.inside.join(denied), &other).unwrap();
        let error = place
            .backend
            .execute(Command::new("true").view(rules()))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), PermissionDenied);
        assert!(error.to_string().contains(&format!("/{denied}")), "{error}");
        // Not covered if it is accepted.
        let view = rules().hard_links(HardLinks::Accept);
        let command = Command::new(format!("cat {denied}; cat other-name")).view(view);
        let outcome = place.backend.execute(command).await.unwrap();
        assert_eq!(outcome.stdout.text(), SECRET, "{outcome:?}");
        fs::remove_file(other).unwrap();
        assert!(place.run("true").await.status.success());
    }
}

#[tokio::test]
async fn background_shells_and_terminals_are_in_the_view() {
    let Some(place) = Place::viewed() else { return };
    for terminal in [None, Some(TerminalSize::default())] {
        let shell = Shell::start(&place, terminal).await;
        let said = shell.says("cat .env secrets/key").await;
        assert_eq!(said.matches("Permission denied").count(), 2, "{said}");
        assert!(!said.contains(SECRET), "{said}");
    }
}

#[tokio::test]
async fn what_file_tools_replace_is_denied_before_they_return() {
    let Some(place) = Place::viewed() else { return };
    let shell = Shell::start(&place, None).await;
    let denied = async |name: &str, after: &str| {
        let said = shell.says(&format!("cat {name}")).await;
        assert!(said.contains("Permission denied"), "after {after}: {said}");
        assert!(!said.contains(SECRET), "after {after}: {said}");
    };
    let backend = &place.backend;
    let write = async |name: &str| {
        let content = Bytes::from(format!("{SECRET} again\n"));
        let name = path(name);
        let written = backend.write(&name, content.into(), WriteOptions::default());
        written.await.unwrap();
    };
    denied(".env", "nothing").await;
    write("/.env").await;
    denied(".env", "write").await;
    write("/soft").await;
    denied(".env", "write through a link").await;
    write("/fresh/dir/.env").await;
    denied("fresh/dir/.env", "create").await;
    let edits = [Edit::new("again", "edited")];
    backend
        .edit(&path("/.env"), &edits, EditOptions::default())
        .await
        .unwrap();
    denied(".env", "edit").await;
    let (from, to) = (path("/.env"), path("/copied/x.pem"));
    backend
        .copy(&from, &to, CopyOptions::default())
        .await
        .unwrap();
    denied("copied/x.pem", "copy").await;
    backend
        .rename(&to, &path("/copied/y.pem"), RenameOptions::default())
        .await
        .unwrap();
    denied("copied/y.pem", "rename").await;
    let tree = RenameOptions::default();
    backend
        .rename(&path("/copied"), &path("/moved"), tree)
        .await
        .unwrap();
    denied("moved/y.pem", "rename of its directory").await;
    let tree = CopyOptions::default().recursive(true);
    backend
        .copy(&path("/moved"), &path("/twice"), tree)
        .await
        .unwrap();
    denied("twice/y.pem", "copy of its directory").await;
    backend
        .delete(&path("/.env"), DeleteOptions::default())
        .await
        .unwrap();
    write("/.env").await;
    denied(".env", "delete and write").await;
    assert_eq!(shell.says("cat open.txt").await, "openend1\n");
}

#[tokio::test]
async fn commands_with_the_same_rules_share_a_view() {
    let Some(place) = Place::viewed() else { return };
    let namespace = "readlink /proc/self/ns/mnt";
    let first = place.says(namespace).await;
    assert_eq!(place.says(namespace).await, first);
    let other = in_view(&place, &["x"], namespace).await;
    assert_ne!(other, first);
    // Many kinds of rules, one after the other, and many commands at once.
    for number in 0..20 {
        assert_eq!(
            in_view(&place, &[&format!("x{number}")], "cat open.txt").await,
            "open"
        );
    }
    let place = &place;
    let many = (0..24).map(|number| async move {
        let other = format!("x{}", number % 4);
        in_view(place, &[".env", &other], "cat .env; cat open.txt").await
    });
    for said in futures::future::join_all(many).await {
        assert!(
            said.contains("Permission denied") && said.contains("open"),
            "{said}"
        );
    }
    place.backend.stop(StopMode::Keep).await.unwrap();
    assert!(place.says("cat .env").await.contains("Permission denied"));
}

#[tokio::test]
async fn the_level_is_told_and_what_needs_more_is_refused() {
    let Some(place) = Place::viewed() else { return };
    let info = place.backend.info();
    assert_eq!(
        (info.enforcement, info.enforcement_limit),
        (Enforcement::View, None)
    );
    let strict = || Command::new("cat open.txt").view(rules().required(Enforcement::View));
    assert!(
        place
            .backend
            .execute(strict())
            .await
            .unwrap()
            .status
            .success()
    );

    let off = Place::new(false);
    let direct = LocalBackend::builder(&off.inside)
        .enable_execute(true)
        .commands(Commands::new().supervisor(Supervisor::None))
        .open()
        .unwrap();
    let plain = LocalBackend::builder(&off.inside)
        .enable_execute(true)
        .commands(Commands::new().confinement(Confinement::Off))
        .open()
        .unwrap();
    for (backend, level) in [
        (&off.backend, Enforcement::Landlock),
        (&direct, Enforcement::Words),
        (&plain, Enforcement::Words),
    ] {
        let info = backend.info();
        assert_eq!(info.enforcement, level);
        let limit = info.enforcement_limit.unwrap();
        assert!(limit.contains("Landlock::views"), "{limit}");
        let error: Error = backend.execute(strict()).await.unwrap_err();
        assert_eq!(error.kind(), PermissionDenied);
        let said = error.to_string();
        assert!(
            said.contains("'view'") && said.contains(&format!("'{level}'")),
            "{said}"
        );
        assert!(said.contains("Landlock::views"), "{said}");
        // Otherwise it runs at the lower level.
        let command = Command::new("cat .env").view(rules());
        let outcome = backend.execute(command).await.unwrap();
        assert_eq!(outcome.stdout.text(), SECRET);
    }
}

/// A directory of the backend that was moved is still the one that rules are about.
#[tokio::test]
async fn a_directory_that_was_moved_keeps_its_rules() {
    let Some(place) = Place::viewed() else { return };
    assert!(place.says("cat .env").await.contains("Permission denied"));
    let moved = place.outside("moved");
    fs::rename(&place.inside, &moved).unwrap();
    let said = place.says("cat .env; cat secrets/key; cat open.txt").await;
    assert_eq!(said.matches("Permission denied").count(), 2, "{said}");
    symlink(&moved, &place.inside).unwrap();
    let said = place.says("cat .env").await;
    assert!(said.contains("Permission denied"), "{said}");
}

#[tokio::test]
async fn a_command_in_a_view_times_out_and_leaves_nothing() {
    let Some(place) = Place::viewed() else { return };
    let token = backend_testkit::processes::token();
    let line = format!("(env -i setsid sleep {token} &) ; sleep {token}");
    let command = Command::new(line)
        .view(rules())
        .timeout(Duration::from_millis(300));
    let outcome = place.backend.execute(command).await.unwrap();
    assert!(!outcome.status.success());
    backend_testkit::processes::none(&token);
}

#[tokio::test]
async fn views_go_together_with_a_network() {
    let Some(place) = Place::viewed_with(Landlock::new().network(true)) else {
        return;
    };
    let said = place.says("cat .env; cat open.txt").await;
    assert!(
        said.contains("Permission denied") && said.starts_with("open"),
        "{said}"
    );
}

/// In a kept view, in which nothing runs meanwhile.
#[tokio::test]
async fn what_was_replaced_is_denied_to_the_next_command_in_the_same_view() {
    let Some(place) = Place::viewed() else { return };
    let backend = &place.backend;
    let namespace = place.says("readlink /proc/self/ns/mnt").await;
    let denied = async |name: &str, after: &str| {
        let said = place
            .says(&format!("cat {name}; readlink /proc/self/ns/mnt"))
            .await;
        assert!(said.contains("Permission denied"), "after {after}: {said}");
        assert!(!said.contains(SECRET), "after {after}: {said}");
        assert!(said.contains(&namespace), "after {after}: {said}");
    };
    let write = async |name: &str| {
        let content = Bytes::from(format!("{SECRET} again\n"));
        let (name, options) = (path(name), WriteOptions::default());
        backend.write(&name, content.into(), options).await.unwrap();
    };
    write("/.env").await;
    denied(".env", "write").await;
    let edits = [Edit::new("again", "edited")];
    let (name, options) = (path("/.env"), EditOptions::default());
    backend.edit(&name, &edits, options).await.unwrap();
    denied(".env", "edit").await;
    write("/plain").await;
    let over = RenameOptions::default().overwrite(true);
    backend
        .rename(&path("/plain"), &path("/.env"), over)
        .await
        .unwrap();
    denied(".env", "rename over").await;
    let gone = DeleteOptions::default();
    backend.delete(&path("/.env"), gone).await.unwrap();
    assert!(place.says("cat .env").await.contains("No such file"));
    write("/.env").await;
    denied(".env", "delete and create").await;
    // The host does the same.
    let file = place.inside.join(".env");
    put(&file, SECRET);
    denied(".env", "a write of the host").await;
    put(&place.outside("b"), SECRET);
    fs::rename(place.outside("b"), &file).unwrap();
    denied(".env", "a rename of the host").await;
    fs::remove_file(&file).unwrap();
    put(&file, SECRET);
    denied(".env", "a new file of the host").await;
    fs::remove_dir_all(place.inside.join("secrets")).unwrap();
    put(&place.inside.join("secrets/key"), SECRET);
    denied("secrets/key", "a new directory of the host").await;
    put(&place.inside.join("new/deep/x.pem"), SECRET);
    denied("new/deep/x.pem", "a new name").await;
}

/// Some of what is denied for reading lies in what is denied for writing.
#[tokio::test]
async fn all_of_a_read_only_directory_is_read_only() {
    let Some(place) = Place::viewed() else { return };
    put(&place.inside.join("fixed/sub/only.txt"), SECRET);
    put(&place.inside.join("fixed/sub/file"), "open");
    let view = || View::new(hide(&["/fixed/sub/only.txt"]), hide(&["/fixed"]));
    let line = "cat fixed/sub/only.txt; echo x > fixed/sub/file; echo x > fixed/sub/new; \
                echo x > fixed/file; mv fixed/sub fixed/other; rm fixed/sub/file";
    let outcome = place.backend.execute(Command::new(line).view(view()));
    let outcome = outcome.await.unwrap();
    assert_eq!(outcome.stdout.text(), "");
    assert_eq!(
        fs::read_to_string(place.inside.join("fixed/sub/file")).unwrap(),
        "open"
    );
    assert!(!place.inside.join("fixed/sub/new").exists());
}

#[tokio::test]
async fn a_denied_link_may_lead_into_a_denied_directory() {
    let Some(place) = Place::viewed() else { return };
    symlink("secrets/key", place.inside.join("link.pem")).unwrap();
    symlink("secrets/more", place.inside.join("more.pem")).unwrap();
    let said = place
        .says("cat link.pem more.pem/key secrets/key; cat open.txt")
        .await;
    assert_eq!(said.matches("Permission denied").count(), 3, "{said}");
    assert!(said.starts_with("open"), "{said}");
}

/// The walk for a later command finds each denied file, whatever an earlier one did to
/// its directories.
#[tokio::test]
async fn no_directory_hides_what_is_in_it_from_a_later_view() {
    let long = "\\377".repeat(200);
    let deep = "d/".repeat(260);
    for (prepare, look) in [
        (
            "chmod 0311 sub/dir",
            "cat sub/dir/.env; chmod 0755 sub/dir; cat sub/dir/.env",
        ),
        (
            "chmod 0644 sub/dir",
            "cat sub/dir/.env; chmod 0755 sub/dir; cat sub/dir/.env",
        ),
        (
            "chmod 0 sub",
            "cat sub/dir/.env; chmod 0755 sub; cat sub/dir/.env",
        ),
        (
            "mkdir .agentbox-tmp-0123456789abcdef && mv sub .agentbox-tmp-0123456789abcdef/",
            "cat .agentbox-tmp-0123456789abcdef/sub/dir/.env",
        ),
        (
            &*format!("mkdir $(printf '{long}') && mv sub $(printf '{long}')/"),
            &*format!("cat \"$(printf '{long}')/sub/dir/.env\""),
        ),
        (
            &format!("mkdir -p {deep} && mv sub {deep}"),
            &format!("cat {deep}sub/dir/.env; chmod 0755 {deep}*; cat {deep}sub/dir/.env"),
        ),
    ] {
        let Some(mut place) = Place::viewed() else {
            return;
        };
        let prepared = place.run(prepare).await;
        assert!(prepared.status.success(), "{prepare}: {prepared:?}");
        for _ in 0..2 {
            place.reopen();
            let said = place.says(look).await;
            assert!(!said.contains(SECRET), "{prepare}: {said}");
            assert!(said.contains("Permission denied"), "{prepare}: {said}");
        }
    }
}

/// Nothing has changed in any directory but the one above.
#[tokio::test]
async fn what_is_in_a_directory_that_was_moved_to_a_known_path_is_denied() {
    let Some(place) = Place::viewed() else { return };
    let at = |name: &str| place.inside.join(name);
    let outside = |name: &str| place.inside.with_file_name(name);
    for number in 0..8 {
        put(&at(&format!("d{number}/deep/x")), "open");
    }
    put(&outside("new/deep/x"), "open");
    put(&outside("new/deep/.env"), SECRET);
    let said = place.says("cat d0/deep/x d1/deep/x").await;
    assert_eq!(said, "openopen");
    fs::rename(at("d1"), outside("old")).unwrap();
    fs::rename(outside("new"), at("d1")).unwrap();
    let said = place.says("cat d1/deep/x d1/deep/.env").await;
    assert!(said.starts_with("open") && !said.contains(SECRET), "{said}");
    assert!(said.contains("Permission denied"), "{said}");
}

/// A directory that must not be renamed, and was made after the first command.
#[tokio::test]
async fn a_directory_above_that_is_new_is_kept_from_the_next_command() {
    let Some(place) = Place::viewed() else { return };
    let line = "mv later moved; cat moved/only.txt later/only.txt";
    let view = || View::new(hide(&["/later/only.txt"]), Exclude::none());
    let run = async || {
        let outcome = place.backend.execute(Command::new(line).view(view()));
        outcome.await.unwrap().stderr.text()
    };
    run().await;
    put(&place.inside.join("later/only.txt"), SECRET);
    let said = run().await;
    assert!(
        said.contains("busy") && said.contains("Permission denied"),
        "{said}"
    );
    assert!(place.inside.join("later").exists());
}

/// A running command makes so many denied names that they cannot all be masked.
#[tokio::test]
async fn a_command_from_which_it_cannot_be_kept_any_more_is_ended() {
    let Some(place) = Place::viewed() else { return };
    let shell = Shell::start(&place, None).await;
    let made = shell
        .says("for n in $(seq 1001); do echo > $n.pem; done")
        .await;
    assert_eq!(made, "end1\n");
    let token = backend_testkit::processes::token();
    let line = format!("env -i setsid sleep {token} &");
    assert_eq!(shell.says(&line).await, "end1\n");
    let content = Bytes::from(SECRET);
    let name = path("/.env");
    let written = place
        .backend
        .write(&name, content.into(), WriteOptions::default());
    written.await.unwrap();
    assert!(backend_testkit::processes::survivors(&token).is_empty());
    assert!(!shell.ended().await.contains(SECRET));
    fails(
        TooLarge,
        place
            .backend
            .execute(Command::new("true").view(rules()))
            .await,
    );
    place
        .backend
        .execute(Command::new("rm *.pem"))
        .await
        .unwrap();
    assert!(place.says("cat .env").await.contains("Permission denied"));
}

/// Another name for a file of its own does not end the masking.
#[tokio::test]
async fn a_command_that_links_its_own_file_is_kept_from_what_is_replaced() {
    let Some(place) = Place::viewed() else { return };
    let shell = Shell::start(&place, None).await;
    let made = shell
        .says("echo own > own && ln own own.pem && cat own.pem")
        .await;
    assert_eq!(made, "own\nend1\n");
    let content = Bytes::from(SECRET);
    let name = path("/.env");
    let written = place
        .backend
        .write(&name, content.into(), WriteOptions::default());
    written.await.unwrap();
    let said = shell.says("cat .env own.pem").await;
    assert_eq!(said.matches("Permission denied").count(), 2, "{said}");
}

/// A mask is put on what is denied, and on nothing that was moved to its path.
#[tokio::test]
async fn what_is_moved_while_it_is_masked_is_denied_nevertheless() {
    let Some(place) = Place::viewed() else { return };
    for name in ["one", "two"] {
        put(&place.inside.join(name).join("x"), "open");
    }
    let shell = Shell::start(&place, None).await;
    let line = "while [ ! -e stop ]; do mv one three; mv two one; mv one two; mv three one; done";
    shell.tell(line).await;
    for number in 0..60 {
        let content = Bytes::from(format!("{SECRET} {number}"));
        let name = path(if number % 2 == 0 {
            "/one/.env"
        } else {
            "/two/.env"
        });
        let options = WriteOptions::default();
        // The directory may be elsewhere just then.
        let _ = place.backend.write(&name, content.into(), options).await;
        let look = Command::new("cat one/.env two/.env three/.env").view(rules());
        // So it may be when the command starts.
        if let Ok(outcome) = place.backend.execute(look).await {
            assert!(
                !outcome.stdout.text().contains(SECRET),
                "{number}: {outcome:?}"
            );
        }
    }
    fs::write(place.inside.join("stop"), "").unwrap();
    assert!(!shell.said().await.contains(SECRET));
    let said = place.says("cat one/.env two/.env three/.env").await;
    assert!(!said.contains(SECRET), "{said}");
}

/// A command that ends before its view is made leaves nothing behind.
#[tokio::test]
async fn a_command_that_is_ended_at_once_does_not_start() {
    let Some(place) = Place::viewed() else { return };
    let token = backend_testkit::processes::token();
    let (place, token) = (&place, &token);
    let many = (0..40).map(|number| async move {
        let view = View::new(hide(&[&format!("x{number}")]), Exclude::none());
        let line = format!("exec sleep {token}");
        let limit = Duration::from_micros(number * 50);
        let command = Command::new(line).view(view).timeout(limit);
        // There are not so many views at once.
        place.backend.execute(command).await.is_ok()
    });
    let ran = futures::future::join_all(many).await;
    assert!(ran.contains(&true));
    backend_testkit::processes::none(token);
}

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    again_as_an_ordinary_user("views::");
}
