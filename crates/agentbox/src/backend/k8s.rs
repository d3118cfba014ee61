//! `k8s[:IMAGE]`: a pod of a cluster, created on demand and deleted when the program ends.

mod pod;
pub(crate) mod settings;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use backend_core::ops::StopMode;
use sandbox_runtime::Runtimes;
use serde::Deserialize;

use self::settings::K8sSettings;
use super::kind::Kind;
use super::open_backend::OpenBackend;
use super::runtimes;
use super::spec::BackendSpec;
use super::target::Target;
use crate::exit::Failure;

/// The settings of runtimes in `[docker]`, where their images are built.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RuntimeSettings {
    runtimes: Option<PathBuf>,
    base_images: BTreeMap<String, String>,
}

/// Returns the runtimes that `agentbox runtimes list` shows.
fn runtimes(spec: &BackendSpec) -> Result<Runtimes, Failure> {
    let settings: RuntimeSettings = spec.settings_of(Kind::Docker)?;
    runtimes::read(settings.runtimes.as_deref(), &settings.base_images)
}

impl K8sSettings {
    fn target<'a>(&'a self, argument: Option<&'a str>) -> Result<Target<'a>, Failure> {
        let (image, runtime) = (self.image.as_deref(), self.runtime.as_deref());
        Target::choose(Kind::K8s, argument, image, runtime)
    }
}

pub(super) fn check(spec: &BackendSpec) -> Result<(), Failure> {
    let k8s: K8sSettings = spec.settings()?;
    if let Target::Runtime(name) = k8s.target(spec.argument.as_deref())? {
        runtimes(spec)?.get(name)?;
    }
    pod::without_agents(&k8s).map(drop)
}

pub(super) async fn open(spec: &BackendSpec) -> Result<OpenBackend, Failure> {
    let k8s: K8sSettings = spec.settings()?;
    let builder = match k8s.target(spec.argument.as_deref())? {
        // This program did not create it, and leaves it running.
        Target::Attach(pod) => {
            let attach = pod::attach(&k8s, pod)?.cluster(k8s.cluster().await?);
            return Ok(OpenBackend::new(Arc::new(attach.open().await?), None));
        }
        Target::Image(image) => pod::builder(&k8s)?.image(image),
        Target::Runtime(name) => pod::builder(&k8s)?.runtime(runtimes(spec)?.get(name)?),
    };
    let stop = if k8s.keep || k8s.name.is_some() {
        StopMode::Keep
    } else {
        StopMode::Purge
    };
    // Last, so that mistakes in the settings are reported even without a cluster.
    let builder = builder.cluster(k8s.cluster().await?);
    Ok(OpenBackend::new(Arc::new(builder.build()?), Some(stop)))
}
