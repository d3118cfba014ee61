//! `local:DIR`: a directory of this machine, with commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend_core::ops::StopMode;
use backend_core::{ErrorKind, VPath};
use backend_local::{
    Commands, Confinement, Environment, Landlock, Limits, LocalBackend, NameSpace,
};
use serde::Deserialize;
use sessions::LocalEngine;

use super::open_backend::{HostDir, OpenBackend};
use super::spec::{BackendSpec, check_directory};
use crate::exit::{Failure, environment, usage};
use crate::output;

/// The table `[local]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    /// Directories besides its own. If there are any, paths are those of this machine.
    allowed_directories: Vec<PathBuf>,
    /// Whether commands can run; `true` by default.
    commands: Option<bool>,
    read_only: bool,
    shell: Option<String>,
    /// The confinement of commands. Without a word about it there is none, except for
    /// those of sessions.
    confinement: Option<ConfinementKind>,
    /// Whether confined commands may use the network.
    network: bool,
    /// Additional paths that confined commands may read.
    read: Vec<String>,
    /// Additional paths that confined commands may change.
    write: Vec<String>,
    /// The variables that commands inherit.
    environment: InheritedEnvironment,
    /// Variables that commands inherit even if they look secret or would not be passed.
    variables: Vec<String>,
    cpu_seconds: Option<u64>,
    file_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    processes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ConfinementKind {
    Off,
    Landlock,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum InheritedEnvironment {
    #[default]
    Inherit,
    Minimal,
}

impl Settings {
    fn has_commands(&self) -> bool {
        self.commands.unwrap_or(true)
    }

    fn is_confined(&self) -> bool {
        self.confinement == Some(ConfinementKind::Landlock)
    }

    fn commands(&self, views: bool) -> Result<Commands, Failure> {
        let environment = match self.environment {
            InheritedEnvironment::Inherit => Environment::inherit(),
            InheritedEnvironment::Minimal => Environment::empty(),
        };
        let variables = self.variables.iter();
        let environment = variables.fold(environment, |all, name| all.allow(name));
        let mut limits = Limits::default();
        apply! { limits,
            cpu_seconds: self.cpu_seconds,
            file_bytes: self.file_bytes,
            memory_bytes: self.memory_bytes,
            processes: self.processes,
        }
        let mut commands = Commands::new()
            .environment(environment)
            .limits(limits)
            .confinement(self.confinement(views)?);
        apply! { commands, shell: &self.shell }
        Ok(commands)
    }

    /// Returns the name space of paths; that of a part of a tree is the tree's.
    fn names(&self, part: bool) -> Result<NameSpace, Failure> {
        let allowed = self.allowed_directories.clone();
        match (allowed.is_empty(), part) {
            (true, _) => Ok(NameSpace::Virtual),
            (false, false) => Ok(NameSpace::Host { allowed }),
            (false, true) => Err(Failure::usage(
                "allowed_directories give paths of this machine, which a part of a tree cannot have; \
                 make each of them a part of its own",
            )),
        }
    }

    /// Refuses directories that are not there.
    fn check_allowed(&self) -> Result<(), Failure> {
        let mut allowed = self.allowed_directories.iter();
        allowed.try_for_each(|directory| check_directory(directory))
    }

    /// Returns its own directory and the others that it reaches.
    fn directories<'a>(&'a self, own: &'a Path) -> impl Iterator<Item = &'a Path> {
        let allowed = self.allowed_directories.iter();
        allowed.map(PathBuf::as_path).chain([own])
    }

    /// Returns the directories shown, and where.
    fn host_dirs(&self, own: &Path) -> Vec<HostDir> {
        let is_virtual = self.allowed_directories.is_empty();
        let show = |directory: &Path| {
            let host = directory.canonicalize().ok()?;
            let at = if is_virtual {
                VPath::root()
            } else {
                VPath::parse(host.to_str()?).ok()?
            };
            let commands = self.has_commands();
            Some(HostDir { host, at, commands })
        };
        self.directories(own).filter_map(show).collect()
    }

    /// Returns the directories in which confined commands can change everything.
    fn confined(&self, own: &Path) -> Vec<PathBuf> {
        if !self.is_confined() || !self.has_commands() {
            return Vec::new();
        }
        let own = self.directories(own).filter(|_| !self.read_only);
        let all = own.chain(self.write.iter().map(Path::new));
        all.filter_map(|directory| directory.canonicalize().ok())
            .collect()
    }

    fn confinement(&self, views: bool) -> Result<Confinement, Failure> {
        if !self.is_confined() {
            if self.network || !self.read.is_empty() || !self.write.is_empty() {
                // The user probably believes that everything else is out of reach.
                return Err(Failure::usage(
                    "[local] has network, read or write, which count for confined commands only; \
                     set confinement = \"landlock\" or remove them",
                ));
            }
            return Ok(Confinement::Off);
        }
        let landlock = landlock(views).network(self.network);
        let landlock = self.read.iter().fold(landlock, |all, path| all.read(path));
        let landlock = self
            .write
            .iter()
            .fold(landlock, |all, path| all.write(path));
        Ok(Confinement::Landlock(landlock))
    }
}

/// Returns the confinement of commands, with or without keeping denied paths from them.
pub(crate) fn landlock(views: bool) -> Landlock {
    Landlock::new().views(views)
}

pub(super) fn check(spec: &BackendSpec) -> Result<(), Failure> {
    let settings: Settings = spec.settings()?;
    drop(settings.commands(spec.views)?);
    settings.names(spec.is_part())?;
    spec.given_directory()?;
    settings.check_allowed()
}

pub(super) fn open(spec: &BackendSpec) -> Result<OpenBackend, Failure> {
    let settings: Settings = spec.settings()?;
    let directory = spec.directory()?.unwrap_or(Path::new("."));
    settings.check_allowed()?;
    if !settings.allowed_directories.is_empty() {
        settings
            .directories(directory)
            .try_for_each(check_spelling)?;
    }
    let backend = LocalBackend::builder(directory)
        .names(settings.names(spec.is_part())?)
        .read_only(settings.read_only)
        .write_inline(spec.one_client)
        .enable_execute(settings.has_commands())
        .commands(settings.commands(spec.views)?)
        .open()?;
    let mut open = OpenBackend::new(Arc::new(backend), Some(StopMode::Keep));
    open.host_dirs = settings.host_dirs(directory);
    open.confined = settings.confined(directory);
    Ok(open)
}

/// Opens the directory that holds those of sessions, for a server. Commands are confined
/// unless the settings say otherwise: those of one session could read the files of another.
pub(super) fn serving_engine(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<LocalEngine, Failure> {
    let root = session_root(spec, root)?;
    let mut settings = session_settings(spec)?;
    let is_default = settings.confinement.is_none();
    let confinement = settings
        .confinement
        .get_or_insert(ConfinementKind::Landlock);
    if *confinement == ConfinementKind::Off {
        output::note(
            "agentbox: commands are not confined, so those of one session can read and change the \
             files of another",
        );
    }
    let commands = settings.commands(spec.views)?;
    let opened = LocalEngine::builder(root).commands(commands).open();
    opened.map_err(|error| {
        if !is_default || error.kind() != ErrorKind::Unsupported {
            return error.into();
        }
        environment!(
            "commands of sessions cannot be confined: {}; use --backend docker:IMAGE, or set \
             confinement = \"off\" in [local] if the sessions need not be kept apart",
            error.chain()
        )
    })
}

/// Opens the directory that holds those of sessions, to manage them.
pub(super) fn session_engine(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<LocalEngine, Failure> {
    Ok(LocalEngine::open(session_root(spec, root)?)?)
}

/// Returns the settings, if sessions can have all of them.
fn session_settings(spec: &BackendSpec) -> Result<Settings, Failure> {
    let settings: Settings = spec.settings()?;
    let other = [
        (
            !settings.allowed_directories.is_empty(),
            "allowed_directories; leave them out",
        ),
        (
            !settings.has_commands(),
            "commands = false; set include_execute = false in [options]",
        ),
        (settings.read_only, "read_only; give --permissions readonly"),
    ];
    if let Some((_, what)) = other.into_iter().find(|(is_set, _)| *is_set) {
        return Err(usage!(
            "[local] has a setting that sessions do not have: {what}"
        ));
    }
    Ok(settings)
}

/// Checks that a server can have sessions, without opening their directory.
pub(super) fn check_sessions(spec: &BackendSpec, root: Option<&Path>) -> Result<(), Failure> {
    session_root(spec, root)?;
    session_settings(spec).map(drop)
}

fn session_root<'r>(spec: &BackendSpec, root: Option<&'r Path>) -> Result<&'r Path, Failure> {
    // Also without a root: with one, it would still be wrong.
    if spec.argument.is_some() && !spec.implied {
        return Err(Failure::usage(
            "local:DIR is one directory for all, and each session has its own; write --backend \
             local --workspaces DIR, or --backend docker:IMAGE, or leave out --workspaces and \
             names of tokens",
        ));
    }
    root.ok_or_else(|| {
        Failure::usage(
            "sessions have directories of their own; name the one that holds them with \
             --workspaces DIR",
        )
    })
}

/// Refuses a path through a link: rules match one path of a file and miss the other.
fn check_spelling(directory: &Path) -> Result<(), Failure> {
    let (Ok(given), Ok(canonical)) = (std::path::absolute(directory), directory.canonicalize())
    else {
        // Opening it reports the error.
        return Ok(());
    };
    let given: PathBuf = given.components().collect();
    let climbs = given
        .components()
        .any(|part| part == std::path::Component::ParentDir);
    if climbs || given == canonical {
        return Ok(());
    }
    Err(usage!(
        "{} leads through a link, and rules would not know its files by both paths; give {}",
        given.display(),
        canonical.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::kind::Kind;

    #[test]
    fn every_key_is_read_and_no_other() {
        let table = r#"
            allowed_directories = ["/srv"]
            commands = true
            confinement = "landlock"
            cpu_seconds = 1
            environment = "minimal"
            file_bytes = 1
            memory_bytes = 1
            network = true
            processes = 1
            read = ["/usr"]
            read_only = true
            shell = "/bin/sh"
            variables = ["A"]
            write = []
        "#;
        let settings: Settings = toml::from_str(table).unwrap();
        assert!(settings.commands(false).is_ok());
        let table: toml::Table = toml::from_str(table).unwrap();
        assert!(table.keys().eq(Kind::Local.keys()), "{table}");
        assert!(toml::from_str::<Settings>("confined = true").is_err());
    }
}
