//! The variables of a session's commands, in a secret that ends with the session's pod.
//!
//! Commands get them from the agent when they run. The annotation of the session says whether
//! there is a secret, so that processes without variables need no right to read secrets.

use std::collections::BTreeMap;

use backend_core::{Error, ErrorKind, Result};
use backend_k8s::Cluster;
use backend_k8s::pods::objects::{self, Draft, Kind, Object};
use backend_k8s::pods::{Pod, Version};
use serde_json::json;

use super::annotations::ENV;
use super::names;
use super::{K8sEngine, TRIES};

/// The key of the variables in the secret.
const KEY: &str = "env";

pub(super) type Env = BTreeMap<String, String>;

/// The variables of one session.
pub(super) struct Variables<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) space: &'a str,
    /// The name of the object that is the session, and so of the secret.
    pub(super) name: &'a str,
    /// The id of that object.
    pub(super) uid: &'a str,
}

impl Variables<'_> {
    /// Reads them. Empty if the process that opened the session was killed before it wrote
    /// them.
    pub(super) async fn read(&self) -> Result<Env> {
        let secret = objects::find(self.cluster, &Kind::secret(), self.name).await?;
        // One of an earlier object of the name is about to be deleted.
        let secret = secret.filter(|secret| self.owns(secret));
        let json = secret.and_then(|secret| secret.secret_value(KEY));
        let env = json.and_then(|json| serde_json::from_slice(&json).ok());
        Ok(env.unwrap_or_default())
    }

    /// Writes them, in a secret that `own` makes end with the session.
    pub(super) async fn write(&self, env: &Env, own: impl Fn(Draft) -> Draft) -> Result<()> {
        let (cluster, kind) = (self.cluster, Kind::secret());
        let json = serde_json::to_string(env).map_err(|source| {
            Error::internal("a session's variables could not be written").with_source(source)
        })?;
        for _ in 0..TRIES {
            let content = json!({"type": "Opaque", "stringData": {(KEY): json}});
            let draft = Draft::new(self.name, content).label(names::SPACE, self.space);
            match objects::create(cluster, &kind, own(draft)).await {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                created => return created.map(drop),
            }
            let Some(found) = objects::find(cluster, &kind, self.name).await? else {
                continue;
            };
            if !self.owns(&found) {
                objects::delete(cluster, &kind, &found, Version::Any).await?;
                continue;
            }
            let change = json!({"stringData": {(KEY): json}});
            match objects::patch(cluster, &kind, &found, change).await {
                Err(error) if is_race(&error) => {}
                changed => return changed.map(drop),
            }
        }
        let message = "the variables of the session keep changing; try again";
        Err(Error::unavailable(message))
    }

    fn owns(&self, secret: &Object) -> bool {
        secret.owners.iter().any(|owner| owner == self.uid)
    }
}

impl K8sEngine {
    fn variables<'a>(&'a self, pod: &'a Pod) -> Variables<'a> {
        Variables {
            cluster: &self.0.pods.cluster,
            space: self.0.pods.names.space(),
            name: &pod.name,
            uid: &pod.uid,
        }
    }

    /// Returns the variables of the session that a pod belongs to.
    pub(super) async fn env_of(&self, pod: &Pod) -> Result<Env> {
        if pod.annotations.contains_key(ENV) {
            return self.variables(pod).read().await;
        }
        Ok(Env::new())
    }

    /// Keeps the variables of the session that a pod belongs to.
    pub(super) async fn keep_env(&self, pod: &Pod, env: &Env) -> Result<()> {
        let variables = self.variables(pod);
        variables.write(env, |draft| draft.owned_by_pod(pod)).await
    }
}

fn is_race(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound)
}
