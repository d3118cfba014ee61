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
//! - `browser_sessions.rs`: the id of a session is a secret, and its sandbox does not know it.
//! - `request_check.rs`: requests of other sites are refused.
//! - `chat.rs` and `questions.rs`: a turn as a stream of events, which a question interrupts.
//! - `engine.rs`: the sandboxes, in containers, pods, hosted or confined on this machine.
//! - `terminal.rs`: the terminal of a sandbox over a websocket.
#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows what it does, and reads its key from the environment"
)]

mod browser_sessions;
mod chat;
mod demo;
mod engine;
mod execute;
mod failure;
mod files;
mod options;
mod pages;
mod questions;
mod request_check;
mod routes;
mod terminal;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use backend_core::Sandbox as _;
use clap::Parser as _;
use console_tools::Toolset;
use examples::chat::{Endpoint, Model};
use sessions::{EventKind, REAPER_INTERVAL, Session, SessionManager, SessionResolver};
use tokio::net::TcpListener;
use tokio::sync::broadcast::error::RecvError;

use crate::browser_sessions::{BrowserSession, BrowserSessions};
use crate::failure::Failure;
use crate::options::Options;
use crate::pages::Xterm;

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// How long the sandboxes may take to end with the server.
const SHUTDOWN_TIME: Duration = Duration::from_secs(30);

/// How often old sessions are looked for.
const CLEAR_INTERVAL: Duration = Duration::from_secs(3600);

/// Everything that requests need.
#[derive(Debug)]
pub(crate) struct App {
    manager: SessionManager,
    browsers: BrowserSessions,
    model: Model,
    model_name: String,
    /// A description of the sandboxes.
    place: String,
    /// The names of this server.
    hosts: Vec<String>,
    xterm: Xterm,
}

impl App {
    /// Returns a browser session and its sandbox. One that was idle starts again.
    async fn sandbox(&self, id: &str) -> Result<(Arc<BrowserSession>, Session), Failure> {
        let browser = self.browsers.find(id)?;
        let sandbox = self.manager.get_or_create(&browser.name).await?;
        sandbox.start().await?;
        Ok((browser, sandbox))
    }

    /// Deletes a session: its sandbox, its files, its conversation.
    async fn delete(&self, name: &str) -> Result<(), Failure> {
        self.manager.purge(name).await?;
        Ok(self.browsers.delete(name)?)
    }
}

fn main() -> ExitCode {
    // Must come first: this program is also the supervisor of its commands.
    backend_local::supervisor::run_if_asked();
    let options = Options::parse();
    let runtime = tokio::runtime::Runtime::new().map_err(Error::from);
    match runtime.and_then(|runtime| runtime.block_on(serve(options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> Result<(), Error> {
    let data = std::path::absolute(&options.data)?;
    std::fs::create_dir_all(&data)?;
    let (engine, place) = engine::open(&options.backend, &data.join("files")).await?;
    let manager = SessionManager::builder()
        .engine(engine)
        .idle_timeout(options.idle())
        .max_sessions(options.running)
        .build()?;
    manager.start_reaper(
        REAPER_INTERVAL
            .min(options.idle() / 2)
            .max(Duration::from_millis(100)),
    );

    // Files are the user's own, so changing them needs no approval. Commands do.
    let toolset = Toolset::resolving(Arc::new(SessionResolver::new(manager.clone()))).build()?;
    let conversations = data.join("conversations");
    let browsers = BrowserSessions::open(conversations, options.sessions, toolset)?;

    let (model, model_name) = model(&options).await?;
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;
    let app = Arc::new(App {
        manager,
        browsers,
        model,
        model_name,
        place,
        hosts: hosts(address, &options.hosts),
        xterm: Xterm::read(&options.xterm.clone().unwrap_or_else(usual_xterm)),
    });
    tokio::spawn(watch(Arc::clone(&app)));
    tokio::spawn(clear(Arc::clone(&app), options.keep()));
    println!("each session has {}", app.place);
    println!("the model is {}", app.model_name);
    if !app.xterm.is_there() {
        println!("the page has no terminal; cargo xtask xterm fetches xterm.js");
    }
    println!("open http://{address}");
    let service = routes::router(Arc::clone(&app));
    tokio::select! {
        served = axum::serve(listener, service) => served?,
        // Streams and terminals have no end, so nothing waits for them.
        () = interrupted() => {}
    }
    app.manager.shutdown(SHUTDOWN_TIME).await;
    Ok(())
}

/// Returns the model of the endpoint that was given, or a script.
async fn model(options: &Options) -> Result<(Model, String), Error> {
    let (Some(base_url), Some(model)) = (&options.base_url, &options.model) else {
        return Ok((
            Model::scripted(demo::script()).await?,
            "a script".to_owned(),
        ));
    };
    let endpoint = Endpoint {
        base_url: base_url.clone(),
        model: model.clone(),
        key: std::env::var("OPENAI_API_KEY").ok(),
    };
    Ok((Model::at(endpoint)?, model.clone()))
}

/// Returns the names under which browsers may ask for this server.
fn hosts(address: SocketAddr, given: &[String]) -> Vec<String> {
    let port = address.port();
    let usual = ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}"));
    let given = given.iter().map(|name| name.to_ascii_lowercase());
    usual
        .into_iter()
        .chain([address.to_string()])
        .chain(given)
        .collect()
}

/// Tells of sessions that begin and end, by their names.
async fn watch(app: Arc<App>) {
    let mut events = app.manager.events();
    loop {
        let event = match events.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        match event.kind {
            EventKind::Opened => println!("session {} has a sandbox", event.id),
            EventKind::Reaped => {
                app.browsers.put_aside(event.id.as_str());
                println!("session {} was idle; its files stay", event.id);
            }
            EventKind::Failed(why) => println!("session {}: {why}", event.id),
            _ => {}
        }
    }
}

/// Deletes sessions whose users do not come back.
async fn clear(app: Arc<App>, keep: Duration) {
    let mut hourly = tokio::time::interval(CLEAR_INTERVAL);
    loop {
        hourly.tick().await;
        for name in app.browsers.unused_for(keep).unwrap_or_default() {
            match app.delete(&name).await {
                Ok(()) => println!("session {name} was not used for long; it is deleted"),
                Err(failure) => println!("session {name} is not deleted: {failure}"),
            }
        }
    }
}

fn usual_xterm() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    cache
        .or_else(home)
        .unwrap_or_default()
        .join("agentbox/xterm")
}

/// Waits for Ctrl-C, or for the signal of a service manager.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
