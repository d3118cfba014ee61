//! Operations that change one file: `write`, `edit`, `create_dir`.

use std::sync::{Arc, Mutex};

use backend_core::derived::edit_bytes;
use backend_core::limits::{EDIT_ATTEMPTS, EDIT_BYTES};
use backend_core::ops::{
    Content, ContentHash, CreateDirOptions, EditOptions, EditOutcome, Links, ReadOptions,
    WriteMode, WriteOptions, WriteOutcome,
};
use backend_core::sync::lock;
use backend_core::{Backend, Edit, Error, ErrorKind, Operation, Result, VPath};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::gate::Gate;
use super::guard::Guarded;
use super::link_resolution::{LastLink, LinkResolution};
use super::preview::{changed_meanwhile, is_small};
use crate::access::Intent;
use crate::approval::Effect;
use crate::{Op, Question, Refusal};

/// Content that can be handed out again until a consumer starts to read it.
enum ReusableContent {
    Bytes(Bytes),
    Stream(Arc<Mutex<Option<BoxStream<'static, Result<Bytes>>>>>),
}

impl ReusableContent {
    fn new(content: Content) -> Self {
        match content {
            Content::Bytes(bytes) => Self::Bytes(bytes),
            Content::Stream(stream) => Self::Stream(Arc::new(Mutex::new(Some(stream)))),
        }
    }

    fn bytes(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Stream(_) => None,
        }
    }

    /// Returns whether it can still be handed out.
    fn is_unread(&self) -> bool {
        match self {
            Self::Bytes(_) => true,
            Self::Stream(slot) => lock(slot).is_some(),
        }
    }

    /// Returns the content. A stream fails as soon as it exceeds `limit`.
    fn content(&self, limit: Option<u64>, shown: &VPath) -> Content {
        let slot = match self {
            Self::Bytes(bytes) => return Content::Bytes(bytes.clone()),
            Self::Stream(slot) => Arc::clone(slot),
        };
        let shown = shown.clone();
        let limit = limit.unwrap_or(u64::MAX);
        let first = stream::once(async move {
            let taken = lock(&slot).take();
            taken.unwrap_or_else(|| stream::empty().boxed())
        });
        let mut size = 0;
        let counted = first.flatten().map(move |piece| {
            let piece = piece?;
            size += piece.len() as u64;
            if size > limit {
                return Err(Refusal::too_large(shown.as_str(), size, limit).into());
            }
            Ok(piece)
        });
        Content::Stream(counted.boxed())
    }
}

impl<B: Backend> Guarded<B> {
    pub(super) async fn write_judged(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let operation = Operation::Write;
        let source = ReusableContent::new(content);
        let bytes = source.bytes();
        let mut gate = Gate::new(self, operation, path);
        let mut route = LinkResolution::new(path, options.links, LastLink::Followed);
        if bytes.is_none() && gate.may_lead_elsewhere(&route) {
            // A stream can be read only once, so the target must be known first.
            gate.check_call(&mut route, Intent::write).await?;
            route.follow(self.backend(), operation).await?;
        }
        loop {
            gate.check_call(&mut route, |at| Intent::write(at).bytes(bytes))
                .await?;
            let mut now = options.links(Links::Refuse);
            let asked = gate.asks();
            if let (WriteMode::Overwrite, Some(hash)) = (now.mode, gate.expects(route.at())) {
                now.mode = WriteMode::IfUnchanged(hash);
            }
            if asked {
                now.mode = self
                    .ask_to_write(&mut gate, &route, &source, options)
                    .await?;
            }
            let limit = self.policy.max_file_bytes(route.at());
            let content = source.content(limit, path);
            match self.backend().write(route.at(), content, now).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) if now.mode != options.mode => {
                    let error = gate.failed(changed_meanwhile(error));
                    self.follow_or_fail(&mut route, operation, error).await?;
                }
                Err(error) => self.follow_or_fail(&mut route, operation, error).await?,
            }
            if !source.is_unread() {
                return Err(gate.failed(Error::new(
                    ErrorKind::Conflict,
                    "a link on the path changed while the content was being written; write it again",
                )));
            }
        }
    }

    /// Asks for approval, and returns the mode for the write.
    async fn ask_to_write(
        &self,
        gate: &mut Gate<'_, B>,
        route: &LinkResolution,
        source: &ReusableContent,
        options: WriteOptions,
    ) -> Result<WriteMode> {
        if !self.backend().info().capabilities.writable {
            // There is nothing to show, because the write will fail.
            gate.ask(Effect::None).await?;
            return Ok(options.mode);
        }
        let before = match self.file_state(route.at()).await {
            Ok(before) => before,
            Err(error) if error.kind() == ErrorKind::IsADirectory => {
                return Err(gate.failed(options.mode.on_directory()));
            }
            Err(error) => return Err(error.as_part_of(Operation::Write, route.given())),
        };
        before
            .check(options.mode)
            .map_err(|error| gate.failed(error))?;
        let given = route.given();
        let effect = match source {
            ReusableContent::Bytes(new) => before.write_effect(given, new),
            ReusableContent::Stream(_) => Effect::None,
        };
        let bind = |question: Question| match before.hash() {
            Some(hash) => question.bind(route.at().clone(), hash),
            None => question,
        };
        gate.ask_as(effect, bind).await?;
        Ok(before.bind_mode(options.mode))
    }

    pub(super) async fn edit_judged(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        let operation = Operation::Edit;
        let mut gate = Gate::new(self, operation, path);
        let mut route = LinkResolution::new(path, options.links, LastLink::Followed);
        let mut attempts = EDIT_ATTEMPTS;
        loop {
            gate.check_call(&mut route, Intent::edit).await?;
            let mut now = options.links(Links::Refuse);
            if let (None, Some(hash)) = (now.expected, gate.expects(route.at())) {
                now = now.expected(hash);
            }
            let asked = gate.asks();
            if !self.backend().info().capabilities.writable {
                // There is nothing to show, because the edit will fail.
                gate.ask(Effect::None).await?;
            } else if asked || self.policy.max_file_bytes(route.at()).is_some() {
                match self.try_edit(&mut gate, &route, edits, now).await {
                    Ok(hash) => now = now.expected(hash),
                    Err(error) => {
                        self.follow_or_fail(&mut route, operation, error).await?;
                        continue;
                    }
                }
            }
            match self.backend().edit(route.at(), edits, now).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) if now.expected != options.expected => {
                    let again = error.kind() == ErrorKind::Conflict && attempts > 1;
                    if asked || !again {
                        let error = gate.failed(changed_meanwhile(error));
                        self.follow_or_fail(&mut route, operation, error).await?;
                    }
                    attempts = attempts.saturating_sub(1);
                }
                Err(error) => self.follow_or_fail(&mut route, operation, error).await?,
            }
        }
    }

    /// Performs the edit in memory, judges the size of the result, and asks for approval,
    /// showing the change. Returns the hash that the file must still have.
    async fn try_edit(
        &self,
        gate: &mut Gate<'_, B>,
        route: &LinkResolution,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<ContentHash> {
        let given = route.given();
        let read = ReadOptions::default()
            .links(Links::Refuse)
            .max_bytes(EDIT_BYTES);
        let found = self.backend().read(route.at(), read).await;
        let edited = match found {
            Ok(found) => {
                gate.check_size(Op::Read, route, found.size)?;
                let edited = edit_bytes(&found.data, edits, &options);
                edited.map(|(after, _)| (found.data, after))
            }
            Err(error) if super::link_resolution::is_link(&error) => return Err(error),
            Err(error) => Err(error),
        };
        let (before, after) = match edited {
            Ok(edited) => edited,
            Err(error) => {
                // The error reveals the file's contents, so it needs approval first.
                if gate.asks_to(Op::Read) {
                    gate.ask(Effect::None).await?;
                }
                return Err(gate.failed(error.as_part_of(Operation::Edit, given)));
            }
        };
        gate.check_size(Op::Edit, route, after.len() as u64)?;
        let hash = ContentHash::of(&before);
        let effect = if is_small(&before) && is_small(&after) {
            Effect::diff(given.as_str(), &before, &after)
        } else {
            Effect::None
        };
        let bind = |question: Question| question.bind(route.at().clone(), hash);
        gate.ask_as(effect, bind).await?;
        Ok(hash)
    }

    pub(super) async fn create_dir_judged(
        &self,
        path: &VPath,
        options: CreateDirOptions,
    ) -> Result<()> {
        let operation = Operation::CreateDir;
        let mut gate = Gate::new(self, operation, path);
        let mut route = LinkResolution::new(path, options.links, LastLink::Followed);
        let options = options.links(Links::Refuse);
        loop {
            gate.authorize(&mut route, Intent::create_dir).await?;
            match self.backend().create_dir(route.at(), options).await {
                Ok(()) => return Ok(()),
                Err(error) => self.follow_or_fail(&mut route, operation, error).await?,
            }
        }
    }
}
