//! Faults of the API server: it closes watches.

use backend_k8s::Cluster;

use crate::support::observed::{changed, is_watch};
use crate::support::place::Place;
use crate::support::sandbox::{purge, run};
use crate::support::watched::Watched;

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_watch_that_closes_again_and_again_misses_nothing() {
    let place = Place::new().await;
    // The server closes each one after a second.
    let (client, requests) = changed(&place.client, &place.namespace, |request| {
        let asked = request.uri().to_string();
        if is_watch(&asked) {
            let parts = asked
                .split('&')
                .filter(|it| !it.starts_with("timeoutSeconds"));
            let short = format!("{}&timeoutSeconds=1", Vec::from_iter(parts).join("&"));
            *request.uri_mut() = short.parse().unwrap();
        }
    });
    let cluster = Cluster::from_client(client, &*place.namespace);
    let mut watched = Watched::new(&cluster);
    let mut closed = 0;
    while closed < 3 {
        // Through another client, whose requests are not counted.
        let sandbox = place.builder().build().unwrap();
        run(&sandbox, "sleep 1").await;
        watched.sees(sandbox.pod_name(), true).await;
        purge(&sandbox).await;
        watched.sees(sandbox.pod_name(), false).await;
        closed += requests.take().iter().filter(|it| is_watch(it)).count();
    }
    place.end().await;
}
