//! A machine whose steps are told by a test: callers that come at once, fail or leave.

use std::collections::VecDeque;

use tokio::sync::Notify;

use super::*;

/// The course of a start.
#[derive(Debug, Clone, Copy, Default)]
enum Start {
    /// The machine is created and runs.
    #[default]
    Works,
    /// The service does not answer, so nothing is created.
    Unanswered,
    /// The machine is created, but does not run.
    Broken,
    Panics,
}

/// A machine that writes down its steps. Its starts wait for a sign if they are held.
#[derive(Debug)]
struct Told {
    known: Mutex<State<u32>>,
    steps: Mutex<Vec<&'static str>>,
    /// The next starts. Those after them work.
    starts: Mutex<VecDeque<Start>>,
    /// The error that every end fails with.
    end_fails: Mutex<Option<ErrorKind>>,
    begun: Notify,
    go: Semaphore,
}

impl Told {
    fn new(starts: &[Start]) -> OnDemand<Self> {
        let machine = Self::held();
        machine.go.add_permits(100);
        lock(&machine.starts).extend(starts);
        machine
    }

    /// Creates one whose starts each wait for a permit of `go`.
    fn held() -> OnDemand<Self> {
        OnDemand::new(Self {
            known: Mutex::default(),
            steps: Mutex::default(),
            starts: Mutex::default(),
            end_fails: Mutex::default(),
            begun: Notify::new(),
            go: Semaphore::new(0),
        })
    }

    fn step(&self, step: &'static str) {
        lock(&self.steps).push(step);
    }

    fn steps(&self) -> Vec<&'static str> {
        lock(&self.steps).clone()
    }

    fn presence(&self) -> Presence {
        lock(&self.known).presence
    }
}

#[async_trait]
impl Lifecycle for Told {
    type Facts = u32;

    fn known(&self) -> &Mutex<State<u32>> {
        &self.known
    }

    async fn make_ready(&self, reason: StartReason) -> Result<()> {
        self.step(match reason {
            StartReason::OnDemand => "start",
            StartReason::Explicit => "start, as asked",
        });
        self.begun.notify_one();
        self.go.acquire().await.unwrap().forget();
        let start = lock(&self.starts).pop_front().unwrap_or_default();
        match start {
            Start::Unanswered => return Err(Error::unavailable("it does not answer")),
            Start::Panics => panic!("as the test wants"),
            Start::Works | Start::Broken => {}
        }
        let mut state = lock(&self.known);
        state.attempted = true;
        state.set_seen();
        if let Start::Broken = start {
            return Err(Error::unavailable("it does not run"));
        }
        **state += 1;
        self.step("runs");
        Ok(())
    }

    async fn end(&self, mode: StopMode) -> Result<()> {
        self.step(match mode {
            StopMode::Keep => "stop",
            StopMode::Purge => "remove",
        });
        if let Some(kind) = *lock(&self.end_fails) {
            return Err(Error::new(kind, "it does not end"));
        }
        let mut state = lock(&self.known);
        match mode {
            StopMode::Keep => state.set_not_running(),
            StopMode::Purge => state.forget(Presence::Unseen),
        }
        Ok(())
    }
}

async fn failure(done: impl Future<Output = Result<()>>) -> String {
    let error = done.await.unwrap_err();
    error.message().to_owned()
}

#[test]
fn only_what_is_seen_is_known() {
    let mut state = State::<u32>::new(Presence::Unseen);
    state.set_not_running();
    assert!(!state.existed(), "one that does not run may be missing");
    state.set_seen();
    assert_eq!(state.presence, Presence::Seen);
    state.presence = Presence::Running;
    state.set_seen();
    assert_eq!(state.presence, Presence::Running, "it is seen, and runs");
    state.set_not_running();
    assert_eq!(state.presence, Presence::Seen, "its files are still there");
    assert!(state.existed());
}

#[tokio::test]
async fn a_machine_that_is_forgotten_is_still_needed() {
    let machine = Told::new(&[]);
    machine.start(StartReason::OnDemand).await.unwrap();
    {
        let mut state = lock(&machine.known);
        assert!(state.attempted && **state == 1);
        state.forget(Presence::Seen);
        assert!(!state.attempted && **state == 0);
        assert_eq!(state.presence, Presence::Seen);
    }
    let closing = machine.close(StopMode::Purge);
    closing.expect("a caller asked for it").await.unwrap();
    assert_eq!(
        machine.steps(),
        ["start", "runs"],
        "it is not ours to remove"
    );
    lock(&machine.known).forget(Presence::Unseen);
    let told = failure(machine.start(StartReason::OnDemand)).await;
    assert!(told.contains("was dropped"), "{told}");
}

#[tokio::test]
async fn callers_at_once_take_turns() {
    let machine = Told::held();
    let release = async {
        machine.begun.notified().await;
        // A caller that does not wait for its turn has begun by now.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(machine.steps(), ["start"]);
        machine.go.add_permits(2);
    };
    let (one, two, stopped, ()) = tokio::join!(
        machine.start(StartReason::OnDemand),
        machine.start(StartReason::OnDemand),
        machine.stop(StopMode::Keep),
        release,
    );
    one.and(two).and(stopped).unwrap();
    let steps = ["start", "runs", "start", "runs", "stop"];
    assert_eq!(machine.steps(), steps, "in the order of the calls");
    assert_eq!(machine.presence(), Presence::Seen);
}

#[tokio::test]
async fn a_stop_during_a_start_has_the_last_word() {
    let machine = Told::held();
    let start = tokio::spawn({
        let machine = machine.clone();
        async move { machine.start(StartReason::Explicit).await }
    });
    machine.begun.notified().await;
    let release = async { machine.go.add_permits(1) };
    let (stopped, ()) = tokio::join!(machine.stop(StopMode::Purge), release);
    stopped.unwrap();
    start.await.unwrap().unwrap();
    assert_eq!(machine.steps(), ["start, as asked", "runs", "remove"]);
    assert!(!machine.is_running());
    assert_eq!(machine.presence(), Presence::Unseen);
}

#[tokio::test]
async fn a_failed_start_is_told_and_the_next_one_tries_again() {
    let machine = Told::new(&[Start::Unanswered, Start::Works, Start::Broken]);
    let told = failure(machine.start(StartReason::OnDemand)).await;
    assert_eq!(told, "it does not answer");
    assert_eq!(machine.presence(), Presence::Unseen);
    machine.start(StartReason::OnDemand).await.unwrap();
    assert!(machine.is_running());
    // It ran, and does not any more: it must not be taken for one that runs.
    let told = failure(machine.start(StartReason::OnDemand)).await;
    assert_eq!(told, "it does not run");
    assert_eq!(machine.presence(), Presence::Seen);
    machine.start(StartReason::OnDemand).await.unwrap();
    assert!(machine.is_running());
}

#[tokio::test]
async fn a_start_that_panics_blocks_no_other() {
    let machine = Told::new(&[Start::Panics]);
    let error = machine.start(StartReason::OnDemand).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    machine.start(StartReason::OnDemand).await.unwrap();
    assert_eq!(machine.steps(), ["start", "start", "runs"]);
}

#[tokio::test]
async fn a_stop_fails_unless_there_is_certainly_nothing_to_stop() {
    let stop = async |machine: &OnDemand<Told>, fails| {
        *lock(&machine.end_fails) = Some(fails);
        machine.stop(StopMode::Keep).await
    };
    let unseen = Told::new(&[Start::Unanswered]);
    stop(&unseen, ErrorKind::Unavailable).await.unwrap();
    stop(&unseen, ErrorKind::Config).await.unwrap_err();
    unseen.start(StartReason::OnDemand).await.unwrap_err();
    stop(&unseen, ErrorKind::Unavailable).await.unwrap();
    let seen = Told::new(&[]);
    lock(&seen.known).set_seen();
    stop(&seen, ErrorKind::Unavailable).await.unwrap_err();
    let attempted = Told::new(&[]);
    lock(&attempted.known).attempted = true;
    stop(&attempted, ErrorKind::Unavailable).await.unwrap_err();
}

#[tokio::test]
async fn a_creation_is_finished_without_its_caller_and_then_ended() {
    let machine = Told::held();
    *lock(&machine.end_fails) = Some(ErrorKind::Unavailable);
    assert!(
        machine.stop(StopMode::Purge).await.is_ok(),
        "it is not there"
    );
    tokio::select! {
        _ = machine.start(StartReason::OnDemand) => unreachable!("it waits for the sign"),
        () = machine.begun.notified() => {}
    }
    let closing = machine.close(StopMode::Purge).unwrap();
    machine.go.add_permits(1);
    assert_eq!(failure(closing).await, "it does not end");
    assert_eq!(machine.steps(), ["remove", "start", "runs", "remove"]);
    assert!(machine.is_running());
    assert!(machine.close(StopMode::Purge).is_none(), "it is closed");
    let told = failure(machine.start(StartReason::Explicit)).await;
    assert!(told.contains("was dropped"), "{told}");
}

#[tokio::test]
async fn a_start_that_waits_while_the_machine_is_closed_creates_nothing() {
    let machine = Told::held();
    let start = || {
        let machine = machine.clone();
        tokio::spawn(async move { machine.start(StartReason::OnDemand).await })
    };
    let first = start();
    machine.begun.notified().await;
    let second = start();
    let closing = machine.close(StopMode::Purge).unwrap();
    machine.go.add_permits(2);
    first.await.unwrap().unwrap();
    let told = failure(async { second.await.unwrap() }).await;
    assert!(told.contains("was dropped"), "{told}");
    closing.await.unwrap();
    assert_eq!(machine.steps(), ["start", "runs", "remove"]);
    assert_eq!(machine.presence(), Presence::Unseen);
}

#[tokio::test]
async fn closing_asks_nothing_of_the_service_if_nothing_was_created() {
    let unused = Told::new(&[]);
    assert!(unused.close(StopMode::Purge).is_none());
    let told = failure(unused.start(StartReason::Explicit)).await;
    assert!(told.contains("was dropped"), "{told}");
    assert_eq!(unused.steps(), [""; 0]);
    let unanswered = Told::new(&[Start::Unanswered]);
    unanswered.start(StartReason::OnDemand).await.unwrap_err();
    let closing = unanswered.close(StopMode::Purge).unwrap();
    closing.await.unwrap();
    assert_eq!(unanswered.steps(), ["start"]);
}
