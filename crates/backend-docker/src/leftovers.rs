//! Containers left behind by processes that are gone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backend_core::{Error, Result};
use bollard::models::ContainerSummary;
use sandbox_shell::Disposal;
use sandbox_wire::owner::{self, Owner};

use crate::daemon::{self, Daemon};
use crate::inspect::{ContainerInfo, ContainerState};
use crate::labels;

/// A container whose owner process is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// The container's id.
    pub id: String,
    /// The sandbox's name.
    pub name: String,
    /// The image it was created from.
    pub image: String,
    /// The time it was created.
    pub created: SystemTime,
    /// Whether [`reap`] removes it. Otherwise it was meant to be kept, and is stopped.
    pub removed: bool,
}

/// Lists the unnamed containers whose owner process on this host is gone.
///
/// Containers of running processes, of other hosts or pid namespaces, containers named
/// by the user, and containers that are not sandboxes are never included. Neither are
/// containers that only carry a sandbox's labels, such as those created from a committed
/// sandbox.
///
/// # Errors
///
/// `Unavailable` if the daemon does not answer.
pub async fn leftovers(daemon: &Daemon) -> Result<Vec<Leftover>> {
    let daemon = daemon.clone();
    daemon::run(async move { find(&daemon).await }).await
}

/// Does to the [`leftovers`] what their process would have done: removes them, or stops
/// those that were meant to be kept. Returns them.
///
/// # Errors
///
/// `Unavailable` if the daemon does not answer.
pub async fn reap(daemon: &Daemon) -> Result<Vec<Leftover>> {
    let daemon = daemon.clone();
    daemon::run(async move { reap_now(&daemon).await }).await
}

/// Reaps in the background, once per daemon.
pub(crate) fn reap_once(daemon: &Daemon) {
    let (place, daemon) = (daemon.address().to_owned(), daemon.clone());
    let reap = async move { Ok(reap_now(&daemon).await?.len()) };
    sandbox_shell::reap_once(place, "containers", reap);
}

async fn find(daemon: &Daemon) -> Result<Vec<Leftover>> {
    let Some(here) = Owner::current() else {
        return Ok(Vec::new());
    };
    let listed = daemon.sandboxes(&[]).await?;
    let local = daemon.socket().is_some().then(owner::host);
    let mut found = Vec::new();
    for container in listed {
        let Some(leftover) = judge(container, &here, local.as_deref()) else {
            continue;
        };
        // Its labels alone do not prove that this crate created it.
        let info = ContainerInfo::find(daemon, &leftover.id).await?;
        if info.is_some_and(|info| info.ours) {
            found.push(leftover);
        }
    }
    Ok(found)
}

/// Returns a container as a leftover if the process in its labels is certainly gone.
/// `host` is this host, if the daemon runs on it.
fn judge(container: ContainerSummary, here: &Owner, host: Option<&str>) -> Option<Leftover> {
    let found = container.labels?;
    let disposal = Disposal::of(found.get(labels::DISPOSAL));
    if disposal == Disposal::Keep || !labels::is_owner_gone(&found, here, host) {
        return None;
    }
    let state = ContainerState::of(container.state);
    if disposal == Disposal::Stop && state != ContainerState::Running {
        return None;
    }
    let seconds = u64::try_from(container.created.unwrap_or_default()).unwrap_or_default();
    Some(Leftover {
        id: container.id?,
        name: found.get(labels::SANDBOX)?.clone(),
        image: container.image.unwrap_or_default(),
        created: UNIX_EPOCH + Duration::from_secs(seconds),
        removed: disposal == Disposal::Remove,
    })
}

async fn reap_now(daemon: &Daemon) -> Result<Vec<Leftover>> {
    let mut reaped = Vec::new();
    let mut failed: Option<Error> = None;
    for leftover in find(daemon).await? {
        match dispose(daemon, &leftover).await {
            Ok(()) => reaped.push(leftover),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if reaped.is_empty() => Err(error),
        _ => Ok(reaped),
    }
}

async fn dispose(daemon: &Daemon, leftover: &Leftover) -> Result<()> {
    let done = if leftover.removed {
        daemon.remove_container(&leftover.id).await
    } else {
        daemon.stop_container(&leftover.id).await
    };
    // It may be gone, or another process is removing it.
    daemon.settled(done, &[304, 404, 409])
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn container(change: impl FnOnce(&mut HashMap<String, String>)) -> ContainerSummary {
        let mut gone = Owner::current().unwrap();
        (gone.started, gone.pid) = (1, u32::MAX - 9);
        let mut found = HashMap::from([
            (labels::SANDBOX.to_owned(), "box".to_owned()),
            (labels::OWNER.to_owned(), gone.label()),
            (labels::HOST.to_owned(), "host".to_owned()),
            (labels::DISPOSAL.to_owned(), "remove".to_owned()),
        ]);
        change(&mut found);
        ContainerSummary {
            id: Some("id".into()),
            labels: Some(found),
            state: Some(bollard::models::ContainerSummaryStateEnum::RUNNING),
            ..ContainerSummary::default()
        }
    }

    fn set(key: &'static str, value: &str) -> impl FnOnce(&mut HashMap<String, String>) {
        let value = value.to_owned();
        move |found| drop(found.insert(key.to_owned(), value))
    }

    #[test]
    fn only_what_a_dead_process_left_is_a_leftover() {
        let here = Owner::current().unwrap();
        let left = |container| judge(container, &here, Some("host"));
        assert!(left(container(|_| ())).unwrap().removed);
        let kept = left(container(set(labels::DISPOSAL, "stop"))).unwrap();
        assert!(!kept.removed);
        assert_eq!(
            left(container(set(labels::DISPOSAL, "keep"))),
            None,
            "named"
        );
        assert_eq!(
            left(container(set(labels::OWNER, &here.label()))),
            None,
            "alive"
        );
        assert_eq!(left(container(set(labels::OWNER, "nonsense"))), None);
        assert_eq!(left(container(|found| found.clear())), None, "none of ours");
        let mut stopped = container(set(labels::DISPOSAL, "stop"));
        stopped.state = Some(bollard::models::ContainerSummaryStateEnum::EXITED);
        assert_eq!(left(stopped), None, "nothing is to be done");
    }

    #[test]
    fn an_earlier_boot_counts_only_on_the_daemons_own_host() {
        let here = Owner::current().unwrap();
        let mut earlier = here.clone();
        earlier.boot = "earlier".into();
        let one = || container(set(labels::OWNER, &earlier.label()));
        assert!(judge(one(), &here, Some("host")).is_some());
        assert!(judge(one(), &here, Some("other")).is_none());
        assert!(judge(one(), &here, Some("")).is_none());
        assert!(judge(one(), &here, None).is_none());
    }
}
