//! [`Preview`]: what somebody is shown who is asked about a call of a tool of
//! this crate.

use backend_core::VPath;
use backend_core::limits::EDIT_BYTES;
use backend_core::ops::{ContentHash, Links, ReadOptions, ResolveOptions};
use bytes::Bytes;
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::guarded::PREVIEW_BYTES;
use permissions::{Access, Op};

use crate::Context;

/// What somebody is shown who is asked about a call of a tool of this crate.
#[derive(Debug)]
pub(crate) struct Preview {
    /// Exactly what would happen.
    pub(crate) effect: Effect,
    /// What the file must still hold when it happens.
    pub(crate) holds: Option<(VPath, ContentHash)>,
    /// What is asked about, where a look has shown that it is something else than
    /// the arguments alone say: less if the call is going to fail.
    pub(crate) instead: Option<Vec<Access>>,
}

impl Default for Preview {
    fn default() -> Self {
        Self::showing(Effect::None)
    }
}

impl Preview {
    /// A question that shows this.
    pub(crate) fn showing(effect: Effect) -> Self {
        Self {
            effect,
            holds: None,
            instead: None,
        }
    }

    /// The same about these accesses.
    pub(crate) fn instead(mut self, accesses: impl IntoIterator<Item = Access>) -> Self {
        self.instead = Some(accesses.into_iter().collect());
        self
    }

    /// A call that only reads a file.
    pub(crate) fn reading(path: &VPath) -> Self {
        let read = Intent::read(path.clone());
        Self::showing(Effect::read(path.as_str())).instead(read.accesses())
    }

    /// A call that edits a file. `edited` makes what the file is to hold, if that
    /// can be made. A call that is going to fail only reads: nobody is asked to
    /// let it write.
    pub(crate) async fn editing(
        bare: &Context,
        path: &VPath,
        edited: impl FnOnce(&Bytes) -> Option<Bytes> + Send,
    ) -> Self {
        // The guard acts where links lead, and what the file holds is bound there.
        let resolved = bare.backend.resolve(path, ResolveOptions::default());
        let at = resolved.await.unwrap_or_else(|_| path.clone());
        let options = ReadOptions::default()
            .links(Links::Refuse)
            .max_bytes(EDIT_BYTES);
        let Ok(before) = bare.backend.read(&at, options).await else {
            return Self::reading(path);
        };
        let before = before.data;
        let Some(after) = edited(&before) else {
            return Self::reading(path);
        };
        let is_shown = |content: &Bytes| content.len() as u64 <= PREVIEW_BYTES;
        let effect = match is_shown(&before) && is_shown(&after) {
            true => Effect::diff(path.as_str(), &before, &after),
            false => Effect::None,
        };
        let size = after.len() as u64;
        let accesses: Vec<Access> = match before.is_empty() {
            // An empty file has no text to replace: it is written.
            true => vec![
                Access::file(Op::Read, path.clone()),
                Access::file(Op::Write, path.clone()).bytes(size),
            ],
            false => Intent::edit(path.clone()).bytes(size).accesses().collect(),
        };
        Self {
            holds: Some((at, ContentHash::of(&before))),
            ..Self::showing(effect).instead(accesses)
        }
    }
}
