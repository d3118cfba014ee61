//! The states of a container and the transitions between them.

use std::path::Path;
use std::sync::Mutex;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, ErrorKind, Quoted, Result};
use bollard::query_parameters::StartContainerOptions;
use sandbox_shell::{Lifecycle, StartReason};

use super::state::{Facts, State};
use super::{Core, is_source_missing};
use crate::daemon;
use crate::inspect::{ContainerInfo, ContainerState};
use crate::labels;
use crate::sockets;

#[async_trait]
impl Lifecycle for Core {
    type Facts = Facts;

    fn known(&self) -> &Mutex<State> {
        &self.state
    }

    async fn make_ready(&self, reason: StartReason) -> Result<()> {
        if let Some(found) = self.find().await? {
            return self.resume(found, reason).await;
        }
        let lost = self.state().existed() && reason == StartReason::OnDemand;
        match &self.config.settings {
            Some(settings) if !lost => self.create(settings).await,
            _ => Err(self.removed()),
        }
    }

    async fn end(&self, mode: StopMode) -> Result<()> {
        if mode == StopMode::Purge {
            // 409: it is already being removed.
            let removed = self.config.daemon.remove_container(&self.config.name).await;
            self.config.daemon.settled(removed, &[404, 409])?;
            let mut state = self.state();
            let architecture = std::mem::take(&mut state.architecture);
            let starts = state.starts;
            state.forget(self.config.initial_presence());
            (state.architecture, state.starts) = (architecture, starts);
            return Ok(());
        }
        {
            let mut state = self.state();
            state.set_not_running();
            state.uploaded = None;
        }
        let stopped = self.config.daemon.stop_container(&self.config.name).await;
        self.config.daemon.settled(stopped, &[304, 404])
    }
}

impl Core {
    /// Inspects the container. Returns `None` if it does not exist.
    pub(super) async fn find(&self) -> Result<Option<ContainerInfo>> {
        ContainerInfo::find(&self.config.daemon, &self.config.name).await
    }

    /// Makes an existing container run.
    pub(super) async fn resume(&self, found: ContainerInfo, reason: StartReason) -> Result<()> {
        self.check(&found).await?;
        {
            let mut state = self.state();
            state.set_seen();
            state.bound = found.labels.get(labels::AGENT).cloned();
            // A label of an image proves nothing.
            let sockets = found.labels.get(labels::SOCKETS).filter(|_| found.ours);
            state.sockets = sockets.cloned();
            state.read_only = found.read_only;
            if found.state != ContainerState::Running {
                state.uploaded = None;
            }
        }
        if self.state().architecture.is_empty() {
            self.learn_architecture(&found.image).await;
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
                let state_error = found.state_error(&self.config.name);
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
        if !found.ours && !self.config.foreign {
            return Err(self.conflict(
                "is not a sandbox; choose another name, or attach to it with `allow_foreign`",
            ));
        }
        let Some(settings) = &self.config.settings else {
            return Ok(());
        };
        let wanted = self.fingerprint(settings).await?;
        if found.labels.get(labels::CONFIG) == Some(&wanted) {
            return Ok(());
        }
        Err(self.conflict(
            "was created from another image or with other options; remove it, or choose another name",
        ))
    }

    fn conflict(&self, what: &str) -> Error {
        let message = format!("the container {} {what}", self.config.name);
        Error::new(ErrorKind::Conflict, message)
    }

    pub(super) async fn start(&self) -> Result<()> {
        let client = self.config.daemon.client();
        let start = || client.start_container(&self.config.name, None::<StartContainerOptions>);
        let mut started = start().await;
        let sockets = self.state().sockets.clone();
        if let (Err(error), Some(sockets)) = (&started, sockets)
            && is_source_missing(error, &sockets)
            && sockets::prepared(Path::new(&sockets)).await.is_some()
        {
            // A reboot or the user has removed the directory.
            started = start().await;
        }
        let Err(error) = started else {
            self.state().starts += 1;
            return Ok(());
        };
        // The daemon gives the same answer for a missing program.
        if daemon::is_missing(&error) && self.find().await?.is_none() {
            return Err(self.removed());
        }
        Err(self.start_error(error))
    }

    fn start_error(&self, error: bollard::errors::Error) -> Error {
        if daemon::status(&error).is_none() {
            return self.config.daemon.error(error);
        }
        let text = error.to_string();
        Error::unavailable(format!(
            "the container {} cannot be started: {}; change its options or its image",
            self.config.name,
            Quoted::new(&text)
        ))
        .with_source(error)
    }

    pub(super) async fn pause(&self, pause: bool) -> Result<()> {
        let client = self.config.daemon.client();
        let name = &self.config.name;
        let (done, wanted) = if pause {
            (client.pause_container(name).await, ContainerState::Paused)
        } else {
            let done = client.unpause_container(name).await;
            (done, ContainerState::Running)
        };
        let Err(error) = done else {
            return Ok(());
        };
        match self.find().await? {
            Some(found) if found.state == wanted => Ok(()),
            Some(found) => {
                let state_error = found.state_error(name).filter(|_| pause);
                Err(state_error.unwrap_or_else(|| self.config.daemon.error(error)))
            }
            None => Err(self.removed()),
        }
    }

    /// Returns why the container does not answer, or `None` if it should.
    pub(super) async fn diagnosis(&self) -> Option<Error> {
        let reason = match self.find().await {
            Ok(Some(found)) => found.state_error(&self.config.name),
            Ok(None) => Some(self.removed()),
            Err(error) => Some(error),
        };
        if reason.is_some() {
            self.state().set_not_running();
        }
        reason
    }

    /// The error for a container that no longer exists.
    pub(super) fn removed(&self) -> Error {
        let name = &self.config.name;
        Error::unavailable(match (&self.config.settings, self.state().existed()) {
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
