//! Options that pass validation and options that do not.

use super::*;

fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[test]
fn names() {
    for good in ["a", "my-box-1", "0a", &"a".repeat(63)] {
        pod(good).unwrap();
    }
    let long = "a".repeat(64);
    for bad in [
        "", "-a", "a-", ".a", "a.b", "a b", "a/b", "a_b", "A", "a\n", "ä1", "../x", &long,
    ] {
        refused(pod(bad));
    }
    name("a claim", "files.of-alice").unwrap();
    for bad in ["", "a/b", "Files", "a?b", "a.", "../x"] {
        refused(name("a claim", bad));
    }
}

#[test]
fn variables_labels_and_annotations() {
    variable("A_1", "x=y\n").unwrap();
    for bad in ["", "1A", "A-B", "A=B", "A\0", "Ä"] {
        refused(variable(bad, ""));
    }
    refused(variable("A", "\0"));
    label("example.com/team", "red").unwrap();
    label("team", "").unwrap();
    for bad in ["", "a b", "a=b", "/a", "a/", "a/b/c", "Example.com/a"] {
        refused(label(bad, ""));
    }
    for reserved in ["agentbox.dev/sandbox", MANAGED_BY] {
        assert!(refused(label(reserved, "")).contains("reserved"));
        assert!(refused(annotation(reserved, "")).contains("reserved"));
    }
    for bad in ["a b", "-", "a\n", &"a".repeat(64)] {
        refused(label("a", bad));
    }
    annotation("example.com/note", "any text\n").unwrap();
    node_label("kubernetes.io/arch", "amd64").unwrap();
    refused(node_label("kubernetes.io/arch", "a b"));
}

#[test]
fn capabilities_and_images() {
    capability("NET_BIND_SERVICE").unwrap();
    for bad in ["", "CAP_CHOWN", "net_raw", "A B"] {
        refused(capability(bad));
    }
    assert!(refused(capability("ALL")).contains("privileged"));
    for good in ["a", "python:3.12-slim", "my.mirror:5000/a/b@sha256:00"] {
        image(good).unwrap();
    }
    for bad in ["", "-x", "a b", "a\n", "$x", "/a", "a:"] {
        refused(image(bad));
    }
}

#[test]
fn places() {
    assert_eq!(absolute_path("work", "/a//b/").unwrap().as_str(), "/a/b");
    for bad in ["", "a", "~/x", "/a\0", "/proc/self", "/dev", "/a/../dev"] {
        refused(absolute_path("work", bad));
    }
    refused(mount_point("/"));
    refused(mount_point("/a:b"));
}
