//! Messages about pods if there is no cluster, or if the build has no such backend.

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
    for arguments in [
        &["call", "ls"][..],
        &["run", "--", "true"],
        &["sandboxes", "list"],
        &["sessions", "list"],
        &["mcp"],
        &["mcp-config", "zed"],
    ] {
        let all = [&["--backend", "k8s:busybox"], arguments].concat();
        let ended = dir.run_with(&all, &[NOWHERE]).code(3);
        ended.complains("k8s needs a build with the feature k8s");
        ended.complains("cargo install agentbox-cli --features k8s");
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
