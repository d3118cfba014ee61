//! `agentbox mcp`: the tools for an MCP client.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::{Error, ErrorKind};
use console_mcp::{Connect, HttpSettings, ServeError, Settings, serve_http, serve_stdio};
use console_tools::Toolset;

use crate::app::App;
use crate::backend::{Ends, Prepare};
use crate::config::read_text;
use crate::exit::Failure;
use crate::output;
use crate::signals::Interrupts;

/// How often what clients have left is looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// Options of `mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Serves streamable HTTP at this address, such as 127.0.0.1:8000, instead of
    /// standard input and output.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// The file with the token that every HTTP request must carry.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A web origin that may send requests; can be given more than once.
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// Adds structuredContent and output schemas, for programs. Many clients show a
    /// model nothing else then, so it has all of the text.
    #[arg(long)]
    structured: bool,
    /// Marks every failure as an error, also one that another call can fix. Some
    /// clients end a run at the second such error.
    #[arg(long)]
    mark_failures: bool,
}

impl Args {
    /// Whether nothing says that it listens, as far as the command line tells.
    pub(crate) fn is_on_pipes(&self) -> bool {
        self.http.is_none()
    }
}

/// Makes a backend of its own for every client.
#[derive(Debug)]
struct Clients {
    app: App,
    /// The first is opened before anybody asks: what is wrong is said at once.
    first: Mutex<Option<Toolset>>,
    opened: Mutex<Vec<Arc<Ends>>>,
}

impl Clients {
    async fn open(&self) -> Result<Toolset, Failure> {
        let mut new = self.app.open().await?;
        self.opened().push(Arc::new(new.take_ends()));
        Ok(self.app.toolset(&new).build()?)
    }

    fn opened(&self) -> MutexGuard<'_, Vec<Arc<Ends>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what clients had who have gone, for ever.
    async fn sweep(&self) {
        let mut ticks = tokio::time::interval(SWEEP);
        loop {
            ticks.tick().await;
            let left: Vec<Arc<Ends>> = {
                let opened = self.opened();
                let left = opened.iter().filter(|ends| !ends.is_used());
                left.cloned().collect()
            };
            futures::future::join_all(left.iter().map(|ends| ends.stop())).await;
            let is_left = |ends: &Arc<Ends>| left.iter().any(|one| Arc::ptr_eq(one, ends));
            self.opened().retain(|ends| !is_left(ends));
        }
    }

    /// Ends the commands of whoever is still there.
    async fn stop(&self) {
        let opened = std::mem::take(&mut *self.opened());
        futures::future::join_all(opened.iter().map(|ends| ends.stop())).await;
    }
}

#[async_trait]
impl Connect for Clients {
    async fn connect(&self) -> backend_core::Result<Toolset> {
        let first = self
            .first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match first {
            Some(toolset) => Ok(toolset),
            None => self.open().await.map_err(|failure| {
                let kind = match failure.is_usage() {
                    true => ErrorKind::Config,
                    false => ErrorKind::Unavailable,
                };
                Error::new(kind, failure.to_string())
            }),
        }
    }
}

pub(crate) async fn run(mut app: App, args: Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let mut settings = Settings::default();
    settings.host_root = app.wanted.host_root();
    settings.structured = args.structured || app.config.mcp.structured;
    settings.mark_failures = args.mark_failures || app.config.mcp.mark_failures;
    let http = http(&app, args)?;
    // A client does not wait minutes for its first answer.
    app.wanted.prepare = Prepare::Background;
    let clients = Arc::new(Clients {
        app,
        first: Mutex::default(),
        opened: Mutex::default(),
    });
    let first = match interrupts.unless(clients.open()).await {
        Ok(opened) => opened?,
        Err(_) => return Ok(ExitCode::SUCCESS),
    };
    *clients.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(first);
    if http.is_none() && std::io::stdin().is_terminal() {
        output::note(
            "agentbox: waiting for an MCP client on standard input; a person uses `agentbox`, \
             and a client's configuration is printed by `agentbox mcp-config CLIENT`",
        );
    }
    let connect = Arc::clone(&clients) as Arc<dyn Connect>;
    let served = match http {
        None => interrupts
            .unless(serve_stdio(connect, settings))
            .await
            .unwrap_or(Ok(())),
        Some(http) => tokio::select! {
            served = serve(connect, settings, http, &interrupts) => served,
            () = clients.sweep() => Ok(()),
        },
    };
    clients.stop().await;
    match served {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(Failure::environment(format!("the server ended: {error}"))),
    }
}

async fn serve(
    connect: Arc<dyn Connect>,
    settings: Settings,
    http: HttpSettings,
    interrupts: &Interrupts,
) -> Result<(), ServeError> {
    let ended = interrupts.clone();
    let shutdown = async move {
        ended.wait().await;
    };
    let ready = |address: SocketAddr| {
        output::note(&format!(
            "agentbox: listening on http://{address}/mcp; end with Ctrl-C"
        ));
    };
    serve_http(connect, settings, http, ready, shutdown).await
}

/// What is asked for HTTP, if it is.
fn http(app: &App, args: Args) -> Result<Option<HttpSettings>, Failure> {
    let config = &app.config.mcp;
    let Some(address) = args.http.or(config.http) else {
        return match args.token_file.is_some() || !args.origins.is_empty() {
            true => Err(Failure::usage(
                "--token-file and --origin are for HTTP; give --http ADDRESS as well",
            )),
            false => Ok(None),
        };
    };
    let mut http = HttpSettings::new(address);
    let file = args.token_file.as_ref().or(config.token_file.as_ref());
    http.token = file.map(|file| token(file)).transpose()?;
    if http.token.is_none() && !address.ip().is_loopback() {
        return Err(Failure::usage(format!(
            "{address} can be reached from other machines; give --token-file FILE, or listen on 127.0.0.1"
        )));
    }
    http.origins = match args.origins.is_empty() {
        true => config.origins.clone(),
        false => args.origins,
    };
    Ok(Some(http))
}

fn token(file: &Path) -> Result<String, Failure> {
    let text = read_text(file, "token file")?;
    let token = text.trim();
    let sound = token.len() >= 16 && token.bytes().all(|byte| byte.is_ascii_graphic());
    match sound {
        true => Ok(token.to_owned()),
        false => Err(Failure::usage(format!(
            "{} holds no token; write one line of at least 16 letters and digits to it",
            file.display()
        ))),
    }
}
