//! The requests to the API server that sessions cost.

use std::sync::Arc;
use std::time::Duration;

use backend_core::BackendExt as _;
use kube::Client;
use sessions::SessionManager;

use crate::support::k8s::{Place, run};
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
    assert!(opened.len() <= 12 * USERS.len(), "{opened:#?}");
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
    assert!(purged.len() <= 8 * USERS.len(), "{purged:#?}");
    place.is_empty().await;
}
