//! The labels that identify sandboxes, and the process that owns one.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bollard::models::{HostConfig, HostConfigLogConfig};
use sandbox_wire::owner::{self, Owner};

/// The prefix of all our labels.
pub(crate) const PREFIX: &str = "agentbox.";
/// The sandbox's own name. It is for finding containers and proves nothing: `docker
/// commit` copies labels into the image, and so into its containers.
pub(crate) const SANDBOX: &str = "agentbox.sandbox";
/// The process that created it.
pub(crate) const OWNER: &str = "agentbox.owner";
/// The host of that process.
pub(crate) const HOST: &str = "agentbox.host";
/// The creation time, in seconds since 1970.
pub(crate) const CREATED: &str = "agentbox.created";
/// Seconds without activity after which it is stopped.
pub(crate) const IDLE: &str = "agentbox.idle-timeout";
/// The action to take when its owner is gone.
pub(crate) const DISPOSAL: &str = "agentbox.disposal";
/// A fingerprint of its configuration: equal options give equal values.
pub(crate) const CONFIG: &str = "agentbox.config";
/// The agent in it and how it was delivered.
pub(crate) const AGENT: &str = "agentbox.agent";

/// The directory of its host that it has for sockets.
pub(crate) const SOCKETS: &str = "agentbox.sockets";

/// A random number that identifies this one container; see [`log_config`].
pub(crate) const NONCE: &str = "agentbox.nonce";

/// The log configuration of our containers: no log, because nothing of ours is printed
/// there and a log would grow forever.
///
/// It also carries the nonce. The host configuration is not copied into images, and
/// `docker create` takes no options for this driver. So neither a container created
/// from a committed sandbox nor one with copied labels has the nonce in both places.
pub(crate) fn log_config(nonce: &str) -> HostConfigLogConfig {
    HostConfigLogConfig {
        typ: Some("none".to_owned()),
        config: Some(HashMap::from([(NONCE.to_owned(), nonce.to_owned())])),
    }
}

/// Whether a container with these labels and this configuration was created by us,
/// whatever its current name is.
pub(crate) fn is_ours(labels: &HashMap<String, String>, host: &HostConfig) -> bool {
    let log = host.log_config.as_ref();
    let kept = log.and_then(|log| log.config.as_ref()?.get(NONCE));
    let named = labels.get(NONCE).filter(|nonce| !nonce.is_empty());
    labels.contains_key(SANDBOX) && named.is_some() && named == kept
}

/// Whether the process in a container's labels is certainly gone. `host` is this host,
/// if the daemon runs on it.
pub(crate) fn is_owner_gone(
    labels: &HashMap<String, String>,
    here: &Owner,
    host: Option<&str>,
) -> bool {
    let Some(owner) = labels.get(OWNER).and_then(|owner| Owner::parse(owner)) else {
        return false;
    };
    let host = host.filter(|host| !host.is_empty());
    let same_host = host.is_some() && labels.get(HOST).map(String::as_str) == host;
    owner.is_gone(here, same_host)
}

/// Returns a function that tells from a container's labels whether its owner is certainly
/// gone. `is_local` says that the daemon runs on this host.
pub(crate) fn judge(is_local: bool) -> impl Fn(&HashMap<String, String>) -> bool {
    let (here, host) = (Owner::current(), is_local.then(owner::host));
    move |labels| {
        let gone = |here| is_owner_gone(labels, here, host.as_deref());
        here.as_ref().is_some_and(gone)
    }
}

/// The creation time in a container's labels.
pub(crate) fn created(labels: &HashMap<String, String>) -> SystemTime {
    let seconds = labels.get(CREATED).and_then(|text| text.parse().ok());
    UNIX_EPOCH + Duration::from_secs(seconds.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_alone_prove_nothing() {
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let labels = HashMap::from([label(SANDBOX, "box"), label(NONCE, "7")]);
        let host = |log_config| HostConfig {
            log_config,
            ..HostConfig::default()
        };
        assert!(is_ours(&labels, &host(Some(log_config("7")))));
        let copied = [None, Some(HostConfigLogConfig::default())];
        for log_config in copied.into_iter().chain([Some(log_config("8"))]) {
            assert!(!is_ours(&labels, &host(log_config)));
        }
        let empty = HashMap::from([label(SANDBOX, "box"), label(NONCE, "")]);
        assert!(!is_ours(&empty, &host(Some(log_config("")))));
        let unnamed = HashMap::from([label(NONCE, "7")]);
        assert!(!is_ours(&unnamed, &host(Some(log_config("7")))));
        let bare = HashMap::from([label(SANDBOX, "box")]);
        assert!(!is_ours(&bare, &host(None)));
    }
}
