//! The supervisor: a small process, one per backend, that runs commands.
//!
//! It starts each command with descriptors that the host passes, adopts
//! orphaned processes, and ends every process it ever started when its socket
//! closes or the host dies. It is a separate process, so none of this affects
//! the host: no signal handlers, no limits, no adopted children.
//!
//! Any program can be its own supervisor:
//!
//! ```no_run
//! // First thing in `main`, which may be async:
//! backend_local::supervisor::run_if_asked();
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

pub use confine::{Confinement, Landlock};
pub use limits::Limits;

mod confine;
pub(crate) mod limits;

pub(crate) mod kill;
pub(crate) mod process;
mod program;
pub(crate) mod protocol;
mod reap;
mod serve;
mod shared;
mod spawn;
mod table;
mod threads;
mod views;

pub(crate) use confine::Policy;
pub(crate) use views::MOST_VIEWS;

/// The prefix of a supervisor's first argument. Its version follows.
pub(crate) const SUPERVISE: &str = "--agentbox-supervise=";

/// Whether this program runs as a supervisor if it is started as one.
static ARMED: AtomicBool = AtomicBool::new(false);

/// Runs as a supervisor if this process was started as one, and does not return
/// in that case. Call it first thing in `main`. From then on, local backends of
/// this program use the program itself as their supervisor.
///
/// An async `main` may call it too: threads that its runtime has started by
/// then stay idle. They are started again for each command with
/// [`Limits`], which calling this before the runtime starts
/// avoids. [Views](Landlock::views) of a user who is not root need it: the kernel
/// lets only a process with one thread enter a user namespace.
pub fn run_if_asked() {
    ARMED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os().skip(1);
    let Some(first) = arguments.next() else {
        return;
    };
    let first = first.as_encoded_bytes();
    if first == limits::LAUNCH.as_bytes() {
        limits::run_launcher(arguments);
    }
    if let Some(version) = first.strip_prefix(SUPERVISE.as_bytes()) {
        // Only a process with one thread can enter a user namespace.
        std::process::exit(match threads::count() {
            Some(1) => serve::run(version),
            _ => serve_apart(version.to_vec()),
        });
    }
}

/// Serves on a separate thread. This one may belong to a runtime that has other
/// threads and waits for it.
fn serve_apart(version: Vec<u8>) -> i32 {
    let thread = std::thread::Builder::new().name("supervisor".into());
    let served = thread.spawn(move || serve::run(&version));
    // A thread that did not start or that panicked has nothing left to report.
    served.map_or(1, |thread| thread.join().unwrap_or(1))
}

/// Whether [`run_if_asked`] was called.
pub(crate) fn is_armed() -> bool {
    ARMED.load(Ordering::Relaxed)
}

/// Parses bytes as every kind of input from other processes, for fuzzing.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    if let Ok(request) = protocol::decode::<protocol::Request>(bytes) {
        assert!(protocol::encode(&request).is_ok());
    }
    if let Ok(reply) = protocol::decode::<protocol::Reply>(bytes) {
        assert!(protocol::encode(&reply).is_ok());
    }
    let _ = process::Process::parse(1, bytes);
    limits::fuzz(&String::from_utf8_lossy(bytes));
}
