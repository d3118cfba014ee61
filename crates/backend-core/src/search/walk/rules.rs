//! Decisions about entries: which ones a walk finds, enters or counts.

use super::Child;
use crate::ops::{FileKind, Skipped};
use crate::path::VPath;
use crate::search::exclude::{Exclude, ExcludeState};
use crate::search::generated::{is_generated, leads_through_generated};
use crate::search::glob::Glob;
use crate::search::ignore_rules::IgnoreRules;
use crate::setters::setters;

/// Options of a [`Walk`](super::Walk). By default it finds every file that is
/// neither hidden nor ignored nor in a generated directory.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WalkOptions {
    /// Whether to find hidden files too.
    pub hidden: bool,
    /// Whether to find files that `.gitignore` and `.ignore` exclude, and files in
    /// generated directories. If set, no ignore file is read.
    pub ignored: bool,
    /// Whether to find files in generated directories too.
    pub generated: bool,
    /// Entries to leave out.
    pub exclude: Exclude,
    /// A glob that a file must match to be found.
    pub pattern: Option<Glob>,
}

impl WalkOptions {
    setters! {
        /// Sets whether to find hidden files too.
        hidden: bool,
        /// Sets whether to find ignored files and files in generated directories too.
        ignored: bool,
        /// Sets whether to find files in generated directories too.
        generated: bool,
        /// Sets the entries to leave out.
        exclude: Exclude,
        /// Sets a glob that a file must match to be found.
        pattern: Glob,
    }
}

/// The reason why an entry is neither found nor entered, as far as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftOut {
    Uncounted,
    Unreadable,
    Hidden,
    Ignored,
    Generated,
}

/// The state that decides about an entry.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) start: VPath,
    pub(super) options: WalkOptions,
    /// The ignore rules in force in the current directory.
    pub(super) ignore: IgnoreRules,
    pub(super) skipped: Skipped,
}

impl Rules {
    pub(super) fn new(start: VPath, options: WalkOptions) -> Self {
        Self {
            start,
            options,
            ignore: IgnoreRules::default(),
            skipped: Skipped::default(),
        }
    }

    /// Returns the path and state of `child` of `directory`, if it is to be found or
    /// entered, and counts it otherwise.
    pub(super) fn judge<E>(
        &mut self,
        directory: &VPath,
        exclude: &ExcludeState,
        child: &Child<E>,
    ) -> Option<(VPath, ExcludeState)> {
        match self.decide(directory, exclude, child) {
            Ok(found) => return Some(found),
            Err(LeftOut::Uncounted) => {}
            Err(LeftOut::Unreadable) => self.skipped.unreadable += 1,
            Err(LeftOut::Hidden) => self.skipped.hidden += 1,
            Err(LeftOut::Ignored) => self.skipped.ignored += 1,
            Err(LeftOut::Generated) => self.skipped.generated += 1,
        }
        None
    }

    /// Returns the path and state of `child` of `directory`, or why it is left out.
    pub(super) fn decide<E>(
        &self,
        directory: &VPath,
        exclude: &ExcludeState,
        child: &Child<E>,
    ) -> Result<(VPath, ExcludeState), LeftOut> {
        let is_directory = child.kind == FileKind::Directory;
        let unless = |unseen: bool, reason| if unseen { LeftOut::Uncounted } else { reason };
        // Most files fail at their name alone, and need no path.
        if !is_directory && self.fails_by_name(&child.name) && directory.is_room_for(&child.name) {
            return Err(LeftOut::Uncounted);
        }
        let Ok(path) = directory.child(&child.name) else {
            return Err(unless(exclude.is_hidden(), LeftOut::Unreadable));
        };
        let exclude = self.options.exclude.enter(exclude, &path);
        let is_unseen = exclude.is_hidden();
        if is_unseen && (!is_directory || self.options.exclude.prunes(&exclude, &path)) {
            return Err(LeftOut::Uncounted);
        }
        if is_directory && !self.may_match_beneath(&path) {
            return Err(LeftOut::Uncounted);
        }
        if self.is_hidden(&child.name) {
            return Err(unless(is_unseen, LeftOut::Hidden));
        }
        if self.ignore.is_ignored(&path, is_directory) {
            return Err(unless(is_unseen, LeftOut::Ignored));
        }
        if is_directory && self.is_skipped_generated(directory, &child.name) {
            return Err(unless(is_unseen, LeftOut::Generated));
        }
        if is_directory || self.matches(&path) {
            Ok((path, exclude))
        } else {
            Err(LeftOut::Uncounted)
        }
    }

    /// Whether files with this name are left out in every directory, and not counted.
    fn fails_by_name(&self, name: &str) -> bool {
        let pattern = self.options.pattern.as_ref();
        pattern.is_some_and(|pattern| !pattern.may_match_name(name))
            && self.ignore.is_empty()
            && !self.is_hidden(name)
    }

    fn may_match_beneath(&self, directory: &VPath) -> bool {
        let pattern = self.options.pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.may_match_beneath(&self.start, directory))
    }

    fn matches(&self, path: &VPath) -> bool {
        let pattern = self.options.pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.matches(&self.start, path))
    }

    fn is_hidden(&self, name: &str) -> bool {
        let pattern = self.options.pattern.as_ref();
        name.starts_with('.')
            && !(self.options.hidden && name != ".git")
            && !pattern.is_some_and(|pattern| pattern.names_hidden(name))
    }

    /// Whether the directory `name` in `directory` is a generated one that was not
    /// requested.
    fn is_skipped_generated(&self, directory: &VPath, name: &str) -> bool {
        // Checked first, because the name alone decides most often.
        is_generated(name)
            && !self.options.generated
            && !self.options.ignored
            && self.ignore.is_empty()
            && !self.is_named(name)
            && !directory
                .strip_prefix(&self.start)
                .is_some_and(leads_through_generated)
    }

    fn is_named(&self, name: &str) -> bool {
        let pattern = self.options.pattern.as_ref();
        pattern.is_some_and(|pattern| pattern.names_directory(name))
    }

    /// Counts something unreadable, unless it is hidden by the exclusion.
    pub(super) fn count_unreadable(&mut self, exclude: &ExcludeState) {
        self.skipped.unreadable += u64::from(!exclude.is_hidden());
    }
}
