//! Objects beside pods, for programs that keep records of their own: leases as locks, volume
//! claims, secrets, and the custom resources that a cluster has.
//!
//! The names of the objects of one kind are unique in a namespace, so [`create`] is a lock
//! between processes: of several that create one name, one succeeds. [`patch`] and [`delete`]
//! act on what was read: if the object has changed meanwhile, they are a `Conflict`.
//!
//! ```no_run
//! # async fn example() -> backend_core::Result<()> {
//! use backend_k8s::Cluster;
//! use backend_k8s::pods::Version;
//! use backend_k8s::pods::objects::{self, Draft, Kind};
//! use serde_json::json;
//!
//! let cluster = Cluster::from_env().await?;
//! let lease = Draft::new("turn", json!({"spec": {"holderIdentity": "me"}}));
//! let held = objects::create(&cluster, &Kind::lease(), lease).await?;
//! objects::delete(&cluster, &Kind::lease(), &held, Version::Any).await?;
//! # Ok(())
//! # }
//! ```

mod follow;

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use backend_core::Result;
use k8s_openapi::ByteString;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Resource, discovery};
use serde_json::Value;

use super::Pod;
use super::request::{Version, conditional, list_all, moment};
use crate::check;
use crate::cluster::{self, Cluster};

pub use follow::follow;

/// A kind of object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    resource: ApiResource,
    /// Whether its objects own others, which are waited for when they are deleted.
    owns: bool,
}

impl Kind {
    fn known<K: Resource<DynamicType = ()>>() -> Self {
        let (resource, owns) = (ApiResource::erase::<K>(&()), false);
        Self { resource, owns }
    }

    /// Leases, which serve as locks and signs of life.
    pub fn lease() -> Self {
        Self::known::<Lease>()
    }

    /// Claims of persistent volumes.
    pub fn volume_claim() -> Self {
        Self::known::<PersistentVolumeClaim>()
    }

    /// Secrets.
    pub fn secret() -> Self {
        Self::known::<Secret>()
    }

    /// Asks the cluster for a kind of a group, in the version that it recommends. `None` if
    /// it has no such kind.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the cluster does not answer.
    pub async fn discover(cluster: &Cluster, group: &str, kind: &str) -> Result<Option<Self>> {
        let (asked, group, kind) = (cluster.clone(), group.to_owned(), kind.to_owned());
        cluster::run(async move {
            let found = match discovery::group(asked.client(), &group).await {
                Ok(found) => found.recommended_kind(&kind),
                Err(kube::Error::Discovery(_)) => None,
                Err(error) => return Err(asked.error(error)),
            };
            let owns = true;
            Ok(found.map(|(resource, _)| Self { resource, owns }))
        })
        .await
    }

    /// Returns the version of the kind, such as `v1`.
    pub fn version(&self) -> &str {
        &self.resource.version
    }

    fn of(&self, cluster: &Cluster) -> Result<Api<DynamicObject>> {
        cluster.check_namespace()?;
        let client = cluster.client().clone();
        Ok(Api::namespaced_with(
            client,
            cluster.namespace(),
            &self.resource,
        ))
    }
}

/// An object, as it was when it was read.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Object {
    /// Its name.
    pub name: String,
    /// The id that no other object has, also none of the same name.
    pub uid: String,
    /// The version of its content.
    pub resource_version: String,
    /// All of its labels.
    pub labels: BTreeMap<String, String>,
    /// All of its annotations.
    pub annotations: BTreeMap<String, String>,
    /// The ids of the objects with which it ends.
    pub owners: Vec<String>,
    /// When it was created, in whole seconds.
    pub created: SystemTime,
    /// Whether it is being deleted.
    pub is_ending: bool,
    /// Everything but its metadata, such as `spec` and `status`.
    pub content: Value,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the content: it may be a secret.
        f.debug_struct("Object")
            .field("name", &self.name)
            .field("uid", &self.uid)
            .field("resource_version", &self.resource_version)
            .field("is_ending", &self.is_ending)
            .finish_non_exhaustive()
    }
}

impl Object {
    fn new(found: DynamicObject) -> Self {
        let ObjectMeta {
            name,
            uid,
            resource_version,
            labels,
            annotations,
            owner_references,
            creation_timestamp,
            deletion_timestamp,
            ..
        } = found.metadata;
        let owners = owner_references.unwrap_or_default().into_iter();
        Self {
            name: name.unwrap_or_default(),
            uid: uid.unwrap_or_default(),
            resource_version: resource_version.unwrap_or_default(),
            labels: labels.unwrap_or_default(),
            annotations: annotations.unwrap_or_default(),
            owners: owners.map(|owner| owner.uid).collect(),
            created: moment(creation_timestamp),
            is_ending: deletion_timestamp.is_some(),
            content: found.data,
        }
    }

    /// Returns the value of a secret. `None` if there is none.
    pub fn secret_value(&self, key: &str) -> Option<Vec<u8>> {
        let value = self.content.get("data")?.get(key)?;
        let bytes: ByteString = serde_json::from_value(value.clone()).ok()?;
        Some(bytes.0)
    }
}

/// An object to [create].
#[derive(Clone)]
#[must_use = "this does nothing until `create`"]
pub struct Draft {
    metadata: ObjectMeta,
    content: Value,
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("name", &self.metadata.name)
            .finish_non_exhaustive()
    }
}

impl Draft {
    /// Describes an object with a name and everything but its metadata.
    pub fn new(name: impl Into<String>, content: Value) -> Self {
        let metadata = ObjectMeta {
            name: Some(name.into()),
            ..ObjectMeta::default()
        };
        Self { metadata, content }
    }

    backend_core::setters! {
        /// Adds a label.
        fn label(self, key: impl Into<String>, value: impl Into<String>) {
            let labels = self.metadata.labels.get_or_insert_default();
            labels.insert(key.into(), value.into());
        }

        /// Adds an annotation.
        fn annotation(self, key: impl Into<String>, value: impl Into<String>) {
            let annotations = self.metadata.annotations.get_or_insert_default();
            annotations.insert(key.into(), value.into());
        }

        /// Makes it end with a pod: the cluster deletes it soon after.
        fn owned_by_pod(self, pod: &Pod) {
            let (api_version, kind) = ("v1".to_owned(), "Pod".to_owned());
            self.own(OwnerReference {
                api_version,
                kind,
                name: pod.name.clone(),
                uid: pod.uid.clone(),
                ..OwnerReference::default()
            });
        }

        /// Makes it end with another object.
        fn owned_by(self, kind: &Kind, object: &Object) {
            self.own(OwnerReference {
                api_version: kind.resource.api_version.clone(),
                kind: kind.resource.kind.clone(),
                name: object.name.clone(),
                uid: object.uid.clone(),
                ..OwnerReference::default()
            });
        }
    }

    fn own(&mut self, owner: OwnerReference) {
        let owners = self.metadata.owner_references.get_or_insert_default();
        owners.push(owner);
    }
}

/// Creates an object.
///
/// # Errors
///
/// `AlreadyExists` if there is one of that name, also while that one is being deleted;
/// `Unavailable` if the cluster does not answer.
pub async fn create(cluster: &Cluster, kind: &Kind, draft: Draft) -> Result<Object> {
    let (cluster, kind) = (cluster.clone(), kind.clone());
    cluster::run(async move {
        let Draft { metadata, content } = draft;
        let mut object = DynamicObject::new("", &kind.resource).data(content);
        object.metadata = metadata;
        let kind = kind.of(&cluster)?;
        let created = kind.create(&PostParams::default(), &object).await;
        created
            .map(Object::new)
            .map_err(|error| cluster.error(error))
    })
    .await
}

/// Finds an object by its name. `None` if there is none.
///
/// # Errors
///
/// `Unavailable` if the cluster does not answer.
pub async fn find(cluster: &Cluster, kind: &Kind, name: &str) -> Result<Option<Object>> {
    let (cluster, kind, name) = (cluster.clone(), kind.clone(), checked(name)?);
    cluster::run(async move {
        let found = kind.of(&cluster)?.get(&name).await;
        Ok(cluster.found(found)?.map(Object::new))
    })
    .await
}

/// Lists the objects that a label selector matches.
///
/// # Errors
///
/// `TooLarge` if there are more than 100,000; `Unavailable` if the cluster does not answer.
pub async fn list(cluster: &Cluster, kind: &Kind, selector: &str) -> Result<Vec<Object>> {
    let (cluster, kind) = (cluster.clone(), kind.clone());
    let selector = selector.to_owned();
    cluster::run(async move {
        let (found, _) = list_all(&cluster, &kind.of(&cluster)?, &selector).await?;
        Ok(found.into_iter().map(Object::new).collect())
    })
    .await
}

/// Changes an object by a JSON merge patch, and returns the new one.
///
/// # Errors
///
/// `Conflict` if it was changed, or replaced by another one, since it was read; `NotFound` if
/// it no longer exists; `Unavailable` if the cluster does not answer.
pub async fn patch(
    cluster: &Cluster,
    kind: &Kind,
    object: &Object,
    change: Value,
) -> Result<Object> {
    let (cluster, kind, name) = (cluster.clone(), kind.clone(), checked(&object.name)?);
    let change = conditional(change, &object.uid, &object.resource_version);
    cluster::run(async move {
        let (params, change) = (PatchParams::default(), Patch::Merge(change));
        let changed = kind.of(&cluster)?.patch(&name, &params, &change).await;
        changed
            .map(Object::new)
            .map_err(|error| cluster.error(error))
    })
    .await
}

/// Deletes an object, and what it owns soon after; one of a [discovered](Kind::discover) kind
/// is there until what it owns is gone. Returns `false` if it is gone already.
///
/// # Errors
///
/// `Conflict` if it must be unchanged, and changed since it was read; `Unavailable` if the
/// cluster does not answer.
pub async fn delete(
    cluster: &Cluster,
    kind: &Kind,
    object: &Object,
    version: Version,
) -> Result<bool> {
    let (cluster, kind, name) = (cluster.clone(), kind.clone(), checked(&object.name)?);
    let params = if kind.owns {
        DeleteParams::foreground()
    } else {
        DeleteParams::background()
    };
    let conditions = version.preconditions(&object.uid, &object.resource_version);
    let params = params.preconditions(conditions);
    cluster::run(async move {
        match kind.of(&cluster)?.delete(&name, &params).await {
            Ok(_) => Ok(true),
            Err(error) => match cluster::status(&error) {
                Some(404) => Ok(false),
                // Another object has the name by now.
                Some(409) if version == Version::Any => Ok(false),
                _ => Err(cluster.error(error)),
            },
        }
    })
    .await
}

fn checked(name: &str) -> Result<String> {
    check::name("an object", name)?;
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_have_the_names_of_their_resources() {
        let plurals = [Kind::lease(), Kind::volume_claim(), Kind::secret()].map(|kind| {
            let resource = kind.resource;
            format!("{}/{}", resource.api_version, resource.plural)
        });
        let expected = [
            "coordination.k8s.io/v1/leases",
            "v1/persistentvolumeclaims",
            "v1/secrets",
        ];
        assert_eq!(plurals, expected);
    }

    #[test]
    fn an_object_is_read_whole_and_shown_without_its_content() {
        let found = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "env",
                "uid": "u",
                "resourceVersion": "7",
                "creationTimestamp": "1970-01-01T00:00:09Z",
                "deletionTimestamp": "1970-01-01T00:00:10Z",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "box", "uid": "p"},
                ],
            },
            "data": {"env": "bWlsaw=="},
        });
        let object = Object::new(serde_json::from_value(found).unwrap());
        assert_eq!((&*object.name, &*object.uid), ("env", "u"));
        assert_eq!(object.created, UNIX_EPOCH + Duration::from_secs(9));
        assert_eq!(object.owners, ["p"]);
        assert!(object.is_ending);
        assert_eq!(object.secret_value("env").as_deref(), Some(&b"milk"[..]));
        assert_eq!(object.secret_value("other"), None);
        assert!(!format!("{object:?}").contains("bWlsaw"));
    }
}
