//! The [`Sandbox`] implementation: a command runs in the child that owns its
//! directory; lifecycle calls go to every child that runs commands.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{
    Command, ExecuteOutcome, ShellId, ShellInfo, ShellOutput, Signal, StopMode, TerminalSize, View,
};
use backend_core::{
    CommandPaths, Connection, Enforcement, Error, ErrorKind, EventStream, Operation, Result,
    Sandbox, TracedPath, VPath,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::join_all;

use crate::composite::Composite;
use crate::failure::NAME;
use crate::route::Route;
use crate::search::moved_exclude;
use crate::table::Table;

impl Route {
    /// Returns the error for a route that runs no commands.
    pub(crate) fn without_commands(&self, operation: Operation) -> Error {
        let error = Error::new(
            ErrorKind::Unsupported,
            "this backend runs no commands; choose a directory of a route that does",
        );
        self.named(error.as_part_of(operation, self.prefix()).on(NAME))
    }

    fn sandbox(&self, operation: Operation) -> Result<&dyn Sandbox> {
        let sandbox = self.backend().as_sandbox();
        sandbox.ok_or_else(|| self.without_commands(operation))
    }

    /// Returns the composite's id of a shell: the route, a colon, the child's id.
    fn shell_id(&self, id: &ShellId) -> ShellId {
        ShellId::new(format!("{}:{id}", escaped(self.prefix())))
    }
}

/// Escapes colons in the prefix, so that the first colon in an id ends the prefix.
fn escaped(prefix: &VPath) -> String {
    prefix.as_str().replace('%', "%25").replace(':', "%3A")
}

/// Returns the routes whose children run commands.
fn sandboxes(table: &Table) -> impl Iterator<Item = &Arc<Route>> {
    let routes = table.routes().values();
    routes.filter(|route| route.backend().as_sandbox().is_some())
}

/// Returns the route that a shell's id begins with, and the child's id of the shell.
fn shell_route<'t>(table: &'t Table, id: &ShellId) -> Result<(&'t Arc<Route>, ShellId)> {
    let unknown = || {
        let message = "there is no such shell; list them to see which there are";
        let error = Error::new(ErrorKind::NotFound, message);
        error.during(Operation::Shell).on(NAME)
    };
    let (prefix, inner) = id.as_str().split_once(':').ok_or_else(unknown)?;
    let route = sandboxes(table).find(|route| escaped(route.prefix()) == prefix);
    Ok((route.ok_or_else(unknown)?, ShellId::new(inner)))
}

/// Returns the child's mapping between its paths and those of a command in `directory`.
fn child_paths(route: &Route, directory: &VPath) -> Option<CommandPaths> {
    let inside = route.to_child(directory).ok()?;
    Some(route.backend().as_sandbox()?.command_names(&inside))
}

/// Translates the child's mapping to one between the composite's paths and those of commands.
fn translate_paths(route: &Route, child: &CommandPaths) -> CommandPaths {
    let mut names = CommandPaths::default();
    if child.roots().is_empty() {
        names = names.with_root(route.prefix().clone(), route.base().clone());
    }
    for (directory, there) in child.roots() {
        if let Some((directory, there)) = shown(route, directory, there) {
            names = names.with_root(directory, there);
        }
    }
    for (directory, there) in child.aliases() {
        if let Some((directory, there)) = shown(route, directory, there) {
            names = names.with_alias(directory, there);
        }
    }
    if let Some(home) = child.home() {
        names = names.with_home(home.clone());
    }
    names
}

/// Translates a directory of the child, which commands see at `there`, into one of the
/// composite. If the route shows only a part of it, returns that part.
fn shown(route: &Route, directory: &VPath, there: &VPath) -> Option<(VPath, VPath)> {
    if let Ok(outside) = route.to_composite(directory) {
        return Some((outside, there.clone()));
    }
    let there = route.base().rebase(directory, there).ok()?;
    Some((route.prefix().clone(), there))
}

/// Returns `true` if commands of the child see paths of the host.
fn is_on_host(child: &CommandPaths) -> bool {
    child.roots().iter().any(|(_, there)| !there.is_root())
}

/// Returns the path at which commands of the child see its `path`.
fn seen_by_commands(child: &CommandPaths, path: &VPath) -> String {
    let mut roots = child.roots().iter();
    let seen = roots.find_map(|(directory, there)| path.rebase(directory, there).ok());
    seen.as_ref().unwrap_or(path).to_string()
}

/// Translates a host path that another child shows into the composite's path.
fn shown_elsewhere(names: &CommandPaths, path: &str) -> Option<VPath> {
    let path = VPath::parse(path).ok()?;
    let mut known = names.aliases().iter();
    known.find_map(|(directory, at)| path.rebase(at, directory).ok())
}

/// Translates the paths that are kept from a command into those of the route's child. If
/// that cannot be done, they are dropped only where the child would not keep them anyway.
fn child_view(route: &Route, mut view: View, level: Enforcement) -> Result<View> {
    let moved = [&view.deny_read, &view.deny_write].map(|paths| moved_exclude(paths, route));
    let [read, write] = match moved {
        [Some(read), Some(write)] => [read, write],
        _ if level < Enforcement::View => Default::default(),
        _ => {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                "the rules about paths cannot be written for this route; use fewer '**' and '{a,b}' in them",
            ));
        }
    };
    (view.deny_read, view.deny_write) = (read, write);
    Ok(view)
}

impl Composite {
    /// Returns the route that runs `command`, and the command with the paths of its child.
    fn route_command<'t>(
        &self,
        table: &'t Table,
        mut command: Command,
        operation: Operation,
    ) -> Result<(&'t Arc<Route>, VPath, Command)> {
        let directory = command
            .directory
            .take()
            .unwrap_or_else(|| self.start_dir().clone());
        let failed = || Error::context(NAME, operation, &directory);
        command.check().map_err(failed())?;
        let route = table.find(&directory).route;
        route.sandbox(operation)?;
        let info = route.backend().info();
        let checked = command.check_level(&info).map_err(Error::from);
        checked.map_err(failed())?;
        command.directory = Some(route.to_child(&directory).map_err(failed())?);
        command.view = child_view(route, command.view, info.enforcement).map_err(failed())?;
        Ok((route, directory, command))
    }
}

#[async_trait]
impl Sandbox for Composite {
    fn id(&self) -> String {
        self.own_id().to_owned()
    }

    async fn start(&self) -> Result<()> {
        let table = self.table();
        let starts = sandboxes(&table).map(|route| async move {
            let started = route.sandbox(Operation::Start)?.start().await;
            started.map_err(route.translate_error(Operation::Start, route.prefix()))
        });
        join_all(starts).await.into_iter().collect()
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        let table = self.table();
        let stops = sandboxes(&table).map(|route| async move {
            let stopped = route.sandbox(Operation::Stop)?.stop(mode).await;
            stopped.map_err(route.translate_error(Operation::Stop, route.prefix()))
        });
        join_all(stops).await.into_iter().collect()
    }

    async fn is_alive(&self) -> Result<bool> {
        let table = self.table();
        let looks = sandboxes(&table).map(|route| async move {
            let alive = route.sandbox(Operation::Start)?.is_alive().await;
            alive.map_err(route.translate_error(Operation::Start, route.prefix()))
        });
        let alive: Result<Vec<bool>> = join_all(looks).await.into_iter().collect();
        Ok(alive?.into_iter().all(|alive| alive))
    }

    fn last_activity(&self) -> SystemTime {
        let table = self.table();
        let newest = sandboxes(&table)
            .filter_map(|route| route.backend().as_sandbox())
            .map(|sandbox| sandbox.last_activity())
            .max();
        newest.unwrap_or(SystemTime::UNIX_EPOCH)
    }

    fn command_names(&self, directory: &VPath) -> CommandPaths {
        let table = self.table();
        let route = table.find(directory).route;
        let Some(child) = child_paths(route, directory) else {
            return CommandPaths::default();
        };
        let mut names = translate_paths(route, &child);
        if !is_on_host(&child) {
            return names;
        }
        // Children that show host directories are assumed to be on the same host.
        for other in sandboxes(&table).filter(|other| other.prefix() != route.prefix()) {
            let Some(child) = child_paths(other, other.prefix()).filter(is_on_host) else {
                continue;
            };
            let others = translate_paths(other, &child);
            for (directory, there) in others.roots().iter().chain(others.aliases()) {
                names = names.with_alias(directory.clone(), there.clone());
            }
        }
        names
    }

    async fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>> {
        let table = self.table();
        let route = table.find(directory).route;
        let failed = || Error::context(NAME, Operation::Execute, directory);
        let inside = route.to_child(directory).map_err(failed())?;
        let sandbox = route.sandbox(Operation::Execute)?;
        let child = sandbox.command_names(&inside);
        let traced = sandbox.trace(&inside, paths);
        let traced = traced
            .await
            .map_err(route.translate_error(Operation::Execute, directory))?;
        let names = self.command_names(directory);
        let elsewhere = |path: String| {
            shown_elsewhere(&names, &path).map_or(TracedPath::Outside(path), TracedPath::Inside)
        };
        let renamed = |reached| match reached {
            TracedPath::Inside(path) => match route.to_composite(&path) {
                Ok(path) => TracedPath::Inside(path),
                Err(_) => elsewhere(seen_by_commands(&child, &path)),
            },
            TracedPath::Outside(path) => elsewhere(path),
            other => other,
        };
        Ok(traced.into_iter().map(renamed).collect())
    }

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        let table = self.table();
        let (route, directory, command) =
            self.route_command(&table, command, Operation::Execute)?;
        let ran = route.sandbox(Operation::Execute)?.execute(command).await;
        ran.map_err(route.translate_error(Operation::Execute, &directory))
    }

    async fn stream(&self, command: Command) -> Result<EventStream> {
        let table = self.table();
        let (route, directory, command) = self.route_command(&table, command, Operation::Stream)?;
        let events = route.sandbox(Operation::Stream)?.stream(command).await;
        let events = events.map_err(route.translate_error(Operation::Stream, &directory))?;
        let route = Arc::clone(route);
        let relayed = events.map(move |event| {
            event.map_err(|error| route.translate_error(Operation::Stream, &directory)(error))
        });
        Ok(relayed.boxed())
    }

    async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        let table = self.table();
        let (route, directory, command) = self.route_command(&table, command, Operation::Shell)?;
        let started = route.sandbox(Operation::Shell)?.shell_start(command).await;
        let mut info = started.map_err(route.translate_error(Operation::Shell, &directory))?;
        info.id = route.shell_id(&info.id);
        Ok(info)
    }

    async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        let table = self.table();
        let (route, inner) = shell_route(&table, id)?;
        let sandbox = route.sandbox(Operation::Shell)?;
        let read = sandbox.shell_read(&inner, wait).await;
        read.map_err(route.translate_error(Operation::Shell, route.prefix()))
    }

    async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        let table = self.table();
        let (route, inner) = shell_route(&table, id)?;
        let sandbox = route.sandbox(Operation::Shell)?;
        let written = sandbox.shell_write(&inner, input).await;
        written.map_err(route.translate_error(Operation::Shell, route.prefix()))
    }

    async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        let table = self.table();
        let (route, inner) = shell_route(&table, id)?;
        let killed = route.sandbox(Operation::Shell)?.shell_kill(&inner).await;
        killed.map_err(route.translate_error(Operation::Shell, route.prefix()))
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        let table = self.table();
        let lists = sandboxes(&table).map(|route| async move {
            let listed = route.sandbox(Operation::Shell)?.shell_list().await;
            let mut shells =
                listed.map_err(route.translate_error(Operation::Shell, route.prefix()))?;
            for shell in &mut shells {
                shell.id = route.shell_id(&shell.id);
            }
            Ok(shells)
        });
        let lists: Result<Vec<_>> = join_all(lists).await.into_iter().collect();
        Ok(lists?.into_iter().flatten().collect())
    }

    /// Connects to a port of the child that runs commands in the working directory.
    async fn connect(&self, port: u16) -> Result<Connection> {
        let table = self.table();
        let route = table.find(self.start_dir()).route;
        let connected = route.sandbox(Operation::Connect)?.connect(port).await;
        let connection =
            connected.map_err(route.translate_error(Operation::Connect, route.prefix()))?;
        let route = Arc::clone(route);
        Ok(connection
            .map_err(move |error| route.translate_error(Operation::Connect, route.prefix())(error)))
    }

    async fn shell_attach(&self, id: &ShellId) -> Result<Connection> {
        let table = self.table();
        let (route, inner) = shell_route(&table, id)?;
        let attached = route.sandbox(Operation::Shell)?.shell_attach(&inner).await;
        let connection =
            attached.map_err(route.translate_error(Operation::Shell, route.prefix()))?;
        let route = Arc::clone(route);
        Ok(connection
            .map_err(move |error| route.translate_error(Operation::Shell, route.prefix())(error)))
    }

    async fn shell_resize(&self, id: &ShellId, size: TerminalSize) -> Result<()> {
        let table = self.table();
        let (route, inner) = shell_route(&table, id)?;
        let sandbox = route.sandbox(Operation::Shell)?;
        let resized = sandbox.shell_resize(&inner, size).await;
        resized.map_err(route.translate_error(Operation::Shell, route.prefix()))
    }

    async fn shell_signal(&self, id: &ShellId, signal: Signal) -> Result<()> {
        let table = self.table();
        let (route, inner) = shell_route(&table, id)?;
        let sandbox = route.sandbox(Operation::Shell)?;
        let sent = sandbox.shell_signal(&inner, signal).await;
        sent.map_err(route.translate_error(Operation::Shell, route.prefix()))
    }
}
