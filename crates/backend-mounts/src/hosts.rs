//! The directories on the host: finds, compares and creates them.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use backend_core::{Error, ErrorKind, Quoted, Result};

use crate::mount::{Mode, Mount};

/// Creates the error for a mount that cannot be used. It is meant for the author of the
/// configuration, so it names the host path.
fn unusable(mount: &Mount, problem: &str) -> Error {
    let host = Quoted::new(&mount.host_path.to_string_lossy());
    let point = &mount.mount_point;
    let message = format!("the mount '{point}' cannot use {host}: {problem}");
    Error::new(ErrorKind::Config, message)
}

fn failed(mount: &Mount, source: io::Error) -> Error {
    let problem = format!("{source}; give it a directory that can be opened");
    unusable(mount, &problem).with_source(source)
}

/// Returns the mount with an absolute host path, in which links are resolved as far as
/// the path exists.
pub(crate) fn resolved(mount: &Mount, base: Option<&Path>) -> Result<Mount> {
    let host = match base {
        Some(base) => base.join(&mount.host_path),
        None => mount.host_path.clone(),
    };
    let host = std::path::absolute(host).map_err(|source| failed(mount, source))?;
    let mut mount = mount.clone();
    mount.host_path = without_links(&mount, &host)?;
    Ok(mount)
}

/// Resolves the part of `host` that exists, and keeps the rest.
fn without_links(mount: &Mount, host: &Path) -> Result<PathBuf> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut existing = host;
    loop {
        match existing.canonicalize() {
            Ok(found) => {
                let rest = missing.iter().rev();
                return Ok(rest.fold(found, |path, name| path.join(name)));
            }
            // A dangling link is not a directory that can be created.
            Err(source) if source.kind() == io::ErrorKind::NotFound && !existing.is_symlink() => {
                let last = existing.components().next_back();
                let (Some(Component::Normal(name)), Some(parent)) = (last, existing.parent())
                else {
                    return Err(unusable(
                        mount,
                        "there is a '..' beneath a directory that is missing; write the path without it",
                    ));
                };
                missing.push(name.to_owned());
                existing = parent;
            }
            Err(source) => return Err(failed(mount, source)),
        }
    }
}

/// Refuses mounts that share files, whatever their names. A bind mount or a
/// case-insensitive file system can give one directory two names.
pub(crate) fn refuse_overlap(mounts: &[Mount]) -> Result<()> {
    let mut known: Vec<(&Mount, Lineage)> = Vec::new();
    for mount in mounts {
        let line = Lineage::of(mount)?;
        for (other, other_line) in &known {
            if line.covers(other_line) || other_line.covers(&line) {
                let host = Quoted::new(&other.host_path.to_string_lossy());
                let problem = format!(
                    "the mount '{}' already uses the same files through {host}; give each mount its own directory",
                    other.mount_point
                );
                return Err(unusable(mount, &problem));
            }
        }
        known.push((mount, line));
    }
    Ok(())
}

/// Identifies a directory independently of its name.
type Identity = (u64, u64);

/// A directory and its ancestors.
struct Lineage {
    /// `None` if the directory does not exist yet. Names are compared elsewhere.
    own: Option<Identity>,
    all: Vec<Identity>,
}

impl Lineage {
    fn of(mount: &Mount) -> Result<Self> {
        let mut all = Vec::new();
        let mut own = None;
        for directory in mount.host_path.ancestors() {
            match directory.metadata() {
                Ok(found) => {
                    let identity = (found.dev(), found.ino());
                    if directory == mount.host_path {
                        own = Some(identity);
                    }
                    all.push(identity);
                }
                Err(source) if source.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(failed(mount, source)),
            }
        }
        Ok(Self { own, all })
    }

    /// Returns whether `other` is this directory or is inside it.
    fn covers(&self, other: &Self) -> bool {
        self.own.is_some_and(|own| other.all.contains(&own))
    }
}

/// Makes sure that the directory exists. A writable one is created. A read-only one is
/// created only on request, because a mistyped name would leave an empty directory
/// unnoticed.
pub(crate) fn ensure_exists(mount: &Mount, create_missing: bool) -> Result<()> {
    match mount.host_path.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(unusable(mount, "it is not a directory; name one")),
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            if mount.mode == Mode::Ro && !create_missing {
                return Err(unusable(
                    mount,
                    "the directory does not exist, and read-only mounts do not create it; create it or correct the path",
                ));
            }
            let made = std::fs::create_dir_all(&mount.host_path);
            made.map_err(|source| failed(mount, source))
        }
        Err(source) => Err(failed(mount, source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_directory_by_two_names_is_one() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir_all(at("a/inner")).unwrap();
        std::fs::create_dir(at("b")).unwrap();
        // Not resolved here, just as a bind mount cannot be.
        std::os::unix::fs::symlink(at("a"), at("other")).unwrap();
        let overlap = |one: &str, two: &str| {
            let mounts = [(one, "/one"), (two, "/two")];
            let mounts = mounts.map(|(name, point)| Mount::new(at(name), point).unwrap());
            refuse_overlap(&mounts).is_err()
        };
        for (one, two) in [
            ("a", "other"),
            ("other", "a/inner"),
            ("other/inner", "a"),
            ("a", "other/missing/deep"),
        ] {
            assert!(overlap(one, two) && overlap(two, one), "{one} {two}");
        }
        assert!(!overlap("a", "b") && !overlap("a/inner", "b/missing"));
        assert!(!overlap("missing", "missing-too"));
    }
}
