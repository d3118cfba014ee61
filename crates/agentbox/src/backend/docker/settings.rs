//! The table `[docker]`, and the daemon and runtimes that it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use backend_docker::image::{BuildOptions, CaBundle, Logins};
use backend_docker::{Daemon, Delivery, Mode, Relaxation, Runtimes, Volume};
use serde::Deserialize;

use crate::backend::kind::{Kind, Tables};
use crate::backend::runtimes;
use crate::backend::size::Size;
use crate::exit::{Failure, usage};
use crate::files::read_text;
use crate::system;

/// The table `[docker]`. Settings that are missing get the library's defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DockerSettings {
    /// The address of the daemon; `DOCKER_HOST` by default.
    pub(super) address: Option<String>,
    /// The agent, if the automatic choice is not wanted.
    pub(super) agent: Option<PathBuf>,
    /// Replacements for the base images of runtimes.
    pub(super) base_images: BTreeMap<String, String>,
    /// Additional certificates, for builds and for programs in containers.
    pub(super) ca_bundle: Option<PathBuf>,
    /// Capabilities that are not dropped.
    pub(super) capabilities: Vec<String>,
    pub(super) cpu_shares: Option<u32>,
    pub(super) cpus: Option<f64>,
    pub(super) delivery: Delivery,
    pub(super) env: BTreeMap<String, String>,
    /// Seconds without a call after which the container is stopped.
    pub(super) idle_timeout: Option<u64>,
    pub(super) image: Option<String>,
    /// Whether the container is kept, stopped, when the program ends.
    pub(super) keep: bool,
    pub(super) labels: BTreeMap<String, String>,
    /// The credentials of `docker login`, if they are not in docker's default file.
    pub(super) logins: Option<PathBuf>,
    pub(super) memory: Option<Size>,
    pub(super) mode: Mode,
    pub(super) name: Option<String>,
    pub(super) network: Option<String>,
    pub(super) oci_runtime: Option<String>,
    pub(super) pids: Option<u32>,
    pub(super) read_only: bool,
    /// The parts of the hardening that are switched off.
    pub(super) relax: Vec<Relaxation>,
    pub(super) runtime: Option<String>,
    /// A file with more runtimes.
    pub(super) runtimes: Option<PathBuf>,
    /// A file with a seccomp profile.
    pub(super) seccomp: Option<PathBuf>,
    /// Swap in bytes, in addition to the memory.
    pub(super) swap: Option<Size>,
    /// `PATH` or `PATH:OPTIONS`.
    pub(super) tmpfs: Vec<String>,
    pub(super) user: Option<String>,
    /// `SOURCE:TARGET` or `SOURCE:TARGET:ro`.
    pub(super) volumes: Vec<String>,
    pub(super) work_dir: Option<String>,
}

impl DockerSettings {
    pub(crate) fn configured(tables: &Tables) -> Result<Self, Failure> {
        Kind::Docker.settings(tables)
    }

    /// Returns the configured daemon, or docker's default.
    pub(crate) fn daemon(&self) -> Result<Daemon, Failure> {
        Ok(match &self.address {
            Some(address) => Daemon::at(address)?,
            None => Daemon::from_env()?,
        })
    }

    /// Returns the built-in runtimes and those of the configured file.
    pub(crate) fn runtimes(&self) -> Result<Runtimes, Failure> {
        runtimes::read(self.runtimes.as_deref(), &self.base_images)
    }

    /// Returns the options for fetching and building images.
    pub(crate) fn build_options(&self) -> Result<BuildOptions, Failure> {
        let options = BuildOptions::new().with_logins(self.logins()?);
        Ok(match &self.ca_bundle {
            Some(file) => options.with_ca_bundle(CaBundle::from_file(file)?),
            None => options,
        })
    }

    /// Reads the credentials of `docker login`, from the configured file or the usual one.
    fn logins(&self) -> Result<Logins, Failure> {
        if let Some(file) = &self.logins {
            let text = read_text(file, "file of logins")?;
            return Logins::from_docker_config(&text)
                .map_err(|error| usage!("{}: {}", file.display(), error.chain()));
        }
        let text = default_docker_config().and_then(|file| std::fs::read_to_string(file).ok());
        let logins = text.map(|text| Logins::from_docker_config(&text));
        let logins = logins.transpose().unwrap_or_else(|error| {
            tracing::warn!("the logins of docker are not used: {}", error.chain());
            None
        });
        Ok(logins.unwrap_or_default())
    }
}

/// Returns the default path of docker's configuration.
fn default_docker_config() -> Option<PathBuf> {
    let directory = system::variable("DOCKER_CONFIG").map(PathBuf::from);
    let home = || Some(Path::new(&system::variable("HOME")?).join(".docker"));
    Some(directory.or_else(home)?.join("config.json"))
}

/// Parses `SOURCE:TARGET[:ro|rw]`. A source without a slash is the name of a volume.
pub(super) fn volume(text: &str) -> Result<Volume, Failure> {
    let parts: Vec<&str> = text.split(':').collect();
    let (source, target, read_only) = match *parts {
        [source, target] | [source, target, "rw"] => (source, target, false),
        [source, target, "ro"] => (source, target, true),
        _ => ("", "", false),
    };
    if source.is_empty() || target.is_empty() {
        return Err(usage!(
            "{text:?} is not a valid volume; write SOURCE:TARGET or SOURCE:TARGET:ro in volumes of [docker]"
        ));
    }
    let volume = if source.contains('/') {
        Volume::host(source, target)
    } else {
        Volume::named(source, target)
    };
    Ok(volume.read_only(read_only))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_and_no_other() {
        let table = r#"
            address = "unix:///run/docker.sock"
            agent = "/usr/lib/sandbox-agent"
            base_images = { "python:3.12-slim" = "mirror.example/python:3.12" }
            ca_bundle = "/etc/ca.pem"
            capabilities = ["NET_RAW"]
            cpu_shares = 512
            cpus = 1.5
            delivery = "upload"
            env = { A = "1" }
            idle_timeout = 600
            image = "python:3.12"
            keep = true
            labels = { team = "x" }
            logins = "config.json"
            memory = "512m"
            mode = "portable"
            name = "box"
            network = "bridge"
            oci_runtime = "runsc"
            pids = 100
            read_only = true
            relax = ["host-network"]
            runtime = "python-minimal"
            runtimes = "runtimes.toml"
            seccomp = "profile.json"
            swap = 1073741824
            tmpfs = ["/tmp:size=64m"]
            user = "1000:1000"
            volumes = ["./data:/data:ro"]
            work_dir = "/workspace"
        "#;
        let settings: DockerSettings = toml::from_str(table).unwrap();
        assert_eq!(settings.memory, Some(Size(512 << 20)));
        assert_eq!(settings.swap, Some(Size(1 << 30)));
        let table: toml::Table = toml::from_str(table).unwrap();
        assert!(table.keys().eq(Kind::Docker.keys()), "{table}");
        assert!(toml::from_str::<DockerSettings>("privileged = true").is_err());
    }

    #[test]
    fn volumes_are_two_places() {
        let named = Volume::named("cache", "/b");
        assert_eq!(volume("/a:/b").unwrap(), Volume::host("/a", "/b"));
        assert_eq!(volume("cache:/b:rw").unwrap(), named);
        assert_eq!(volume("cache:/b:ro").unwrap(), named.read_only(true));
        for bad in ["/a", ":/b", "/a:", "/a:/b:rwx", "/a:/b:ro:z"] {
            assert!(volume(bad).unwrap_err().is_usage(), "{bad}");
        }
    }
}
