//! [`Preview`]: the details that an approver sees for a call of a builtin tool.

use backend_core::VPath;
use backend_core::limits::EDIT_BYTES;
use backend_core::ops::{ContentHash, Links, ReadOptions, ResolveOptions};
use bytes::Bytes;
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::guarded::PREVIEW_BYTES;
use permissions::{Access, Op};

use crate::context::Context;

#[derive(Debug)]
pub(crate) struct Preview {
    pub(crate) effect: Effect,
    /// The content that the file must still have when the call runs.
    pub(crate) expected_content: Option<(VPath, ContentHash)>,
    /// The accesses to ask about, if the file shows that they differ from those that
    /// the arguments suggest. There are fewer if the call is going to fail.
    pub(crate) accesses: Option<Vec<Access>>,
}

impl Default for Preview {
    fn default() -> Self {
        Self::new(Effect::None)
    }
}

impl Preview {
    pub(crate) fn new(effect: Effect) -> Self {
        Self {
            effect,
            expected_content: None,
            accesses: None,
        }
    }

    pub(crate) fn with_accesses(mut self, accesses: impl IntoIterator<Item = Access>) -> Self {
        self.accesses = Some(accesses.into_iter().collect());
        self
    }

    /// Creates the preview of a call that only reads a file.
    pub(crate) fn reading(path: &VPath) -> Self {
        let read = Intent::read(path.clone());
        Self::new(Effect::read(path.as_str())).with_accesses(read.accesses())
    }

    /// Creates the preview of a call that edits a file. `edited` returns the new
    /// content, or `None` if the edit fails. A call that is going to fail only reads,
    /// so no write approval is requested.
    pub(crate) async fn editing(
        unguarded: &Context,
        path: &VPath,
        edited: impl FnOnce(&Bytes) -> Option<Bytes> + Send,
    ) -> Self {
        // The guard acts on the target of links, and the content is bound to that path.
        let resolved = unguarded.backend.resolve(path, ResolveOptions::default());
        let at = resolved.await.unwrap_or_else(|_| path.clone());
        let options = ReadOptions::default()
            .links(Links::Refuse)
            .max_bytes(EDIT_BYTES);
        let Ok(before) = unguarded.backend.read(&at, options).await else {
            return Self::reading(path);
        };
        let before = before.data;
        let Some(after) = edited(&before) else {
            return Self::reading(path);
        };
        let is_shown = |content: &Bytes| content.len() as u64 <= PREVIEW_BYTES;
        let effect = if is_shown(&before) && is_shown(&after) {
            Effect::diff(path.as_str(), &before, &after)
        } else {
            Effect::None
        };
        let size = after.len() as u64;
        let accesses: Vec<Access> = if before.is_empty() {
            // An empty file has no text to replace, so it is written.
            vec![
                Access::file(Op::Read, path.clone()),
                Access::file(Op::Write, path.clone()).bytes(size),
            ]
        } else {
            Intent::edit(path.clone()).bytes(size).accesses().collect()
        };
        Self {
            expected_content: Some((at, ContentHash::of(&before))),
            ..Self::new(effect).with_accesses(accesses)
        }
    }
}
