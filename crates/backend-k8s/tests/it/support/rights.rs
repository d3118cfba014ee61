//! The rights of docs/kubernetes-rbac.yaml, in the namespace of a test.

use std::collections::BTreeSet;
use std::path::Path;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use yaml_rust2::{Yaml, YamlLoader};

use super::place::Place;

/// Returns the manifest's objects, for the namespace of a test.
fn manifest(namespace: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kubernetes-rbac.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let documents = YamlLoader::load_from_str(&text).unwrap();
    let objects = documents.iter().filter(|document| !document.is_null());
    let moved = |document: &Yaml| {
        let mut object = json_of(document);
        object["metadata"]["namespace"] = json!(namespace);
        let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
        for subject in subjects.into_iter().flatten() {
            subject["namespace"] = json!(namespace);
        }
        object
    };
    objects.map(moved).collect()
}

fn json_of(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::String(text) => json!(text),
        Yaml::Integer(number) => json!(number),
        Yaml::Boolean(value) => json!(value),
        Yaml::Array(values) => values.iter().map(json_of).collect(),
        Yaml::Hash(fields) => {
            let text = |key: &Yaml| key.as_str().unwrap().to_owned();
            let fields = fields
                .iter()
                .map(|(key, value)| (text(key), json_of(value)));
            Value::Object(fields.collect())
        }
        other => panic!("no manifest has {other:?}"),
    }
}

/// Creates the objects of the manifest, except the namespace, of which there is one. Returns
/// the account's name, and the roles' rules about pods, as `VERB RESOURCE`.
pub(crate) async fn granted(place: &Place) -> (String, BTreeSet<String>) {
    let (mut account, mut rights) = (String::new(), BTreeSet::new());
    for object in manifest(&place.namespace) {
        let kind = object["kind"].as_str().unwrap().to_owned();
        match &*kind {
            "Namespace" => {}
            "ServiceAccount" => account = place.create::<ServiceAccount>(object).await.name_any(),
            "Role" => {
                let role: Role = place.create(object).await;
                for rule in role.rules.unwrap_or_default() {
                    let resources = rule.resources.unwrap_or_default();
                    let about_pods = resources.iter().filter(|it| it.starts_with("pods"));
                    for resource in about_pods {
                        rights.extend(rule.verbs.iter().map(|verb| format!("{verb} {resource}")));
                    }
                }
            }
            "RoleBinding" => drop(place.create::<RoleBinding>(object).await),
            _ => panic!("a namespace's rights need no {kind}"),
        }
    }
    (account, rights)
}

/// Gives the namespace of a test the labels of the manifest's.
pub(crate) async fn relabel(place: &Place) {
    let all = manifest(&place.namespace);
    let namespace = all.iter().find(|object| object["kind"] == "Namespace");
    let labels = &namespace.unwrap()["metadata"]["labels"];
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    let options = PatchParams::default();
    let patched = namespaces.patch(&place.namespace, &options, &patch).await;
    patched.unwrap();
}
