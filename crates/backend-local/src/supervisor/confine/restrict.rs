//! Applies a policy, irreversibly, to the calling thread and everything it
//! starts.
//!
//! Four things are given up, in this order: gaining privileges by running a
//! program, capabilities, everything Landlock can refuse, and the system calls
//! that bypass it. The supervisor's other threads stay unconfined. They share
//! memory with this one, which is confined, so no confined process may touch
//! this one: it is made undumpable, and the filter refuses every way to trace
//! or signal this thread.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::BpfProgram;

use super::policy::{AllowedPath, Policy};
use super::probe::Canaries;
use super::seccomp::{self, Filters};
use super::system;

/// The first ABI that covers truncation, TCP, device controls, signals and
/// abstract sockets. Linux 6.12.
const NEEDED: ABI = ABI::V6;

/// A policy of which everything is opened and compiled, for many threads.
#[derive(Debug)]
pub(crate) struct Prepared {
    policy: Policy,
    rules: RulesetCreated,
    filters: Filters,
}

impl Prepared {
    pub(crate) fn new(policy: Policy) -> Result<Self, String> {
        Ok(Self {
            rules: rules(&policy)?,
            filters: Filters::new(policy.network)?,
            policy,
        })
    }

    /// Confines the calling thread and everything it starts from now on, and checks
    /// that it is confined. If this fails, the thread must not start anything.
    pub(crate) fn restrict_and_probe(&self) -> Result<(), String> {
        let canaries = Canaries::place(&self.policy)?;
        let entered = self.restrict();
        let entered = entered.and_then(|()| canaries.probe(&self.policy));
        canaries.remove();
        entered
    }

    /// As [`restrict_and_probe`](Self::restrict_and_probe), for a thread after the
    /// first one: that has shown that the policy holds here.
    pub(crate) fn restrict(&self) -> Result<(), String> {
        let rules = self.rules.try_clone();
        let rules = rules.map_err(|error| format!("cannot use the landlock rules: {error}"))?;
        enter(rules, &self.filters.for_thread(rustix::thread::gettid()))
    }

    /// Returns the directory for temporary files.
    pub(crate) fn temporary(&self) -> &Path {
        self.policy.temporary.path()
    }
}

/// Creates a ruleset that refuses everything.
pub(super) fn ruleset(network: bool) -> Result<RulesetCreated, String> {
    let build = || {
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(NEEDED))?
            .scope(Scope::from_all(NEEDED))?;
        if !network {
            rules = rules.handle_access(AccessNet::from_all(NEEDED))?;
        }
        rules.create()
    };
    build().map_err(|error: landlock::RulesetError| format!("landlock: {error}"))
}

/// Creates the ruleset of `policy`. All paths are opened here, before the
/// confinement.
fn rules(policy: &Policy) -> Result<RulesetCreated, String> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let run = read | AccessFs::Execute;
    // Creating device nodes needs a capability and controlling them needs a
    // right. Commands need neither in a working directory.
    let write =
        AccessFs::from_all(NEEDED) & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev});
    let device = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | IoctlDev});

    let mut rules = ruleset(policy.network)?;
    // This program runs again before each command that has limits.
    let own = Path::new("/proc/self/exe");
    let program = open(own, OFlags::empty())
        .map_err(|error| format!("cannot open the supervisor's program: {error}"))?;
    rules = allow(rules, &program, run, own)?;
    for place in &policy.read {
        rules = allow(rules, &open_allowed(place)?, run, place.path())?;
    }
    for place in &policy.write {
        rules = allow(rules, &open_allowed(place)?, write, place.path())?;
    }
    if policy.system {
        let programs = system::PROGRAMS.split(' ').map(|path| (path.into(), run));
        let files = system::files().into_iter().map(|path| (path, read));
        let devices = system::DEVICES.split(' ').map(|path| (path.into(), device));
        for (path, rights) in programs.chain(files).chain(devices) {
            // Paths that this host does not have need no rule.
            if let Ok(fd) = open(&path, OFlags::empty()) {
                rules = allow(rules, &fd, rights, &path)?;
            }
        }
    }
    Ok(rules)
}

fn allow(
    rules: RulesetCreated,
    fd: &OwnedFd,
    rights: BitFlags<AccessFs>,
    path: &Path,
) -> Result<RulesetCreated, String> {
    let failed =
        |error: &dyn std::fmt::Display| format!("cannot allow {}: {error}", path.display());
    let stat = rustix::fs::fstat(fd).map_err(|error| failed(&error))?;
    let rights = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => rights,
        _ => rights & AccessFs::from_file(NEEDED),
    };
    rules
        .add_rule(PathBeneath::new(fd, rights))
        .map_err(|error| failed(&error))
}

fn open(path: &Path, more: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC | more, Mode::empty())
}

/// Opens the file or directory that the host saw, and nothing that replaced it.
fn open_allowed(place: &AllowedPath) -> Result<OwnedFd, String> {
    let shown = place.path().display();
    // Inode numbers are reused, so the kind is compared too.
    let kind = if place.directory {
        OFlags::NOFOLLOW | OFlags::DIRECTORY
    } else {
        OFlags::NOFOLLOW
    };
    let fd = open(place.path(), kind)
        .map_err(|error| format!("cannot open {shown}: {error}; open the backend again"))?;
    let stat =
        rustix::fs::fstat(&fd).map_err(|error| format!("cannot look at {shown}: {error}"))?;
    if (stat.st_dev, stat.st_ino) != (place.device, place.inode) {
        return Err(format!(
            "{shown} is not what it was when the backend was opened; open the backend again"
        ));
    }
    Ok(fd)
}

fn enter(rules: RulesetCreated, filters: &[BpfProgram]) -> Result<(), String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("cannot {what}: {error}");
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| failed("make the supervisor undumpable", &error))?;
    rustix::thread::set_no_new_privs(true).map_err(|error| failed("set no_new_privs", &error))?;
    drop_capabilities().map_err(|error| failed("drop capabilities", &error))?;
    let status = rules
        .restrict_self()
        .map_err(|error| failed("enter the landlock domain", &error))?;
    if status.ruleset != RulesetStatus::FullyEnforced || !status.no_new_privs {
        return Err(format!(
            "landlock is only {:?} here; use Linux 6.12 or newer",
            status.ruleset
        ));
    }
    seccomp::apply(filters)
}

/// Empties every capability set. Root without capabilities is an ordinary user
/// who owns root's files.
fn drop_capabilities() -> rustix::io::Result<()> {
    use rustix::thread as t;
    // Without the right to narrow the bounding set it stays. That does no harm:
    // with no_new_privs, running a program adds nothing to an empty set.
    if t::capabilities(None)?
        .effective
        .contains(CapabilitySet::SETPCAP)
    {
        for bit in 0..u64::BITS {
            let one = CapabilitySet::from_bits_retain(1 << bit);
            match t::capability_is_in_bounding_set(one) {
                Ok(true) => t::remove_capability_from_bounding_set(one)?,
                Ok(false) => {}
                // The kernel knows no further capabilities.
                Err(_) => break,
            }
        }
    }
    t::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    t::set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}
