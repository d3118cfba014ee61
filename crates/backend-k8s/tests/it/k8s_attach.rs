//! Attaching to existing pods, and pods with a name.

use backend_core::ops::StopMode;
use backend_core::{Backend as _, BackendExt as _, ErrorKind, Sandbox as _};
use backend_k8s::{K8sSandbox, Mode};
use backend_testkit::fails;

use crate::support::place::{CONTAINER, Place, agent};
use crate::support::sandbox::{purge, run};

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn by_name_in_both_modes_and_it_is_left_alone() {
    let place = Place::new().await;
    let first = place.builder().build().unwrap();
    first.write_file("a.txt", "one\n").await.unwrap();
    for mode in [Mode::Agent, Mode::Portable, Mode::Auto] {
        let attach = place.attach(first.pod_name()).mode(mode);
        let second = attach.open().await.unwrap();
        assert_eq!(second.working_dir().as_str(), "/workspace");
        assert_eq!(second.read_to_string("a.txt").await.unwrap(), "one\n");
        assert_eq!(run(&second, "cat a.txt").await, "one", "{mode:?}");
    }
    assert!(first.is_alive().await.unwrap(), "it is left alone");
    let other = place.attach(first.pod_name()).working_dir("/workspace/in");
    let other = other.open().await.unwrap();
    other.write_file("b.txt", "two\n").await.unwrap();
    assert_eq!(run(&other, "pwd").await, "/workspace/in");
    assert_eq!(run(&first, "cat in/b.txt").await, "two");
    purge(&first).await;
    place.gone(first.pod_name()).await;
    fails(
        ErrorKind::NotFound,
        place.attach(first.pod_name()).open().await,
    );
    fails(ErrorKind::Config, place.attach("no/name").open().await);
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn by_a_label_that_one_pod_has() {
    let place = Place::new().await;
    let red = || place.builder().label("example.com/team", "red");
    let by_label = || {
        let attach = K8sSandbox::attach_by_label("example.com/team=red");
        attach.cluster(place.cluster.clone()).agent(agent())
    };
    fails(ErrorKind::NotFound, by_label().open().await);
    let first = red().build().unwrap();
    first.write_file("a.txt", "one\n").await.unwrap();
    let attached = by_label().open().await.unwrap();
    assert_eq!(attached.pod_name(), first.pod_name());
    assert_eq!(attached.read_to_string("a.txt").await.unwrap(), "one\n");
    let second = red().build().unwrap();
    second.start().await.unwrap();
    fails(ErrorKind::Conflict, by_label().open().await);
    purge(&first).await;
    purge(&second).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn pods_of_others_only_when_allowed() {
    let place = Place::new().await;
    place.foreign_pod("foreign", CONTAINER).await;
    fails(
        ErrorKind::PermissionDenied,
        place.attach("foreign").open().await,
    );
    let attach = place.attach("foreign").allow_foreign(true);
    let sandbox = attach.working_dir("/tmp/work").open().await.unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    assert_eq!(run(&sandbox, "pwd; cat a.txt").await, "/tmp/work\none");
    drop(sandbox);
    assert!(place.exists("foreign").await);
    place.delete("foreign").await;
    place.foreign_pod("other", "main").await;
    let other = place.attach("other").allow_foreign(true);
    fails(ErrorKind::Config, other.open().await);
    place.delete("other").await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_name_is_used_again_if_nothing_has_changed() {
    let place = Place::new().await;
    let named = || place.builder().name("box");
    let first = named().build().unwrap();
    first.write_file("a.txt", "one\n").await.unwrap();
    drop(first);
    assert!(place.exists("box").await, "a named one stays");
    let second = named().build().unwrap();
    assert_eq!(second.read_to_string("a.txt").await.unwrap(), "one\n");
    second.stop(StopMode::Keep).await.unwrap();
    let third = named().build().unwrap();
    assert_eq!(third.read_to_string("a.txt").await.unwrap(), "one\n");
    let other = named().env("A", "b").build().unwrap();
    fails(ErrorKind::Conflict, other.start().await);
    purge(&third).await;
    place.gone("box").await;
    place.foreign_pod("box", CONTAINER).await;
    fails(ErrorKind::Conflict, named().build().unwrap().start().await);
    place.delete("box").await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn several_that_ask_for_one_name_at_once_share_it() {
    let place = Place::new().await;
    let all: Vec<_> = (0..4)
        .map(|_| place.builder().name("box").build().unwrap())
        .collect();
    let starts = all
        .iter()
        .map(|sandbox| sandbox.write_file("a.txt", "one\n"));
    for started in futures::future::join_all(starts).await {
        started.unwrap();
    }
    purge(&all[0]).await;
    place.end().await;
}
