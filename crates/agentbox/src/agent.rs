//! The agents that go into containers: where they are looked for, and where
//! `agentbox agent install` puts them.

mod embedded;

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use sandbox_wire::agent::{AgentBinary, PROGRAM, VARIABLE};

use crate::exit::Failure;
use crate::system::{self, holder};

/// The command that builds an agent and installs it where this program looks.
pub(crate) const INSTALL: &str = "agentbox agent install";

/// The next step where there is no place for agents.
pub(crate) const NO_DIRECTORY: &str = match system::TELLS_HOLDERS {
    true => "this user has no home; set HOME or XDG_DATA_HOME, or give --dir",
    false => {
        "who else could replace an agent is not told here; give --dir, and name the agent there \
         with SANDBOX_AGENT"
    }
};

/// Agents of other versions are refused by the handshake.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The agents that there are, at most one for each processor. Nothing outranks the
/// one that `SANDBOX_AGENT` names; those that were installed for this version or that
/// this program carries along come before what lies beside it or in `PATH`, which may
/// be of another version.
pub(crate) fn all() -> Result<Vec<AgentBinary>, Failure> {
    let located = AgentBinary::locate_from_env()?;
    if system::variable(VARIABLE).is_some() {
        return Ok(Vec::from_iter(located));
    }
    let mut found = installed();
    for agent in embedded::agents().into_iter().chain(located) {
        if found.iter().all(|other| other.arch() != agent.arch()) {
            found.push(agent);
        }
    }
    Ok(found)
}

/// Where agents of this version are installed; nowhere for a user without a home.
pub(crate) fn directory() -> Option<PathBuf> {
    Some(
        own_directory("XDG_DATA_HOME", ".local/share")?
            .join("agents")
            .join(VERSION),
    )
}

/// The name of an installed agent: a directory can hold one for each processor.
pub(crate) fn file_name(arch: &str) -> String {
    format!("{PROGRAM}-{arch}")
}

fn installed() -> Vec<AgentBinary> {
    // Neither a program of another user's nor one that they could replace.
    let is_safe = |path: &Path| {
        let found = std::fs::symlink_metadata(path);
        found.is_ok_and(|found| is_own(&found) && (found.is_dir() || found.is_file()))
    };
    let place = directory().filter(|directory| {
        directory.ancestors().take(3).all(is_safe) && shared_above(directory).is_ok()
    });
    let entries = place.and_then(|directory| std::fs::read_dir(directory).ok());
    let mut agents: Vec<_> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let agent = AgentBinary::new(Some(&path).filter(|path| is_safe(path))?).ok()?;
            let name = file_name(agent.arch());
            (path.file_name() == Some(name.as_ref())).then_some(agent)
        })
        .collect();
    agents.sort_unstable_by_key(AgentBinary::arch);
    agents
}

/// Whether it is ours, and other users cannot write to it.
fn is_own(found: &Metadata) -> bool {
    let holder = holder(found);
    holder.is_own && holder.mode & 0o022 == 0
}

/// Fails if another user could put something else in the place of a directory: all
/// those above it are ours or the administrator's, and what others can write to keeps
/// them from what is not theirs.
fn shared_above(directory: &Path) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    for above in directory.canonicalize()?.ancestors().skip(1) {
        let holder = holder(&std::fs::metadata(above)?);
        let is_theirs = !holder.is_own && !holder.is_root;
        let is_open = holder.mode & 0o022 != 0 && holder.mode & STICKY == 0;
        if is_theirs || is_open {
            let text = format!("others can write to {}", above.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    Ok(())
}

/// The processor of this machine, as images name it.
pub(crate) fn host_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// This program's directory below one that a variable names, or below the home. Programs
/// that others could have put there must not run: where that is not told, there is none.
fn own_directory(name: &str, usual: &str) -> Option<PathBuf> {
    if !system::TELLS_HOLDERS {
        return None;
    }
    let path =
        |name| Some(PathBuf::from(system::variable(name)?)).filter(|path| path.is_absolute());
    let base = path(name).or_else(|| Some(path("HOME")?.join(usual)))?;
    Some(base.join("agentbox"))
}

/// Writes a program whole or not at all, for everybody to run: in a container,
/// another user does.
pub(crate) fn write_program(
    directory: &Path,
    name: &str,
    content: &mut dyn io::Read,
) -> io::Result<PathBuf> {
    let path = directory.join(name);
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    io::copy(content, &mut file)?;
    system::make_executable(file.as_file())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(path)
}
