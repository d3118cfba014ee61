//! `docker[:IMAGE]`: a container, created on demand and removed when the program ends.

mod container;
pub(crate) mod settings;

use std::sync::Arc;

use backend_core::ops::StopMode;

use self::settings::DockerSettings;
use super::open_backend::OpenBackend;
use super::spec::{BackendSpec, Prepare};
use crate::exit::{Failure, usage};
use crate::progress;

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
        Err(usage!(
            "docker:{argument} names nothing; write docker:IMAGE, docker:runtime=NAME or docker:attach=ID"
        ))
    }
}

impl DockerSettings {
    fn target<'a>(&'a self, argument: Option<&'a str>) -> Result<Target<'a>, Failure> {
        let Self { image, runtime, .. } = self;
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
}

pub(super) fn check(spec: &BackendSpec) -> Result<(), Failure> {
    let docker: DockerSettings = spec.settings()?;
    if let Target::Runtime(name) = docker.target(spec.argument.as_deref())? {
        docker.runtimes()?.get(name)?;
    }
    Ok(())
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
            let docker: DockerSettings = toml::from_str(table).unwrap();
            docker.target(argument).map(|target| format!("{target:?}"))
        };
        assert_eq!(target("image = 'a'", None).unwrap(), "Image(\"a\")");
        assert_eq!(target("runtime = 'a'", None).unwrap(), "Runtime(\"a\")");
        assert_eq!(target("image = 'a'", Some("b")).unwrap(), "Image(\"b\")");
        assert!(target("image = 'a'\nruntime = 'b'", None).is_err());
        assert!(target("", None).unwrap_err().is_usage());
    }
}
