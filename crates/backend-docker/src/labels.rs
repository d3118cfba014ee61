//! The labels that identify sandboxes, and the process that owns one.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bollard::models::{HostConfig, HostConfigLogConfig};

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

/// The action to take when a container's owner is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposal {
    /// Remove it.
    Remove,
    /// Stop it and keep it.
    Stop,
    /// Leave it alone: it has a name, and other programs can use it.
    Keep,
}

impl Disposal {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Remove => "remove",
            Self::Stop => "stop",
            Self::Keep => "keep",
        }
    }

    /// Reads a container's label. Containers with an unknown value are kept.
    pub(crate) fn of(labels: &HashMap<String, String>) -> Self {
        match labels.get(DISPOSAL).map(String::as_str) {
            Some("remove") => Self::Remove,
            Some("stop") => Self::Stop,
            _ => Self::Keep,
        }
    }
}

/// A process, identified unambiguously even after its pid is reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Clock ticks from boot to its start.
    pub(crate) started: u64,
    /// The host's boot id.
    pub(crate) boot: String,
    /// The pid namespace of `pid`.
    pub(crate) pid_namespace: String,
}

impl Process {
    /// Returns this process, or `None` where the kernel does not provide the data.
    pub(crate) fn current() -> Option<Self> {
        Self::read("self")
    }

    fn read(which: &str) -> Option<Self> {
        let read = |path: String| std::fs::read_to_string(path).ok();
        let stat = read(format!("/proc/{which}/stat"))?;
        let (pid, started) = parse_stat(&stat)?;
        let boot = read("/proc/sys/kernel/random/boot_id".into())?;
        let namespace = std::fs::read_link(format!("/proc/{which}/ns/pid")).ok()?;
        let namespace = namespace
            .to_str()?
            .trim_matches(|c: char| !c.is_ascii_digit());
        Some(Self {
            pid,
            started,
            boot: boot.trim().to_owned(),
            pid_namespace: namespace.to_owned(),
        })
    }

    pub(crate) fn label(&self) -> String {
        let (pid, started) = (self.pid, self.started);
        format!("{pid}:{started}:{}:{}", self.boot, self.pid_namespace)
    }

    pub(crate) fn parse(label: &str) -> Option<Self> {
        let mut parts = label.split(':');
        let parsed = Self {
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            boot: parts.next()?.to_owned(),
            pid_namespace: parts.next()?.to_owned(),
        };
        let whole =
            parts.next().is_none() && !parsed.boot.is_empty() && !parsed.pid_namespace.is_empty();
        whole.then_some(parsed)
    }

    /// Whether this process is certainly gone, as seen from `here`. Nothing is certain
    /// about a process in another pid namespace or on another host.
    pub(crate) fn is_gone(&self, here: &Self, same_host: bool) -> bool {
        if self.boot != here.boot {
            // The reboot has ended all processes of an earlier boot.
            return same_host;
        }
        if self.pid_namespace != here.pid_namespace {
            return false;
        }
        self.has_ended(Path::new("/proc"))
    }

    /// Whether no process in this pid namespace is this one.
    fn has_ended(&self, proc: &Path) -> bool {
        match std::fs::read_to_string(proc.join(format!("{}/stat", self.pid))) {
            Ok(stat) => parse_stat(&stat).is_some_and(|(_, started)| started != self.started),
            // With `hidepid`, other users' processes are not visible here.
            Err(error) => error.kind() == std::io::ErrorKind::NotFound && !has_process(self.pid),
        }
    }
}

/// Whether the process in a container's labels is certainly gone. `host` is this host,
/// if the daemon runs on it.
pub(crate) fn is_owner_gone(
    labels: &HashMap<String, String>,
    here: &Process,
    host: Option<&str>,
) -> bool {
    let Some(owner) = labels.get(OWNER).and_then(|owner| Process::parse(owner)) else {
        return false;
    };
    let host = host.filter(|host| !host.is_empty());
    let same_host = host.is_some() && labels.get(HOST).map(String::as_str) == host;
    owner.is_gone(here, same_host)
}

/// Returns a function that tells from a container's labels whether its owner is certainly
/// gone. `is_local` says that the daemon runs on this host.
pub(crate) fn judge(is_local: bool) -> impl Fn(&HashMap<String, String>) -> bool {
    let (here, host) = (Process::current(), is_local.then(host));
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

/// Whether a process with this pid exists, owned by any user.
#[cfg(unix)]
fn has_process(pid: u32) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

/// Always `true`: there is no way to find out here.
#[cfg(not(unix))]
fn has_process(_: u32) -> bool {
    true
}

/// Parses the pid and start time from a line of `/proc/PID/stat`. The program's name is
/// in parentheses and can contain anything, including parentheses.
fn parse_stat(stat: &str) -> Option<(u32, u64)> {
    let (pid, rest) = stat.split_once(' ')?;
    let (_, rest) = rest.rsplit_once(')')?;
    let started = rest.split_ascii_whitespace().nth(19)?;
    Some((pid.parse().ok()?, started.parse().ok()?))
}

/// Returns a name for this host that is stable across boots, or an empty one if it is
/// unknown.
pub(crate) fn host() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let machine = read("/etc/machine-id");
    let name = read("/proc/sys/kernel/hostname");
    match (machine.trim(), name.trim()) {
        ("", _) | (_, "") => String::new(),
        (machine, name) => format!("{machine}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> Process {
        Process::current().unwrap()
    }

    #[test]
    fn a_program_can_have_any_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(parse_stat(&format!("7 (a) b) {rest}")), Some((7, 4242)));
        for bad in ["", "7", "7 (a) S 1", "x (a) S", "7 (a"] {
            assert_eq!(parse_stat(bad), None, "{bad}");
        }
    }

    #[test]
    fn labels_round_trip_and_garbage_is_refused() {
        let process = process();
        assert_eq!(Process::parse(&process.label()), Some(process));
        for bad in ["", "1", "1:2:3", "a:2:3:4", "1:2:3:4:5", "1:2::4", "1:2:3:"] {
            assert_eq!(Process::parse(bad), None, "{bad}");
        }
    }

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

    #[test]
    fn only_what_is_certain_is_gone() {
        let here = process();
        let changed = |change: fn(&mut Process)| {
            let mut other = process();
            change(&mut other);
            other
        };
        assert!(!here.is_gone(&here, true), "it lives");
        let reused = changed(|other| other.started += 1);
        assert!(
            reused.is_gone(&here, true),
            "another process has its number"
        );
        let ended = changed(|other| other.pid = u32::MAX - 7);
        assert!(ended.is_gone(&here, false), "no process has its number");
        let elsewhere = changed(|other| {
            other.pid_namespace = "1".into();
            other.pid = u32::MAX - 7;
        });
        assert!(!elsewhere.is_gone(&here, true), "another name space");
        let other_boot = changed(|other| other.boot = "x".into());
        assert!(!other_boot.is_gone(&here, false), "another host");
        assert!(
            other_boot.is_gone(&here, true),
            "an earlier boot of this host"
        );
    }

    #[test]
    fn a_process_that_proc_hides_lives() {
        let nothing = tempfile::tempdir().unwrap();
        let mut other = process();
        assert!(!other.has_ended(nothing.path()));
        // No process has such a high pid.
        for pid in [i32::MAX.unsigned_abs(), u32::MAX - 7] {
            other.pid = pid;
            assert!(other.has_ended(nothing.path()));
        }
    }

    #[test]
    fn what_is_not_understood_is_kept() {
        let labels = |text: &str| HashMap::from([(DISPOSAL.to_owned(), text.to_owned())]);
        for disposal in [Disposal::Remove, Disposal::Stop, Disposal::Keep] {
            assert_eq!(Disposal::of(&labels(disposal.as_str())), disposal);
        }
        assert_eq!(Disposal::of(&labels("burn")), Disposal::Keep);
        assert_eq!(Disposal::of(&HashMap::new()), Disposal::Keep);
    }
}
