//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

/// A chat with an agent in the browser: each browser session owns a sandbox.
#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// The address to listen on. Port 0 is any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    /// The sandboxes: auto, local, docker, docker:IMAGE, k8s:IMAGE, daytona or daytona:SNAPSHOT.
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub(crate) backend: String,

    /// The directory of the conversations and, for local sandboxes and containers, the files.
    #[arg(long, value_name = "DIR", default_value = "target/web_app")]
    pub(crate) data: PathBuf,

    /// An OpenAI-compatible endpoint, up to `/chat/completions`. Its key is in OPENAI_API_KEY.
    #[arg(long, value_name = "URL", requires = "model")]
    pub(crate) base_url: Option<String>,

    /// The model. Without one, a script answers.
    #[arg(long, value_name = "NAME", requires = "base_url")]
    pub(crate) model: Option<String>,

    /// Another name of this server, such as the one of a reverse proxy: NAME or NAME:PORT.
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,

    /// Seconds without use after which a sandbox ends. Its files stay.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub(crate) idle: u64,

    /// Sandboxes that run at once. Those used least recently sleep.
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    pub(crate) running: usize,

    /// Days without use after which a session is deleted, with its files.
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    pub(crate) keep: u64,

    /// Browser sessions that are kept.
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    pub(crate) sessions: usize,

    /// The directory that `cargo xtask xterm` filled.
    #[arg(long, value_name = "DIR")]
    pub(crate) xterm: Option<PathBuf>,
}

impl Options {
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_secs(self.idle)
    }

    pub(crate) fn keep(&self) -> Duration {
        Duration::from_secs(self.keep.saturating_mul(24 * 3600))
    }
}
