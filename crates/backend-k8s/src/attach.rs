//! [`Attach`]: a sandbox on an existing pod.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Quoted, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use sandbox_runtime::{WORK_DIR, options};
use sandbox_shell::{Agents, Mode};
use sandbox_wire::agent::AgentBinary;

use crate::check;
use crate::cluster::{self, Cluster};
use crate::labels::{self, CONTAINER};
use crate::machine::{K8sMachine, MachineConfig};
use crate::pods;
use crate::sandbox::K8sSandbox;
use crate::settings::Settings;
use crate::spec;

/// Options for attaching to a pod, from [`K8sSandbox::attach`].
#[derive(Debug, Clone)]
#[must_use = "this does nothing until `open`"]
pub struct Attach {
    pod: PodSelector,
    foreign: bool,
    uid: Option<String>,
    /// Of these, only the options that are set here have an effect.
    settings: Settings,
}

#[derive(Debug, Clone)]
enum PodSelector {
    Name(String),
    /// The only one that a label selector matches.
    Label(String),
}

impl K8sSandbox {
    /// Attaches to a pod by its name.
    ///
    /// ```no_run
    /// # async fn example() -> backend_core::Result<()> {
    /// use backend_k8s::{Cluster, K8sSandbox};
    /// let cluster = Cluster::from_env().await?;
    /// let sandbox = K8sSandbox::attach("my-box").cluster(cluster).open().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn attach(pod: impl Into<String>) -> Attach {
        Attach::by_name(pod.into(), Settings::default())
    }

    /// Attaches to the only pod that a label selector matches, such as
    /// `example.com/user=alice`.
    pub fn attach_by_label(selector: impl Into<String>) -> Attach {
        Attach {
            pod: PodSelector::Label(selector.into()),
            foreign: false,
            uid: None,
            settings: Settings::default(),
        }
    }
}

impl Attach {
    pub(crate) fn by_name(pod: String, settings: Settings) -> Self {
        Self {
            pod: PodSelector::Name(pod),
            foreign: false,
            uid: None,
            settings,
        }
    }

    backend_core::setters! {
        /// Sets the cluster and its namespace. Required.
        fn cluster(self, cluster: Cluster) { self.settings.cluster = Some(cluster) }

        /// Sets the directory that relative paths and commands start in. Defaults to the
        /// container's own working directory.
        fn working_dir(self, working_dir: impl Into<String>) {
            self.settings.working_dir = Some(working_dir.into());
        }

        /// Whether pods that are not sandboxes are accepted, in which the container is
        /// called `sandbox`. With this, any such pod of the namespace can be used and
        /// deleted by name.
        fn allow_foreign(self, foreign: bool) { self.foreign = foreign }

        /// Requires the id of the pod, so that another one of its name is not used.
        fn uid(self, uid: impl Into<String>) { self.uid = Some(uid.into()) }

        /// Stops the sandbox after this time without activity through this object.
        fn idle_timeout(self, idle_timeout: impl Into<Option<Duration>>) {
            self.settings.idle_timeout = idle_timeout.into();
        }

        /// Adds an agent binary, as [`K8sBuilder::agent`](crate::K8sBuilder::agent) does.
        fn agent(self, agent: AgentBinary) { self.settings.agents.add(agent) }

        /// Sets whether the agent or the image's own tools serve the operations.
        fn mode(self, mode: Mode) { self.settings.mode = mode }
    }

    /// Looks up the pod, and binds the sandbox to it: another pod that gets the same name
    /// later is not used.
    ///
    /// # Errors
    ///
    /// `Config` for invalid options; `NotFound` if there is no such pod; `Conflict` if a
    /// label selector matches several; `PermissionDenied` if it is not a sandbox;
    /// `Unavailable` if the cluster does not answer.
    pub async fn open(self) -> Result<K8sSandbox> {
        self.attached().await.map_err(|error| error.on("k8s"))
    }

    async fn attached(self) -> Result<K8sSandbox> {
        let Self {
            pod,
            foreign,
            uid,
            settings,
        } = self;
        if let PodSelector::Name(name) = &pod {
            check::pod(name)?;
        }
        options::idle_timeout(settings.idle_timeout)?;
        let cluster = settings.required_cluster()?;
        let asked = cluster.clone();
        let found = cluster::run(async move { find(&asked, pod).await }).await?;
        let name = found.metadata.name.clone().unwrap_or_default();
        if uid.is_some() && uid != found.metadata.uid {
            let text = format!("the pod {name} was deleted, and there is another of its name");
            return Err(Error::new(ErrorKind::NotFound, text));
        }
        if !foreign && !labels::is_ours(&found.metadata) {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!("the pod {name} is not a sandbox; set `allow_foreign` to use it"),
            ));
        }
        let container = labels::container(&found).ok_or_else(|| {
            check::wrong(format!(
                "the pod {name} has no container called {CONTAINER}; attach to another pod"
            ))
        })?;
        let theirs = match container.working_dir.as_deref() {
            None | Some("" | "/") => WORK_DIR,
            Some(directory) => directory,
        };
        let working_dir = settings.working_dir.as_deref().unwrap_or(theirs);
        let command = container.command.as_ref().and_then(|line| line.first());
        let has_agent = command.is_some_and(|program| *program == spec::agent_path());
        let agents = match settings.located_agents() {
            Err(_) if has_agent => Agents::default(),
            agents => agents?,
        };
        let config = MachineConfig {
            cluster,
            working_dir: options::absolute_path("work", working_dir)?,
            uid: found.metadata.uid.clone(),
            name,
            recipe: None,
            foreign,
            agents,
            start_timeout: settings.start_timeout(),
            grace: settings.grace(),
        };
        let machine = K8sMachine::attached(config, &found);
        Ok(K8sSandbox::assemble(machine, settings))
    }
}

async fn find(cluster: &Cluster, selector: PodSelector) -> Result<Pod> {
    let missing = |what: String| {
        let text = format!("there is no pod {what}; `kubectl get pods` lists them");
        Error::new(ErrorKind::NotFound, text)
    };
    match selector {
        PodSelector::Name(name) => {
            let api: Api<Pod> = cluster.api()?;
            let found = cluster.found(api.get(&name).await)?;
            found.ok_or_else(|| missing(name))
        }
        PodSelector::Label(selector) => {
            let (mut found, _) = pods::list_now(cluster, &selector).await?;
            let shown = Quoted::new(&selector);
            match (found.pop(), found.len()) {
                (Some(found), 0) => Ok(found),
                (None, _) => Err(missing(format!("with the label {shown}"))),
                (Some(_), others) => Err(Error::new(
                    ErrorKind::Conflict,
                    format!(
                        "there are {} pods with the label {shown}; attach to one by its name",
                        others + 1
                    ),
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::tests::{Answer, cluster_of, object};

    #[tokio::test]
    async fn another_pod_of_the_name_is_not_used() {
        let (cluster, _) = cluster_of(|_| Answer::Json(object("box", 1)));
        let attach = K8sSandbox::attach("box").cluster(cluster);
        let attach = attach.allow_foreign(true).mode(Mode::Portable);
        attach.clone().uid("uid-box").open().await.unwrap();
        let error = attach.uid("uid-of-the-first").open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
