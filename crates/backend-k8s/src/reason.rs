//! Why a pod is not ready, or does not run any more, as its status tells it.

use backend_core::Quoted;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Pod,
    PodCondition, PodStatus,
};

use crate::labels::CONTAINER;

/// The state of a pod. The texts complete a sentence that begins with the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PodState {
    /// The sandbox's container runs.
    Running,
    /// It is being started, and what delays it, if that is told.
    Starting(Option<String>),
    /// It is being started, and all attempts fail for the same reason.
    Failing(String),
    /// It has ended for good.
    Ended(String),
    /// It is being deleted.
    Deleting(String),
    /// Its node does not answer.
    Lost(String),
}

impl PodState {
    /// Judges a pod.
    pub(crate) fn of(pod: &Pod) -> Self {
        let Some(status) = &pod.status else {
            return Self::Starting(None);
        };
        if pod.metadata.deletion_timestamp.is_some() {
            return Self::Deleting(deletion(status));
        }
        if matches!(status.phase.as_deref(), Some("Failed" | "Succeeded")) {
            return Self::Ended(end(status));
        }
        let Some(container) = sandbox(status) else {
            return Self::Starting(unscheduled(status));
        };
        let state = container.state.clone().unwrap_or_default();
        if state.running.is_some() {
            return lost(pod, container).map_or(Self::Running, Self::Lost);
        }
        if let Some(failing) = init_failure(status) {
            return failing;
        }
        match (&state.terminated, &state.waiting) {
            (Some(ended), _) => Self::Starting(Some(ended_text(ended))),
            (None, Some(waiting)) => waited(waiting, container),
            (None, None) => Self::Starting(None),
        }
    }

    /// Returns why the pod does not run; `None` if it does, or nothing is told.
    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Running => None,
            Self::Starting(reason) => reason.as_deref(),
            Self::Failing(reason)
            | Self::Ended(reason)
            | Self::Deleting(reason)
            | Self::Lost(reason) => Some(reason),
        }
    }
}

/// Returns how often the sandbox's container was restarted.
pub(crate) fn restarts(pod: &Pod) -> i32 {
    let container = pod.status.as_ref().and_then(sandbox);
    container.map_or(0, |container| container.restart_count)
}

/// Returns why the sandbox's container was last restarted.
pub(crate) fn restart_reason(pod: &Pod) -> String {
    let container = pod.status.as_ref().and_then(sandbox);
    let state = container.and_then(|container| container.last_state.as_ref());
    let ended = state.and_then(|state| state.terminated.as_ref());
    ended.map_or_else(|| "has ended".to_owned(), ended_text)
}

/// Whether the sandbox could not be started because its image has no shell.
pub(crate) fn lacks_shell(pod: &Pod) -> bool {
    let Some(container) = pod.status.as_ref().and_then(sandbox) else {
        return false;
    };
    let states = [&container.state, &container.last_state];
    let messages = states.into_iter().flatten().filter_map(|state| {
        let waiting = state.waiting.as_ref().and_then(|it| it.message.as_deref());
        let ended = state.terminated.as_ref();
        waiting.or(ended.and_then(|it| it.message.as_deref()))
    });
    // The words of runc and of crun.
    let mut messages = messages.filter(|text| text.contains("executable file"));
    messages.any(|text| {
        let names_it = text.contains("\"sh\"") || text.contains("`sh`");
        names_it && (text.contains("not found") || text.contains("no such file"))
    })
}

fn sandbox(status: &PodStatus) -> Option<&ContainerStatus> {
    let mut containers = status.container_statuses.iter().flatten();
    containers.find(|container| container.name == CONTAINER)
}

fn condition<'a>(status: &'a PodStatus, kind: &str) -> Option<&'a PodCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == kind)
}

/// Adds what the cluster says to a text.
fn told(text: &str, message: Option<&str>) -> String {
    match message.map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => format!("{text}: {}", Quoted::new(message)),
        None => text.to_owned(),
    }
}

fn deletion(status: &PodStatus) -> String {
    let target = condition(status, "DisruptionTarget");
    let Some(target) = target.filter(|target| target.status == "True") else {
        return "is being deleted".to_owned();
    };
    let text = match target.reason.as_deref() {
        Some("PreemptionByScheduler") => "was evicted for a more important pod",
        Some("DeletionByTaintManager") => "was evicted from its node",
        Some("DeletionByPodGC") => "is being deleted because its node is gone",
        _ => "was evicted",
    };
    told(text, target.message.as_deref())
}

fn end(status: &PodStatus) -> String {
    let message = status.message.as_deref();
    match status.reason.as_deref() {
        Some("Evicted") => told("was evicted", message),
        Some("DeadlineExceeded") => told("has passed its active deadline", message),
        Some("NodeLost" | "NodeShutdown" | "Terminated") => told("has lost its node", message),
        Some(reason) => told(&format!("was ended ({})", Quoted::new(reason)), message),
        None => {
            let state = sandbox(status).and_then(|container| container.state.as_ref());
            let ended = state.and_then(|state| state.terminated.as_ref());
            ended.map_or_else(|| told("has ended", message), ended_text)
        }
    }
}

fn unscheduled(status: &PodStatus) -> Option<String> {
    let scheduled = condition(status, "PodScheduled").filter(|it| it.status == "False")?;
    let message = scheduled.message.as_deref();
    Some(told("cannot be placed on a node", message))
}

/// The kubelet says whether a container is ready. If only the pod is not, and no reason is
/// given, that is because the cluster no longer hears from the kubelet. A kubelet that is about
/// to end the pod gives a reason.
fn lost(pod: &Pod, container: &ContainerStatus) -> Option<String> {
    let ready = condition(pod.status.as_ref()?, "Ready")?;
    let has_reason = ready.reason.as_deref().is_some_and(|it| !it.is_empty());
    if ready.status != "False" || !container.ready || has_reason {
        return None;
    }
    let node = pod.spec.as_ref()?.node_name.as_deref().unwrap_or_default();
    let text = format!(
        "is on the node {}, which does not answer",
        Quoted::new(node)
    );
    Some(told(&text, ready.message.as_deref()))
}

/// Judges the containers that run before the sandbox's.
fn init_failure(status: &PodStatus) -> Option<PodState> {
    status
        .init_container_statuses
        .iter()
        .flatten()
        .find_map(|container| {
            let ContainerState {
                terminated,
                waiting,
                ..
            } = container.state.as_ref()?;
            let named = |text: String| {
                format!(
                    "cannot prepare its files: the init container {} {text}",
                    container.name
                )
            };
            match (terminated, waiting) {
                (Some(ended), _) if ended.exit_code != 0 => {
                    Some(PodState::Starting(Some(named(ended_text(ended)))))
                }
                (None, Some(waiting)) => match waited(waiting, container) {
                    PodState::Failing(reason) => Some(PodState::Failing(named(reason))),
                    PodState::Starting(reason) => Some(PodState::Starting(Some(named(reason?)))),
                    _ => None,
                },
                _ => None,
            }
        })
}

/// Judges a container that waits for its start.
fn waited(waiting: &ContainerStateWaiting, container: &ContainerStatus) -> PodState {
    let reason = waiting.reason.as_deref().unwrap_or_default();
    let message = waiting.message.as_deref();
    let image = || format!("cannot get the image {}", Quoted::new(&container.image));
    match reason {
        "" | "ContainerCreating" | "PodInitializing" => PodState::Starting(None),
        // The node tries again.
        "ErrImagePull" | "RegistryUnavailable" | "ImageInspectError" => {
            PodState::Starting(Some(told(&image(), message)))
        }
        "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull" => {
            PodState::Failing(told(&image(), message))
        }
        "CreateContainerConfigError" => {
            PodState::Failing(told("has options that its node refuses", message))
        }
        "CrashLoopBackOff" => {
            let last = container.last_state.as_ref();
            let ended = last.and_then(|last| last.terminated.as_ref());
            PodState::Failing(match ended {
                Some(ended) => format!("does not stay: it {}", ended_text(ended)),
                None => told("does not stay", message),
            })
        }
        reason => {
            let text = format!("cannot be started ({})", Quoted::new(reason));
            PodState::Starting(Some(told(&text, message)))
        }
    }
}

/// The exit code of a process that SIGKILL ended.
const KILLED: i32 = 137;

fn ended_text(ended: &ContainerStateTerminated) -> String {
    let code = ended.exit_code;
    let text = match ended.reason.as_deref() {
        Some("OOMKilled") => {
            return "ran out of memory; a larger `memory` keeps it alive".to_owned();
        }
        // Some runtimes report the end before they know that memory was the reason.
        Some("" | "Error" | "Completed") | None if code == KILLED => format!(
            "was killed (code {code}); if it ran out of memory, a larger `memory` keeps it alive"
        ),
        Some("" | "Error" | "Completed") | None => format!("ended with code {code}"),
        Some(reason) => format!("ended with code {code} ({})", Quoted::new(reason)),
    };
    told(&text, ended.message.as_deref())
}

#[cfg(test)]
mod tests;
