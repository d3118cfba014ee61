//! Judges an access by the mounts and the scope.

use backend_core::VPath;
use backend_core::search::Exclude;
use permissions::{Action, Kind, Layer, Op, OpClass, PathLayer, Reason, Refusal, Verdict, Vote};

use crate::mount::{Mode, Mount};
use crate::scope::Scope;

impl Scope {
    /// Returns the verdict of the mounts about an access to a path. `bytes` is the size
    /// that the file has or is to have, if known.
    ///
    /// `/` can always be listed and searched, because [`exclude`](Self::exclude) leaves
    /// only visible entries. A mount, or a directory that contains one, is never deleted
    /// or moved. Commands are not judged here.
    ///
    /// ```
    /// use backend_mounts::{MountConfig, Scope};
    /// use permissions::{Action, Kind, Op};
    ///
    /// let scope = Scope::new(MountConfig::single_root("/srv/project").build()?);
    /// let path = scope.parse("notes.md").expect("a path");
    /// let verdict = scope.judge(Op::Write, &path, Kind::File, Some(120));
    /// assert_eq!(verdict.action(), Action::Ask);
    /// assert_eq!(verdict.to_string(), "mount: ask, the mount '/' asks before anything is changed");
    /// # Ok::<(), backend_mounts::MountError>(())
    /// ```
    pub fn judge(&self, op: Op, path: &VPath, kind: Kind, bytes: Option<u64>) -> Verdict {
        if op.class() == OpClass::Execute {
            return Vote::abstain(Layer::Mount).into();
        }
        if !(is_listing(op) && path.is_root())
            && let Err((layer, refusal)) = self.check(op, path, kind, bytes)
        {
            return Vote::new(layer, Action::Deny, Reason::Refused(refusal.into())).into();
        }
        let Some(mount) = self.asking(op, path) else {
            return Vote::abstain(Layer::Mount).into();
        };
        let done = match op.class() {
            OpClass::Write => "changed",
            OpClass::Read | OpClass::Execute => "read or listed",
        };
        let point = &mount.mount_point;
        let why = format!("the mount '{point}' asks before anything is {done}");
        Vote::new(Layer::Mount, Action::Ask, Reason::Text(why.into())).into()
    }

    /// Checks everything except approvals, in the order in which it is reported.
    fn check(
        &self,
        op: Op,
        path: &VPath,
        kind: Kind,
        bytes: Option<u64>,
    ) -> Result<(), (Layer, Refusal)> {
        let class = op.class();
        let by_mount = |refusal| (Layer::Mount, refusal);
        let Some(mount) = self.0.mounts.find(path) else {
            return Err(by_mount(self.outside(path)));
        };
        if class == OpClass::Write && mount.mode == Mode::Ro {
            return Err(by_mount(self.closed(class, path)));
        }
        if !self.is_open(class, path) {
            return Err((Layer::Scope, self.closed(class, path)));
        }
        if removes(op) && self.0.mounts.has_mount_within(path) {
            return Err(by_mount(Refusal::mount_root(path.as_str())));
        }
        if checks_suffix(op) && kind == Kind::File {
            self.check_suffix(path).map_err(by_mount)?;
        }
        match bytes {
            Some(bytes) if checks_size(op) => self.check_size(path, bytes).map_err(by_mount),
            _ => Ok(()),
        }
    }

    /// Returns the mount that requires approval before `op` is done to `path`. A search
    /// also covers the mounts beneath.
    fn asking(&self, op: Op, path: &VPath) -> Option<&Mount> {
        let class = op.class();
        let asks = |place: &VPath| {
            let mount = self.0.mounts.find(place)?;
            (mount.asks(class) && self.is_open(class, place)).then_some(mount)
        };
        asks(path).or_else(|| match op {
            Op::Glob | Op::Grep => self.places_beneath(path).find_map(asks),
            _ => None,
        })
    }

    /// Returns whether a listing or search at `directory` shows entries of a mount that
    /// requires approval before reading. [`judge`](Self::judge) takes this into account.
    ///
    /// `glob` and `grep` cover everything beneath. `ls` covers only `directory`; it shows
    /// nothing but the name of a mount in it.
    pub fn asks_beneath(&self, op: Op, directory: &VPath) -> bool {
        op.class() == OpClass::Read && self.asking(op, directory).is_some()
    }

    /// Returns the entries that `ls`, `glob` or `grep` must leave out of its results.
    ///
    /// Everything that cannot be read in this scope is left out. `ls` shows the
    /// directories that lead to readable ones. `grep` also leaves out files with a suffix
    /// that is not allowed, and the contents of mounts that require approval before
    /// reading; see [`exclude_granted`](Self::exclude_granted). For any other operation,
    /// the result is the same as for `glob`.
    pub fn exclude(&self, op: Op) -> Exclude {
        self.0.excludes.of(op).clone()
    }

    /// Like [`exclude`](Self::exclude), but `grep` also searches mounts that require
    /// approval if `granted` returns `true` for them.
    pub fn exclude_granted(&self, op: Op, granted: impl Fn(&Mount) -> bool) -> Exclude {
        match op {
            Op::Grep => self.0.excludes.grep_granted(&self.0.mounts, granted),
            _ => self.exclude(op),
        }
    }

    /// Returns the places at or beneath `directory` where the decision can change.
    fn places_beneath(&self, directory: &VPath) -> impl Iterator<Item = &VPath> {
        let areas = self
            .0
            .restrictions
            .iter()
            .flat_map(|restriction| [&restriction.read, &restriction.write]);
        areas
            .flatten()
            .flat_map(|area| area.places())
            .map(|(place, _)| place)
            .filter(move |place| place.starts_with(directory))
    }
}

impl PathLayer for Scope {
    fn judge(&self, op: Op, path: &VPath, kind: Kind, bytes: Option<u64>) -> Verdict {
        self.judge(op, path, kind, bytes)
    }

    fn most_lenient(&self, op: Op) -> Action {
        let class = op.class();
        let root = VPath::root();
        if class == OpClass::Execute || (is_listing(op) && self.asking(op, &root).is_none()) {
            return Action::Allow;
        }
        let worst = if is_listing(op) {
            Action::Ask
        } else {
            Action::Deny
        };
        let at = |place: &VPath| match self.0.mounts.find(place) {
            Some(mount) if self.is_open(class, place) => {
                if mount.asks(class) {
                    Action::Ask
                } else {
                    Action::Allow
                }
            }
            _ => worst,
        };
        self.places_beneath(&root).map(at).min().unwrap_or(worst)
    }

    /// A caller that changes, moves or copies a whole directory must check each entry
    /// unless this is [`Action::Allow`].
    fn strongest_beneath(&self, op: Op, directory: &VPath) -> Action {
        let class = op.class();
        if class == OpClass::Execute {
            return Action::Allow;
        }
        if removes(op) && self.0.mounts.has_mount_within(directory) {
            return Action::Deny;
        }
        let at = |place: &VPath| match self.0.mounts.find(place) {
            Some(mount) if self.is_open(class, place) => {
                let is_filtered = (checks_suffix(op) && mount.suffixes.is_some())
                    || (checks_size(op) && mount.max_file_bytes.is_some());
                match (is_filtered, mount.asks(class)) {
                    (true, _) => Action::Deny,
                    (false, true) => Action::Ask,
                    (false, false) => Action::Allow,
                }
            }
            _ => Action::Deny,
        };
        let beneath = self.places_beneath(directory).map(at);
        beneath.fold(at(directory), Action::max)
    }

    fn max_file_bytes(&self, path: &VPath) -> Option<u64> {
        self.max_file_bytes(path)
    }

    /// A search that covers a mount with approvals is asked about as a whole.
    fn exclude(&self, op: Op) -> Exclude {
        self.exclude_granted(op, |_| true)
    }

    fn denied(&self, class: OpClass) -> Exclude {
        self.0.excludes.denied(class)
    }

    fn id(&self) -> String {
        self.id().to_string()
    }
}

fn is_listing(op: Op) -> bool {
    matches!(op, Op::Ls | Op::Glob | Op::Grep)
}

fn removes(op: Op) -> bool {
    matches!(op, Op::Delete | Op::Move)
}

fn checks_suffix(op: Op) -> bool {
    match op {
        Op::Read | Op::Write | Op::Edit | Op::Delete | Op::Move | Op::Copy => true,
        Op::Ls | Op::Glob | Op::Grep | Op::Execute | Op::Connect | Op::Terminal => false,
    }
}

/// Returns whether the size limit applies. A file that is too large may be deleted.
fn checks_size(op: Op) -> bool {
    checks_suffix(op) && op != Op::Delete
}
