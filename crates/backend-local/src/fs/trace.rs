//! Resolves the paths that a command names.
//!
//! A command is not confined to the backend's directories and uses the host's
//! paths, so its paths are followed on the host, one name after the other. The
//! result is only used to judge the command. Nothing is opened.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use backend_core::{TracedPath, VPath};

use crate::fs::resolve::MAX_LINKS;
use crate::fs::rooted::RootedFs;

impl RootedFs {
    /// Resolves each of `paths` for a command that runs in `directory`.
    pub(crate) fn trace(&self, directory: &VPath, paths: &[String]) -> Vec<TracedPath> {
        let start = self.host_of(directory).unwrap_or_else(|| "/".into());
        let trace = |path: &String| match follow(&start, Path::new(path)) {
            None => TracedPath::Unknown,
            Some(host) => match self.shown(&host) {
                None => TracedPath::Outside(host.to_string_lossy().into_owned()),
                Some(Ok(path)) => TracedPath::Inside(path),
                Some(Err(_)) => TracedPath::Unknown,
            },
        };
        paths.iter().map(trace).collect()
    }
}

/// Returns the host path without links, or `None` if there are too many.
fn follow(directory: &Path, path: &Path) -> Option<PathBuf> {
    let mut at = PathBuf::from("/");
    let mut left = Vec::new();
    put(&mut left, path);
    let mut links = 0;
    while let Some(name) = left.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let Some(target) = link_target(&at, &name, directory) else {
            at.push(name);
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return None;
        }
        if target.is_absolute() {
            at = "/".into();
        }
        put(&mut left, &target);
    }
    Some(at)
}

/// Prepends a path to the remaining names.
fn put(left: &mut Vec<OsString>, path: &Path) {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    left.extend(names);
}

/// Returns the target of a link. Links in `/proc` and `/dev` that depend on the
/// process are resolved for the command, which runs in `directory`, or kept.
fn link_target(at: &Path, name: &OsStr, directory: &Path) -> Option<PathBuf> {
    let above: Vec<_> = at.iter().skip(1).filter_map(|name| name.to_str()).collect();
    match (above.as_slice(), name.to_str()) {
        (["proc"], Some("self" | "thread-self")) => None,
        (["dev"], Some("fd" | "stdin" | "stdout" | "stderr")) => None,
        (["proc", "self" | "thread-self", ..], Some("cwd")) => Some(directory.to_owned()),
        (["proc", "self" | "thread-self", ..], Some("root")) => Some("/".into()),
        (["proc", "self" | "thread-self", ..], _) => None,
        _ => std::fs::read_link(at.join(name)).ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_as_the_command_would() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("a/b", root.join("short")).unwrap();
        symlink(&root, root.join("a/up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("/proc/self/cwd/a", root.join("here")).unwrap();
        let leads = |path: &str| {
            let found = follow(&root, &root.join(path));
            found.map(|found| match found.strip_prefix(&root) {
                Ok(inside) => inside.display().to_string(),
                Err(_) => found.display().to_string(),
            })
        };
        for (path, end) in [
            ("a/b/new", "a/b/new"),
            ("short/x", "a/b/x"),
            ("short/../x", "a/x"),
            ("a/up/a/up/short", "a/b"),
            ("here/b", "a/b"),
            ("/proc/self/cwd/a/./b", "a/b"),
            ("/proc/thread-self/root/etc/../bin/./x", "/bin/x"),
        ] {
            let end = match end {
                // The result depends on the machine.
                "/bin/x" => follow(&root, Path::new("/bin/x")).map(|end| end.display().to_string()),
                end => Some(end.to_owned()),
            };
            assert_eq!(leads(path), end, "{path}");
        }
        assert_eq!(leads("loop/x"), None);
    }
}
