//! The paths that a view keeps from commands, found and kept up to date.
//!
//! Rules are patterns; a mask needs a path that exists. The directories that rules may
//! concern are walked once. Afterwards those are listed again that have changed: the
//! kernel reports it, or they are compared with what they were.

mod directory;
mod rules;
mod tree;
mod watches;

use std::collections::BTreeSet;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::Arc;

use backend_core::ops::{HardLinks, View};
use backend_core::{Error, ErrorKind, Result, VPath};
use rustix::fs::{AtFlags, FileType, Statx, StatxFlags};
use rustix::io::Errno;

use crate::fs::{Root, RootedFs, errno};
use crate::supervisor::protocol::{Entry, With};
use directory::Found;
use rules::Rules;
use tree::Tree;

/// The most files and directories that one view masks.
pub(crate) const MOST_DENIED: usize = 1_000;

/// Files that are run outside the sandbox, later and as the user: hooks of git, the
/// programs that its configuration names, hooks of husky, and tasks that an editor
/// starts with the folder. A `.git` that is a file names the directory of all that. They
/// are read-only in every view. Relative to the backend's directories and the working
/// directory.
const RUN_BY_THEMSELVES: &[&str] = &[
    ".git",
    ".git/config",
    ".git/hooks",
    ".husky",
    ".vscode/tasks.json",
];

/// Looks at files that are not where they were found.
const MOST_LOOKS: usize = 100;

/// A path to mask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied {
    /// Its host path.
    pub(crate) path: Vec<u8>,
    pub(crate) with: With,
    pub(crate) identity: Identity,
}

/// The entry that was found at a path. Another one there has no mask yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) entry: Entry,
    /// Its birth if it is a directory; otherwise its last change, which a rename is.
    /// Numbers of inodes are used again.
    time: (i64, u32),
}

impl Identity {
    fn new(found: &Statx) -> Self {
        let time = match is_directory(found) {
            true => found.stx_btime,
            false => found.stx_ctime,
        };
        Self {
            entry: Entry::new(found),
            time: (time.tv_sec, time.tv_nsec),
        }
    }
}

/// The denied paths of one view.
#[derive(Debug)]
pub(crate) struct DeniedList {
    rules: Rules,
    hard_links: HardLinks,
    /// One of each of the backend's directories.
    trees: Vec<Tree>,
    /// The paths of what runs by itself.
    own: Vec<VPath>,
    last: Last,
}

/// The last answer. It is mostly the next one, too.
#[derive(Debug, Default)]
struct Last {
    found: Vec<Denied>,
    /// The same in order.
    denied: Arc<Vec<Denied>>,
}

impl DeniedList {
    pub(crate) fn new(view: &View, fs: &RootedFs) -> Self {
        Self {
            rules: Rules::new(view),
            hard_links: view.hard_links,
            trees: Vec::new(),
            own: own_paths(fs),
            last: Last::default(),
        }
    }

    /// Returns what is denied now, in the order in which it is to be masked, to a command
    /// that is about to start. It is the same list as before if nothing has changed. May
    /// block.
    pub(crate) fn refresh(&mut self, fs: &RootedFs) -> Result<Arc<Vec<Denied>>> {
        self.refresh_with(fs, self.hard_links)
    }

    /// As [`refresh`](Self::refresh), for commands that run. Whether they run is not the
    /// question any more, so a file with another name is denied under this one.
    pub(crate) fn refresh_running(&mut self, fs: &RootedFs) -> Result<Arc<Vec<Denied>>> {
        self.refresh_with(fs, HardLinks::Accept)
    }

    fn refresh_with(&mut self, fs: &RootedFs, links: HardLinks) -> Result<Arc<Vec<Denied>>> {
        let mut trees = std::mem::take(&mut self.trees);
        trees.resize_with(fs.roots().len(), Tree::default);
        let mut found = Ok(None);
        for _ in 0..MOST_LOOKS {
            found = self.look(fs, &mut trees, links);
            if !matches!(found, Ok(None)) {
                break;
            }
        }
        self.trees = trees;
        let found = found?.ok_or_else(tree::moved)?;
        if found != self.last.found {
            self.last = Last {
                denied: Arc::new(in_order(found.clone())),
                found,
            };
        }
        Ok(Arc::clone(&self.last.denied))
    }

    /// Returns what is denied, or `None` if it is not where it was found.
    fn look(
        &self,
        fs: &RootedFs,
        trees: &mut [Tree],
        links: HardLinks,
    ) -> Result<Option<Vec<Denied>>> {
        let mut all = Listing {
            links,
            ..Listing::default()
        };
        for (root, tree) in fs.roots().iter().zip(trees) {
            tree.update(root, &self.rules, self.hard_links == HardLinks::Refuse)?;
            let host = host_path(root)?;
            for directory in tree.with_found() {
                // Its path may lead to another directory by now, with a file of that name.
                let Some(handle) = directory.open(root)? else {
                    return Ok(None);
                };
                for found in directory.entries() {
                    if found.is_link {
                        self.add_target(fs, found, &mut all)?;
                        continue;
                    }
                    match stat(&handle, &found.name)? {
                        Some(entry) => self.add(&host, found, &entry, &mut all)?,
                        None if found.is_inside => {}
                        None => return Ok(None),
                    }
                }
            }
            if all.entries.len() > MOST_DENIED {
                return Err(too_many());
            }
        }
        for path in &self.own {
            add_own(fs, path, &mut all)?;
        }
        all.finish(fs).map(Some)
    }

    fn add(&self, host: &[u8], found: &Found, entry: &Statx, all: &mut Listing) -> Result<()> {
        let is_linked = entry.stx_nlink > 1 && !is_directory(entry);
        if is_linked && all.links == HardLinks::Refuse {
            return Err(linked(&found.path));
        }
        if found.is_inside {
            return Ok(());
        }
        if found.is_anchored {
            all.pin(&found.path);
        }
        all.entries.push(Denied {
            path: join(host, found.relative.as_bytes()),
            with: found.with,
            identity: Identity::new(entry),
        });
        Ok(())
    }

    /// Adds what a denied link leads to, if it lies in the backend's directories.
    fn add_target(&self, fs: &RootedFs, link: &Found, all: &mut Listing) -> Result<()> {
        let Ok(path) = fs.resolve(&link.path) else {
            return Ok(());
        };
        let at = fs.place_of(&path)?;
        // A link to the top would deny everything, the rest of what it holds too.
        let Some((root, relative)) = at.filter(|(_, relative)| relative.as_bytes() != b".") else {
            return Ok(());
        };
        let Some(entry) = stat(&root.handle, &relative)? else {
            return Ok(());
        };
        let found = Found {
            name: relative.clone(),
            relative,
            path,
            with: link.with,
            is_link: false,
            is_inside: link.is_inside,
            // It is pinned in any case.
            is_anchored: false,
        };
        all.pin(&found.path);
        self.add(&host_path(root)?, &found, &entry, all)
    }
}

/// The paths that were found so far.
#[derive(Default)]
struct Listing {
    /// The answer to a denied file that has another name.
    links: HardLinks,
    entries: Vec<Denied>,
    /// Directories that a command could rename, and what is in them would no longer be
    /// denied.
    pinned: BTreeSet<VPath>,
}

impl Listing {
    fn pin(&mut self, path: &VPath) {
        self.pinned.extend(path.ancestors());
    }

    fn finish(self, fs: &RootedFs) -> Result<Vec<Denied>> {
        let mut entries = self.entries;
        for path in self.pinned {
            // The backend's own directories are named where commands may not write.
            let Ok(Some((root, relative))) = fs.place_of(&path) else {
                continue;
            };
            if relative.as_bytes() == b"." {
                continue;
            }
            if let Some(entry) = stat(&root.handle, &relative)? {
                entries.push(Denied {
                    path: join(&host_path(root)?, relative.as_bytes()),
                    with: With::Itself,
                    identity: Identity::new(&entry),
                });
            }
        }
        Ok(entries)
    }
}

/// Sorts what is to be masked: what lies deeper comes later, so that a directory mounted
/// on itself in a read-only one is read-only too, and what hides more. What lies in a
/// directory that hides everything is left out.
fn in_order(mut entries: Vec<Denied>) -> Vec<Denied> {
    let names = |path: &[u8]| -> Vec<Vec<u8>> {
        let names = path.split(|byte| *byte == b'/');
        names.map(<[u8]>::to_vec).collect()
    };
    entries.sort_by_cached_key(|one| (names(&one.path), one.with));
    entries.dedup_by(|one, two| one.path == two.path && one.with == two.with);
    let mut hidden: Option<Vec<u8>> = None;
    entries.retain(|one| {
        let beneath = |above: &Vec<u8>| {
            let rest = one.path.strip_prefix(above.as_slice());
            rest.is_some_and(|rest| rest.starts_with(b"/"))
        };
        if hidden.as_ref().is_some_and(beneath) {
            return false;
        }
        if one.with == With::Nothing {
            hidden = Some(one.path.clone());
        }
        true
    });
    entries
}

/// Returns the paths of what runs by itself.
fn own_paths(fs: &RootedFs) -> Vec<VPath> {
    let tops = fs.roots().iter();
    let tops = tops.filter_map(|root| root.path_of([] as [&str; 0]).ok());
    let paths = tops.chain([fs.working_dir()]).flat_map(|top| {
        let names = RUN_BY_THEMSELVES.iter();
        names.filter_map(move |name| top.join(name).ok())
    });
    let paths: BTreeSet<_> = paths.collect();
    paths.into_iter().collect()
}

fn add_own(fs: &RootedFs, path: &VPath, all: &mut Listing) -> Result<()> {
    let Ok(Some((root, relative))) = fs.place_of(path) else {
        return Ok(());
    };
    let Ok(Some(entry)) = stat(&root.handle, &relative) else {
        return Ok(());
    };
    let kind = FileType::from_raw_mode(entry.stx_mode.into());
    let is_repository = kind == FileType::Directory && path.file_name() == Some(".git");
    if kind == FileType::Symlink || is_repository {
        return Ok(());
    }
    all.pin(path);
    all.entries.push(Denied {
        path: join(&host_path(root)?, relative.as_bytes()),
        with: With::ReadOnly,
        identity: Identity::new(&entry),
    });
    Ok(())
}

/// Describes an entry, or returns `None` if there is none. One that may not be looked at
/// is an error: a command could change that.
fn stat(directory: impl AsFd, name: &CString) -> Result<Option<Statx>> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    match rustix::fs::statx(directory, name.as_c_str(), flags, wanted) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(errno::error(error)),
    }
}

fn is_directory(found: &Statx) -> bool {
    FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory
}

/// Returns the host path of a directory of the backend, which may have been moved since
/// it was opened.
fn host_path(root: &Root) -> Result<Vec<u8>> {
    let link = format!("/proc/self/fd/{}", root.handle.as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new()).map_err(errno::error)?;
    Ok(path.into_bytes())
}

fn join(host: &[u8], relative: &[u8]) -> Vec<u8> {
    let host = host.strip_suffix(b"/").unwrap_or(host);
    [host, b"/", relative].concat()
}

fn too_many() -> Error {
    Error::too_large(format!(
        "more than {MOST_DENIED} files and directories are denied, and each needs a mask; deny a \
         directory as a whole instead of what is in it"
    ))
}

fn linked(path: &VPath) -> Error {
    Error::new(
        ErrorKind::PermissionDenied,
        format!(
            "{} is denied and has another name (a hard link), under which a command could get at \
             it; remove the other name, or accept it with `HardLinks::Accept`",
            backend_core::Quoted::new(path.as_str())
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_masked_is_in_order_and_what_is_hidden_already_is_left_out() {
        let denied = |path: &str, with| Denied {
            path: path.into(),
            with,
            identity: Identity {
                entry: Entry {
                    device: (0, 0),
                    inode: 0,
                },
                time: (0, 0),
            },
        };
        let entries = [
            ("/a/b/c", With::Nothing),
            ("/a/b", With::Itself),
            ("/a-b", With::Nothing),
            ("/a", With::ReadOnly),
            ("/s/key", With::Nothing),
            ("/s", With::Nothing),
            ("/s-s", With::ReadOnly),
            ("/s", With::Itself),
            ("/s", With::Nothing),
            ("/s/more/key", With::Itself),
        ];
        let sorted = in_order(entries.map(|(path, with)| denied(path, with)).to_vec());
        let shown: Vec<_> = sorted
            .iter()
            .map(|one| (std::str::from_utf8(&one.path).unwrap(), one.with))
            .collect();
        assert_eq!(
            shown,
            [
                ("/a", With::ReadOnly),
                ("/a/b", With::Itself),
                ("/a/b/c", With::Nothing),
                ("/a-b", With::Nothing),
                ("/s", With::Itself),
                ("/s", With::Nothing),
                ("/s-s", With::ReadOnly),
            ]
        );
    }
}
