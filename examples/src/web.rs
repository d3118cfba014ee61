//! A web service around agents: each browser has a session with a conversation and a
//! sandbox of its own. The programs `web_app` and `predictive_analytics` add their tools,
//! their routes and their pages.
//!
//! Look at these:
//!
//! - `browser_sessions.rs`: the id of a session is a secret, and its sandbox does not know it.
//! - `request_check.rs`: requests of other sites are refused.
//! - `turn.rs` and `questions.rs`: a turn as a stream of events, which a question interrupts.
//! - `engine.rs`: the sandboxes, in containers, pods, hosted or confined on this machine.
#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a service tells what it does"
)]

mod browser_sessions;
mod engine;
mod failure;
mod options;
pub mod page;
mod questions;
mod request_check;
mod routes;
#[cfg(feature = "tester")]
pub mod tester;
mod turn;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use backend_core::Sandbox as _;
use console_tools::Chat;
use sandbox_runtime::Runtime;
use serde_json::Value;
use sessions::{EventKind, REAPER_INTERVAL, Session, SessionManager};
use tokio::net::TcpListener;
use tokio::sync::broadcast::error::RecvError;

use crate::chat::Model;

pub use browser_sessions::{BrowserSession, BrowserSessions};
pub use failure::Failure;
pub use options::Options;
pub use request_check::POLICY;

/// An error of the start, ready to be shown.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// How long the sandboxes may take to end with the server.
const SHUTDOWN_TIME: Duration = Duration::from_secs(30);

/// How often old sessions are looked for.
const CLEAR_INTERVAL: Duration = Duration::from_secs(3600);

/// The part of a service that differs between programs.
pub trait Program: std::fmt::Debug + Send + Sync + 'static {
    /// The part of a browser's session that only this program has.
    type Session: std::fmt::Debug + Default + Send + Sync;

    /// The program's name: of its cookie, its directory and its containers.
    const NAME: &'static str;

    /// The beginning of the model's instructions; those of its tools follow.
    const INSTRUCTIONS: &'static str = "";

    /// Returns the runtime of containers and pods, and a description of it. `image` is the
    /// one that the user named.
    ///
    /// # Errors
    ///
    /// Returns an error if there can be no such runtime.
    fn runtime(image: Option<&str>) -> backend_core::Result<(Runtime, String)>;

    /// Returns the content security policy of every response.
    fn policy(&self) -> &'static str {
        POLICY
    }

    /// Adds facts to the description of a session that a page gets.
    fn describe(&self, _described: &mut Value) {}

    /// Returns the data that a page draws for a successful reply, if it draws any.
    fn drawn(&self, _tool: &str, _reply: &str) -> Option<Value> {
        None
    }
}

/// Makes the conversation of a session, by the session's name.
pub type Conversations = Box<dyn Fn(&str) -> Result<Chat, Error> + Send + Sync>;

/// The sandboxes of a service.
#[derive(Debug)]
pub struct Sandboxes {
    /// One sandbox for each session.
    pub manager: SessionManager,
    /// A description of them.
    pub place: String,
}

impl Sandboxes {
    /// Opens the engine that the options name.
    ///
    /// # Errors
    ///
    /// Any of the engine, with what to do instead.
    pub async fn open<P: Program>(options: &Options) -> Result<Self, Error> {
        let files = options.data::<P>()?.join("files");
        let (engine, place) = engine::open::<P>(&options.backend, &files).await?;
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
        Ok(Self { manager, place })
    }
}

/// Everything that requests need.
#[derive(Debug)]
pub struct App<P: Program> {
    /// The program's own part.
    pub program: P,
    /// The sessions of browsers.
    pub browsers: BrowserSessions<P::Session>,
    sandboxes: Sandboxes,
    model: Model,
    model_name: String,
    /// The names of this server.
    hosts: Vec<String>,
}

/// A session of a browser.
pub type Browser<P> = Arc<BrowserSession<<P as Program>::Session>>;

impl<P: Program> App<P> {
    /// Returns a browser session and its sandbox. One that was idle starts again.
    ///
    /// # Errors
    ///
    /// Returns the response to a request that names no session, or one whose sandbox does
    /// not start.
    pub async fn sandbox(&self, id: &str) -> Result<(Browser<P>, Session), Failure> {
        let browser = self.browsers.find(id)?;
        let sandbox = self.sandboxes.manager.get_or_create(&browser.name).await?;
        sandbox.start().await?;
        Ok((browser, sandbox))
    }

    /// Deletes a session: its sandbox, its files, its conversation.
    async fn delete(&self, name: &str) -> Result<(), Failure> {
        self.sandboxes.manager.purge(name).await?;
        Ok(self.browsers.delete(name)?)
    }
}

/// Reads the options of a program, runs it, and shows its error: the whole `main`.
pub fn run<O: clap::Parser, F>(program: impl FnOnce(O) -> F) -> ExitCode
where
    F: Future<Output = Result<(), Error>>,
{
    // Must come first: the program is also the supervisor of its commands.
    backend_local::supervisor::run_if_asked();
    let options = O::parse();
    let runtime = tokio::runtime::Runtime::new().map_err(Error::from);
    match runtime.and_then(|runtime| runtime.block_on(program(options))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves the sessions, and the program's own routes, until Ctrl-C.
///
/// # Errors
///
/// Any of the start.
pub async fn serve<P: Program>(
    options: &Options,
    program: P,
    sandboxes: Sandboxes,
    (model, model_name): (Model, String),
    conversations: Conversations,
    own: Router<Arc<App<P>>>,
) -> Result<(), Error> {
    let stored = options.data::<P>()?.join("conversations");
    let browsers = BrowserSessions::open(stored, options.sessions, conversations)?;
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;
    let app = Arc::new(App {
        program,
        browsers,
        sandboxes,
        model,
        model_name,
        hosts: hosts(address, &options.hosts),
    });
    tokio::spawn(watch(Arc::clone(&app)));
    tokio::spawn(clear(Arc::clone(&app), options.keep()));
    println!("each session has {}", app.sandboxes.place);
    println!("the model is {}", app.model_name);
    println!("open http://{address}");
    let service = routes::service(Arc::clone(&app), own);
    tokio::select! {
        served = axum::serve(listener, service) => served?,
        // Streams and terminals have no end, so nothing waits for them.
        () = interrupted() => {}
    }
    app.sandboxes.manager.shutdown(SHUTDOWN_TIME).await;
    Ok(())
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
async fn watch<P: Program>(app: Arc<App<P>>) {
    let mut events = app.sandboxes.manager.events();
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
async fn clear<P: Program>(app: Arc<App<P>>, keep: Duration) {
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
