//! The configuration files of the daemons and of their clients.
//!
//! Most are JSON, which everything that reads YAML accepts.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::cluster::layout::{
    API, BRIDGE, FIRST_POD, Layout, NODE_IP, POD_NETWORK, SERVICE_NETWORK,
};
use crate::images;

/// Debian's directory for the programs that connect pods to a network.
pub(super) const NETWORK_PROGRAMS: &str = "/usr/lib/cni";

/// Parts of containerd that look for file systems, or write to places, that are of no
/// use here.
const DISABLED: &[&str] = &[
    "io.containerd.internal.v1.opt",
    "io.containerd.internal.v1.tracing",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.tracing.processor.v1.otlp",
];

/// Writes all of them. Their directories exist.
pub(super) fn write(layout: &Layout) -> Result<()> {
    let mut files = vec![
        ("containerd.toml".to_owned(), containerd(layout)),
        ("network/10-pods.conflist".to_owned(), network(layout)),
        ("kubelet.json".to_owned(), kubelet(layout)),
        ("resolv.conf".to_owned(), String::new()),
        ("kubeconfig".to_owned(), client(layout, "admin")),
    ];
    for name in ["controllers", "scheduler", "kubelet"] {
        files.push((format!("{name}.kubeconfig"), client(layout, name)));
    }
    for (name, text) in files {
        let path = layout.path(&name);
        fs::write(&path, text).with_context(|| format!("cannot write {path}"))?;
    }
    Ok(())
}

/// Returns the configuration for a client of the API server.
fn client(layout: &Layout, name: &str) -> String {
    let certificate = layout.certificate(name);
    text(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "agentbox", "cluster": {
            "server": API,
            "certificate-authority": layout.certificate("ca.crt"),
        }}],
        "users": [{"name": name, "user": {
            "client-certificate": format!("{certificate}.crt"),
            "client-key": format!("{certificate}.key"),
        }}],
        "contexts": [{"name": "agentbox", "context": {
            "cluster": "agentbox", "user": name, "namespace": "default",
        }}],
        "current-context": "agentbox",
    }))
}

fn containerd(layout: &Layout) -> String {
    let [root, state, runc, network] =
        ["containerd", "containerd-state", "runc", "network"].map(|name| layout.path(name));
    let socket = layout.socket();
    let pause = images::PAUSE.name;
    // Without the right to raise its own priority when memory runs out, a container that
    // asks for it does not start.
    format!(
        r#"version = 2
root = "{root}"
state = "{state}"
oom_score = 0
disabled_plugins = {DISABLED:?}

[grpc]
address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
stream_server_address = "127.0.0.1"
stream_server_port = "0"
disable_apparmor = true
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
Root = "{runc}"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{NETWORK_PROGRAMS}"
conf_dir = "{network}"
"#
    )
}

fn network(layout: &Layout) -> String {
    text(&json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": BRIDGE,
                "isGateway": true,
                "ipMasq": false,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": layout.path("addresses"),
                    "ranges": [[{
                        "subnet": POD_NETWORK, "rangeStart": FIRST_POD, "gateway": NODE_IP,
                    }]],
                    "routes": [{"dst": SERVICE_NETWORK}],
                },
            },
            {"type": "loopback"},
        ],
    }))
}

fn kubelet(layout: &Layout) -> String {
    text(&json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": format!("unix://{}", layout.socket()),
        "address": NODE_IP,
        "readOnlyPort": 0,
        "healthzPort": 0,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": layout.certificate("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": layout.certificate("kubelet-server.crt"),
        "tlsPrivateKeyFile": layout.certificate("kubelet-server.key"),
        // Machines with the older kind of control groups are as good for tests.
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", layout.control_group()),
        "resolvConf": layout.path("resolv.conf"),
        "podLogsDir": layout.path("pod-logs"),
        "volumePluginDir": layout.path("volume-plugins"),
        "makeIPTablesUtilChains": false,
        "failSwapOn": false,
        "seccompDefault": true,
        "maxPods": 250,
        // A developer's disk may be rather full.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        // Images that tests need cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        // A node or a volume in trouble is noticed soon, because tests wait for it.
        "nodeStatusUpdateFrequency": "4s",
        "nodeLeaseDurationSeconds": 10,
        "syncFrequency": "10s",
        "volumeStatsAggPeriod": "10s",
        "enableProfilingHandler": false,
    }))
}

fn text(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn layout() -> Layout {
        Layout::at(Path::new("/c")).unwrap()
    }

    #[test]
    fn containerd_keeps_everything_in_the_directory() {
        let config: toml::Table = toml::from_str(&containerd(&layout())).unwrap();
        assert_eq!(config["root"].as_str(), Some("/c/run/containerd"));
        assert_eq!(config["state"].as_str(), Some("/c/run/containerd-state"));
        let cri = &config["plugins"]["io.containerd.grpc.v1.cri"];
        assert_eq!(cri["sandbox_image"].as_str(), Some(images::PAUSE.name));
        assert_eq!(cri["restrict_oom_score_adj"].as_bool(), Some(true));
        let runc = &cri["containerd"]["runtimes"]["runc"]["options"];
        assert_eq!(runc["Root"].as_str(), Some("/c/run/runc"));
        let disabled = config["disabled_plugins"].as_array().unwrap();
        assert_eq!(disabled.len(), DISABLED.len());
    }

    #[test]
    fn a_client_shows_its_own_certificate() {
        let config: Value = serde_json::from_str(&client(&layout(), "scheduler")).unwrap();
        let user = &config["users"][0]["user"];
        assert_eq!(user["client-key"], "/c/run/certificates/scheduler.key");
        let cluster = &config["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], API);
    }

    #[test]
    fn pods_are_in_the_control_group_and_network_of_the_cluster() {
        let config: Value = serde_json::from_str(&kubelet(&layout())).unwrap();
        let group = format!("/{}", layout().control_group());
        assert_eq!(config["cgroupRoot"], Value::from(group));
        assert_eq!(
            config["containerRuntimeEndpoint"],
            "unix:///c/run/containerd.sock"
        );
        let config: Value = serde_json::from_str(&network(&layout())).unwrap();
        assert_eq!(config["plugins"][0]["ipam"]["dataDir"], "/c/run/addresses");
    }
}
