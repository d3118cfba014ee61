//! `agentbox mcp-config CLIENT`: prints the configuration for a client.

mod client;
mod variables;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backend_core::Enforcement;
use clap::ValueEnum as _;
use console_tools::Options;
use serde::Serialize;

use self::client::{Client, Connection, Program};
use crate::app::App;
use crate::backend::{self, session_engine};
use crate::config::config_directory;
use crate::config::layers::ForwardedVariable;
use crate::exit::{self, Failure, usage};
use crate::files::{from_here, resolve_parent_dirs};
use crate::output;
use crate::system;
use crate::terminal::safe;
use crate::token::{self, TokenSource};

/// Options of `mcp-config`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The client.
    #[arg(value_enum)]
    client: Client,
    /// For a server that listens, as `agentbox mcp --http` does: its address, such as
    /// 127.0.0.1:8000, or its URL.
    #[arg(long, value_name = "ADDRESS|URL")]
    http: Option<String>,
    /// The file with that server's tokens. The snippet holds none of them: it says where
    /// the client finds its own.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// That server has no token.
    #[arg(long, conflicts_with = "token_file")]
    no_token: bool,
    /// The directory in which that server's clients have their files, for the line that
    /// starts it.
    #[arg(long, value_name = "DIR")]
    workspaces: Option<PathBuf>,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Failure> {
    // A configured server would listen even if a client starts it.
    let configured = || app.config.mcp.http.map(|address| address.to_string());
    let listening = args.http.clone().or_else(configured);
    let mut notes = vec![args.client.location_note().to_owned()];
    let connection = match listening {
        Some(listening) => http(app, args, &listening, &mut notes)?,
        None if args.token_file.is_some() || args.no_token || args.workspaces.is_some() => {
            return Err(Failure::usage(
                "only a server that listens has a token or workspaces; give its address with \
                 --http",
            ));
        }
        None => stdio(app, &mut notes)?,
    };
    if connection
        .texts()
        .iter()
        .any(|text| text.contains(is_unprintable))
    {
        return Err(Failure::usage(
            "a path, address or setting holds a control character, which clients read in \
             different ways; give another",
        ));
    }
    let client = args.client.to_possible_value();
    let name = client.as_ref().map_or("", |client| client.get_name());
    let mut texts = connection.texts().into_iter();
    if let Some((text, form)) =
        texts.find_map(|text| Some((text, args.client.expands(text, &connection)?)))
    {
        return Err(usage!(
            "{name} replaces {form} in its configuration, and {text:?} holds it; give another, \
             such as a link with another name"
        ));
    }
    let snippet = args.client.snippet(&connection).ok_or_else(|| {
        usage!("the configuration of {name} names programs only; leave out --http and mcp.http")
    })?;
    if app.can_ask() {
        notes.extend(approval_note(args.client, name));
    }
    for note in notes {
        output::note(&note);
    }
    output::print(&snippet)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the note about approvals, or `None` for a client that is known to ask its
/// user.
fn approval_note(client: Client, name: &str) -> Option<String> {
    match client {
        Client::ClaudeCode
        | Client::ClaudeMcpAdd
        | Client::Codex
        | Client::Cursor
        | Client::Goose
        | Client::Opencode
        | Client::Vscode => None,
        Client::PydanticAi | Client::Python => Some(
            "# some calls need approval: without a handler for elicitation in your program they \
             are refused"
                .to_owned(),
        ),
        _ => Some(format!(
            "# some calls need approval, and {name} is not known to ask its user (MCP elicitation); \
             they are refused then: allow more, or use another client"
        )),
    }
}

/// Returns `true` for a character that could get lost, or change what the user sees.
fn is_unprintable(c: char) -> bool {
    c.is_control() || safe::is_unseen(c)
}

/// Returns this program's path as it was called, which stays valid when a link's target
/// is replaced. Otherwise returns the file itself.
fn program() -> Result<PathBuf, Failure> {
    let file = std::env::current_exe().map_err(|error| {
        exit::environment!("this program's path is not known: {error}; start it by its path")
    })?;
    let is_this = |path: &PathBuf| path.is_absolute() && same_file(path, &file);
    let called = std::env::args_os().next().map(PathBuf::from);
    let found = called.and_then(|called| match called.parent() {
        Some(parent) if parent.as_os_str().is_empty() => {
            let path = system::variable("PATH").unwrap_or_default();
            std::env::split_paths(&path)
                .map(|directory| directory.join(&called))
                .find(is_this)
        }
        _ => {
            let path = from_here(&called.to_string_lossy());
            Some(resolve_parent_dirs(Path::new(&path))).filter(is_this)
        }
    });
    Ok(found.unwrap_or(file))
}

fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Describes a server that the client starts.
fn stdio(app: &App, notes: &mut Vec<String>) -> Result<Connection, Failure> {
    let path = program()?.into_os_string().into_string().map_err(|_| {
        Failure::environment("this program's path is not valid UTF-8; put it elsewhere")
    })?;
    // A snippet whose directory is missing would not work.
    app.spec.directory()?;
    backend::check(&app.spec)?;
    Ok(Connection::Stdio(Program {
        path,
        arguments: arguments(app, app.spec.text())?,
        environment: environment(app, notes),
    }))
}

/// Returns the arguments that start the same server from any directory.
fn arguments(app: &App, backend: String) -> Result<Vec<String>, Failure> {
    let mut arguments = vec!["mcp".to_owned(), "--backend".to_owned(), backend];
    if let Some(rules) = app.rules.as_ref().and_then(|rules| rules.name()) {
        arguments.extend(["--permissions".to_owned(), rules]);
    }
    if let Some(level) = app.config.require_enforcement {
        let level = Enforcement::from(level).to_string();
        arguments.extend(["--require-enforcement".to_owned(), level]);
    }
    for directory in app.spec.allowed_directories() {
        // `..` would only be a riddle in the settings of a client.
        let canonical = Path::new(&directory).canonicalize().ok();
        let canonical = canonical.and_then(|path| path.to_str().map(str::to_owned));
        arguments.extend(["--allow-dir".to_owned(), canonical.unwrap_or(directory)]);
    }
    // Defaults are left out, unless the config file sets something else.
    let (ours, usual) = (&app.config.options, Options::default());
    let (format, profile) = &app.config.set_by_file;
    if ours.edit_format != usual.edit_format || ours.edit_format != *format {
        arguments.extend(["--edit-format".to_owned(), option_value(&ours.edit_format)]);
    }
    if ours.profile != usual.profile || ours.profile != *profile {
        arguments.extend(["--profile".to_owned(), option_value(&ours.profile)]);
    }
    if let Some(log) = &app.config.log {
        arguments.extend(["--log".to_owned(), log.clone()]);
    }
    if let Some(file) = &app.config.file {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        let file = resolve_parent_dirs(&file);
        let file = file.to_str().ok_or_else(|| {
            Failure::usage("the config file's path is not valid UTF-8; put it elsewhere")
        })?;
        arguments.extend(["--config".to_owned(), file.to_owned()]);
    }
    Ok(arguments)
}

/// Returns the variables that the same server needs. Clients pass on few of their own
/// variables, and may have different ones.
fn environment(app: &App, notes: &mut Vec<String>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let named = app.rules.as_ref().and_then(|rules| rules.name()).is_some();
    for ForwardedVariable { name, key, value } in &app.config.forwarded {
        // Those rules are on the command line.
        if named && key == "permissions" {
            continue;
        }
        if is_secret(key) || has_password(value) {
            notes.push(left_out_note(name));
        } else {
            all.insert(name.clone(), value.clone());
        }
    }
    for (name, value) in variables::set_for(&app.spec) {
        match value.filter(|value| !has_password(value)) {
            Some(value) => {
                all.insert(name.to_owned(), value);
            }
            None => notes.push(left_out_note(name)),
        }
    }
    all
}

/// Returns `true` if a setting may hold secrets, which should not be written into a
/// client's file.
fn is_secret(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or(key);
    let words = ["env", "labels", "overlay", "password", "secret", "token"];
    words.iter().any(|word| last.ends_with(word))
}

/// Returns `true` if an address holds a password, as in `tcp://name:word@host`.
fn has_password(address: &str) -> bool {
    let after = address.split_once("://").map(|(_, after)| after);
    let authority = after.and_then(|after| after.split('/').next());
    let user = authority.and_then(|authority| authority.rsplit_once('@'));
    // A name alone may be a token, but not for ssh, where it is a user.
    let is_ssh = address.starts_with("ssh://");
    user.is_some_and(|(user, _)| user.contains(':') || !is_ssh)
}

fn left_out_note(name: &str) -> String {
    let fix = match name {
        "DAYTONA_API_KEY" => {
            "set it in the client, or api_key_file in [daytona] of the config file"
        }
        "DAYTONA_JWT_TOKEN" => "set it in the client",
        _ => "set it in the config file or the client",
    };
    format!("# {name} may hold secrets and is left out; {fix}")
}

/// Returns a choice's name on the command line.
fn option_value(choice: &impl Serialize) -> String {
    let word = serde_json::to_value(choice).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// Describes a server that listens.
fn http(
    app: &App,
    args: &Args,
    listening: &str,
    notes: &mut Vec<String>,
) -> Result<Connection, Failure> {
    let token = TokenSource::new(&app.config.mcp, args.token_file.clone(), args.no_token)?;
    let file = match &token {
        TokenSource::None => None,
        TokenSource::File(file) => {
            let file = from_here(&file.to_string_lossy());
            Some(resolve_parent_dirs(Path::new(&file)))
        }
        // A token that changes at every start would have to be given to the client each
        // time.
        TokenSource::Random => config_directory().map(|directory| directory.join("token")),
    };
    let has_names = file.as_deref().is_some_and(token::has_names);
    let url = match listening.split_once("://") {
        Some(("http" | "https", _)) => {
            if has_password(listening) {
                return Err(Failure::usage(
                    "the URL holds a password, which clients would store; leave it out",
                ));
            }
            with_path(listening, notes)
        }
        Some(_) => return Err(invalid_address(listening)),
        None => {
            let address: SocketAddr = listening.parse().map_err(|_| invalid_address(listening))?;
            let workspaces = args.workspaces.as_ref();
            let workspaces = workspaces.or(app.config.mcp.workspaces.as_ref());
            let workspaces = workspaces.map(PathBuf::as_path);
            // A line that does not work is not printed.
            if has_names || workspaces.is_some() {
                session_engine::check(&app.spec, workspaces)?;
            } else {
                backend::check(&app.spec)?;
            }
            let line = serve(app, address, file.as_deref(), workspaces, notes)?;
            notes.push(format!("# serve it with: {line}"));
            let reachable = SocketAddr::new(client_address(address.ip()), address.port());
            format!("http://{reachable}/mcp")
        }
    };
    let token = !matches!(token, TokenSource::None);
    if token {
        // The token file of a server elsewhere is not on this machine.
        let file = file.filter(|_| args.token_file.is_some() || !listening.contains("://"));
        let has_names = has_names && file.is_some();
        notes.push(args.client.token_note(file.as_deref(), has_names));
    }
    Ok(Connection::Http { url, token })
}

/// Adds the path of this program's endpoint to a URL without a path.
fn with_path(url: &str, notes: &mut Vec<String>) -> String {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    let host = host.trim_end_matches('/');
    if host.contains(['/', '?', '#']) {
        return url.to_owned();
    }
    notes.push("# the URL had no path; /mcp is where agentbox serves".to_owned());
    format!("{}/mcp", url.trim_end_matches('/'))
}

fn invalid_address(given: &str) -> Failure {
    usage!(
        "{given:?} is neither a valid address nor a valid URL; write 127.0.0.1:8000 or https://HOST/mcp"
    )
}

/// Returns the address that a client on the same machine connects to.
fn client_address(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// Returns the command line that starts the server.
fn serve(
    app: &App,
    address: SocketAddr,
    token: Option<&Path>,
    workspaces: Option<&Path>,
    notes: &mut Vec<String>,
) -> Result<String, Failure> {
    let mut words = vec!["agentbox".to_owned()];
    // Each session has a directory of its own, and the default is one for all.
    let is_own = app.spec.implied && workspaces.is_some();
    let backend = Some("local".to_owned()).filter(|_| is_own);
    words.extend(arguments(app, backend.unwrap_or_else(|| app.spec.text()))?);
    words.extend(["--http".to_owned(), address.to_string()]);
    match token {
        Some(file) => words.extend(["--token-file".to_owned(), file.display().to_string()]),
        None if address.ip().is_loopback() => words.push("--no-token".to_owned()),
        None => {
            return Err(usage!(
                "{address} can be reached from other machines, which need a token; leave out \
                 --no-token, or listen on 127.0.0.1"
            ));
        }
    }
    if let Some(directory) = workspaces {
        let directory = from_here(&directory.to_string_lossy());
        words.extend(["--workspaces".to_owned(), directory]);
    }
    for origin in &app.config.mcp.origins {
        words.extend(["--origin".to_owned(), origin.clone()]);
    }
    let variables = environment(app, notes);
    let texts = words.iter().chain(variables.values());
    // It would end the comment that the line is printed in.
    if texts.into_iter().any(|text| text.contains(is_unprintable)) {
        return Err(Failure::usage(
            "a path or a setting holds a control character; give another",
        ));
    }
    let nul = |_| Failure::usage("a path or a setting holds a NUL; give another");
    let mut line = String::new();
    for (name, value) in variables {
        let value = shlex::try_quote(&value).map_err(nul)?;
        line.push_str(&format!("{name}={value} "));
    }
    let command = shlex::try_join(words.iter().map(String::as_str));
    Ok(line + &command.map_err(nul)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known() {
        for secret in ["docker.env", "k8s.env", "x.api_token", "x.password"] {
            assert!(is_secret(secret), "{secret}");
        }
        for key in [
            "mcp.token_file",
            "docker.volumes",
            "options.limits.read_lines",
        ] {
            assert!(!is_secret(key), "{key}");
        }
        assert!(has_password("tcp://me:word@host:2376"));
        for fine in [
            "unix:///run/a:b@c.sock",
            "ssh://me@host",
            "tcp://host:2376",
            "/a:b@c",
        ] {
            assert!(!has_password(fine), "{fine}");
        }
    }
}
