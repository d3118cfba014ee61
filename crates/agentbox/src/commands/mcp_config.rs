//! `agentbox mcp-config CLIENT`: what a client's configuration needs.

mod client;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum as _;
use console_tools::Options;
use serde::Serialize;

use self::client::{Client, Way};
use crate::app::App;
use crate::config::{Carried, place};
use crate::exit::Failure;
use crate::output;

/// The variable in which a client finds the token of a server that listens. It is
/// for clients only: this program takes no variable that is none of its settings.
const TOKEN: &str = "MCP_AGENTBOX_TOKEN";

/// Variables besides our own that say where containers are and what goes into
/// them, and whether they name a place of this machine.
const CONTAINERS: &[(&str, bool)] = &[
    ("DOCKER_HOST", false),
    ("DOCKER_CONFIG", true),
    ("SANDBOX_AGENT", true),
];

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
    /// The file with that server's token. It is not read: the snippet says where the
    /// client finds the token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Failure> {
    let listening = match (&args.http, app.config.mcp.http) {
        (Some(place), _) => Some(place.clone()),
        // The server would listen, also if a client starts it.
        (None, Some(address)) => Some(address.to_string()),
        (None, None) => None,
    };
    let mut notes = vec![args.client.where_to().to_owned()];
    let way = match listening {
        Some(listening) => reach(app, args, &listening, &mut notes)?,
        None if args.token_file.is_some() => {
            return Err(Failure::usage(
                "only a server that listens has a token; give its address with --http",
            ));
        }
        None => start(app, &mut notes)?,
    };
    if way.texts().iter().any(|text| text.contains(is_unprintable)) {
        return Err(Failure::usage(
            "a path, address or setting holds a control character, which clients read in \
             different ways; give another",
        ));
    }
    let snippet = args.client.snippet(&way).ok_or_else(|| {
        let client = args.client.to_possible_value();
        let name = client.as_ref().map_or("", |client| client.get_name());
        Failure::usage(format!(
            "the configuration of {name} names programs only; leave out --http and mcp.http"
        ))
    })?;
    for note in notes {
        output::note(&note);
    }
    output::print(&snippet)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a character could be lost, or change what a person sees.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A server that the client starts.
fn start(app: &App, notes: &mut Vec<String>) -> Result<Way, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::environment(format!(
            "this program's place is not known: {error}; start it by its path"
        ))
    })?;
    let program = program
        .to_str()
        .ok_or_else(|| Failure::environment("this program's path is no UTF-8; put it elsewhere"))?;
    // A snippet whose directory is missing would not work.
    app.wanted.directory()?;
    Ok(Way::Start {
        program: program.to_owned(),
        arguments: arguments(app)?,
        environment: environment(app, std::env::vars_os(), notes)?,
    })
}

/// What starts the same server from anywhere.
fn arguments(app: &App) -> Result<Vec<String>, Failure> {
    let mut arguments = vec!["mcp".to_owned(), "--backend".to_owned(), app.wanted.spec()];
    if let Some(rules) = app.rules.as_ref().and_then(|rules| rules.name()) {
        arguments.extend(["--permissions".to_owned(), rules]);
    }
    for directory in app.wanted.allowed_directories() {
        arguments.extend(["--allow-dir".to_owned(), directory]);
    }
    // Defaults are left out, unless the config file says otherwise.
    let (ours, usual) = (&app.config.options, Options::default());
    let (format, profile) = &app.config.of_file;
    if ours.edit_format != usual.edit_format || ours.edit_format != *format {
        arguments.extend(["--edit-format".to_owned(), word(&ours.edit_format)]);
    }
    if ours.profile != usual.profile || ours.profile != *profile {
        arguments.extend(["--profile".to_owned(), word(&ours.profile)]);
    }
    if let Some(log) = &app.config.log {
        arguments.extend(["--log".to_owned(), log.clone()]);
    }
    if let Some(file) = &app.config.file {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        let file = file.to_str().ok_or_else(|| {
            Failure::usage("the config file's path is no UTF-8; put it elsewhere")
        })?;
        arguments.extend(["--config".to_owned(), file.to_owned()]);
    }
    Ok(arguments)
}

/// The variables that the same server needs. Clients pass on few of their own, and
/// may have others.
fn environment(
    app: &App,
    variables: impl Iterator<Item = (OsString, OsString)>,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut all = BTreeMap::new();
    let named = app.rules.as_ref().and_then(|rules| rules.name()).is_some();
    for Carried { name, key, value } in &app.config.carried {
        // They are on the command line.
        if named && key == "permissions" {
            continue;
        }
        match is_secret(key) || has_password(value) {
            true => notes.push(left_out(name)),
            false => drop(all.insert(name.clone(), value.clone())),
        }
    }
    if !app.wanted.has_containers() {
        return Ok(all);
    }
    let here = std::env::current_dir().unwrap_or_default();
    for (name, value) in variables {
        let known = CONTAINERS.iter().find(|(known, _)| name == *known);
        let (Some((name, is_place)), Some(value)) = (known, value.to_str()) else {
            continue;
        };
        if value.is_empty() {
            continue;
        }
        if has_password(value) {
            notes.push(left_out(name));
            continue;
        }
        let value = match is_place {
            true => place(value, &here).to_string_lossy().into_owned(),
            false => value.to_owned(),
        };
        all.insert((*name).to_owned(), value);
    }
    Ok(all)
}

/// Whether a setting may hold what should not be written into a client's file.
fn is_secret(key: &str) -> bool {
    let last = key.rsplit('.').next().unwrap_or(key);
    let secret = ["token", "secret", "password"];
    key == "docker.env" || key == "docker.labels" || secret.iter().any(|word| last.ends_with(word))
}

/// Whether an address holds a password, as in `tcp://name:word@host`.
fn has_password(address: &str) -> bool {
    let after = address.split_once("://").map(|(_, after)| after);
    let authority = after.and_then(|after| after.split('/').next());
    let user = authority.and_then(|authority| authority.rsplit_once('@'));
    // Where a name alone is given, it may be a token; not for ssh, where it is a user.
    let is_ssh = address.starts_with("ssh://");
    user.is_some_and(|(user, _)| user.contains(':') || !is_ssh)
}

fn left_out(name: &str) -> String {
    format!("# {name} may hold secrets and is left out; set it in the config file or the client")
}

/// What a choice is called on the command line.
fn word(choice: &impl Serialize) -> String {
    let word = serde_json::to_value(choice).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

/// A server that listens.
fn reach(app: &App, args: &Args, listening: &str, notes: &mut Vec<String>) -> Result<Way, Failure> {
    let token = args
        .token_file
        .as_ref()
        .or(app.config.mcp.token_file.as_ref());
    let (url, loopback) = match listening.split_once("://") {
        Some(("http" | "https", rest)) => {
            if has_password(listening) {
                return Err(Failure::usage(
                    "the URL holds a password, which clients would store; leave it out",
                ));
            }
            (listening.to_owned(), is_loopback(rest))
        }
        Some(_) => return Err(no_address(listening)),
        None => {
            let address: SocketAddr = listening.parse().map_err(|_| no_address(listening))?;
            notes.push(format!("# serve it with: {}", serve(app, address, token)?));
            let reachable = SocketAddr::new(connectable(address.ip()), address.port());
            (
                format!("http://{reachable}/mcp"),
                address.ip().is_loopback(),
            )
        }
    };
    let token = token.is_some() || !loopback;
    if token {
        notes.push(args.client.about_token());
    }
    Ok(Way::Reach { url, token })
}

fn no_address(given: &str) -> Failure {
    Failure::usage(format!(
        "{given:?} is no address and no URL; write 127.0.0.1:8000 or https://HOST/mcp"
    ))
}

/// Where a client of the same machine connects to.
fn connectable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        other => other,
    }
}

/// Whether a URL, from its host on, leads to this machine.
fn is_loopback(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The line that starts the server.
fn serve(app: &App, address: SocketAddr, token: Option<&PathBuf>) -> Result<String, Failure> {
    let mut words = vec!["agentbox".to_owned()];
    words.extend(arguments(app)?);
    words.extend(["--http".to_owned(), address.to_string()]);
    let file = match token {
        Some(file) => {
            let here = std::env::current_dir().unwrap_or_default();
            Some(place(&file.to_string_lossy(), &here).display().to_string())
        }
        None if address.ip().is_loopback() => None,
        None => Some("FILE".to_owned()),
    };
    words.extend(
        file.into_iter()
            .flat_map(|file| ["--token-file".to_owned(), file]),
    );
    // It would end the comment that the line is printed in.
    if words.iter().any(|word| word.contains(is_unprintable)) {
        return Err(Failure::usage(
            "a path holds a control character; give another",
        ));
    }
    let line = shlex::try_join(words.iter().map(String::as_str));
    line.map_err(|_| Failure::usage("a path holds a NUL; give another"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known() {
        for secret in ["docker.env", "x.token", "x.api_token", "x.password"] {
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

    #[test]
    fn what_leads_to_this_machine_needs_no_token() {
        for here in [
            "127.0.0.1:80/mcp",
            "localhost",
            "[::1]:8000/mcp",
            "127.3.2.1?x",
        ] {
            assert!(is_loopback(here), "{here}");
        }
        for away in [
            "example.org/mcp",
            "10.0.0.1",
            "localhost.example.org",
            "[fe80::1]",
            "",
        ] {
            assert!(!is_loopback(away), "{away}");
        }
    }
}
