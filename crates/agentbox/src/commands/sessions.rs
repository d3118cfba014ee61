//! `agentbox sessions`: the sessions of a server's clients.

#[cfg(local)]
mod files;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Subcommand;
use serde::Serialize;
use sessions::{Engine, Record, RecordState, SessionId, Usage};

use crate::app::App;
use crate::backend::kind::Kind;
use crate::backend::session_engine;
use crate::exit::{self, Failure, environment, usage};
use crate::output;
use crate::owner::{self, UNNAMED};
use crate::signals::Interrupts;

/// Time allowed for another program to end a session that it uses.
const RELEASE_TIME: Duration = Duration::from_secs(30);

/// Interval at which it is looked whether it has.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum width of a column. A longer text moves what follows it.
const COLUMN: usize = 64;

/// Options of `sessions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory in which the sessions have their files, as it was given to mcp.
    #[arg(long, global = true, value_name = "DIR")]
    workspaces: Option<PathBuf>,
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the sessions, also those that do not run.
    List {
        /// Prints them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Shows a session and what it uses.
    Show {
        /// The session.
        #[arg(value_parser = session_id)]
        id: SessionId,
        /// Prints it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ends a session, also one in use. Its files are kept.
    Release {
        /// The session.
        #[arg(value_parser = session_id)]
        id: SessionId,
    },
    /// Ends a session and deletes its files.
    Purge {
        /// The session.
        #[arg(value_parser = session_id)]
        id: SessionId,
        /// Deletes the files, which cannot be undone.
        #[arg(long)]
        yes: bool,
    },
    /// Gives a session that does not run to the clients of another token.
    Chown {
        /// The session.
        #[arg(value_parser = session_id)]
        id: SessionId,
        /// The name of their token; mcp for those whose token has no name.
        #[arg(value_parser = owner_name)]
        owner: String,
    },
    /// Shows the stored files of a session as a tree, or one of them, without starting it.
    #[cfg(local)]
    Files(files::Args),
}

fn session_id(text: &str) -> Result<SessionId, String> {
    SessionId::new(text).map_err(|error| error.to_string())
}

fn owner_name(text: &str) -> Result<String, String> {
    if owner::is_name(text) {
        return Ok(text.to_owned());
    }
    Err("not the name of a token; write it as in the token file".to_owned())
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let given = args.workspaces.or(app.config.mcp.workspaces.clone());
    let root = given.as_deref().map(existing).transpose()?;
    let work = act(app, root.as_deref(), args.command);
    interrupts.unless(work).await??;
    Ok(ExitCode::SUCCESS)
}

/// Returns the directory with links resolved. It is not created: there would be no session
/// in it.
fn existing(directory: &Path) -> Result<PathBuf, Failure> {
    let found = directory.canonicalize();
    found.ok().filter(|found| found.is_dir()).ok_or_else(|| {
        environment!(
            "there is no directory {}; name the one that was given to mcp with --workspaces",
            directory.display()
        )
    })
}

async fn act(app: &App, root: Option<&Path>, action: Action) -> Result<(), Failure> {
    let engine = || session_engine::engine(&app.spec, root);
    match action {
        Action::List { json } => {
            // Those of pods and hosted sandboxes are never in a directory of this machine.
            let is_remote = matches!(app.spec.kind, Kind::Daytona | Kind::K8s);
            let has_more = root.is_none() && !is_remote;
            list(&*engine().await?, has_more, json).await
        }
        Action::Show { id, json } => show(&*engine().await?, &id, json).await,
        Action::Release { id } => release(&*engine().await?, &id).await,
        Action::Purge { id, yes: false } => Err(usage!(
            "the files of {id} would be deleted; give --yes for that"
        )),
        Action::Purge { id, yes: true } => purge(&*engine().await?, &id).await,
        Action::Chown { id, owner } => chown(&*engine().await?, &id, &owner).await,
        #[cfg(local)]
        Action::Files(args) => files::run(root, args).await,
    }
}

/// Lists the sessions. `has_more` tells that there may be others, of servers with a
/// directory.
async fn list(engine: &dyn Engine, has_more: bool, json: bool) -> Result<(), Failure> {
    let records = engine.list().await?;
    if json {
        return output::print_json(&records);
    }
    if records.is_empty() {
        return output::print(no_sessions(has_more));
    }
    output::print_foreign(&table(&records, SystemTime::now()))
}

/// Formats sessions in columns with a heading.
fn table(records: &[Record], now: SystemTime) -> String {
    let heading = ["SESSION", "STATE", "OWNER", "USED"].map(str::to_owned);
    let row = |record: &Record| {
        // Commands as root could have written it: it must not look like another line.
        let owner = record.tenant.as_deref().unwrap_or("-").escape_debug();
        let used = format!("{} ago", age(record.last_activity, now));
        let (id, state) = (record.id.to_string(), state(record).to_owned());
        [id, state, owner.to_string(), used]
    };
    let rows: Vec<_> = std::iter::once(heading)
        .chain(records.iter().map(row))
        .collect();
    let [id, state, owner, _] = std::array::from_fn(|column| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default().min(COLUMN)
    });
    let line = |[a, b, c, d]: &[String; 4]| format!("{a:id$}  {b:state$}  {c:owner$}  {d}\n");
    rows.iter().map(line).collect()
}

/// Returns the text for an empty list. Containers of servers with a directory are not among
/// those of servers without one.
fn no_sessions(has_more: bool) -> &'static str {
    if has_more {
        "There are no sessions. Those of a server with --workspaces DIR are found with \
         --workspaces DIR.\n"
    } else {
        "There are no sessions.\n"
    }
}

/// A session and what it uses, as JSON.
#[derive(Serialize)]
struct Shown<'r> {
    #[serde(flatten)]
    record: &'r Record,
    usage: Option<Usage>,
}

async fn show(engine: &dyn Engine, id: &SessionId, json: bool) -> Result<(), Failure> {
    let record = engine.record(id).await?.ok_or_else(|| missing(id))?;
    let usage = engine.usage(id).await?;
    if json {
        let record = &record;
        return output::print_json(&Shown { record, usage });
    }
    let now = SystemTime::now();
    let mut text = String::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(text, "{name:10}{value}");
        }
    };
    let usage = usage.unwrap_or_default();
    add("session", Some(record.id.to_string()));
    add("state", Some(state(&record).to_owned()));
    let line = |text: &str| text.escape_debug().to_string();
    add("owner", record.tenant.as_deref().map(line));
    add("runtime", record.runtime.as_deref().map(line));
    add("created", Some(format!("{} ago", age(record.created, now))));
    let used = format!("{} ago", age(record.last_activity, now));
    add("used", Some(used));
    add(
        "files",
        usage.stored_bytes.map(|bytes| format!("{bytes} bytes")),
    );
    add(
        "memory",
        usage.memory_bytes.map(|bytes| format!("{bytes} bytes")),
    );
    add(
        "processor",
        usage.cpu.map(|cores| format!("{cores:.2} cores")),
    );
    output::print_foreign(&text)
}

async fn release(engine: &dyn Engine, id: &SessionId) -> Result<(), Failure> {
    let record = engine.record(id).await?.ok_or_else(|| missing(id))?;
    if !engine.stop(id).await? {
        if !engine.request_release(id).await? {
            return output::print(&format!("{id} does not run."));
        }
        let ended = wait_ended(engine, &record);
        let ended = tokio::time::timeout(RELEASE_TIME, ended).await;
        ended.unwrap_or_else(|_| {
            Err(environment!(
                "{id} is used by another program, which has not ended it within {} seconds; end \
                 that program",
                RELEASE_TIME.as_secs()
            ))
        })?;
    }
    output::print(&format!("{id} has ended."))
}

/// Waits until a session that another program uses has ended, or was opened again.
async fn wait_ended(engine: &dyn Engine, before: &Record) -> Result<(), Failure> {
    let is_same =
        |record: &Record| record.state == RecordState::Running && record.created == before.created;
    while engine
        .record(&before.id)
        .await?
        .as_ref()
        .is_some_and(is_same)
    {
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}

async fn chown(engine: &dyn Engine, id: &SessionId, owner: &str) -> Result<(), Failure> {
    if owner != UNNAMED && !owner::may_have(owner, id) {
        return Err(usage!(
            "clients named {owner} have the session {owner} and those that begin with '{owner}.', \
             so they could not use {id}; name another"
        ));
    }
    if !engine.set_tenant(id, owner).await? {
        return Err(missing(id));
    }
    output::print(&format!("{id} belongs to {owner}."))
}

async fn purge(engine: &dyn Engine, id: &SessionId) -> Result<(), Failure> {
    if !engine.purge(id).await? {
        return Err(missing(id));
    }
    output::print(&format!("{id} and its files are gone."))
}

fn missing(id: &SessionId) -> Failure {
    let text = format!("there is no session {id}; agentbox sessions list names those there are");
    Failure::new(exit::FIXABLE, text)
}

fn state(record: &Record) -> &'static str {
    match record.state {
        RecordState::Running => "running",
        RecordState::Stopped => "stopped",
        RecordState::Stored => "stored",
        _ => "unknown",
    }
}

/// Formats the time since `then` in its largest unit.
fn age(then: SystemTime, now: SystemTime) -> String {
    let age = now.duration_since(then).unwrap_or(Duration::ZERO).as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let fitting = units.into_iter().find(|(seconds, _)| age >= *seconds);
    let (seconds, unit) = fitting.unwrap_or((1, "s"));
    format!("{} {unit}", age / seconds)
}

#[cfg(test)]
mod tests {
    use sessions::OpenRequest;

    use super::*;

    #[test]
    fn an_empty_list_says_where_other_sessions_may_be() {
        assert_eq!(no_sessions(false), "There are no sessions.\n");
        let text = no_sessions(true);
        assert!(text.contains("--workspaces DIR"), "{text}");
    }

    #[test]
    fn a_list_has_a_heading_and_columns() {
        let now = SystemTime::now();
        let record = |id: &str, owner: Option<&str>| {
            let mut request = OpenRequest::new(SessionId::new(id).unwrap());
            request.tenant = owner.map(Into::into);
            Record::new(&request, now)
        };
        let records = [
            record("alice.website", Some("alice")),
            record("bob", Some("b\nö")).with_state(RecordState::Stored),
            record("mcp", None),
        ];
        let expected = "\
            SESSION        STATE    OWNER  USED\n\
            alice.website  running  alice  0 s ago\n\
            bob            stored   b\\nö   0 s ago\n\
            mcp            running  -      0 s ago\n";
        assert_eq!(table(&records, now), expected);
    }

    #[test]
    fn ages_have_one_unit() {
        let now = SystemTime::now();
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (7_199, "1 h"),
            (200_000, "2 d"),
        ] {
            assert_eq!(age(now - Duration::from_secs(seconds), now), text);
        }
        assert_eq!(age(now + Duration::from_secs(9), now), "0 s");
    }
}
