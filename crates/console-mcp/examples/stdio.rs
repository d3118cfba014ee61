//! A small MCP server: the files of a directory, and commands in it.
//!
//! ```text
//! stdio DIRECTORY [--ask] [--structured] [--http ADDRESS] [--token TOKEN]
//! stdio --state
//! ```
//!
//! With `--ask`, writes and commands need approval. With `--http`, it listens and
//! prints its address to standard error.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use backend_core::{Backend, Error};
use backend_local::LocalBackend;
use backend_state::StateBackend;
use console_mcp::{Client, Connect, HttpSettings, Settings, Token, serve_http, serve_stdio};
use console_tools::{Options, Toolset};

#[derive(Debug)]
struct LocalTools {
    /// The directory to serve; files in memory if `None`.
    directory: Option<PathBuf>,
    asks: bool,
}

#[async_trait]
impl Connect for LocalTools {
    async fn connect(&self, _: &Client) -> backend_core::Result<Toolset> {
        let backend: Arc<dyn Backend> = match &self.directory {
            Some(directory) => Arc::new(
                LocalBackend::builder(directory)
                    .enable_execute(true)
                    .open()?,
            ),
            None => Arc::new(StateBackend::new()),
        };
        let mut options = Options::default();
        options.image_support = true;
        options.document_support = true;
        options.include_file_operations = true;
        options.require_execute_approval = self.asks;
        options.require_write_approval = self.asks;
        let toolset = Toolset::builder(backend).options(options).build();
        toolset.map_err(|error| Error::internal(error.to_string()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // This program is also the supervisor of its commands.
    backend_local::supervisor::run_if_asked();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve());
    // A thread may be blocked on standard input, and nothing can wake it.
    runtime.shutdown_background();
    served
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let mut settings = Settings::default();
    let (mut directory, mut asks, mut http, mut token) = (None, false, None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--state" => directory = None,
            "--ask" => asks = true,
            "--structured" => settings.structured = true,
            "--http" => http = words.next(),
            "--token" => token = words.next(),
            _ => directory = Some(PathBuf::from(word)),
        }
    }
    settings.host_root = directory.clone();
    let connect = Arc::new(LocalTools { directory, asks });
    let Some(address) = http else {
        return Ok(serve_stdio(connect, settings).await?);
    };
    let mut http = HttpSettings::without_token(address.parse()?);
    http.tokens = token.map(Token::new).into_iter().collect();
    let ready = |address| {
        let _ = writeln!(std::io::stderr(), "http://{address}/mcp");
    };
    Ok(serve_http(connect, settings, http, ready, std::future::pending()).await?)
}
