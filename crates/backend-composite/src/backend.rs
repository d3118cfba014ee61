//! The [`Backend`] implementation: each call goes to the child that owns its path,
//! and the result is translated into the composite's paths.

use std::borrow::Cow;

use async_trait::async_trait;
use backend_core::derived::refuse_working_dir;
use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WatchQuery, WriteOptions,
    WriteOutcome,
};
use backend_core::text::{TextWindow, WindowScanner};
use backend_core::{
    Backend, BackendInfo, Capabilities, Containment, Edit, Enforcement, Error, ErrorKind,
    Operation, Quoted, Result, Sandbox, VPath, WatchStream,
};

use crate::composite::Composite;
use crate::failure::NAME;
use crate::table::Table;

/// Returns a function for `map_err`, for a call that fails here and not in a child.
pub(crate) fn failed(operation: Operation, path: &VPath) -> impl FnOnce(Error) -> Error {
    Error::context(NAME, operation, path)
}

/// As [`failed`], for an operation built from other operations, whose errors name those.
fn as_compound(operation: Operation, path: &VPath) -> impl FnOnce(Error) -> Error {
    move |error| match error.operation() {
        Some(told) if told == operation => error.on(NAME),
        _ => error.as_part_of(operation, path).on(NAME),
    }
}

/// Refuses to delete or move a route's prefix or a directory above one.
pub(crate) fn refuse_route_dir(table: &Table, path: &VPath) -> Result<()> {
    if table.find(path).is_route_dir() {
        return Err(Error::invalid_input(
            "it is the root of a route or lies above one; name what is in it, or remove the route",
        ));
    }
    Ok(())
}

/// Combines the capabilities of the children. The composite can do what any child
/// can do. Properties of every file (modes, times, durability) hold only if all
/// children have them, and changes of every directory are told only if all tell them.
fn capabilities(table: &Table) -> Capabilities {
    let of_children = || {
        let routes = table.routes().values();
        routes.map(|route| route.backend().info().capabilities)
    };
    let any = |has: fn(&Capabilities) -> bool| of_children().any(|child| has(&child));
    let all = |has: fn(&Capabilities) -> bool| any(has) && of_children().all(|child| has(&child));
    let mut combined = Capabilities::default();
    combined.writable = any(|child| child.writable);
    combined.links = any(|child| child.links);
    combined.commands = any(|child| child.commands);
    combined.modes = all(|child| child.modes);
    combined.times = all(|child| child.times);
    combined.durable = all(|child| child.durable);
    combined.watch = all(|child| child.watch);
    combined
}

/// Returns the weakest containment of the children that run commands.
fn containment(table: &Table) -> Containment {
    let strength = |containment: &Containment| match containment {
        Containment::Isolated => 2,
        Containment::Supervised => 1,
        _ => 0,
    };
    let routes = table.routes().values();
    routes
        .map(|route| route.backend().info())
        .filter(|info| info.capabilities.commands)
        .map(|info| info.containment)
        .min_by_key(strength)
        .unwrap_or(Containment::NoCommands)
}

/// Returns the lowest level of the children that run commands, so that no command has less,
/// and the reason.
fn enforcement(table: &Table) -> (Enforcement, Option<Cow<'static, str>>) {
    let routes = table.routes().values();
    let infos = routes.map(|route| (route, route.backend().info()));
    let all: Vec<_> = infos
        .filter(|(_, info)| info.capabilities.commands)
        .collect();
    let Some((route, info)) = all.iter().min_by_key(|(_, info)| info.enforcement) else {
        return (Enforcement::default(), None);
    };
    let is_same = |(_, other): &(_, BackendInfo)| other.enforcement == info.enforcement;
    let limit = if all.iter().all(is_same) {
        info.enforcement_limit.clone()
    } else {
        let prefix = Quoted::new(route.prefix().as_str());
        let why = info.enforcement_limit.as_deref();
        let why = why.unwrap_or("leave out that route, or require less");
        Some(format!("commands in {prefix} have no higher level: {why}").into())
    };
    (info.enforcement, limit)
}

#[async_trait]
impl Backend for Composite {
    fn info(&self) -> BackendInfo {
        let table = self.table();
        let mut capabilities = capabilities(&table);
        let working = table.find(self.start_dir()).route.backend().info();
        capabilities.ports = working.capabilities.ports;
        capabilities.terminals = working.capabilities.terminals;
        let (level, limit) = enforcement(&table);
        BackendInfo::new(NAME, capabilities)
            .containment(containment(&table))
            .enforcement(level)
            .enforcement_limit(limit)
    }

    fn working_dir(&self) -> VPath {
        self.start_dir().clone()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        let table = self.table();
        let mut routes = table.routes().values();
        routes
            .any(|route| route.backend().as_sandbox().is_some())
            .then_some(self)
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        self.resolve_in(&self.table(), path, options).await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        self.stat_in(&self.table(), path, options).await
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        self.ls_in(&self.table(), path, options).await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        let table = self.table();
        let lookup = table.find(path);
        if lookup.is_route_dir() {
            return Err(failed(Operation::Read, path)(Error::is_a_directory()));
        }
        let translate_error = || lookup.route.translate_error(Operation::Read, path);
        let at = lookup.route.to_child(path).map_err(translate_error())?;
        let read = lookup.route.backend().read(&at, options).await;
        self.skip_failure(lookup.route, read.map_err(translate_error()))
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        let table = self.table();
        let lookup = table.find(path);
        if lookup.is_route_dir() {
            let asked = WindowScanner::new(options).map_err(Error::from);
            let error = asked.err().unwrap_or_else(Error::is_a_directory);
            return Err(failed(Operation::ReadText, path)(error));
        }
        let translate_error = || lookup.route.translate_error(Operation::ReadText, path);
        let at = lookup.route.to_child(path).map_err(translate_error())?;
        let read = lookup.route.backend().read_text(&at, options).await;
        read.map_err(translate_error())
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        self.write_in(&self.table(), path, content, options).await
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        let table = self.table();
        let lookup = table.find(path);
        if lookup.is_route_dir() {
            return Err(failed(Operation::Edit, path)(Error::is_a_directory()));
        }
        let translate_error = || lookup.route.translate_error(Operation::Edit, path);
        let at = lookup.route.to_child(path).map_err(translate_error())?;
        let edited = lookup.route.backend().edit(&at, edits, options).await;
        edited.map_err(translate_error())
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.create_dir_in(&self.table(), path, options).await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        let table = self.table();
        let refused = refuse_working_dir(path, self.start_dir())
            .and_then(|()| refuse_route_dir(&table, path));
        refused.map_err(failed(Operation::Delete, path))?;
        self.delete_in(&table, path, options).await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        let moved = self.rename_in(&self.table(), from, to, options).await;
        moved.map_err(as_compound(Operation::Rename, from))
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        let copied = self.copy_in(&self.table(), from, to, options).await;
        copied.map_err(as_compound(Operation::Copy, from))
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        let path = query.path.clone();
        let found = self.glob_in(&self.table(), query).await;
        found.map_err(failed(Operation::Glob, &path))
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        let path = query.path.clone();
        let found = self.grep_in(&self.table(), query).await;
        found.map_err(failed(Operation::Grep, &path))
    }

    async fn watch(&self, query: WatchQuery) -> Result<WatchStream> {
        let path = query.path.clone();
        let watched = self.watch_in(&self.table(), query).await;
        watched.map_err(failed(Operation::Watch, &path))
    }
}

/// The basic operations from which others are built, on a given table of routes.
impl Composite {
    pub(crate) async fn resolve_in(
        &self,
        table: &Table,
        path: &VPath,
        options: ResolveOptions,
    ) -> Result<VPath> {
        let lookup = table.find(path);
        if lookup.is_route_dir() {
            return Ok(path.clone());
        }
        let translate_error = || lookup.route.translate_error(Operation::Resolve, path);
        let at = lookup.route.to_child(path).map_err(translate_error())?;
        let resolved = lookup.route.backend().resolve(&at, options).await;
        let resolved = resolved.map_err(translate_error())?;
        // The target of a link must have a path in the composite that leads to the same route.
        let named = lookup.route.to_composite(&resolved).ok();
        let named = named.filter(|named| {
            let reached = table.find(named);
            std::sync::Arc::ptr_eq(reached.route, lookup.route)
        });
        named.ok_or_else(|| {
            let message =
                "the link's target is not visible through this route; use a path without the link";
            let error = Error::new(ErrorKind::PermissionDenied, message);
            failed(Operation::Resolve, path)(error)
        })
    }

    pub(crate) async fn write_in(
        &self,
        table: &Table,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let lookup = table.find(path);
        if lookup.is_route_dir() {
            let error = options.mode.on_directory();
            return Err(failed(Operation::Write, path)(error));
        }
        let translate_error = || lookup.route.translate_error(Operation::Write, path);
        let at = lookup.route.to_child(path).map_err(translate_error())?;
        let written = lookup.route.backend().write(&at, content, options).await;
        written.map_err(translate_error())
    }

    pub(crate) async fn create_dir_in(
        &self,
        table: &Table,
        path: &VPath,
        options: CreateDirOptions,
    ) -> Result<()> {
        let lookup = table.find(path);
        if lookup.is_synthetic(path) {
            return Ok(());
        }
        let translate_error = || lookup.route.translate_error(Operation::CreateDir, path);
        let at = lookup.route.to_child(path).map_err(translate_error())?;
        let created = lookup.route.backend().create_dir(&at, options).await;
        created.map_err(translate_error())
    }

    pub(crate) async fn delete_in(
        &self,
        table: &Table,
        path: &VPath,
        options: DeleteOptions,
    ) -> Result<()> {
        let lookup = table.find(path);
        let translate_error = || lookup.route.translate_error(Operation::Delete, path);
        let at = lookup.route.to_child(path).map_err(translate_error())?;
        let deleted = lookup.route.backend().delete(&at, options).await;
        deleted.map_err(translate_error())
    }
}
