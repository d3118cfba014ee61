//! The table `[daytona]`, and the account and agents that it names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use backend_daytona::{Account, AccountBuilder, Mode, Network, Volume};
use sandbox_wire::agent::AgentBinary;
use serde::Deserialize;

use crate::agent;
use crate::backend::kind::{Kind, Tables};
use crate::backend::size::Size;
use crate::exit::{Failure, usage};
use crate::files::read_text;

/// The table `[daytona]`. Settings that are missing get the library's defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DaytonaSettings {
    /// The agent, if the automatic choice is not wanted.
    pub(super) agent: Option<PathBuf>,
    /// The file with the API key; `DAYTONA_API_KEY` by default.
    pub(crate) api_key_file: Option<PathBuf>,
    /// The address of the API; `DAYTONA_V0_API_URL` or `DAYTONA_API_URL` by default.
    api_url: Option<String>,
    /// Seconds after which the service archives a sandbox that is stopped.
    pub(super) auto_archive: Option<u64>,
    /// Seconds after which the service deletes a sandbox that is stopped.
    pub(super) auto_delete: Option<u64>,
    /// Seconds without use after which the service stops it; 0 is never.
    pub(super) auto_stop: Option<u64>,
    pub(super) cpus: Option<u32>,
    pub(super) disk: Option<Size>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) gpus: Option<u32>,
    /// Seconds without a call after which commands end.
    pub(super) idle_timeout: Option<u64>,
    pub(super) image: Option<String>,
    /// Whether the sandbox is kept when the program ends.
    pub(super) keep: bool,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) memory: Option<Size>,
    pub(super) mode: Mode,
    pub(super) name: Option<String>,
    pub(super) network: Network,
    /// Whether its ports can be reached without a token.
    pub(super) public: bool,
    /// Whether a sandbox in an error from which it can recover is recovered.
    pub(super) recover: bool,
    pub(super) runtime: Option<String>,
    /// The secrets of the organization that are variables, by the names of the variables.
    pub(super) secrets: BTreeMap<String, String>,
    pub(super) snapshot: Option<String>,
    /// Seconds that a sandbox has to start.
    pub(super) start_timeout: Option<u64>,
    /// The region; `DAYTONA_TARGET` by default.
    target: Option<String>,
    /// Seconds after which the service deletes it in any case.
    pub(super) ttl: Option<u64>,
    pub(super) user: Option<String>,
    /// `VOLUME:TARGET` or `VOLUME:TARGET:PATH`.
    pub(super) volumes: Vec<String>,
    pub(super) work_dir: Option<String>,
}

impl DaytonaSettings {
    pub(crate) fn configured(tables: &Tables) -> Result<Self, Failure> {
        Kind::Daytona.settings(tables)
    }

    /// Returns the configured account, or the one of the variables that Daytona's own programs
    /// read.
    pub(crate) fn account(&self) -> Result<Account, Failure> {
        let mut builder = AccountBuilder::from_env();
        apply! { builder,
            api_key: self.api_key()?,
            url: &self.api_url,
            target: &self.target,
        }
        Ok(builder.build()?)
    }

    fn api_key(&self) -> Result<Option<String>, Failure> {
        let Some(file) = &self.api_key_file else {
            return Ok(None);
        };
        let text = read_text(file, "file with the API key")?;
        match text.trim() {
            "" => Err(usage!(
                "the file with the API key {} is empty; write the key into it",
                file.display()
            )),
            key => Ok(Some(key.to_owned())),
        }
    }

    /// Returns the configured agent, or all that are found; does not look for them in
    /// portable mode.
    pub(super) fn agents(&self) -> Result<Vec<AgentBinary>, Failure> {
        match self.mode {
            Mode::Portable => Ok(Vec::new()),
            _ => agent::named_or_all(self.agent.as_deref()),
        }
    }
}

/// Parses `VOLUME:TARGET[:PATH]`.
pub(super) fn volume(text: &str) -> Result<Volume, Failure> {
    let mut parts = text.splitn(3, ':');
    let (id, target, path) = (parts.next(), parts.next(), parts.next());
    match (id, target, path) {
        (Some(id), Some(target), path) if ![id, target].contains(&"") && path != Some("") => {
            let volume = Volume::new(id, target);
            Ok(match path {
                Some(path) => volume.subpath(path),
                None => volume,
            })
        }
        _ => Err(usage!(
            "{text:?} is not a valid volume; write VOLUME:TARGET or VOLUME:TARGET:PATH in volumes of \
             [daytona]"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read_and_no_other() {
        let table = r#"
            agent = "/usr/lib/sandbox-agent"
            api_key_file = "/etc/daytona-key"
            api_url = "https://daytona.example/api"
            auto_archive = 86400
            auto_delete = 604800
            auto_stop = 900
            cpus = 2
            disk = "10g"
            env = { A = "1" }
            gpus = 1
            idle_timeout = 600
            image = "python:3.12"
            keep = true
            labels = { team = "x" }
            memory = "4g"
            mode = "portable"
            name = "box"
            network = "open"
            public = true
            recover = true
            runtime = "python-minimal"
            secrets = { TOKEN = "github" }
            snapshot = "agents"
            start_timeout = 60
            target = "eu"
            ttl = 3600
            user = "daytona"
            volumes = ["data:/data"]
            work_dir = "/workspace"
        "#;
        let settings: DaytonaSettings = toml::from_str(table).unwrap();
        assert_eq!(settings.memory, Some(Size(4 << 30)));
        let table: toml::Table = toml::from_str(table).unwrap();
        assert!(table.keys().eq(Kind::Daytona.keys()), "{table}");
        assert!(toml::from_str::<DaytonaSettings>("privileged = true").is_err());
        let allowed =
            "network = { allow = { addresses = ['10.0.0.0/8'], domains = ['a.example'] } }";
        assert!(toml::from_str::<DaytonaSettings>(allowed).is_ok());
    }

    #[test]
    fn a_volume_has_a_place_and_perhaps_a_part() {
        for good in ["data:/b", "data:/b:users/a"] {
            assert!(volume(good).is_ok(), "{good}");
        }
        for bad in ["", "data", ":/b", "data:", "data:/b:"] {
            assert!(volume(bad).unwrap_err().is_usage(), "{bad}");
        }
    }

    #[test]
    fn the_key_is_in_no_message() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        let table = format!("api_key_file = {:?}\napi_url = 'nonsense'", file.display());
        let settings: DaytonaSettings = toml::from_str(&table).unwrap();
        std::fs::write(&file, " \n").unwrap();
        assert!(settings.account().unwrap_err().is_usage());
        std::fs::write(&file, "dtn_hush\n").unwrap();
        assert_eq!(settings.api_key().unwrap().as_deref(), Some("dtn_hush"));
        let failure = settings.account().unwrap_err();
        assert!(!failure.to_string().contains("hush"), "{failure}");
    }
}
