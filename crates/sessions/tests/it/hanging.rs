//! A session whose commands keep its sandbox from answering: the others do not wait for it.

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::{Backend, Command, Error, ErrorKind, Result, Sandbox, ShellInfo, delegate};
use backend_state::StateBackend;
use backend_testkit::fails;
use backend_testkit::fake::{FakeSandbox, PausedClock};
use sessions::{Clock, OpenRequest, SessionManager, SessionManagerBuilder};

use crate::support::{Fake, MINUTE};

/// Never says which shells it has.
#[derive(Debug)]
struct Hanging(Fake);

impl Backend for Hanging {
    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    delegate! {
        |self| self.0 => info, working_dir, resolve, stat, ls, read, read_text, write, edit,
        create_dir, delete, rename, copy, glob, grep, watch
    }
}

#[async_trait]
impl Sandbox for Hanging {
    delegate! {
        |self| self.0 => id, last_activity, command_names, start, stop, is_alive, trace, execute,
        stream, shell_start, shell_read, shell_write, shell_kill
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        std::future::pending().await
    }
}

fn builder(clock: &PausedClock) -> SessionManagerBuilder {
    let (made, now) = (clock.clone(), clock.clone());
    let factory = move |request: OpenRequest| {
        let clock = made.clone();
        async move {
            let fake = FakeSandbox::new(request.id.as_str(), StateBackend::new(), clock);
            Ok::<Arc<dyn Sandbox>, Error>(Arc::new(Hanging(fake)))
        }
    };
    SessionManager::builder()
        .factory(factory)
        .keeps_files(true)
        .clock(Clock::new(move || now.now()))
}

#[tokio::test(start_paused = true)]
async fn it_is_ended_as_idle_with_the_others() {
    let clock = PausedClock::new();
    let manager = builder(&clock).build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    alice.shell_start(Command::new("server")).await.unwrap();
    manager.get_or_create("bob").await.unwrap();
    clock.advance(2 * 60 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 2);
    assert!(manager.is_empty());
}

#[tokio::test(start_paused = true)]
async fn it_does_not_keep_others_from_an_answer() {
    let clock = PausedClock::new();
    let manager = builder(&clock).max_sessions(1).build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    alice.shell_start(Command::new("server")).await.unwrap();
    fails(ErrorKind::RateLimited, manager.get_or_create("bob").await);
}
