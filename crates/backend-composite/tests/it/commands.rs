//! Commands run in the route of their directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backend_composite::{Composite, Route};
use backend_core::ErrorKind::{self, InvalidInput, NotFound, Unsupported};
use backend_core::ops::{Command, Event, ShellId, ShellState, StopMode};
use backend_core::{Backend, BackendExt as _, Containment, Sandbox, TracedPath, VPath};
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_testkit::{fails, path};
use futures::StreamExt as _;

fn local(directory: &Path) -> Arc<dyn Backend> {
    let commands = Commands::default().supervisor(Supervisor::None);
    let builder = LocalBackend::builder(directory)
        .enable_execute(true)
        .commands(commands);
    Arc::new(builder.open().unwrap())
}

/// Two local backends at `/one` and `/in:two`, a store elsewhere.
struct Places {
    composite: Composite,
    _directories: [tempfile::TempDir; 2],
}

fn places(working_dir: &str) -> Places {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, two] = &directories;
    std::fs::write(one.path().join("name"), "one").unwrap();
    std::fs::write(two.path().join("name"), "two").unwrap();
    let composite = Composite::builder()
        .default_backend(Arc::new(StateBackend::new()))
        .route(Route::new(path("/one"), local(one.path())))
        .route(Route::new(path("/in:two"), local(two.path())))
        .working_dir(path(working_dir))
        .build()
        .unwrap();
    Places {
        composite,
        _directories: directories,
    }
}

async fn printed(composite: &Composite, command: Command) -> String {
    composite.execute(command).await.unwrap().stdout.text()
}

#[tokio::test]
async fn a_command_runs_where_its_directory_is() {
    let places = places("/one");
    let composite = &places.composite;
    assert_eq!(printed(composite, Command::new("cat name")).await, "one");
    let there = Command::new("cat name").directory(path("/in:two"));
    assert_eq!(printed(composite, there).await, "two");
    composite.write_file("/one/sub/f", "deep").await.unwrap();
    let deep = Command::new("cat f").directory(path("/one/sub"));
    assert_eq!(printed(composite, deep.clone()).await, "deep");
    let events: Vec<_> = composite.stream(deep).await.unwrap().collect().await;
    assert!(matches!(&events[0], Ok(Event::Stdout(text)) if text == "deep"));
    let missing = Command::new("true").directory(path("/one/missing"));
    let error = fails(NotFound, composite.execute(missing).await);
    assert_eq!(error.path(), Some(&path("/one/missing")));
}

#[tokio::test]
async fn where_no_commands_run_is_unsupported() {
    let places = places("/");
    let composite = &places.composite;
    for command in [
        Command::new("true"),
        Command::new("true").directory(path("/elsewhere")),
    ] {
        let error = fails(Unsupported, composite.execute(command.clone()).await);
        assert!(error.message().contains("route '/' (state)"), "{error}");
        fails(Unsupported, composite.shell_start(command.clone()).await);
        let streamed = composite.stream(command).await;
        assert_eq!(streamed.err().unwrap().kind(), ErrorKind::Unsupported);
    }
    let nonsense = Command::new("true").timeout(Duration::ZERO);
    fails(InvalidInput, composite.execute(nonsense).await);
}

#[tokio::test]
async fn a_route_can_be_named() {
    let places = places("/");
    let named = places.composite.sandbox_of(&path("/in:two")).unwrap();
    let ran = named
        .as_sandbox()
        .unwrap()
        .execute(Command::new("cat name"))
        .await;
    assert_eq!(ran.unwrap().stdout.text(), "two");
    let composite = &places.composite;
    fails(Unsupported, composite.sandbox_of(&VPath::root()));
    fails(NotFound, composite.sandbox_of(&path("/nowhere")));
}

#[tokio::test]
async fn shells_carry_their_route() {
    let places = places("/one");
    let composite = &places.composite;
    let one = composite.shell_start(Command::new("cat")).await.unwrap();
    let two = Command::new("cat name; cat").directory(path("/in:two"));
    let two = composite.shell_start(two).await.unwrap();
    assert_ne!(one.id, two.id);
    assert!(one.id.as_str().starts_with("/one:"), "{}", one.id);
    assert!(two.id.as_str().starts_with("/in%3Atwo:"), "{}", two.id);
    let listed: Vec<_> = composite.shell_list().await.unwrap();
    let listed: Vec<_> = listed.iter().map(|shell| &shell.id).collect();
    assert_eq!(listed, [&two.id, &one.id]);
    let wait = Duration::from_secs(30);
    let read = composite.shell_read(&two.id, wait).await.unwrap();
    assert_eq!(read.stdout, "two");
    composite
        .shell_write(&one.id, Some("echo\n".into()))
        .await
        .unwrap();
    let read = composite.shell_read(&one.id, wait).await.unwrap();
    assert_eq!(
        (read.stdout, read.state),
        ("echo\n".into(), ShellState::Running)
    );
    assert!(composite.shell_kill(&one.id).await.unwrap());
    for unknown in ["bg_1", "/one:none", "/nowhere:bg_1", "/in:two:bg_1", ""] {
        let unknown = ShellId::new(unknown);
        fails(NotFound, composite.shell_kill(&unknown).await);
    }
    composite.stop(StopMode::Keep).await.unwrap();
}

#[tokio::test]
async fn lifecycle_is_for_all() {
    let places = places("/one");
    let composite = &places.composite;
    assert!(composite.info().capabilities.commands);
    assert_ne!(composite.info().containment, Containment::NoCommands);
    assert_eq!(composite.id(), composite.clone().id());
    composite.start().await.unwrap();
    assert!(composite.is_alive().await.unwrap());
    let two = composite.sandbox_of(&path("/in:two")).unwrap();
    two.as_sandbox()
        .unwrap()
        .stop(StopMode::Keep)
        .await
        .unwrap();
    assert!(!composite.is_alive().await.unwrap());
    composite.start().await.unwrap();
    let before = composite.last_activity();
    composite.list_dir("/in:two").await.unwrap();
    assert!(composite.last_activity() >= before);
    composite.stop(StopMode::Keep).await.unwrap();
    assert!(!two.as_sandbox().unwrap().is_alive().await.unwrap());
}

#[tokio::test]
async fn a_composite_in_a_composite_runs_commands() {
    let places = places("/");
    let inner = Arc::new(places.composite.clone());
    let outer = Composite::builder()
        .route(Route::new(path("/in"), inner))
        .working_dir(path("/in/one"))
        .id("outer")
        .build()
        .unwrap();
    assert_eq!(outer.id(), "outer");
    assert_eq!(printed(&outer, Command::new("cat name")).await, "one");
    let shell = outer.shell_start(Command::new("cat name")).await.unwrap();
    let read = outer
        .shell_read(&shell.id, Duration::from_secs(30))
        .await
        .unwrap();
    assert_eq!(read.stdout, "one");
    outer.stop(StopMode::Keep).await.unwrap();
}

/// Code that checks commands needs the host paths of every directory that is shown.
#[tokio::test]
async fn names_for_commands_are_those_of_all_children_on_the_host() {
    let places = places("/one");
    let [one, two] = places
        ._directories
        .each_ref()
        .map(|directory| directory.path().canonicalize().unwrap());
    let host = |directory: &Path| path(directory.to_str().unwrap());
    let names = places.composite.command_names(&path("/one/deep"));
    assert_eq!(names.roots(), [(path("/one"), host(&one))]);
    assert!(
        names.aliases().contains(&(path("/in:two"), host(&two))),
        "{names:?}"
    );
    std::os::unix::fs::symlink(two.join("name"), one.join("link")).unwrap();
    let spelled = ["link", "name"].map(|name| one.join(name).to_str().unwrap().to_owned());
    let traced = places.composite.trace(&path("/one"), &spelled).await;
    let inside = |text| TracedPath::Inside(path(text));
    assert_eq!(
        traced.unwrap(),
        [inside("/in:two/name"), inside("/one/name")]
    );
}

/// A route to a directory inside a backend: its commands see the files elsewhere than
/// the composite does, and reach files that no route shows.
#[tokio::test]
async fn names_for_commands_follow_a_route_to_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for name in ["work", "other"] {
        std::fs::create_dir(root.join(name)).unwrap();
        std::fs::write(root.join(name).join("secret"), name).unwrap();
    }
    std::os::unix::fs::symlink("secret", root.join("work/link")).unwrap();
    let host = |name: &str| root.join(name).to_str().unwrap().to_owned();
    for (prefix, base) in [("/box", "/work"), ("/work", "/work")] {
        let composite = Composite::builder()
            .default_backend(Arc::new(StateBackend::new()))
            .route(Route::new(path(prefix), local(&root)).to_directory(path(base)))
            .build()
            .unwrap();
        let names = composite.command_names(&path(prefix));
        assert_eq!(names.roots(), [(path(prefix), path(&host("work")))]);
        let spelled = ["work/secret", "work/link", "other/secret"].map(host);
        let traced = composite.trace(&path(prefix), &spelled).await.unwrap();
        let secret = TracedPath::Inside(path(prefix).join("secret").unwrap());
        let other = TracedPath::Outside(host("other/secret"));
        assert_eq!(traced, [secret.clone(), secret, other]);
    }
}
