//! The states of a container and the transitions between them.

use std::collections::HashMap;

use backend_core::ops::StopMode;
use backend_core::{Error, ErrorKind, Quoted, Result};
use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum};
use bollard::query_parameters::{InspectContainerOptions, StartContainerOptions};

use super::Core;
use super::state::{Demand, Presence, State};
use crate::daemon;
use crate::labels;

/// The exit code of a container whose program does not exist.
const NOT_FOUND: i64 = 127;

/// The reason for making a container ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartReason {
    /// An operation needs the container.
    OnDemand,
    /// The caller explicitly asked to start it. Then a removed container may be created
    /// again, and a paused one is resumed.
    Explicit,
}

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

/// An existing container.
#[derive(Debug, Clone)]
pub(crate) struct ContainerInfo {
    pub(crate) id: String,
    /// Its current name.
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

impl ContainerInfo {
    pub(crate) fn new(answer: ContainerInspectResponse) -> Self {
        let state = answer.state.unwrap_or_default();
        let config = answer.config.unwrap_or_default();
        let host = answer.host_config.unwrap_or_default();
        use ContainerStateStatusEnum as Theirs;
        let current = match state.status {
            Some(Theirs::CREATED) => ContainerState::Created,
            Some(Theirs::RUNNING) => ContainerState::Running,
            Some(Theirs::PAUSED) => ContainerState::Paused,
            Some(Theirs::EXITED) => ContainerState::Stopped,
            _ => ContainerState::Changing,
        };
        let labels = config.labels.unwrap_or_default();
        let name = answer.name.unwrap_or_default();
        Self {
            id: answer.id.unwrap_or_default(),
            name: name.trim_start_matches('/').to_owned(),
            state: current,
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
    fn state_error(&self, name: &str) -> Option<Error> {
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

impl Core {
    /// Inspects the container. Returns `None` if it does not exist.
    pub(super) async fn find(&self) -> Result<Option<ContainerInfo>> {
        let client = self.daemon.negotiated().await?;
        let asked = client.inspect_container(&self.name, None::<InspectContainerOptions>);
        match asked.await {
            Ok(answer) => Ok(Some(ContainerInfo::new(answer))),
            Err(error) if daemon::is_missing(&error) => Ok(None),
            Err(error) => Err(self.daemon.error(error)),
        }
    }

    pub(super) async fn ready(&self, reason: StartReason) -> Result<()> {
        let ready = self.ready_now(reason).await;
        let mut state = self.state();
        match ready {
            Ok(()) => state.presence = Presence::Running,
            Err(_) => state.set_not_running(),
        }
        drop(state);
        ready
    }

    async fn ready_now(&self, reason: StartReason) -> Result<()> {
        if self.state().demand == Demand::Closed {
            return Err(Error::unavailable("the sandbox was dropped; make another"));
        }
        match self.find().await? {
            Some(found) => self.resume(found, reason).await,
            None => {
                let lost = self.state().existed() && reason == StartReason::OnDemand;
                match &self.settings {
                    Some(settings) if !lost => self.create(settings).await,
                    _ => Err(self.removed()),
                }
            }
        }
    }

    /// Makes an existing container run.
    pub(super) async fn resume(&self, found: ContainerInfo, reason: StartReason) -> Result<()> {
        self.check(&found).await?;
        {
            let mut state = self.state();
            state.set_seen();
            state.bound = found.labels.get(labels::AGENT).cloned();
            state.read_only = found.read_only;
            if found.state != ContainerState::Running {
                state.uploaded = None;
            }
        }
        if self.state().architecture.is_empty() {
            self.learn_architecture(&found.image).await?;
        }
        match found.state {
            ContainerState::Running => Ok(()),
            ContainerState::Paused if reason == StartReason::Explicit => self.pause(false).await,
            ContainerState::Created => {
                self.plan_provisioning().await?;
                self.start().await
            }
            ContainerState::Stopped => self.start().await,
            ContainerState::Missing | ContainerState::Paused | ContainerState::Changing => {
                let state_error = found.state_error(&self.name);
                Err(state_error.unwrap_or_else(|| self.removed()))
            }
        }
    }

    /// Refuses a container that does not belong to this object.
    async fn check(&self, found: &ContainerInfo) -> Result<()> {
        // Created by this object: there is nothing to prove.
        if self.state().attempted {
            return Ok(());
        }
        if !found.ours && !self.foreign {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "the container {} is not a sandbox; choose another name, or attach to it with `allow_foreign`",
                    self.name
                ),
            ));
        }
        let Some(settings) = &self.settings else {
            return Ok(());
        };
        let wanted = self.fingerprint(settings).await?;
        if found.labels.get(labels::CONFIG) == Some(&wanted) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "the container {} was created from another image or with other options; remove it, or choose another name",
                self.name
            ),
        ))
    }

    /// Starts a stopped container.
    pub(super) async fn start(&self) -> Result<()> {
        let client = self.daemon.client();
        let started = client.start_container(&self.name, None::<StartContainerOptions>);
        match started.await {
            Ok(()) => {
                self.state().starts += 1;
                Ok(())
            }
            Err(error) if daemon::is_missing(&error) => {
                // The daemon gives the same answer for a missing program.
                match self.find().await? {
                    None => Err(self.removed()),
                    Some(_) => Err(self.start_error(error)),
                }
            }
            Err(error) => Err(self.start_error(error)),
        }
    }

    fn start_error(&self, error: bollard::errors::Error) -> Error {
        if daemon::status(&error).is_none() {
            return self.daemon.error(error);
        }
        let text = error.to_string();
        Error::unavailable(format!(
            "the container {} cannot be started: {}; change its options or its image",
            self.name,
            Quoted::new(&text)
        ))
        .with_source(error)
    }

    pub(super) async fn stop(&self, mode: StopMode) -> Result<()> {
        let is_ours = {
            let state = self.state();
            state.attempted || state.existed()
        };
        match self.stop_now(mode).await {
            // If the daemon never answered, there is nothing of ours to stop.
            Err(error) if !is_ours && error.kind() == ErrorKind::Unavailable => Ok(()),
            stopped => stopped,
        }
    }

    async fn stop_now(&self, mode: StopMode) -> Result<()> {
        if mode == StopMode::Purge {
            // 409: it is already being removed.
            match self.daemon.remove_container(&self.name).await {
                Ok(()) => {}
                Err(error) if matches!(daemon::status(&error), Some(404 | 409)) => {}
                Err(error) => return Err(self.daemon.error(error)),
            }
            let mut state = self.state();
            let architecture = std::mem::take(&mut state.architecture);
            *state = State {
                architecture,
                starts: state.starts,
                demand: state.demand,
                presence: Presence::initial(self.settings.as_ref()),
                ..State::default()
            };
            return Ok(());
        }
        {
            let mut state = self.state();
            state.set_not_running();
            state.uploaded = None;
        }
        match self.daemon.stop_container(&self.name).await {
            Ok(()) => Ok(()),
            Err(error) if matches!(daemon::status(&error), Some(304 | 404)) => Ok(()),
            Err(error) => Err(self.daemon.error(error)),
        }
    }

    pub(super) async fn pause(&self, pause: bool) -> Result<()> {
        let client = self.daemon.client();
        let (done, wanted) = if pause {
            (
                client.pause_container(&self.name).await,
                ContainerState::Paused,
            )
        } else {
            (
                client.unpause_container(&self.name).await,
                ContainerState::Running,
            )
        };
        let Err(error) = done else {
            return Ok(());
        };
        match self.find().await? {
            Some(found) if found.state == wanted => Ok(()),
            Some(found) if pause => {
                let state_error = found.state_error(&self.name);
                Err(state_error.unwrap_or_else(|| self.daemon.error(error)))
            }
            Some(_) => Err(self.daemon.error(error)),
            None => Err(self.removed()),
        }
    }

    /// Returns why the container does not answer, or `None` if it should.
    pub(super) async fn diagnosis(&self) -> Option<Error> {
        let reason = match self.find().await {
            Ok(Some(found)) => found.state_error(&self.name),
            Ok(None) => Some(self.removed()),
            Err(error) => Some(error),
        };
        if reason.is_some() {
            self.state().set_not_running();
        }
        reason
    }

    /// The error for a container that is running again, but ended while a command ran.
    pub(super) fn ended_meanwhile(&self) -> Error {
        Error::unavailable(format!(
            "the container {} ended while the command ran; run it again",
            self.name
        ))
    }

    /// The error for a container that no longer exists.
    pub(super) fn removed(&self) -> Error {
        let name = &self.name;
        Error::unavailable(match (&self.settings, self.state().existed()) {
            (Some(_), true) => format!(
                "the container {name} was removed, and its files with it; a new one is created when the sandbox, or the program that uses it, is started again"
            ),
            (Some(_), false) => {
                format!("the container {name} has not been created yet; the next call creates it")
            }
            (None, _) => format!(
                "the container {name} no longer exists; create a sandbox or attach to another container"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ContainerState as TheirState;

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
