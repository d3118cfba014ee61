//! Twenty users of one program: each has a sandbox, and finds the files again after the
//! program was restarted.
//!
//! Run it with `cargo run --example many_users`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command as Process;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::Command;
use backend_core::{BackendExt as _, Sandbox as _};
use backend_local::{Commands, Confinement, Landlock};
use futures::{StreamExt as _, TryStreamExt as _};
use sessions::{LocalEngine, REAPER_INTERVAL, SessionManager, StoredSessions, TreeOptions};

const USERS: usize = 20;

/// Users who are there at once.
const AT_ONCE: usize = 4;

/// Sandboxes that run at once. The others sleep until their user's next call.
const RUNNING: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    // Must come first: this program is also the supervisor of its commands.
    backend_local::supervisor::run_if_asked();
    let runtime = tokio::runtime::Runtime::new()?;
    match std::env::args_os().nth(1) {
        Some(root) => runtime.block_on(serve(root)),
        None => {
            let root = tempfile::tempdir()?;
            for start in ["first", "second"] {
                println!("# The {start} start of the program");
                run(root.path())?;
            }
            runtime.block_on(look(root.path()))
        }
    }
}

/// Runs this program as the service, in a process of its own.
fn run(root: &Path) -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let status = Process::new(program).arg(root).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the service ended with {status}").into())
    }
}

/// The service: all users come, and then it is shut down.
async fn serve(root: OsString) -> Result<(), Box<dyn Error>> {
    // Without this, a command reaches the files of all users.
    let commands = Commands::new().confinement(Confinement::Landlock(Landlock::new()));
    let engine = LocalEngine::builder(root)
        .commands(commands)
        .session_quota(100 * 1024 * 1024)
        .open()?;
    let manager = SessionManager::builder()
        .engine(Arc::new(engine))
        .max_sessions(RUNNING)
        .build()?;
    manager.start_reaper(REAPER_INTERVAL);

    let visits = (1..=USERS).map(|number| visit(&manager, format!("user-{number:02}")));
    let visits: Vec<usize> = futures::stream::iter(visits)
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    let times = visits.iter().max().copied().unwrap_or_default();
    assert!(visits.iter().all(|visits| *visits == times));
    println!(
        "{} users came, each of them {times} times by now",
        visits.len()
    );

    let counters = manager.counters();
    println!(
        "{} sessions opened, {} put to sleep",
        counters.opened, counters.hibernated
    );
    let shutdown = manager.shutdown(Duration::from_secs(60)).await;
    if let Some((id, error)) = shutdown.failed.into_iter().next() {
        return Err(format!("{id}: {}", error.chain()).into());
    }
    println!("{} sessions ended\n", shutdown.ended);
    Ok(())
}

/// One user's visit: a line in a file, by a command in the user's sandbox. Returns how many
/// there are now.
async fn visit(manager: &SessionManager, user: String) -> Result<usize, Box<dyn Error>> {
    let session = manager.get_or_create(&user).await?;
    let line = format!("echo {user} >> visits.txt");
    let done = session.execute(Command::new(line)).await?;
    assert!(done.status.success(), "{}", done.status);
    let visits = session.read_to_string("visits.txt").await?;
    assert!(
        visits.lines().all(|line| line == user),
        "{user} sees {visits}"
    );
    Ok(visits.lines().count())
}

/// Reads what is stored, without a sandbox.
async fn look(root: &Path) -> Result<(), Box<dyn Error>> {
    println!("# What is stored, while nothing runs");
    let stored = StoredSessions::open(root)?;
    let records = stored.list().await?;
    assert_eq!(records.len(), USERS);
    for record in &records {
        let files = stored.files(&record.id).await?;
        let visits = files.read_to_string("visits.txt").await?;
        assert_eq!(visits.lines().count(), 2, "{} lost a file", record.id);
    }
    println!(
        "{} sessions, {} bytes",
        records.len(),
        stored.total_bytes().await?
    );
    let first = stored.files(&records[0].id).await?;
    print!(
        "{}:\n{}",
        records[0].id,
        first.tree(TreeOptions::default()).await?
    );
    Ok(())
}
