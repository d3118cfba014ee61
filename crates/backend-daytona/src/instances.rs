//! Sandboxes for programs that keep records of their own: found by labels, changed,
//! and with small files in them.
//!
//! The names of sandboxes are unique in an organization, so creating one is a lock between
//! processes. Its labels are a record that outlives every process.
//!
//! ```no_run
//! # async fn example() -> backend_core::Result<()> {
//! use std::collections::BTreeMap;
//! use backend_daytona::{Account, instances};
//!
//! let account = Account::from_env()?;
//! let team = BTreeMap::from([("example.team".to_owned(), "red".to_owned())]);
//! for instance in instances::list(&account, &team).await? {
//!     println!("{} {:?}", instance.name, instance.state);
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use tokio::time::timeout;

use crate::account::{Account, run};
use crate::api::Change;
use crate::check;
use crate::client::Repeat;
use crate::labels;
use crate::state::InstanceState;
use crate::toolbox::Toolbox;
use crate::wait;

pub use crate::instance::Instance;

/// The label, with its value, of every sandbox that this crate created.
pub const MANAGED: (&str, &str) = (labels::MANAGED_BY, labels::MANAGER);

/// The size of the largest file that is read or written.
const FILE_BYTES: usize = 1024 * 1024;
/// The time for a start or a stop.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(180);
/// The time for a file to be read. A pipe in its place never ends.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// The time for a file to be moved to its place.
const MOVE_TIMEOUT: Duration = Duration::from_secs(30);

/// Lists the sandboxes that have all of these labels, in any state.
///
/// The service's list is late: it may lack a new sandbox, and show one that is deleted.
/// Before acting on one, [`find`] it.
///
/// # Errors
///
/// `TooLarge` for more than 100,000 sandboxes; `Unavailable` if the service does not
/// answer.
pub async fn list(account: &Account, labels: &BTreeMap<String, String>) -> Result<Vec<Instance>> {
    let (account, labels) = (account.clone(), labels.clone());
    run(async move { account.list(&labels).await }).await
}

/// Finds a sandbox by its id or name. `None` if there is none, or it is being deleted.
///
/// # Errors
///
/// `Unavailable` if the service does not answer.
pub async fn find(account: &Account, sandbox: &str) -> Result<Option<Instance>> {
    let (account, sandbox) = checked(account, sandbox)?;
    run(async move {
        let found = account.find(&sandbox).await?;
        Ok(found.filter(|found| !found.state.is_gone()))
    })
    .await
}

/// Sets labels of a sandbox, and removes those without a value. Returns it as it is then.
///
/// The service replaces all labels at once, so they are read, changed and written. Changes
/// of one process wait for each other; of several processes that change one sandbox at the
/// same moment, the last wins.
///
/// # Errors
///
/// `Config` for an invalid label; `NotFound` if it is gone; `Unavailable` if the service
/// does not answer.
pub async fn change_labels(
    account: &Account,
    sandbox: &str,
    changes: &BTreeMap<String, Option<String>>,
) -> Result<Instance> {
    for (key, value) in changes {
        check::label(key, value.as_deref().unwrap_or_default())?;
    }
    let (account, sandbox) = checked(account, sandbox)?;
    let changes = changes.clone();
    run(async move {
        let turn = turn(format!("{} {sandbox}", account.url()));
        let _turn = turn.lock().await;
        let mut found = existing(&account, &sandbox).await?;
        let before = found.labels.clone();
        for (key, value) in changes {
            match value {
                Some(value) => found.labels.insert(key, value),
                None => found.labels.remove(&key),
            };
        }
        if found.labels != before {
            let written = account.set_labels(&found.id, &found.labels).await;
            written.map_err(|error| {
                if error.is_not_found() {
                    gone(&sandbox)
                } else {
                    error
                }
            })?;
        }
        Ok(found)
    })
    .await
}

/// Starts a sandbox, also a paused or archived one, and waits until it runs.
///
/// # Errors
///
/// `NotFound` if it is gone; `Timeout` if it takes longer than three minutes;
/// `Unavailable`, with the reason, if it cannot be started.
pub async fn start(account: &Account, sandbox: &str) -> Result<()> {
    let (account, sandbox) = checked(account, sandbox)?;
    run(async move {
        let found = existing(&account, &sandbox).await?;
        let options = wait::Start::new(CHANGE_TIMEOUT);
        wait::started(&account, found, options).await.map(drop)
    })
    .await
}

/// Stops a sandbox and waits until it is stopped. Its files stay. Stopping twice succeeds.
///
/// # Errors
///
/// `NotFound` if it is gone; `Timeout` if it takes longer than three minutes;
/// `Unavailable` if the service does not answer.
pub async fn stop(account: &Account, sandbox: &str) -> Result<()> {
    let (account, sandbox) = checked(account, sandbox)?;
    run(async move {
        let found = existing(&account, &sandbox).await?;
        wait::changed(&account, &found.id, Change::Stop, CHANGE_TIMEOUT).await
    })
    .await
}

/// Deletes a sandbox, and makes sure that the service does so. Returns `false` if it was
/// gone already.
///
/// # Errors
///
/// `Timeout` if the service does not begin to delete it in three minutes; `Unavailable` if
/// it does not answer; `PermissionDenied` if the credential does not allow it.
pub async fn delete(account: &Account, sandbox: &str) -> Result<bool> {
    let (account, sandbox) = checked(account, sandbox)?;
    run(async move {
        // By its id: a request that is repeated must not meet a new sandbox of its name.
        match account.find(&sandbox).await? {
            Some(found) => wait::deleted(&account, &found.id, CHANGE_TIMEOUT).await,
            None => Ok(false),
        }
    })
    .await
}

/// Tells the service that a sandbox is used, which delays its timers.
///
/// # Errors
///
/// `NotFound` if it is gone; `Unavailable` if the service does not answer.
pub async fn touch(account: &Account, id: &str) -> Result<()> {
    let (account, id) = checked(account, id)?;
    run(async move { account.touch(&id).await }).await
}

/// Reads a file of a started sandbox. `None` if there is none.
///
/// # Errors
///
/// `NotFound` if the sandbox is gone; `TooLarge` for more than 1 MiB; `Unavailable` if it
/// does not run, or the file cannot be read in a minute.
pub async fn read_file(account: &Account, sandbox: &str, path: &str) -> Result<Option<Bytes>> {
    check::path(path)?;
    let (account, sandbox) = checked(account, sandbox)?;
    let path = path.to_owned();
    run(async move {
        let toolbox = toolbox(account, &sandbox).await?;
        let read = timeout(READ_TIMEOUT, toolbox.download(&path, FILE_BYTES)).await;
        read.unwrap_or_else(|_| {
            let seconds = READ_TIMEOUT.as_secs();
            Err(Error::unavailable(format!(
                "{path} could not be read in {seconds} s; see whether it is a file"
            )))
        })
    })
    .await
}

/// Writes a file of a started sandbox, completely or not at all. Missing directories are
/// created. Only the sandbox's user can read it, and commands run as that user too.
///
/// # Errors
///
/// `NotFound` if the sandbox is gone; `TooLarge` for more than 1 MiB; `Unavailable` if it
/// does not run, or the file cannot be written.
pub async fn write_file(
    account: &Account,
    sandbox: &str,
    path: &str,
    content: &[u8],
) -> Result<()> {
    check::path(path)?;
    if content.len() > FILE_BYTES {
        return Err(Error::too_large("the file is larger than 1 MiB; write less").on("daytona"));
    }
    let (account, sandbox) = checked(account, sandbox)?;
    let (path, content) = (path.to_owned(), content.to_vec());
    run(async move {
        let toolbox = toolbox(account, &sandbox).await?;
        let partial = format!("{path}.{:016x}", fastrand::u64(..));
        toolbox.upload(&partial, &content).await?;
        // The toolbox moves no file over another one.
        let script =
            r#"chmod 600 "$1" && [ ! -d "$2" ] && mv -f "$1" "$2" || { rm -f "$1"; exit 1; }"#;
        let moved = toolbox
            .execute(
                script,
                &[&partial, &path],
                MOVE_TIMEOUT,
                Repeat::Unperformed,
            )
            .await?;
        if moved.code != 0 {
            let text = format!(
                "{path} could not be written in the sandbox; see whether it is a directory"
            );
            return Err(Error::unavailable(text));
        }
        Ok(())
    })
    .await
}

fn checked(account: &Account, sandbox: &str) -> Result<(Account, String)> {
    check::sandbox(sandbox)?;
    Ok((account.clone(), sandbox.to_owned()))
}

fn gone(sandbox: &str) -> Error {
    let text = format!("the sandbox {sandbox} was deleted; create another");
    Error::new(ErrorKind::NotFound, text)
}

async fn existing(account: &Account, sandbox: &str) -> Result<Instance> {
    let found = account.find(sandbox).await?;
    let found = found.filter(|found| !found.state.is_gone());
    found.ok_or_else(|| gone(sandbox))
}

async fn toolbox(account: Account, sandbox: &str) -> Result<Toolbox> {
    let found = existing(&account, sandbox).await?;
    if found.state != InstanceState::Started {
        return Err(Error::unavailable(format!(
            "the sandbox {sandbox} is {}; start it",
            found.state
        )));
    }
    let url = account.toolbox_url(&found).await?;
    Ok(Toolbox::new(account, url))
}

/// Returns the lock of a sandbox's labels.
fn turn(sandbox: String) -> Arc<tokio::sync::Mutex<()>> {
    type Locks = BTreeMap<String, Weak<tokio::sync::Mutex<()>>>;
    static LOCKS: Mutex<Locks> = Mutex::new(BTreeMap::new());
    let mut locks = lock(&LOCKS);
    if let Some(known) = locks.get(&sandbox).and_then(Weak::upgrade) {
        return known;
    }
    locks.retain(|_, lock| lock.strong_count() > 0);
    let new = Arc::default();
    locks.insert(sandbox, Arc::downgrade(&new));
    new
}
