//! [`Build`]: one pull or build, shared by all concurrent requests for it.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll};

use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Result};
use futures::Stream;
use futures::stream::{self, BoxStream};
use sandbox_runtime::Runtime;
use sandbox_runtime::dockerfile::{Style, buildkit_steps};
use sandbox_wire::engine;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::event::BuildEvent;
use super::logins::Login;
use super::options::{BuildOptions, Builder};
use super::progress::ProgressReader;
use super::{context, http, store};
use crate::daemon::Daemon;

/// Maximum number of events that a slow listener may lag behind.
const EVENTS: usize = 256;

/// The kind and message of an error, for all callers that share the work. Leaves the
/// backend's name out: it is added for each caller.
fn failure(error: &Error) -> (ErrorKind, String) {
    let mut message = error.message().to_owned();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    (error.kind(), message)
}

/// `None` until the work is finished; then whether the image was built.
type Outcome = Option<Result<bool, (ErrorKind, String)>>;

/// Identifies running work: daemon, image, whether the build cache is bypassed, and the
/// credentials. Requests with different credentials share neither failures nor
/// successes.
type Key = (String, String, bool, Option<Login>);

static RUNNING: LazyLock<Mutex<HashMap<Key, Weak<SharedBuild>>>> = LazyLock::new(Mutex::default);

fn running() -> MutexGuard<'static, HashMap<Key, Weak<SharedBuild>>> {
    lock(&RUNNING)
}

/// One task on the engine. It is aborted when the last reference is dropped.
#[derive(Debug)]
struct SharedBuild {
    key: Key,
    /// Only used to create further receivers, so that the stream ends with the task.
    events: broadcast::Receiver<BuildEvent>,
    outcome: watch::Receiver<Outcome>,
    _task: AbortOnDropHandle<()>,
}

impl Drop for SharedBuild {
    fn drop(&mut self) {
        let mut running = running();
        // Other work for the same key may have started in the meantime.
        if running
            .get(&self.key)
            .is_some_and(|it| it.strong_count() == 0)
        {
            running.remove(&self.key);
        }
    }
}

/// A running pull or build: a stream of events, and the image's name at its end. To get
/// only the name, call [`finish`](Self::finish).
///
/// Concurrent requests for the same image share the work. It runs until it is done or
/// the last `Build` is dropped. Memory is bounded: a listener that is too slow misses
/// events, is told how many, and does not hold up the work.
pub struct Build {
    image: String,
    shared: Arc<SharedBuild>,
    events: BoxStream<'static, BuildEvent>,
}

impl fmt::Debug for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Build").field("image", &self.image).finish()
    }
}

impl Stream for Build {
    type Item = BuildEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<BuildEvent>> {
        self.events.as_mut().poll_next(context)
    }
}

impl Build {
    /// Returns the name that the image has when the work is done.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// Waits until the work is done.
    ///
    /// # Errors
    ///
    /// The same as for [`ensure`](super::ensure).
    pub async fn finish(self) -> Result<String> {
        let mut outcome = self.shared.outcome.clone();
        let outcome = outcome.wait_for(Option::is_some).await;
        match outcome.ok().and_then(|outcome| outcome.clone()) {
            Some(Ok(_)) => Ok(self.image.clone()),
            Some(Err((kind, message))) => Err(Error::new(kind, message).on("docker")),
            None => Err(Error::internal(
                "preparing an image ended without a result; please report this",
            )),
        }
    }
}

/// Starts the work, or joins it if it is already running.
pub(super) fn begin(
    daemon: &Daemon,
    runtime: &Runtime,
    options: &BuildOptions,
    image: String,
) -> Result<Build> {
    let anew = options.no_cache || !runtime.cache_image;
    let fetched = runtime.base_image.as_deref().unwrap_or(&image);
    let login = options.logins.of_image(fetched).cloned();
    let key = (daemon.address().to_owned(), image.clone(), anew, login);
    let engine = engine::handle()?;
    // Declared first, so that it is dropped after the lock is released.
    let old;
    let mut running = running();
    old = running.get(&key).and_then(Weak::upgrade);
    let unfinished = old.as_ref().filter(|it| it.outcome.borrow().is_none());
    let (shared, events) = match unfinished {
        Some(shared) => (Arc::clone(shared), shared.events.resubscribe()),
        None => {
            let (send, events) = broadcast::channel(EVENTS);
            let (done, outcome) = watch::channel(None);
            // Subscribed before the task starts, so that no event is missed.
            let first = events.resubscribe();
            let job = BuildTask {
                daemon: daemon.clone(),
                runtime: runtime.clone(),
                options: options.clone(),
                image: image.clone(),
                send,
            };
            let task = engine.spawn(async move {
                let result = job.run().await.map_err(|error| failure(&error));
                done.send_replace(Some(result));
            });
            let shared = Arc::new(SharedBuild {
                key: key.clone(),
                events,
                outcome,
                _task: AbortOnDropHandle::new(task),
            });
            running.insert(key, Arc::downgrade(&shared));
            (shared, first)
        }
    };
    drop(running);
    let listener = Listener {
        events: Some(events),
        outcome: shared.outcome.clone(),
        image: image.clone(),
    };
    Ok(Build {
        image,
        shared,
        events: Box::pin(stream::unfold(listener, Listener::next)),
    })
}

/// One listener's position in the stream.
struct Listener {
    /// `None` after the channel has closed; [`BuildEvent::Done`] is then the last item.
    events: Option<broadcast::Receiver<BuildEvent>>,
    outcome: watch::Receiver<Outcome>,
    image: String,
}

impl Listener {
    async fn next(mut self) -> Option<(BuildEvent, Self)> {
        let event = match self.events.as_mut()?.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(events)) => BuildEvent::Skipped { events },
            Err(RecvError::Closed) => {
                self.events = None;
                // Taken from the outcome, so that a late listener gets it as well.
                let outcome = self.outcome.wait_for(Option::is_some).await.ok()?.clone();
                BuildEvent::Done {
                    image: self.image.clone(),
                    built: outcome?.ok()?,
                }
            }
        };
        Some((event, self))
    }
}

/// The inputs of the task.
struct BuildTask {
    daemon: Daemon,
    runtime: Runtime,
    options: BuildOptions,
    image: String,
    send: broadcast::Sender<BuildEvent>,
}

impl BuildTask {
    /// Runs the work and returns whether the image had to be built.
    async fn run(self) -> Result<bool> {
        match &self.runtime.base_image {
            None => self.pull(&self.image).await.map(|()| false),
            Some(base) => self.build_if_needed(base).await,
        }
    }

    /// Sends an event. It is fine if there is no listener.
    fn event(&self, event: BuildEvent) {
        let _ = self.send.send(event);
    }

    async fn pull(&self, image: &str) -> Result<()> {
        let credentials = self.options.logins.credentials(image);
        let mut send = |event| self.event(event);
        store::pull_if_absent(&self.daemon, image, credentials, &mut send).await
    }

    async fn build_if_needed(&self, base: &str) -> Result<bool> {
        let anew = self.options.no_cache || !self.runtime.cache_image;
        if !anew && store::is_present(&self.daemon, &self.image).await? {
            return Ok(false);
        }
        // The builder would pull it as well, but without a session it can do so only
        // from registries that need no login.
        self.pull(base).await?;
        let built = self.build().await;
        let current = match &built {
            Ok(()) if self.options.keep_superseded => return Ok(true),
            Ok(()) => Some(self.image.as_str()),
            // The classic builder leaves the images of the steps before the one that
            // failed.
            Err(_) => None,
        };
        let pruned = store::prune(&self.daemon, &self.runtime.name, current).await;
        if let Err(error) = pruned {
            tracing::debug!(%error, "superseded images not removed");
        }
        built.map(|()| true)
    }

    async fn build(&self) -> Result<()> {
        let buildkit = self.has_buildkit().await?;
        let bundle = self.options.ca_bundle.as_ref();
        if bundle.is_some() && !buildkit {
            return Err(Error::unsupported(
                "the classic builder would leave the CA bundle in the image; build with BuildKit",
            ));
        }
        let style = Style {
            cache_mounts: buildkit,
            tools: bundle.is_some(),
        };
        let text = self
            .runtime
            .dockerfile(style)?
            .ok_or_else(|| Error::internal("an image without a base was to be built"))?;
        let context = context::tar(&text, bundle)?;
        let query = self.query(buildkit)?;
        let mut answer = http::build(&self.daemon, &query, context).await?;
        let mut reader = ProgressReader::new(buildkit.then(|| buildkit_steps(&text)));
        while let Some(line) = answer.next_line().await? {
            reader.line(&line, &mut |event| self.event(event));
        }
        reader.flush(&mut |event| self.event(event));
        if reader.failure.is_none() && reader.built {
            return Ok(());
        }
        let why = reader.failure.as_deref();
        let why = why.unwrap_or("the daemon gave no reason");
        let mut message = format!(
            "building the image {} failed: {why}; correct the runtime {}, or try again if \
             something could not be reached",
            self.image, self.runtime.name
        );
        let lines = reader.last_lines();
        if !lines.is_empty() {
            message.push_str("; the last lines were:");
            for line in lines {
                message.push_str("\n  ");
                message.push_str(line);
            }
        }
        Err(Error::unavailable(message))
    }

    /// Whether the build uses BuildKit. Every daemon since API 1.39 has it on Linux,
    /// whichever builder it uses by default.
    async fn has_buildkit(&self) -> Result<bool> {
        match self.options.builder {
            Builder::BuildKit => return Ok(true),
            Builder::Classic => return Ok(false),
            Builder::Auto => {}
        }
        let version = self.daemon.negotiated().await?.version().await;
        let version = version.map_err(|error| self.daemon.error(error))?;
        let api = version.api_version.unwrap_or_default();
        let minor = api.strip_prefix("1.").and_then(|it| it.parse::<u32>().ok());
        Ok(version.os.as_deref() == Some("linux") && minor.is_none_or(|minor| minor >= 39))
    }

    fn query(&self, buildkit: bool) -> Result<String> {
        let mut query = vec![
            ("version", if buildkit { "2" } else { "1" }),
            ("t", &self.image),
            ("rm", "1"),
            ("forcerm", "1"),
        ];
        if self.options.no_cache {
            query.push(("nocache", "1"));
        }
        if let Some(network) = &self.options.network {
            query.push(("networkmode", network));
        }
        serde_urlencoded::to_string(query).map_err(|source| {
            Error::internal("a build could not be requested; please report this")
                .with_source(source)
        })
    }
}
