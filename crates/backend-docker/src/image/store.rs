//! The daemon's image store: lookups, pulls, names, archives and removals.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use backend_core::{Error, Quoted, Result};
use bollard::auth::DockerCredentials;
use bollard::errors::Error as Theirs;
use bollard::models::ImageSummary;
use bollard::query_parameters::{
    CreateImageOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptions, TagImageOptionsBuilder,
};
use futures::StreamExt;
use sandbox_runtime::dockerfile::{LABEL, REPOSITORY};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use super::event::BuildEvent;
use super::progress::clean;
use crate::check;
use crate::daemon::Daemon;

pub(super) async fn is_present(daemon: &Daemon, image: &str) -> Result<bool> {
    let client = daemon.negotiated().await?;
    let found = daemon.found(client.inspect_image(image).await)?;
    Ok(found.is_some())
}

pub(super) async fn pull_if_absent(
    daemon: &Daemon,
    image: &str,
    credentials: Option<DockerCredentials>,
    send: &mut (dyn FnMut(BuildEvent) + Send),
) -> Result<()> {
    if is_present(daemon, image).await? {
        return Ok(());
    }
    send(BuildEvent::Pulling {
        image: image.to_owned(),
    });
    let options = CreateImageOptionsBuilder::default()
        .from_image(&with_tag(image))
        .build();
    let client = daemon.negotiated().await?;
    let mut progress = client.create_image(Some(options), None, credentials);
    while let Some(said) = progress.next().await {
        let said = said.map_err(|error| pull_error(daemon, image, error))?;
        if said.progress_detail.is_none_or(|it| it.total.is_none()) {
            let line = [said.id, said.status].into_iter().flatten();
            let line = clean(&line.collect::<Vec<_>>().join(": "));
            send(BuildEvent::Log { line });
        }
    }
    Ok(())
}

/// Adds `:latest` if there is no tag. Without one, old daemons pull every image of the
/// repository.
fn with_tag(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    if last.contains([':', '@']) {
        image.to_owned()
    } else {
        format!("{image}:latest")
    }
}

fn pull_error(daemon: &Daemon, image: &str, error: Theirs) -> Error {
    let quoted = Quoted::new(image);
    let said = match &error {
        Theirs::DockerResponseServerError { message, .. } => message,
        Theirs::DockerStreamError { error } => error,
        _ => return daemon.error(error),
    };
    let absent = ["not found", "denied", "manifest unknown", "unauthorized"]
        .iter()
        .any(|word| said.contains(word));
    // The next step comes last, where it is seen.
    let said = Quoted::new(said);
    if absent {
        return check::wrong(format!(
            "no registry provides the image {quoted} ({said}); check its name, log in with \
             'docker login', or load it with 'docker load'"
        ));
    }
    Error::unavailable(format!(
        "the image {quoted} is not there and could not be fetched ({said}); check its name and \
         the network, load it with 'docker load', or choose one that 'docker images' lists"
    ))
}

pub(super) async fn tag(daemon: &Daemon, image: &str, name: &str) -> Result<()> {
    let named = with_tag(name);
    let (repository, tag) = repository_and_tag(&named).ok_or_else(|| {
        let shown = Quoted::new(name);
        check::wrong(format!(
            "{shown} is not a name for an image; write REPOSITORY:TAG, such as \
             registry.example/agents/python:1"
        ))
    })?;
    let options = TagImageOptionsBuilder::default()
        .repo(repository)
        .tag(tag)
        .build();
    let client = daemon.negotiated().await?;
    let tagged = client.tag_image(image, Some(options)).await;
    tagged.map_err(|error| daemon.error(error))
}

/// Splits a name with a tag. A digest is not a name that an image can be given.
fn repository_and_tag(named: &str) -> Option<(&str, &str)> {
    let (repository, tag) = named.rsplit_once(':')?;
    let is_name = !repository.is_empty() && !tag.is_empty() && !named.contains('@');
    is_name.then_some((repository, tag))
}

pub(super) async fn save(daemon: &Daemon, image: &str, file: &Path) -> Result<()> {
    let client = daemon.negotiated().await?;
    let mut archive = std::pin::pin!(client.export_image(image));
    let unsaved = |error| unsaved(file, error);
    let mut out = File::create(file).await.map_err(unsaved)?;
    while let Some(piece) = archive.next().await {
        let piece = piece.map_err(|error| daemon.error(error))?;
        out.write_all(&piece).await.map_err(unsaved)?;
    }
    // Also waits for the last piece.
    out.sync_all().await.map_err(unsaved)
}

fn unsaved(file: &Path, error: io::Error) -> Error {
    let shown = file.display().to_string();
    let shown = Quoted::new(&shown);
    let message = format!("{shown} cannot be written; make room there, or name another file");
    Error::unavailable(message).with_source(error)
}

/// Removes images that were built for exactly this runtime's name, except the current
/// one and those in use. Without a current one, removes only unnamed images, which are
/// left by failed builds.
pub(super) async fn prune(
    daemon: &Daemon,
    runtime: &str,
    current: Option<&str>,
) -> Result<Vec<String>> {
    let label = format!("{LABEL}={runtime}");
    let filters = HashMap::from([("label", vec![label.as_str()])]);
    let options = ListImagesOptionsBuilder::default()
        .filters(&filters)
        .build();
    let client = daemon.negotiated().await?;
    let listed = client.list_images(Some(options)).await;
    let mut removed = Vec::new();
    for image in listed.map_err(|error| daemon.error(error))? {
        for name in superseded(&image, runtime, current) {
            // Never by force: removing an image that a container uses is refused.
            let gone = client.remove_image(name, None::<RemoveImageOptions>, None);
            match gone.await {
                Ok(_) => removed.push(name.to_owned()),
                Err(error) => tracing::debug!(image = name, %error, "image not removed"),
            }
        }
    }
    Ok(removed)
}

/// Returns the names of an image that may be removed, or its id if it has no name.
/// Images built on top of one inherit its label, so names outside our repository are
/// kept.
fn superseded<'a>(image: &'a ImageSummary, runtime: &str, current: Option<&str>) -> Vec<&'a str> {
    if image.labels.get(LABEL).map(String::as_str) != Some(runtime) {
        return Vec::new();
    }
    let named = |name: &String| !name.starts_with("<none>");
    if !image.repo_tags.iter().chain(&image.repo_digests).any(named) {
        return vec![&image.id];
    }
    let Some(current) = current else {
        return Vec::new();
    };
    let names = image.repo_tags.iter().map(String::as_str);
    names
        .filter(|name| *name != current)
        .filter(|name| {
            name.split_once(':')
                .is_some_and(|(repository, _)| repository == REPOSITORY)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_is_the_latest() {
        for (image, expected) in [
            ("python", "python:latest"),
            ("host:5000/python", "host:5000/python:latest"),
            ("host:5000/python:3", "host:5000/python:3"),
            ("python@sha256:00", "python@sha256:00"),
        ] {
            assert_eq!(with_tag(image), expected);
        }
    }

    #[test]
    fn a_name_is_a_repository_and_a_tag() {
        for (name, parts) in [
            ("python:1", Some(("python", "1"))),
            ("host:5000/a/python:1", Some(("host:5000/a/python", "1"))),
            ("host:5000/python", Some(("host:5000/python", "latest"))),
            ("python:", None),
            (":1", None),
            ("python@sha256:00", None),
        ] {
            assert_eq!(repository_and_tag(&with_tag(name)), parts, "{name}");
        }
    }

    #[test]
    fn only_what_was_built_for_the_runtime_is_superseded() {
        let image = |label: &str, tags: &[&str], digests: &[&str]| ImageSummary {
            id: "sha256:1".to_owned(),
            labels: HashMap::from([(LABEL.to_owned(), label.to_owned())]),
            repo_tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            repo_digests: digests.iter().map(|&digest| digest.to_owned()).collect(),
            ..ImageSummary::default()
        };
        let current = Some("agentbox-runtime:node-2");
        let go = |image: &ImageSummary, current| -> Vec<String> {
            let names = superseded(image, "node", current).into_iter();
            names.map(str::to_owned).collect()
        };
        let old = image(
            "node",
            &[
                "agentbox-runtime:node-1",
                "mine:1",
                "mine/agentbox-runtime:x",
            ],
            &[],
        );
        assert_eq!(go(&old, current), ["agentbox-runtime:node-1"]);
        assert_eq!(go(&old, None), [""; 0]);
        let now = image("node", &["agentbox-runtime:node-2"], &[]);
        assert_eq!(go(&now, current), [""; 0]);
        let other = image("node-react", &["agentbox-runtime:node-react-1"], &[]);
        assert_eq!(go(&other, current), [""; 0]);
        for left in [
            image("node", &[], &[]),
            image("node", &["<none>:<none>"], &["<none>@<none>"]),
        ] {
            assert_eq!(go(&left, current), ["sha256:1"]);
            assert_eq!(go(&left, None), ["sha256:1"]);
        }
        assert_eq!(go(&image("node-react", &[], &[]), current), [""; 0]);
        assert_eq!(
            go(&image("node", &[], &["mine@sha256:2"]), current),
            [""; 0]
        );
    }
}
