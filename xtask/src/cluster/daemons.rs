//! The daemons of a cluster, and the scripts that start them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::cluster::binary::Programs;
use crate::cluster::layout::{API_PORT, Layout, NODE, NODE_IP, SERVICE_NETWORK};

pub(super) const CONTAINERD: &str = "containerd";
pub(super) const ETCD: &str = "etcd";
pub(super) const APISERVER: &str = "apiserver";
pub(super) const CONTROLLERS: &str = "controllers";
pub(super) const SCHEDULER: &str = "scheduler";
pub(super) const KUBELET: &str = "kubelet";
pub(super) const AGENT_SANDBOX: &str = "agent-sandbox";

/// All daemons. Their names are also those of their files.
pub(super) const ALL: [&str; 7] = [
    CONTAINERD,
    ETCD,
    APISERVER,
    CONTROLLERS,
    SCHEDULER,
    KUBELET,
    AGENT_SANDBOX,
];

/// Where daemons look for programs. They inherit no variable: a proxy, for example, is
/// not for them.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The addresses of etcd for its client and for other members, of which there are none.
const ETCD_CLIENT: &str = "http://127.0.0.1:2379";
const ETCD_PEER: &str = "http://127.0.0.1:2380";

/// Writes a script for each daemon, and one that is `kubectl`.
pub(super) fn write_scripts(layout: &Layout, programs: &Programs) -> Result<()> {
    for daemon in ALL {
        let words = command_line(layout, programs, daemon);
        write(&layout.start(daemon), &start_script(layout, daemon, &words))?;
    }
    write(
        &layout.kubectl(),
        &kubectl_script(layout, &programs.kubernetes),
    )
}

fn write(path: &str, text: &str) -> Result<()> {
    fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("cannot write {path}"))
}

/// Returns a script that is `kubectl`, and leaves nothing in the user's home.
fn kubectl_script(layout: &Layout, kube: &Path) -> String {
    format!(
        "#!/bin/sh\n\
         export KUBECONFIG='{}' KUBECACHEDIR='{}'\n\
         exec '{}' kubectl \"$@\"\n",
        layout.kubeconfig(),
        layout.path("kubectl-cache"),
        kube.display()
    )
}

/// Returns a script that starts a daemon in the background, writes its number and ends.
fn start_script(layout: &Layout, daemon: &str, words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    // `setsid` and `env` become the daemon, so the number is the daemon's.
    format!(
        "#!/bin/sh\n\
         cd '{directory}' || exit\n\
         setsid env -i PATH='{PATH}' HOME='{directory}' \\\n  {words} \\\n  \
         </dev/null >>'{log}' 2>&1 &\n\
         echo $! >'{pid}'\n",
        directory = layout.directory(),
        words = words.join(" \\\n  "),
        log = layout.log(daemon),
        pid = layout.pid(daemon),
    )
}

/// Returns the program of a daemon and its arguments.
fn command_line(layout: &Layout, programs: &Programs, daemon: &str) -> Vec<String> {
    let arguments = match daemon {
        CONTAINERD => {
            let config = layout.path("containerd.toml");
            return vec![CONTAINERD.to_owned(), format!("--config={config}")];
        }
        AGENT_SANDBOX => return agent_sandbox(layout, &programs.agent_sandbox),
        ETCD => etcd(layout),
        APISERVER => apiserver(layout),
        CONTROLLERS => controllers(layout),
        SCHEDULER => scheduler(layout),
        _ => kubelet(layout),
    };
    let program = [programs.kubernetes.display().to_string(), daemon.to_owned()];
    program.into_iter().chain(arguments).collect()
}

fn etcd(layout: &Layout) -> Vec<String> {
    vec![
        format!("--data-dir={}", layout.path("etcd")),
        format!("--listen-client-urls={ETCD_CLIENT}"),
        format!("--advertise-client-urls={ETCD_CLIENT}"),
        format!("--listen-peer-urls={ETCD_PEER}"),
        format!("--initial-advertise-peer-urls={ETCD_PEER}"),
        format!("--initial-cluster=default={ETCD_PEER}"),
        // Nothing has to survive a crash of the machine.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn apiserver(layout: &Layout) -> Vec<String> {
    let certificate = |name| layout.certificate(name);
    vec![
        format!("--etcd-servers={ETCD_CLIENT}"),
        // All addresses are inside the cluster's own network namespace.
        "--bind-address=0.0.0.0".to_owned(),
        format!("--secure-port={API_PORT}"),
        format!("--advertise-address={NODE_IP}"),
        format!("--service-cluster-ip-range={SERVICE_NETWORK}"),
        format!("--client-ca-file={}", certificate("ca.crt")),
        format!("--tls-cert-file={}", certificate("apiserver.crt")),
        format!("--tls-private-key-file={}", certificate("apiserver.key")),
        format!("--service-account-key-file={}", certificate("tokens.pub")),
        format!(
            "--service-account-signing-key-file={}",
            certificate("tokens.key")
        ),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!(
            "--kubelet-client-certificate={}",
            certificate("apiserver-client.crt")
        ),
        format!(
            "--kubelet-client-key={}",
            certificate("apiserver-client.key")
        ),
        format!("--kubelet-certificate-authority={}", certificate("ca.crt")),
        // The name of the node means nothing to a resolver.
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        // Pods of a lost node are given up soon, because tests wait for that.
        "--default-not-ready-toleration-seconds=5".to_owned(),
        "--default-unreachable-toleration-seconds=5".to_owned(),
        "--profiling=false".to_owned(),
    ]
}

fn controllers(layout: &Layout) -> Vec<String> {
    let mut arguments = client_of_apiserver(layout, CONTROLLERS);
    arguments.extend([
        format!("--root-ca-file={}", layout.certificate("ca.crt")),
        format!(
            "--service-account-private-key-file={}",
            layout.certificate("tokens.key")
        ),
        // Without it the taint of a new node is never removed.
        "--use-service-account-credentials=true".to_owned(),
        "--node-monitor-period=2s".to_owned(),
        "--node-monitor-grace-period=12s".to_owned(),
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
        format!("--flex-volume-plugin-dir={}", layout.path("volume-plugins")),
    ]);
    arguments
}

fn scheduler(layout: &Layout) -> Vec<String> {
    let mut arguments = client_of_apiserver(layout, SCHEDULER);
    arguments.extend(["--kube-api-qps=500", "--kube-api-burst=1000"].map(str::to_owned));
    arguments
}

/// Returns the arguments that the scheduler and the controllers have in common.
fn client_of_apiserver(layout: &Layout, daemon: &str) -> Vec<String> {
    let config = layout.path(&format!("{daemon}.kubeconfig"));
    let mut arguments: Vec<_> = ["", "authentication-", "authorization-"]
        .iter()
        .map(|purpose| format!("--{purpose}kubeconfig={config}"))
        .collect();
    arguments.extend(
        [
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            "--profiling=false",
        ]
        .map(str::to_owned),
    );
    arguments
}

fn kubelet(layout: &Layout) -> Vec<String> {
    vec![
        format!("--config={}", layout.path("kubelet.json")),
        format!("--kubeconfig={}", layout.path("kubelet.kubeconfig")),
        format!("--root-dir={}", layout.path("kubelet")),
        format!("--cert-dir={}", layout.path("certificates")),
        format!("--hostname-override={NODE}"),
        format!("--node-ip={NODE_IP}"),
    ]
}

/// Returns the program of agent-sandbox and its arguments. It may do everything.
fn agent_sandbox(layout: &Layout, program: &Path) -> Vec<String> {
    vec![
        program.display().to_string(),
        format!("--kubeconfig={}", layout.kubeconfig()),
        // Claims, templates and pools.
        "--extensions".to_owned(),
        "--leader-elect=false".to_owned(),
        "--metrics-bind-address=0".to_owned(),
        "--health-probe-bind-address=0".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout::at(Path::new("/c")).unwrap()
    }

    #[test]
    fn a_script_starts_its_daemon_and_writes_its_number() {
        let words = ["kube".to_owned(), "etcd".to_owned(), "--x".to_owned()];
        let expected = "#!/bin/sh
cd '/c/run' || exit
setsid env -i PATH='/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' HOME='/c/run' \\
  'kube' \\
  'etcd' \\
  '--x' \\
  </dev/null >>'/c/log/etcd.log' 2>&1 &
echo $! >'/c/run/pids/etcd'
";
        assert_eq!(start_script(&layout(), ETCD, &words), expected);
    }

    #[test]
    fn every_daemon_names_the_directory_of_its_cluster() {
        let programs = Programs {
            kubernetes: "/c/bin/kube".into(),
            agent_sandbox: "/c/bin/agent-sandbox".into(),
        };
        for daemon in ALL {
            let words = command_line(&layout(), &programs, daemon);
            assert!(
                words.iter().any(|word| word.contains("/c/run/")),
                "{words:?}"
            );
            // They are quoted in a script.
            assert!(!words.concat().contains('\''), "{words:?}");
            let program = match daemon {
                CONTAINERD => CONTAINERD,
                AGENT_SANDBOX => "/c/bin/agent-sandbox",
                _ => "/c/bin/kube",
            };
            assert_eq!(words[0], program);
        }
    }
}
