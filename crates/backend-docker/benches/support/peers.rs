//! The other ways into a container.

use std::process::Command;
use std::time::Instant;

use backend_testkit::measure::Sample;
use bollard::Docker;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::{ContainerCreateBody, ExecConfig, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptions, RemoveContainerOptionsBuilder, StartContainerOptions,
};
use futures::StreamExt as _;
use tokio::io::AsyncWriteExt as _;

/// Label of benchmark containers, so that a leftover one can be identified.
const LABEL: &str = "bench.agentbox";

/// The plainest use of the Docker API: a container that sleeps, and one exec per call.
pub(crate) struct Exec {
    client: Docker,
    image: String,
    container: String,
}

impl Exec {
    pub(crate) async fn start(image: &str) -> Self {
        let client = Docker::connect_with_defaults().unwrap();
        let client = client.negotiate_version().await.unwrap();
        let container = create(&client, image).await;
        let exec = Self {
            client,
            image: image.to_owned(),
            container,
        };
        exec.run(&["mkdir", "-p", "/workspace"], None).await;
        exec
    }

    pub(crate) fn container(&self) -> &str {
        &self.container
    }

    /// Runs one exec, from its creation to its exit code.
    pub(crate) async fn run(&self, argv: &[&str], input: Option<&[u8]>) -> Vec<u8> {
        exec(&self.client, &self.container, argv, input).await
    }

    /// Creates and starts a container, runs a command in it, and removes it.
    pub(crate) async fn first_command(&self) -> Sample {
        let start = Instant::now();
        let container = create(&self.client, &self.image).await;
        exec(&self.client, &container, &["sh", "-c", "true"], None).await;
        let sample = Sample::since(start).with_size(1);
        remove(&self.client, &container).await;
        sample
    }

    pub(crate) async fn end(self) {
        remove(&self.client, &self.container).await;
    }
}

/// Creates and starts a container with the same limits as ours.
async fn create(client: &Docker, image: &str) -> String {
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        cmd: Some(vec!["sleep".to_owned(), "infinity".to_owned()]),
        labels: Some([(LABEL.to_owned(), "peer".to_owned())].into()),
        host_config: Some(HostConfig {
            network_mode: Some("none".to_owned()),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges:true".to_owned()]),
            pids_limit: Some(512),
            memory: Some(1 << 30),
            memory_swap: Some(1 << 30),
            init: Some(true),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    };
    let created = client
        .create_container(None::<CreateContainerOptions>, body)
        .await
        .unwrap();
    client
        .start_container(&created.id, None::<StartContainerOptions>)
        .await
        .unwrap();
    created.id
}

async fn exec(client: &Docker, container: &str, argv: &[&str], input: Option<&[u8]>) -> Vec<u8> {
    let config = ExecConfig {
        attach_stdin: Some(input.is_some()),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(argv.iter().map(|word| (*word).to_owned()).collect()),
        ..ExecConfig::default()
    };
    let created = client.create_exec(container, config).await.unwrap();
    let started = client
        .start_exec(&created.id, None::<StartExecOptions>)
        .await
        .unwrap();
    let StartExecResults::Attached {
        mut output,
        input: mut stdin,
    } = started
    else {
        panic!("the exec is not attached");
    };
    if let Some(bytes) = input {
        stdin.write_all(bytes).await.unwrap();
        stdin.shutdown().await.unwrap();
    }
    let mut printed = Vec::new();
    while let Some(piece) = output.next().await {
        printed.extend_from_slice(&piece.unwrap().into_bytes());
    }
    let ended = client.inspect_exec(&created.id).await.unwrap();
    assert_eq!(ended.exit_code, Some(0), "{argv:?}");
    printed
}

async fn remove(client: &Docker, container: &str) {
    let options = RemoveContainerOptionsBuilder::default().force(true).build();
    client
        .remove_container(container, Some(options))
        .await
        .unwrap();
}

/// Runs `docker exec CONTAINER sh -c true`, timed from the start of the program to its
/// end.
pub(crate) fn cli(container: &str) -> Sample {
    let mut command = Command::new("docker");
    command.args(["exec", container, "sh", "-c", "true"]);
    let start = Instant::now();
    let status = command.status().unwrap();
    let sample = Sample::since(start);
    assert!(status.success());
    sample.with_size(1)
}
