//! Options that pass validation and options that do not.

use super::*;

fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[test]
fn names() {
    for good in ["ab", "my-box_1.2", "0a"] {
        container(good).unwrap();
    }
    let long = "a".repeat(129);
    for bad in [
        "", "a", "-a", ".a", "a b", "a/b", "a:b", "a\n", "ä1", "../x", &long,
    ] {
        refused(container(bad));
    }
    refused(network("container:abc"));
    assert!(refused(network("host")).contains("HostNetwork"));
}

#[test]
fn labels() {
    label("com.example/x", "anything\n").unwrap();
    for bad in ["", "a b", "a=b", "agentbox.sandbox"] {
        refused(label(bad, ""));
    }
    refused(label("a", "\0"));
}

#[test]
fn users() {
    for good in ["1000", "1000:1000", "node", "www-data:www-data", "0"] {
        user(good).unwrap();
    }
    for bad in [
        "",
        ":",
        "1000:",
        ":0",
        "a b",
        "-1",
        "4294967295",
        "a:b:c",
        "$(id)",
    ] {
        refused(user(bad));
    }
}

#[test]
fn capabilities() {
    capability("NET_BIND_SERVICE").unwrap();
    capability("CAP_CHOWN").unwrap();
    for bad in ["", "CAP_", "net_raw", "CAP_ALL"] {
        refused(capability(bad));
    }
}

#[test]
fn profiles_and_tmpfs() {
    seccomp("{}").unwrap();
    for bad in ["", "unconfined", "[]", "\"x\"", "/etc/profile.json"] {
        refused(seccomp(bad));
    }
    tmpfs("size=64m,mode=1777").unwrap();
    tmpfs("").unwrap();
    refused(tmpfs("size=1 ,x"));
    refused(tmpfs("a:b"));
}

#[test]
fn nothing_that_leads_to_an_engine_or_the_kernel_is_mounted() {
    let engine = Some(Path::new("/opt/own/engine.sock"));
    host_source(Path::new("/home/me/project"), engine).unwrap();
    host_source(Path::new("/opt/own/data"), engine).unwrap();
    for bad in [
        "/",
        "/var",
        "/var/run",
        "/var/run/docker.sock",
        "/run",
        "/opt/own",
        "/opt/own/engine.sock",
        "/proc",
        "/sys/fs/cgroup",
        "/dev/kvm",
        "relative",
        "/a/../var/run",
    ] {
        refused(host_source(Path::new(bad), engine));
    }
}
