//! The requests to the API server that sessions cost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::BackendExt as _;
use backend_k8s::Cluster;
use http::Request;
use kube::Client;
use kube::client::Body;
use sessions::SessionManager;

use crate::support::k8s::{Place, run};

type Requests = Arc<Mutex<Vec<String>>>;

/// Makes engines use a client whose requests are returned, as `METHOD PATH?QUERY`.
async fn observe(place: &mut Place) -> Requests {
    let client = Client::try_default().await.unwrap();
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let service = tower::service_fn(move |request: Request<Body>| {
        let line = format!("{} {}", request.method(), request.uri());
        seen.lock().unwrap().push(line);
        let client = client.clone();
        async move { client.send(request).await }
    });
    let client = Client::new(service, &*place.namespace);
    place.cluster = Cluster::from_client(client, &*place.namespace);
    requests
}

fn take(requests: &Requests) -> Vec<String> {
    std::mem::take(&mut *requests.lock().unwrap())
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn none_for_a_call_and_one_watch_for_all_sessions() {
    const USERS: [&str; 3] = ["alice", "bob", "carol"];
    let mut place = Place::new().await;
    let requests = observe(&mut place).await;
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
    let opened = take(&requests);
    let watches = opened.iter().filter(|it| it.contains("watch=true"));
    assert_eq!(watches.count(), 1, "{opened:#?}");
    assert!(opened.len() <= 12 * USERS.len(), "{opened:#?}");
    for user in USERS {
        let session = manager.get_or_create(user).await.unwrap();
        for _ in 0..20 {
            session.write_file("a.txt", "one\n").await.unwrap();
            assert_eq!(session.read_to_string("a.txt").await.unwrap(), "one\n");
            assert_eq!(run(&session, "cat a.txt").await, "one");
        }
    }
    assert_eq!(take(&requests), [""; 0]);
    for user in USERS {
        assert!(manager.purge(user).await.unwrap());
    }
    let purged = take(&requests);
    assert!(purged.len() <= 8 * USERS.len(), "{purged:#?}");
    place.is_empty().await;
}
