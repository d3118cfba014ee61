//! [`Mounts`]: a validated table of mounts.

use std::path::{Component, Path};
use std::sync::Arc;

use backend_core::{Quoted, VPath};

use crate::error::MountError;
use crate::mount::Mount;

/// A validated table of mounts: at least one mount, no two with the same mount point, no
/// two with overlapping host paths. The most specific comes first. Cloning is cheap.
///
/// Mount points may nest. The inner mount then hides its part of the outer one.
///
/// Host paths are compared as normalized text. Detecting that a link makes two of them
/// the same directory is left to the code that opens them.
///
/// ```
/// use backend_mounts::{Mount, Mounts};
///
/// let mounts = Mounts::new(vec![
///     Mount::new("/srv/data", "/data")?,
///     Mount::new("/srv/special", "/data/special")?,
/// ])?;
/// let points: Vec<_> = mounts.iter().map(|mount| mount.mount_point.as_str()).collect();
/// assert_eq!(points, ["/data/special", "/data"]);
/// assert!(Mounts::new(vec![Mount::new("a", "/x")?, Mount::new("a/b", "/y")?]).is_err());
/// # Ok::<(), backend_mounts::MountError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounts(Arc<[Mount]>);

impl Mounts {
    /// Validates mounts.
    ///
    /// # Errors
    ///
    /// [`MountError::Empty`], [`MountError::EmptyHost`], [`MountError::Duplicate`]
    /// and [`MountError::Overlap`].
    pub fn new(mut mounts: Vec<Mount>) -> Result<Self, MountError> {
        if mounts.is_empty() {
            return Err(MountError::Empty);
        }
        let host = |mount: &Mount| Quoted::new(&mount.host_path.to_string_lossy());
        if let Some(mount) = mounts.iter().find(|m| m.host_path.as_os_str().is_empty()) {
            return Err(MountError::EmptyHost(mount.mount_point.clone()));
        }
        let pairs = || {
            let rest = |at: usize| mounts.iter().skip(at + 1);
            let pair = move |(at, one)| rest(at).map(move |two| (one, two));
            mounts.iter().enumerate().flat_map(pair)
        };
        if let Some((one, two)) = pairs().find(|(one, two)| one.mount_point == two.mount_point) {
            return Err(MountError::Duplicate {
                point: one.mount_point.clone(),
                first: host(one),
                second: host(two),
            });
        }
        let overlap = |(one, two): &(&Mount, &Mount)| overlap(&one.host_path, &two.host_path);
        if let Some((one, two)) = pairs().find(overlap) {
            return Err(MountError::Overlap {
                first: one.mount_point.clone(),
                first_host: host(one),
                second: two.mount_point.clone(),
                second_host: host(two),
            });
        }
        mounts.sort_by_key(|mount| std::cmp::Reverse(mount.mount_point.as_str().len()));
        Ok(Self(mounts.into()))
    }

    /// Returns the mounts, the one with the longest mount point first.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter()
    }

    /// Returns the mount that contains `path`.
    pub fn find(&self, path: &VPath) -> Option<&Mount> {
        self.iter()
            .find(|mount| path.starts_with(&mount.mount_point))
    }

    /// Returns whether there is a mount at `path` or beneath it.
    pub(crate) fn has_mount_within(&self, path: &VPath) -> bool {
        self.iter().any(|mount| mount.mount_point.starts_with(path))
    }
}

/// A host path, normalized as text.
#[derive(PartialEq)]
struct NormalizedHost<'a> {
    /// The root and drive of an absolute path; empty for a relative one.
    root: Vec<Component<'a>>,
    /// The number of leading `..` components.
    up: usize,
    names: Vec<Component<'a>>,
}

fn normalized(path: &Path) -> NormalizedHost<'_> {
    let mut normalized = NormalizedHost {
        root: Vec::new(),
        up: 0,
        names: Vec::new(),
    };
    for component in path.components() {
        match component {
            Component::Prefix(_) | Component::RootDir => normalized.root.push(component),
            Component::CurDir => {}
            Component::ParentDir => {
                if normalized.names.pop().is_none() && normalized.root.is_empty() {
                    normalized.up += 1;
                }
            }
            Component::Normal(_) => normalized.names.push(component),
        }
    }
    normalized
}

/// Returns whether one path is equal to the other or above it, judging by the text. A
/// relative and an absolute path cannot be compared and do not overlap.
fn overlap(one: &Path, two: &Path) -> bool {
    let (one, two) = (normalized(one), normalized(two));
    let covers = |high: &NormalizedHost<'_>, low: &NormalizedHost<'_>| {
        high.root == low.root
            && if high.up == low.up {
                low.names.starts_with(&high.names)
            } else {
                high.up > low.up && high.names.is_empty()
            }
    };
    covers(&one, &two) || covers(&two, &one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_paths_overlap_by_component() {
        for (one, two) in [
            ("/a", "/a"),
            ("/a", "/a/b"),
            ("/a/b/c", "/a"),
            ("/", "/a"),
            ("a", "./a/"),
            ("a/x/../b", "a/b/c"),
            ("/a/../..", "/b"),
            (".", "a"),
            ("..", "."),
            ("../..", "../a"),
            ("../a", "../a/b"),
        ] {
            assert!(overlap(Path::new(one), Path::new(two)), "{one} {two}");
            assert!(overlap(Path::new(two), Path::new(one)), "{two} {one}");
        }
        for (one, two) in [
            ("/a", "/ab"),
            ("/a", "/A"),
            ("a", "b"),
            ("a", "/a"),
            ("../a", "a"),
            ("a/..b", "a/c"),
        ] {
            assert!(!overlap(Path::new(one), Path::new(two)), "{one} {two}");
        }
    }

    #[test]
    fn mounts_that_do_not_fit_are_named() {
        let mount = |host: &str, point: &str| Mount::new(host, point).unwrap();
        let error = |mounts| Mounts::new(mounts).unwrap_err().to_string();
        assert_eq!(error(vec![]), "there is no mount; write at least one");
        let twice = error(vec![mount("/a", "/x"), mount("/b", "/y/../x/")]);
        assert!(twice.contains("'/x', for '/a' and for '/b'"), "{twice}");
        let nested = error(vec![mount("/a", "/x"), mount("/a/b", "/y")]);
        assert!(
            nested.contains("'/x' maps to '/a' and '/y' maps to '/a/b'"),
            "{nested}"
        );
        let empty = error(vec![mount("", "/x")]);
        assert!(empty.contains("'/x' has an empty host path"), "{empty}");
    }

    #[test]
    fn the_longest_point_comes_first_and_equals_keep_their_order() {
        let mounts = ["/bb", "/", "/aa", "/bb/c"];
        let mounts = mounts.map(|point| Mount::new(format!("/h/{point}x"), point).unwrap());
        let mounts = Mounts::new(mounts.to_vec()).unwrap();
        let points: Vec<_> = mounts.iter().map(|m| m.mount_point.as_str()).collect();
        assert_eq!(points, ["/bb/c", "/bb", "/aa", "/"]);
        let find = |path| {
            let mount = mounts.find(&VPath::parse(path).unwrap());
            mount.map(|mount| mount.mount_point.as_str())
        };
        assert_eq!(find("/bb/c/x"), Some("/bb/c"));
        assert_eq!(find("/bb/cc"), Some("/bb"));
        assert_eq!(find("/BB"), Some("/"));
        assert_eq!(find("/bbb"), Some("/"));
    }
}
