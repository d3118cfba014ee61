//! The process that created a sandbox, and whether it is gone.
//!
//! A sandbox outlives a process that crashes. Its creator is written on it in a label, and
//! another process can tell from that label whether the sandbox was left behind.

use std::path::Path;

/// A process, identified unambiguously even after its pid is reused.
///
/// ```
/// use sandbox_wire::owner::Owner;
///
/// // `None` where the kernel does not tell enough.
/// if let Some(here) = Owner::current() {
///     let label = here.label();
///     assert_eq!(Owner::parse(&label), Some(here));
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// Its pid.
    pub pid: u32,
    /// Clock ticks from boot to its start.
    pub started: u64,
    /// The host's boot id.
    pub boot: String,
    /// The pid namespace of `pid`.
    pub pid_namespace: String,
}

impl Owner {
    /// Returns this process, or `None` where the kernel does not provide the data.
    pub fn current() -> Option<Self> {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let (pid, started) = parse_stat(&read("/proc/self/stat")?)?;
        let boot = read("/proc/sys/kernel/random/boot_id")?;
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
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

    /// Returns the text that [`parse`](Self::parse) reads: letters, digits, `-` and `:`.
    pub fn label(&self) -> String {
        let (pid, started) = (self.pid, self.started);
        format!("{pid}:{started}:{}:{}", self.boot, self.pid_namespace)
    }

    /// Parses a label. Returns `None` for any other text.
    pub fn parse(label: &str) -> Option<Self> {
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
    pub fn is_gone(&self, here: &Self, same_host: bool) -> bool {
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
pub fn host() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let machine = read("/etc/machine-id");
    let name = read("/proc/sys/kernel/hostname");
    match (machine.trim(), name.trim()) {
        ("", _) | (_, "") => String::new(),
        (machine, name) => format!("{machine}/{name}"),
    }
}

/// The pid namespace of processes that are in no container.
const NO_CONTAINER: &str = "4026531836";

/// Returns a function that tells from the labels of a sandbox, its owner and its owner's
/// [`host`], whether that process is certainly gone. It is for services that processes of
/// many hosts use. Nothing is certain about processes of other hosts and pid namespaces.
///
/// Processes in containers get the names of their hosts from an image and options: several
/// hosts have the same. So the processes of an earlier boot are only judged if they were in
/// no container.
pub fn judge() -> impl Fn(Option<&String>, Option<&String>) -> bool {
    let (here, this_host) = (Owner::current(), host());
    move |owner, host| {
        let owner = owner.and_then(|text| Owner::parse(text));
        let same_host = !this_host.is_empty() && host == Some(&this_host);
        let both = owner.zip(here.as_ref());
        both.is_some_and(|(owner, here)| {
            let is_known = [&owner, here]
                .iter()
                .all(|one| one.pid_namespace == NO_CONTAINER);
            owner.is_gone(here, same_host && is_known)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_sandboxes_of_processes_that_are_gone_are_judged_so() {
        let here = owner();
        let mut gone = here.clone();
        gone.pid = u32::MAX - 9;
        let mut earlier = here.clone();
        earlier.boot = "earlier".into();
        let judged =
            |owner: &str, host: &str| judge()(Some(&owner.to_owned()), Some(&host.to_owned()));
        let host = host();
        assert!(!judged(&here.label(), &host), "it lives");
        assert!(judged(&gone.label(), "elsewhere"), "the boot id is ours");
        let is_known = !host.is_empty() && here.pid_namespace == NO_CONTAINER;
        assert_eq!(judged(&earlier.label(), &host), is_known);
        assert!(!judged(&earlier.label(), "elsewhere"), "another host");
        // The name and the machine id of a container are those of its image and its
        // options, so they are the same on many hosts.
        earlier.pid_namespace = "1".into();
        assert!(!judged(&earlier.label(), &host), "a container");
        assert!(!judged("nonsense", &host));
        assert!(!judge()(None, None));
    }

    fn owner() -> Owner {
        Owner::current().unwrap()
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
        let owner = owner();
        assert_eq!(Owner::parse(&owner.label()), Some(owner));
        for bad in ["", "1", "1:2:3", "a:2:3:4", "1:2:3:4:5", "1:2::4", "1:2:3:"] {
            assert_eq!(Owner::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_what_is_certain_is_gone() {
        let here = owner();
        let changed = |change: fn(&mut Owner)| {
            let mut other = owner();
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
        let mut other = owner();
        assert!(!other.has_ended(nothing.path()));
        // No process has such a high pid.
        for pid in [i32::MAX.unsigned_abs(), u32::MAX - 7] {
            other.pid = pid;
            assert!(other.has_ended(nothing.path()));
        }
    }
}
