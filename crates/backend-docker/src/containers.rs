//! Containers for programs that keep records of their own: found by a label, renamed,
//! and with small files in them that their commands cannot read.
//!
//! The names of containers are unique, so [`rename`] is a lock between processes: of
//! several that give containers the same name, one succeeds.
//!
//! ```no_run
//! # async fn example() -> backend_core::Result<()> {
//! use backend_docker::{Daemon, containers};
//!
//! let daemon = Daemon::from_env()?;
//! for container in containers::list(&daemon, "example.team", "red").await? {
//!     println!("{} {:?}", container.name, container.state);
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use backend_core::{Error, ErrorKind, Quoted, Result, VPath};
use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    DownloadFromContainerOptionsBuilder, RenameContainerOptionsBuilder,
};
use bytes::Bytes;
use futures::StreamExt as _;
use sandbox_runtime::options;

use crate::archive::{self, Archive, PRIVATE};
use crate::check::{self, ensure};
use crate::daemon::{self, Daemon};
use crate::inspect::{ContainerInfo, ContainerState};
use crate::labels;

/// The largest sum of the files that [`read_files`] returns, with their headers.
const FILES_BYTES: usize = 1024 * 1024;
/// The longest name that a container is found by or gets here.
const NAME_BYTES: usize = 255;

/// A container that this crate created.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Container {
    /// Its id.
    pub id: String,
    /// Its current name.
    pub name: String,
    /// Its state.
    pub state: ContainerState,
    /// The time it was created, in whole seconds.
    pub created: SystemTime,
    /// All of its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether the process that created it is certainly gone. `false` for processes of
    /// other hosts and pid namespaces.
    pub abandoned: bool,
}

impl Container {
    fn new(
        (id, name): (String, &str),
        state: ContainerState,
        found: HashMap<String, String>,
        is_abandoned: impl Fn(&HashMap<String, String>) -> bool,
    ) -> Self {
        Self {
            id,
            name: name.trim_start_matches('/').to_owned(),
            state,
            created: labels::created(&found),
            abandoned: is_abandoned(&found),
            labels: found.into_iter().collect(),
        }
    }

    fn listed(
        found: ContainerSummary,
        is_abandoned: impl Fn(&HashMap<String, String>) -> bool,
    ) -> Option<Self> {
        let named = (found.id?, found.names.as_ref()?.first()?.as_str());
        let state = ContainerState::of(found.state);
        Some(Self::new(named, state, found.labels?, is_abandoned))
    }
}

/// Lists the containers with a label, in any state.
///
/// Labels are copied into images by `docker commit`: a container of this list can be
/// one that was created from such an image. [`find`] and
/// [`attach`](crate::DockerSandbox::attach) refuse those.
///
/// # Errors
///
/// `Unavailable` if the daemon does not answer.
pub async fn list(daemon: &Daemon, key: &str, value: &str) -> Result<Vec<Container>> {
    let wanted = format!("{key}={value}");
    let daemon = daemon.clone();
    daemon::run(async move {
        let listed = daemon.sandboxes(&[&wanted]).await?.into_iter();
        let is_abandoned = labels::judge(daemon.socket().is_some());
        let container = |found| Container::listed(found, &is_abandoned);
        Ok(listed.filter_map(container).collect())
    })
    .await
}

/// Finds a container by its name or id. `None` if there is none.
///
/// # Errors
///
/// `Conflict` if it is not a sandbox; `Unavailable` if the daemon does not answer.
pub async fn find(daemon: &Daemon, container: &str) -> Result<Option<Container>> {
    let container = checked(container)?;
    let daemon = daemon.clone();
    daemon::run(async move {
        let Some(found) = ContainerInfo::find(&daemon, &container).await? else {
            return Ok(None);
        };
        if !found.ours {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("the container {container} is not a sandbox; rename or remove it"),
            ));
        }
        let is_abandoned = labels::judge(daemon.socket().is_some());
        let named = (found.id, found.name.as_str());
        let container = Container::new(named, found.state, found.labels, is_abandoned);
        Ok(Some(container))
    })
    .await
}

/// Gives a container another name, in one step.
///
/// Objects that refer to it by its old name no longer find it; those of
/// [`create`](crate::DockerBuilder::create), and those attached by its id, do.
///
/// # Errors
///
/// `AlreadyExists` if another container has the name; `NotFound` if there is no such
/// container; `Unavailable` if the daemon does not answer.
pub async fn rename(daemon: &Daemon, container: &str, name: &str) -> Result<()> {
    let (container, name) = (checked(container)?, checked(name)?);
    let daemon = daemon.clone();
    daemon::run(async move {
        let options = RenameContainerOptionsBuilder::default().name(&name).build();
        let client = daemon.negotiated().await?;
        match client.rename_container(&container, options).await {
            Ok(()) => Ok(()),
            Err(error) if daemon::status(&error) == Some(409) => Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a container {name} already; choose another name"),
            )),
            Err(error) => Err(daemon.error(error)),
        }
    })
    .await
}

/// Reads the files in a directory of a container, which need not run, by their names.
/// Empty if the container or the directory does not exist.
///
/// # Errors
///
/// `TooLarge` if they are larger than 1 MiB together; `Unavailable` if the daemon does
/// not answer.
pub async fn read_files(
    daemon: &Daemon,
    container: &str,
    directory: &str,
) -> Result<BTreeMap<String, Bytes>> {
    let container = checked(container)?;
    let directory = absolute_path("a directory", directory)?.to_string();
    let daemon = daemon.clone();
    daemon::run(async move {
        let options = DownloadFromContainerOptionsBuilder::default()
            .path(&directory)
            .build();
        let client = daemon.negotiated().await?;
        let mut stream = client
            .download_from_container(&container, Some(options))
            .boxed();
        let mut bytes = Vec::new();
        while let Some(piece) = stream.next().await {
            match piece {
                Ok(piece) => bytes.extend_from_slice(&piece),
                Err(error) if daemon::is_missing(&error) => return Ok(BTreeMap::new()),
                Err(error) => return Err(file_error(&daemon, error)),
            }
            if bytes.len() > FILES_BYTES {
                return Err(Error::too_large(format!(
                    "the files in {directory} of the container {container} are larger than 1 MiB"
                )));
            }
        }
        archive::files(&bytes).map_err(|source| {
            Error::unavailable("the daemon sent an archive that cannot be read; try again")
                .with_source(source)
        })
    })
    .await
}

/// Writes a file in a container, which need not run. Missing directories are created. It
/// belongs to root, and no other user can read it, so commands can neither see nor
/// change it unless they run as root.
///
/// # Errors
///
/// `NotFound` if there is no such container; `Unavailable` if its root is read-only or
/// the daemon does not answer.
pub async fn write_file(
    daemon: &Daemon,
    container: &str,
    path: &str,
    content: &[u8],
) -> Result<()> {
    let container = checked(container)?;
    let path = absolute_path("a file", path)?;
    let mut archive = Archive::new();
    archive.file(path.as_str(), PRIVATE, content)?;
    let archive = archive.finish()?;
    let daemon = daemon.clone();
    daemon::run(async move {
        daemon.negotiated().await?;
        let written = daemon.unpack(&container, archive).await;
        written.map_err(|error| file_error(&daemon, error))
    })
    .await
}

fn file_error(daemon: &Daemon, error: bollard::errors::Error) -> Error {
    let status = daemon::status(&error);
    let error = daemon.error(error);
    if status == Some(409) {
        // The container is being removed, which is no conflict with the caller.
        return Error::unavailable(error.message().to_owned());
    }
    error
}

fn absolute_path(what: &str, text: &str) -> Result<VPath> {
    options::absolute_path(what, text).map_err(|error| error.on("docker"))
}

/// Checks a name or id, which becomes part of the request's path.
fn checked(container: &str) -> Result<String> {
    ensure!(
        check::is_word(container, "_.-") && container.len() <= NAME_BYTES,
        "{} is not a valid name for a container; use letters, digits, '_', '.' and '-', a letter or digit first",
        Quoted::new(container)
    );
    Ok(container.to_owned())
}

#[cfg(test)]
mod tests {
    use bollard::models::ContainerSummaryStateEnum;
    use sandbox_wire::owner::Owner;

    use super::*;

    #[test]
    fn names_cannot_leave_their_place_in_a_request() {
        for good in ["a", "agentbox-s-app-x_41", &"a".repeat(255)] {
            checked(good).unwrap();
        }
        for bad in [
            "",
            "-a",
            "a/b",
            "a?b",
            "a%2f",
            "../x",
            "ä",
            &"a".repeat(256),
        ] {
            let error = checked(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{bad}");
        }
    }

    #[test]
    fn a_listed_container_has_its_name_and_its_owners_fate() {
        let here = Owner::current().unwrap();
        let mut gone = here.clone();
        gone.pid = u32::MAX - 9;
        let listed = |owner: &Owner| {
            let labels = [
                (labels::OWNER.to_owned(), owner.label()),
                (labels::CREATED.to_owned(), "7".to_owned()),
            ];
            let found = ContainerSummary {
                id: Some("id".into()),
                names: Some(vec!["/box".into()]),
                labels: Some(labels.into()),
                state: Some(ContainerSummaryStateEnum::EXITED),
                ..ContainerSummary::default()
            };
            Container::listed(found, labels::judge(false)).unwrap()
        };
        let container = listed(&gone);
        assert_eq!((&*container.id, &*container.name), ("id", "box"));
        assert_eq!(container.state, ContainerState::Stopped);
        let seven = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(7);
        assert_eq!(container.created, seven);
        assert!(container.abandoned);
        assert!(!listed(&here).abandoned);
    }
}
