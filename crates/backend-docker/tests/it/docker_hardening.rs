//! The rights of a sandbox, seen from inside, and what each relaxation gives up.

use std::collections::HashMap;

use backend_core::{BackendExt as _, ErrorKind};
use backend_docker::{DockerSandbox, Mode, Network, Relaxation};
use backend_testkit::fails;

use crate::support::docker;
use crate::support::docker::{builder, outcome, purge, run};

/// Returns the fields of `/proc/self/status` of a command.
async fn status(sandbox: &DockerSandbox) -> HashMap<String, String> {
    let text = run(sandbox, "cat /proc/self/status").await;
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    text.lines().filter_map(field).collect()
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn hardened_by_default() {
    let sandbox = builder().build().unwrap();
    let status = status(&sandbox).await;
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(status[name], "0000000000000000", "{name}");
    }
    assert_eq!(status["NoNewPrivs"], "1");
    assert_eq!(status["Seccomp"], "2");
    assert_eq!(status["Uid"], "1000\t1000\t1000\t1000");
    assert_eq!(status["Gid"], "1000\t1000\t1000\t1000");
    let interfaces = run(&sandbox, "ls /sys/class/net").await;
    assert_eq!(interfaces, "lo");
    let init = run(&sandbox, "cat /proc/1/comm; grep -h Uid /proc/1/status").await;
    assert_eq!(init, "docker-init\nUid:\t1000\t1000\t1000\t1000");
    let refused = outcome(&sandbox, "echo x > /etc/passwd").await.unwrap();
    assert!(!refused.status.success());
    // The working directory and the home belong to the user, and nothing else does.
    let places = run(
        &sandbox,
        "echo a > a; echo $HOME; echo b > $HOME/b; ls -ld . $HOME",
    )
    .await;
    assert!(places.starts_with("/home/agent\n"), "{places}");
    assert_eq!(places.matches("1000     1000").count(), 2, "{places}");
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn limits_hold() {
    let sandbox = builder().memory(64 << 20).pids_limit(32).build().unwrap();
    let memory = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max";
    assert_eq!(run(&sandbox, memory).await, (64 << 20).to_string());
    let pids = "cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max";
    assert_eq!(run(&sandbox, pids).await, "32");
    let bomb = "for i in $(seq 60); do sleep 5 & done; echo none";
    let bombed = outcome(&sandbox, bomb).await.unwrap();
    let said = bombed.stderr.text();
    assert!(said.contains("can't fork"), "{}: {said}", bombed.status);
    // Exceeding the memory limit kills the command, not the sandbox.
    let hog = outcome(
        &sandbox,
        "head -c 200m /dev/zero | tail -c 200m > /dev/null; echo $?",
    );
    let hog = hog.await.unwrap();
    assert!(
        hog.stdout.text().contains("137") || !hog.status.success(),
        "{hog:?}"
    );
    assert_eq!(run(&sandbox, "echo alive").await, "alive");
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_read_only_root_still_works_in_both_deliveries() {
    use backend_docker::Delivery;
    for delivery in [Delivery::Bind, Delivery::Upload] {
        let sandbox = builder()
            .read_only_root(true)
            .delivery(delivery)
            .build()
            .unwrap();
        sandbox.write_file("a.txt", "one\n").await.unwrap();
        assert_eq!(
            run(
                &sandbox,
                "cat a.txt; id -u; cp /bin/busybox echo; ./echo ran"
            )
            .await,
            "one\n1000\nran"
        );
        let refused = outcome(&sandbox, "echo x > /x").await.unwrap();
        assert!(refused.stderr.text().contains("Read-only"), "{refused:?}");
        fails(
            ErrorKind::PermissionDenied,
            sandbox.write_file("/x", "x").await,
        );
        purge(&sandbox).await;
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_agent_leaves_no_trace_when_mounted() {
    let sandbox = builder().user("0").build().unwrap();
    run(&sandbox, "true").await;
    let changes = docker::docker(&["diff", sandbox.container()]);
    assert!(!changes.contains("agent"), "{changes}");
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn an_uploaded_agent_serves_too() {
    let sandbox = builder()
        .delivery(backend_docker::Delivery::Upload)
        .build()
        .unwrap();
    assert_eq!(run(&sandbox, "id -u; echo x > x; cat x").await, "1000\nx");
    assert!(docker::docker(&["diff", sandbox.container()]).contains("/.agentbox/"));
    let refused = outcome(&sandbox, "rm -rf /.agentbox").await.unwrap();
    assert!(!refused.status.success(), "the agent is root's");
    backend_core::Sandbox::stop(&sandbox, backend_core::ops::StopMode::Keep)
        .await
        .unwrap();
    assert_eq!(run(&sandbox, "cat x").await, "x");
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn relaxations_are_what_they_say() {
    let sandbox = builder()
        .user("0")
        .add_capability("NET_BIND_SERVICE")
        .relax(Relaxation::HostNetwork)
        .relax(Relaxation::HostProcesses)
        .relax(Relaxation::NewPrivileges)
        .relax(Relaxation::UnconfinedSeccomp)
        .relax(Relaxation::UnlimitedProcesses)
        .relax(Relaxation::UnlimitedMemory)
        .build()
        .unwrap();
    assert_eq!(sandbox.relaxations().len(), 6);
    let status = status(&sandbox).await;
    assert_eq!(status["CapEff"], "0000000000000400", "one capability");
    assert_eq!(status["NoNewPrivs"], "0");
    assert_eq!(status["Seccomp"], "0");
    assert_eq!(status["Uid"], "0\t0\t0\t0");
    let host = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(
        run(&sandbox, "readlink /proc/self/ns/net").await,
        host.to_str().unwrap()
    );
    let host = std::fs::read_link("/proc/self/ns/pid").unwrap();
    assert_eq!(
        run(&sandbox, "readlink /proc/self/ns/pid").await,
        host.to_str().unwrap()
    );
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_profile_of_ones_own_is_used() {
    // Everything is allowed but making directories.
    let profile = r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO"}]}"#;
    let sandbox = builder()
        .user("0")
        .seccomp_profile(profile)
        .build()
        .unwrap();
    let refused = outcome(&sandbox, "mkdir /tmp/x").await.unwrap();
    assert!(
        refused.stderr.text().contains("not permitted"),
        "{refused:?}"
    );
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_environment_arrives_and_certificates_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = directory.path().join("ca.crt");
    std::fs::write(&bundle, "-----BEGIN CERTIFICATE-----\n").unwrap();
    let sandbox = builder()
        .env("MINE", "a b")
        .env("PAGER", "less")
        .ca_bundle(&bundle)
        .tmpfs("/fast", "size=1m")
        .build()
        .unwrap();
    let all = run(
        &sandbox,
        "echo $MINE:$PAGER:$GIT_PAGER:$LANG; cat $PIP_CERT $SSL_CERT_FILE",
    )
    .await;
    assert_eq!(
        all,
        "a b:less:cat:C.UTF-8\n-----BEGIN CERTIFICATE-----\n-----BEGIN CERTIFICATE-----"
    );
    let fast = run(&sandbox, "touch /fast/mine && mount | grep ' /fast '").await;
    assert!(
        !fast.contains("noexec") && fast.contains("size=1024k"),
        "{fast}"
    );
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_network_only_when_asked() {
    let name = format!("agentbox-test-{:x}", std::process::id());
    docker::docker(&["network", "create", "--internal", &name]);
    let network = Network::Named(name.clone());
    let sandbox = builder().network(network).build().unwrap();
    let interfaces = run(&sandbox, "ls /sys/class/net").await;
    assert!(interfaces.contains("eth0"), "{interfaces}");
    purge(&sandbox).await;
    docker::docker(&["network", "rm", &name]);
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_directory_that_leads_to_the_daemon_is_refused_behind_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let address = docker::variable("DOCKER_HOST");
    let socket = address.strip_prefix("unix://").unwrap();
    let link = directory.path().join("innocent");
    std::os::unix::fs::symlink(std::path::Path::new(socket).parent().unwrap(), &link).unwrap();
    let volume = backend_docker::Volume::host(&link, "/x");
    let sandbox = builder().volume(volume).mode(Mode::Agent).build().unwrap();
    let error = run_error(&sandbox).await;
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("container engine"), "{error}");
}

async fn run_error(sandbox: &DockerSandbox) -> backend_core::Error {
    outcome(sandbox, "true").await.unwrap_err()
}
