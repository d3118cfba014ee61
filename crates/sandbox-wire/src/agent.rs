//! Finding the agent: the program that is placed in a sandbox.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use backend_core::ops::ContentHash;
use backend_core::{Error, ErrorKind, Result};
use bytes::Bytes;

mod elf;
mod loaded;

pub use loaded::LoadedAgent;

/// The agent's file name.
pub const PROGRAM: &str = "sandbox-agent";

/// The environment variable with the agent's path.
pub const VARIABLE: &str = "SANDBOX_AGENT";

/// The size of the largest agent that is copied into a sandbox.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The advice in errors about a missing or unusable agent.
const NEXT_STEP: &str = "`agentbox agent install` makes one";

/// The agent on this machine, ready to be copied into a sandbox.
///
/// ```
/// use sandbox_wire::agent::AgentBinary;
///
/// // Wherever it is; without one, sandboxes work in portable mode.
/// if let Some(agent) = AgentBinary::locate_from_env()? {
///     println!("{} for {}", agent.path().display(), agent.arch());
/// }
/// # Ok::<_, backend_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentBinary {
    path: PathBuf,
    arch: &'static str,
}

impl AgentBinary {
    /// Returns the agent at this path, which is examined but not run.
    ///
    /// # Errors
    ///
    /// `Config` if it is not a program, or needs libraries that a sandbox may
    /// not have.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self> {
        Self::examined(path.into())
            .map_err(|problem| Error::new(ErrorKind::Config, format!("{problem}; {NEXT_STEP}")))
    }

    fn examined(path: PathBuf) -> std::result::Result<Self, String> {
        let path = std::path::absolute(&path).unwrap_or(path);
        let arch = examine(&path)
            .map_err(|problem| format!("{} is not an agent: {problem}", path.display()))?;
        Ok(Self { path, arch })
    }

    /// Looks next to this program. Returns `None` if there is no usable agent.
    pub fn locate() -> Option<Self> {
        find(None, beside_this_program(), None).ok().flatten()
    }

    /// Looks at the path in `SANDBOX_AGENT`, next to this program, and in
    /// `PATH`. A file of that name that is not an agent is skipped, unless the
    /// variable names it.
    ///
    /// # Errors
    ///
    /// `Config` if `SANDBOX_AGENT` names something else.
    pub fn locate_from_env() -> Result<Option<Self>> {
        #[expect(
            clippy::disallowed_methods,
            reason = "reading the environment is what this function is for"
        )]
        let (named, path) = (std::env::var_os(VARIABLE), std::env::var_os("PATH"));
        find(named, beside_this_program(), path.as_deref())
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its architecture, as images name it: `amd64`, `arm64`.
    pub fn arch(&self) -> &'static str {
        self.arch
    }

    /// Reads the program. Waits for the disk.
    ///
    /// # Errors
    ///
    /// `Config` if it is gone or has become too large since it was found.
    pub fn content(&self) -> Result<Bytes> {
        let read = || {
            let mut content = Vec::new();
            open(&self.path)?
                .take(MAX_BYTES + 1)
                .read_to_end(&mut content)?;
            if content.len() as u64 > MAX_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(Bytes::from(content))
        };
        read().map_err(|error: io::Error| {
            let shown = self.path.display();
            let message = format!("the agent {shown} cannot be read; {NEXT_STEP}");
            Error::new(ErrorKind::Config, message).with_source(error)
        })
    }

    /// Returns the hash of its content, which identifies its version and is the
    /// same for every copy. Reads the whole file, so call it once.
    ///
    /// # Errors
    ///
    /// As [`content`](Self::content).
    pub fn digest(&self) -> Result<ContentHash> {
        Ok(ContentHash::of(&self.content()?))
    }
}

/// Looks at `named`, at `beside`, and in the directories of `path`.
fn find(
    named: Option<OsString>,
    beside: Option<PathBuf>,
    path: Option<&OsStr>,
) -> Result<Option<AgentBinary>> {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        // If the variable is set, no other agent is searched for.
        let found = AgentBinary::examined(named.into());
        return found.map(Some).map_err(|problem| {
            let message = format!(
                "{VARIABLE} does not name an agent: {problem}; unset {VARIABLE}, or name an agent"
            );
            Error::new(ErrorKind::Config, message)
        });
    }
    let installed = path.into_iter().flat_map(std::env::split_paths);
    let installed = installed
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(PROGRAM));
    let mut candidates = beside
        .into_iter()
        .chain(installed)
        .filter(|candidate| candidate.is_file());
    // A developer's own build is next to the program too, and is not static.
    Ok(
        candidates.find_map(|candidate| match AgentBinary::new(candidate) {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::debug!(%error, "passed over");
                None
            }
        }),
    )
}

fn beside_this_program() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.with_file_name(PROGRAM))
}

/// Opens a regular file and nothing else. A FIFO would block.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.read(true).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a file",
        ))
    }
}

/// Returns the architecture of a program, or the reason why it cannot be the
/// agent.
fn examine(path: &Path) -> std::result::Result<&'static str, String> {
    let mut file = open(path).map_err(|error| error.to_string())?;
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !is_executable(&found) {
        return Err("it is not executable".into());
    }
    if found.len() > MAX_BYTES {
        return Err(format!("it has more than {MAX_BYTES} bytes"));
    }
    elf::examine(&mut file)
}

#[cfg(unix)]
fn is_executable(found: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    found.permissions().mode() & 0o111 != 0
}

/// Files have no executable bit here. The copy in the sandbox gets one.
#[cfg(not(unix))]
fn is_executable(_: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests;
