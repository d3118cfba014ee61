//! Creating a pod, and waiting until it runs.

use std::collections::BTreeSet;
use std::sync::Mutex;

use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Quoted, Result};
use http::Request;
use http::header::CONTENT_TYPE;
use k8s_openapi::api::core::v1::Pod;
use kube::Resource as _;
use sandbox_shell::{Mode, Presence, StartReason};

use super::{Core, Recipe};
use crate::check;
use crate::cluster;
use crate::leftovers;
use crate::network;
use crate::options::{Delivery, Network};
use crate::reason;
use crate::spec::Plan;

/// The images that are known to have no shell.
static WITHOUT_SHELL: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The most images that are remembered.
const IMAGES: usize = 1_000;

/// How a pod of this name came about.
enum Created {
    New(Box<Pod>),
    /// There was one.
    Found(Box<Pod>),
}

impl Core {
    /// Creates the pod and waits until it runs. If it does not, it is deleted. A pod that
    /// another process created meanwhile is used.
    pub(super) async fn create(&self) -> Result<()> {
        let Some(recipe) = &self.config.recipe else {
            return Err(self.deleted());
        };
        let cluster = &self.config.cluster;
        if !recipe.settings.without_reaping {
            leftovers::reap_once(cluster);
        }
        self.ensure_policy().await?;
        let mut agent_image = agent_image(recipe);
        loop {
            let changes = self.changes()?;
            let created = self.post(recipe, agent_image).await?;
            let pod = match created {
                Created::New(pod) => *pod,
                Created::Found(found) => return self.adopt(*found).await,
            };
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let error = match self.running(pod, changes, true).await {
                Ok(pod) => return self.use_pod(&pod, StartReason::Explicit),
                Err(error) => error,
            };
            let without_shell = self.is_without_shell(&uid).await;
            self.discard(uid).await;
            match &recipe.settings.agent_image {
                Some(image) if without_shell && may_be_brought(recipe, agent_image) => {
                    remember_image_without_shell(&recipe.image);
                    agent_image = Some(image);
                }
                _ if without_shell && agent_image.is_none() => return Err(no_shell(recipe)),
                _ => return Err(error),
            }
        }
    }

    /// Makes sure that the network is denied to a pod that is to have none.
    pub(super) async fn ensure_policy(&self) -> Result<()> {
        match &self.config.recipe {
            Some(recipe) if recipe.settings.network == Network::None => {
                network::ensure_policy(&self.config.cluster).await
            }
            _ => Ok(()),
        }
    }

    /// Creates a pod that did not exist.
    pub(super) async fn create_new(&self) -> Result<()> {
        self.create().await?;
        self.state().presence = Presence::Running;
        Ok(())
    }

    /// Creates a pod in the place of one that has ended.
    pub(super) async fn replace(&self, ended: &Pod) -> Result<()> {
        let changes = self.changes()?;
        let uid = ended.metadata.uid.clone();
        if let (Some(uid), None) = (uid, &ended.metadata.deletion_timestamp) {
            self.delete_one(uid).await?;
        }
        self.gone(ended, changes).await?;
        self.state().forget(Presence::Unseen);
        self.create().await
    }

    /// Uses a pod that was there first.
    async fn adopt(&self, found: Pod) -> Result<()> {
        if found.metadata.deletion_timestamp.is_some() {
            return Box::pin(self.replace(&found)).await;
        }
        Box::pin(self.resume(found, StartReason::OnDemand)).await
    }

    /// Sends the pod to the cluster.
    async fn post(&self, recipe: &Recipe, agent_image: Option<&str>) -> Result<Created> {
        let cluster = &self.config.cluster;
        let pod = self.plan(recipe, agent_image).pod();
        cluster.check_namespace()?;
        let path = Pod::url_path(&(), Some(cluster.namespace()));
        let request = Request::post(format!(
            "{path}?fieldManager=agentbox&fieldValidation=Strict"
        ))
        .header(CONTENT_TYPE, "application/json")
        .body(pod.to_string().into_bytes());
        let request = request.map_err(|error| cluster.error(kube::Error::HttpError(error)))?;
        let was_attempted = std::mem::replace(&mut self.state().attempted, true);
        let error = match cluster.client().request::<Pod>(request).await {
            Ok(pod) => return Ok(Created::New(Box::new(pod))),
            Err(error) => error,
        };
        let is_taken = cluster::status(&error) == Some(409);
        if cluster::status(&error).is_some() {
            self.state().attempted = was_attempted;
        }
        if is_taken && let Some(found) = self.find().await? {
            let is_ending = found.metadata.deletion_timestamp.is_some();
            if self.has_created(&found) && !is_ending {
                // The request was repeated after its first answer was lost.
                self.state().attempted = true;
                return Ok(Created::New(Box::new(found)));
            }
            if !is_ending && recipe.settings.exclusive {
                return Err(self.taken());
            }
            return Ok(Created::Found(Box::new(found)));
        }
        Err(self.create_error(error))
    }

    pub(super) fn plan<'a>(&'a self, recipe: &'a Recipe, agent_image: Option<&'a str>) -> Plan<'a> {
        Plan {
            name: &self.config.name,
            settings: &recipe.settings,
            image: &recipe.image,
            working_dir: &self.config.working_dir,
            agent_image,
            creation: &self.creation,
        }
    }

    async fn is_without_shell(&self, uid: &str) -> bool {
        let found = self.find().await.ok().flatten();
        let found = found.filter(|pod| pod.metadata.uid.as_deref() == Some(uid));
        found.is_some_and(|pod| reason::lacks_shell(&pod))
    }

    /// Deletes a pod that never worked.
    async fn discard(&self, uid: String) {
        match self.delete_one(uid).await {
            Ok(()) => self.state().attempted = false,
            Err(error) => {
                let pod = self.config.name.as_str();
                tracing::warn!(pod, "a pod was left behind: {}", error.chain());
            }
        }
    }

    fn create_error(&self, error: kube::Error) -> Error {
        let namespace = self.config.cluster.namespace();
        let (status, said) = match &error {
            kube::Error::Api(status) => (status.code, status.message.clone()),
            _ => return self.config.cluster.error(error),
        };
        let said = Quoted::new(&said);
        match status {
            400 | 422 => check::wrong(format!(
                "the pod cannot be created: {said}; change its options"
            )),
            403 if error.to_string().contains("PodSecurity") => Error::new(
                ErrorKind::PermissionDenied,
                format!(
                    "the namespace {namespace} does not admit the pod: {said}; keep the hardening, or change the policy of the namespace"
                ),
            ),
            404 => check::wrong(format!(
                "the pod cannot be created: {said}; create the namespace {namespace}, or name another"
            )),
            // Something else has changed at the same time.
            409 => Error::unavailable(format!("the pod cannot be created: {said}; try again")),
            _ => return self.config.cluster.error(error),
        }
        .with_source(error)
    }
}

/// Returns the image of the init container that must bring the agent.
fn agent_image(recipe: &Recipe) -> Option<&str> {
    let settings = &recipe.settings;
    match &settings.delivery {
        Delivery::Init { image } => Some(image),
        Delivery::Auto if lock(&WITHOUT_SHELL).contains(&recipe.image) => {
            settings.agent_image.as_deref()
        }
        Delivery::Auto | Delivery::Exec => None,
    }
}

/// Whether an init container may still be tried.
fn may_be_brought(recipe: &Recipe, tried: Option<&str>) -> bool {
    let settings = &recipe.settings;
    tried.is_none() && settings.delivery == Delivery::Auto && settings.mode != Mode::Portable
}

fn remember_image_without_shell(image: &str) {
    let mut known = lock(&WITHOUT_SHELL);
    if known.len() < IMAGES {
        known.insert(image.to_owned());
    }
}

fn no_shell(recipe: &Recipe) -> Error {
    Error::unsupported(format!(
        "the image {} has no `sh`, which keeps a pod alive; choose an image with a shell, or give an `agent_image`",
        Quoted::new(&recipe.image)
    ))
}
