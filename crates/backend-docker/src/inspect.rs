//! A container as the daemon describes it.

use std::collections::HashMap;

use backend_core::{Error, Result};
use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::InspectContainerOptions;

use crate::daemon::Daemon;
use crate::labels;

/// The exit code of a container whose program does not exist.
const NOT_FOUND: i64 = 127;

/// The current state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContainerState {
    /// It does not exist.
    Missing,
    /// It was created and never started.
    Created,
    /// It is running.
    Running,
    /// It is paused.
    Paused,
    /// It has ended and can be started again.
    Stopped,
    /// It is being removed or restarted.
    Changing,
}

#[derive(Debug, Clone)]
pub(crate) struct ContainerInfo {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: ContainerState,
    pub(crate) exit_code: i64,
    pub(crate) out_of_memory: bool,
    pub(crate) labels: HashMap<String, String>,
    pub(crate) image: String,
    pub(crate) working_dir: String,
    pub(crate) read_only: bool,
    /// Whether this crate created it, and so chose all of its configuration.
    pub(crate) ours: bool,
}

impl ContainerState {
    /// Reads the daemon's word for it.
    pub(crate) fn of(status: Option<impl ToString>) -> Self {
        match status.map(|status| status.to_string()).as_deref() {
            Some("created") => Self::Created,
            Some("running") => Self::Running,
            Some("paused") => Self::Paused,
            Some("exited") => Self::Stopped,
            _ => Self::Changing,
        }
    }
}

impl ContainerInfo {
    /// Inspects a container. Returns `None` if it does not exist.
    pub(crate) async fn find(daemon: &Daemon, container: &str) -> Result<Option<Self>> {
        let client = daemon.negotiated().await?;
        let asked = client.inspect_container(container, None::<InspectContainerOptions>);
        Ok(daemon.found(asked.await)?.map(Self::new))
    }

    fn new(answer: ContainerInspectResponse) -> Self {
        let state = answer.state.unwrap_or_default();
        let config = answer.config.unwrap_or_default();
        let host = answer.host_config.unwrap_or_default();
        let labels = config.labels.unwrap_or_default();
        let name = answer.name.unwrap_or_default();
        Self {
            id: answer.id.unwrap_or_default(),
            name: name.trim_start_matches('/').to_owned(),
            state: ContainerState::of(state.status),
            ours: labels::is_ours(&labels, &host),
            exit_code: state.exit_code.unwrap_or_default(),
            out_of_memory: state.oom_killed.unwrap_or_default(),
            labels,
            image: answer.image.unwrap_or_default(),
            working_dir: config.working_dir.unwrap_or_default(),
            read_only: host.readonly_rootfs.unwrap_or_default(),
        }
    }

    /// Returns the error for a container that is not running.
    pub(crate) fn state_error(&self, name: &str) -> Option<Error> {
        let text = match self.state {
            ContainerState::Missing | ContainerState::Running => return None,
            ContainerState::Created => {
                format!("the container {name} was never started; the next call starts it")
            }
            ContainerState::Paused => {
                format!("the container {name} is paused; unpause it, or start the sandbox")
            }
            ContainerState::Stopped if self.out_of_memory => format!(
                "the container {name} ran out of memory and was ended; the next call starts it again, and a larger `memory` keeps it alive"
            ),
            ContainerState::Stopped if self.exit_code == NOT_FOUND && self.ours => format!(
                "the container {name} could not be kept alive: its image has no `sleep`; choose one with a shell and the usual tools, or reach its files by an agent, which `agentbox agent install` makes"
            ),
            ContainerState::Stopped => format!(
                "the container {name} ended with code {}; the next call starts it again",
                self.exit_code
            ),
            ContainerState::Changing => {
                format!("the container {name} is being removed or restarted; try again in a moment")
            }
        };
        Some(Error::unavailable(text))
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::{ContainerState as TheirState, ContainerStateStatusEnum};

    use super::*;

    #[test]
    fn the_next_step_is_one_that_a_model_or_its_user_can_take() {
        use ContainerStateStatusEnum as Theirs;
        for (status, next) in [
            (Theirs::CREATED, "the next call starts it"),
            (Theirs::PAUSED, "unpause it, or start the sandbox"),
            (Theirs::EXITED, "the next call starts it again"),
            (Theirs::REMOVING, "try again in a moment"),
        ] {
            let state = TheirState {
                status: Some(status),
                ..TheirState::default()
            };
            let found = ContainerInfo::new(ContainerInspectResponse {
                state: Some(state),
                ..ContainerInspectResponse::default()
            });
            let state_error = found.state_error("box").unwrap();
            assert!(state_error.message().ends_with(next), "{state_error}");
        }
    }
}
