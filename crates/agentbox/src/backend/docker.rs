//! `docker[:IMAGE]`: a container, created on demand and removed when the program ends.

mod container;
pub(crate) mod settings;

use std::path::Path;
use std::sync::Arc;

use backend_core::ContentHash;
use backend_core::ops::StopMode;
use backend_docker::Runtime;
use sessions::{DockerEngine, DockerEngineBuilder};

use self::settings::DockerSettings;
use super::kind::Kind;
use super::open_backend::OpenBackend;
use super::spec::{BackendSpec, Prepare};
use super::target::Target;
use crate::exit::{Failure, usage};
use crate::progress;

/// Digits of a hash that tell the directories of two servers apart.
const SPACE_DIGITS: usize = 16;

impl DockerSettings {
    fn target<'a>(&'a self, argument: Option<&'a str>) -> Result<Target<'a>, Failure> {
        let (image, runtime) = (self.image.as_deref(), self.runtime.as_deref());
        Target::choose(Kind::Docker, argument, image, runtime)
    }

    /// Returns the runtime of sessions.
    fn session_runtime(&self, argument: Option<&str>) -> Result<Runtime, Failure> {
        let runtime = match self.target(argument)? {
            Target::Runtime(name) => self.runtimes()?.get(name)?,
            Target::Image(image) => Runtime::from_image("image", image),
            Target::Attach(_) => {
                return Err(Failure::usage(
                    "docker:attach=ID is one container for all, and each session has its own; write \
                     docker:IMAGE or docker:runtime=NAME",
                ));
            }
        };
        let other = [
            ("idle_timeout", self.idle_timeout.is_some()),
            ("keep", self.keep),
            ("name", self.name.is_some()),
            ("read_only", self.read_only),
        ];
        if let Some((key, _)) = other.into_iter().find(|(_, is_set)| *is_set) {
            return Err(usage!(
                "{key} in [docker] is not for containers of sessions, which have names and times of \
                 their own and a writable root; remove it"
            ));
        }
        Ok(match &self.work_dir {
            Some(directory) => runtime.with_work_dir(directory),
            None => runtime,
        })
    }
}

pub(super) fn check(spec: &BackendSpec) -> Result<(), Failure> {
    let docker: DockerSettings = spec.settings()?;
    if let Target::Runtime(name) = docker.target(spec.argument.as_deref())? {
        docker.runtimes()?.get(name)?;
    }
    Ok(())
}

/// The image that containers are created from.
#[derive(Debug)]
pub(crate) struct NeededImage {
    pub(crate) name: String,
    /// Whether it is built here, and not fetched.
    pub(crate) is_built: bool,
    /// The command that provides it.
    pub(crate) command: String,
}

/// Returns the image of a backend, if that creates containers.
pub(crate) fn needed_image(spec: &BackendSpec) -> Result<Option<NeededImage>, Failure> {
    if spec.kind != Kind::Docker {
        return Ok(None);
    }
    let docker: DockerSettings = spec.settings()?;
    Ok(match docker.target(spec.argument.as_deref())? {
        Target::Attach(_) => None,
        Target::Image(image) => Some(NeededImage {
            name: image.to_owned(),
            is_built: false,
            command: format!("docker pull {image}"),
        }),
        Target::Runtime(name) => Some(NeededImage {
            name: docker.runtimes()?.get(name)?.image_name()?,
            is_built: true,
            command: format!("agentbox runtimes build {name}"),
        }),
    })
}

pub(super) async fn open(spec: &BackendSpec) -> Result<OpenBackend, Failure> {
    let docker: DockerSettings = spec.settings()?;
    let builder = match docker.target(spec.argument.as_deref())? {
        // This program did not create it, and leaves it running.
        Target::Attach(id) => {
            let sandbox = container::attach(&docker, id)?.open().await?;
            return Ok(OpenBackend::new(Arc::new(sandbox), None));
        }
        Target::Image(image) => {
            let options = docker.build_options()?;
            container::builder(&docker)?
                .image(image)
                .build_options(options)
        }
        Target::Runtime(name) => {
            let runtime = docker.runtimes()?.get(name)?;
            let options = docker.build_options()?;
            let builder = container::builder(&docker)?;
            let daemon = docker.daemon()?;
            // Building takes minutes, so its progress is shown.
            let build = progress::build(daemon, runtime.clone(), options.clone());
            match spec.prepare {
                Prepare::Wait => drop(build.await?),
                // An error is reported by the first call.
                Prepare::Background => drop(tokio::spawn(build)),
                Prepare::No => {}
            }
            builder.runtime(runtime).build_options(options)
        }
    };
    let stop = if docker.keep || docker.name.is_some() {
        StopMode::Keep
    } else {
        StopMode::Purge
    };
    Ok(OpenBackend::new(Arc::new(builder.build()?), Some(stop)))
}

/// Returns the engine of the sessions that exist, which creates none.
pub(super) fn session_engine(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<DockerEngine, Failure> {
    let docker: DockerSettings = spec.settings()?;
    Ok(engine_builder(&docker, root)?.build()?)
}

/// Returns the engine of a server's sessions. Their image is there when it returns: a
/// client does not wait minutes for its first response.
pub(super) async fn serving_engine(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<DockerEngine, Failure> {
    let docker: DockerSettings = spec.settings()?;
    let runtime = docker.session_runtime(spec.argument.as_deref())?;
    let options = docker.build_options()?;
    let engine = engine_builder(&docker, root)?
        .template(container::builder(&docker)?)
        .images(options.clone())
        .runtime(runtime.clone())
        .build()?;
    progress::build(docker.daemon()?, runtime, options).await?;
    Ok(engine)
}

fn engine_builder(
    docker: &DockerSettings,
    root: Option<&Path>,
) -> Result<DockerEngineBuilder, Failure> {
    let builder = DockerEngine::builder(docker.daemon()?).space(space(root));
    Ok(match root {
        Some(root) => builder.workspace_root(root),
        None => builder,
    })
}

/// Returns the space of sessions: servers share their sessions if they share the directory
/// of the files, and those without one share theirs.
fn space(root: Option<&Path>) -> String {
    let Some(root) = root else {
        return "agentbox".to_owned();
    };
    let hash = ContentHash::of(root.as_os_str().as_encoded_bytes()).to_string();
    format!("w{}", hash.get(..SPACE_DIGITS).unwrap_or(&hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_shared_by_servers_with_the_same_directory() {
        let (one, other) = (Path::new("/srv/a"), Path::new("/srv/b"));
        assert_eq!(space(Some(one)), space(Some(one)));
        assert_ne!(space(Some(one)), space(Some(other)));
        assert_eq!(space(None), "agentbox");
        assert_eq!(space(Some(one)).len(), SPACE_DIGITS + 1);
    }

    #[test]
    fn each_session_has_a_container_of_its_own() {
        let runtime = |table: &str, argument: &str| {
            let docker: DockerSettings = toml::from_str(table).unwrap();
            docker.session_runtime(Some(argument))
        };
        let image = runtime("work_dir = '/srv/x'", "python:3.12").unwrap();
        assert_eq!(image.image.as_deref(), Some("python:3.12"));
        assert_eq!(image.work_dir, "/srv/x");
        image.validate().unwrap();
        assert!(runtime("", "attach=box").unwrap_err().is_usage());
        for table in [
            "idle_timeout = 1",
            "keep = true",
            "name = 'a'",
            "read_only = true",
        ] {
            assert!(runtime(table, "a").unwrap_err().is_usage(), "{table}");
        }
    }
}
