//! [`Scope`]: what is left of the mounts for one agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend_core::VPath;
use backend_core::limits::PATH_BYTES;
use backend_core::ops::{ContentHash, ContentHasher};

use super::derive::{DERIVE_DEPTH, DERIVE_ENTRIES, Derive, DeriveError, entry};
use super::exclude::Excludes;
use super::mount::{Mode, Mount, suffix};
use super::prefixes::Area;
use super::spelling;
use super::table::Mounts;
use crate::{OpClass, Refusal};

/// What is left of the mounts for one agent. Cloning is cheap.
///
/// A new scope has all of its mounts. [`derive`](Self::derive) makes narrower
/// ones, and what may be done in a scope is what every scope that it comes from
/// allows too: nothing that was taken away can come back. A derived scope changes
/// no mount's mode, suffixes, limit or approvals.
///
/// Refusals name the roots of the scope that is asked, never those above it.
#[derive(Debug, Clone)]
pub struct Scope(pub(super) Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) mounts: Mounts,
    /// From the mounts themselves to this scope.
    pub(super) links: Vec<Arc<Link>>,
    pub(super) excludes: Excludes,
    id: ContentHash,
}

/// One step of narrowing. `None` lets everything through.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) read: Option<Area>,
    pub(super) write: Option<Area>,
}

impl Link {
    /// The area for reading or writing. Commands are not judged here.
    pub(super) fn area(&self, class: OpClass) -> Option<&Area> {
        match class {
            OpClass::Read => self.read.as_ref(),
            OpClass::Write => self.write.as_ref(),
            OpClass::Execute => None,
        }
    }
}

/// Where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved<'a> {
    /// The mount it lies in.
    pub mount: &'a Mount,
    /// The way from there, without a slash at either end.
    pub relative: &'a str,
}

impl Resolved<'_> {
    /// The place on the host, as text: nothing is looked up, and links in it are
    /// not followed.
    pub fn host_path(&self) -> PathBuf {
        match self.relative {
            "" => self.mount.host_path.clone(),
            relative => self.mount.host_path.join(relative),
        }
    }
}

impl Scope {
    /// All of the mounts.
    pub fn new(mounts: Mounts) -> Self {
        let area = |is_open: fn(&Mount) -> bool| {
            let points = mounts.iter().filter(|mount| is_open(mount));
            let labels = points.map(|mount| mount.mount_point.clone()).collect();
            let place = |mount: &Mount| (mount.mount_point.clone(), is_open(mount));
            Some(Area::new(labels, mounts.iter().map(place)))
        };
        let link = Link {
            read: area(|_| true),
            write: area(|mount| mount.mode == Mode::Rw),
        };
        Self::build(mounts, vec![Arc::new(link)])
    }

    fn build(mounts: Mounts, links: Vec<Arc<Link>>) -> Self {
        Self(Arc::new(Inner {
            excludes: Excludes::new(&mounts, &links),
            id: hash(&mounts, &links),
            mounts,
            links,
        }))
    }

    /// A narrower scope.
    ///
    /// # Errors
    ///
    /// [`DeriveError`] for an entry that is no plain path, or that this scope does
    /// not allow itself.
    pub fn derive(&self, derive: Derive) -> Result<Self, DeriveError> {
        if derive.count() > DERIVE_ENTRIES {
            return Err(DeriveError::TooMany(derive.count()));
        }
        if self.0.links.len() > DERIVE_DEPTH {
            return Err(DeriveError::TooDeep);
        }
        let nothing = || Some(Vec::new());
        let (read, write) = match (derive.read, derive.write) {
            (None, None) if derive.inherit => (None, None),
            (None, None) => (nothing(), nothing()),
            (None, write) => (write.clone(), write),
            (read, None) => (read, nothing()),
            both => both,
        };
        let area = |class, entries: Option<Vec<String>>| match entries {
            None => Ok(None),
            Some(entries) => self.area(class, &entries, derive.span_nested).map(Some),
        };
        let read = area(OpClass::Read, read)?;
        // Checked even where it is taken away again: an entry that cannot be
        // written is a mistake either way.
        let write = match (area(OpClass::Write, write)?, derive.readonly) {
            (_, true) => Some(Area::new(Vec::new(), [])),
            (write, false) => write,
        };
        let mut links = self.0.links.clone();
        links.push(Arc::new(Link { read, write }));
        Ok(Self::build(self.0.mounts.clone(), links))
    }

    fn area(
        &self,
        class: OpClass,
        typed: &[String],
        span_nested: bool,
    ) -> Result<Area, DeriveError> {
        let mut entries = Vec::with_capacity(typed.len());
        for typed in typed {
            let entry = entry(typed)?;
            self.permit(class, &entry).map_err(DeriveError::Refused)?;
            entries.push(entry);
        }
        let points = self.0.mounts.iter().map(|mount| &mount.mount_point);
        Ok(Area::of_entries(entries, points, span_nested))
    }

    /// The mounts that the scope is made of.
    pub fn mounts(&self) -> &Mounts {
        &self.0.mounts
    }

    /// A hash of the mounts and of everything that was taken away, by which a
    /// remembered answer can tell whether it was given under the same ones.
    pub fn id(&self) -> ContentHash {
        self.0.id
    }

    /// The path that an agent means by `typed`: a backslash is a slash, white
    /// space around it is dropped, it starts at the root, and it is folded.
    ///
    /// # Errors
    ///
    /// [`Refusal::InvalidPath`] for a NUL, a leading `~`, a drive, for `..` that
    /// climbs above the root, and for what is too long, too deep or reserved.
    pub fn parse(&self, typed: &str) -> Result<VPath, Refusal> {
        spelling::path(typed).map_err(|problem| {
            let cut = typed.floor_char_boundary(PATH_BYTES);
            let shown = typed.get(..cut).unwrap_or_default();
            Refusal::invalid_path(shown, problem, self.roots(OpClass::Read))
        })
    }

    /// Where a path that may be read leads.
    ///
    /// # Errors
    ///
    /// [`Refusal::Outside`].
    pub fn resolve<'a>(&'a self, path: &'a VPath) -> Result<Resolved<'a>, Refusal> {
        self.resolve_for(OpClass::Read, path)
    }

    /// Where a path that may be written leads.
    ///
    /// # Errors
    ///
    /// [`Refusal::Outside`] and [`Refusal::ReadOnly`].
    pub fn resolve_write<'a>(&'a self, path: &'a VPath) -> Result<Resolved<'a>, Refusal> {
        self.resolve_for(OpClass::Write, path)
    }

    fn resolve_for<'a>(&'a self, class: OpClass, path: &'a VPath) -> Result<Resolved<'a>, Refusal> {
        let mount = self.permit(class, path)?;
        let relative = path.strip_prefix(&mount.mount_point).unwrap_or_default();
        Ok(Resolved { mount, relative })
    }

    /// Whether the mode and the scope let `path` be read. Neither what stands
    /// there nor its suffix, its size or approvals count.
    pub fn can_read(&self, path: &VPath) -> bool {
        self.permit(OpClass::Read, path).is_ok()
    }

    /// Whether the mode and the scope let `path` be written; as
    /// [`can_read`](Self::can_read).
    pub fn can_write(&self, path: &VPath) -> bool {
        self.permit(OpClass::Write, path).is_ok()
    }

    /// Whether somebody is asked before `path` is read. `false` if it cannot be.
    pub fn needs_read_approval(&self, path: &VPath) -> bool {
        self.permit(OpClass::Read, path)
            .is_ok_and(|mount| mount.read_approval)
    }

    /// Whether somebody is asked before `path` is written. `false` if it cannot
    /// be.
    pub fn needs_write_approval(&self, path: &VPath) -> bool {
        self.permit(OpClass::Write, path)
            .is_ok_and(|mount| mount.write_approval)
    }

    /// What can be read: the mount points, the longest first, or in a derived
    /// scope its entries in the order given.
    pub fn readable_roots(&self) -> &[VPath] {
        self.labels(OpClass::Read)
    }

    /// What can be written, in the same order.
    pub fn writable_roots(&self) -> &[VPath] {
        self.labels(OpClass::Write)
    }

    /// The host path of the mount that stands exactly at `point`, whatever the
    /// scope has left of it.
    ///
    /// # Errors
    ///
    /// [`Refusal::Outside`] if none stands there.
    pub fn mount_root(&self, point: &VPath) -> Result<&Path, Refusal> {
        let mut mounts = self.0.mounts.iter();
        match mounts.find(|mount| mount.mount_point == *point) {
            Some(mount) => Ok(&mount.host_path),
            None => Err(self.outside(point)),
        }
    }

    /// The largest file that may stand at `path`.
    pub fn max_file_bytes(&self, path: &VPath) -> Option<u64> {
        self.0.mounts.find(path)?.max_file_bytes
    }

    /// Checks the suffix of a file at `path`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Suffix`], and [`Refusal::Outside`] where no mount is.
    pub fn check_suffix(&self, path: &VPath) -> Result<(), Refusal> {
        let Some(mount) = self.0.mounts.find(path) else {
            return Err(self.outside(path));
        };
        if mount.takes_suffix_of(path) {
            return Ok(());
        }
        Err(Refusal::suffix(
            path.as_str(),
            suffix(path).to_lowercase(),
            mount.suffixes.clone().unwrap_or_default(),
        ))
    }

    /// Checks the size that a file at `path` has or is to have. As many bytes as
    /// the limit are allowed.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLarge`], and [`Refusal::Outside`] where no mount is.
    pub fn check_size(&self, path: &VPath, bytes: u64) -> Result<(), Refusal> {
        let Some(mount) = self.0.mounts.find(path) else {
            return Err(self.outside(path));
        };
        match mount.max_file_bytes {
            Some(limit) if bytes > limit => Err(Refusal::too_large(path.as_str(), bytes, limit)),
            _ => Ok(()),
        }
    }

    /// The mount of a path that operations of `class` may touch, as far as mode
    /// and scope go.
    fn permit(&self, class: OpClass, path: &VPath) -> Result<&Mount, Refusal> {
        match self.0.mounts.find(path) {
            None => Err(self.outside(path)),
            Some(mount) if self.is_open(class, path) => Ok(mount),
            Some(_) => Err(self.closed(class, path)),
        }
    }

    /// Whether every link lets operations of `class` through to `path`.
    pub(super) fn is_open(&self, class: OpClass, path: &VPath) -> bool {
        let mut areas = self.0.links.iter().filter_map(|link| link.area(class));
        areas.all(|area| area.is_open(path))
    }

    pub(super) fn outside(&self, path: &VPath) -> Refusal {
        Refusal::outside(path.as_str(), self.roots(OpClass::Read))
    }

    /// The refusal of a path that lies in a mount and is not open to `class`.
    pub(super) fn closed(&self, class: OpClass, path: &VPath) -> Refusal {
        match class {
            OpClass::Write => Refusal::read_only(path.as_str(), self.roots(class)),
            OpClass::Read | OpClass::Execute => self.outside(path),
        }
    }

    fn roots(&self, class: OpClass) -> Vec<String> {
        let labels = self.labels(class).iter();
        labels.map(|label| label.as_str().to_owned()).collect()
    }

    fn labels(&self, class: OpClass) -> &[VPath] {
        let mut areas = self.0.links.iter().filter_map(|link| link.area(class));
        areas.next_back().map_or(&[], |area| &area.labels)
    }
}

/// A hash that does not depend on the order in which mounts were written.
fn hash(mounts: &Mounts, links: &[Arc<Link>]) -> ContentHash {
    let mut hasher = ContentHasher::new();
    let mut feed = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    let mut sorted: Vec<_> = mounts.iter().collect();
    sorted.sort_by_key(|mount| &mount.mount_point);
    for mount in sorted {
        feed(mount.mount_point.as_str().as_bytes());
        feed(mount.host_path.as_os_str().as_encoded_bytes());
        let rest = (
            mount.mode,
            &mount.suffixes,
            mount.max_file_bytes,
            mount.write_approval,
            mount.read_approval,
        );
        feed(format!("{rest:?}").as_bytes());
    }
    for link in links.iter().skip(1) {
        feed(b"link");
        for class in [OpClass::Read, OpClass::Write] {
            let places = link
                .area(class)
                .map(|area| area.places().collect::<Vec<_>>());
            feed(format!("{places:?}").as_bytes());
        }
    }
    hasher.finish()
}
