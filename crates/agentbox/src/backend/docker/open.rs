//! Parsing and opening of container specifications.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend_core::ops::StopMode;
use backend_docker::image::{BuildOptions, CaBundle, Logins};
use backend_docker::{Daemon, Runtimes};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use sandbox_wire::agent::AgentBinary;

use super::KIND;
use super::container;
use super::settings::Settings;
use crate::agent;
use crate::backend::opened::StopAction;
use crate::backend::{BackendSpec, Opened, Prepare, Tables};
use crate::config::read_text;
use crate::exit::Failure;
use crate::progress;

/// The configuration of containers.
#[derive(Debug)]
pub(crate) struct Docker {
    pub(super) settings: Settings,
}

/// The origin of a container.
#[derive(Debug, PartialEq, Eq)]
enum Target<'a> {
    Image(&'a str),
    Runtime(&'a str),
    /// An existing container.
    Attach(&'a str),
}

impl<'a> Target<'a> {
    /// Parses the text after the colon.
    fn parse(argument: &'a str) -> Result<Self, Failure> {
        // The name of an image never has this character.
        match argument.split_once('=') {
            None if argument.is_empty() => {}
            None => return Ok(Self::Image(argument)),
            Some((_, "")) => {}
            Some(("runtime", name)) => return Ok(Self::Runtime(name)),
            Some(("attach", id)) => return Ok(Self::Attach(id)),
            Some(_) => {}
        }
        Err(Failure::usage(format!(
            "docker:{argument} names nothing; write docker:IMAGE, docker:runtime=NAME or docker:attach=ID"
        )))
    }
}

impl Docker {
    /// Reads the table `[docker]`.
    pub(crate) fn configured(tables: &Tables) -> Result<Self, Failure> {
        let settings = crate::backend::read_settings(KIND.name, tables)?;
        Ok(Self { settings })
    }

    /// Returns the configured daemon, or docker's default.
    pub(crate) fn daemon(&self) -> Result<Daemon, Failure> {
        let daemon = match &self.settings.address {
            Some(address) => Daemon::at(address)?,
            None => Daemon::from_env()?,
        };
        Ok(daemon)
    }

    /// Returns the built-in runtimes and those of the configured file.
    pub(crate) fn runtimes(&self) -> Result<Runtimes, Failure> {
        let mut runtimes = match &self.settings.runtimes {
            None => Runtimes::new(),
            Some(file) => {
                let text = read_text(file, "file of runtimes")?;
                Runtimes::from_toml(&text).map_err(|error| {
                    Failure::usage(format!("{}: {}", file.display(), error.chain()))
                })?
            }
        };
        for (image, instead) in &self.settings.base_images {
            runtimes = runtimes.with_image(image, instead)?;
        }
        Ok(runtimes)
    }

    /// Returns the configured agent, or all that are found.
    pub(crate) fn agents(&self) -> Result<Vec<AgentBinary>, Failure> {
        match &self.settings.agent {
            Some(path) => Ok(vec![AgentBinary::new(path)?]),
            None => agent::all(),
        }
    }

    /// Returns the options for fetching and building images.
    pub(crate) fn build_options(&self) -> Result<BuildOptions, Failure> {
        let options = BuildOptions::new().with_logins(self.logins()?);
        Ok(match &self.settings.ca_bundle {
            Some(file) => options.with_ca_bundle(CaBundle::from_file(file)?),
            None => options,
        })
    }

    /// Reads the credentials that `docker login` wrote, from the configured file or
    /// docker's default.
    fn logins(&self) -> Result<Logins, Failure> {
        if let Some(file) = &self.settings.logins {
            let text = read_text(file, "file of logins")?;
            return Logins::from_docker_config(&text)
                .map_err(|error| Failure::usage(format!("{}: {}", file.display(), error.chain())));
        }
        let text = default_docker_config().and_then(|file| std::fs::read_to_string(file).ok());
        let logins = text.map(|text| Logins::from_docker_config(&text));
        Ok(logins.transpose().map_or_else(
            |error| {
                tracing::warn!("the logins of docker are not used: {}", error.chain());
                Logins::new()
            },
            Option::unwrap_or_default,
        ))
    }

    fn target<'a>(&'a self, argument: Option<&'a str>) -> Result<Target<'a>, Failure> {
        let Settings { image, runtime, .. } = &self.settings;
        match (argument, image, runtime) {
            (Some(argument), ..) => Target::parse(argument),
            (None, Some(image), None) => Ok(Target::Image(image)),
            (None, None, Some(runtime)) => Ok(Target::Runtime(runtime)),
            (None, Some(_), Some(_)) => Err(Failure::usage(
                "[docker] has an image and a runtime; remove one of them",
            )),
            (None, None, None) => Err(Failure::usage(
                "docker needs an image; write docker:IMAGE or docker:runtime=NAME, or set one in [docker]; \
                 agentbox runtimes list tells which there are",
            )),
        }
    }

    async fn open(&self, argument: Option<&str>, prepare: Prepare) -> Result<Opened, Failure> {
        let target = self.target(argument)?;
        let (sandbox, stop_action) = match target {
            Target::Attach(id) => (
                container::attach(self, id)?.open().await?,
                StopAction::Leave,
            ),
            Target::Image(image) => {
                let options = self.build_options()?;
                let builder = container::builder(self)?.image(image);
                (builder.build_options(options).build()?, self.stop_action())
            }
            Target::Runtime(name) => {
                let runtime = self.runtimes()?.get(name)?;
                let options = self.build_options()?;
                let builder = container::builder(self)?;
                let daemon = self.daemon()?;
                // Building takes minutes, so its progress is shown.
                let build = progress::build(daemon, runtime.clone(), options.clone());
                match prepare {
                    Prepare::Wait => drop(build.await?),
                    // An error is reported by the first call.
                    Prepare::Background => drop(tokio::spawn(build)),
                    Prepare::No => {}
                }
                let builder = builder.runtime(runtime).build_options(options);
                (builder.build()?, self.stop_action())
            }
        };
        Ok(Opened::with_stop_action(Arc::new(sandbox), stop_action))
    }

    /// Returns the stop action for a container that this program created.
    fn stop_action(&self) -> StopAction {
        StopAction::Stop(match self.settings.keep || self.settings.name.is_some() {
            true => StopMode::Keep,
            false => StopMode::Purge,
        })
    }
}

/// Returns the default path of docker's configuration.
#[expect(
    clippy::disallowed_methods,
    reason = "the program looks where docker looks"
)]
fn default_docker_config() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let directory = variable("DOCKER_CONFIG").map(PathBuf::from);
    let directory = directory.or_else(|| Some(Path::new(&variable("HOME")?).join(".docker")));
    Some(directory?.join("config.json"))
}

pub(super) fn check(spec: &BackendSpec) -> Result<Vec<&'static str>, Failure> {
    let docker = Docker::configured(&spec.tables)?;
    if let Target::Runtime(name) = docker.target(spec.argument.as_deref())? {
        docker.runtimes()?.get(name)?;
    }
    Ok(vec![KIND.name])
}

pub(super) fn open(spec: &BackendSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
    async move {
        let docker = Docker::configured(&spec.tables)?;
        let argument = spec.argument.as_deref();
        docker.open(argument, spec.prepare).await
    }
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_the_colon() {
        let image = "mirror.example:5000/python:3.12@sha256:aa";
        assert_eq!(Target::parse(image).unwrap(), Target::Image(image));
        let runtime = Target::parse("runtime=python-web").unwrap();
        assert_eq!(runtime, Target::Runtime("python-web"));
        assert_eq!(Target::parse("attach=box").unwrap(), Target::Attach("box"));
        for bad in ["", "runtime=", "attach=", "image=python"] {
            assert!(Target::parse(bad).unwrap_err().is_usage(), "{bad}");
        }
    }

    #[test]
    fn what_is_missing_is_taken_from_the_table() {
        let target = |table: &str, argument: Option<&str>| {
            let table = toml::from_str(table).unwrap();
            let docker = Docker::configured(&Tables::from([("docker", table)])).unwrap();
            docker.target(argument).map(|target| format!("{target:?}"))
        };
        assert_eq!(target("image = 'a'", None).unwrap(), "Image(\"a\")");
        assert_eq!(target("runtime = 'a'", None).unwrap(), "Runtime(\"a\")");
        assert_eq!(target("image = 'a'", Some("b")).unwrap(), "Image(\"b\")");
        assert!(target("image = 'a'\nruntime = 'b'", None).is_err());
        assert!(target("", None).unwrap_err().is_usage());
    }
}
