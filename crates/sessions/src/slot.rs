//! [`Slot`]: one session of this process, with its lock, its phase and its calls.
//!
//! A slot has three locks. The gate is held, across awaits, by what begins or ends the
//! sandbox, so that there is one such step at a time. So is another one while a use is
//! written back, which nothing waits for. The state is locked for a few instructions, also
//! by every call; nothing waits while it is held.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use backend_core::{Command, Error, Sandbox, ShellState};
use tokio::time::timeout;

use crate::capacity::Permit;
use crate::error::{died, expired, released};
use crate::id::SessionId;
use crate::record::{Record, RecordState};
use crate::request::OpenRequest;
use crate::time::{Clock, elapsed};

/// Where a session is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing is started yet. The gate's holder starts it.
    New,
    /// Calls go to the sandbox.
    Running,
    /// The sandbox is stopped, its files are kept, and the next call wakes it.
    Asleep,
    /// The gate's holder is stopping it. Calls wait for what comes of it.
    Closing,
    /// The sandbox died with its files.
    Dead,
    /// It was to be ended and could not be. The reaper tries again.
    Stuck,
    /// It has ended, and the slot is no longer in the table.
    Ended,
}

/// One session of this process.
pub(crate) struct Slot {
    pub(crate) id: SessionId,
    /// The session's own lock.
    pub(crate) gate: tokio::sync::Mutex<()>,
    /// Held while a use is written back: one write at a time.
    pub(crate) writing: tokio::sync::Mutex<()>,
    /// Why the start failed, for those who waited for it.
    pub(crate) failure: OnceLock<Error>,
    clock: Clock,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    /// Also of a session that sleeps or has ended, for what needs no I/O.
    sandbox: Option<Arc<dyn Sandbox>>,
    request: Option<OpenRequest>,
    record: Option<Record>,
    permit: Option<Permit>,
    calls: usize,
    last: SystemTime,
    /// The last use that was written back.
    written: SystemTime,
    /// The last use that other processes can read of.
    confirmed: SystemTime,
    /// Whether a background shell was started since the sandbox was.
    has_started_shells: bool,
    /// Whether the owner of a handle stopped the sandbox: then it is not dead.
    is_paused: bool,
    /// The time without a confirmed use after which the next one is written before it begins.
    refresh_after: Duration,
}

/// The answer to a call that wants to begin.
pub(crate) enum Begin {
    Ready(Call),
    /// The gate's holder decides; wait for it, and wake the session if it sleeps.
    Wait,
    Refused(Error),
}

impl Slot {
    pub(crate) fn new(id: SessionId, clock: Clock) -> Arc<Self> {
        let now = clock.now();
        Arc::new(Self {
            id,
            gate: tokio::sync::Mutex::new(()),
            writing: tokio::sync::Mutex::new(()),
            failure: OnceLock::new(),
            clock,
            state: Mutex::new(State {
                phase: Phase::New,
                sandbox: None,
                request: None,
                record: None,
                permit: None,
                calls: 0,
                last: now,
                written: SystemTime::UNIX_EPOCH,
                confirmed: SystemTime::UNIX_EPOCH,
                has_started_shells: false,
                is_paused: false,
                refresh_after: Duration::MAX,
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change of the state is complete, so a panic elsewhere does not affect it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().phase
    }

    /// Changes the phase. Only the gate's holder does.
    pub(crate) fn set_phase(&self, phase: Phase) {
        let permit = {
            let mut state = self.state();
            state.phase = phase;
            let is_resident = !matches!(phase, Phase::Asleep | Phase::Ended);
            if is_resident {
                None
            } else {
                state.permit.take()
            }
        };
        drop(permit);
    }

    /// Begins to pass calls to `sandbox`.
    pub(crate) fn run(&self, sandbox: Arc<dyn Sandbox>, request: OpenRequest, run: Run) {
        let now = self.clock.now();
        let mut state = self.state();
        state.phase = Phase::Running;
        let former = state.sandbox.replace(sandbox);
        state.request = Some(request);
        let mut record = run.record;
        if let Some(former) = &state.record {
            // Sleep does not make a session younger.
            record.created = former.created;
        }
        state.record = Some(record);
        state.permit = Some(run.permit);
        state.refresh_after = run.refresh_after;
        state.confirmed = run.confirmed;
        state.last = now;
        state.has_started_shells = false;
        state.is_paused = false;
        drop(state);
        // Ending a sandbox takes time, in which no call should wait for the state.
        drop(former);
    }

    /// Begins a call, if the session runs.
    pub(crate) fn begin(self: &Arc<Self>) -> Begin {
        self.begin_unless(State::is_stale)
    }

    /// Begins a call on a session whose use is written, if it runs.
    pub(crate) fn begin_written(self: &Arc<Self>) -> Begin {
        self.begin_unless(|_, _| false)
    }

    fn begin_unless(self: &Arc<Self>, must_wait: impl Fn(&State, SystemTime) -> bool) -> Begin {
        let now = self.clock.now();
        let mut state = self.state();
        match state.phase {
            Phase::Running => {}
            Phase::New | Phase::Asleep | Phase::Closing => return Begin::Wait,
            Phase::Dead => return Begin::Refused(died(&self.id)),
            Phase::Stuck | Phase::Ended => return Begin::Refused(released(&self.id)),
        }
        if state.is_expired(now) {
            return Begin::Refused(expired(&self.id));
        }
        if must_wait(&state, now) {
            return Begin::Wait;
        }
        let Some(sandbox) = state.sandbox.clone() else {
            return Begin::Wait;
        };
        state.calls += 1;
        state.last = now;
        state.is_paused = false;
        Begin::Ready(Call {
            slot: Arc::clone(self),
            sandbox,
        })
    }

    /// Whether another process may be about to end the session as idle.
    pub(crate) fn is_stale(&self) -> bool {
        let now = self.clock.now();
        self.state().is_stale(now)
    }

    /// Records a use now.
    pub(crate) fn touch(&self) {
        let now = self.clock.now();
        self.state().last = now;
    }

    /// Takes over a later use by another process.
    pub(crate) fn used_elsewhere(&self, at: SystemTime) {
        let mut state = self.state();
        state.last = state.last.max(at);
    }

    pub(crate) fn sandbox(&self) -> Option<Arc<dyn Sandbox>> {
        self.state().sandbox.clone()
    }

    pub(crate) fn request(&self) -> Option<OpenRequest> {
        self.state().request.clone()
    }

    /// Replaces the variables of the session's commands, unless there are no others.
    pub(crate) fn set_env(&self, env: &BTreeMap<String, String>) {
        let mut state = self.state();
        if let Some(request) = state.request.as_mut().filter(|_| !env.is_empty()) {
            request.env.clone_from(env);
        }
    }

    /// Adds the session's variables to those of a command, which count more.
    pub(crate) fn with_env(&self, mut command: Command) -> Command {
        let state = self.state();
        if let Some(request) = &state.request {
            let own = |name: &str| command.environment.iter().any(|(own, _)| own == name);
            let added = request.env.iter().filter(|(name, _)| !own(name));
            let mut all: Vec<_> = added.map(|(n, value)| (n.clone(), value.clone())).collect();
            all.append(&mut command.environment);
            command.environment = all;
        }
        command
    }

    pub(crate) fn calls(&self) -> usize {
        self.state().calls
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.state().is_paused
    }

    pub(crate) fn set_paused(&self) {
        self.state().is_paused = true;
    }

    pub(crate) fn tenant(&self) -> Option<Arc<str>> {
        self.state().record.as_ref()?.tenant.clone()
    }

    /// Returns what is known about the session, as of now.
    pub(crate) fn record(&self) -> Option<Record> {
        let last_used = self.last_used();
        let state = self.state();
        let mut record = state.record.clone()?;
        record.last_activity = last_used;
        record.state = match state.phase {
            Phase::Asleep | Phase::Ended => RecordState::Stopped,
            _ => RecordState::Running,
        };
        Some(record)
    }

    /// Returns the time of the last use, which is now while something runs.
    pub(crate) fn last_used(&self) -> SystemTime {
        let (calls, last, sandbox) = {
            let state = self.state();
            let is_running = state.phase == Phase::Running;
            let sandbox = state.sandbox.clone().filter(|_| is_running);
            (state.calls, state.last, sandbox)
        };
        if calls > 0 {
            return self.clock.now();
        }
        sandbox.map_or(last, |sandbox| last.max(sandbox.last_activity()))
    }

    /// Whether the session is old or has not been used for so long that it ends. Calls
    /// under way keep it.
    pub(crate) fn is_due(&self, max_idle: Option<Duration>, default_idle: Duration) -> bool {
        let last_used = self.last_used();
        let now = self.clock.now();
        let state = self.state();
        match state.phase {
            Phase::New | Phase::Ended => false,
            // If the gate is free, the step that was closing it panicked.
            Phase::Stuck | Phase::Closing => true,
            Phase::Running | Phase::Asleep | Phase::Dead => {
                let timeout = state.idle_timeout(max_idle, default_idle);
                state.calls == 0 && (state.is_expired(now) || elapsed(last_used, now) > timeout)
            }
        }
    }

    pub(crate) fn is_expired(&self) -> bool {
        let now = self.clock.now();
        self.state().is_expired(now)
    }

    /// Returns the time without use after which the session ends.
    pub(crate) fn idle_timeout(
        &self,
        max_idle: Option<Duration>,
        default_idle: Duration,
    ) -> Duration {
        self.state().idle_timeout(max_idle, default_idle)
    }

    /// Returns the time of the last use through this process.
    pub(crate) fn last_touched(&self) -> SystemTime {
        self.state().last
    }

    /// Stops calls from beginning, unless one is under way or has been since `seen`. Only
    /// the gate's holder does, and sets the next phase.
    pub(crate) fn close_if_unused_since(&self, seen: SystemTime) -> bool {
        let mut state = self.state();
        let is_unused = state.calls == 0 && state.last <= seen;
        if is_unused {
            state.phase = Phase::Closing;
        }
        is_unused
    }

    /// Stops calls from beginning, unless one is under way.
    pub(crate) fn close_if_unused(&self) -> bool {
        let mut state = self.state();
        let is_unused = state.calls == 0;
        if is_unused {
            state.phase = Phase::Closing;
        }
        is_unused
    }

    /// Whether a background shell of this process is running. `None` if the sandbox does not
    /// answer in time: its commands can bring that about, and others must not wait for it.
    pub(crate) async fn has_shells(&self, wait: Duration) -> Option<bool> {
        timeout(wait, self.find_shells()).await.ok()
    }

    async fn find_shells(&self) -> bool {
        let sandbox = {
            let state = self.state();
            let may = state.has_started_shells && state.phase == Phase::Running;
            state.sandbox.clone().filter(|_| may)
        };
        let Some(sandbox) = sandbox else {
            return false;
        };
        // Asking a stopped sandbox for its shells could start it.
        if !matches!(sandbox.is_alive().await, Ok(true)) {
            return false;
        }
        let shells = sandbox.shell_list().await.unwrap_or_default();
        let is_running = shells
            .iter()
            .any(|shell| shell.state == ShellState::Running);
        if !is_running {
            self.state().has_started_shells = false;
        }
        is_running
    }

    pub(crate) fn note_shell(&self) {
        self.state().has_started_shells = true;
    }

    /// Returns the time of the last use if it is later than the one written last.
    pub(crate) fn unwritten(&self) -> Option<SystemTime> {
        let last_used = self.last_used();
        let state = self.state();
        let is_new = state.phase == Phase::Running && last_used > state.written;
        is_new.then_some(last_used)
    }

    /// Notes that a use was written. If the session was not there any more, the next call
    /// looks at it first.
    pub(crate) fn note_written(&self, at: SystemTime, is_there: bool) {
        let mut state = self.state();
        state.written = state.written.max(at);
        state.confirmed = if is_there {
            state.confirmed.max(at)
        } else {
            SystemTime::UNIX_EPOCH
        };
    }

    fn end_call(&self) {
        let now = self.clock.now();
        let mut state = self.state();
        state.calls = state.calls.saturating_sub(1);
        state.last = now;
    }
}

impl State {
    fn is_stale(&self, now: SystemTime) -> bool {
        elapsed(self.confirmed, now) > self.refresh_after
    }

    fn is_expired(&self, now: SystemTime) -> bool {
        let Some(record) = &self.record else {
            return false;
        };
        let age = elapsed(record.created, now);
        record.max_lifetime.is_some_and(|lifetime| age > lifetime)
    }

    fn idle_timeout(&self, max_idle: Option<Duration>, default_idle: Duration) -> Duration {
        let own = self.record.as_ref().and_then(|record| record.idle_timeout);
        max_idle.or(own).unwrap_or(default_idle)
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Slot")
            .field("id", &self.id)
            .field("phase", &state.phase)
            .field("calls", &state.calls)
            .finish_non_exhaustive()
    }
}

/// The facts with which a slot begins to run, beside the sandbox.
pub(crate) struct Run {
    pub(crate) record: Record,
    pub(crate) permit: Permit,
    /// The last use that other processes can read of.
    pub(crate) confirmed: SystemTime,
    /// The time without a confirmed use after which the next one is written before it begins.
    pub(crate) refresh_after: Duration,
}

/// A call under way: the session is in use until it is dropped.
pub(crate) struct Call {
    slot: Arc<Slot>,
    sandbox: Arc<dyn Sandbox>,
}

impl Deref for Call {
    type Target = dyn Sandbox;

    fn deref(&self) -> &Self::Target {
        &*self.sandbox
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.slot.end_call();
    }
}
