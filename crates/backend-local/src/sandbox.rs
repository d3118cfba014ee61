//! [`LocalBackend`] as a [`Sandbox`].

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{
    Command, ExecuteOutcome, Links, ShellId, ShellInfo, ShellOutput, Signal, StopMode, TerminalSize,
};
use backend_core::{
    Backend as _, CommandPaths, Connection, Error, ErrorKind, EventStream, Operation, Result,
    Sandbox, TracedPath, VPath,
};
use backend_run::Shells;
use bytes::Bytes;

use crate::backend::{LocalBackend, NAME};
use crate::engine;
use crate::exec::{self, Runner, Task};
use crate::fs::LIST;

impl LocalBackend {
    fn runner(&self) -> Result<&Runner> {
        self.inner.runner.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::PermissionDenied,
                "commands are switched off; open the backend with `enable_execute(true)`",
            )
        })
    }

    /// Returns the shells, and records that the sandbox is in use.
    fn shells(&self) -> Result<&Shells> {
        let state = &self.runner()?.state;
        state.activity.touch();
        Ok(&state.shells)
    }

    /// Checks a command and opens its directory.
    async fn task(&self, command: Command, operation: Operation) -> Result<(&Runner, Task)> {
        let runner = self.runner()?;
        match operation {
            Operation::Shell => command.check()?,
            _ => command.check_without_terminal()?,
        }
        command.check_level(&self.info())?;
        let directory = self.directory(runner, command.directory.as_ref(), operation);
        let directory = directory.await?;
        Ok((runner, Task::new(&runner.state, command, directory)))
    }

    /// Opens a command's directory. The working directory stays open for later
    /// commands, unless it lies beneath the root, where it may be replaced.
    async fn directory(
        &self,
        runner: &Runner,
        wanted: Option<&VPath>,
        operation: Operation,
    ) -> Result<Arc<OwnedFd>> {
        let kept = runner.working.get().filter(|_| wanted.is_none());
        if let Some(kept) = kept {
            return Ok(Arc::clone(kept));
        }
        let fs = &self.inner.fs;
        let path = wanted.cloned().unwrap_or_else(|| fs.working_dir());
        let directory = match fs.open_cached(&path, LIST, Links::Follow) {
            Some(directory) => directory,
            None => {
                let (inner, wanted) = (Arc::clone(&self.inner), path.clone());
                let opened =
                    engine::blocking(move || inner.fs.open_path(&wanted, LIST, Links::Follow));
                opened.await.map_err(|error| error.at(operation, &path))?
            }
        };
        let directory = Arc::new(directory);
        if wanted.is_none() && !fs.home_is_inside() {
            let _ = runner.working.set(Arc::clone(&directory));
        }
        Ok(directory)
    }
}

/// Adds the operation and the backend to an error.
fn during(operation: Operation) -> impl FnOnce(Error) -> Error {
    move |error| error.during(operation).on(NAME)
}

#[async_trait]
impl Sandbox for LocalBackend {
    fn id(&self) -> String {
        let runner = self.inner.runner.as_ref();
        runner.map_or_else(|| NAME.into(), |runner| runner.state.id.clone())
    }

    async fn start(&self) -> Result<()> {
        let start = async { self.runner()?.start().await };
        start.await.map_err(during(Operation::Start))
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        match &self.inner.runner {
            Some(runner) => runner.stop(mode).await.map_err(during(Operation::Stop)),
            None => Ok(()),
        }
    }

    async fn is_alive(&self) -> Result<bool> {
        let runner = self.inner.runner.as_ref();
        Ok(runner.is_some_and(|runner| runner.state.is_alive()))
    }

    fn last_activity(&self) -> SystemTime {
        let runner = self.inner.runner.as_ref();
        runner.map_or(SystemTime::UNIX_EPOCH, |runner| {
            runner.state.activity.last()
        })
    }

    fn command_names(&self, _: &VPath) -> CommandPaths {
        let names = self.inner.fs.command_names();
        let runner = self.inner.runner.as_ref();
        let home = runner.and_then(|runner| runner.state.variable("HOME"));
        let home = home.and_then(|home| VPath::parse(home.to_str()?).ok());
        match home {
            Some(home) => names.with_home(home),
            None => names,
        }
    }

    async fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>> {
        let (inner, paths, directory) =
            (Arc::clone(&self.inner), paths.to_vec(), directory.clone());
        let traced = engine::blocking(move || Ok(inner.fs.trace(&directory, &paths)));
        traced.await.map_err(during(Operation::Execute))
    }

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        let run = async {
            let (runner, task) = self.task(command, Operation::Execute).await?;
            runner.execute(task).await
        };
        run.await.map_err(during(Operation::Execute))
    }

    async fn stream(&self, command: Command) -> Result<EventStream> {
        let run = async {
            let (_, task) = self.task(command, Operation::Stream).await?;
            backend_run::stream(engine::handle()?, task).await
        };
        run.await.map_err(during(Operation::Stream))
    }

    async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        let run = async {
            let (runner, task) = self.task(command, Operation::Shell).await?;
            runner.state.shells.start(task).await
        };
        run.await.map_err(during(Operation::Shell))
    }

    async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        let read = async { self.shells()?.read(id, wait).await };
        read.await.map_err(during(Operation::Shell))
    }

    async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        let write = async { self.shells()?.write(id, input).await };
        write.await.map_err(during(Operation::Shell))
    }

    async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        let kill = async { self.shells()?.kill(id).await };
        kill.await.map_err(during(Operation::Shell))
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        let runner = self.runner().map_err(during(Operation::Shell))?;
        Ok(runner.state.shells.list())
    }

    async fn connect(&self, port: u16) -> Result<Connection> {
        let connect = async {
            let state = &self.runner()?.state;
            if !state.has_network() {
                return Err(Error::unsupported(
                    "commands have no network here, so none listens on a port; allow it with \
                     `Landlock::network`",
                ));
            }
            exec::connect(state, port).await
        };
        let connection = connect.await.map_err(during(Operation::Connect))?;
        Ok(connection.map_err(|error| during(Operation::Connect)(error)))
    }

    async fn shell_attach(&self, id: &ShellId) -> Result<Connection> {
        let attach = || self.shells()?.attach(id);
        attach().map_err(during(Operation::Shell))
    }

    async fn shell_resize(&self, id: &ShellId, size: TerminalSize) -> Result<()> {
        let resize = || self.shells()?.resize(id, size);
        resize().map_err(during(Operation::Shell))
    }

    async fn shell_signal(&self, id: &ShellId, signal: Signal) -> Result<()> {
        let send = async { self.shells()?.signal(id, signal).await };
        send.await.map_err(during(Operation::Shell))
    }
}
