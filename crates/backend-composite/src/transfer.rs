//! Moving and copying, within a child and from one to another.
//!
//! Within a child, its own operation is used. From one child to another, files are
//! read and written a piece at a time, directories one after another. A move
//! deletes its source only when the copy is complete and durable and the source has
//! not changed since.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use backend_core::derived::{check_destination, refuse_into_itself, refuse_working_dir};
use backend_core::ops::{
    CopyOptions, CreateDirOptions, DeleteOptions, Entry, FileKind, Links, LsOptions, RenameOptions,
    ResolveOptions, StatOptions,
};
use backend_core::{Error, ErrorKind, Operation, Quoted, Result, VPath};

use crate::backend::refuse_route_dir;
use crate::composite::Composite;
use crate::table::Table;

mod file;

/// A move or copy from one route to another.
struct Transfer {
    from: VPath,
    to: VPath,
    /// The entry at the source.
    source: Entry,
    overwrite: bool,
    durable: bool,
}

impl Composite {
    pub(crate) async fn rename_in(
        &self,
        table: &Table,
        from: &VPath,
        to: &VPath,
        options: RenameOptions,
    ) -> Result<()> {
        refuse_into_itself(from, to)?;
        refuse_working_dir(from, self.start_dir())?;
        refuse_route_dir(table, from)?;
        let (source, target) = (table.find(from), table.find(to));
        let same = Arc::ptr_eq(source.route.backend(), target.route.backend());
        if same && !target.is_route_dir() {
            let (child_from, child_to) = (source.route.to_child(from)?, target.route.to_child(to)?);
            let moved = source
                .route
                .backend()
                .rename(&child_from, &child_to, options);
            let translate_error = source.route.translate_error(Operation::Rename, from);
            return moved.await.map_err(translate_error);
        }
        let copy = CopyOptions::default()
            .links(options.links)
            .overwrite(options.overwrite)
            .recursive(true);
        let mut transfer = self.prepare(table, from, to, copy).await?;
        transfer.durable = true;
        if !source.route.backend().info().capabilities.writable {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                "its route is read-only, so it cannot be moved away; copy it instead",
            ));
        }
        self.move_across(table, &transfer).await
    }

    pub(crate) async fn copy_in(
        &self,
        table: &Table,
        from: &VPath,
        to: &VPath,
        options: CopyOptions,
    ) -> Result<()> {
        refuse_into_itself(from, to)?;
        let (source, target) = (table.find(from), table.find(to));
        let same = Arc::ptr_eq(source.route.backend(), target.route.backend());
        if same && !source.is_route_dir() && !target.is_route_dir() {
            let (child_from, child_to) = (source.route.to_child(from)?, target.route.to_child(to)?);
            let copied = source.route.backend().copy(&child_from, &child_to, options);
            let translate_error = source.route.translate_error(Operation::Copy, from);
            return copied.await.map_err(translate_error);
        }
        let transfer = self.prepare(table, from, to, options).await?;
        self.fingerprint(table, &transfer).await?;
        self.copy_tree(table, &transfer).await.map(drop)
    }

    /// Checks both ends, without looking into directories.
    async fn prepare(
        &self,
        table: &Table,
        from: &VPath,
        to: &VPath,
        options: CopyOptions,
    ) -> Result<Transfer> {
        let from = self.without_links_above(table, from, options.links).await?;
        let source = self.entry_unless_link(table, &from).await?;
        let Some(source) = source else {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a symbolic link cannot be copied to another route; copy its target",
            ));
        };
        if source.is_dir() && !options.recursive {
            return Err(Error::needs_recursive_copy());
        }
        let to = self.without_links_above(table, to, options.links).await?;
        refuse_into_itself(&from, &to)?;
        match Error::none_if_missing(self.entry_unless_link(table, &to).await)? {
            None => {}
            Some(None) => {
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    "the destination is a symbolic link; delete it or choose another path",
                ));
            }
            Some(existing) => check_destination(&source, existing.as_ref(), options.overwrite)?,
        }
        Ok(Transfer {
            from,
            to,
            source,
            overwrite: options.overwrite,
            durable: false,
        })
    }

    /// Returns the path after following, or refusing, links above its last name.
    async fn without_links_above(
        &self,
        table: &Table,
        path: &VPath,
        links: Links,
    ) -> Result<VPath> {
        let route = table.find(path).route;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(path.clone());
        };
        if !route.backend().info().capabilities.links {
            return Ok(path.clone());
        }
        if links == Links::Follow {
            let resolved = self.resolve_in(table, &parent, ResolveOptions::default());
            return Ok(resolved.await?.child(name)?);
        }
        let refuse = StatOptions::default().links(Links::Refuse);
        match self.stat_in(table, &parent, refuse).await {
            Err(error) if error.kind() == ErrorKind::IsALink => Err(error),
            _ => Ok(path.clone()),
        }
    }

    /// Returns the entry at a path without links above it; `None` if it is a link.
    async fn entry_unless_link(&self, table: &Table, path: &VPath) -> Result<Option<Entry>> {
        let refuse = StatOptions::default().links(Links::Refuse);
        match self.stat_in(table, path, refuse).await {
            Ok(entry) => Ok(Some(entry)),
            Err(error) if error.kind() == ErrorKind::IsALink => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Checks that everything in the source can be copied. Returns a fingerprint
    /// that changes if anything in the source changes.
    async fn fingerprint(&self, table: &Table, transfer: &Transfer) -> Result<u64> {
        let mut seen = DefaultHasher::new();
        let mut pending = vec![transfer.source.path.clone()];
        check_entry(&transfer.source, transfer)?;
        if !transfer.source.is_dir() {
            let now = self.entry_unless_link(table, &transfer.from).await?;
            now.map(|entry| (entry.size, entry.modified))
                .hash(&mut seen);
            return Ok(seen.finish());
        }
        while let Some(directory) = pending.pop() {
            for entry in self.entries(table, &directory).await? {
                check_entry(&entry, transfer)?;
                (entry.path.as_str(), entry.size, entry.modified).hash(&mut seen);
                if entry.is_dir() {
                    pending.push(entry.path);
                }
            }
        }
        Ok(seen.finish())
    }

    /// Lists everything in a directory, for copying.
    async fn entries(&self, table: &Table, directory: &VPath) -> Result<Vec<Entry>> {
        let all = LsOptions::default().links(Links::Refuse).limit(usize::MAX);
        let listing = self.ls_in(table, directory, all).await?;
        if listing.skipped.not_utf8 > 0 {
            return Err(Error::invalid_input(format!(
                "{} has names that are not UTF-8, which cannot be copied to another route; rename them first",
                Quoted::new(directory.as_str())
            )));
        }
        Ok(listing.entries)
    }

    /// Copies. Returns `true` if it created a file where nothing existed.
    async fn copy_tree(&self, table: &Table, transfer: &Transfer) -> Result<bool> {
        if !transfer.source.is_dir() {
            let (from, to) = (&transfer.from, &transfer.to);
            return self.copy_file(table, from, to, transfer).await;
        }
        let mut pending = vec![transfer.from.clone()];
        while let Some(directory) = pending.pop() {
            let target = directory.rebase(&transfer.from, &transfer.to)?;
            let create = CreateDirOptions::default().links(Links::Refuse);
            self.create_dir_in(table, &target, create).await?;
            for entry in self.entries(table, &directory).await? {
                check_entry(&entry, transfer)?;
                if entry.is_dir() {
                    pending.push(entry.path);
                    continue;
                }
                let target = entry.path.rebase(&transfer.from, &transfer.to)?;
                self.copy_file(table, &entry.path, &target, transfer)
                    .await?;
            }
        }
        Ok(false)
    }

    /// Copies, and deletes the source if it has not changed since.
    async fn move_across(&self, table: &Table, transfer: &Transfer) -> Result<()> {
        let before = self.fingerprint(table, transfer).await?;
        let created = self.copy_tree(table, transfer).await?;
        let removed = match self.fingerprint(table, transfer).await {
            Ok(after) if after == before => {
                let delete = DeleteOptions::default()
                    .links(Links::Refuse)
                    .recursive(transfer.source.is_dir());
                self.delete_in(table, &transfer.from, delete).await
            }
            Ok(_) => Err(Error::new(
                ErrorKind::Conflict,
                "the source changed during the copy and was kept; compare both and try again",
            )),
            Err(error) => Err(error),
        };
        if removed.is_err() && created {
            // The move failed, so the copy is undone. If that fails too, an extra
            // copy remains, and the caller gets the first error.
            let delete = DeleteOptions::default().links(Links::Refuse);
            let undone = self.delete_in(table, &transfer.to, delete).await;
            if let Err(error) = undone {
                tracing::warn!(%error, "the copy of a failed move could not be deleted");
            }
        }
        removed
    }
}

/// Checks that one entry of the source can be copied.
fn check_entry(entry: &Entry, transfer: &Transfer) -> Result<()> {
    entry.path.rebase(&transfer.from, &transfer.to)?;
    let name = Quoted::new(entry.path.as_str());
    match entry.kind {
        _ if entry.link => Err(Error::unsupported(format!(
            "the symbolic link {name} cannot be copied to another route; delete or replace it first"
        ))),
        FileKind::File | FileKind::Directory => Ok(()),
        _ => Err(Error::invalid_input(format!(
            "{name} is neither a file nor a directory, and cannot be copied; delete it first"
        ))),
    }
}
