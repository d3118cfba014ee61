//! Pods that are left over, and those that only look like it.

use sandbox_wire::owner::Owner;
use serde_json::{Value, json};

use backend_core::sync::lock;

use super::*;
use crate::pods::tests::{Answer, cluster_of, object};

/// A pod of a process that is gone.
fn left(name: &str, change: impl FnOnce(&mut Value)) -> Value {
    let mut gone = Owner::current().unwrap();
    gone.pid = u32::MAX - 9;
    let mut object = object(name, 5);
    object["metadata"]["labels"] =
        json!({labels::MANAGED_BY: labels::MANAGER, labels::SANDBOX: name});
    object["metadata"]["annotations"] = json!({
        labels::OWNER: gone.label(),
        labels::DISPOSAL: Disposal::Remove.as_str(),
    });
    change(&mut object["metadata"]);
    object
}

fn judged(object: Value) -> Option<Leftover> {
    let object: Object = serde_json::from_value(object).unwrap();
    judge(object, Pod::is_abandoned)
}

#[test]
fn only_what_a_dead_process_left_is_a_leftover() {
    let found = judged(left("box", |_| ())).unwrap();
    assert_eq!((&*found.name, &*found.image), ("box", "image"));
    let here = Owner::current().unwrap().label();
    type Change = fn(&mut Value, &str);
    let not_left: [(&str, Change); 6] = [
        ("alive", |metadata, here| {
            metadata["annotations"][labels::OWNER] = here.into();
        }),
        ("named", |metadata, _| {
            metadata["annotations"][labels::DISPOSAL] = Disposal::Keep.as_str().into();
        }),
        ("unknown", |metadata, _| {
            metadata["annotations"][labels::OWNER] = "nonsense".into();
        }),
        ("none of ours", |metadata, _| metadata["labels"] = json!({})),
        ("a copy", |metadata, _| metadata["name"] = "copy".into()),
        ("ending", |metadata, _| {
            metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
        }),
    ];
    for (why, change) in not_left {
        let object = left("box", |metadata| change(metadata, &here));
        assert_eq!(judged(object), None, "{why}");
    }
}

#[tokio::test]
async fn leftovers_are_deleted_unless_they_changed() {
    let (cluster, requests) = cluster_of(|asked| {
        if asked.method == "DELETE" {
            return match asked.target.contains("/changed") {
                true => Answer::Refused(409),
                false => Answer::Json(object("gone", 6)),
            };
        }
        if asked.target.contains("/pods/changed") {
            return Answer::Json(left("changed", |_| ()));
        }
        assert!(asked.target.contains("labelSelector="), "{asked:?}");
        Answer::Json(json!({
            "apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "9"},
            "items": [left("gone", |_| ()), left("changed", |_| ()), object("other", 1)],
        }))
    });
    let names = |found: Vec<Leftover>| -> Vec<String> {
        found.into_iter().map(|leftover| leftover.name).collect()
    };
    assert_eq!(
        names(leftovers(&cluster).await.unwrap()),
        ["gone", "changed"]
    );
    assert_eq!(names(reap(&cluster).await.unwrap()), ["gone"]);
    let requests = lock(&requests);
    let deleted = requests.iter().filter(|asked| asked.method == "DELETE");
    assert_eq!(deleted.count(), 2);
}
