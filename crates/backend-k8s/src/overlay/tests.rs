//! Overlays as people write them, and properties of any overlay.

use std::collections::BTreeMap;

use backend_core::ErrorKind;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn pod() -> Value {
    json!({
        "metadata": {"name": "box", "labels": {"a": "1", "b": "2"}},
        "spec": {
            "containers": [{
                "name": "sandbox",
                "image": "image:1",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "command": ["sh", "-c", "true"],
                "resources": {"limits": {"memory": "2147483648"}},
                "volumeMounts": [{"name": "work", "mountPath": "/workspace"}],
            }],
            "tolerations": [{"key": "a"}],
            "volumes": [{"name": "work", "emptyDir": {}}],
        },
    })
}

fn with(overlay: Value) -> Value {
    check(&overlay).unwrap();
    merge(pod(), &overlay)
}

#[test]
fn maps_are_merged_and_values_replaced() {
    let merged = with(json!({
        "metadata": {"labels": {"b": null, "c": "3"}},
        "spec": {"priorityClassName": "low", "tolerations": [{"key": "b"}]},
    }));
    assert_eq!(merged["metadata"]["labels"], json!({"a": "1", "c": "3"}));
    assert_eq!(merged["metadata"]["name"], "box");
    assert_eq!(merged["spec"]["priorityClassName"], "low");
    assert_eq!(
        merged["spec"]["tolerations"],
        json!([{"key": "b"}]),
        "a list without names is one value"
    );
    assert_eq!(merged["spec"]["volumes"], pod()["spec"]["volumes"]);
}

#[test]
fn lists_of_named_things_are_merged_by_name() {
    let merged = with(json!({"spec": {
        "containers": [
            {"name": "sandbox", "command": ["sleep"], "env": [
                {"name": "B", "value": "two"},
                {"name": "A", "$patch": "delete"},
                {"name": "C", "value": "3"},
            ], "resources": {"limits": {"nvidia.com/gpu": 1}}},
            {"name": "proxy", "image": "proxy:1"},
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }}));
    let sandbox = &merged["spec"]["containers"][0];
    assert_eq!(sandbox["image"], "image:1");
    assert_eq!(sandbox["command"], json!(["sleep"]));
    assert_eq!(
        sandbox["env"],
        json!([{"name": "B", "value": "two"}, {"name": "C", "value": "3"}])
    );
    assert_eq!(sandbox["resources"]["limits"]["memory"], "2147483648");
    assert_eq!(sandbox["resources"]["limits"]["nvidia.com/gpu"], 1);
    assert_eq!(merged["spec"]["containers"][1]["name"], "proxy");
    let volumes = merged["spec"]["volumes"].as_array().unwrap();
    assert_eq!(volumes.len(), 2);
}

#[test]
fn a_part_can_be_replaced_as_a_whole() {
    let merged = with(json!({"spec": {
        "containers": [{"name": "sandbox",
            "resources": {"$patch": "replace", "limits": {"memory": "1Gi"}},
            "env": [{"$patch": "replace"}, {"name": "Z", "value": "26"}]}],
        "volumes": [{"name": "work", "$patch": "replace", "ephemeral": {}}],
    }}));
    let sandbox = &merged["spec"]["containers"][0];
    assert_eq!(sandbox["resources"], json!({"limits": {"memory": "1Gi"}}));
    assert_eq!(sandbox["env"], json!([{"name": "Z", "value": "26"}]));
    assert_eq!(
        merged["spec"]["volumes"],
        json!([{"name": "work", "ephemeral": {}}])
    );
}

#[test]
fn a_sandbox_keeps_what_makes_it_one() {
    for (overlay, expected) in [
        (json!([]), "JSON object"),
        (json!({"spec": null}), "JSON object"),
        (json!({"spec": {"$patch": "replace"}}), "$patch"),
        (json!({"status": {}}), "pod template"),
        (json!({"metadata": {"name": "x"}}), "'name'"),
        (json!({"metadata": {"namespace": "x"}}), "'namespace'"),
        (json!({"metadata": {"labels": "x"}}), "not a map"),
        (
            json!({"metadata": {"labels": {"agentbox.dev/sandbox": "x"}}}),
            "reserved",
        ),
        (
            json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}),
            "reserved",
        ),
        (json!({"spec": {"containers": null}}), "not a list"),
        (
            json!({"spec": {"containers": [{"$patch": "replace"}]}}),
            "removes the container",
        ),
        (
            json!({"spec": {"containers": [{"name": "sandbox", "$patch": "delete"}]}}),
            "removes the container",
        ),
        (
            json!({"spec": {"containers": [{"image": "x"}]}}),
            "has no name",
        ),
        (json!({"spec": {"$retainKeys": ["a"]}}), "$retainKeys"),
        (
            json!({"spec": {"securityContext": {"$patch": "burn"}}}),
            "$patch",
        ),
        (
            json!({"spec": {"tolerations": [{"$patch": "delete"}]}}),
            "as a whole",
        ),
    ] {
        let error = check(&overlay).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().contains(expected), "{overlay}: {error}");
    }
    let deep = (0..200).fold(json!({}), |inner, _| json!({"a": inner}));
    let error = check(&json!({"spec": deep})).unwrap_err();
    assert!(error.message().contains("levels"), "{error}");
}

/// Values without directives.
fn plain() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0u8..4).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let key = prop_oneof![Just("env".to_owned()), "[a-c]"];
        let map = prop::collection::btree_map("[a-c]", inner.clone(), 0..3);
        let named = prop::collection::btree_map("[a-c]", map.clone(), 0..3);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
            map.prop_map(|map| Value::Object(map.into_iter().collect())),
            (key, named).prop_map(|(key, named)| {
                let element = |(name, map): (String, BTreeMap<String, Value>)| {
                    let mut map: Map<String, Value> = map.into_iter().collect();
                    map.insert("name".to_owned(), name.into());
                    Value::Object(map)
                };
                json!({ key: Value::Array(named.into_iter().map(element).collect()) })
            }),
        ]
    })
}

proptest! {
    #[test]
    fn an_empty_overlay_changes_nothing(base in plain()) {
        let base = json!({"spec": base});
        prop_assert_eq!(merge(base.clone(), &json!({})), base);
    }

    #[test]
    fn merging_twice_is_merging_once(base in plain(), overlay in plain()) {
        let overlay = json!({"spec": overlay});
        let once = merge(json!({"spec": base}), &overlay);
        prop_assert_eq!(merge(once.clone(), &overlay), once);
    }

    #[test]
    fn a_pod_merged_with_itself_is_itself(base in plain()) {
        let base = json!({"spec": base});
        prop_assert_eq!(merge(base.clone(), &base), base);
    }
}
