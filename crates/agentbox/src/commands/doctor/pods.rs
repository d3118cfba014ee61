//! Checks for pods: the cluster, the rights in its namespace for pods and for sessions,
//! leftovers of earlier runs.

use std::time::Duration;

use backend_k8s::{Cluster, Network};

use super::UsedBackend;
use super::finding::Finding;
use crate::backend::k8s::settings::K8sSettings;
use crate::backend::kind::Kind;
use crate::exit::Failure;

/// Time allowed for a cluster to answer all questions.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the cluster, if the backend uses it: it is not of this machine, and a kubeconfig
/// may start programs.
pub(super) async fn findings(backend: &UsedBackend) -> Vec<Finding> {
    if !backend.uses(Kind::K8s) {
        return Vec::new();
    }
    let asked = tokio::time::timeout(CLUSTER_TIMEOUT, ask(backend)).await;
    match asked {
        Ok(Ok(findings)) => findings,
        Ok(Err(failure)) => vec![cluster_finding().wrong(&failure)],
        Err(_) => {
            let fix = "see whether the cluster runs and can be reached from here";
            vec![cluster_finding().missing("the cluster does not answer", fix)]
        }
    }
}

fn cluster_finding() -> Finding {
    Finding::new("kubernetes", "pods").needed(true)
}

async fn ask(backend: &UsedBackend) -> Result<Vec<Finding>, Failure> {
    let k8s = K8sSettings::configured(&backend.tables)?;
    let cluster = k8s.cluster().await?;
    let info = cluster.info().await;
    let info = info.map_err(|error| Failure::environment(error.to_string()))?;
    let found = format!("version {}, namespace {}", info.version, info.namespace);
    let has_policy = k8s.network == Network::None;
    let (rights, sessions, leftovers) = tokio::join!(
        rights(&cluster, has_policy),
        session_rights(&k8s, &cluster),
        leftovers(&cluster)
    );
    Ok(vec![
        cluster_finding().ok(found),
        rights,
        sessions,
        leftovers,
    ])
}

/// Asks the cluster whether this user has every right that pods need. Those without a
/// network also need a network policy, which may be there already.
async fn rights(cluster: &Cluster, has_policy: bool) -> Finding {
    let finding = Finding::new("rights", "creating pods and working in them").needed(true);
    let missing = match cluster.missing_rights().await {
        Ok(missing) => missing,
        Err(error) => return finding.wrong(&error),
    };
    let (policy, missing): (Vec<_>, Vec<_>) = missing
        .into_iter()
        .partition(|right| right.ends_with("networkpolicies"));
    if !missing.is_empty() {
        return finding.missing(
            format!("this user may not {}", missing.join(", ")),
            "grant the rights in docs/kubernetes-rbac.yaml, or name another namespace",
        );
    }
    if has_policy && !policy.is_empty() {
        return finding.needed(false).doubtful(
            format!("this user may not {}", policy.join(", ")),
            "let an administrator create the network policy and grant get, or set network = \"open\" in [k8s]",
        );
    }
    finding.ok("this user has all of them")
}

/// Asks for the rights of sessions, which only servers with named clients have. Theirs have
/// no variables, which would be in secrets.
async fn session_rights(k8s: &K8sSettings, cluster: &Cluster) -> Finding {
    let finding = Finding::new("session rights", "sessions of the clients of a server");
    let engine = match k8s.engine_builder(cluster.clone()).build() {
        Ok(engine) => engine,
        Err(error) => return finding.wrong(&error),
    };
    let mut missing = match engine.missing_rights().await {
        Ok(missing) => missing,
        Err(error) => return finding.wrong(&error),
    };
    missing.retain(|right| !right.ends_with(" secrets"));
    if missing.is_empty() {
        return finding.ok("this user has all of them");
    }
    finding.missing(
        format!("this user may not {}", missing.join(", ")),
        "for sessions, grant the role agentbox-sessions in docs/kubernetes-rbac.yaml",
    )
}

async fn leftovers(cluster: &Cluster) -> Finding {
    let finding = Finding::new("left pods", "pods of programs that crashed");
    match backend_k8s::leftovers(cluster).await {
        Ok(found) if found.is_empty() => finding.ok("there are none"),
        Ok(found) => finding.doubtful(
            format!("there are {}", found.len()),
            "delete them with agentbox sandboxes reap --backend k8s; the next pod that is started does so too",
        ),
        Err(error) => finding.doubtful(error.chain().to_string(), "look at kubectl get pods"),
    }
}
