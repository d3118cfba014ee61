//! Random schedules against a simple model: time is a clock that stands still, and every
//! step is checked.
//!
//! A schedule is one thread of random steps in which starts and commands stay open over
//! other steps, so that calls overlap in every order.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use backend_core::{BackendExt as _, Command, Error, ErrorKind, Result, Sandbox as _};
use backend_testkit::fake::HOLD;
use fastrand::Rng;
use sessions::{Session, SessionManager, Status};
use tokio::task::JoinHandle;

use crate::support::{Lab, MINUTE, request, settle};

const USERS: [&str; 5] = ["ann", "ben", "cem", "dee", "eli"];
const TENANTS: [&str; 2] = ["acme", "umbrella"];
const CEILING: usize = 3;
const IDLE: Duration = Duration::from_secs(600);

/// The expectations of the model for one session.
#[derive(Debug, Clone, Default)]
struct Expected {
    /// Whether it is open: running, sleeping or dead.
    is_open: bool,
    is_asleep: bool,
    is_dead: bool,
    /// Whether its sandbox was killed and no call has found out yet.
    is_killed: bool,
    last_used: Option<SystemTime>,
    /// The text in its file.
    text: Option<String>,
}

/// A schedule: the manager, the model, and what is under way.
struct Schedule {
    lab: Lab,
    keeps_files: bool,
    manager: SessionManager,
    random: Rng,
    expected: BTreeMap<&'static str, Expected>,
    handles: BTreeMap<&'static str, Session>,
    commands: BTreeMap<&'static str, JoinHandle<Result<()>>>,
    shells: BTreeMap<&'static str, backend_core::ShellId>,
    writes: u64,
}

impl Schedule {
    fn new(keeps_files: bool, seed: u64) -> Self {
        let lab = if keeps_files {
            Lab::keeping_files()
        } else {
            Lab::new()
        };
        let builder = lab.builder().max_sessions(CEILING).idle_timeout(IDLE);
        Self {
            manager: builder.build().unwrap(),
            lab,
            keeps_files,
            random: Rng::with_seed(seed),
            expected: USERS
                .iter()
                .map(|user| (*user, Expected::default()))
                .collect(),
            handles: BTreeMap::new(),
            commands: BTreeMap::new(),
            shells: BTreeMap::new(),
            writes: 0,
        }
    }

    fn of(&mut self, user: &str) -> &mut Expected {
        self.expected.get_mut(user).unwrap()
    }

    fn is_busy(&self, user: &str) -> bool {
        self.commands.contains_key(user) || self.shells.contains_key(user)
    }

    fn resident(&self) -> usize {
        let resident = |e: &&Expected| e.is_open && !e.is_asleep;
        self.expected.values().filter(resident).count()
    }

    /// Expects that a place is made for `user`. Returns `false` if there is none.
    fn expect_place(&mut self) -> bool {
        if self.resident() < CEILING {
            return true;
        }
        if !self.keeps_files {
            return false;
        }
        // Every use has its own time, so there is one that is least recent. A sandbox that
        // died unnoticed sleeps as well as any.
        let running = self.expected.iter();
        let idle = running.filter(|(user, e)| e.is_open && !e.is_asleep && !self.is_busy(user));
        let chosen = idle.min_by_key(|(_, e)| e.last_used).map(|(user, _)| *user);
        let Some(chosen) = chosen else {
            return false;
        };
        let sleeper = self.of(chosen);
        sleeper.is_asleep = true;
        sleeper.is_killed = false;
        true
    }

    fn used(&mut self, user: &str) {
        let now = self.lab.clock.now();
        self.of(user).last_used = Some(now);
    }

    /// Opens a session and compares the result.
    async fn open(&mut self, user: &'static str) {
        let before = self.of(user).clone();
        let is_lost = before.is_killed && !self.keeps_files;
        let expected: std::result::Result<(), ErrorKind> = if before.is_dead || is_lost {
            Err(ErrorKind::Unavailable)
        } else if before.is_open && !before.is_asleep && !before.is_killed {
            Ok(())
        } else {
            if before.is_killed {
                // It is found dead first, and gives its place up.
                self.of(user).is_asleep = true;
                self.of(user).is_killed = false;
            }
            if self.expect_place() {
                Ok(())
            } else {
                Err(ErrorKind::RateLimited)
            }
        };
        let opened = self.manager.open(request(user).tenant(tenant(user))).await;
        compare(user, "open", &expected, &opened);
        if is_lost {
            self.of(user).is_dead = true;
            self.of(user).is_killed = false;
        }
        if let Ok(session) = opened {
            if !before.is_open && !self.keeps_files {
                self.of(user).text = None;
            }
            let now = self.of(user);
            now.is_open = true;
            now.is_asleep = false;
            self.used(user);
            self.handles.insert(user, session);
        }
    }

    /// Reads or writes through a handle, which may be an old one, and compares the result.
    async fn call(&mut self, user: &'static str) {
        let Some(session) = self.handles.get(user).cloned() else {
            return;
        };
        let before = self.of(user).clone();
        let expected = if !before.is_open || before.is_dead || before.is_killed {
            Err(ErrorKind::Unavailable)
        } else if before.is_asleep && !self.expect_place() {
            Err(ErrorKind::RateLimited)
        } else {
            Ok(())
        };
        let result = if self.random.bool() {
            self.writes += 1;
            let text = format!("{user} {}", self.writes);
            let written = session.write_file("notes", text.clone()).await;
            if written.is_ok() {
                self.of(user).text = Some(text);
            }
            written.map(|_| ())
        } else {
            let read = Error::none_if_missing(session.read_to_string("notes").await);
            if let Ok(text) = &read {
                assert_eq!(*text, before.text, "{user} reads what was written last");
            }
            read.map(|_| ())
        };
        compare(user, "call", &expected, &result);
        if before.is_open && before.is_killed {
            let keeps_files = self.keeps_files;
            let now = self.of(user);
            now.is_killed = false;
            // Found out: recreated by the next call, or lost.
            now.is_asleep = keeps_files;
            now.is_dead = !keeps_files;
        }
        if result.is_ok() {
            self.of(user).is_asleep = false;
        }
        if before.is_open && !before.is_dead && expected != Err(ErrorKind::RateLimited) {
            self.used(user);
        }
    }

    /// Starts a command that lasts, if the session runs and has none.
    async fn hold(&mut self, user: &'static str) {
        let e = self.of(user).clone();
        if !e.is_open || e.is_asleep || e.is_dead || e.is_killed || self.is_busy(user) {
            return;
        }
        let session = self.handles[user].clone();
        if self.random.bool() {
            let run = async move { session.execute(Command::new(HOLD)).await.map(|_| ()) };
            self.commands.insert(user, tokio::spawn(run));
            settle().await;
        } else {
            let shell = session.shell_start(Command::new("server")).await.unwrap();
            self.shells.insert(user, shell.id);
        }
        self.used(user);
    }

    /// Ends the command or shell of a session.
    async fn finish(&mut self, user: &'static str) {
        if let Some(command) = self.commands.remove(user) {
            self.lab.latest(user).finish();
            command.await.unwrap().unwrap();
            self.used(user);
        }
        if let Some(shell) = self.shells.remove(user) {
            let killed = self.handles[user].shell_kill(&shell).await;
            assert!(killed.unwrap());
            self.used(user);
        }
    }

    /// Cancels the command of a session, as a caller does that stops waiting.
    async fn cancel(&mut self, user: &'static str) {
        if let Some(command) = self.commands.remove(user) {
            command.abort();
            assert!(command.await.unwrap_err().is_cancelled());
            self.used(user);
        }
    }

    /// Opens a session for a caller that stops waiting: it is open all the same.
    async fn open_cancelled(&mut self, user: &'static str) {
        let e = self.of(user).clone();
        if e.is_open || self.resident() >= CEILING {
            return;
        }
        self.lab.hold_starts();
        let manager = self.manager.clone();
        let opening = request(user).tenant(tenant(user));
        let caller = tokio::spawn(async move { manager.open(opening).await });
        self.lab.starts_held(1).await;
        assert!(!self.manager.contains(user), "{user} is not started yet");
        caller.abort();
        let _ = caller.await;
        self.lab.allow_starts(1 << 20);
        settle().await;
        let session = self.manager.get(user).expect("the start goes on");
        self.handles.insert(user, session);
        let keeps_files = self.keeps_files;
        let now = self.of(user);
        now.is_open = true;
        if !keeps_files {
            now.text = None;
        }
        self.used(user);
    }

    /// Ends a session, with or without its files.
    async fn end(&mut self, user: &'static str, purge: bool) {
        self.abandon(user).await;
        let was_open = self.of(user).is_open;
        let ended = if purge {
            self.manager.purge(user).await
        } else {
            self.manager.release(user).await
        };
        let ended = ended.unwrap();
        assert!(ended || !was_open, "{user} was open and nothing was ended");
        if purge {
            self.lab.forget_files(user);
        }
        self.forget(user, purge);
    }

    fn forget(&mut self, user: &str, purge: bool) {
        let keeps_text = self.keeps_files && !purge;
        let now = self.of(user);
        let text = now.text.take().filter(|_| keeps_text);
        *now = Expected {
            text,
            ..Expected::default()
        };
    }

    /// Lets a command end in whatever way the end of its session brings.
    async fn abandon(&mut self, user: &'static str) {
        self.shells.remove(user);
        if let Some(command) = self.commands.remove(user) {
            command.abort();
            let _ = command.await;
        }
    }

    /// Kills a sandbox, as a machine that crashes does.
    async fn crash(&mut self, user: &'static str) {
        let e = self.of(user).clone();
        if e.is_open && !e.is_asleep && !e.is_dead {
            self.abandon(user).await;
            self.lab.latest(user).kill();
            self.of(user).is_killed = true;
            // Whether a shell was looked at is not in the model.
            self.touch(user);
        }
    }

    /// Lets time pass, ends what is idle, and compares how many.
    async fn reap(&mut self) {
        self.lab.clock.advance(MINUTE * self.random.u32(1..12));
        let now = self.lab.clock.now();
        let mut due = Vec::new();
        for (user, e) in &self.expected {
            let last = e.last_used.unwrap_or(now);
            let is_idle = now.duration_since(last).unwrap() > IDLE;
            if e.is_open && is_idle && !self.is_busy(user) {
                due.push(*user);
            }
        }
        let shells: Vec<_> = self.shells.keys().copied().collect();
        let reaped = self.manager.cleanup_idle(None).await.unwrap();
        assert_eq!(reaped, due.len(), "expected to end {due:?}");
        for user in due {
            self.forget(user, false);
        }
        for user in shells {
            // The reaper may have asked for them, which is a use.
            self.lab.clock.advance(Duration::from_millis(1));
            self.touch(user);
        }
    }

    fn touch(&mut self, user: &str) {
        assert!(self.manager.touch(user), "{user} is open");
        self.used(user);
    }

    async fn step(&mut self) {
        // Every use has its own time, so that the least recent one is known.
        self.lab.clock.advance(Duration::from_millis(1));
        let user = USERS[self.random.usize(..USERS.len())];
        match self.random.u32(..100) {
            0..25 => self.open(user).await,
            25..60 => self.call(user).await,
            60..68 => self.hold(user).await,
            68..76 => self.finish(user).await,
            76..79 => self.cancel(user).await,
            79..83 => self.open_cancelled(user).await,
            83..88 => self.end(user, false).await,
            88..90 => self.end(user, true).await,
            90..94 => self.crash(user).await,
            _ => self.reap().await,
        }
    }

    /// Compares everything that can be seen.
    async fn check(&self) {
        let snapshot = self.manager.snapshot().await;
        let seen = snapshot.sessions.iter();
        let seen: Vec<_> = seen.map(|s| (s.record.id.as_str(), s.status)).collect();
        let open = self.expected.iter().filter(|(_, e)| e.is_open);
        let expected: Vec<_> = open
            .map(|(user, e)| {
                let status = match e {
                    Expected {
                        is_asleep: true, ..
                    } => Status::Hibernated,
                    Expected { is_dead: true, .. } => Status::Dead,
                    _ => Status::Running,
                };
                (*user, status)
            })
            .collect();
        assert_eq!(seen, expected);
        assert_eq!(snapshot.resident, self.resident());
        assert!(snapshot.resident <= CEILING);
        let mut running = self.lab.running();
        let count = running.len();
        running.sort();
        running.dedup();
        assert_eq!(running.len(), count, "a session has two sandboxes");
        let alive = |e: &&Expected| e.is_open && !e.is_asleep && !e.is_dead && !e.is_killed;
        assert_eq!(count, self.expected.values().filter(alive).count());
    }
}

fn tenant(user: &str) -> &'static str {
    TENANTS[usize::from(user.as_bytes()[0]) % TENANTS.len()]
}

#[track_caller]
fn compare<T>(
    user: &str,
    step: &str,
    expected: &std::result::Result<(), ErrorKind>,
    found: &Result<T>,
) {
    let found = found.as_ref().map(|_| ()).map_err(Error::kind);
    assert_eq!(found, *expected, "{step} {user}");
}

fn run(steps: usize, keeps_files: bool, seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut schedule = Schedule::new(keeps_files, seed);
        for step in 0..steps {
            schedule.step().await;
            if step % 4 == 0 {
                schedule.check().await;
            }
        }
        for user in USERS {
            schedule.abandon(user).await;
        }
        let report = schedule.manager.shutdown(MINUTE).await;
        assert!(report.failed.is_empty() && report.unfinished.is_empty());
        assert!(schedule.lab.running().is_empty(), "nothing is left");
    });
}

/// Steps of each kind of schedule; full runs set more.
fn steps() -> usize {
    #[expect(clippy::disallowed_methods, reason = "a full run sets it")]
    let set = std::env::var("SESSION_MODEL_STEPS").ok();
    set.map_or(5_000, |steps| steps.parse().unwrap())
}

/// Steps of one schedule: short enough that a failure can be followed.
const STEPS: usize = 500;

#[test]
fn schedules_without_kept_files_follow_the_model() {
    for seed in 0..steps() / STEPS {
        println!("seed {seed}");
        run(STEPS, false, seed as u64);
    }
}

#[test]
fn schedules_with_kept_files_follow_the_model() {
    for seed in 0..steps() / STEPS {
        println!("seed {seed}");
        run(STEPS, true, seed as u64);
    }
}
