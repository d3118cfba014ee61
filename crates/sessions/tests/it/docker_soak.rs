//! Many sessions under mixed work, with containers killed and removed at random. Nothing
//! leaks, and no session sees the files of another.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use backend_core::ops::Command;
use backend_core::{BackendExt as _, ErrorKind, Result, Sandbox as _};
use futures_util::future::join_all;
use sessions::{Engine as _, Session, SessionManager};

use crate::support::docker::{Cleanup, containers, engine, new_space, runtime, until, variable};

/// The seconds of work, unless [`SECONDS`] says otherwise.
const DEFAULT_SECONDS: u64 = 20;
/// The variable with the seconds of work.
const SECONDS: &str = "SOAK_SECONDS";
const USERS: usize = 20;
/// Fewer than users, so that sessions are hibernated and woken.
const RESIDENT: usize = 16;

/// Counts of events.
#[derive(Debug, Default)]
struct Counts {
    calls: AtomicUsize,
    /// Calls that failed because a container was killed.
    interrupted: AtomicUsize,
    /// Openings that had to wait for a place.
    crowded: AtomicUsize,
    kills: AtomicUsize,
    releases: AtomicUsize,
    purges: AtomicUsize,
}

fn count(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// One user with a session of its own.
struct User<'a> {
    name: String,
    manager: &'a SessionManager,
    counts: &'a Counts,
    /// The lines that its file certainly has. A line more may have been written by a
    /// call that was interrupted.
    lines: usize,
}

impl User<'_> {
    async fn work(mut self, deadline: Instant) {
        while Instant::now() < deadline {
            let done = self.step().await;
            match done.map_err(|error| (error.kind(), error)) {
                Ok(()) => {}
                Err((ErrorKind::RateLimited, _)) => {
                    count(&self.counts.crowded);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                // The container was killed under the call.
                Err((ErrorKind::Unavailable, _)) => count(&self.counts.interrupted),
                Err((_, error)) => panic!("{}: {}", self.name, error.chain()),
            }
        }
    }

    async fn step(&mut self) -> Result<()> {
        let session = self.manager.get_or_create(&self.name).await?;
        count(&self.counts.calls);
        match fastrand::u32(..100) {
            0..40 => self.append(&session).await,
            40..65 => self.read(&session).await,
            65..85 => self.search(&session).await,
            85..92 => {
                tokio::time::sleep(Duration::from_millis(fastrand::u64(..1500))).await;
                Ok(())
            }
            92..98 => {
                count(&self.counts.releases);
                self.manager.release(&self.name).await.map(drop)
            }
            _ => {
                count(&self.counts.purges);
                // First, because an interrupted purge may have deleted the files.
                self.lines = 0;
                self.manager.purge(&self.name).await.map(drop)
            }
        }
    }

    async fn append(&mut self, session: &Session) -> Result<()> {
        let line = format!("echo {} >> mine.txt", self.name);
        let outcome = session.execute(Command::new(line)).await?;
        assert!(outcome.status.success(), "{outcome:?}");
        self.lines += 1;
        Ok(())
    }

    /// Checks that the file has this user's lines, all of them and no others.
    async fn read(&self, session: &Session) -> Result<()> {
        if !session.exists("mine.txt").await? {
            assert_eq!(self.lines, 0, "{} lost its file", self.name);
            return Ok(());
        }
        let text = session.read_to_string("mine.txt").await?;
        assert!(text.lines().all(|line| line == self.name), "{text}");
        assert!(
            text.lines().count() >= self.lines,
            "{} lost lines",
            self.name
        );
        Ok(())
    }

    /// Checks that no other file is there.
    async fn search(&self, session: &Session) -> Result<()> {
        let outcome = session.execute(Command::new("ls -A")).await?;
        let found = outcome.stdout.text().trim().to_owned();
        assert!(
            ["", "mine.txt"].contains(&&*found),
            "{}: {found}",
            self.name
        );
        Ok(())
    }
}

/// Kills or removes a container now and then.
async fn kill(space: &str, counts: &Counts, deadline: Instant) {
    while Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(500..3000))).await;
        let running = containers(space, &["running"]);
        let Some(victim) = fastrand::choice(&running) else {
            continue;
        };
        let how: &[&str] = if fastrand::bool() {
            &["kill"]
        } else {
            &["rm", "-f"]
        };
        // It may have ended by itself meanwhile.
        let mut command = std::process::Command::new("docker");
        command.env("DOCKER_HOST", variable("DOCKER_HOST"));
        if command.args(how).arg(victim).output().is_ok() {
            count(&counts.kills);
        }
    }
}

/// Open descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn seconds() -> u64 {
    let given = std::env::var(SECONDS).ok();
    given.map_or(DEFAULT_SECONDS, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn sessions_survive_killed_containers_and_nothing_leaks() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let engine = engine(&space, root.path())
        .pool(runtime(), 2)
        .build()
        .unwrap();
    engine.warm().await.unwrap();
    let manager = SessionManager::builder()
        .engine(Arc::new(engine.clone()))
        .max_sessions(RESIDENT)
        .write_back_interval(Duration::from_secs(1))
        .idle_timeout(Duration::from_secs(10))
        .build()
        .unwrap();
    manager.start_reaper(Duration::from_secs(2));
    let before = descriptors();
    let counts = Counts::default();
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(seconds());
    let users = (0..USERS).map(|number| {
        let user = User {
            name: format!("user-{number}"),
            manager: &manager,
            counts: &counts,
            lines: 0,
        };
        user.work(deadline)
    });
    tokio::join!(join_all(users), kill(&space, &counts, deadline));
    let shutdown = manager.shutdown(Duration::from_secs(120)).await;
    assert!(shutdown.failed.is_empty(), "{shutdown:?}");
    assert!(shutdown.unfinished.is_empty(), "{shutdown:?}");
    assert!(containers(&space, &["running"]).is_empty());
    for record in engine.list().await.unwrap() {
        engine.purge(&record.id).await.unwrap();
    }
    assert!(containers(&space, &[]).is_empty());
    // What was removed from outside left links, which are swept when they are old.
    let later = SystemTime::now() + Duration::from_secs(2 * 3600);
    engine.maintain(later).await.unwrap();
    nothing_is_left(root.path());
    until("the end of all connections", async || {
        descriptors() <= before + USERS
    })
    .await;
    println!(
        "soak: {USERS} users, {} s, {counts:?}, descriptors {before} and {}",
        begun.elapsed().as_secs(),
        descriptors()
    );
}

/// Checks that the root has no files and no links any more, except the mark of its engine.
/// Empty directories of sessions that failed to start may remain.
fn nothing_is_left(root: &Path) {
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            if entry.path() == root.join(".engine") {
                continue;
            }
            let kind = entry.file_type().unwrap();
            assert!(kind.is_dir(), "left behind: {}", entry.path().display());
            directories.push(entry.path());
        }
    }
}
