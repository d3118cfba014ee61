//! Waiting until a sandbox is in another state. The service answers before it is.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Quoted, Result};
use tokio::time::Instant;

use crate::account::Account;
use crate::api::Change;
use crate::client;
use crate::instance::Instance;
use crate::refusal::{CreateTimeout, Refusal, RefusalKind};
use crate::state::InstanceState;

/// The pause between looks at a sandbox, which grows after a while.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(1);
const GROWS_AFTER: Duration = Duration::from_secs(5);
/// The number of refusals without a reason that would pass.
const REFUSALS: u32 = 3;

/// How a sandbox is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) timeout: Duration,
    /// Whether it is recovered from an error.
    pub(crate) recover: bool,
}

impl Start {
    pub(crate) fn new(timeout: Duration) -> Self {
        let recover = false;
        Self { timeout, recover }
    }
}

/// The time that is left, and the pauses in it.
struct Waiter {
    began: Instant,
    limit: Duration,
    pause: Duration,
}

impl Waiter {
    fn new(limit: Duration) -> Self {
        Self {
            began: Instant::now(),
            limit,
            pause: FIRST_PAUSE,
        }
    }

    /// Waits for a while. Returns `false` if there is no time left.
    async fn wait(&mut self) -> bool {
        let passed = self.began.elapsed();
        if passed >= self.limit {
            return false;
        }
        if passed > GROWS_AFTER {
            self.pause = self.pause.mul_f64(1.1).min(LAST_PAUSE);
        }
        tokio::time::sleep(self.pause.min(self.limit - passed)).await;
        true
    }
}

/// Makes a sandbox run, and waits until it does.
///
/// # Errors
///
/// `Timeout`, with a [`CreateTimeout`], if it takes too long; `Unavailable`, with the
/// reason, if it is in an error or gone.
pub(crate) async fn started(
    account: &Account,
    mut found: Instance,
    start: Start,
) -> Result<Instance> {
    let mut waiter = Waiter::new(start.timeout);
    let (mut refusals, mut recovers) = (0, start.recover);
    loop {
        let change = match &found.state {
            InstanceState::Started => return Ok(found),
            state if state.is_at_rest() => Some(Change::Start),
            InstanceState::Failed { recoverable: true } if recovers => {
                recovers = false;
                Some(Change::Recover)
            }
            InstanceState::Failed { .. } => return Err(failed(&found)),
            state if state.is_gone() => return Err(gone(&found.name)),
            _ => None,
        };
        if let Some(change) = change
            && let Err(error) = account.change(&found.id, change).await
            && !is_passing(&error)
        {
            refusals += 1;
            // The state may have changed meanwhile, which the next look shows.
            if refusals > REFUSALS || !may_be_about_state(&error) {
                return Err(not_started(&found, error));
            }
        }
        if !waiter.wait().await {
            let timeout = CreateTimeout::new(&found.name, Some(found.id));
            return Err(timeout.error(start.timeout.as_secs(), &found.state.to_string()));
        }
        let id = found.id;
        found = account.find(&id).await?.ok_or_else(|| gone(&found.name))?;
    }
}

/// Asks for a change of state, and waits until it has happened.
///
/// # Errors
///
/// `Timeout` if it takes too long; the service's refusal.
pub(crate) async fn changed(
    account: &Account,
    id: &str,
    change: Change,
    limit: Duration,
) -> Result<()> {
    let mut waiter = Waiter::new(limit);
    let mut refused = None;
    let mut refusals = 0;
    let mut asks = true;
    loop {
        if asks && let Err(error) = account.change(id, change).await {
            if error.is_not_found() && change == Change::Stop {
                return Ok(());
            }
            if !is_passing(&error) {
                refusals += 1;
                if !may_be_about_state(&error) {
                    return Err(error);
                }
            }
            refused = Some(error);
        }
        let state = account.find(id).await?.map(|found| found.state);
        let state = state.unwrap_or(InstanceState::Missing);
        if has_happened(change, &state) {
            return Ok(());
        }
        if let Some(error) = refused.take_if(|_| refusals > REFUSALS) {
            return Err(error);
        }
        asks = !state.is_changing() || matches!(state, InstanceState::Unknown(_));
        if !waiter.wait().await {
            let seconds = limit.as_secs();
            return Err(refused.unwrap_or_else(|| {
                let text =
                    format!("the sandbox {id} is still {state} after {seconds} s; try again");
                Error::new(ErrorKind::Timeout, text)
            }));
        }
    }
}

fn has_happened(change: Change, state: &InstanceState) -> bool {
    let is_over = state.is_gone() || matches!(state, InstanceState::Failed { .. });
    match change {
        Change::Stop => state.is_at_rest() || *state == InstanceState::Archiving || is_over,
        Change::Pause => *state == InstanceState::Paused,
        Change::Archive => matches!(state, InstanceState::Archived | InstanceState::Archiving),
        Change::Start => *state == InstanceState::Started,
        Change::Recover => matches!(state, InstanceState::Started | InstanceState::Stopped),
    }
}

/// Deletes a sandbox, and waits until the service is doing so. Returns `false` if it was
/// gone already.
///
/// # Errors
///
/// `Timeout` if the service does not begin; its refusal.
pub(crate) async fn deleted(account: &Account, key: &str, limit: Duration) -> Result<bool> {
    let mut waiter = Waiter::new(limit);
    let mut existed = false;
    loop {
        let refused = match account.delete(key).await {
            Ok(()) => None,
            Err(error) if error.is_not_found() => return Ok(existed),
            // Sandboxes that are being started cannot be deleted yet.
            Err(error) if is_passing(&error) || may_be_about_state(&error) => Some(error),
            Err(error) => return Err(error),
        };
        existed = true;
        match account.find(key).await? {
            Some(found) if !found.state.is_gone() => {}
            _ => return Ok(true),
        }
        if !waiter.wait().await {
            let seconds = limit.as_secs();
            return Err(refused.unwrap_or_else(|| {
                let text = format!(
                    "the service did not begin to delete the sandbox {key} in {seconds} s; try again"
                );
                Error::new(ErrorKind::Timeout, text)
            }));
        }
    }
}

/// Waits until a sandbox that is being deleted is gone, and its name is free.
///
/// # Errors
///
/// `Timeout` if it takes too long.
pub(crate) async fn vanished(account: &Account, id: &str, limit: Duration) -> Result<()> {
    let mut waiter = Waiter::new(limit);
    loop {
        match account.find(id).await? {
            None => return Ok(()),
            Some(found) if found.state == InstanceState::Missing => return Ok(()),
            Some(_) => {}
        }
        if !waiter.wait().await {
            let text = format!("the sandbox {id} is still being deleted; try again");
            return Err(Error::new(ErrorKind::Timeout, text));
        }
    }
}

/// Whether a refusal passes by itself.
fn is_passing(error: &Error) -> bool {
    let kind = Refusal::of(error).map(|refusal| refusal.kind);
    kind == Some(RefusalKind::Busy) || client::is_lost(error)
}

/// Whether a refusal can be due to the state of a sandbox.
fn may_be_about_state(error: &Error) -> bool {
    let kind = Refusal::of(error).map(|refusal| refusal.kind);
    matches!(kind, Some(RefusalKind::Invalid | RefusalKind::Conflict))
}

/// The error for a sandbox that the service does not start in its state.
fn not_started(found: &Instance, error: Error) -> Error {
    let Some(refusal) = Refusal::of(&error).filter(|_| may_be_about_state(&error)) else {
        return error;
    };
    let (name, state) = (&found.name, &found.state);
    let said = Quoted::new(&refusal.message);
    let text = format!(
        "the sandbox {name} is {state} and cannot be started, because the service says {said}; create another"
    );
    Error::unavailable(text).with_source(refusal.clone())
}

/// The error for a sandbox that could not be created or started.
pub(crate) fn failed(found: &Instance) -> Error {
    let next = match found.state {
        InstanceState::Failed { recoverable: true } => "recover it, or delete it",
        _ => "change its options, or create another",
    };
    let name = &found.name;
    Error::unavailable(match &found.reason {
        Some(reason) => format!(
            "the sandbox {name} is in an error: {}; {next}",
            Quoted::new(reason)
        ),
        None => {
            format!("the sandbox {name} is in an error, and the service gives no reason; {next}")
        }
    })
}

fn gone(name: &str) -> Error {
    Error::unavailable(format!("the sandbox {name} was deleted; create another"))
}
