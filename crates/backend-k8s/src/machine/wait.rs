//! Waiting for a pod to run or to go. All that wait in one namespace share one watch.

use std::time::Duration;

use backend_core::{Error, Result};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod as Object;
use tokio::time::{Instant, timeout_at};

use super::{Core, POLL_INTERVAL, events};
use crate::pods::{self, Pod, PodChange, PodPhase};
use crate::reason::{self, PodState};

/// The time for the reason of a failed start.
const REASON_TIMEOUT: Duration = Duration::from_secs(5);

/// The changes of a namespace's sandboxes.
pub(super) type Changes = BoxStream<'static, Result<PodChange>>;

impl Core {
    /// Begins to watch. What happens from now on is not missed.
    pub(super) fn changes(&self) -> Result<Changes> {
        pods::watch(&self.config.cluster, pods::SANDBOXES)
    }

    /// Waits until a pod runs, and returns it as it is then. A new pod is given up as soon
    /// as it keeps failing.
    pub(super) async fn running(
        &self,
        mut pod: Object,
        mut changes: Changes,
        is_new: bool,
    ) -> Result<Object> {
        let until = Instant::now() + self.config.start_timeout;
        loop {
            match PodState::of(&pod) {
                PodState::Running => return Ok(pod),
                PodState::Starting(Some(text)) | PodState::Failing(text)
                    if is_new && reason::lacks_shell(&pod) =>
                {
                    return Err(self.not_started(&text));
                }
                PodState::Failing(text) if is_new => return Err(self.not_started(&text)),
                PodState::Ended(text) | PodState::Deleting(text) => {
                    return Err(self.not_started(&text));
                }
                // A node that does not answer may only be busy.
                PodState::Starting(_) | PodState::Failing(_) | PodState::Lost(_) => {}
            }
            let next = timeout_at(until, self.next_look(&pod, &mut changes)).await;
            pod = match next {
                Ok(Ok(Some(pod))) => pod,
                Ok(Ok(None)) => return Err(self.not_started("was deleted")),
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(self.timed_out(pod).await),
            };
        }
    }

    /// Waits until a pod is gone.
    pub(super) async fn gone(&self, pod: &Object, mut changes: Changes) -> Result<()> {
        let until = Instant::now() + self.config.start_timeout;
        loop {
            match timeout_at(until, self.next_look(pod, &mut changes)).await {
                Ok(Ok(None)) => return Ok(()),
                Ok(Ok(Some(_))) => {}
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let next = "see whether its node runs, or choose another name";
                    return Err(self.unavailable("is still being deleted", next));
                }
            }
        }
    }

    /// Waits for a change of a pod that is worth a look, and looks. `None` if it is gone.
    async fn next_look(&self, pod: &Object, changes: &mut Changes) -> Result<Option<Object>> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        if self.config.foreign {
            // The watch is one of sandboxes.
            tokio::time::sleep(POLL_INTERVAL).await;
        } else {
            loop {
                match changes.next().await {
                    Some(Ok(PodChange::Changed(pod))) if pod.uid == uid => {
                        if is_worth_a_look(&pod) {
                            break;
                        }
                    }
                    Some(Ok(PodChange::Deleted(pod))) if pod.uid == uid => return Ok(None),
                    Some(Ok(PodChange::Listed(pods))) => {
                        let found = pods.iter().find(|pod| pod.uid == uid);
                        if found.is_none_or(|pod| is_worth_a_look(pod)) {
                            break;
                        }
                    }
                    // The watch goes on after an error.
                    Some(_) => {}
                    None => {
                        tokio::time::sleep(POLL_INTERVAL).await;
                        break;
                    }
                }
            }
        }
        let found = self.find_patiently().await?;
        Ok(found.filter(|found| found.metadata.uid.as_deref() == Some(uid)))
    }

    /// Looks at the pod, until the cluster answers. A start that failed because it was busy
    /// would delete a pod that other processes may use.
    async fn find_patiently(&self) -> Result<Option<Object>> {
        loop {
            match self.find().await {
                Err(error) if error.is_retryable() => {
                    tracing::debug!("a pod was not looked at: {}", error.chain());
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                found => return found,
            }
        }
    }

    fn not_started(&self, text: &str) -> Error {
        self.unavailable(text, "change its options or its image, or see the cluster")
    }

    /// The error for a pod that did not become ready in time.
    async fn timed_out(&self, pod: Object) -> Error {
        let seconds = self.config.start_timeout.as_secs();
        let reason = async {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let pod = self.find().await?.unwrap_or(pod);
            let told = PodState::of(&pod).reason().map(str::to_owned);
            Ok(match told {
                Some(told) => Some(told),
                None => events::problem(&self.config.cluster, &uid).await,
            })
        };
        let reason = match timeout_at(Instant::now() + REASON_TIMEOUT, reason).await {
            Ok(Ok(reason)) => reason,
            // The cluster does not answer.
            Ok(Err(error)) => return error,
            Err(_) => None,
        };
        let reason = reason.unwrap_or_else(|| "is still being started".to_owned());
        let next = format!(
            "it had {seconds} s to become ready: change its options or its image, or raise `start_timeout`"
        );
        self.unavailable(&reason, &next)
    }
}

/// Whether a change can be more than a step of a start that goes well.
fn is_worth_a_look(pod: &Pod) -> bool {
    let is_usual = match pod.reason.as_deref() {
        None => true,
        Some(reason) => ["ContainerCreating", "PodInitializing"].contains(&reason),
    };
    let has_ended = !matches!(pod.phase, PodPhase::Pending | PodPhase::Running);
    pod.ready || pod.deleting || has_ended || !is_usual
}
