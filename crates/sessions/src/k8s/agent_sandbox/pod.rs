//! Which pod a claim has. Its controller names it first, and makes the claim ready a while later.

use std::future::pending;
use std::pin::pin;
use std::time::{Duration, Instant};

use backend_core::{Error, Quoted, Result, Sandbox as _};
use backend_k8s::K8sSandbox;
use backend_k8s::pods::objects::{self, Object};
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{AgentSandboxEngine, POLL_INTERVAL};

/// The name of the sandbox, and so of the pod, that its controller has chosen for a claim: a
/// label of the claim in agent-sandbox 0.4, an annotation in later versions.
const POD: &str = "agents.x-k8s.io/sandbox-name";

/// The time without a reported change after which it is looked at.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The time in which a claim gets a pod.
const READY_TIMEOUT: Duration = Duration::from_secs(120);

impl AgentSandboxEngine {
    /// Waits until a claim has a pod that is ready, and returns the pod's name. It is told
    /// before that, as soon as the claim names it.
    pub(super) async fn ready(
        &self,
        claim: &Object,
        named: &watch::Sender<Option<String>>,
    ) -> Result<String> {
        let tell = |claim: &Object| {
            named.send_if_modified(|known| {
                let is_new = known.is_none();
                if is_new {
                    *known = named_pod(claim).map(str::to_owned);
                }
                is_new && known.is_some()
            });
        };
        tell(claim);
        if let Some(pod) = ready_pod(&claim.content) {
            return Ok(pod.to_owned());
        }
        let (cluster, kind, begun) = (&self.0.cluster, self.kind().await?, Instant::now());
        let mut changes = objects::follow(cluster, kind, claim)?;
        loop {
            let found = match timeout(RECHECK_INTERVAL, changes.next()).await {
                Ok(Some(Ok(found))) => found,
                // It cannot be followed, or no longer.
                Ok(_) => {
                    sleep(POLL_INTERVAL).await;
                    objects::find(cluster, kind, &claim.name).await?
                }
                Err(_) => objects::find(cluster, kind, &claim.name).await?,
            };
            let found = found.filter(|found| found.uid == claim.uid && !found.is_ending);
            let Some(found) = found else {
                let message = "the session was ended meanwhile; open it again";
                return Err(Error::unavailable(message).about(&claim.name));
            };
            tell(&found);
            if let Some(pod) = ready_pod(&found.content) {
                return Ok(pod.to_owned());
            }
            if begun.elapsed() > READY_TIMEOUT {
                return Err(not_ready(&found));
            }
        }
    }

    /// Starts the sandbox of a new claim. A claim names its pod a while before it is ready, and the
    /// agent goes there meanwhile. Nothing of the session does: if the claim is ready with
    /// another pod after all, the agent's connection is closed, which ends it.
    pub(super) async fn started(&self, claim: &Object) -> Result<K8sSandbox> {
        let (named, mut told) = watch::channel(None);
        let mut ready = pin!(self.ready(claim, &named));
        let mut early = pin!(async {
            let pod = told.wait_for(Option::is_some).await;
            match pod.ok().and_then(|pod| pod.clone()) {
                Some(pod) => self.start_on(&pod).await,
                None => pending().await,
            }
        });
        let mut started = None;
        let pod = loop {
            tokio::select! {
                pod = &mut ready => break pod?,
                sandbox = &mut early, if started.is_none() => started = Some(sandbox),
            }
        };
        if named.borrow().as_deref() == Some(&*pod) {
            let started = match started {
                Some(started) => started,
                None => early.await,
            };
            // A pod that was not ready may have been too early for it.
            if let Ok(sandbox) = started {
                return Ok(sandbox);
            }
        }
        self.start_on(&pod).await
    }

    async fn start_on(&self, pod: &str) -> Result<K8sSandbox> {
        let sandbox = self.open(pod).await?;
        sandbox.start().await?;
        Ok(sandbox)
    }
}

/// Returns the pod that a claim is to have, which its controller decides first.
fn named_pod(claim: &Object) -> Option<&str> {
    let noted = claim.labels.get(POD).or(claim.annotations.get(POD));
    let noted = noted.map(String::as_str).filter(|name| !name.is_empty());
    noted.or_else(|| ready_pod(&claim.content))
}

/// Returns the pod of a claim that is ready: it has the name of the claim's sandbox.
fn ready_pod(content: &Value) -> Option<&str> {
    let status = content.get("status")?;
    let condition = ready_condition(status)?;
    let is_ready = condition.get("status")?.as_str()? == "True";
    let name = status.get("sandbox")?.get("name")?.as_str()?;
    (is_ready && !name.is_empty()).then_some(name)
}

fn ready_condition(status: &Value) -> Option<&Value> {
    let conditions = status.get("conditions")?.as_array()?;
    let is_ready = |one: &&Value| one.get("type").and_then(Value::as_str) == Some("Ready");
    conditions.iter().find(is_ready)
}

fn not_ready(claim: &Object) -> Error {
    let condition = claim.content.get("status").and_then(ready_condition);
    let said = condition.and_then(|condition| condition.get("message")?.as_str());
    let said = said.unwrap_or("nothing, so see whether its controller runs");
    Error::unavailable(format!(
        "agent-sandbox gives the session no pod; it says: {}",
        Quoted::new(said)
    ))
    .about(&claim.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_is_ready_when_it_says_so_and_names_its_sandbox() {
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let waiting =
            json!([{"type": "Other", "status": "True"}, {"type": "Ready", "status": "False"}]);
        let content = |conditions: &Value, sandbox: Value| json!({"status": {"conditions": conditions, "sandbox": sandbox}});
        let found = content(&ready, json!({"name": "box"}));
        assert_eq!(ready_pod(&found), Some("box"));
        for not in [
            content(&waiting, json!({"name": "box"})),
            content(&ready, json!({"name": ""})),
            content(&ready, json!({})),
            json!({"status": {}}),
            json!({}),
        ] {
            assert_eq!(ready_pod(&not), None, "{not}");
        }
    }
}
