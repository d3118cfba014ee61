//! Creating a container: image, mounts, user, and the first start.

mod lookup;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Quoted, Result};
use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, CreateContainerOptionsBuilder,
};
use sandbox_shell::{Presence, StartReason};

use lookup::Lookup;

use super::{Core, deliver, is_source_missing};
use crate::archive::{Archive, PROGRAM};
use crate::check;
use crate::daemon;
use crate::labels;
use crate::leftovers;
use crate::options::{Delivery, Source};
use crate::settings::Settings;
use crate::spec::{self, ImageFacts, OwnedDir, Plan, User};

/// How long a container that another process is creating may take to appear under its
/// name. The daemon reserves the name first, and a busy one needs seconds for the rest.
const NAME_TIMEOUT: Duration = Duration::from_secs(60);
const NAME_PAUSE: Duration = Duration::from_millis(50);

impl Core {
    /// Creates the container and starts it. If it cannot be started, it is removed.
    pub(super) async fn create(&self, settings: &Settings) -> Result<()> {
        if !settings.without_reaping {
            leftovers::reap_once(&self.config.daemon);
        }
        let mut lookup = self.look_up(settings).await?;
        let fresh = self.create_volumes(settings).await?;
        self.state().attempted = true;
        let mut created = self.create_container(settings, &lookup).await;
        if created.as_ref().is_err_and(daemon::is_missing) {
            // The image was removed after it was inspected.
            lookup = self.look_up(settings).await?;
            created = self.create_container(settings, &lookup).await;
        }
        while let Err(error) = &created
            && self.leave_out(error, &mut lookup)
        {
            created = self.create_container(settings, &lookup).await;
        }
        if created.is_ok() && !self.has_sleep(&lookup.facts).await {
            lookup.agent_keeps_alive = true;
            self.discard().await;
            created = self.create_container(settings, &lookup).await;
        }
        let deadline = Instant::now() + NAME_TIMEOUT;
        while settings.name.is_some() && created.as_ref().is_err_and(is_name_taken) {
            // Another process created a container of this name first.
            self.state().attempted = false;
            if settings.exclusive {
                let name = &self.config.name;
                let message = format!(
                    "there is a container {name} already; attach to it, or choose another name"
                );
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            if let Some(found) = self.find().await? {
                return self.resume(found, StartReason::OnDemand).await;
            }
            if Instant::now() > deadline {
                break;
            }
            // It is still in creation, or its creation failed and the name is free again.
            tokio::time::sleep(NAME_PAUSE).await;
            self.state().attempted = true;
            created = self.create_container(settings, &lookup).await;
        }
        created.map_err(|error| self.create_error(error))?;
        let finished = self.provision_and_start(settings, &lookup, &fresh).await;
        if finished.is_err() {
            self.discard().await;
            self.set_pending(None);
        }
        finished
    }

    /// Leaves out a mount of ours that the daemon does not see. Returns whether there was
    /// one.
    fn leave_out(&self, error: &bollard::errors::Error, lookup: &mut Lookup) -> bool {
        let is_missing = |source: &Option<String>| {
            let source = source.as_deref();
            source.is_some_and(|source| is_source_missing(error, source))
        };
        if is_missing(&lookup.sockets) {
            lookup.sockets = None;
            return true;
        }
        if self.config.delivery == Delivery::Auto && is_missing(&lookup.agent) {
            tracing::info!(
                "the Docker daemon does not see this host's files: the agent is uploaded"
            );
            (lookup.agent, lookup.sockets) = (None, None);
            return true;
        }
        false
    }

    /// Creates and starts a container that did not exist, with everything in it that it
    /// needs, so that other objects can use it from now on.
    pub(super) async fn create_new(&self) -> Result<()> {
        let Some(settings) = &self.config.settings else {
            return Err(self.removed());
        };
        self.config.daemon.negotiated().await?;
        self.create(settings).await?;
        let provisioned = self.provision().await;
        if provisioned.is_err() {
            self.discard().await;
        }
        provisioned
    }

    /// Removes a container that never worked.
    async fn discard(&self) {
        if let Err(error) = self.config.daemon.remove_container(&self.config.name).await {
            tracing::debug!(container = %self.config.name, "container not removed: {error}");
        }
    }

    /// Whether the image has a `sleep` to keep the container alive. Checked once per
    /// image.
    async fn has_sleep(&self, facts: &ImageFacts) -> bool {
        static KNOWN: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
        if let Some(can) = lock(&KNOWN).get(&facts.id) {
            return *can;
        }
        let mut can = false;
        for path in ["/bin/sleep", "/usr/bin/sleep"] {
            let options = ContainerArchiveInfoOptionsBuilder::default()
                .path(path)
                .build();
            let client = self.config.daemon.client();
            let asked = client.get_container_archive_info(&self.config.name, Some(options));
            match asked.await {
                Ok(_) => can = true,
                Err(error) if daemon::is_missing(&error) => continue,
                // Unknown. The start will show it.
                Err(_) => return true,
            }
            break;
        }
        lock(&KNOWN).insert(facts.id.clone(), can);
        can
    }

    async fn create_container(
        &self,
        settings: &Settings,
        lookup: &Lookup,
    ) -> Result<(), bollard::errors::Error> {
        let body = self.plan(settings, lookup).body();
        let options = CreateContainerOptionsBuilder::default()
            .name(&self.config.name)
            .build();
        let client = self.config.daemon.client();
        let created = client.create_container(Some(options), body).await?;
        for warning in created.warnings {
            tracing::warn!(container = %self.config.name, "the Docker daemon warns: {}", Quoted::new(&warning));
        }
        Ok(())
    }

    fn plan<'a>(&'a self, settings: &'a Settings, lookup: &'a Lookup) -> Plan<'a> {
        Plan {
            name: &self.config.name,
            nonce: &lookup.nonce,
            settings,
            working_dir: &self.config.working_dir,
            facts: &lookup.facts,
            user: &lookup.user,
            agent: lookup.agent.as_deref(),
            stamp: lookup.stamp.as_deref(),
            sockets: lookup.sockets.as_deref(),
            keep_alive: self.keep_alive_command(lookup),
        }
    }

    /// Returns the program that keeps the container alive: the image's own, or the
    /// agent.
    fn keep_alive_command(&self, lookup: &Lookup) -> Vec<String> {
        let agent = match (&lookup.agent, &lookup.stamp) {
            _ if !lookup.agent_keeps_alive => None,
            (Some(_), _) => Some(spec::BOUND_AGENT.to_owned()),
            (None, stamp) => stamp.as_deref().map(deliver::uploaded_path),
        };
        match agent {
            Some(agent) => vec![agent, "--hold".to_owned()],
            None => vec!["sleep".to_owned(), "infinity".to_owned()],
        }
    }

    async fn provision_and_start(
        &self,
        settings: &Settings,
        lookup: &Lookup,
        fresh: &[String],
    ) -> Result<()> {
        let owned = self.plan(settings, lookup).owned(fresh);
        let mut directories = self.directory_archive(&owned, &lookup.user).await?;
        let upload = lookup.agent.is_none() && !settings.read_only_root;
        let agent = self.config.agents.fitting(&lookup.facts.architecture);
        if let (Some(agent), Some(stamp), true) = (agent, &lookup.stamp, upload) {
            // One archive for everything, before anything runs.
            let path = deliver::uploaded_path(stamp);
            let mut archive = directories.take().unwrap_or_else(Archive::new);
            archive.file(&path, PROGRAM, &deliver::content(agent).await?)?;
            let (daemon, archive) = (&self.config.daemon, archive.finish()?);
            let uploaded = daemon.unpack(&self.config.name, archive).await;
            uploaded.map_err(|error| daemon.error(error))?;
            self.state().uploaded = Some(path);
        }
        let pending = directories.map(Archive::finish).transpose()?;
        self.set_pending(pending);
        {
            let mut state = self.state();
            state.set_seen();
            state.bound = lookup.agent.as_ref().and(lookup.stamp.clone());
            state.sockets.clone_from(&lookup.sockets);
            state.read_only = settings.read_only_root;
            state.architecture.clone_from(&lookup.facts.architecture);
        }
        let started = self.start().await;
        if started.is_err() {
            self.state().presence = Presence::Unseen;
        }
        started
    }

    /// Returns an archive with the directories that must belong to the user.
    async fn directory_archive(&self, owned: &[OwnedDir], user: &User) -> Result<Option<Archive>> {
        if owned.is_empty() {
            return Ok(None);
        }
        let ids = match user.ids {
            Some(ids) => ids,
            None => self.ids_of(user).await?,
        };
        let mut archive = Archive::new();
        for directory in owned {
            archive.directory(directory, ids)?;
        }
        Ok(Some(archive))
    }

    /// Sets the pending archive for a container that was created but never started.
    pub(super) async fn plan_provisioning(&self) -> Result<()> {
        let Some(settings) = &self.config.settings else {
            return Ok(());
        };
        let lookup = self.look_up(settings).await?;
        let owned = self.plan(settings, &lookup).owned(&[]);
        let directories = self.directory_archive(&owned, &lookup.user).await?;
        self.set_pending(directories.map(Archive::finish).transpose()?);
        Ok(())
    }

    /// Returns the fingerprint of the configuration that the container would be created
    /// with.
    pub(super) async fn fingerprint(&self, settings: &Settings) -> Result<String> {
        let lookup = self.look_up(settings).await?;
        let plan = self.plan(settings, &lookup);
        Ok(plan.fingerprint(&plan.body()))
    }

    /// Creates the named volumes that are missing, and returns their names.
    async fn create_volumes(&self, settings: &Settings) -> Result<Vec<String>> {
        let client = self.config.daemon.client();
        let mut fresh = Vec::new();
        for volume in &settings.volumes {
            let Source::Named(name) = &volume.source else {
                continue;
            };
            let known = client.inspect_volume(name).await;
            if self.config.daemon.found(known)?.is_some() {
                continue;
            }
            let label = (labels::SANDBOX.to_owned(), self.config.name.clone());
            let request = VolumeCreateRequest {
                name: Some(name.clone()),
                labels: Some([label].into()),
                ..VolumeCreateRequest::default()
            };
            let made = client.create_volume(request).await;
            made.map_err(|error| self.config.daemon.error(error))?;
            fresh.push(name.clone());
        }
        Ok(fresh)
    }

    fn create_error(&self, error: bollard::errors::Error) -> Error {
        let Some(status) = daemon::status(&error) else {
            return self.config.daemon.error(error);
        };
        let text = error.to_string();
        let text = Quoted::new(&text);
        match status {
            409 => Error::new(
                ErrorKind::Conflict,
                format!(
                    "the name {} was taken meanwhile: {text}; try again",
                    self.config.name
                ),
            ),
            400 => check::wrong(format!(
                "the container cannot be created: {text}; change its options"
            )),
            _ => Error::unavailable(format!(
                "the container cannot be created: {text}; change its options or its image"
            )),
        }
        .with_source(error)
    }
}

fn is_name_taken(error: &bollard::errors::Error) -> bool {
    daemon::status(error) == Some(409)
}
