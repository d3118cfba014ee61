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
    for good in ["files.of-alice", "0", &"a".repeat(253)] {
        name("a claim", good).unwrap();
    }
    let long = "a".repeat(254);
    // A name is a part of the path of requests, which it must not leave.
    for bad in [
        "", "a/b", "Files", "a?b", "a.", "../x", "..", "a..b", "a%2f", "ä", "a b", &long,
    ] {
        refused(name("a claim", bad));
    }
}

#[test]
fn labels_and_annotations() {
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
fn mount_points() {
    mount_point("/a").unwrap();
    refused(mount_point("/"));
    refused(mount_point("/a:b"));
}
