//! A chat with an agent in the browser, as a service would offer it: each browser session
//! owns a sandbox, with files, commands and a terminal.
//!
//! ```text
//! cargo run -p web_app                          # a script answers, no network is needed
//! cargo run -p web_app -- --base-url http://127.0.0.1:11434/v1 --model qwen3
//! cargo run -p web_app -- --backend docker:python:3.12
//! cargo xtask xterm                             # once, for the terminal of the page
//! ```
//!
//! Look at these:
//!
//! - `examples::web`: sessions of browsers, requests that are refused, turns as streams of
//!   events, sandboxes in containers, pods, hosted or confined on this machine.
//! - `terminal.rs`: the terminal of a sandbox over a websocket.
//! - `files.rs`: what of the sandbox is the user's.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows what it does, and reads its environment"
)]

mod demo;
mod execute;
mod files;
mod pages;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use console_tools::Toolset;
use examples::web::{self, Error, POLICY, Program, Sandboxes};
use sandbox_runtime::Runtime;
use serde_json::Value;
use sessions::SessionResolver;
use tokio::sync::Semaphore;

use crate::pages::Xterm;

/// The image of containers if none is named.
const IMAGE: &str = "python:3.12-slim";

/// Bytes of an uploaded file.
const UPLOAD_BYTES: usize = 16 * 1024 * 1024;

/// Terminals of one session.
const TERMINALS: usize = 4;

/// xterm.js writes its colours into a style element.
const POLICY_WITH_XTERM: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; \
                                 frame-ancestors 'none'; object-src 'none'; \
                                 style-src 'self' 'unsafe-inline'";

/// A chat with an agent in the browser: each browser session owns a sandbox.
#[derive(Debug, clap::Parser)]
struct Options {
    #[command(flatten)]
    service: web::Options,

    /// The directory that `cargo xtask xterm` filled.
    #[arg(long, value_name = "DIR")]
    xterm: Option<PathBuf>,
}

/// The parts that this program adds to a service.
#[derive(Debug)]
pub(crate) struct WebApp {
    xterm: Xterm,
}

pub(crate) type App = web::App<WebApp>;

/// The terminals of a session that may be opened.
#[derive(Debug)]
pub(crate) struct Terminals(Arc<Semaphore>);

impl Default for Terminals {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TERMINALS)))
    }
}

impl Program for WebApp {
    type Session = Terminals;
    const NAME: &'static str = "web_app";

    fn runtime(image: Option<&str>) -> backend_core::Result<(Runtime, String)> {
        let image = image.unwrap_or(IMAGE);
        Ok((Runtime::from_image("web-app", image), image.to_owned()))
    }

    fn policy(&self) -> &'static str {
        if self.xterm.is_there() {
            POLICY_WITH_XTERM
        } else {
            POLICY
        }
    }

    fn describe(&self, described: &mut Value) {
        described["xterm"] = self.xterm.is_there().into();
    }
}

fn main() -> ExitCode {
    web::run(serve)
}

async fn serve(options: Options) -> Result<(), Error> {
    let sandboxes = Sandboxes::open::<WebApp>(&options.service).await?;
    // Files are the user's own, so changing them needs no approval. Commands do.
    let resolver = SessionResolver::new(sandboxes.manager.clone());
    let toolset = Toolset::resolving(Arc::new(resolver)).build()?;
    let model = options.service.model(demo::script()).await?;
    let xterm = Xterm::read(&options.xterm.unwrap_or_else(usual_xterm));
    if !xterm.is_there() {
        println!("the page has no terminal; cargo xtask xterm fetches xterm.js");
    }
    // A conversation without a user has a sandbox of its own name.
    let conversations = Box::new(move |name: &str| Ok(toolset.conversation(name)));
    let program = WebApp { xterm };
    web::serve(
        &options.service,
        program,
        sandboxes,
        model,
        conversations,
        routes(),
    )
    .await
}

fn routes() -> Router<Arc<App>> {
    let uploads = axum::extract::DefaultBodyLimit::max(UPLOAD_BYTES);
    let file = get(files::download).put(files::upload).layer(uploads);
    pages::routes()
        .route("/sessions/{id}/files", get(files::list))
        .route("/sessions/{id}/files/{*path}", file)
        .route("/sessions/{id}/execute", post(execute::execute))
        .route("/sessions/{id}/terminal", get(terminal::open))
}

fn usual_xterm() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    cache
        .or_else(home)
        .unwrap_or_default()
        .join("agentbox/xterm")
}
