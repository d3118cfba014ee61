//! Serves the sandbox over one stream, and ends what was started over it.

use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::{CreateDirOptions, StopMode};
use backend_core::{Backend as _, Result, Sandbox as _};
use backend_local::{Commands, Environment, LocalBackend};
use sandbox_wire::ServeOptions;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::arguments::Arguments;
use crate::complain;

/// The time that commands get to end. Any that are left are ended by the
/// supervisor, which notices that its host is gone.
const FAREWELL: Duration = Duration::from_secs(30);

/// Opens the directory to serve.
pub(crate) fn open(arguments: &Arguments) -> Result<LocalBackend> {
    let commands = Commands::new().environment(Environment::everything());
    LocalBackend::builder(&arguments.root)
        .working_dir(arguments.directory.clone())
        .read_only(arguments.read_only)
        .enable_execute(true)
        .commands(commands)
        .open()
}

/// Serves `backend` until the stream ends or `interrupted` is ready, and then ends
/// everything that runs on it.
pub(crate) async fn serve<R, W>(
    backend: LocalBackend,
    arguments: &Arguments,
    reader: R,
    writer: W,
    interrupted: impl Future<Output = ()>,
) -> Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let options = CreateDirOptions::default();
    if !arguments.read_only
        && let Err(error) = backend.create_dir(&arguments.directory, options).await
    {
        // Calls that need it will fail with an error. The rest of the sandbox
        // works.
        complain(&format!(
            "the working directory is missing: {}",
            error.chain()
        ));
    }
    let ended = tokio::select! {
        ended = sandbox_wire::serve(
            reader,
            writer,
            Arc::new(backend.clone()),
            ServeOptions::default(),
        ) => ended,
        () = interrupted => Ok(()),
    };
    let stopped = tokio::time::timeout(FAREWELL, backend.stop(StopMode::Purge)).await;
    match stopped {
        Ok(Err(error)) => complain(&format!("commands may still be running: {}", error.chain())),
        Err(_) => complain("commands are still ending"),
        Ok(Ok(())) => {}
    }
    ended
}
