//! [`State`]: the last known state of a pod.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use sandbox_wire::agent::AgentBinary;
use tokio::time::Instant;

use crate::labels;
use crate::reason;
use crate::spec;

/// The time for which a pod that was seen to run is not looked at again.
const LOOK_LASTS: Duration = Duration::from_secs(1);

pub(super) type State = sandbox_shell::State<Facts>;

/// The facts about the sandbox.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The pod that is used.
    pub(super) pod: Option<PodFacts>,
    /// The last look at the pod, unless a start has made use of it.
    pub(super) look: Option<Look>,
    /// This object has stopped the sandbox, whose pod goes on running.
    pub(super) stopped: bool,
    /// The agent is in the pod already.
    pub(super) placed: bool,
    /// The processor of the pod's node. Empty if it is not known.
    pub(super) architecture: String,
    /// Until when the cluster may still tell that the pod has ended. That would explain how
    /// a stream has ended.
    pub(super) suspect_until: Option<Instant>,
    /// The path of the agent in the pod, and the agent, once it was asked for.
    pub(super) agent: Option<(String, AgentBinary)>,
}

/// A pod and one run of its container. If either changes while a command runs, the
/// command has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) uid: String,
    pub(crate) restarts: i32,
}

/// A look at a pod that ran.
#[derive(Debug)]
pub(super) struct Look {
    at: Instant,
    /// The pod, if it is not used yet.
    pub(super) pod: Option<PodFacts>,
}

impl Look {
    pub(super) fn now(pod: Option<PodFacts>) -> Self {
        let at = Instant::now();
        Self { at, pod }
    }

    /// Whether it was so recently that another one can be spared.
    pub(super) fn is_fresh(&self) -> bool {
        self.at.elapsed() < LOOK_LASTS
    }
}

/// The facts about a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodFacts {
    pub(super) run: Run,
    /// Why its container was last restarted, if it was since the pod is used.
    pub(super) restarted: Option<String>,
    /// Whether an init container has brought the agent.
    pub(super) has_agent: bool,
    /// Whether a restart loses what was written outside its volumes.
    pub(super) has_writable_root: bool,
}

impl PodFacts {
    pub(super) fn of(pod: &Pod) -> Self {
        let container = labels::container(pod);
        let command = container.and_then(|one| one.command.as_ref()?.first());
        let security = container.and_then(|one| one.security_context.as_ref());
        let read_only = security.and_then(|one| one.read_only_root_filesystem);
        Self {
            run: Run {
                uid: pod.metadata.uid.clone().unwrap_or_default(),
                restarts: reason::restarts(pod),
            },
            restarted: None,
            has_agent: command.is_some_and(|program| *program == spec::agent_path()),
            has_writable_root: read_only != Some(true),
        }
    }
}

impl Facts {
    pub(super) fn run(&self) -> Option<&Run> {
        self.pod.as_ref().map(|pod| &pod.run)
    }
}
