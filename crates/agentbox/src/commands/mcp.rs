//! `agentbox mcp`: serves the tools to an MCP client.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::{Error, ErrorKind};
use console_mcp::{Connect, HttpSettings, ServeError, Settings, serve_http, serve_stdio};
use console_tools::Toolset;

use crate::app::App;
use crate::backend::open_backend::StopActions;
use crate::backend::spec::Prepare;
use crate::config::Mcp;
use crate::exit::Failure;
use crate::output;
use crate::signals::Interrupts;
use crate::token::{self, TokenSource};

/// Interval at which backends of disconnected clients are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Options of `mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Serves streamable HTTP at this address, such as 127.0.0.1:8000, instead of
    /// standard input and output.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    http: Option<SocketAddr>,
    /// The file with the token that every HTTP request must carry; made if it is
    /// missing. Without it there is a new token at every start, which is printed.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Lets every user and program of this machine connect, without a token. Only for
    /// an address that other machines cannot reach.
    #[arg(long, conflicts_with = "token_file")]
    no_token: bool,
    /// The origin of a web page that may send requests, such as
    /// http://localhost:6274; can be given more than once.
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
    /// Returns `true` if the command line or the configuration asks for HTTP. Otherwise
    /// there is one client, on standard input and output.
    pub(crate) fn listens(&self, config: &Mcp) -> bool {
        self.http.or(config.http).is_some()
    }
}

/// Parses the address to listen on.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().unwrap_or(text);
        let port = port.parse::<u16>().unwrap_or(8000);
        format!("not a valid address; write 127.0.0.1:{port}")
    })
}

/// Opens a separate backend for every client.
#[derive(Debug)]
struct Clients {
    app: App,
    /// The first one is opened before a client connects, so that errors are reported at
    /// once.
    first: Mutex<Option<Toolset>>,
    opened: Mutex<Vec<Arc<StopActions>>>,
}

impl Clients {
    async fn open(&self) -> Result<Toolset, Failure> {
        let mut new = self.app.open().await?;
        self.opened().push(Arc::new(new.take_stop_actions()));
        Ok(self.app.toolset(&new).build()?)
    }

    fn opened(&self) -> MutexGuard<'_, Vec<Arc<StopActions>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loops forever, closing the backends of disconnected clients.
    async fn sweep(&self) {
        let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            ticks.tick().await;
            let left: Vec<Arc<StopActions>> = {
                let opened = self.opened();
                let left = opened.iter().filter(|actions| !actions.is_used());
                left.cloned().collect()
            };
            futures::future::join_all(left.iter().map(|actions| actions.stop())).await;
            let is_left =
                |actions: &Arc<StopActions>| left.iter().any(|one| Arc::ptr_eq(one, actions));
            self.opened().retain(|actions| !is_left(actions));
        }
    }

    /// Closes the backends of the clients that are still connected.
    async fn stop(&self) {
        let opened = std::mem::take(&mut *self.opened());
        futures::future::join_all(opened.iter().map(|actions| actions.stop())).await;
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
                let kind = if failure.is_usage() {
                    ErrorKind::Config
                } else {
                    ErrorKind::Unavailable
                };
                Error::new(kind, failure.to_string())
            }),
        }
    }
}

pub(crate) async fn run(mut app: App, args: Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let mut settings = Settings::default();
    settings.host_root = app.spec.host_root();
    settings.structured = args.structured || app.config.mcp.structured;
    settings.mark_failures = args.mark_failures || app.config.mcp.mark_failures;
    let http = http(&mut app, args)?;
    // A client does not wait minutes for its first response.
    app.spec.prepare = Prepare::Background;
    let clients = Arc::new(Clients {
        app,
        first: Mutex::default(),
        opened: Mutex::default(),
    });
    let Ok(first) = interrupts.unless(clients.open()).await else {
        return Ok(ExitCode::SUCCESS);
    };
    *clients.first.lock().unwrap_or_else(PoisonError::into_inner) = Some(first?);
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
        Some((http, about)) => tokio::select! {
            served = serve(connect, settings, http, &about, &interrupts) => served,
            () = clients.sweep() => Ok(()),
        },
    };
    clients.stop().await;
    served.map_err(|error| Failure::environment(format!("the server ended: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    connect: Arc<dyn Connect>,
    settings: Settings,
    http: HttpSettings,
    about_token: &str,
    interrupts: &Interrupts,
) -> Result<(), ServeError> {
    let ended = interrupts.clone();
    let shutdown = async move {
        ended.wait().await;
    };
    let ready = |address: SocketAddr| {
        output::note(&format!(
            "agentbox: listening on http://{address}/mcp; end with Ctrl-C\nagentbox: {about_token}"
        ));
    };
    serve_http(connect, settings, http, ready, shutdown).await
}

/// Returns the HTTP settings and a message about the token, if HTTP was asked for.
fn http(app: &mut App, args: Args) -> Result<Option<(HttpSettings, String)>, Failure> {
    let config = app.config.mcp.clone();
    let Some(address) = args.http.or(config.http) else {
        if args.token_file.is_some() || args.no_token || !args.origins.is_empty() {
            return Err(Failure::usage(
                "--token-file, --no-token and --origin are for HTTP; give --http ADDRESS as well",
            ));
        }
        return Ok(None);
    };
    let source = TokenSource::new(&config, args.token_file, args.no_token)?;
    let (mut http, about) = match source {
        TokenSource::None if !address.ip().is_loopback() => {
            return Err(Failure::usage(format!(
                "{address} can be reached from other machines, which need a token; leave out \
                 --no-token, or listen on 127.0.0.1"
            )));
        }
        TokenSource::None => (
            HttpSettings::without_token(address),
            "there is no token: every user and program of this machine may connect".to_owned(),
        ),
        TokenSource::File(file) => {
            let root = app.spec.host_root();
            let whole = std::path::absolute(&file).unwrap_or_else(|_| file.clone());
            let parent = whole.parent().and_then(|parent| parent.canonicalize().ok());
            // The file is not even created there.
            if root
                .zip(parent)
                .is_some_and(|(root, parent)| parent.starts_with(root))
            {
                return Err(token::readable(&file));
            }
            let (token, is_new) = token::from_file(&file)?;
            app.token_file = Some(file.clone());
            let made = if is_new {
                "a new token is"
            } else {
                "the token is"
            };
            let about = format!("{made} in {}", file.display());
            (HttpSettings::new(address, token), about)
        }
        TokenSource::Random => {
            let token = token::random()?;
            let about = format!(
                "clients send 'Authorization: Bearer {token}', until the end of this program; \
                 --token-file FILE keeps a token"
            );
            (HttpSettings::new(address, token), about)
        }
    };
    http.origins = if args.origins.is_empty() {
        config.origins
    } else {
        args.origins
    };
    Ok(Some((http, about)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_server_listens_if_a_flag_or_the_configuration_says_so() {
        let listens = |flags: &[&str], http: Option<&str>| {
            let Line { args } = Line::parse_from(["mcp"].iter().chain(flags));
            let http = http.map(|address| address.parse().unwrap());
            let config = Mcp {
                http,
                ..Mcp::default()
            };
            args.listens(&config)
        };
        assert!(!listens(&[], None));
        assert!(listens(&["--http", "127.0.0.1:0"], None));
        assert!(listens(&[], Some("127.0.0.1:0")));
    }
}
