//! Shared by tests of builds: the daemon, images to build on, and containers that show
//! what is in an image.

use std::collections::HashMap;
use std::time::Duration;

use backend_docker::Runtime;
use backend_docker::image::{self, BuildEvent, BuildOptions, CaBundle};
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    ListImagesOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveImageOptionsBuilder, WaitContainerOptions,
};
use bollard::{ClientVersion, Docker};
use futures::StreamExt;

use super::docker::{busybox, daemon, variable};

pub(crate) fn ca_file() -> Option<String> {
    std::env::var("SSL_CERT_FILE").ok()
}

pub(crate) fn client() -> Docker {
    let version = ClientVersion {
        major_version: 1,
        minor_version: 41,
    };
    let address = variable("DOCKER_HOST");
    match address.strip_prefix("unix://") {
        Some(path) => Docker::connect_with_unix(path, 120, &version).unwrap(),
        None => Docker::connect_with_http(&address, 120, &version).unwrap(),
    }
}

/// Options for builds that use the network: the host's network, and its CA bundle where
/// TLS is re-signed.
pub(crate) fn online() -> BuildOptions {
    let options = BuildOptions::new().with_network("host");
    match ca_file() {
        Some(file) => options.with_ca_bundle(CaBundle::from_file(file).unwrap()),
        None => options,
    }
}

/// Returns a name that no other run has.
pub(crate) fn fresh(what: &str) -> String {
    format!("test-{what}-{:08x}", fastrand::u32(..))
}

/// A runtime on busybox whose first step is in no build cache.
pub(crate) fn small(name: &str) -> Runtime {
    Runtime::on_base(name, busybox())
        .with_setup_command(format!("echo {:016x} > /fresh", fastrand::u64(..)))
}

/// Returns all events of a build, and its result.
pub(crate) async fn watch(
    runtime: &Runtime,
    options: &BuildOptions,
) -> (Vec<BuildEvent>, backend_core::Result<String>) {
    let mut build = image::build(&daemon(), runtime, options).unwrap();
    let mut events = Vec::new();
    while let Some(event) = build.next().await {
        events.push(event);
    }
    (events, build.finish().await)
}

/// Returns the images with exactly this runtime's label: their names, or ids of unnamed
/// ones.
pub(crate) async fn labelled(name: &str) -> Vec<String> {
    let label = format!("agentbox.runtime={name}");
    let filters = HashMap::from([("label", vec![label.as_str()])]);
    let options = ListImagesOptionsBuilder::default()
        .filters(&filters)
        .build();
    let images = client().list_images(Some(options)).await.unwrap();
    let mut names = Vec::new();
    for image in images {
        let tags = image
            .repo_tags
            .into_iter()
            .filter(|tag| !tag.starts_with("<none>"));
        let tags: Vec<_> = tags.collect();
        names.extend(if tags.is_empty() {
            vec![image.id]
        } else {
            tags
        });
    }
    names.sort();
    names
}

/// Removes all images of a runtime at the end of a test.
pub(crate) async fn remove_images(name: &str) {
    for image in labelled(name).await {
        let options = RemoveImageOptionsBuilder::default().force(true).build();
        client()
            .remove_image(&image, Some(options), None)
            .await
            .unwrap();
    }
}

/// Creates a container. The test removes it by its id.
pub(crate) async fn create(image: &str, command: &[&str], host: HostConfig) -> String {
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        entrypoint: Some(Vec::new()),
        cmd: Some(command.iter().map(|&word| word.to_owned()).collect()),
        labels: Some(HashMap::from([(
            "agentbox.test".to_owned(),
            "build".to_owned(),
        )])),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    };
    let options = None::<bollard::query_parameters::CreateContainerOptions>;
    client().create_container(options, body).await.unwrap().id
}

pub(crate) async fn remove_container(id: &str) {
    let options = RemoveContainerOptionsBuilder::default().force(true).build();
    client().remove_container(id, Some(options)).await.unwrap();
}

/// Runs a shell command in an image as its user and returns the output.
pub(crate) async fn run(image: &str, command: &str) -> String {
    let binds = ca_file().map(|file| vec![format!("{file}:/ca.pem:ro")]);
    let host = HostConfig {
        network_mode: Some("host".to_owned()),
        binds,
        ..HostConfig::default()
    };
    let id = create(image, &["/bin/sh", "-c", command], host).await;
    let client = client();
    let start = None::<bollard::query_parameters::StartContainerOptions>;
    client.start_container(&id, start).await.unwrap();
    let mut wait = client.wait_container(&id, None::<WaitContainerOptions>);
    let ended = tokio::time::timeout(Duration::from_secs(300), wait.next()).await;
    let options = LogsOptionsBuilder::default()
        .stdout(true)
        .stderr(true)
        .build();
    let logs: Vec<_> = client.logs(&id, Some(options)).collect().await;
    let printed: String = logs
        .into_iter()
        .map(|line| line.unwrap().to_string())
        .collect();
    remove_container(&id).await;
    match ended.expect("the command did not end") {
        Some(Ok(done)) if done.status_code == 0 => printed,
        other => panic!("{command}: {other:?}\n{printed}"),
    }
}
