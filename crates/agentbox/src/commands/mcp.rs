//! `agentbox mcp`: serves the tools to an MCP client.

mod clients;
mod session_clients;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use console_mcp::{Connect, HttpSettings, ServeError, Settings, Token, serve_http, serve_stdio};

use self::clients::{Backends, Clients};
use self::session_clients::SessionClients;
use crate::app::App;
use crate::config::Mcp;
use crate::exit::{Failure, environment, usage};
use crate::output;
use crate::signals::Interrupts;
use crate::token::{self, TokenSource};

/// The longest time without use that can be set, in seconds: a year.
const MAX_IDLE: u64 = 365 * 24 * 60 * 60;

/// Options of `mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Serves streamable HTTP at this address, such as 127.0.0.1:8000, instead of
    /// standard input and output.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    http: Option<SocketAddr>,
    /// The file with the token that every HTTP request must carry, or with a line NAME
    /// TOKEN for each client; made if it is missing. Without it there is a new token at
    /// every start, which is printed.
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
    /// The directory in which each client has its files, found again when it returns, and
    /// made if it is missing. With names of tokens or this, clients have sessions.
    #[arg(long, value_name = "DIR")]
    workspaces: Option<PathBuf>,
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

pub(crate) async fn run(mut app: App, args: Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let mut settings = Settings::default();
    settings.structured = args.structured || app.config.mcp.structured;
    settings.mark_failures = args.mark_failures || app.config.mcp.mark_failures;
    let server = http(&mut app, args)?;
    app.spec.one_client = server.is_none();
    let sessions = server.as_ref().filter(|server| server.has_sessions());
    let opening = async {
        let clients: Arc<dyn Clients> = match sessions {
            Some(server) => {
                let directory = server.workspaces.as_deref();
                Arc::new(SessionClients::open(app, directory, &server.settings).await?)
            }
            None => {
                settings.host_root = app.spec.host_root();
                settings.instructions = about_directories(&app.spec.shown_directories());
                Arc::new(Backends::open(app).await?)
            }
        };
        Ok::<_, Failure>(clients)
    };
    let Ok(clients) = interrupts.unless(opening).await else {
        return Ok(ExitCode::SUCCESS);
    };
    let clients = clients?;
    if server.is_none() && std::io::stdin().is_terminal() {
        output::note(
            "agentbox: waiting for an MCP client on standard input; a person uses `agentbox`, \
             and a client's configuration is printed by `agentbox mcp-config CLIENT`",
        );
    }
    let connect: Arc<dyn Connect> = Arc::clone(&clients) as _;
    let served = match server {
        None => interrupts
            .unless(serve_stdio(connect, settings))
            .await
            .unwrap_or(Ok(())),
        Some(server) => tokio::select! {
            served = serve(connect, settings, server, &interrupts) => served,
            () = clients.sweep() => Ok(()),
        },
    };
    clients.stop().await;
    served.map_err(|error| environment!("the server ended: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Tells the model which directories there are, if it knows them by the machine's paths:
/// it could not find them otherwise.
fn about_directories(directories: &[PathBuf]) -> Option<String> {
    let quoted = directories
        .iter()
        .map(|path| format!("`{}`", path.display()));
    let quoted: Vec<String> = quoted.collect();
    let (first, _) = quoted.split_first()?;
    let all = quoted.join(", ");
    Some(format!(
        "The file tools reach these directories: {all}. Relative paths start in {first}."
    ))
}

/// A server that listens.
#[derive(Debug)]
struct HttpServer {
    settings: HttpSettings,
    /// A message about its tokens.
    about: String,
    /// The directory that holds the files of sessions.
    workspaces: Option<PathBuf>,
}

impl HttpServer {
    /// Returns `true` if clients have sessions, which they find again. Otherwise each has a
    /// backend of its own until it disconnects.
    fn has_sessions(&self) -> bool {
        let mut tokens = self.settings.tokens.iter();
        self.workspaces.is_some() || tokens.any(|token| token.name().is_some())
    }
}

async fn serve(
    connect: Arc<dyn Connect>,
    settings: Settings,
    server: HttpServer,
    interrupts: &Interrupts,
) -> Result<(), ServeError> {
    let about = server.about;
    let ended = interrupts.clone();
    let shutdown = async move {
        ended.wait().await;
    };
    let ready = |address: SocketAddr| {
        output::note(&format!(
            "agentbox: listening on http://{address}/mcp; end with Ctrl-C\nagentbox: {about}"
        ));
    };
    serve_http(connect, settings, server.settings, ready, shutdown).await
}

/// Returns the server that listens, if HTTP was asked for.
fn http(app: &mut App, args: Args) -> Result<Option<HttpServer>, Failure> {
    let config = app.config.mcp.clone();
    let Some(address) = args.http.or(config.http) else {
        let is_for_http = args.token_file.is_some()
            || args.no_token
            || !args.origins.is_empty()
            || args.workspaces.is_some();
        if is_for_http {
            return Err(Failure::usage(
                "--token-file, --no-token, --origin and --workspaces are for HTTP; give --http \
                 ADDRESS as well",
            ));
        }
        return Ok(None);
    };
    let workspaces = args.workspaces.or(config.workspaces.clone());
    let source = TokenSource::new(&config, args.token_file, args.no_token)?;
    let (mut settings, about) = match source {
        TokenSource::None if !address.ip().is_loopback() => {
            return Err(usage!(
                "{address} can be reached from other machines, which need a token; leave out \
                 --no-token, or listen on 127.0.0.1"
            ));
        }
        TokenSource::None => (
            HttpSettings::without_token(address),
            "there is no token: every user and program of this machine may connect".to_owned(),
        ),
        TokenSource::File(file) => {
            let mut settings = HttpSettings::without_token(address);
            let (tokens, about) = stored_tokens(app, &file, workspaces.as_deref())?;
            settings.tokens = tokens;
            (settings, about)
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
    set_limits(&mut settings, &config)?;
    settings.origins = if args.origins.is_empty() {
        config.origins
    } else {
        args.origins
    };
    Ok(Some(HttpServer {
        settings,
        about,
        workspaces,
    }))
}

/// Takes over how many clients and sessions there may be, and when they end as idle.
fn set_limits(settings: &mut HttpSettings, config: &Mcp) -> Result<(), Failure> {
    if let Some(seconds) = config.idle_timeout {
        if !(1..=MAX_IDLE).contains(&seconds) {
            return Err(usage!(
                "mcp.idle_timeout cannot be {seconds}; give 1 to {MAX_IDLE} seconds"
            ));
        }
        settings.idle = Duration::from_secs(seconds);
    }
    if let Some(number) = config.max_sessions {
        if number == 0 {
            return Err(Failure::usage(
                "with mcp.max_sessions = 0 no client could connect; give at least 1",
            ));
        }
        settings.sessions = number;
    }
    Ok(())
}

/// Returns the tokens of a file and a message about them.
fn stored_tokens(
    app: &mut App,
    file: &Path,
    workspaces: Option<&Path>,
) -> Result<(Vec<Token>, String), Failure> {
    let workspaces = workspaces.and_then(|directory| directory.canonicalize().ok());
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let parent = whole.parent().and_then(|parent| parent.canonicalize().ok());
    let mut shown = app.spec.host_root().into_iter().chain(workspaces);
    // The file is not even created there.
    if parent.is_some_and(|parent| shown.any(|root| parent.starts_with(root))) {
        return Err(token::readable(file));
    }
    let (tokens, is_new) = token::from_file(file)?;
    app.token_file = Some(file.to_path_buf());
    let made = match tokens.len() {
        1 if is_new => "a new token is".to_owned(),
        1 => "the token is".to_owned(),
        number => format!("{number} tokens are"),
    };
    Ok((tokens, format!("{made} in {}", file.display())))
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
