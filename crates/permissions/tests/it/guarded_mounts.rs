//! Tests of a guard with mounts: sizes, suffixes, searches, narrower scopes.

use backend_core::ErrorKind::{InvalidInput, PermissionDenied, TooLarge, Unsupported};
use backend_core::ops::{Content, GrepQuery, GrepResult, ReadOptions, WriteOptions};
use backend_core::{Backend, BackendExt as _, Error};
use backend_mounts::{Derive, Mode, Mount, MountConfig, Scope, derive};
use backend_state::StateBackend;
use backend_testkit::fails;
use bytes::Bytes;
use permissions::{Guarded, Policy, Refusal};

use crate::support::scene;
use crate::support::scene::{Person, guard, path};

fn found(result: &GrepResult) -> Vec<String> {
    let files = result.files.iter();
    files.map(|file| file.path.to_string()).collect()
}

/// `/user` takes small text files, `/big` takes anything, `/docs` is read-only, and
/// `/shy` asks before reads.
fn scope() -> Scope {
    let mount = |point: &str| {
        let host = format!("/srv{point}");
        Mount::new(host, point).unwrap().write_approval(false)
    };
    let mounts = vec![
        mount("/user")
            .mode(Mode::Rw)
            .max_file_bytes(10)
            .suffixes([".txt"]),
        mount("/big").mode(Mode::Rw),
        mount("/docs").mode(Mode::Ro),
        mount("/shy").mode(Mode::Rw).read_approval(true),
    ];
    Scope::new(MountConfig::new(mounts).build().unwrap())
}

async fn mounted(person: &Person) -> (StateBackend, Guarded<StateBackend>) {
    let backend = StateBackend::new();
    for (path, content) in [
        ("/user/small.txt", "small"),
        ("/user/large.txt", "more than ten bytes"),
        ("/big/large.txt", "more than ten bytes"),
        ("/big/small.txt", "small"),
        ("/docs/guide.txt", "small"),
        ("/shy/private.txt", "small"),
        ("/elsewhere/file.txt", "small"),
    ] {
        backend.write_file(path, content).await.unwrap();
    }
    let policy = Policy::builder().layer(scope()).build();
    let guarded = guard(backend.clone(), policy, person);
    (backend, guarded)
}

#[tokio::test]
async fn sizes_hold_for_every_way_in_and_out() {
    let (backend, guarded) = mounted(&Person::no()).await;
    let pieces = || {
        let pieces = ["12345", "12345", "1"].map(|piece| Ok(Bytes::from(piece)));
        Content::Stream(Box::pin(futures::stream::iter(pieces)))
    };
    let options = WriteOptions::default();
    let tail = ReadOptions::default().range(0..2);
    let (small, large, new) = ("/user/small.txt", "/user/large.txt", "/user/new.txt");
    let (large_path, much) = (path(large), "12345678901");
    let read = guarded.read_text(&large_path, Default::default()).await;
    let streamed = guarded.write(&path(new), pieces(), options).await;
    for error in [
        guarded.read_bytes(large).await.map(drop),
        guarded.read(&large_path, tail).await.map(drop),
        read.map(drop),
        guarded.write_file(new, much).await.map(drop),
        streamed.map(drop),
        guarded.replace_text(small, "small", much).await.map(drop),
        guarded.copy_to("/big/large.txt", new).await,
        guarded.move_to("/big/large.txt", new).await,
        guarded.copy_to(large, "/big/new.txt").await,
        guarded.move_to(large, "/big/new.txt").await,
    ] {
        let error = fails(TooLarge, error);
        assert!(matches!(
            Refusal::of(&error),
            Some(Refusal::TooLarge { limit: 10, .. })
        ));
    }
    assert!(!backend.exists(new).await.unwrap());
    assert_eq!(backend.read_to_string(small).await.unwrap(), "small");
    guarded.write_file(new, "1234567890").await.unwrap();
    guarded.replace_text(new, "1", "x").await.unwrap();
    let copied = guarded.copy_to("/big/small.txt", "/user/copied.txt").await;
    copied.unwrap();
    guarded.delete_file(large).await.unwrap();
}

#[tokio::test]
async fn suffixes_hold_for_every_way_in() {
    let (backend, guarded) = mounted(&Person::no()).await;
    let is_suffix = |error: &Error| matches!(Refusal::of(error), Some(Refusal::Suffix { .. }));
    for error in [
        guarded.write_file("/user/run.sh", "x").await.map(drop),
        guarded.copy_to("/big/small.txt", "/user/run.sh").await,
        guarded.move_to("/big/small.txt", "/user/run.sh").await,
        guarded.move_to("/user/small.txt", "/user/small.sh").await,
    ] {
        let error = error.unwrap_err();
        assert!(is_suffix(&error), "{error}");
    }
    let options = backend_core::ops::CreateDirOptions::default();
    let created = guarded.create_dir(&path("/user/dir.sh"), options).await;
    created.unwrap();
    let deep = "/big/tree/deep/run.sh";
    backend.write_file(deep, "x").await.unwrap();
    let moved = guarded.move_to("/big/tree", "/user/tree").await;
    let moved = moved.unwrap_err();
    assert!(is_suffix(&moved), "{moved}");
    assert!(backend.exists(deep).await.unwrap());
}

#[tokio::test]
async fn a_search_shows_only_what_may_be_read() {
    let person = Person::no();
    let (_, guarded) = mounted(&person).await;
    fails(PermissionDenied, guarded.search_text("small").await);
    assert_eq!(person.taken().len(), 1, "a mount that asks is beneath");
    let (_, guarded) = mounted(&Person::yes()).await;
    let names = guarded.list_dir("/").await.unwrap().entries;
    let names: Vec<_> = names.iter().map(|entry| entry.name()).collect();
    assert_eq!(names, ["big", "docs", "shy", "user"]);
    assert!(guarded.metadata("/").await.is_ok() && guarded.metadata("/big").await.is_ok());
    let all = guarded.search_text(".").await.unwrap();
    // All but the one that is too large.
    let expected = "/big/large.txt /big/small.txt /docs/guide.txt /shy/private.txt /user/small.txt";
    assert_eq!(found(&all).join(" "), expected);
    assert_eq!(all.matches, 5);
    let query = GrepQuery::new(".", path("/user/large.txt"));
    fails(TooLarge, guarded.grep(query).await);
}

#[tokio::test]
async fn a_derived_view_only_narrows() {
    let (_, guarded) = mounted(&Person::yes()).await;
    let child = derive(&guarded, Derive::new().read(["/docs"])).await;
    let child = child.unwrap();
    assert!(child.read_bytes("/docs/guide.txt").await.is_ok());
    let error = fails(PermissionDenied, child.read_bytes("/big/small.txt").await);
    assert!(!error.to_string().contains("/user"), "{error}");
    let wider = derive(&child, Derive::new().read(["/big"])).await;
    fails(PermissionDenied, wider);
    let error = derive(&guarded, Derive::new().read(["/docs/guide.txt"])).await;
    let error = fails(InvalidInput, error);
    assert!(error.to_string().contains("'/docs'"), "{error}");
    let nothing = derive(&guarded, Derive::new()).await.unwrap();
    assert!(nothing.read_bytes("/docs/guide.txt").await.is_err());
    let without = Guarded::builder(StateBackend::new()).build();
    fails(Unsupported, derive(&without, Derive::new()).await);
}

#[tokio::test]
async fn where_a_link_leads_out_of_the_mounts_is_not_told() {
    let (directory, backend) = scene::local();
    for path in ["/big/file", "/elsewhere/secret.txt", "/docs/guide.txt"] {
        backend.write_file(path, "x").await.unwrap();
    }
    scene::link(directory.path(), "big/out", "../elsewhere/secret.txt");
    scene::link(directory.path(), "big/guide", "../docs/guide.txt");
    let policy = Policy::builder().layer(scope()).build();
    let guarded = guard(backend, policy, &Person::yes());
    for result in [
        guarded.read_bytes("/big/out").await.map(drop),
        guarded.write_file("/big/out", "y").await.map(drop),
        guarded.write_file("/big/guide", "y").await.map(drop),
    ] {
        let told = format!("{:?}", fails(PermissionDenied, result));
        let is_told = told.contains("elsewhere") || told.contains("docs/guide");
        assert!(!is_told, "{told}");
    }
    assert_eq!(guarded.read_to_string("/big/guide").await.unwrap(), "x");
}
