//! A few shells in the machine that share the work.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use futures::FutureExt as _;
use sandbox_wire::Machine;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::failure::broken;
use crate::sentinel::random_word;
use crate::worker::{Answer, Request, Worker};

/// The number of concurrent shells. A shell mostly waits for the programs it
/// runs.
const SHELLS: usize = 4;

/// The time that a request may continue after its call was dropped.
const ABANDONED: Duration = Duration::from_secs(1);

/// The variable that marks the processes of commands.
pub(crate) const VARIABLE: &str = "AGENTBOX_COMMAND";

/// The shells of one sandbox.
#[derive(Debug)]
pub(crate) struct Pool<M> {
    pub(crate) machine: Arc<M>,
    idle: Mutex<Vec<Worker>>,
    slots: Arc<Semaphore>,
    /// The prefix of all markers of this sandbox. Replaced when it stops.
    owner: Mutex<String>,
    pub(crate) warned: AtomicBool,
    /// Whether a shell was opened since the last stop.
    opened: AtomicBool,
    /// The ID of the user that the shells run as.
    uid: AtomicU32,
}

impl<M: Machine> Pool<M> {
    pub(crate) fn new(machine: Arc<M>) -> Self {
        Self {
            machine,
            idle: Mutex::default(),
            slots: Arc::new(Semaphore::new(SHELLS)),
            owner: Mutex::new(random_word()),
            warned: AtomicBool::new(false),
            opened: AtomicBool::new(false),
            uid: AtomicU32::new(0),
        }
    }

    /// Returns the marker of the command with this number, in the form of a
    /// variable assignment.
    pub(crate) fn mark(&self, number: u64) -> String {
        format!("{}{number}.", self.mark_prefix())
    }

    pub(crate) fn mark_prefix(&self) -> String {
        format!("{VARIABLE}={}.", lock(&self.owner))
    }

    /// Whether the shells run as root, which may read everything.
    pub(crate) fn is_root(&self) -> bool {
        self.uid.load(Ordering::Relaxed) == 0
    }

    /// Runs a request. It completes even if the call is dropped, unless it
    /// takes long: then the shell that runs it is ended.
    ///
    /// # Errors
    ///
    /// Any error of the request; `Unavailable` if the shell is lost, in which
    /// case it is unknown what was done.
    pub(crate) async fn call(self: &Arc<Self>, request: Request) -> Answer {
        let answer = self.call_all(vec![request]).await?.pop();
        answer.unwrap_or_else(|| Err(broken("the answer is missing")))
    }

    /// Runs requests that are sent at once, one after the other. All but the
    /// last must be short.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call), if none has an answer.
    pub(crate) async fn call_all(self: &Arc<Self>, requests: Vec<Request>) -> Result<Vec<Answer>> {
        let closed = |_| Error::internal("the shells are closed");
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.map_err(closed)?;
        let worker = self.take().await?;
        let (reply, answer) = oneshot::channel();
        tokio::spawn(
            Arc::clone(self)
                .serve(worker, requests, slot, reply)
                .boxed(),
        );
        let lost = |_| Error::unavailable("the process is ending");
        answer.await.map_err(lost)?
    }

    /// Like [`call`](Self::call), for an answer in one part.
    pub(crate) async fn ask(self: &Arc<Self>, request: Request) -> Result<Bytes> {
        Ok(self.call(request).await?.pop().unwrap_or_default())
    }

    async fn serve(
        self: Arc<Self>,
        mut worker: Worker,
        requests: Vec<Request>,
        slot: OwnedSemaphorePermit,
        mut reply: oneshot::Sender<Result<Vec<Answer>>>,
    ) {
        let abandoned = async {
            reply.closed().await;
            tokio::time::sleep(ABANDONED).await;
        };
        let done = tokio::select! {
            biased;
            done = worker.exchange_all(&*self.machine, &requests) => Some(done),
            () = abandoned => None,
        };
        let answers = match done {
            Some(Ok(answers)) => {
                let limit = self.machine.stream_bytes();
                if limit.is_some_and(|limit| worker.printed > limit) {
                    worker.quit().await;
                } else {
                    lock(&self.idle).push(worker);
                }
                Ok(answers)
            }
            Some(Err(error)) => {
                let told = self.explain(error).await;
                // The shell may still run and only print garbage.
                self.end(worker).await;
                Err(told)
            }
            None => {
                self.end(worker).await;
                Err(Error::new(ErrorKind::Cancelled, "the call was dropped"))
            }
        };
        drop(slot);
        // The caller may be gone.
        let _ = reply.send(answers);
    }

    /// Returns a shell that answers.
    async fn take(&self) -> Result<Worker> {
        loop {
            let idle = lock(&self.idle).pop();
            let Some(mut worker) = idle else {
                return self.open().await;
            };
            if worker.is_open() {
                return Ok(worker);
            }
            worker.quit().await;
        }
    }

    /// Ensures that there is a shell, which ends the commands in the machine if
    /// this process dies.
    pub(crate) async fn ensure_worker(&self) {
        if self.opened.swap(true, Ordering::Relaxed) {
            return;
        }
        // Commands run without it, too.
        if let Ok(worker) = self.open().await {
            lock(&self.idle).push(worker);
        }
    }

    async fn open(&self) -> Result<Worker> {
        self.machine.start().await?;
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                machine = %self.machine.id(),
                "the machine is used without an agent, which is slow; provide one"
            );
        }
        let opened = Worker::open(&*self.machine, &self.mark_prefix()).await;
        match opened {
            Ok(worker) => {
                self.opened.store(true, Ordering::Relaxed);
                self.uid.store(worker.uid, Ordering::Relaxed);
                Ok(worker)
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(self.explain(error).await),
            Err(error) => Err(error),
        }
    }

    /// Returns the machine's reason for a loss, or `error` if it knows none.
    pub(crate) async fn explain(&self, error: Error) -> Error {
        self.machine.diagnose().await.unwrap_or(error)
    }

    /// Ends a shell that does not answer, with everything it runs. Its input
    /// stays open until it has ended: a shell whose input ends kills all
    /// commands.
    async fn end(&self, worker: Worker) {
        if !matches!(self.machine.is_alive().await, Ok(true)) {
            return;
        }
        let Ok(mut other) = self.take().await else {
            return;
        };
        let pid = worker.pid.to_string();
        let request = Request::new("kill").arg(pid).arg("").arg("0");
        if let Ok(_done) = other.exchange(&*self.machine, &request).await {
            lock(&self.idle).push(other);
        }
        drop(worker);
    }

    /// Closes all idle shells. They end when they notice, together with
    /// commands that still run under the markers given out so far.
    pub(crate) fn close(&self) {
        *lock(&self.owner) = random_word();
        self.opened.store(false, Ordering::Relaxed);
        lock(&self.idle).clear();
    }
}
