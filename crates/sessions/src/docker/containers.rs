//! Creating the containers of sessions, and the ones that wait for a session.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, Result, Sandbox as _};
use backend_docker::image::{self, BuildOptions};
use backend_docker::{DEFAULT_WORKING_DIR, Daemon, DockerBuilder, DockerSandbox, Volume};
use futures_util::StreamExt as _;
use sandbox_runtime::Runtime;
use tokio::sync::oneshot;

use super::files::Files;
use super::names::{self, Names};
use crate::pool::Source;
use crate::request::{OpenRequest, fingerprint};

/// Creates containers. All of them begin without a session, under a name of their own,
/// and get that of a session once they are complete.
#[derive(Debug)]
pub(super) struct Containers {
    pub(super) daemon: Daemon,
    pub(super) template: DockerBuilder,
    pub(super) images: BuildOptions,
    pub(super) names: Names,
}

impl Containers {
    /// Makes sure that there is an image, and reports the progress to the request.
    pub(super) async fn image(&self, runtime: &Runtime, request: &OpenRequest) -> Result<()> {
        let mut build = image::build(&self.daemon, runtime, &self.images)?;
        while let Some(event) = build.next().await {
            request.report_progress(&event.to_string());
        }
        build.finish().await.map(drop)
    }

    /// Creates and starts a container. `spare` is the key of the directory that is
    /// mounted, if it is not that of a session.
    pub(super) async fn create(
        &self,
        runtime: &Runtime,
        workspace: Option<&Path>,
        spare: Option<&str>,
    ) -> Result<DockerSandbox> {
        let working_dir = match &*runtime.work_dir {
            "" => DEFAULT_WORKING_DIR,
            directory => directory,
        };
        let key = spare.map_or_else(names::new_key, str::to_owned);
        let mut builder = self
            .template
            .clone()
            .daemon(self.daemon.clone())
            .runtime(runtime.clone())
            .build_options(self.images.clone())
            .working_dir(working_dir)
            .name(self.names.spare(&key))
            .label(names::SPACE, self.names.space())
            .label(names::RUNTIME, fingerprint(runtime));
        if let Some(spare) = spare {
            builder = builder.label(names::SPARE, spare);
        }
        if let Some(workspace) = workspace {
            builder = builder.volume(Volume::host(workspace, working_dir).owned(true));
        }
        builder.create().await
    }
}

/// Removes a container. A failure is logged: another process removes the container when
/// this one has ended.
pub(super) async fn remove(sandbox: &DockerSandbox) {
    if let Err(error) = sandbox.stop(StopMode::Purge).await {
        let container = sandbox.container();
        tracing::warn!(container, "a container was left behind: {}", error.chain());
    }
}

/// Runs work that waits for the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (reply, answer) = oneshot::channel();
    let work: Box<dyn FnOnce() + Send> = Box::new(move || {
        let _ = reply.send(work());
    });
    drop(tokio::task::spawn_blocking(work));
    answer
        .await
        .unwrap_or_else(|_| Err(Error::internal("work on a session's files panicked")))
}

/// A container that waits for a session, with its agent connected.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) key: String,
    pub(super) sandbox: DockerSandbox,
}

/// Makes the containers of one runtime that wait for a session.
#[derive(Debug)]
pub(super) struct Spares {
    pub(super) containers: Arc<Containers>,
    pub(super) runtime: Runtime,
    pub(super) files: Option<Files>,
}

impl Spares {
    async fn remove_files(&self, key: &str) {
        let Some(files) = self.files.clone() else {
            return;
        };
        let name = key.to_owned();
        if let Err(error) = blocking(move || files.remove_spare(&name)).await {
            tracing::warn!(key, "a directory was left behind: {}", error.chain());
        }
    }

    async fn make_of(&self, key: &str) -> Result<DockerSandbox> {
        let workspace = match self.files.clone() {
            Some(files) => {
                let key = key.to_owned();
                Some(blocking(move || files.prepare_spare(&key)).await?)
            }
            None => None,
        };
        let workspace = workspace.as_deref();
        let created = self.containers.create(&self.runtime, workspace, Some(key));
        let sandbox = created.await?;
        match sandbox.start().await {
            Ok(()) => Ok(sandbox),
            Err(error) => {
                remove(&sandbox).await;
                Err(error)
            }
        }
    }
}

#[async_trait]
impl Source for Spares {
    type Item = Spare;

    async fn make(&self) -> Result<Spare> {
        let key = names::new_key();
        match self.make_of(&key).await {
            Ok(sandbox) => Ok(Spare { key, sandbox }),
            Err(error) => {
                self.remove_files(&key).await;
                Err(error)
            }
        }
    }

    async fn discard(&self, spare: Spare) {
        remove(&spare.sandbox).await;
        self.remove_files(&spare.key).await;
    }
}
