//! [`K8sEngineBuilder`]: the options of a [`K8sEngine`](super::K8sEngine).

use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use backend_k8s::{Cluster, K8sBuilder};
use sandbox_runtime::Runtime;

use super::names::Names;
use super::volumes::Volumes;

/// The space of sessions, unless another one is named.
const DEFAULT_SPACE: &str = "default";
/// The time between TERM and KILL, unless another one is set.
const DEFAULT_GRACE: Duration = Duration::from_secs(2);

/// Options of a [`K8sEngine`](super::K8sEngine), from
/// [`K8sEngine::builder`](super::K8sEngine::builder), which has an example.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct K8sEngineBuilder {
    pub(super) cluster: Cluster,
    pub(super) template: K8sBuilder,
    pub(super) runtime: Option<Runtime>,
    pub(super) pools: Vec<(Runtime, usize)>,
    pub(super) keep_for: Option<Duration>,
    pub(super) grace: Duration,
    space: String,
    volumes: Option<u64>,
    storage_class: Option<String>,
    access_mode: Option<String>,
}

impl K8sEngineBuilder {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            template: K8sBuilder::default(),
            runtime: None,
            pools: Vec::new(),
            keep_for: None,
            grace: DEFAULT_GRACE,
            space: DEFAULT_SPACE.to_owned(),
            volumes: None,
            storage_class: None,
            access_mode: None,
        }
    }

    backend_core::setters! {
        /// Sets the options that every pod is created with: limits, network, agent, the
        /// images of runtimes, node selectors. Its image, runtime, name, working directory,
        /// grace and cluster are set by the engine.
        fn template(self, template: K8sBuilder) { self.template = template }

        /// Sets the runtime of sessions that are opened without one. For an image that is
        /// used as it is: `Runtime::from_image("python", "python:3.12-slim")`.
        fn runtime(self, runtime: Runtime) { self.runtime = Some(runtime) }

        /// Names the space of the sessions: small letters and digits. Processes that name
        /// the same space in the same namespace share its sessions; those of other spaces
        /// are never touched. `default` unless set.
        fn space(self, space: impl Into<String>) { self.space = space.into() }

        /// Keeps the files of each session in a persistent volume of this many bytes, mounted
        /// at the runtime's working directory. It survives the pod.
        ///
        /// Without volumes, a session's files end with its pod.
        fn volumes(self, bytes: u64) { self.volumes = Some(bytes) }

        /// Sets the storage class of the volumes, or `""` for volumes that exist already. The
        /// cluster's default unless set.
        fn storage_class(self, class: impl Into<String>) { self.storage_class = Some(class.into()) }

        /// Sets the access mode of the volumes, such as `ReadWriteOncePod`. `ReadWriteOnce`
        /// unless set.
        fn access_mode(self, mode: impl Into<String>) { self.access_mode = Some(mode.into()) }

        /// Deletes a session that does not run, and its volume, this long after its last use.
        /// They are kept until they are purged by default.
        fn keep_stored_for(self, time: Duration) { self.keep_for = Some(time) }

        /// Sets the time that commands have to end when their session does, in whole seconds.
        /// Two seconds by default.
        fn grace(self, grace: Duration) { self.grace = grace }

        /// Keeps this many pods of a runtime ready, with their agents connected to this
        /// process. A new session takes one, which is much faster than creating it; a session
        /// with stored files never does.
        fn pool(self, runtime: Runtime, size: usize) { self.pools.push((runtime, size)) }
    }

    /// Checks the options.
    pub(super) fn check(&self) -> Result<(Names, Option<Volumes>)> {
        let names = Names::new(&self.space)?;
        let runtimes = self.pools.iter().map(|(runtime, _)| runtime);
        for runtime in runtimes.chain(&self.runtime) {
            runtime.validate()?;
        }
        if self.grace < Duration::from_secs(1) {
            // The cluster would give the name of a pod free before its programs have ended.
            return Err(Error::new(
                ErrorKind::Config,
                "the grace of sessions is shorter than a second; give a longer one",
            ));
        }
        let Some(bytes) = self.volumes else {
            let has_option = self.storage_class.is_some() || self.access_mode.is_some();
            if has_option || self.keep_for.is_some() {
                return Err(Error::new(
                    ErrorKind::Config,
                    "an option of volumes is given without a size for them; set `volumes`",
                ));
            }
            return Ok((names, None));
        };
        let volumes = Volumes {
            bytes,
            class: self.storage_class.clone(),
            mode: self.access_mode.clone(),
        };
        Ok((names, Some(volumes)))
    }
}
