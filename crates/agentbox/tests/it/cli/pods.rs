//! Messages about pods if there is no cluster, or if the build has no such backend.

#[cfg(feature = "k8s")]
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
#[cfg(feature = "k8s")]
use std::net::{TcpListener, TcpStream};

#[cfg(feature = "k8s")]
use serde_json::{Value, json};

use crate::support::TestDir;

/// A cluster at an address where nothing listens.
const KUBECONFIG: &str = r#"
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: none, user: {}}]
contexts: [{name: none, context: {cluster: none, user: none, namespace: agents}}]
current-context: none
"#;

const NOWHERE: (&str, &str) = ("KUBECONFIG", "kubeconfig");

fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.file("kubeconfig", KUBECONFIG);
    dir
}

#[cfg(not(feature = "k8s"))]
#[test]
fn without_the_feature_one_sentence_names_it() {
    let dir = dir();
    for (arguments, code) in [
        (&["call", "ls"][..], 3),
        // As with `timeout`: it was not started.
        (&["run", "--", "true"], 125),
        (&["sandboxes", "list"], 3),
        (&["sessions", "list"], 3),
        (&["mcp"], 3),
        (&["mcp-config", "zed"], 3),
    ] {
        let all = [&["--backend", "k8s:busybox"], arguments].concat();
        let ended = dir.run_with(&all, &[NOWHERE]).code(code);
        ended.complains("k8s needs a build with the feature k8s");
        ended.complains("cargo install --path crates/agentbox --features k8s");
    }
    let doctor = ["doctor", "--backend", "k8s:busybox"];
    let said = dir.run(&doctor).code(3).out;
    assert!(said.contains("the feature k8s"), "{said}");
}

#[cfg(feature = "k8s")]
#[test]
fn no_cluster_is_3_with_what_to_do() {
    let dir = dir();
    for arguments in [
        ["--backend", "k8s", "sandboxes", "list"],
        ["--backend", "k8s", "sandboxes", "reap"],
        ["--backend", "k8s:attach=box", "call", "ls"],
    ] {
        let ended = dir.run_with(&arguments, &[NOWHERE]).code(3);
        ended.complains("start the cluster, or set KUBECONFIG");
    }
    let call = ["--backend", "k8s:busybox", "call", "ls"];
    let ended = dir.run_with(&call, &[NOWHERE]).code(3);
    // Nothing was started, so nothing is left to be deleted.
    assert!(!ended.err.contains("WARN"), "{}", ended.err);
    dir.run(&call).code(64).complains("set KUBECONFIG");
}

#[cfg(feature = "k8s")]
#[test]
fn what_makes_no_sense_is_64() {
    let dir = dir();
    for (config, spec, about) in [
        ("", "k8s", "k8s:IMAGE"),
        ("", "k8s:", "k8s:IMAGE"),
        ("", "k8s:runtime=", "k8s:runtime=NAME"),
        ("", "k8s:attach=", "k8s:attach=POD"),
        ("", "k8s:runtime=pyton-web", "python-web"),
        (
            "",
            "k8s:runtime=python-web",
            "agentbox runtimes build python-web --tag REF",
        ),
        ("privileged = true", "k8s:a", "privileged"),
        ("memory = \"lots\"", "k8s:a", "512m"),
        ("volumes = [\"/a\"]", "k8s:a", "CLAIM:TARGET"),
        ("empty_dirs = [\"/a:b\"]", "k8s:a", "PATH:SIZE"),
        ("tmpfs = [\"/a\"]", "k8s:a", "PATH:SIZE"),
        ("user = \"root\"", "k8s:a", "UID:GID"),
        ("owner_pod = \"a\"", "k8s:a", "NAME:UID"),
        ("relax = [\"everything\"]", "k8s:a", "everything"),
        ("network = \"bridge\"", "k8s:a", "bridge"),
        ("image = \"a\"\nruntime = \"b\"", "k8s", "remove one"),
        ("context = \"a\"", "k8s:a", "set kubeconfig"),
        ("kubeconfig = \"none\"", "k8s:a", "cannot be used"),
    ] {
        dir.file("config.toml", &format!("[k8s]\n{config}\n"));
        let arguments = ["--config", "config.toml", "--backend", spec, "tools"];
        let ended = dir.run_with(&arguments, &[NOWHERE]);
        assert_eq!(ended.code, 64, "{config} {spec}: {}", ended.err);
        assert!(ended.err.contains(about), "{}", ended.err);
    }
}

#[cfg(feature = "k8s")]
#[test]
fn sessions_have_pods_and_no_directories() {
    let dir = dir();
    for (arguments, code, about) in [
        (
            &["--backend", "k8s", "sessions", "list"][..],
            3,
            "set KUBECONFIG",
        ),
        (
            &["--backend", "k8s", "sessions", "--workspaces", ".", "list"],
            64,
            "session_volumes",
        ),
        (
            &["--backend", "k8s", "sessions", "files", "alice"],
            64,
            "--workspaces",
        ),
    ] {
        let ended = dir.run_with(arguments, &[NOWHERE]).code(code);
        ended.complains(about);
    }
    let address = ["--http", "127.0.0.1:0", "--no-token", "--workspaces", "new"];
    for (backend, about) in [
        ("k8s:busybox", "session_volumes"),
        ("k8s:attach=box", "each session has its own"),
    ] {
        let serve = [&["mcp", "--backend", backend], &address[..]].concat();
        dir.run_with(&serve, &[NOWHERE]).code(64).complains(about);
    }
}

#[cfg(feature = "k8s")]
#[test]
fn the_doctor_asks_the_cluster_only_for_pods() {
    let dir = dir();
    for (variables, fix) in [
        (&[NOWHERE][..], "start the cluster, or set KUBECONFIG"),
        (&[], "set KUBECONFIG"),
    ] {
        let doctor = ["doctor", "--backend", "k8s:busybox", "--json"];
        let found = dir.run_with(&doctor, variables).code(3).json();
        let findings = found["findings"].as_array().unwrap();
        let bad =
            |finding: &&serde_json::Value| finding["needed"] == true && finding["ok"] == false;
        let bad: Vec<_> = findings.iter().filter(bad).collect();
        assert_eq!(bad.len(), 1, "{bad:?}");
        assert_eq!(bad[0]["name"], "kubernetes");
        let said = bad[0]["fix"].as_str().unwrap();
        assert!(said.contains(fix), "{said}");
    }
    let found = dir.run_with(&["doctor", "--json"], &[NOWHERE]).code(0);
    assert!(!found.out.contains("kubernetes"), "{}", found.out);
}

/// Starts a cluster that grants all rights but those on one resource, and returns its
/// kubeconfig.
#[cfg(feature = "k8s")]
fn cluster_without(resource: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(connection, resource));
        }
    });
    KUBECONFIG.replace("127.0.0.1:1", &address.to_string())
}

/// Answers one request.
#[cfg(feature = "k8s")]
fn answer(mut connection: TcpStream, refused: &str) {
    let mut reader = BufReader::new(&connection);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
    let lines = head.lines().map(str::to_ascii_lowercase);
    for line in lines {
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer = if head.contains(" /version") {
        let names = "buildDate compiler gitCommit gitTreeState goVersion major minor platform";
        let mut info: Value = names
            .split(' ')
            .map(|name| (name.to_owned(), json!("")))
            .collect();
        info["gitVersion"] = "v1.36.3".into();
        info
    } else if head.contains("/selfsubjectaccessreviews") {
        let mut review: Value = serde_json::from_slice(&body).unwrap();
        let is_allowed = review["spec"]["resourceAttributes"]["resource"] != *refused;
        review["status"] = json!({"allowed": is_allowed});
        review
    } else {
        json!({"metadata": {}, "items": []})
    };
    let answer = answer.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    let length = answer.len();
    write!(
        connection,
        "{head}\r\ncontent-length: {length}\r\n\r\n{answer}"
    )
    .unwrap();
}

#[cfg(feature = "k8s")]
#[test]
fn the_doctor_names_the_rights_of_sessions_that_are_missing() {
    let dir = dir();
    for (refused, config, missing) in [
        (
            "leases",
            "",
            "create leases, delete leases, get leases, list leases",
        ),
        ("secrets", "", ""),
        ("persistentvolumeclaims", "", ""),
        (
            "persistentvolumeclaims",
            "session_volumes = \"1g\"",
            "create persistentvolumeclaims",
        ),
    ] {
        dir.file("kubeconfig", &cluster_without(refused));
        dir.file("config.toml", &format!("[k8s]\n{config}\n"));
        let doctor = ["--config", "config.toml", "--backend", "k8s:busybox"];
        let doctor = [&doctor[..], &["doctor", "--json"]].concat();
        let found = dir.run_with(&doctor, &[NOWHERE]).code(0).json();
        let findings = found["findings"].as_array().unwrap();
        let named = |name: &str| findings.iter().find(|finding| finding["name"] == name);
        assert_eq!(named("rights").unwrap()["ok"], true, "{found}");
        let rights = named("session rights").unwrap();
        assert_eq!(rights["ok"], missing.is_empty(), "{rights}");
        let said = rights["found"].as_str().unwrap();
        assert!(said.contains(missing), "{rights}");
        if !missing.is_empty() {
            let fix = rights["fix"].as_str().unwrap();
            assert!(fix.contains("docs/kubernetes-rbac.yaml"), "{fix}");
        }
    }
}

#[cfg(feature = "k8s")]
#[test]
fn a_client_gets_the_cluster_and_no_secrets() {
    let dir = dir();
    let here = dir.path("").canonicalize().unwrap();
    let ask = |backend: &str| {
        let variables = [
            ("KUBECONFIG", "kubeconfig:/etc/other"),
            ("AGENTBOX_K8S_KUBECONFIG", "kubeconfig"),
            ("AGENTBOX_K8S_NAMESPACE", "agents"),
            ("AGENTBOX_K8S_ENV", r#"{KEY = "hush"}"#),
        ];
        let arguments = ["mcp-config", "cursor", "--backend", backend];
        let ended = dir.run_with(&arguments, &variables).code(0);
        assert!(!ended.out.contains("hush") && !ended.err.contains("hush"));
        let server = ended.json()["mcpServers"]["agentbox"]["env"].take();
        (server, ended.err)
    };
    let (env, notes) = ask("k8s:busybox");
    assert!(
        notes.contains("AGENTBOX_K8S_ENV may hold secrets"),
        "{notes}"
    );
    let file = here.join("kubeconfig").display().to_string();
    assert_eq!(env["AGENTBOX_K8S_KUBECONFIG"], file);
    assert_eq!(env["AGENTBOX_K8S_NAMESPACE"], "agents");
    assert_eq!(env["KUBECONFIG"], format!("{file}:/etc/other"));
    let (env, _) = ask("docker:busybox");
    assert!(env.get("KUBECONFIG").is_none(), "{env}");
}
