//! The command line that all services have.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Error, Program};
use crate::chat::{Endpoint, Model, Script};

/// The options of a service.
#[derive(Debug, Args)]
#[group(skip)]
pub struct Options {
    /// The address to listen on. Port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// The sandboxes: auto, local, docker, docker:IMAGE, k8s:IMAGE, daytona or daytona:SNAPSHOT.
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub backend: String,

    /// The directory of the conversations and, for local sandboxes and containers, the files;
    /// target/ and the program's name by default.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// An OpenAI-compatible endpoint, up to `/chat/completions`. Its key is in OPENAI_API_KEY.
    #[arg(long, value_name = "URL", requires = "model")]
    base_url: Option<String>,

    /// The model. Without one, a script answers.
    #[arg(long, value_name = "NAME", requires = "base_url")]
    model: Option<String>,

    /// Another name of this server, such as the one of a reverse proxy: NAME or NAME:PORT.
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,

    /// Seconds without use after which a sandbox ends. Its files stay.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    idle: u64,

    /// Sandboxes that run at once. Those used least recently sleep.
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    pub running: usize,

    /// Days without use after which a session is deleted, with its files.
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    keep: u64,

    /// Browser sessions that are kept.
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    pub sessions: usize,
}

impl Options {
    pub(super) fn idle(&self) -> Duration {
        Duration::from_secs(self.idle)
    }

    pub(super) fn keep(&self) -> Duration {
        Duration::from_secs(self.keep.saturating_mul(24 * 3600))
    }

    /// Returns the directory of the data, which exists then.
    pub(super) fn data<P: Program>(&self) -> Result<PathBuf, Error> {
        let usual = || PathBuf::from("target").join(P::NAME);
        let data = std::path::absolute(self.data.clone().unwrap_or_else(usual))?;
        std::fs::create_dir_all(&data)?;
        Ok(data)
    }

    /// Returns the model of the endpoint that was given, or this script; and its name.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no port for the script, or no client for the endpoint.
    #[allow(
        clippy::disallowed_methods,
        reason = "a program reads its key from the environment"
    )]
    pub async fn model(&self, script: Script) -> Result<(Model, String), Error> {
        let (Some(base_url), Some(model)) = (&self.base_url, &self.model) else {
            return Ok((Model::scripted(script).await?, "a script".to_owned()));
        };
        let endpoint = Endpoint {
            base_url: base_url.clone(),
            model: model.clone(),
            key: std::env::var("OPENAI_API_KEY").ok(),
        };
        Ok((Model::at(endpoint)?, model.clone()))
    }
}
