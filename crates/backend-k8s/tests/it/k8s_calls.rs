//! The requests to the API server that operations cost.

use backend_core::ops::Command;
use backend_core::{BackendExt as _, Sandbox as _};
use backend_k8s::Cluster;
use futures::StreamExt as _;

use crate::support::observed::{is_exec, is_watch, observed};
use crate::support::place::Place;
use crate::support::sandbox::{purge, run};

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn none_once_the_agent_is_up() {
    let place = Place::new().await;
    let (client, requests) = observed(&place.client, &place.namespace);
    let cluster = Cluster::from_client(client, &*place.namespace);
    let sandbox = place.builder().cluster(cluster).build().unwrap();
    sandbox.start().await.unwrap();
    requests.take();
    for number in 0..50 {
        let name = format!("d/{number}.txt");
        sandbox.write_file(&name, "one\n").await.unwrap();
        sandbox.replace_text(&name, "one", "two").await.unwrap();
        assert_eq!(sandbox.read_to_string(&name).await.unwrap(), "two\n");
        assert_eq!(run(&sandbox, &format!("cat {name}")).await, "two");
    }
    assert_eq!(sandbox.list_dir("d").await.unwrap().entries.len(), 50);
    assert_eq!(
        sandbox.find_files("**/*.txt").await.unwrap().files.len(),
        50
    );
    assert_eq!(sandbox.search_text("two").await.unwrap().files.len(), 50);
    let events = sandbox.stream(Command::new("seq 1000")).await.unwrap();
    assert!(events.all(|event| async move { event.is_ok() }).await);
    let shell = sandbox.shell_start(Command::new("sleep 4325")).await;
    sandbox.shell_kill(&shell.unwrap().id).await.unwrap();
    sandbox.stats().await.unwrap();
    assert_eq!(requests.take(), [""; 0]);
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_handful_for_a_pod_and_one_watch_for_all() {
    const PODS: usize = 5;
    let place = Place::new().await;
    let (client, requests) = observed(&place.client, &place.namespace);
    let cluster = Cluster::from_client(client, &*place.namespace);
    let builder = || place.builder().cluster(cluster.clone());
    let first = builder().build().unwrap();
    run(&first, "true").await;
    // Some of these are made once in a process.
    requests.take();
    let all: Vec<_> = (0..PODS).map(|_| builder().build().unwrap()).collect();
    let starts = all.iter().map(|sandbox| run(sandbox, "true"));
    futures::future::join_all(starts).await;
    let started = requests.take();
    let count = |wanted: fn(&str) -> bool| started.iter().filter(|it| wanted(it)).count();
    assert_eq!(count(|it| it.starts_with("POST ")), PODS, "{started:#?}");
    assert!(count(is_exec) <= 2 * PODS, "{started:#?}");
    assert!(count(is_watch) <= 1, "{started:#?}");
    assert!(started.len() <= 8 * PODS, "{started:#?}");
    futures::future::join_all(all.iter().map(purge)).await;
    let purged = requests.take();
    assert!(purged.len() <= 3 * PODS, "{purged:#?}");
    purge(&first).await;
    place.end().await;
}
