//! Records of programs: labels, small files, states.

use std::collections::BTreeMap;

use backend_core::ErrorKind;
use backend_daytona::{InstanceState, instances};
use daytona_testkit::Fault;

use crate::support::{Place, purge};

fn change(key: &str, value: Option<&str>) -> BTreeMap<String, Option<String>> {
    BTreeMap::from([(key.to_owned(), value.map(str::to_owned))])
}

fn labelled(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

#[tokio::test]
async fn labels_are_merged_and_sandboxes_found_by_them() {
    let place = Place::new().await;
    let account = &place.account;
    let red = place
        .builder()
        .name("a")
        .label("team", "red")
        .create()
        .await
        .unwrap();
    let blue = place
        .builder()
        .name("b")
        .label("team", "blue")
        .create()
        .await
        .unwrap();
    let found = instances::list(account, &labelled("team", "red"))
        .await
        .unwrap();
    let names: Vec<_> = found.iter().map(|found| &*found.name).collect();
    assert_eq!(names, ["a"]);
    let (key, value) = instances::MANAGED;
    let ours = instances::list(account, &labelled(key, value))
        .await
        .unwrap();
    assert_eq!(ours.len(), 2);
    assert!(ours.iter().all(|one| one.is_ours() && !one.is_abandoned()));
    // Changes of one process at the same moment do not overwrite each other.
    let changes = (0..8).map(|number| {
        let change = change(&format!("k{number}"), Some("v"));
        async move { instances::change_labels(account, "a", &change).await }
    });
    for changed in futures::future::join_all(changes).await {
        changed.unwrap();
    }
    let found = instances::find(account, "a").await.unwrap().unwrap();
    let added = (0..8).filter(|number| found.labels.contains_key(&format!("k{number}")));
    assert_eq!(added.count(), 8);
    assert_eq!(found.labels["team"], "red");
    let without = instances::change_labels(account, &found.id, &change("k0", None)).await;
    assert!(!without.unwrap().labels.contains_key("k0"));
    let reserved =
        instances::change_labels(account, "a", &change("agentbox.dev/owner", None)).await;
    assert_eq!(reserved.unwrap_err().kind(), ErrorKind::Config);
    let missing = instances::change_labels(account, "none", &change("a", None)).await;
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    purge(&red).await;
    purge(&blue).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_list_that_is_late_is_not_believed() {
    let place = Place::new().await;
    let account = &place.account;
    let sandbox = place.builder().name("a").create().await.unwrap();
    let all = BTreeMap::new();
    assert_eq!(instances::list(account, &all).await.unwrap().len(), 1);
    purge(&sandbox).await;
    place
        .standin
        .inject(Fault::StaleList.at("GET /api/sandbox"));
    let listed = instances::list(account, &all).await.unwrap();
    assert_eq!(listed.len(), 1, "as the service shows it");
    assert_eq!(instances::find(account, &listed[0].id).await.unwrap(), None);
    assert!(!instances::delete(account, &listed[0].id).await.unwrap());
    place.standin.close().await;
}

#[tokio::test]
async fn small_files_and_states() {
    let place = Place::new().await;
    let account = &place.account;
    let sandbox = place.builder().name("a").create().await.unwrap();
    let path = "/tmp/records/session.json";
    assert_eq!(
        instances::read_file(account, "a", path).await.unwrap(),
        None
    );
    for content in ["{}", "{\"a\": \"ä\"}", ""] {
        instances::write_file(account, "a", path, content.as_bytes())
            .await
            .unwrap();
        let read = instances::read_file(account, "a", path)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(read, content.as_bytes());
    }
    let mode = crate::support::run(&sandbox, &format!("stat -c %a {path}")).await;
    assert_eq!(mode, "600");
    crate::support::run(&sandbox, "mkdir /tmp/records/directory").await;
    let lost = instances::write_file(account, "a", "/tmp/records/directory", b"{}").await;
    assert_eq!(lost.unwrap_err().kind(), ErrorKind::Unavailable);
    let large = vec![0; 2 << 20];
    let refused = instances::write_file(account, "a", path, &large)
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    let wrong = instances::read_file(account, "a", "relative")
        .await
        .unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Config);
    instances::touch(account, &sandbox.instance_id().unwrap())
        .await
        .unwrap();
    for _ in 0..2 {
        instances::stop(account, "a").await.unwrap();
    }
    let found = instances::find(account, "a").await.unwrap().unwrap();
    assert_eq!(found.state, InstanceState::Stopped);
    let stopped = instances::read_file(account, "a", path).await.unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Unavailable, "{stopped}");
    for _ in 0..2 {
        instances::start(account, "a").await.unwrap();
    }
    assert!(instances::delete(account, "a").await.unwrap());
    for gone in [
        instances::start(account, "a").await,
        instances::stop(account, "a").await,
    ] {
        assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
    }
    place.standin.close().await;
}
