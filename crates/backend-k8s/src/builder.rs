//! [`K8sBuilder`]: the options of a [`K8sSandbox`].

use std::time::Duration;

use backend_core::Result;
use sandbox_runtime::Runtime;
use sandbox_shell::Mode;
use sandbox_wire::agent::AgentBinary;
use serde_json::Value;

use crate::attach::Attach;
use crate::cluster::Cluster;
use crate::options::{Delivery, Network, PullPolicy, Relaxation, Volume};
use crate::sandbox::K8sSandbox;
use crate::settings::Settings;

/// Options of a [`K8sSandbox`], from [`K8sSandbox::builder`].
///
/// The defaults are hardened: an unprivileged user, no capabilities, no privilege
/// escalation, the container runtime's seccomp profile, a read-only root, no token of a
/// service account, a network policy that denies all traffic, and
/// [`DEFAULT_MEMORY`](crate::DEFAULT_MEMORY).
///
/// ```no_run
/// # async fn example() -> backend_core::Result<()> {
/// use backend_core::{BackendExt as _, Sandbox as _, ops::{Command, StopMode}};
/// use backend_k8s::{Cluster, K8sSandbox, Network};
///
/// let sandbox = K8sSandbox::builder()
///     .cluster(Cluster::from_env().await?.with_namespace("agents"))
///     .image("python:3.12-slim")
///     .network(Network::Open)
///     .memory(512 * 1024 * 1024)
///     .env("CI", "1")
///     .build()?;
/// let outcome = sandbox.execute(Command::new("python -V")).await?;
/// assert!(outcome.status.success());
/// sandbox.stop(StopMode::Purge).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct K8sBuilder {
    pub(crate) settings: Settings,
}

impl K8sSandbox {
    /// Returns a builder for a new pod.
    pub fn builder() -> K8sBuilder {
        K8sBuilder::default()
    }
}

impl K8sBuilder {
    backend_core::setters! {
        /// Sets the cluster and its namespace. Required.
        fn cluster(self, cluster: Cluster) { self.settings.cluster = Some(cluster) }

        /// Sets the image. Either this or a [`runtime`](Self::runtime) is required.
        fn image(self, image: impl Into<String>) { self.settings.image = Some(image.into()) }

        /// Sets the runtime that the image must provide. A cluster builds no images: a
        /// runtime with an image is used as it is, and one that must be built needs a
        /// [`runtime_image`](Self::runtime_image).
        fn runtime(self, runtime: Runtime) { self.settings.runtime = Some(runtime) }

        /// Names the image of a runtime that must be built, which the nodes have or can
        /// pull.
        fn runtime_image(self, runtime: impl Into<String>, image: impl Into<String>) {
            self.settings.runtime_images.insert(runtime.into(), image.into());
        }

        /// Sets the directory that relative paths and commands start in. Defaults to the
        /// runtime's directory, else [`DEFAULT_WORKING_DIR`](crate::DEFAULT_WORKING_DIR). An
        /// empty directory that ends with the pod is mounted there, unless a
        /// [`volume`](Self::volume) is.
        fn working_dir(self, working_dir: impl Into<String>) {
            self.settings.working_dir = Some(working_dir.into());
        }

        /// Sets an environment variable for every command.
        fn env(self, name: impl Into<String>, value: impl Into<String>) {
            self.settings.env.insert(name.into(), value.into());
        }

        /// Adds a label.
        fn label(self, key: impl Into<String>, value: impl Into<String>) {
            self.settings.labels.insert(key.into(), value.into());
        }

        /// Adds an annotation.
        fn annotation(self, key: impl Into<String>, value: impl Into<String>) {
            self.settings.annotations.insert(key.into(), value.into());
        }

        /// Names the pod. An existing pod of that name that was created with the same
        /// options is reused. A named pod is not deleted when the sandbox is dropped, and
        /// other programs can use it by its name.
        fn name(self, name: impl Into<String>) { self.settings.name = Some(name.into()) }

        /// Whether an existing pod of that name is refused. Off by default.
        fn exclusive(self, exclusive: bool) { self.settings.exclusive = exclusive }

        /// Whether an unnamed pod stays when the sandbox is dropped, and after its process
        /// has crashed. Otherwise it is deleted. Off by default.
        fn keep(self, keep: bool) { self.settings.keep = keep }

        /// Sets the memory limit in bytes. A command that needs more is killed; where the
        /// nodes end the whole container then, it is restarted.
        fn memory(self, bytes: u64) { self.settings.memory = Some(bytes) }

        /// Sets the maximum number of CPUs, such as `1.5`. Unlimited by default.
        fn cpus(self, cpus: f64) { self.settings.cpus = Some(cpus) }

        /// Sets the bytes of memory that are reserved on a node. Defaults to
        /// [`DEFAULT_REQUEST_MEMORY`](crate::DEFAULT_REQUEST_MEMORY), or the limit if that is
        /// less.
        fn request_memory(self, bytes: u64) { self.settings.request_memory = Some(bytes) }

        /// Sets the CPUs that are reserved on a node. Defaults to
        /// [`DEFAULT_REQUEST_CPUS`](crate::DEFAULT_REQUEST_CPUS), or the limit if that is
        /// less.
        fn request_cpus(self, cpus: f64) { self.settings.request_cpus = Some(cpus) }

        /// Sets the service account. Its token is not mounted.
        fn service_account(self, account: impl Into<String>) {
            self.settings.service_account = Some(account.into());
        }

        /// Whether the token of the service account is mounted, with which commands can do
        /// what that account may do. Off by default.
        fn mount_token(self, mount_token: bool) { self.settings.mount_token = mount_token }

        /// Requires a label of the node, such as `kubernetes.io/arch`.
        fn node_selector(self, key: impl Into<String>, value: impl Into<String>) {
            self.settings.node_selector.insert(key.into(), value.into());
        }

        /// Adds a toleration, as JSON.
        fn toleration(self, toleration: Value) { self.settings.tolerations.push(toleration) }

        /// Sets the affinity, as JSON.
        fn affinity(self, affinity: Value) { self.settings.affinity = Some(affinity) }

        /// Sets the runtime class, as gVisor and Kata Containers have one.
        fn runtime_class(self, class: impl Into<String>) {
            self.settings.runtime_class = Some(class.into());
        }

        /// Mounts a volume.
        fn volume(self, volume: Volume) { self.settings.volumes.push(volume) }

        /// Adds a secret of the namespace with which nodes pull the image.
        fn image_pull_secret(self, secret: impl Into<String>) {
            self.settings.image_pull_secrets.insert(secret.into());
        }

        /// Sets when a node pulls the image. By default if it does not have it.
        fn pull_policy(self, pull_policy: PullPolicy) { self.settings.pull_policy = pull_policy }

        /// Sets the user and the group, which also owns the volumes. Defaults to the
        /// runtime's user, else 1000:1000. Root needs [`Relaxation::Root`].
        fn user(self, uid: u32, gid: u32) { self.settings.user = Some((uid, gid)) }

        /// Gives up one part of the hardening.
        fn relax(self, relaxation: Relaxation) { self.settings.relaxed.insert(relaxation); }

        /// Adds a kernel capability, such as `NET_BIND_SERVICE`. None by default.
        fn add_capability(self, capability: impl Into<String>) {
            self.settings.capabilities.insert(capability.into());
        }

        /// Sets the time after which the cluster ends the pod, in whole seconds. None by
        /// default.
        fn active_deadline(self, deadline: impl Into<Option<Duration>>) {
            self.settings.active_deadline = deadline.into();
        }

        /// Sets the network access. There is none by default, where the cluster enforces
        /// network policies.
        fn network(self, network: Network) { self.settings.network = network }

        /// Sets a pod template that is merged into the pod last, as `kubectl patch
        /// --type=strategic` does: maps are merged, and lists such as containers, volumes
        /// and variables by name. It can add whatever this builder has no option for, and
        /// it can undo the hardening. The container is called `sandbox`.
        ///
        /// ```
        /// use serde_json::json;
        ///
        /// let builder = backend_k8s::K8sSandbox::builder().overlay(json!({
        ///     "spec": {
        ///         "priorityClassName": "batch",
        ///         "containers": [{
        ///             "name": "sandbox",
        ///             "resources": {"limits": {"ephemeral-storage": "4Gi"}},
        ///         }],
        ///     },
        /// }));
        /// # let _ = builder;
        /// ```
        fn overlay(self, template: Value) { self.settings.overlay = Some(template) }

        /// Names the pod that this program runs in, by its name and uid. When that pod is
        /// gone, Kubernetes deletes the sandbox, unless it has a name. Both must be in the
        /// same namespace.
        fn owner_pod(self, name: impl Into<String>, uid: impl Into<String>) {
            self.settings.owner_pod = Some((name.into(), uid.into()));
        }

        /// Sets how long a new pod may take to become ready. After that it is deleted.
        /// Two minutes by default.
        fn start_timeout(self, timeout: Duration) { self.settings.start_timeout = Some(timeout) }

        /// Sets the time between TERM and KILL when a pod is deleted, in whole seconds.
        fn grace(self, grace: Duration) { self.settings.grace = Some(grace) }

        /// Stops the sandbox after this time without activity, as
        /// [`stop`](backend_core::Sandbox::stop) with `Keep` does. The next call starts it
        /// again. Off by default.
        fn idle_timeout(self, idle_timeout: impl Into<Option<Duration>>) {
            self.settings.idle_timeout = idle_timeout.into();
        }

        /// Whether the first start in this process deletes pods left by crashed processes
        /// of this host, in the background. On by default.
        fn reap_leftovers(self, reap: bool) { self.settings.without_reaping = !reap }

        /// Adds an agent binary, one per architecture; the one that fits the node is used.
        /// The default is the binary next to this program.
        fn agent(self, agent: AgentBinary) { self.settings.agents.add(agent) }

        /// Sets how the agent gets into the pod.
        fn delivery(self, delivery: Delivery) { self.settings.delivery = delivery }

        /// Sets the image with the agent that [`Delivery::Auto`] uses for images without a
        /// shell: see [`Delivery::Init`].
        fn agent_image(self, image: impl Into<String>) {
            self.settings.agent_image = Some(image.into());
        }

        /// Sets whether the agent or the image's own tools serve the operations.
        fn mode(self, mode: Mode) { self.settings.mode = mode }
    }

    /// Checks the options. The pod is created by the first operation, or by
    /// [`start`](backend_core::Sandbox::start).
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option, and for a runtime that must be built and has no
    /// image.
    pub fn build(self) -> Result<K8sSandbox> {
        K8sSandbox::new(self.settings.validate()?)
    }

    /// Creates a new pod now, and returns a sandbox that is bound to this one pod.
    ///
    /// Unlike the sandbox of [`build`](Self::build), it never uses an existing pod of the
    /// same name and never creates a second one: if the pod is deleted, operations and
    /// [`start`](backend_core::Sandbox::start) are `Unavailable`. Dropping it changes
    /// nothing: a pod without a name is then deleted by [`reap`](crate::reap) once this
    /// process has ended, one with a name stays. The same holds for the pod of a call that
    /// is dropped before it returns.
    ///
    /// The name of a pod is unique in its namespace, so this is a lock between processes:
    /// of several that create a pod of one name, one succeeds.
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option; `Conflict` if there is a pod of that name;
    /// `Unavailable`, with the reason, if the pod does not become ready; `PermissionDenied`
    /// if the cluster does not allow it.
    pub async fn create(mut self) -> Result<K8sSandbox> {
        self.settings.exclusive = true;
        K8sSandbox::create(self.settings.validate()?).await
    }

    /// Returns options for attaching to a pod, with the cluster, the agents and the mode
    /// of this builder.
    pub fn attach(&self, pod: impl Into<String>) -> Attach {
        let settings = Settings {
            cluster: self.settings.cluster.clone(),
            agents: self.settings.agents.clone(),
            delivery: self.settings.delivery.clone(),
            agent_image: self.settings.agent_image.clone(),
            mode: self.settings.mode,
            ..Settings::default()
        };
        Attach::by_name(pod.into(), settings)
    }
}

#[cfg(test)]
mod tests;
