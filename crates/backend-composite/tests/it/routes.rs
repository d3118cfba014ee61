//! Effects of routes on the tree: their targets, what they show and hide, and
//! adding and removing them.

use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::ErrorKind::{
    AlreadyExists, InvalidInput, IsADirectory, IsALink, NotFound, PermissionDenied,
};
use backend_core::ops::{Content, GlobQuery, GrepQuery, Links, ReadOptions, ResolveOptions};
use backend_core::{Backend, BackendExt as _, Capabilities, Containment, VPath};
use backend_local::LocalBackend;
use backend_state::StateBackend;
use backend_testkit::{fails, path};
use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::mpsc;

use crate::support::states::{found, route, state};

async fn text(backend: &(impl Backend + ?Sized), path: &str) -> String {
    backend.read_to_string(path).await.unwrap()
}

async fn names(composite: &Composite, path: &str) -> Vec<String> {
    let listing = composite.list_dir(path).await.unwrap();
    let entries = listing.entries.iter();
    entries.map(|entry| entry.name().to_owned()).collect()
}

#[tokio::test]
async fn a_child_sees_the_names_that_its_route_says() {
    let [default, below, full, deep] = [state(), state(), state(), state()];
    let composite = Composite::builder()
        .default_backend(Arc::<StateBackend>::clone(&default))
        .route(route("/below/", &below))
        .route(route("/full", &full).full_paths())
        .route(route("/deep", &deep).to_directory(path("/desk/space")))
        .build()
        .unwrap();
    for name in ["below", "full", "deep", "belowed"] {
        let path = format!("/{name}/f");
        composite.write_file(&path, name).await.unwrap();
    }
    assert_eq!(text(&*below, "/f").await, "below");
    assert_eq!(text(&*full, "/full/f").await, "full");
    assert_eq!(text(&*deep, "/desk/space/f").await, "deep");
    assert_eq!(text(&*default, "/belowed/f").await, "belowed");
    let expected = ["/below/f", "/belowed/f", "/deep/f", "/full/f"];
    assert_eq!(found(&composite, "**").await, expected);
    let matches = composite.search_text("e").await.unwrap();
    let files = matches.files.iter().map(|file| file.path.as_str());
    assert_eq!(
        files.collect::<Vec<_>>(),
        ["/below/f", "/belowed/f", "/deep/f"]
    );
}

#[tokio::test]
async fn routes_show_and_hide() {
    let default = state();
    for file in ["/a/b/hidden", "/a/beside", "/z"] {
        default.write_file(file, "needle").await.unwrap();
    }
    let composite = Composite::new(default);
    composite.add_route(route("/a/b", &state())).unwrap();
    composite.add_route(route("/x/y/z", &state())).unwrap();
    assert_eq!(names(&composite, "/").await, ["a", "x", "z"]);
    assert_eq!(names(&composite, "/a").await, ["b", "beside"]);
    assert!(names(&composite, "/a/b").await.is_empty());
    assert_eq!(names(&composite, "/x/y").await, ["z"]);
    assert_eq!(found(&composite, "**").await, ["/a/beside", "/z"]);
    assert_eq!(composite.search_text("needle").await.unwrap().matches, 2);
    fails(NotFound, composite.read_bytes("/a/b/hidden").await);
}

#[tokio::test]
async fn what_lies_above_a_route_is_a_directory() {
    let composite = Composite::new(state());
    composite.add_route(route("/x/y/z", &state())).unwrap();
    for fixed in ["/x", "/x/y", "/x/y/z"] {
        assert!(composite.metadata(fixed).await.unwrap().is_dir());
        assert!(composite.exists(fixed).await.unwrap());
        let at = path(fixed);
        composite.create_dir(&at, Default::default()).await.unwrap();
        fails(IsADirectory, composite.write_file(fixed, "x").await);
        fails(AlreadyExists, composite.write_new_file(fixed, "x").await);
        fails(IsADirectory, composite.read_bytes(fixed).await);
        fails(IsADirectory, composite.replace_text(fixed, "a", "b").await);
        for refused in [
            composite.delete_tree(fixed).await,
            composite.delete_file(fixed).await,
            composite.move_to(fixed, "/elsewhere").await,
        ] {
            let error = fails(InvalidInput, refused);
            assert!(error.message().contains("remove the route"), "{error}");
            assert_eq!(error.path(), Some(&at));
        }
    }
    let above = path("/x/y");
    let resolved = composite.resolve(&above, ResolveOptions::default()).await;
    assert_eq!(resolved.unwrap(), above);
    // The parent of a route also accepts files; the default creates the directory.
    composite.write_file("/x/file", "x").await.unwrap();
    assert_eq!(names(&composite, "/x").await, ["y", "file"]);
}

#[tokio::test]
async fn a_file_where_a_routes_parent_must_be_is_hidden() {
    let default = state();
    default.write_file("/x", "needle").await.unwrap();
    let composite = Composite::new(default);
    composite.add_route(route("/x/y", &state())).unwrap();
    composite.write_file("/x/y/f", "needle").await.unwrap();
    assert!(composite.metadata("/x").await.unwrap().is_dir());
    assert_eq!(names(&composite, "/x").await, ["y"]);
    let query = GrepQuery::new("needle", path("/x"));
    assert_eq!(composite.grep(query).await.unwrap().matches, 1);
    let query = GlobQuery::new("*", path("/x"));
    assert_eq!(composite.glob(query).await.unwrap().files.len(), 1);
}

#[tokio::test]
async fn routes_come_and_go() {
    let composite = Composite::new(state());
    composite.write_file("/a/f", "default").await.unwrap();
    let added = state();
    composite.add_route(route("/a/", &added)).unwrap();
    fails(AlreadyExists, composite.add_route(route("/a", &added)));
    composite.write_file("/a/f", "route").await.unwrap();
    let routes = composite.routes();
    let prefixes = routes.iter().map(|route| route.prefix().as_str());
    assert_eq!(prefixes.collect::<Vec<_>>(), ["/", "/a"]);

    let removed = composite.remove_route(&path("/a")).unwrap();
    let kept = removed.backend().read_to_string("/f").await;
    assert_eq!(kept.unwrap(), "route");
    assert_eq!(text(&composite, "/a/f").await, "default");
    fails(NotFound, composite.remove_route(&path("/a")));
    // The default is the route at the root.
    composite.remove_route(&VPath::root()).unwrap();
    fails(NotFound, composite.read_bytes("/a/f").await);
    composite.add_route(route("/", &added)).unwrap();
    assert_eq!(composite.read_to_string("/f").await.unwrap(), "route");
}

#[tokio::test]
async fn a_call_keeps_the_routes_it_began_with() {
    let composite = Composite::new(state());
    let old = state();
    composite.add_route(route("/a", &old)).unwrap();
    let (pieces, mut taken) = mpsc::channel::<Bytes>(1);
    let stream = futures::stream::poll_fn(move |context| taken.poll_recv(context));
    let content = Content::Stream(stream.map(Ok).boxed());
    let writing = tokio::spawn({
        let composite = composite.clone();
        async move { composite.write_file("/a/f", content).await }
    });
    // The second piece is consumed only when the write is in progress.
    pieces.send(Bytes::from("one ")).await.unwrap();
    pieces.send(Bytes::from("two")).await.unwrap();
    composite.remove_route(&path("/a")).unwrap();
    let new = state();
    composite.add_route(route("/a", &new)).unwrap();
    drop(pieces);
    writing.await.unwrap().unwrap();
    assert_eq!(old.read_to_string("/f").await.unwrap(), "one two");
    assert!(!new.exists("/f").await.unwrap());
}

#[tokio::test]
async fn without_a_default_only_routes_are_there() {
    let composite = Composite::builder()
        .route(route("/in/put", &state()))
        .route(route("/out", &state()))
        .build()
        .unwrap();
    composite.write_file("/out/f", "needle").await.unwrap();
    assert_eq!(names(&composite, "/").await, ["in", "out"]);
    assert_eq!(names(&composite, "/in").await, ["put"]);
    assert_eq!(found(&composite, "**").await, ["/out/f"]);
    fails(NotFound, composite.read_bytes("/other").await);
    let new = path("/in/new");
    let created = composite.create_dir(&new, Default::default()).await;
    for denied in [
        composite.write_file("/other", "x").await.map(drop),
        composite.copy_to("/out/f", "/in/f").await,
        created,
    ] {
        let error = fails(PermissionDenied, denied);
        let told = "no route has this path";
        assert!(error.message().contains(told), "{error}");
    }
    let empty = Composite::builder().build().unwrap();
    assert!(names(&empty, "/").await.is_empty());
}

#[tokio::test]
async fn capabilities_are_what_holds_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let local = LocalBackend::builder(directory.path()).open().unwrap();
    let composite = Composite::new(state());
    let alone = composite.info();
    assert_eq!(alone.name, "composite");
    let expected = Capabilities::writable().with_times().with_watch();
    assert_eq!(alone.capabilities, expected);
    assert_eq!(alone.containment, Containment::NoCommands);
    assert!(composite.as_sandbox().is_none());
    let added = Route::new(path("/l"), Arc::new(local));
    composite.add_route(added).unwrap();
    let both = composite.info().capabilities;
    assert!(both.writable && both.links && both.times && both.watch);
    assert!(!both.modes && !both.durable && !both.commands);
    let empty = Composite::builder().build().unwrap();
    assert_eq!(empty.info().capabilities, Capabilities::default());
}

#[tokio::test]
async fn links_lead_to_names_of_the_composite() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    std::fs::create_dir_all(root.join("real/inner")).unwrap();
    std::fs::write(root.join("real/f"), "x").unwrap();
    std::os::unix::fs::symlink("real", root.join("link")).unwrap();
    std::os::unix::fs::symlink("real/inner", root.join("shadowed")).unwrap();
    let local = Arc::new(LocalBackend::builder(root).open().unwrap());
    let composite = Composite::new(state());
    let linked = Route::new(path("/l"), Arc::<LocalBackend>::clone(&local));
    for added in [linked, route("/l/real/inner", &state())] {
        composite.add_route(added).unwrap();
    }
    let options = ResolveOptions::default();
    let resolve = async |text: &str| composite.resolve(&path(text), options).await;
    for end in ["f", "new/deeper"] {
        let resolved = resolve(&format!("/l/link/{end}")).await;
        assert_eq!(resolved.unwrap(), path(&format!("/l/real/{end}")));
    }
    // The link leads to a path that the route hides, so the target has no path here.
    fails(PermissionDenied, resolve("/l/shadowed").await);
    let refuse = ReadOptions::default().links(Links::Refuse);
    let link = path("/l/link/f");
    let refused = fails(IsALink, composite.read(&link, refuse).await);
    assert_eq!(refused.path(), Some(&link));

    let below = Route::new(path("/below"), local).to_directory(path("/real"));
    std::os::unix::fs::symlink("../link", root.join("real/out")).unwrap();
    std::os::unix::fs::symlink("..", root.join("real/up")).unwrap();
    composite.add_route(below).unwrap();
    assert_eq!(resolve("/below/out/f").await.unwrap(), path("/below/f"));
    fails(PermissionDenied, resolve("/below/up").await);
}

#[tokio::test]
async fn the_working_directory_may_be_anywhere() {
    let composite = Composite::builder()
        .default_backend(state())
        .route(route("/a/b", &state()))
        .working_dir(path("/a"))
        .build()
        .unwrap();
    composite.write_file("b/f", "needle").await.unwrap();
    composite.write_file("g", "needle").await.unwrap();
    assert_eq!(names(&composite, ".").await, ["b", "g"]);
    assert_eq!(found(&composite, "*").await, ["/a/b/f", "/a/g"]);
    fails(InvalidInput, composite.delete_tree("/a").await);
}

#[tokio::test]
async fn a_thousand_routes() {
    let mut builder = Composite::builder().default_backend(state());
    for number in 0..1000 {
        builder = builder.route(route(&format!("/r/{number:03}"), &state()));
    }
    let composite = builder.build().unwrap();
    for number in 0..1000 {
        let path = format!("/r/{number:03}/f");
        composite.write_file(&path, "needle").await.unwrap();
    }
    let query = GlobQuery::new("f", VPath::root()).limit(3);
    let globbed = composite.glob(query).await.unwrap();
    assert!(globbed.truncated);
    let files = globbed.files.iter().map(|file| file.path.as_str());
    assert_eq!(
        files.collect::<Vec<_>>(),
        ["/r/000/f", "/r/001/f", "/r/002/f"]
    );
    assert_eq!(composite.search_text("needle").await.unwrap().matches, 1000);
    assert_eq!(composite.list_dir("/r").await.unwrap().total, 1000);
}
