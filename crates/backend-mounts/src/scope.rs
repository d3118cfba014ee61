//! [`Scope`]: the part of the mounts that one agent may use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend_core::VPath;
use backend_core::limits::PATH_BYTES;
use backend_core::ops::{ContentHash, ContentHasher};
use permissions::{OpClass, Refusal};

use crate::area::Area;
use crate::derive::{DERIVE_DEPTH, DERIVE_ENTRIES, Derive, DeriveError, entry};
use crate::exclude::Excludes;
use crate::mount::{Mode, Mount, suffix};
use crate::parse;
use crate::restriction::Restriction;
use crate::table::Mounts;

/// The part of the mounts that one agent may use. Cloning is cheap.
///
/// A new scope covers all of its mounts. [`derive`](Self::derive) creates narrower ones.
/// A scope allows only what every scope it is derived from allows too, so access that was
/// removed cannot come back. A derived scope does not change the mode, suffixes, limits
/// or approvals of a mount.
///
/// Refusals name only the roots of the scope itself, never those of its parents.
///
/// ```
/// use backend_mounts::{Derive, MountConfig, Scope};
/// use permissions::{Action, Kind, Op};
///
/// let config = MountConfig::from_toml(
///     r#"
///     [[mounts]]
///     host_path = "/srv/docs"
///     mount_point = "/docs"
///     suffixes = [".md"]
///
///     [[mounts]]
///     host_path = "/srv/project"
///     mount_point = "/project"
///     mode = "rw"
///     "#,
/// )?;
/// let scope = Scope::new(config.build()?);
/// let judge = |scope: &Scope, op, path: &str| {
///     let path = scope.parse(path).expect("a path");
///     scope.judge(op, &path, Kind::File, None).action()
/// };
/// assert_eq!(judge(&scope, Op::Read, "/docs/a.md"), Action::Allow);
/// assert_eq!(judge(&scope, Op::Read, "/docs/a.txt"), Action::Deny);
/// assert_eq!(judge(&scope, Op::Write, "/docs/a.md"), Action::Deny);
/// assert_eq!(judge(&scope, Op::Write, "/project/a"), Action::Ask);
///
/// let child = scope.derive(Derive::new().read(["/project/sub"]))?;
/// assert_eq!(judge(&child, Op::Read, "/project/sub/a"), Action::Allow);
/// assert_eq!(judge(&child, Op::Read, "/project/a"), Action::Deny);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scope(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) mounts: Mounts,
    /// The steps of narrowing, from the mounts themselves to this scope.
    pub(crate) restrictions: Vec<Arc<Restriction>>,
    pub(crate) excludes: Excludes,
    id: ContentHash,
}

/// The mount and relative path that a path resolves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolved<'a> {
    /// The mount that contains the path.
    pub mount: &'a Mount,
    /// The path relative to the mount point, without a slash at either end.
    pub relative: &'a str,
}

impl Resolved<'_> {
    /// Returns the path on the host, as text. Nothing is looked up, and links in it are
    /// not followed.
    pub fn host_path(&self) -> PathBuf {
        match self.relative {
            "" => self.mount.host_path.clone(),
            relative => self.mount.host_path.join(relative),
        }
    }
}

impl Scope {
    /// Creates a scope that covers all of the mounts.
    pub fn new(mounts: Mounts) -> Self {
        let area = |is_open: fn(&Mount) -> bool| {
            let points = mounts.iter().filter(|mount| is_open(mount));
            let labels = points.map(|mount| mount.mount_point.clone()).collect();
            let place = |mount: &Mount| (mount.mount_point.clone(), is_open(mount));
            Some(Area::new(labels, mounts.iter().map(place)))
        };
        let restriction = Restriction {
            read: area(|_| true),
            write: area(|mount| mount.mode == Mode::Rw),
        };
        Self::build(mounts, vec![Arc::new(restriction)])
    }

    fn build(mounts: Mounts, restrictions: Vec<Arc<Restriction>>) -> Self {
        Self(Arc::new(Inner {
            excludes: Excludes::new(&mounts, &restrictions),
            id: hash(&mounts, &restrictions),
            mounts,
            restrictions,
        }))
    }

    /// Creates a narrower scope.
    ///
    /// # Errors
    ///
    /// [`DeriveError`] for an entry that is not a plain path, or that this scope does not
    /// allow itself.
    pub fn derive(&self, derive: Derive) -> Result<Self, DeriveError> {
        if derive.count() > DERIVE_ENTRIES {
            return Err(DeriveError::TooMany(derive.count()));
        }
        if self.0.restrictions.len() > DERIVE_DEPTH {
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
        // Checked even if `readonly` removes it again, because an entry that cannot be
        // written is a mistake either way.
        let write = match (area(OpClass::Write, write)?, derive.readonly) {
            (_, true) => Some(Area::new(Vec::new(), [])),
            (write, false) => write,
        };
        let mut restrictions = self.0.restrictions.clone();
        restrictions.push(Arc::new(Restriction { read, write }));
        Ok(Self::build(self.0.mounts.clone(), restrictions))
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

    /// Returns the mounts that the scope is based on.
    pub fn mounts(&self) -> &Mounts {
        &self.0.mounts
    }

    /// Returns a hash of the mounts and all restrictions. A remembered answer uses it to
    /// tell whether it was given under the same ones.
    pub fn id(&self) -> ContentHash {
        self.0.id
    }

    /// Parses a path typed by an agent. Backslashes become slashes, surrounding white
    /// space is dropped, the path starts at the root, and it is normalized.
    ///
    /// # Errors
    ///
    /// [`Refusal::InvalidPath`] for a NUL, a leading `~`, a drive, a `..` that climbs
    /// above the root, and for a path that is too long, too deep or reserved.
    pub fn parse(&self, typed: &str) -> Result<VPath, Refusal> {
        parse::path(typed).map_err(|problem| {
            let cut = typed.floor_char_boundary(PATH_BYTES);
            let shown = typed.get(..cut).unwrap_or_default();
            Refusal::invalid_path(shown, problem, self.roots(OpClass::Read))
        })
    }

    /// Resolves a path for reading.
    ///
    /// # Errors
    ///
    /// [`Refusal::Outside`].
    pub fn resolve<'a>(&'a self, path: &'a VPath) -> Result<Resolved<'a>, Refusal> {
        self.resolve_for(OpClass::Read, path)
    }

    /// Resolves a path for writing.
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

    /// Returns whether the mode and the scope allow reading `path`. The entry itself, its
    /// suffix, its size and approvals are not considered.
    pub fn can_read(&self, path: &VPath) -> bool {
        self.permit(OpClass::Read, path).is_ok()
    }

    /// Returns whether the mode and the scope allow writing `path`, like
    /// [`can_read`](Self::can_read).
    pub fn can_write(&self, path: &VPath) -> bool {
        self.permit(OpClass::Write, path).is_ok()
    }

    /// Returns whether reading `path` needs approval. `false` if it cannot be read.
    pub fn needs_read_approval(&self, path: &VPath) -> bool {
        self.permit(OpClass::Read, path)
            .is_ok_and(|mount| mount.read_approval)
    }

    /// Returns whether writing `path` needs approval. `false` if it cannot be written.
    pub fn needs_write_approval(&self, path: &VPath) -> bool {
        self.permit(OpClass::Write, path)
            .is_ok_and(|mount| mount.write_approval)
    }

    /// Returns the readable roots: the mount points, the longest first, or in a derived
    /// scope its entries in the order given.
    pub fn readable_roots(&self) -> &[VPath] {
        self.labels(OpClass::Read)
    }

    /// Returns the writable roots, in the same order.
    pub fn writable_roots(&self) -> &[VPath] {
        self.labels(OpClass::Write)
    }

    /// Returns the host path of the mount exactly at `point`, even if the scope does not
    /// cover it.
    ///
    /// # Errors
    ///
    /// [`Refusal::Outside`] if there is no mount at `point`.
    pub fn mount_root(&self, point: &VPath) -> Result<&Path, Refusal> {
        let mut mounts = self.0.mounts.iter();
        match mounts.find(|mount| mount.mount_point == *point) {
            Some(mount) => Ok(&mount.host_path),
            None => Err(self.outside(point)),
        }
    }

    /// Returns the maximum size of a file at `path`.
    pub fn max_file_bytes(&self, path: &VPath) -> Option<u64> {
        self.0.mounts.find(path)?.max_file_bytes
    }

    /// Checks the suffix of a file at `path`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Suffix`], and [`Refusal::Outside`] if no mount contains the path.
    pub fn check_suffix(&self, path: &VPath) -> Result<(), Refusal> {
        let Some(mount) = self.0.mounts.find(path) else {
            return Err(self.outside(path));
        };
        if mount.allows_suffix_of(path) {
            return Ok(());
        }
        Err(Refusal::suffix(
            path.as_str(),
            suffix(path).to_lowercase(),
            mount.suffixes.clone().unwrap_or_default(),
        ))
    }

    /// Checks the size that a file at `path` has or is to have. A size equal to the limit
    /// is allowed.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLarge`], and [`Refusal::Outside`] if no mount contains the path.
    pub fn check_size(&self, path: &VPath, bytes: u64) -> Result<(), Refusal> {
        let Some(mount) = self.0.mounts.find(path) else {
            return Err(self.outside(path));
        };
        match mount.max_file_bytes {
            Some(limit) if bytes > limit => Err(Refusal::too_large(path.as_str(), bytes, limit)),
            _ => Ok(()),
        }
    }

    /// Returns the mount of a path if the mode and the scope allow operations of `class`
    /// on it.
    fn permit(&self, class: OpClass, path: &VPath) -> Result<&Mount, Refusal> {
        match self.0.mounts.find(path) {
            None => Err(self.outside(path)),
            Some(mount) if self.is_open(class, path) => Ok(mount),
            Some(_) => Err(self.closed(class, path)),
        }
    }

    /// Returns whether every restriction allows operations of `class` on `path`.
    pub(crate) fn is_open(&self, class: OpClass, path: &VPath) -> bool {
        self.areas(class).all(|area| area.is_open(path))
    }

    fn areas(&self, class: OpClass) -> impl DoubleEndedIterator<Item = &Area> {
        let restrictions = self.0.restrictions.iter();
        restrictions.filter_map(move |restriction| restriction.area(class))
    }

    pub(crate) fn outside(&self, path: &VPath) -> Refusal {
        Refusal::outside(path.as_str(), self.roots(OpClass::Read))
    }

    /// Returns the refusal of a path that is in a mount but not open to `class`.
    pub(crate) fn closed(&self, class: OpClass, path: &VPath) -> Refusal {
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
        let last = self.areas(class).next_back();
        last.map_or(&[], |area| &area.labels)
    }
}

/// Computes a hash that does not depend on the order of the mounts in the configuration.
fn hash(mounts: &Mounts, restrictions: &[Arc<Restriction>]) -> ContentHash {
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
    for restriction in restrictions.iter().skip(1) {
        // Part of saved ids, so the word stays.
        feed(b"link");
        for class in [OpClass::Read, OpClass::Write] {
            let places = restriction
                .area(class)
                .map(|area| area.places().collect::<Vec<_>>());
            feed(format!("{places:?}").as_bytes());
        }
    }
    hasher.finish()
}
