//! Sandboxes left behind by processes that are gone.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backend_core::{Error, Result};
use sandbox_shell::Disposal;

use crate::account::{self, Account};
use crate::api::Change;
use crate::instance::Instance;
use crate::labels;
use crate::state::InstanceState;
use crate::wait;

/// The time for each leftover.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A sandbox whose owner process is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// The sandbox's id.
    pub id: String,
    /// The sandbox's name.
    pub name: String,
    /// The image or snapshot it was created from.
    pub image: String,
    /// The time it was created.
    pub created: SystemTime,
    /// Whether [`reap`] deletes it. Otherwise it was meant to be kept, and is stopped.
    pub removed: bool,
}

/// Lists the unnamed sandboxes whose owner process on this host is gone.
///
/// Sandboxes of running processes, of other hosts or pid namespaces, sandboxes named by
/// the user, and those that this crate did not create are never included.
///
/// # Errors
///
/// `Unavailable` if the service does not answer.
pub async fn leftovers(account: &Account) -> Result<Vec<Leftover>> {
    let account = account.clone();
    account::run(async move { find(&account).await }).await
}

/// Does to the [`leftovers`] what their process would have done: deletes them, or stops
/// those that were meant to be kept. Returns them.
///
/// # Errors
///
/// `Unavailable` if the service does not answer.
pub async fn reap(account: &Account) -> Result<Vec<Leftover>> {
    let account = account.clone();
    account::run(async move { reap_now(&account).await }).await
}

/// Reaps in the background, once per account.
pub(crate) fn reap_once(account: &Account) {
    let (place, account) = (account.id(), account.clone());
    let reap = async move { Ok(reap_now(&account).await?.len()) };
    sandbox_shell::reap_once(place, "hosted sandboxes", reap);
}

async fn find(account: &Account) -> Result<Vec<Leftover>> {
    let ours = BTreeMap::from([(labels::MANAGED_BY.to_owned(), labels::MANAGER.to_owned())]);
    let is_gone = labels::judge();
    let mut found = Vec::new();
    for listed in account.list(&ours).await? {
        if judge(&listed, &is_gone).is_none() {
            continue;
        }
        // The list is late, and a fork has the labels of another sandbox.
        if let Some(instance) = account.find(&listed.id).await? {
            found.extend(judge(&instance, &is_gone));
        }
    }
    Ok(found)
}

/// Returns a sandbox as a leftover if the process in its labels is certainly gone.
fn judge(
    instance: &Instance,
    is_gone: impl Fn(&BTreeMap<String, String>) -> bool,
) -> Option<Leftover> {
    let disposal = Disposal::of(instance.labels.get(labels::DISPOSAL));
    let is_over = instance.state.is_gone() || !instance.is_ours();
    if disposal == Disposal::Keep || is_over || !is_gone(&instance.labels) {
        return None;
    }
    if disposal == Disposal::Stop && instance.state != InstanceState::Started {
        return None;
    }
    Some(Leftover {
        id: instance.id.clone(),
        name: instance.name.clone(),
        image: instance.origin(),
        created: instance.created.unwrap_or(UNIX_EPOCH),
        removed: disposal == Disposal::Remove,
    })
}

async fn reap_now(account: &Account) -> Result<Vec<Leftover>> {
    let mut reaped = Vec::new();
    let mut failed: Option<Error> = None;
    for leftover in find(account).await? {
        let done = if leftover.removed {
            wait::deleted(account, &leftover.id, TIMEOUT)
                .await
                .map(drop)
        } else {
            wait::changed(account, &leftover.id, Change::Stop, TIMEOUT).await
        };
        match done {
            Ok(()) => reaped.push(leftover),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if reaped.is_empty() => Err(error),
        _ => Ok(reaped),
    }
}

#[cfg(test)]
mod tests {
    use sandbox_wire::owner::Owner;
    use serde_json::json;

    use super::*;

    fn left(change: impl FnOnce(&mut Instance)) -> Option<Leftover> {
        let mut gone = Owner::current().unwrap();
        gone.pid = u32::MAX - 9;
        let mut instance = Instance::read(&json!({
            "id": "id-1", "name": "box", "state": "started", "snapshot": "base",
            "labels": {
                labels::MANAGED_BY: labels::MANAGER, labels::SANDBOX: "box",
                labels::OWNER: gone.label(), labels::DISPOSAL: "remove"
            }
        }))
        .unwrap();
        change(&mut instance);
        judge(&instance, labels::judge())
    }

    fn label(key: &str, value: &str) -> impl FnOnce(&mut Instance) {
        let (key, value) = (key.to_owned(), value.to_owned());
        move |instance| drop(instance.labels.insert(key, value))
    }

    #[test]
    fn only_what_a_dead_process_left_is_a_leftover() {
        let found = left(|_| ()).unwrap();
        assert_eq!(
            (&*found.id, &*found.image, found.removed),
            ("id-1", "base", true)
        );
        assert!(!left(label(labels::DISPOSAL, "stop")).unwrap().removed);
        let here = Owner::current().unwrap().label();
        assert_eq!(left(label(labels::OWNER, &here)), None, "alive");
        assert_eq!(left(label(labels::DISPOSAL, "keep")), None, "named");
        assert_eq!(left(label(labels::OWNER, "nonsense")), None);
        assert_eq!(left(label(labels::SANDBOX, "other")), None, "a fork");
        assert_eq!(left(|instance| instance.labels.clear()), None, "not ours");
        let going = |instance: &mut Instance| instance.state = InstanceState::Deleting;
        assert_eq!(left(going), None);
        let stopped = |instance: &mut Instance| {
            label(labels::DISPOSAL, "stop")(instance);
            instance.state = InstanceState::Stopped;
        };
        assert_eq!(left(stopped), None, "nothing is to be done");
    }
}
