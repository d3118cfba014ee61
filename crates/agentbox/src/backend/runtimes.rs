//! The runtimes of containers: the built-in ones, and those of a file.

use std::collections::BTreeMap;
use std::path::Path;
#[cfg(any(feature = "daytona", feature = "k8s"))]
use std::path::PathBuf;

use sandbox_runtime::Runtimes;
#[cfg(any(feature = "daytona", feature = "k8s"))]
use serde::Deserialize;

#[cfg(any(feature = "daytona", feature = "k8s"))]
use super::kind::Kind;
#[cfg(any(feature = "daytona", feature = "k8s"))]
use super::spec::BackendSpec;
use crate::exit::{Failure, usage};
use crate::files::read_text;

/// The settings of runtimes in `[docker]`, which other kinds have no others than.
#[cfg(any(feature = "daytona", feature = "k8s"))]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RuntimeSettings {
    runtimes: Option<PathBuf>,
    base_images: BTreeMap<String, String>,
}

/// Returns the runtimes that `agentbox runtimes list` shows, for a backend that is not Docker.
#[cfg(any(feature = "daytona", feature = "k8s"))]
pub(super) fn of_docker(spec: &BackendSpec) -> Result<Runtimes, Failure> {
    let settings: RuntimeSettings = spec.settings_of(Kind::Docker)?;
    read(settings.runtimes.as_deref(), &settings.base_images)
}

/// Returns the built-in runtimes and those of the file, with the replacements for their
/// images.
pub(super) fn read(
    file: Option<&Path>,
    base_images: &BTreeMap<String, String>,
) -> Result<Runtimes, Failure> {
    let mut runtimes = match file {
        None => Runtimes::new(),
        Some(file) => {
            let text = read_text(file, "file of runtimes")?;
            Runtimes::from_toml(&text)
                .map_err(|error| usage!("{}: {}", file.display(), error.chain()))?
        }
    };
    for (image, instead) in base_images {
        runtimes = runtimes.with_image(image, instead)?;
    }
    Ok(runtimes)
}
