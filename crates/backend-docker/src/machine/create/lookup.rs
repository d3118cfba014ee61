//! Lookups that are needed before a container can be planned.

use std::path::{Path, PathBuf};

use backend_core::{Error, Quoted, Result};
use bollard::query_parameters::DownloadFromContainerOptionsBuilder;
use futures::StreamExt as _;
use sandbox_runtime::Runtime;

use crate::archive;
use crate::check;
use crate::image;
use crate::machine::{Core, deliver};
use crate::options::{Delivery, Source};
use crate::settings::Settings;
use crate::sockets;
use crate::spec::{ImageFacts, User};

/// The largest `/etc/passwd` that is read.
const PASSWD_BYTES: usize = 1024 * 1024;

pub(super) struct Lookup {
    /// A random number for the container that is created with this.
    pub(super) nonce: String,
    pub(super) facts: ImageFacts,
    pub(super) user: User,
    pub(super) stamp: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) sockets: Option<String>,
    /// Whether the agent must keep the container alive because the image has no
    /// `sleep`.
    pub(super) agent_keeps_alive: bool,
}

impl Core {
    pub(super) async fn look_up(&self, settings: &Settings) -> Result<Lookup> {
        let facts = self.image_facts(settings).await?;
        let shared = self.check_sources(settings).await?;
        let user = User::choose(settings, &facts, shared.as_ref().map(|shared| shared.owner));
        if let Some(shared) = shared
            && user.unknown_to_image
        {
            shared.check(user.ids)?;
        }
        let agent = self.config.agents.fitting(&facts.architecture);
        let mut lookup = Lookup {
            nonce: format!("{:032x}", fastrand::u128(..)),
            facts,
            user,
            stamp: None,
            agent: None,
            sockets: None,
            agent_keeps_alive: false,
        };
        if let Some(agent) = agent {
            lookup.stamp = Some(deliver::stamp(agent).await?);
            let seen = match self.config.delivery {
                Delivery::Bind => true,
                Delivery::Auto => self.config.daemon.socket().is_some(),
                Delivery::Upload => false,
            };
            let real = tokio::fs::canonicalize(agent.path()).await;
            let real = real.unwrap_or_else(|_| agent.path().to_owned());
            lookup.agent = real.to_str().filter(|_| seen).map(str::to_owned);
            if let Some(directory) = &self.config.socket_dir {
                lookup.sockets = sockets::prepared(directory).await;
            }
        }
        Ok(lookup)
    }

    async fn image_facts(&self, settings: &Settings) -> Result<ImageFacts> {
        // One of both is given.
        let image = || settings.image.clone().unwrap_or_default();
        let runtime = settings.runtime.clone();
        let runtime = runtime.unwrap_or_else(|| Runtime::from_image("image", image()));
        let reference = image::ensure(&self.config.daemon, &runtime, &settings.build).await?;
        let daemon = &self.config.daemon;
        let answer = daemon.found(daemon.client().inspect_image(&reference).await)?;
        let answer = answer.ok_or_else(|| {
            let shown = Quoted::new(&reference);
            Error::unavailable(format!(
                "the Docker daemon has no image {shown}; pull or build it"
            ))
        })?;
        let config = answer.config.unwrap_or_default();
        let root = |user: &String| {
            let name = user.split(':').next().unwrap_or_default();
            matches!(name, "" | "0" | "root")
        };
        Ok(ImageFacts {
            reference,
            id: answer.id.unwrap_or_default(),
            user: config.user.filter(|user| !root(user)),
            working_dir: config.working_dir.unwrap_or_default(),
            architecture: answer.architecture.unwrap_or_default(),
        })
    }

    pub(in crate::machine) async fn learn_architecture(&self, image: &str) {
        let answer = self.config.daemon.client().inspect_image(image).await;
        // An image can be removed while its container exists. Then its architecture is
        // unknown.
        let known = answer.ok().and_then(|answer| answer.architecture);
        self.state().architecture = known.unwrap_or_default();
    }

    /// Checks the mounts from the host. Returns the first directory that the sandbox
    /// may write to.
    async fn check_sources(&self, settings: &Settings) -> Result<Option<Shared>> {
        let mut shared = None;
        if self.config.daemon.socket().is_none() {
            // The daemon runs on another host, which checks its own paths.
            return Ok(shared);
        }
        for volume in &settings.volumes {
            let Source::Host(path) = &volume.source else {
                continue;
            };
            let real = existing(path).await?;
            check::host_source(&real, self.config.daemon.socket())?;
            if let Some(socket) = self.config.daemon.socket()
                && let Ok(socket) = tokio::fs::canonicalize(socket).await
            {
                check::host_source(&real, Some(&socket))?;
            }
            if !volume.read_only && shared.is_none() {
                shared = Shared::inspect(&real).await;
                if let Some(shared) = shared.as_mut().filter(|_| volume.owned) {
                    // It is given to the user before anything runs.
                    shared.mode |= 0o222;
                }
            }
        }
        if let Some(path) = &settings.ca_bundle {
            existing(path).await?;
        }
        Ok(shared)
    }

    /// Looks up the uid and gid of a user that is given by name.
    pub(super) async fn ids_of(&self, user: &User) -> Result<(u32, u32)> {
        let options = DownloadFromContainerOptionsBuilder::default()
            .path("/etc/passwd")
            .build();
        let client = self.config.daemon.client();
        let mut stream = client
            .download_from_container(&self.config.name, Some(options))
            .boxed();
        let mut bytes = Vec::new();
        while let Some(Ok(piece)) = stream.next().await {
            bytes.extend_from_slice(&piece);
            if bytes.len() > PASSWD_BYTES {
                break;
            }
        }
        let passwd = archive::only_file(&bytes).unwrap_or_default();
        archive::ids_in_passwd(&passwd, &user.name).ok_or_else(|| {
            let shown = Quoted::new(&user.name);
            check::wrong(format!("the image has no user {shown}; specify a uid"))
        })
    }
}

async fn existing(path: &Path) -> Result<PathBuf> {
    tokio::fs::canonicalize(path).await.map_err(|source| {
        let shown = path.to_string_lossy();
        let shown = Quoted::new(&shown);
        check::wrong(format!("{shown} cannot be mounted; create it first")).with_source(source)
    })
}

/// A directory of this host that the sandbox may write to.
#[derive(Debug, Clone)]
struct Shared {
    path: PathBuf,
    owner: (u32, u32),
    mode: u32,
}

impl Shared {
    #[cfg(unix)]
    async fn inspect(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = tokio::fs::metadata(path).await.ok()?;
        Some(Self {
            path: path.to_owned(),
            owner: (metadata.uid(), metadata.gid()),
            mode: metadata.mode(),
        })
    }

    #[cfg(not(unix))]
    async fn inspect(_: &Path) -> Option<Self> {
        None
    }

    /// Refuses a directory that the user could not write to.
    fn check(&self, user: Option<(u32, u32)>) -> Result<()> {
        let Some((uid, gid)) = user else {
            return Ok(());
        };
        let writable = if uid == self.owner.0 {
            0o200
        } else if gid == self.owner.1 {
            0o020
        } else {
            0o002
        };
        if self.mode & writable != 0 {
            return Ok(());
        }
        let shown = self.path.to_string_lossy();
        Err(check::wrong(format!(
            "{} belongs to {} and the sandbox runs as {uid}:{gid}, which cannot write to it; give the directory another owner, mount it read-only, or set the user",
            Quoted::new(&shown),
            match self.owner.0 {
                0 => "root".to_owned(),
                other => other.to_string(),
            }
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_directory_must_be_writable() {
        let shared = |owner, mode| Shared {
            path: "/srv".into(),
            owner,
            mode,
        };
        let user = Some((1000, 1000));
        shared((1000, 5), 0o755).check(user).unwrap();
        shared((0, 1000), 0o775).check(user).unwrap();
        shared((0, 0), 0o1777).check(user).unwrap();
        shared((0, 0), 0o700).check(None).unwrap();
        let error = shared((0, 0), 0o755).check(user).unwrap_err();
        assert!(error.to_string().contains("belongs to root"), "{error}");
        let error = shared((7, 0), 0o775).check(user).unwrap_err();
        assert!(error.to_string().contains("belongs to 7"), "{error}");
    }
}
