//! Finding programs: the supervisor and the shell.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use backend_core::{Error, ErrorKind, Result};

const PROGRAM: &str = "agentbox-supervisor";

/// The program that supervises commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervisor {
    /// This program, if it calls [`crate::supervisor::run_if_asked`]; otherwise
    /// the program `agentbox-supervisor` next to it; otherwise none.
    #[default]
    Auto,
    /// The program at this path.
    Program(PathBuf),
    /// None. Commands are ended from outside, which is best effort: a process
    /// that leaves its group, its session and its parent and drops its
    /// environment survives, and so does everything if this process is killed.
    None,
}

impl Supervisor {
    /// Returns the program that the environment names: `AGENTBOX_SUPERVISOR`,
    /// else `agentbox-supervisor` in `PATH`, else [`Supervisor::Auto`].
    pub fn locate_from_env() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "reading the environment is what this function is for"
        )]
        let (named, path) = (
            std::env::var_os("AGENTBOX_SUPERVISOR"),
            std::env::var_os("PATH"),
        );
        match named.filter(|named| !named.is_empty()) {
            Some(named) => Self::Program(named.into()),
            None => search(OsStr::new(PROGRAM), path.as_deref()).map_or(Self::Auto, Self::Program),
        }
    }
}

/// A supervisor to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Whether the caller named it.
    pub(crate) explicit: bool,
}

/// Returns the supervisor to start, if there is one.
pub(crate) fn supervisor(wanted: &Supervisor) -> Result<Option<Program>> {
    let (path, explicit) = match wanted {
        Supervisor::None => return Ok(None),
        Supervisor::Program(path) if is_program(path) => (Some(path.clone()), true),
        Supervisor::Program(path) => {
            return Err(Error::new(
                ErrorKind::Config,
                format!(
                    "the supervisor {} is not a program; build agentbox-supervisor and give its path",
                    path.display()
                ),
            ));
        }
        // Works even if the file was replaced.
        Supervisor::Auto if crate::supervisor::is_armed() => (Some("/proc/self/exe".into()), false),
        Supervisor::Auto => (beside_this_program(), false),
    };
    Ok(path.map(|path| Program { path, explicit }))
}

fn beside_this_program() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    is_program(&path).then_some(path)
}

pub(crate) fn shell(wanted: Option<&Path>, path: Option<&OsStr>) -> Result<PathBuf> {
    let found = match wanted {
        Some(shell) if shell.components().count() > 1 => {
            Some(shell.to_path_buf()).filter(|shell| is_program(shell))
        }
        Some(name) => search(name.as_os_str(), path),
        None => Some(PathBuf::from("/bin/sh"))
            .filter(|shell| is_program(shell))
            .or_else(|| search(OsStr::new("sh"), path)),
    };
    found.ok_or_else(|| missing_shell(wanted.unwrap_or(Path::new("/bin/sh"))))
}

/// The error for a command whose shell does not exist.
pub(crate) fn missing_shell(shell: &Path) -> Error {
    Error::unavailable(format!(
        "the shell {} is not there or cannot be run, and commands need one; install it, choose another with `Commands::shell` or, in a container, use an image that has one",
        shell.display()
    ))
}

fn search(name: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|candidate| is_program(candidate))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_executable_files() {
        assert!(is_program(Path::new("/bin/sh")));
        assert!(!is_program(Path::new("/etc/passwd")));
        assert!(!is_program(Path::new("/bin")));
    }

    #[test]
    fn a_shell_is_a_path_or_a_name() {
        let path = Some(OsStr::new("relative::/bin"));
        assert_eq!(shell(None, None).unwrap(), Path::new("/bin/sh"));
        assert_eq!(
            shell(Some(Path::new("sh")), path).unwrap(),
            Path::new("/bin/sh")
        );
        for missing in ["/bin/nothing", "nothing", "../bin/nothing"] {
            let error = shell(Some(Path::new(missing)), path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.message().contains(missing), "{error}");
        }
    }

    #[test]
    fn a_supervisor_that_is_named_must_be_there() {
        let wanted = Supervisor::Program("/nothing/here".into());
        let error = supervisor(&wanted).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert_eq!(supervisor(&Supervisor::None).unwrap(), None);
        let named = supervisor(&Supervisor::Program("/bin/sh".into())).unwrap();
        assert!(named.unwrap().explicit);
    }
}
