//! The requests to the API server that sessions cost.

use std::sync::Arc;
use std::time::Duration;

use backend_core::BackendExt as _;
use kube::Client;
use sessions::{Engine as _, SessionManager};

use crate::support::k8s::{Place, manager, pod_of, run, runtime};
use crate::support::requests::Requests;

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn none_for_a_call_and_one_watch_for_all_sessions() {
    const USERS: [&str; 3] = ["alice", "bob", "carol"];
    let mut place = Place::new().await;
    let requests = Requests::of(&mut place, Client::try_default().await.unwrap());
    let engine = place.bare_engine().build().unwrap();
    let manager = SessionManager::builder()
        .engine(Arc::new(engine))
        // Times of use are not written meanwhile.
        .write_back_interval(Duration::from_secs(3600))
        .build()
        .unwrap();
    for user in USERS {
        run(&manager.get_or_create(user).await.unwrap(), "true").await;
    }
    let opened = requests.take();
    let watches = opened.iter().filter(|it| it.contains("watch=true"));
    assert_eq!(watches.count(), 1, "{opened:#?}");
    assert!(opened.len() <= 10 * USERS.len(), "{opened:#?}");
    for user in USERS {
        let session = manager.get_or_create(user).await.unwrap();
        // Whether its pod is still there.
        assert_eq!(requests.take().len(), 1);
        for _ in 0..20 {
            session.write_file("a.txt", "one\n").await.unwrap();
            assert_eq!(session.read_to_string("a.txt").await.unwrap(), "one\n");
            assert_eq!(run(&session, "cat a.txt").await, "one");
        }
        assert_eq!(requests.take(), [""; 0]);
    }
    for user in USERS {
        assert!(manager.purge(user).await.unwrap());
    }
    let purged = requests.take();
    assert!(purged.len() <= 5 * USERS.len(), "{purged:#?}");
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn two_for_a_claim_from_a_pool() {
    let mut place = Place::new().await;
    let requests = Requests::of(&mut place, Client::try_default().await.unwrap());
    let engine = place.bare_engine().pool(runtime(), 1).build().unwrap();
    engine.warm().await.unwrap();
    let manager = manager(&engine);
    requests.take();
    let alice = manager.get_or_create("alice").await.unwrap();
    let opened = requests.take();
    let pod = pod_of(&alice).await;
    // The pool is filled again, and the process gives signs of life.
    let lease = opened
        .iter()
        .filter(|it| it.starts_with("POST ") && it.contains("/leases?"));
    let marks = opened.iter().filter(|it| it.contains(&pod));
    assert_eq!(lease.count(), 1, "{opened:#?}");
    let marks: Vec<_> = marks.collect();
    assert_eq!(marks.len(), 1, "{opened:#?}");
    assert!(marks[0].starts_with("PATCH "), "{opened:#?}");
    assert!(manager.purge("alice").await.unwrap());
    engine.close().await.unwrap();
    place.is_empty().await;
}
