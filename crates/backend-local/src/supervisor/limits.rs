//! Resource limits of commands.
//!
//! Kernel limits apply to a process and its children, so they are set by a
//! short program that runs before the command in the command's process: the
//! supervisor's own, started with [`LAUNCH`]. It also makes a terminal the
//! controlling one, which only the first process of a session can do. The number of processes is
//! limited by a control group that the supervisor enters. Without one, a kernel
//! limit that counts all processes of the user is used, which does not apply to
//! root.

mod cgroup;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use backend_core::{Error, Result};
use nix::sys::signal::SigSet;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use cgroup::{Group, Parent};

use super::program::Environment;

/// The first argument of a supervisor's program that is to set limits and
/// become a command. [`run_launcher`] takes the arguments after it.
pub(crate) const LAUNCH: &str = "--agentbox-launch";

/// The part of a launcher's specification that asks for control of the terminal on
/// standard input.
const TERMINAL: &str = "terminal";

/// The exit code of a command that could not be started, the same as in shells.
const NOT_STARTED: i32 = 126;

/// Tasks that a supervisor needs for itself in the group it shares with its
/// commands.
const OWN_TASKS: u64 = 8;

/// The variable that sets the number of threads that the runtime of an async
/// `main` starts. [`THREADS_KEPT`] holds the command's own value until the
/// launcher becomes the command.
pub(crate) const THREADS: &str = "TOKIO_WORKER_THREADS";
const THREADS_KEPT: &str = "AGENTBOX_TOKIO_WORKER_THREADS";

/// Limits memory to `$1` KiB and becomes the rest of its arguments.
const LIMIT_MEMORY: &str = r#"ulimit -v "$1" || exit 126; shift; exec "$@""#;

/// Seconds between the signal that a program may catch and the one it may not.
const CPU_GRACE: u64 = 1;

/// Resource limits of a command. Nothing is limited by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Limits {
    cpu_seconds: Option<u64>,
    file_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    processes: Option<u64>,
}

impl Limits {
    backend_core::setters! {
        /// Sets the CPU time of each process, in seconds.
        cpu_seconds: u64,
        /// Sets the size of the largest file that a process may write.
        file_bytes: u64,
        /// Sets the address space of each process, in bytes.
        memory_bytes: u64,
        /// Sets the maximum number of concurrent processes and threads.
        processes: u64,
    }
}

/// Limits as data, checked by the host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Launch {
    limits: Vec<(Kind, u64)>,
    /// The limit of the control group.
    tasks: Option<u64>,
}

/// The resource that a kernel limit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    Cpu,
    File,
    Memory,
    Processes,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Cpu, Self::File, Self::Memory, Self::Processes];

    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::File => "file",
            Self::Memory => "memory",
            Self::Processes => "processes",
        }
    }

    fn resource(self) -> Resource {
        match self {
            Self::Cpu => Resource::Cpu,
            Self::File => Resource::Fsize,
            Self::Memory => Resource::As,
            Self::Processes => Resource::Nproc,
        }
    }
}

impl Limits {
    /// Returns the limits that the supervisor must enforce, if any. Fails for a
    /// limit of zero, and for one that this host cannot enforce.
    pub(crate) fn launch(&self) -> Result<Option<Launch>> {
        let asked = [
            (Kind::Cpu, self.cpu_seconds),
            (Kind::File, self.file_bytes),
            (Kind::Memory, self.memory_bytes),
            (Kind::Processes, self.processes),
        ];
        let mut limits: Vec<_> = asked
            .into_iter()
            .filter_map(|(kind, limit)| Some((kind, limit?)))
            .collect();
        if let Some((kind, _)) = limits.iter().find(|(_, limit)| *limit == 0) {
            return Err(Error::invalid_input(format!(
                "a {} limit of zero lets no command run; leave it out or raise it",
                kind.name()
            )));
        }
        if limits.is_empty() {
            return Ok(None);
        }
        let mut tasks = None;
        if self.processes.is_some() {
            match Parent::find() {
                Ok(_) => {
                    tasks = self.processes;
                    limits.retain(|(kind, _)| *kind != Kind::Processes);
                }
                // The kernel does not apply its own limit to root.
                Err(reason) if rustix::process::getuid().is_root() => {
                    return Err(Error::unsupported(format!(
                        "the number of processes cannot be bounded for root ({reason}); run as \
                         another user, delegate a control group with `pids`, or leave it out"
                    )));
                }
                Err(_) => {}
            }
        }
        Ok(Some(Launch { limits, tasks }))
    }
}

impl Launch {
    /// Prepares the limits, in the supervisor before it is confined, which will have
    /// `more` threads than usual. Enters a control group if one is used. If that
    /// fails, no command may start.
    pub(crate) fn prepare(&self, more: u64) -> Result<Prepared, String> {
        let failed = |error| format!("cannot bound the number of processes: {error}");
        let tasks = self.tasks.map(|tasks| tasks.saturating_add(more));
        let group = tasks.map(enter_group).transpose();
        Ok(Prepared {
            specification: specify(&self.limits),
            _group: group.map_err(failed)?,
        })
    }
}

/// Enters a new group for this process and `tasks` of its commands.
fn enter_group(tasks: u64) -> Result<Group, String> {
    let own = OWN_TASKS.saturating_add(idle_threads());
    let mut group = Group::create(&Parent::find()?, tasks.saturating_add(own))
        .map_err(|error| error.to_string())?;
    group.enter().map_err(|error| error.to_string())?;
    Ok(group)
}

/// Limits that apply to commands started through [`wrap`]. Drop it
/// when all commands have ended, which leaves and removes the group.
#[derive(Debug)]
pub(crate) struct Prepared {
    specification: String,
    _group: Option<Group>,
}

/// Returns the command line that sets the limits, takes control of the terminal on
/// standard input if there is one, and becomes `argv`. It runs this supervisor's own
/// program, even if the file has been replaced since. A launcher whose `main` is async
/// must not start one thread per processor, which would count as the command's.
pub(crate) fn wrap(
    limits: Option<&Prepared>,
    terminal: bool,
    argv: Vec<OsString>,
    environment: &mut Environment,
) -> Vec<OsString> {
    let limits = limits.map_or("", |limits| &limits.specification);
    let terminal = if terminal { TERMINAL } else { "" };
    let parts = [terminal, limits];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return argv;
    }
    match environment.insert(THREADS.into(), "1".into()) {
        Some(asked) => environment.insert(THREADS_KEPT.into(), asked),
        None => environment.remove(&OsString::from(THREADS_KEPT)),
    };
    let specification = parts.join(",");
    let launcher = ["/proc/self/exe", LAUNCH, &specification];
    let launcher = launcher.into_iter().map(OsString::from);
    launcher.chain(argv).collect()
}

/// Returns the number of this process's threads besides the main thread.
fn idle_threads() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    u64::try_from(threads).unwrap_or(u64::MAX).saturating_sub(1)
}

/// Sets limits on this process and becomes the command. `args` are the
/// arguments after [`LAUNCH`]. On failure, the process prints the reason and
/// exits.
pub(crate) fn run_launcher(args: impl Iterator<Item = OsString>) -> ! {
    let error = become_command(args);
    let _ = writeln!(
        std::io::stderr(),
        "agentbox: the command was not started: {error}"
    );
    std::process::exit(NOT_STARTED)
}

fn become_command(mut args: impl Iterator<Item = OsString>) -> String {
    let (Some(specification), Some(program)) = (args.next(), args.next()) else {
        return "no limits or no program were given".into();
    };
    let Some((terminal, limits)) = specification.to_str().and_then(parse) else {
        return "invalid limits".into();
    };
    if terminal && let Err(error) = rustix::process::ioctl_tiocsctty(std::io::stdin()) {
        return format!("cannot control the terminal: {error}");
    }
    let mut command = Command::new(&program);
    for (kind, limit) in limits {
        if kind == Kind::Memory {
            // Set by the command's shell: under it, threads that an async `main` still
            // starts here would find no memory and end this process.
            let kib = limit.min(held(kind)) / 1024;
            command.args(["-c", LIMIT_MEMORY]).arg(&program);
            command.arg(kib.to_string()).arg(&program);
        } else if let Err(error) = set(kind, limit) {
            return format!("cannot limit {}: {error}", kind.name());
        }
    }
    command.args(args);
    restore_threads(&mut command);
    // The signal mask is inherited, and a command must receive the signals that
    // end it.
    if let Err(error) = SigSet::empty().thread_set_mask() {
        return format!("cannot let signals through: {error}");
    }
    let error = command.exec();
    format!("{}: {error}", program.display())
}

/// Undoes the change of the environment by [`wrap`].
#[expect(
    clippy::disallowed_methods,
    reason = "the launcher's environment is the command's"
)]
fn restore_threads(command: &mut Command) {
    match std::env::var_os(THREADS_KEPT) {
        Some(kept) => command.env(THREADS, kept).env_remove(THREADS_KEPT),
        None => command.env_remove(THREADS),
    };
}

/// Returns the limit that already applies.
fn held(kind: Kind) -> u64 {
    getrlimit(kind.resource()).maximum.unwrap_or(u64::MAX)
}

/// Sets a limit. Keeps a lower one that already applies, because only root may
/// raise it.
fn set(kind: Kind, limit: u64) -> rustix::io::Result<()> {
    let held = held(kind);
    let grace = if kind == Kind::Cpu { CPU_GRACE } else { 0 };
    let new = Rlimit {
        current: Some(limit.min(held)),
        maximum: Some(limit.saturating_add(grace).min(held)),
    };
    setrlimit(kind.resource(), new)
}

fn specify(limits: &[(Kind, u64)]) -> String {
    let shown = |(kind, limit): &(Kind, u64)| format!("{}={limit}", kind.name());
    limits.iter().map(shown).collect::<Vec<_>>().join(",")
}

/// Returns whether there is a terminal to control, and the limits.
fn parse(specification: &str) -> Option<(bool, Vec<(Kind, u64)>)> {
    let (terminal, limits) = match specification.strip_prefix(TERMINAL) {
        Some("") => return Some((true, Vec::new())),
        Some(rest) => (true, rest.strip_prefix(',')?),
        None => (false, specification),
    };
    let limits = limits.split(',').map(|part| {
        let (name, limit) = part.split_once('=')?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name)?;
        Some((kind, limit.parse().ok()?))
    });
    Some((terminal, limits.collect::<Option<_>>()?))
}

/// Parses text as limits, and its halves as the kernel's lists of control
/// groups.
#[cfg(fuzzing)]
pub(crate) fn fuzz(text: &str) {
    if let Some((false, limits)) = parse(text) {
        assert_eq!(parse(&specify(&limits)), Some((false, limits)));
    }
    let (groups, mounts) = text.split_once('\0').unwrap_or((text, text));
    cgroup::fuzz(groups, mounts);
}
